#include "render/c_kernel.h"

#include "base/arith.h"
#include "base/check.h"
#include "ir/kernel_floor.h"
#include "ir/walk.h"
#include "render/binary.h"
#include "render/c_integers.h"
#include "render/c_lookups.h"
#include "render/c_matrices.h"
#include "render/c_ops.h"
#include "render/c_workgroup.h"

namespace tuff::render {

using ir::AxisKind;
using ir::Node;
using ir::Op;
using kernel::LaneMask;

namespace {

constexpr int kManySums = 8;  // beside each other, which registers hold no factors of before theirs

}  // namespace

std::string CKernel::body() {
  b_.dialect.workgroups ? begin_workgroup_function(b_) : begin_function();
  for (size_t i = 0; i < b_.kernel.ops.size(); ++i) {
    b_.begin_op(i);
    emit(i);
  }
  if (memory_.streams()) b_.line("TUFF_STORE_FENCE();");
  return b_.text.function();
}

void CKernel::begin_function() {
  b_.text.begin_function(
      "(const void* args, unsigned gx, unsigned gy, unsigned gz, char* scratch)");
  for (size_t slot = 0; slot < b_.kernel.buffers.size(); ++slot)
    b_.line(fmt::format("{0}* const d{1} = (({0}* const*)args)[{1}];",
                        b_.memory_type(b_.kernel.buffers[slot].dtype), slot));
  for (size_t i = 0; i < b_.kernel.variables.size(); ++i)
    b_.line(fmt::format("const i32 n{} = ((const i32*)args)[{}];", i,
                        b_.kernel.buffers.size() * 2 + i));
  b_.line("(void)gx, (void)gy, (void)gz, (void)scratch;");
}

void CKernel::emit(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  std::vector<CValue>& out = b_.values[i];
  const auto single = [&](std::string text) { out = {CValue{std::move(text)}}; };
  switch (u.op) {
    case Op::Const:
      if (is_int(u.dtype))
        out = {CValue{"", u.const_int()}};
      else
        single(c_literal(b_.dialect, u.get<Scalar>()));
      return;
    case Op::Param: return single(fmt::format("d{}", u.get<ir::ParamArg>().slot));
    case Op::Variable:
      for (size_t n = 0; n < b_.kernel.variables.size(); ++n)
        if (b_.kernel.variables[n].get() == &u) return single(fmt::format("n{}", n));
      fail<InternalError>("kernel {}: variable '{}' is no argument", b_.kernel.name,
                          u.get<ir::VariableArg>().name);
    case Op::Special: return emit_special(i);
    case Op::Range: return emit_range(i);
    case Op::End: return b_.line("}");
    case Op::Register: return emit_register(i);
    case Op::Shared: return b_.dialect.workgroups ? emit_workgroup_memory(b_, i) : emit_shared(i);
    case Op::After:
    case Op::Index:
    case Op::Sink: return;
    case Op::Barrier:
      if (b_.dialect.workgroups) b_.line("TUFF_BARRIER();");
      return;
    case Op::Shuffle: return emit_shuffle(b_, i);
    case Op::MatrixFill:
    case Op::MatrixLoad:
    case Op::MatrixMulAdd:
    case Op::MatrixStore: return emit_matrix(b_, memory_, i);
    case Op::Load: return emit_load(i);
    case Op::Store: return emit_store(i);
    case Op::Prefetch: return emit_prefetch(i);
    case Op::Reduce: return emit_reduce(i);
    case Op::Dot: return emit_dot(i);
    default: return ir::matrix_of(&u) ? emit_matrix(b_, memory_, i) : emit_alu(i);
  }
}

void CKernel::emit_special(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  const auto& s = u.get<ir::SpecialArg>();
  if (!b_.dialect.workgroups && s.space != 'g') {
    if (b_.kernel.local[s.axis] != 1)
      fail<Unsupported>("C renderer: local ids; a CPU group is one invocation");
    b_.values[i] = {CValue{}};
    return;
  }
  const std::string id =
      b_.dialect.workgroups ? coordinate(b_, s) : fmt::format("g{}", "xyz"[s.axis]);
  b_.values[i] = {CValue{b_.define(b_.type_of(u.dtype), id)}};
}

void CKernel::emit_shared(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  const auto& s = u.get<ir::SharedArg>();
  const std::string name = fmt::format("s{}", s.number);
  b_.line(fmt::format("{0}* const {1} = ({0}*)(scratch + {2});", b_.memory_type(u.dtype), name,
                      b_.shared_bytes));
  b_.shared_bytes +=
      align_up(static_cast<size_t>(s.count) * size_bytes(u.dtype), kScratchAlignment);
  b_.values[i] = {CValue{name}};
}

void CKernel::emit_range(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  const auto& arg = u.get<ir::RangeArg>();
  const int bit = b_.space.bit_of(&u);
  if (bit >= 0) {
    if (b_.vector_mask >> bit & 1)
      b_.values[i] = {CValue{"", 0, 1}};
    else
      for (int l = 0; l < b_.space.size(bit); ++l) b_.values[i].push_back(CValue{"", l});
    return;
  }
  TUFF_CHECK(
      arg.kind == AxisKind::Loop || arg.kind == AxisKind::Reduce || arg.kind == AxisKind::Ordered,
      "kernel {}: a {} range on the linear floor", b_.kernel.name, ir::name(arg.kind));
  const std::string size = b_.scalar(b_.value(u.src(0).get(), 0, 0), u.dtype);
  b_.line(
      fmt::format("for ({0} r{1} = 0; r{1} < {2}; r{1}++) {{", b_.type_of(u.dtype), arg.id, size));
  b_.values[i] = {CValue{fmt::format("r{}", arg.id)}};
}

// ---- arithmetic --------------------------------------------------------------------------------

void CKernel::emit_alu(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  const int count = b_.instances(b_.kernel.lanes[i]);
  b_.values[i].resize(static_cast<size_t>(count));
  if (packs_.alu(i)) return;
  for (int n = 0; n < count; ++n) {
    std::vector<CValue> x;
    for (const ir::UOp& s : u.src()) x.push_back(b_.value(s.get(), b_.kernel.lanes[i], n));
    CValue& out = b_.values[i][static_cast<size_t>(n)];
    out = alu(u, x);
    if (!out.table.empty() && !feeds_arithmetic_alone(b_, i))
      out = {.base = b_.vector(out, u.dtype), .vector = true};
  }
  const bool sums =
      u.op == Op::MulAdd && is_float(u.dtype) && (b_.kernel.lanes[i] & b_.vector_mask);
  if (b_.dialect.simd && sums && count >= kManySums) order_block();
}

CValue CKernel::alu(const Node& u, const std::vector<CValue>& x) {
  if (const auto folded = affine(b_, u, x)) return *folded;
  if (const auto found = looked_up(b_, u, x)) return *found;
  bool vec = false;
  for (const CValue& v : x) vec |= v.varies();
  std::vector<COperand> operands;
  for (size_t s = 0; s < x.size(); ++s) {
    const DType t = u.src(s)->dtype;
    const bool scalar_condition = u.op == Op::Where && s == 0 && !x[0].varies();
    if (vec && !scalar_condition)
      operands.push_back({b_.vector(x[s], t), b_.width});
    else
      operands.push_back({b_.scalar(x[s], t), 1});
  }
  const int width = vec ? b_.width : 1;
  const DType from = u.src(u.op == Op::Where ? 1 : 0)->dtype;
  const std::string text = c_alu(b_.dialect, u.op, u.dtype, from, operands, width);
  return CValue{.base = b_.define(b_.type_of(u.dtype, width), text), .vector = vec};
}

// ---- memory ------------------------------------------------------------------------------------

void CKernel::emit_load(size_t i) {
  const Node* from = without_after(b_.kernel.ops[i]->src(0).get());
  const LaneMask mask = b_.kernel.lanes[i];
  std::vector<CValue>& out = b_.values[i];
  out.resize(static_cast<size_t>(b_.instances(mask)));
  const bool gated = from->op == Op::Index && from->src_count > 2;
  if (b_.dialect.claims_alignment && from->op == Op::Index) memory_.claim_alignment(i, *from);
  const bool scalars = !b_.dialect.simd || !(mask & b_.vector_mask);
  if (gated && scalars && out.size() > 1) return groups_.load_behind_gates(i, *from);
  if (packs_.load(i, *from)) return;
  for (int n = 0; n < static_cast<int>(out.size()); ++n) {
    if (!out[n].base.empty()) continue;  // loaded with an instance before it
    if (from->op == Op::Register)
      out[n] = load_register(i, from, n);
    else if (!groups_.load(i, *from, n))
      out[n] = memory_.load(memory_.access(*from, mask, n));
  }
}

void CKernel::emit_store(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  const Node* to = without_after(u.src(0).get());
  if (to->op == Op::Register) {
    store_register(i, to);
    b_.text.begin_block();
    return;
  }
  if (u.src_count == 3)
    fail<Unsupported>("C renderer: a masked store; a Target of C has 8- and 16-bit elements");
  const LaneMask mask = b_.kernel.lanes[i];
  const auto* combined = std::get_if<ir::ReduceArg>(&u.arg);
  TUFF_CHECK(!combined || !b_.dialect.simd, "kernel {}: an atomic store of SIMD lanes",
             b_.kernel.name);
  std::vector<bool> stored(static_cast<size_t>(b_.instances(mask)));  // with one before it
  for (int n = 0; n < static_cast<int>(stored.size()); ++n) {
    if (stored[n]) continue;
    if (combined) {
      memory_.combine(memory_.access(*to, mask, n), b_.value(u.src(1).get(), mask, n), combined->op,
                      u.src(1)->dtype);
      continue;
    }
    const std::vector<int> together = groups_.store(i, *to, n);
    for (const int other : together) stored[static_cast<size_t>(other)] = true;
    if (together.empty())
      memory_.store(memory_.access(*to, mask, n), b_.value(u.src(1).get(), mask, n));
  }
  b_.text.begin_block();
}

// To write, where the CPU has such an instruction; else it is prefetched as for a load.
void CKernel::emit_prefetch(size_t i) {
  const Node& index = *b_.kernel.ops[i]->src(0);
  b_.line(fmt::format("__builtin_prefetch({}, {});", memory_.pointer(memory_.access(index, 0, 0)),
                      b_.kernel.ops[i]->get<int64_t>()));
}

// ---- registers ---------------------------------------------------------------------------------

std::string CKernel::held_type(const Node& u, bool vec) const {
  const ir::MatrixArg* m = ir::matrix_of(&u);
  return m ? matrix_type(*m, u.dtype) : b_.type_of(u.dtype, vec ? b_.width : 1);
}

void CKernel::emit_register(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  const bool vec = b_.kernel.lanes[i] & b_.vector_mask;
  const auto* matrix = std::get_if<ir::MatrixArg>(&u.arg);
  const int64_t number = matrix ? matrix->number : u.get<int64_t>();
  const int count = b_.instances(b_.kernel.lanes[i]);
  for (int n = 0; n < count; ++n) {
    const std::string name = fmt::format("acc{}_{}", number, n);
    b_.line(fmt::format("{} {};", held_type(u, vec), name));
    b_.values[i].push_back(CValue{.base = name, .vector = vec});
  }
}

// A register read in place is enough where no store comes between the load and its last use;
// otherwise the load is a copy.
CValue CKernel::load_register(size_t i, const Node* reg, int instance) {
  const CValue& v = b_.value(reg, b_.kernel.lanes[i], instance);
  if (!changes_before_last_use(i, reg)) return v;
  CValue copy = v;
  copy.base = b_.define(held_type(*reg, v.vector), v.base);
  return copy;
}

bool CKernel::changes_before_last_use(size_t load, const Node* reg) const {
  size_t last = load;
  for (size_t i = load + 1; i < b_.kernel.ops.size(); ++i)
    for (const ir::UOp& s : b_.kernel.ops[i]->src())
      if (without_after(s.get()) == b_.kernel.ops[load].get()) last = i;
  for (size_t i = load + 1; i < last; ++i) {
    const Node& u = *b_.kernel.ops[i];
    if (u.op == Op::Range || u.op == Op::End) return true;
    if (u.op == Op::Store && without_after(u.src(0).get()) == reg) return true;
  }
  // Affine sums and bool constants hand a load's text on without a variable of their own.
  return is_int(reg->dtype) || reg->dtype == DType::Bool;
}

void CKernel::store_register(size_t i, const Node* reg) {
  const Node* source = b_.kernel.ops[i]->src(1).get();
  const LaneMask mask = b_.scalar_mask(b_.lanes_of(reg) | b_.kernel.lanes[i]);
  for (int n = 0; n < b_.space.count(mask); ++n) {
    const CValue& to = b_.value(reg, mask, n);
    const CValue& v = b_.value(source, mask, n);
    TUFF_CHECK(to.vector || !v.varies(), "kernel {}: a vector stored to a scalar register",
               b_.kernel.name);
    b_.line(fmt::format("{} = {};", to.base,
                        to.vector ? b_.vector(v, reg->dtype) : b_.scalar(v, reg->dtype)));
  }
}

// ---- folding lanes -----------------------------------------------------------------------------

void CKernel::emit_reduce(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  const Op op = u.get<ir::ReduceArg>().op;
  const Node* source = without_after(u.src(0).get());
  const LaneMask all = b_.lanes_of(source), kept = b_.kernel.lanes[i];
  const LaneMask folded = all & ~kept;
  const int count = b_.instances(kept), terms = b_.instances(folded);
  for (int n = 0; n < count; ++n) {
    std::vector<CValue> x;
    for (int f = 0; f < terms; ++f) {
      const int at =
          b_.space.project(b_.scalar_mask(kept), n, b_.scalar_mask(all), b_.scalar_mask(folded), f);
      x.push_back(b_.values[b_.position(source)][at]);
    }
    b_.values[i].push_back(fold(op, u.dtype, x, folded & b_.vector_mask));
  }
}

// One multiply-add after the other. SIMD lanes are none of those that it folds (LaneSpace).
void CKernel::emit_dot(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  const LaneMask kept = b_.scalar_mask(b_.kernel.lanes[i]);
  LaneMask folded = 0;
  for (const ir::UOp& r : ir::dot_lanes(&u)) folded |= LaneMask{1} << b_.space.bit_of(r.get());
  const int count = b_.space.count(kept), terms = b_.space.count(folded);
  std::vector<CValue>& sums = b_.values[i];
  for (int n = 0; n < count; ++n) sums.push_back(b_.value(u.src(2).get(), b_.kernel.lanes[i], n));
  const auto add = [&](int n, int f) {
    const auto factor = [&](size_t s) {
      const size_t from = b_.position(without_after(u.src(s).get()));
      return b_.values[from]
                      [b_.space.project(kept, n, b_.scalar_mask(b_.kernel.lanes[from]), folded, f)];
    };
    const std::vector<CValue> x{factor(0), factor(1), sums[size_t(n)]};
    bool vec = false;
    for (const CValue& v : x) vec |= v.varies();
    const int width = vec ? b_.width : 1;
    std::vector<COperand> operands;
    for (const CValue& v : x)
      operands.push_back({vec ? b_.vector(v, u.dtype) : b_.scalar(v, u.dtype), width});
    const std::string text = c_alu(b_.dialect, Op::MulAdd, u.dtype, u.dtype, operands, width);
    sums[size_t(n)] = CValue{.base = b_.define(b_.type_of(u.dtype, width), text), .vector = vec};
  };
  // A vector that all sums take is made before the next one is.
  if (b_.dialect.simd) {
    for (int f = 0; f < terms; ++f)
      for (int n = 0; n < count; ++n) add(n, f);
    order_block();
  } else {
    for (int n = 0; n < count; ++n)
      for (int f = 0; f < terms; ++f) add(n, f);
  }
}

// What a step of a chain multiplies is computed in that step: of all steps at once it would not
// stay in registers, and compilers keep the order that they are given.
void CKernel::order_block() { b_.text.order_block(fmt::format("x{}", b_.width)); }

// A balanced tree over the values; then, across SIMD lanes, halves onto halves.
CValue CKernel::fold(Op op, DType t, const std::vector<CValue>& x, bool across_vector) {
  const auto combine = [&](const std::string& a, const std::string& b, int width) {
    const COperand operands[2] = {{a, width}, {b, width}};
    return b_.define(b_.type_of(t, width), c_alu(b_.dialect, op, t, t, operands, width));
  };
  bool vec = across_vector;
  for (const CValue& v : x) vec |= v.varies();
  std::vector<std::string> texts;
  for (const CValue& v : x) texts.push_back(vec ? b_.vector(v, t) : b_.scalar(v, t));
  while (texts.size() > 1) {
    std::vector<std::string> next;
    for (size_t n = 0; n + 1 < texts.size(); n += 2)
      next.push_back(combine(texts[n], texts[n + 1], vec ? b_.width : 1));
    if (texts.size() % 2) next.push_back(texts.back());
    texts = std::move(next);
  }
  if (!across_vector) return CValue{.base = texts[0], .vector = vec};
  std::string all = b_.define(b_.type_of(t, b_.width), texts[0]);
  for (int width = b_.width / 2; width > 1; width /= 2)
    all = combine(all + ".lo", all + ".hi", width);
  return CValue{combine(t == DType::Bool ? fmt::format("(-{}.x)", all) : all + ".x",
                        t == DType::Bool ? fmt::format("(-{}.y)", all) : all + ".y", 1)};
}

}  // namespace tuff::render
