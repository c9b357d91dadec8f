#include "render/c_kernel.h"

#include "base/arith.h"
#include "base/check.h"
#include "ir/kernel_floor.h"
#include "ir/scalar_eval.h"
#include "render/binary.h"
#include "render/c_late.h"

namespace tuff::render {

using ir::AxisKind;
using ir::Node;
using ir::Op;
using kernel::LaneMask;

namespace {

constexpr int kManySums = 8;  // beside each other, which registers hold no factors of before theirs

}  // namespace

CKernel::CKernel(const kernel::LinearKernel& k, const CDialect& d, bool wide_registers)
    : k_(k),
      dialect_(d),
      space_(k),
      values_(k.ops.size()),
      wide_registers_(d.simd && wide_registers) {
  if (d.simd && c_has_width(space_.vector_width())) {
    width_ = space_.vector_width();
    vector_mask_ = space_.vector_mask();
  }
  for (size_t i = 0; i < k.ops.size(); ++i) position_[k.ops[i].get()] = i;
}

std::string CKernel::body() {
  dialect_.workgroups ? workgroup_header() : header();
  for (size_t i = 0; i < k_.ops.size(); ++i) {
    current_ = i;
    variables_ = 0;
    defined_.clear();
    emit(i);
  }
  TUFF_CHECK(indent_ == 1, "kernel {}: a loop is not closed", k_.name);
  if (streams_) line("TUFF_STORE_FENCE();");
  return out_ + "}\n";
}

void CKernel::header() {
  out_ = "(const void* args, unsigned gx, unsigned gy, unsigned gz, char* scratch) {\n";
  for (size_t slot = 0; slot < k_.buffers.size(); ++slot)
    line(fmt::format("{0}* const d{1} = (({0}* const*)args)[{1}];",
                     memory_type(k_.buffers[slot].dtype), slot));
  for (size_t i = 0; i < k_.variables.size(); ++i)
    line(fmt::format("const i32 n{} = ((const i32*)args)[{}];", i, k_.buffers.size() * 2 + i));
  line("(void)gx, (void)gy, (void)gz, (void)scratch;");
}

void CKernel::line(const std::string& text) {
  out_.append(static_cast<size_t>(indent_) * 2, ' ');
  out_ += text;
  out_ += '\n';
  if (text.back() == '{' || text.back() == '}') block_ = out_.size();
}

std::string CKernel::define(const std::string& type, const std::string& expr) {
  auto [it, fresh] = defined_.try_emplace(type + " " + expr);
  if (!fresh) return it->second;
  it->second =
      variables_ == 0 ? fmt::format("v{}", current_) : fmt::format("v{}_{}", current_, variables_);
  ++variables_;
  // Not const: clang (14, 19) evaluates what a const variable begins with again wherever it is read,
  // and what that reads, so that a chain of choices takes twice as long for each of its steps.
  line(fmt::format("{} {} = {};", type, it->second, expr));
  return it->second;
}

size_t CKernel::position(const Node* u) const {
  const auto it = position_.find(u);
  TUFF_CHECK(it != position_.end(), "kernel {}: a source of {} is not in the list", k_.name,
             ir::name(k_.ops[current_]->op));
  return it->second;
}

const CValue& CKernel::value(const Node* u, LaneMask mask, int instance) const {
  u = without_after(u);
  const size_t at = position(u);
  TUFF_CHECK(at < current_ && !values_[at].empty(),
             "kernel {}: op {} ({}) is used before it has a value", k_.name, at,
             ir::name(u->op));
  return values_[at][space_.project(scalar_mask(mask), instance, scalar_mask(k_.lanes[at]))];
}

// ---- texts ----------------------------------------------------------------------------------

std::string CKernel::scalar(const CValue& v, DType t) const {
  if (v.base.empty()) return c_int(dialect_, t, v.constant);
  if (v.constant == 0) return v.base;
  return v.constant < 0 && v.constant != INT64_MIN
             ? fmt::format("({} - {})", v.base, c_int(dialect_, t, -v.constant))
             : fmt::format("({} + {})", v.base, c_int(dialect_, t, v.constant));
}

std::string CKernel::vector(const CValue& v, DType t) {
  if (!v.table.empty()) return look_up(v, t);
  if (v.vector) return v.base;
  const std::string type = type_of(t, width_);
  const CValue first{v.base, v.constant};
  std::string splat = fmt::format("({})({})", type, scalar(first, t));
  // A Bool in a vector is 0 or -1 per lane.
  if (t == DType::Bool) splat = fmt::format("({})(-{})", type, scalar(first, t));
  if (v.step == 0) return splat;
  std::string steps = fmt::format("({}){{", type);
  for (int l = 0; l < width_; ++l)
    steps += fmt::format("{}{}", l ? ", " : "", c_int(dialect_, t, v.step * (l / v.every)));
  steps += "}";
  if (v.base.empty() && v.constant == 0) return define(type, steps);
  return define(type, fmt::format("{} + {}", splat, steps));
}

std::string CKernel::lane(const CValue& v, DType t, int l) const {
  if (!v.table.empty()) return fmt::format("{}[{}[{}] & 15]", v.table, v.base, l);
  if (v.vector) return fmt::format("{}[{}]", v.base, l);
  return scalar({v.base, v.at_lane(l)}, t);
}

// ---- the walk -------------------------------------------------------------------------------

void CKernel::emit(size_t i) {
  const Node& u = *k_.ops[i];
  std::vector<CValue>& out = values_[i];
  const auto single = [&](std::string text) { out = {CValue{std::move(text)}}; };
  switch (u.op) {
    case Op::Const:
      if (is_int(u.dtype))
        out = {CValue{"", u.const_int()}};
      else
        single(c_literal(dialect_, u.get<Scalar>()));
      return;
    case Op::Param: return single(fmt::format("d{}", u.get<ir::ParamArg>().slot));
    case Op::Variable:
      for (size_t n = 0; n < k_.variables.size(); ++n)
        if (k_.variables[n].get() == &u) return single(fmt::format("n{}", n));
      fail<InternalError>("kernel {}: variable '{}' is no argument", k_.name,
                          u.get<ir::VariableArg>().name);
    case Op::Special: {
      const auto& s = u.get<ir::SpecialArg>();
      if (dialect_.workgroups) return single(define(type_of(u.dtype), coordinate(s)));
      if (s.space != 'g') {
        if (k_.local[s.axis] == 1) {
          out = {CValue{}};
          return;
        }
        fail<Unsupported>("C renderer: local ids; a CPU group is one invocation");
      }
      return single(define(type_of(u.dtype), fmt::format("g{}", "xyz"[s.axis])));
    }
    case Op::Range: return emit_range(i);
    case Op::End: --indent_; return line("}");
    case Op::Register: return emit_register(i);
    case Op::Shared: {
      if (dialect_.workgroups) return emit_workgroup_memory(i);
      const auto& s = u.get<ir::SharedArg>();
      line(fmt::format("{0}* const s{1} = ({0}*)(scratch + {2});", memory_type(u.dtype), s.number,
                       shared_bytes_));
      shared_bytes_ +=
          align_up(static_cast<size_t>(s.count) * size_bytes(u.dtype), kScratchAlignment);
      return single(fmt::format("s{}", s.number));
    }
    case Op::After:
    case Op::Index:
    case Op::Sink: return;
    case Op::Barrier:
      if (dialect_.workgroups) line("TUFF_BARRIER();");
      return;
    case Op::Shuffle: return emit_shuffle(i);
    case Op::MatrixFill:
    case Op::MatrixLoad:
    case Op::MatrixMulAdd:
    case Op::MatrixStore: return emit_matrix(i);
    case Op::Load: return emit_load(i);
    case Op::Store: return emit_store(i);
    case Op::Prefetch: return emit_prefetch(i);
    case Op::Reduce: return emit_reduce(i);
    case Op::Dot: return emit_dot(i);
    default: return ir::matrix_of(&u) ? emit_matrix(i) : emit_alu(i);
  }
}

void CKernel::emit_range(size_t i) {
  const Node& u = *k_.ops[i];
  const auto& arg = u.get<ir::RangeArg>();
  const int bit = space_.bit_of(&u);
  if (bit >= 0) {
    if (vector_mask_ >> bit & 1)
      values_[i] = {CValue{"", 0, 1}};
    else
      for (int l = 0; l < space_.size(bit); ++l) values_[i].push_back(CValue{"", l});
    return;
  }
  TUFF_CHECK(arg.kind == AxisKind::Loop || arg.kind == AxisKind::Reduce ||
                 arg.kind == AxisKind::Ordered,
             "kernel {}: a {} range on the linear floor", k_.name, ir::name(arg.kind));
  const std::string size = scalar(value(u.src(0).get(), 0, 0), u.dtype);
  line(fmt::format("for ({0} r{1} = 0; r{1} < {2}; r{1}++) {{", type_of(u.dtype), arg.id, size));
  ++indent_;
  values_[i] = {CValue{fmt::format("r{}", arg.id)}};
}

void CKernel::emit_register(size_t i) {
  const Node& u = *k_.ops[i];
  const bool vec = k_.lanes[i] & vector_mask_;
  const auto* matrix = std::get_if<ir::MatrixArg>(&u.arg);
  const int64_t number = matrix ? matrix->number : u.get<int64_t>();
  const int count = space_.count(scalar_mask(k_.lanes[i]));
  for (int n = 0; n < count; ++n) {
    const std::string name = fmt::format("acc{}_{}", number, n);
    line(fmt::format("{} {};", held_type(u, vec), name));
    values_[i].push_back(CValue{.base = name, .vector = vec});
  }
}

void CKernel::emit_alu(size_t i) {
  const Node& u = *k_.ops[i];
  const int count = space_.count(scalar_mask(k_.lanes[i]));
  values_[i].resize(static_cast<size_t>(count));
  if (alu_packed(i)) return;
  for (int n = 0; n < count; ++n) {
    std::vector<CValue> x;
    for (const ir::UOp& s : u.src()) x.push_back(value(s.get(), k_.lanes[i], n));
    CValue& out = values_[i][static_cast<size_t>(n)];
    out = alu(u, x);
    if (!out.table.empty() && !feeds_arithmetic_alone(i)) out = {.base = vector(out, u.dtype), .vector = true};
  }
  const bool sums = u.op == Op::MulAdd && is_float(u.dtype) && (k_.lanes[i] & vector_mask_);
  if (dialect_.simd && sums && count >= kManySums) order_block();
}

CValue CKernel::alu(const Node& u, const std::vector<CValue>& x) {
  CValue folded;
  if (affine(u, x, folded) || looked_up(u, x, folded)) return folded;
  bool vec = false;
  for (const CValue& v : x) vec |= v.varies();
  std::vector<COperand> operands;
  for (size_t s = 0; s < x.size(); ++s) {
    const DType t = u.src(s)->dtype;
    const bool scalar_condition = u.op == Op::Where && s == 0 && !x[0].varies();
    if (vec && !scalar_condition)
      operands.push_back({vector(x[s], t), width_});
    else
      operands.push_back({scalar(x[s], t), 1});
  }
  const int width = vec ? width_ : 1;
  const DType from = u.src(u.op == Op::Where ? 1 : 0)->dtype;
  const std::string text = c_alu(dialect_, u.op, u.dtype, from, operands, width);
  return CValue{.base = define(type_of(u.dtype, width), text), .vector = vec};
}

// ---- integers: sums of a shared base and constants ------------------------------------------

namespace {

// As the device wraps.
int64_t wrapping_add(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
int64_t wrapping_mul(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

// A sum that fits its type may not fit without a constant of this size: it stays in the base.
bool is_far(int64_t constant) { return constant > (1 << 24) || constant < -(1 << 24); }

}  // namespace

CValue CKernel::affine_sum(DType t, const CValue& a, const CValue& b, bool subtract) {
  const int sign = subtract ? -1 : 1;
  CValue out{a.base, wrapping_add(a.constant, wrapping_mul(sign, b.constant)),
             a.step + sign * b.step, a.step ? a.every : b.every};
  out.divisor = divisor_of_sum(!a.base.empty(), a.divisor, !b.base.empty(), b.divisor);
  if (b.base.empty()) return out;
  if (a.base.empty() && !subtract)
    out.base = b.base;
  else if (is_far(out.constant)) {
    out.base =
        define(type_of(t), fmt::format("{} {} {}", scalar({a.base, a.constant}, t),
                                       subtract ? "-" : "+", scalar({b.base, b.constant}, t)));
    out.constant = 0;
    out.divisor = 1;
  } else if (a.base.empty())
    out.base = define(type_of(t), fmt::format("-{}", b.base));
  else
    out.base = define(type_of(t), fmt::format("{} {} {}", a.base, subtract ? "-" : "+", b.base));
  return out;
}

CValue CKernel::affine_product(DType t, const CValue& a, int64_t factor) {
  if (factor == 0) return {};
  CValue out{a.base, wrapping_mul(a.constant, factor), wrapping_mul(a.step, factor), a.every};
  out.divisor = divisor_of_product(a.divisor, factor);
  if (a.base.empty() || factor == 1) return out;
  std::string base = a.base;
  if (is_far(out.constant)) {
    base = scalar({a.base, a.constant}, t);
    out.constant = 0;
    out.divisor = divisor_of_product(1, factor);
  }
  out.base = define(type_of(t), fmt::format("{} * {}", base, c_int(dialect_, t, factor)));
  return out;
}

// Lanes that are divided by a power of two: neighbours become equal.
bool CKernel::divided_lanes(const Node& u, const std::vector<CValue>& x, CValue& out) const {
  const CValue& v = x[0];
  const bool lanes = v.base.empty() && v.is_contiguous() && v.constant >= 0;
  if (!lanes || !x[1].is_number() || x[1].constant < 1 || x[1].constant > width_) return false;
  const int64_t n = u.op == Op::Shr && x[1].constant < 8 ? int64_t{1} << x[1].constant
                    : u.op == Op::IDiv                   ? x[1].constant
                                                         : 0;
  if (n == 0 || width_ % n != 0 || v.constant % n != 0) return false;
  out = CValue{"", v.constant / n, 1, n};
  return true;
}

// Add, Sub and Mul by a number keep the form; any op of numbers alone is folded. Bases are I32 or
// I64; what indexes memory does not overflow, so constants that are not far may move out of the
// sum.
bool CKernel::affine(const Node& u, const std::vector<CValue>& x, CValue& out) {
  const DType t = u.src(0)->dtype;
  if (t != DType::I32 && t != DType::I64) return false;
  bool vectors = false, numbers = true;
  for (const CValue& v : x) vectors |= v.vector, numbers &= v.is_number();
  if (vectors) return false;
  if (numbers && (u.dtype == DType::I32 || u.dtype == DType::I64 || u.dtype == DType::Bool)) {
    if (u.op == Op::Bitcast) return false;
    std::vector<Scalar> scalars;
    for (size_t s = 0; s < x.size(); ++s)
      scalars.push_back(Scalar::of_int(u.src(s)->dtype, x[s].constant));
    const Scalar result = ir::eval_scalar(u.op, u.dtype, scalars);
    out =
        u.dtype == DType::Bool ? CValue{result.as_bool() ? "1" : "0"} : CValue{"", result.as_int()};
    return true;
  }
  const bool sums = u.op == Op::Add || u.op == Op::Sub;
  if (sums && x[0].step && x[1].step && x[0].every != x[1].every) return false;
  switch (u.op) {
    case Op::Add: out = affine_sum(t, x[0], x[1], false); return true;
    case Op::Sub: out = affine_sum(t, x[0], x[1], true); return true;
    case Op::Shr:
    case Op::IDiv: return divided_lanes(u, x, out);
    case Op::Mul:
      if (!x[0].is_number() && !x[1].is_number()) return false;
      out = x[1].is_number() ? affine_product(t, x[0], x[1].constant)
                             : affine_product(t, x[1], x[0].constant);
      break;
    case Op::Shl:
      if (!x[1].is_number() || x[1].constant < 0 || x[1].constant > 30) return false;
      out = affine_product(t, x[0], int64_t{1} << x[1].constant);
      break;
    default: return false;
  }
  return true;
}

// ---- folding lanes --------------------------------------------------------------------------

void CKernel::emit_reduce(size_t i) {
  const Node& u = *k_.ops[i];
  const Op op = u.get<ir::ReduceArg>().op;
  const Node* source = without_after(u.src(0).get());
  const LaneMask all = lanes_of(source), kept = k_.lanes[i];
  const LaneMask folded = all & ~kept;
  const int count = space_.count(scalar_mask(kept)), terms = space_.count(scalar_mask(folded));
  for (int n = 0; n < count; ++n) {
    std::vector<CValue> x;
    for (int f = 0; f < terms; ++f) {
      const int at = space_.project(scalar_mask(kept), n, scalar_mask(all), scalar_mask(folded), f);
      x.push_back(values_[position(source)][at]);
    }
    values_[i].push_back(fold(op, u.dtype, x, folded & vector_mask_));
  }
}

// One multiply-add after the other. SIMD lanes are none of those that it folds (LaneSpace).
void CKernel::emit_dot(size_t i) {
  const Node& u = *k_.ops[i];
  const LaneMask kept = scalar_mask(k_.lanes[i]);
  LaneMask folded = 0;
  for (const ir::UOp& r : ir::dot_lanes(&u)) folded |= LaneMask{1} << space_.bit_of(r.get());
  const int count = space_.count(kept), terms = space_.count(folded);
  std::vector<CValue>& sums = values_[i];
  for (int n = 0; n < count; ++n) sums.push_back(value(u.src(2).get(), k_.lanes[i], n));
  const auto add = [&](int n, int f) {
    const auto factor = [&](size_t s) {
      const size_t from = position(without_after(u.src(s).get()));
      return values_[from][space_.project(kept, n, scalar_mask(k_.lanes[from]), folded, f)];
    };
    const std::vector<CValue> x{factor(0), factor(1), sums[size_t(n)]};
    bool vec = false;
    for (const CValue& v : x) vec |= v.varies();
    const int width = vec ? width_ : 1;
    std::vector<COperand> operands;
    for (const CValue& v : x)
      operands.push_back({vec ? vector(v, u.dtype) : scalar(v, u.dtype), width});
    const std::string text = c_alu(dialect_, Op::MulAdd, u.dtype, u.dtype, operands, width);
    sums[size_t(n)] = CValue{.base = define(type_of(u.dtype, width), text), .vector = vec};
  };
  // A vector that all sums take is made before the next one is.
  if (dialect_.simd) {
    for (int f = 0; f < terms; ++f)
      for (int n = 0; n < count; ++n) add(n, f);
    order_block();
  } else {
    for (int n = 0; n < count; ++n)
      for (int f = 0; f < terms; ++f) add(n, f);
  }
}

// What a step of a chain multiplies is computed in that step: of all steps at once it would not stay
// in registers, and compilers keep the order that they are given.
void CKernel::order_block() {
  const std::string block = out_.substr(block_);
  out_.resize(block_);
  out_ += values_at_first_use(block, fmt::format("x{}", width_));
}

// A balanced tree over the values; then, across SIMD lanes, halves onto halves.
CValue CKernel::fold(Op op, DType t, const std::vector<CValue>& x, bool across_vector) {
  const auto combine = [&](const std::string& a, const std::string& b, int width) {
    const COperand operands[2] = {{a, width}, {b, width}};
    return define(type_of(t, width), c_alu(dialect_, op, t, t, operands, width));
  };
  bool vec = across_vector;
  for (const CValue& v : x) vec |= v.varies();
  std::vector<std::string> texts;
  for (const CValue& v : x) texts.push_back(vec ? vector(v, t) : scalar(v, t));
  while (texts.size() > 1) {
    std::vector<std::string> next;
    for (size_t n = 0; n + 1 < texts.size(); n += 2)
      next.push_back(combine(texts[n], texts[n + 1], vec ? width_ : 1));
    if (texts.size() % 2) next.push_back(texts.back());
    texts = std::move(next);
  }
  if (!across_vector) return CValue{.base = texts[0], .vector = vec};
  std::string all = define(type_of(t, width_), texts[0]);
  for (int width = width_ / 2; width > 1; width /= 2)
    all = combine(all + ".lo", all + ".hi", width);
  return CValue{combine(t == DType::Bool ? fmt::format("(-{}.x)", all) : all + ".x",
                        t == DType::Bool ? fmt::format("(-{}.y)", all) : all + ".y", 1)};
}

}  // namespace tuff::render
