#include "render/c_ops.h"

#include <cctype>

#include "base/check.h"
#include "render/c_types.h"

namespace tuff::render {

using ir::Op;

namespace {

bool is_narrow_float(DType t) { return t == DType::F16 || t == DType::BF16; }

std::string convert_vector(const CDialect& d, const std::string& x, DType to, int width) {
  return fmt::format("__builtin_convertvector({}, {})", x, c_type(d, to, width));
}

// fn(a[0], b[0]), fn(a[1], b[1]) ... as one vector; scalars call directly.
std::string per_lane(const CDialect& d, const char* fn, DType to, std::span<const COperand> x,
                     int width) {
  if (width == 1)
    return x.size() == 1 ? fmt::format("{}({})", fn, x[0].text)
                         : fmt::format("{}({}, {})", fn, x[0].text, x[1].text);
  // A subscript binds tighter than the cast of a broadcast.
  const auto item = [](const COperand& o, int lane) {
    return o.text[0] == '(' ? fmt::format("({})[{}]", o.text, lane)
                            : fmt::format("{}[{}]", o.text, lane);
  };
  std::string out = fmt::format("({}){{", c_type(d, to, width));
  for (int lane = 0; lane < width; ++lane) {
    out += fmt::format("{}{}({}", lane ? ", " : "", fn, item(x[0], lane));
    if (x.size() > 1) out += ", " + item(x[1], lane);
    out += ")";
  }
  return out + "}";
}

// A comparison's lanes are as wide as what was compared; a Bool's are i32.
std::string comparison(const CDialect& d, const char* sign, DType from, std::span<const COperand> x,
                       int width) {
  std::string text = fmt::format("{} {} {}", x[0].text, sign, x[1].text);
  if (width == 1 || from == DType::Bool || size_bytes(from) == 4) return text;
  return convert_vector(d, text, DType::Bool, width);
}

std::string mask_for(const CDialect& d, const COperand& condition, DType value) {
  if (condition.width == 1 || value == DType::Bool) return condition.text;
  switch (size_bytes(value)) {
    case 1: return convert_vector(d, condition.text, DType::I8, condition.width);
    case 2: return convert_vector(d, condition.text, DType::I16, condition.width);
    case 8: return convert_vector(d, condition.text, DType::I64, condition.width);
    default: return condition.text;
  }
}

std::string narrow_function(const char* to, const char* from, int width) {
  return width == 1 ? fmt::format("{}_of_{}", to, from)
                    : fmt::format("{}_of_{}x{}", to, from, width);
}

std::string cast_text(const CDialect& d, DType to, DType from, const COperand& x, int width);

// To f16 or bf16: through an f32 that is exact or rounded to odd.
std::string cast_to_narrow(const CDialect& d, DType to, DType from, const COperand& x, int width) {
  COperand single{x.text, width};
  const bool exact = from == DType::F32 || from == DType::Bool || size_bytes(from) <= 2;
  if (!exact && d.library && from != DType::F64) {  // there may be no doubles
    const char* wide = is_unsigned(from) ? "u64" : "i64";
    single.text = fmt::format("f32_odd_of_{0}(({0}){1})", wide, x.text);
  } else if (!exact) {
    COperand wide{from == DType::F64 ? x.text : cast_text(d, DType::F64, from, x, width), width};
    if (width > 1) wide.text = fmt::format("({})", wide.text);
    single.text = per_lane(d, "f32_odd_of_f64", DType::F32, {&wide, 1}, width);
  } else if (from != DType::F32) {
    single.text = cast_text(d, DType::F32, from, x, width);
  }
  return fmt::format("{}({})", narrow_function(short_name(to), "f32", width), single.text);
}

std::string cast_text(const CDialect& d, DType to, DType from, const COperand& x, int width) {
  if (to == from) return x.text;
  if (is_narrow_float(from)) {
    const std::string single =
        fmt::format("{}({})", narrow_function("f32", short_name(from), width), x.text);
    return to == DType::F32 ? single : cast_text(d, to, DType::F32, {single, width}, width);
  }
  if (is_narrow_float(to)) return cast_to_narrow(d, to, from, x, width);
  if (to == DType::Bool) {
    const COperand operands[2] = {x, {fmt::format("({})(0)", c_type(d, from, width)), width}};
    return comparison(d, "!=", from, operands, width);
  }
  if (width == 1) return fmt::format("({}){}", c_type(d, to), x.text);
  return convert_vector(d, from == DType::Bool ? fmt::format("({} & 1)", x.text) : x.text, to,
                        width);
}

std::string bitcast_text(const CDialect& d, DType to, DType from, const COperand& x, int width) {
  if (c_type(d, to) == c_type(d, from)) return x.text;
  if (width > 1) return fmt::format("({}){}", c_type(d, to, width), x.text);
  return fmt::format("((union {{ {} a; {} b; }}){{{}}}).b", c_type(d, from), c_type(d, to), x.text);
}

std::string max_text(DType from, std::span<const COperand> x) {
  const std::string &a = x[0].text, &b = x[1].text;
  if (!is_float(from)) return fmt::format("{0} > {1} ? {0} : {1}", a, b);
  // A literal is no NaN: the order of the comparison alone makes a's NaN win, one instruction.
  const auto literal = [](const std::string& t) {
    const size_t start = t.rfind('(') == std::string::npos ? 0 : t.rfind('(') + 1;
    return start < t.size() && (std::isdigit(t[start]) || t[start] == '-');
  };
  if (literal(b)) return fmt::format("{1} > {0} ? {1} : {0}", a, b);
  if (literal(a)) return fmt::format("{0} > {1} ? {0} : {1}", a, b);
  return fmt::format("{0} != {0} ? {0} : ({0} > {1} ? {0} : {1})", a, b);
}

std::string bool_text(Op op, std::span<const COperand> x, int width) {
  const char* sign = nullptr;
  switch (op) {
    case Op::Add:
    case Op::Or:
    case Op::Max: sign = "|"; break;
    case Op::Mul:
    case Op::And: sign = "&"; break;
    case Op::Xor:
    case Op::CmpNe: sign = "^"; break;
    case Op::CmpEq: return fmt::format("{} == {}", x[0].text, x[1].text);
    case Op::CmpLt: return fmt::format("{}{} & {}", width == 1 ? "!" : "~", x[0].text, x[1].text);
    default: fail<Unsupported>("C renderer: {} of bool", ir::name(op));
  }
  return fmt::format("{} {} {}", x[0].text, sign, x[1].text);
}

const char* sign_of(Op op) {
  switch (op) {
    case Op::Add: return "+";
    case Op::Sub: return "-";
    case Op::Mul: return "*";
    case Op::Div: return "/";
    case Op::And: return "&";
    case Op::Or: return "|";
    case Op::Xor: return "^";
    case Op::Shl: return "<<";
    case Op::Shr: return ">>";
    default: return nullptr;
  }
}

// A quotient by a positive literal cannot trap: one operator; otherwise the total function.
std::string quotient(const CDialect& d, Op op, DType t, std::span<const COperand> x, int width) {
  const std::string& b = x[1].text;
  const size_t start = b.rfind('(') == std::string::npos ? 0 : b.rfind('(') + 1;
  if (std::isdigit(b[start]) && b[start] != '0')
    return fmt::format("{} {} {}", x[0].text, op == Op::IDiv ? "/" : "%", b);
  const std::string fn = fmt::format("{}_{}", op == Op::IDiv ? "div" : "mod", short_name(t));
  return per_lane(d, fn.c_str(), t, x, width);
}

const char* libm_name(Op op, bool single) {
  switch (op) {
    case Op::Sqrt: return single ? "__builtin_sqrtf" : "__builtin_sqrt";
    case Op::Exp2: return single ? "__builtin_exp2f" : "__builtin_exp2";
    case Op::Log2: return single ? "__builtin_log2f" : "__builtin_log2";
    case Op::Sin: return single ? "__builtin_sinf" : "__builtin_sin";
    default: return nullptr;
  }
}

// The compiler's own meaning of an operation, for any type of float that a GPU computes with. There
// is no library behind them: of f64 it knows but two.
std::string element_builtin(const CDialect& d, Op op, DType t, const std::string& x) {
  if (d.library) return fmt::format("{}({})", ir::name(op), x);
  const bool known = t != DType::F64 || op == Op::Sqrt || op == Op::Trunc;
  if (!known) fail<Unsupported>("C renderer: {} of {}", ir::name(op), name(t));
  return fmt::format("__builtin_elementwise_{}({})", ir::name(op), x);
}

std::string unary_text(const CDialect& d, Op op, DType t, std::span<const COperand> x, int width) {
  if (op == Op::Neg) return fmt::format("-{}", x[0].text);
  if (!is_float(t)) fail<Unsupported>("C renderer: {} of {}", ir::name(op), name(t));
  if (op == Op::Recip) return fmt::format("({})(1) / {}", c_type(d, t, width), x[0].text);
  if (!d.simd) return element_builtin(d, op, t, x[0].text);
  if (op == Op::Trunc) {
    if (width > 1) return fmt::format("__builtin_elementwise_trunc({})", x[0].text);
    return fmt::format("__builtin_trunc{}({})", t == DType::F32 ? "f" : "", x[0].text);
  }
  return per_lane(d, libm_name(op, t == DType::F32), t, x, width);
}

// Where the compiler fuses what stands in one expression, that says it; else a function of the
// prelude does.
std::string product_sum(const CDialect& d, DType t, std::span<const COperand> x) {
  if (d.library && is_float(t))
    return fmt::format("TUFF_MULADD_{}({}, {}, {})", c_type(d, t), x[0].text, x[1].text, x[2].text);
  return fmt::format("{} * {} + {}", x[0].text, x[1].text, x[2].text);
}

bool moves_bits_only(Op op) { return op == Op::Where || op == Op::Cast || op == Op::Bitcast; }

}  // namespace

std::string c_alu(const CDialect& d, Op op, DType to, DType from, std::span<const COperand> x,
                  int width) {
  if (is_held_as_bits(d, from) && !moves_bits_only(op))
    fail<Unsupported>("C renderer: {} of {}; the kernel room decomposes it", ir::name(op),
                      name(from));
  if (op == Op::Where)
    return fmt::format("{} ? {} : {}", mask_for(d, x[0], to), x[1].text, x[2].text);
  if (op == Op::Cast) return cast_text(d, to, from, x[0], width);
  if (op == Op::Bitcast) return bitcast_text(d, to, from, x[0], width);
  if (from == DType::Bool) return bool_text(op, x, width);
  if (const char* sign = sign_of(op)) return fmt::format("{} {} {}", x[0].text, sign, x[1].text);
  switch (op) {
    case Op::CmpLt: return comparison(d, "<", from, x, width);
    case Op::CmpNe: return comparison(d, "!=", from, x, width);
    case Op::CmpEq: return comparison(d, "==", from, x, width);
    case Op::Max: return max_text(from, x);
    case Op::IDiv:
    case Op::IMod: return quotient(d, op, from, x, width);
    case Op::MulAdd: return product_sum(d, from, x);
    case Op::Neg:
    case Op::Recip:
    case Op::Sqrt:
    case Op::Exp2:
    case Op::Log2:
    case Op::Sin:
    case Op::Trunc: return unary_text(d, op, from, x, width);
    default: fail<Unsupported>("C renderer: {} of {}", ir::name(op), name(from));
  }
}

}  // namespace tuff::render
