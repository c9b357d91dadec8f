#include "render/c_ops.h"

#include <cctype>

#include "base/check.h"
#include "ir/op_table.h"
#include "render/c_types.h"

namespace tuff::render {

using ir::Op;

namespace {

// An op on operands: `sign` is its operator, or the name of its function.
struct Call {
  const CDialect& d;
  const char* sign;
  DType to, from;
  std::span<const COperand> x;
  int width;
};
// How an op is spelled: by a function; without one, its operator between the operands.
struct Spelling {
  const char* sign = nullptr;
  std::string (*text)(const Call&) = nullptr;
};
struct Row {
  Spelling numbers, bools = {};
};

bool is_narrow_float(DType t) { return t == DType::F16 || t == DType::BF16; }

std::string convert_vector(const CDialect& d, const std::string& x, DType to, int width) {
  return fmt::format("__builtin_convertvector({}, {})", x, c_type(d, to, width));
}

// fn(a[0], b[0]), fn(a[1], b[1]) ... as one vector; scalars call directly.
std::string per_lane(const CDialect& d, std::string_view fn, DType to, std::span<const COperand> x,
                     int width) {
  if (width == 1)
    return x.size() == 1 ? fmt::format("{}({})", fn, x[0].text)
                         : fmt::format("{}({}, {})", fn, x[0].text, x[1].text);
  // A subscript binds tighter than the cast of a broadcast.
  const auto item = [](const COperand& o, int lane) {
    const bool whole = o.text[0] != '(';
    return whole ? fmt::format("{}[{}]", o.text, lane) : fmt::format("({})[{}]", o.text, lane);
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
  const size_t size = size_bytes(value);
  if (condition.width == 1 || value == DType::Bool || size == 4) return condition.text;
  const DType lane = size == 1 ? DType::I8 : size == 2 ? DType::I16 : DType::I64;
  return convert_vector(d, condition.text, lane, condition.width);
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

std::string comparison(const Call& c) { return comparison(c.d, c.sign, c.from, c.x, c.width); }
std::string less_of_bools(const Call& c) {
  return fmt::format("{}{} & {}", c.width == 1 ? "!" : "~", c.x[0].text, c.x[1].text);
}

// The digits of a literal begin there.
size_t digits_of(const std::string& t) {
  return t.rfind('(') == std::string::npos ? 0 : t.rfind('(') + 1;
}

std::string maximum(const Call& c) {
  const std::string &a = c.x[0].text, &b = c.x[1].text;
  if (!is_float(c.from)) return fmt::format("{0} > {1} ? {0} : {1}", a, b);
  // A literal is no NaN: the order of the comparison alone makes a's NaN win, one instruction.
  const auto literal = [](const std::string& t) {
    const size_t start = digits_of(t);
    return start < t.size() && (std::isdigit(t[start]) || t[start] == '-');
  };
  if (literal(b)) return fmt::format("{1} > {0} ? {1} : {0}", a, b);
  if (literal(a)) return fmt::format("{0} > {1} ? {0} : {1}", a, b);
  return fmt::format("{0} != {0} ? {0} : ({0} > {1} ? {0} : {1})", a, b);
}

// A quotient by a positive literal cannot trap: one operator; otherwise the total function.
std::string quotient(const Call& c) {
  const std::string& b = c.x[1].text;
  const char first = b[digits_of(b)];
  if (std::isdigit(first) && first != '0') return fmt::format("{} {} {}", c.x[0].text, c.sign, b);
  const std::string fn = fmt::format("{}_{}", c.sign[0] == '/' ? "div" : "mod", short_name(c.from));
  return per_lane(c.d, fn, c.from, c.x, c.width);
}

std::string negation(const Call& c) { return fmt::format("-{}", c.x[0].text); }
std::string reciprocal(const Call& c) {
  return fmt::format("({})(1) / {}", c_type(c.d, c.from, c.width), c.x[0].text);
}

// The compiler's own meaning of an operation, for any type of float that a GPU computes with. There
// is no library behind them: of f64 it knows but two.
std::string element_builtin(const Call& c) {
  const std::string_view fn = c.sign;
  if (c.d.library) return fmt::format("{}({})", fn, c.x[0].text);
  if (c.from == DType::F64 && fn != "sqrt" && fn != "trunc")
    fail<Unsupported>("C renderer: {} of {}", fn, name(c.from));
  return fmt::format("__builtin_elementwise_{}({})", fn, c.x[0].text);
}
std::string function(const Call& c) {
  if (!c.d.simd) return element_builtin(c);
  const std::string fn = fmt::format("__builtin_{}{}", c.sign, c.from == DType::F32 ? "f" : "");
  return per_lane(c.d, fn, c.from, c.x, c.width);
}
std::string vector_function(const Call& c) {
  if (c.width == 1 || !c.d.simd) return function(c);
  return fmt::format("__builtin_elementwise_{}({})", c.sign, c.x[0].text);
}

// Where the compiler fuses what stands in one expression, that says it; else a function of the
// prelude does.
std::string product_sum(const Call& c) {
  const std::string &x = c.x[0].text, &y = c.x[1].text, &z = c.x[2].text;
  if (c.d.library && is_float(c.from))
    return fmt::format("TUFF_MULADD_{}({}, {}, {})", c_type(c.d, c.from), x, y, z);
  return fmt::format("{} * {} + {}", x, y, z);
}

std::string choice(const Call& c) {
  return fmt::format("{} ? {} : {}", mask_for(c.d, c.x[0], c.to), c.x[1].text, c.x[2].text);
}
std::string cast(const Call& c) { return cast_text(c.d, c.to, c.from, c.x[0], c.width); }
std::string bitcast(const Call& c) { return bitcast_text(c.d, c.to, c.from, c.x[0], c.width); }

constexpr ir::OpTable<Row> kSpellings{{
    {Op::Add, {{"+"}, {"|"}}},            {Op::Sub, {{"-"}}},
    {Op::Mul, {{"*"}, {"&"}}},            {Op::Div, {{"/"}}},
    {Op::IDiv, {{"/", quotient}}},        {Op::IMod, {{"%", quotient}}},
    {Op::Max, {{"max", maximum}, {"|"}}}, {Op::And, {{"&"}, {"&"}}},
    {Op::Or, {{"|"}, {"|"}}},             {Op::Xor, {{"^"}, {"^"}}},
    {Op::Shl, {{"<<"}}},                  {Op::Shr, {{">>"}}},
    {Op::CmpLt, {{"<", comparison}, {"<", less_of_bools}}},
    {Op::CmpNe, {{"!=", comparison}, {"^"}}},    {Op::CmpEq, {{"==", comparison}, {"=="}}},
    {Op::Neg, {{"-", negation}}},                {Op::Recip, {{"recip", reciprocal}}},
    {Op::Sqrt, {{"sqrt", function}}},            {Op::Exp2, {{"exp2", function}}},
    {Op::Log2, {{"log2", function}}},            {Op::Sin, {{"sin", function}}},
    {Op::Trunc, {{"trunc", vector_function}}},   {Op::MulAdd, {{"muladd", product_sum}}},
    {Op::Where, {{"?", choice}, {"?", choice}}}, {Op::Cast, {{"cast", cast}, {"cast", cast}}},
    {Op::Bitcast, {{"bitcast", bitcast}, {"bitcast", bitcast}}},
}};
static_assert(kSpellings.covers(ir::is_rendered), "render/c_ops.cpp: kSpellings lacks an op");

bool moves_bits_only(Op op) { return op == Op::Where || op == Op::Cast || op == Op::Bitcast; }

}  // namespace

std::string c_alu(const CDialect& d, Op op, DType to, DType from, std::span<const COperand> x,
                  int width) {
  if (is_held_as_bits(d, from) && !moves_bits_only(op))
    fail<Unsupported>("C renderer: {} of {}; the kernel room decomposes it", ir::name(op),
                      name(from));
  const Row* row = kSpellings.find(op);
  const bool defined = row && (is_float(from) || ir::takes_integers(op));
  const Spelling s = !defined ? Spelling{} : from == DType::Bool ? row->bools : row->numbers;
  if (s.text) return s.text({d, s.sign, to, from, x, width});
  if (!s.sign) fail<Unsupported>("C renderer: {} of {}", ir::name(op), name(from));
  return fmt::format("{} {} {}", x[0].text, s.sign, x[1].text);
}

}  // namespace tuff::render
