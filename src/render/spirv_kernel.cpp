#include "render/spirv_kernel.h"

#include <algorithm>
#include <optional>

#include <spirv/unified1/spirv.hpp>

#include "base/check.h"
#include "ir/kernel_floor.h"
#include "ir/walk.h"
#include "render/spirv_integers.h"
#include "render/spirv_matrices.h"
#include "render/unrolled_loops.h"

namespace tuff::render {

using ir::Node;
using ir::Op;
using kernel::LaneMask;

void SpirvKernel::write() {
  begin_function();
  for (size_t i = 0; i < b_.kernel.ops.size(); ++i) {
    b_.current = i;
    b_.m.line(kernel::text_line(i));
    emit(i);
  }
  b_.m.line(0);
  TUFF_CHECK(loops_.empty(), "kernel {}: a loop is not closed", b_.kernel.name);
  b_.m.end_function();
}

void SpirvKernel::begin_function() {
  b_.m.begin_function();
  b_.m.execution_mode(b_.m.entry(), spv::ExecutionModeLocalSize,
                      {b_.kernel.local[0], b_.kernel.local[1], b_.kernel.local[2]});
  const TargetFeatures& f = b_.target.features;
  if ((f.signed_zero_inf_nan || f.denormals) && b_.m.version_minor() < 4)
    b_.m.extension("SPV_KHR_float_controls");
  if (f.denormals) {
    b_.m.capability(spv::CapabilityDenormPreserve);
    b_.m.execution_mode(b_.m.entry(), spv::ExecutionModeDenormPreserve, {32});
  }
  if (f.signed_zero_inf_nan) {
    b_.m.capability(spv::CapabilitySignedZeroInfNanPreserve);
    b_.m.execution_mode(b_.m.entry(), spv::ExecutionModeSignedZeroInfNanPreserve, {32});
    const bool doubles = std::any_of(b_.kernel.ops.begin(), b_.kernel.ops.end(),
                                     [](const ir::UOp& u) { return u->dtype == DType::F64; });
    if (doubles)
      b_.m.execution_mode(b_.m.entry(), spv::ExecutionModeSignedZeroInfNanPreserve, {64});
  }
  b_.arguments = load_arguments(b_.m, b_.t, b_.kernel, b_.target);
}

void SpirvKernel::emit(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  switch (u.op) {
    case Op::Const: return emit_const(i);
    case Op::Param: b_.values[i] = {{buffer_as(u)}}; return;
    case Op::Variable: return emit_variable(i);
    case Op::Special: return emit_special(i);
    case Op::Range: return emit_range(i);
    case Op::End: return emit_end(*u.src(0));
    case Op::Register: return emit_register(i);
    case Op::Shared: return emit_shared(i);
    case Op::Barrier: return emit_barrier();
    case Op::Load: return emit_load(i);
    case Op::Store: return emit_store(i);
    case Op::MatrixFill:
    case Op::MatrixLoad:
    case Op::MatrixMulAdd: return emit_matrix(b_, i);
    case Op::MatrixStore: return emit_matrix_store(b_, i);
    case Op::After:
    case Op::Prefetch:
    case Op::Index:
    case Op::Sink: return;
    default: return ir::matrix_of(&u) ? emit_matrix(b_, i) : emit_lanes(i);
  }
}

void SpirvKernel::emit_const(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  if (u.dtype == DType::I32 || u.dtype == DType::I64) {
    b_.values[i] = {{0, u.const_int()}};
    return;
  }
  const Scalar& v = u.get<Scalar>();
  b_.values[i] = {{is_float(v.dtype) && v.as_double() == 0 ? b_.t.opaque(v) : b_.t.constant(v)}};
}

void SpirvKernel::emit_variable(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  for (size_t n = 0; n < b_.kernel.variables.size(); ++n)
    if (b_.kernel.variables[n].get() == &u) b_.values[i] = {{b_.arguments.scalars[n]}};
  TUFF_CHECK(!b_.values[i].empty(), "kernel {}: variable '{}' is no argument", b_.kernel.name,
             u.get<ir::VariableArg>().name);
}

// An argument's pointer; of other elements than it is declared with where a kernel reads bytes as
// words.
Id SpirvKernel::buffer_as(const Node& param) {
  const auto slot = static_cast<size_t>(param.get<ir::ParamArg>().slot);
  const Id pointer = b_.arguments.buffers.at(slot);
  if (!b_.target.features.device_address || b_.kernel.buffers[slot].dtype == param.dtype)
    return pointer;
  return b_.m.pure(spv::OpBitcast, buffer_pointer(b_.m, b_.t, b_.target, param.dtype), {pointer});
}

void SpirvKernel::emit_special(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  const auto& s = u.get<ir::SpecialArg>();
  const Id word = b_.t.type(DType::U32);
  Id number;
  if (s.space == 's') {
    b_.m.capability(spv::CapabilityGroupNonUniform);
    const Id variable = b_.t.builtin(
        s.axis == 0 ? spv::BuiltInSubgroupLocalInvocationId : spv::BuiltInSubgroupId, word);
    number = b_.m.value(spv::OpLoad, word, {variable});
  } else {
    const Id triple = b_.t.vector(word, 3);
    const Id variable = b_.t.builtin(
        s.space == 'g' ? spv::BuiltInWorkgroupId : spv::BuiltInLocalInvocationId, triple);
    const Id all = b_.m.value(spv::OpLoad, triple, {variable});
    number = b_.m.value(spv::OpCompositeExtract, word, {all, static_cast<uint32_t>(s.axis)});
  }
  b_.values[i] = {{b_.ops.cast(number, DType::U32, u.dtype)}};
}

// ---- loops and memory -----------------------------------------------------------------------

// header: counter, test; body ... ; next: increment, back to the header.
void SpirvKernel::emit_range(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  const int bit = b_.space.bit_of(&u);
  if (bit >= 0) {
    for (int l = 0; l < b_.space.size(bit); ++l) b_.values[i].push_back({0, l});
    return;
  }
  const Id size = b_.id(b_.value(u.src(0).get(), 0, 0), u.src(0)->dtype), before = b_.m.block();
  const Loop loop{b_.m.fresh(), b_.m.fresh(), b_.m.fresh(),
                  b_.m.fresh(), b_.m.fresh(), b_.m.fresh()};
  b_.m.emit(spv::OpBranch, {loop.header});
  b_.m.label(loop.header);
  b_.m.emit(spv::OpPhi, {b_.t.reg(u.dtype), loop.counter, b_.t.integer(u.dtype, 0), before,
                         loop.increment, loop.next});
  const Id more = b_.m.value(spv::OpSLessThan, b_.t.boolean(), {loop.counter, size});
  const bool unrolls = is_worth_unrolling(b_.kernel, b_.space, i);
  b_.m.emit(spv::OpLoopMerge, {loop.merge, loop.next,
                               unrolls ? spv::LoopControlUnrollMask : spv::LoopControlMaskNone});
  b_.m.emit(spv::OpBranchConditional, {more, loop.body, loop.merge});
  b_.m.label(loop.body);
  b_.m.name(loop.counter, fmt::format("r{}", u.get<ir::RangeArg>().id));
  loops_[&u] = loop;
  b_.values[i] = {{loop.counter}};
}

void SpirvKernel::emit_end(const Node& range) {
  const auto it = loops_.find(&range);
  TUFF_CHECK(it != loops_.end(), "kernel {}: an end without its loop", b_.kernel.name);
  const Loop loop = it->second;
  loops_.erase(it);
  b_.m.emit(spv::OpBranch, {loop.next});
  b_.m.label(loop.next);
  b_.m.emit(spv::OpIAdd,
            {b_.t.reg(range.dtype), loop.increment, loop.counter, b_.t.integer(range.dtype, 1)});
  b_.m.emit(spv::OpBranch, {loop.header});
  b_.m.label(loop.merge);
}

void SpirvKernel::emit_register(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  const auto* matrix = std::get_if<ir::MatrixArg>(&u.arg);
  const int64_t number = matrix ? matrix->number : u.get<int64_t>();
  const Id type = b_.t.pointer(spv::StorageClassFunction, register_type(b_, u));
  for (int n = 0; n < b_.space.count(b_.kernel.lanes[i]); ++n) {
    const Id variable = b_.m.local(type);
    b_.m.name(variable, fmt::format("acc{}_{}", number, n));
    b_.values[i].push_back({variable});
  }
}

// Shared elements are in register form (no 8- or 16-bit workgroup storage is needed), bools words.
void SpirvKernel::emit_shared(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  const auto& s = u.get<ir::SharedArg>();
  const DType element = u.dtype == DType::Bool ? DType::U32 : u.dtype;
  const Id array =
      b_.m.type(spv::OpTypeArray, {b_.t.reg(element), b_.t.word(static_cast<uint32_t>(s.count))});
  const Id variable = b_.m.global(b_.t.pointer(spv::StorageClassWorkgroup, array),
                                  spv::StorageClassWorkgroup, false);
  b_.m.name(variable, fmt::format("s{}", s.number));
  b_.values[i] = {{variable}};
}

void SpirvKernel::emit_barrier() {
  const Id scope = b_.t.word(spv::ScopeWorkgroup);
  uint32_t semantics =
      spv::MemorySemanticsAcquireReleaseMask | spv::MemorySemanticsWorkgroupMemoryMask;
  if (b_.has_matrices)
    semantics |= spv::MemorySemanticsMakeAvailableMask | spv::MemorySemanticsMakeVisibleMask;
  b_.m.emit(spv::OpControlBarrier, {scope, scope, b_.t.word(semantics)});
}

void SpirvKernel::emit_load(size_t i) {
  const Node* from = without_after(b_.kernel.ops[i]->src(0).get());
  if (from->op != Op::Register) return memory_.load(i, *from);
  const LaneMask mask = b_.kernel.lanes[i];
  for (int n = 0; n < b_.space.count(mask); ++n) {
    const Id variable = b_.value(from, mask, n).base;
    b_.values[i].push_back({b_.m.value(spv::OpLoad, register_type(b_, *from), {variable})});
  }
}

void SpirvKernel::emit_store(size_t i) {
  const Node& u = *b_.kernel.ops[i];
  const Node *to = without_after(u.src(0).get()), *source = u.src(1).get();
  const bool is_register = to->op == Op::Register;
  LaneMask mask = b_.kernel.lanes[i];
  if (is_register) mask |= b_.kernel.lanes[b_.position(to)];
  std::vector<Id> values;
  for (int n = 0; n < b_.space.count(mask); ++n) {
    const SpirvValue v = b_.chosen(source, mask, n);
    if (is_register)
      b_.m.emit(spv::OpStore, {b_.value(to, mask, n).base, b_.id(v, to->dtype)});
    else
      values.push_back(b_.id(v, source->dtype));
  }
  if (!is_register) memory_.store(i, *to, values);
}

// ---- arithmetic -----------------------------------------------------------------------------

void SpirvKernel::emit_lanes(size_t i) {
  const Op op = b_.kernel.ops[i]->op;
  for (int n = 0; n < b_.space.count(b_.kernel.lanes[i]); ++n) {
    b_.values[i].push_back(op == Op::Reduce    ? reduced(i, n)
                           : op == Op::Dot     ? dot(i, n)
                           : op == Op::Shuffle ? shuffled(i, n)
                                               : computed(i, n));
  }
}

SpirvValue SpirvKernel::computed(size_t i, int n) {
  const Node& u = *b_.kernel.ops[i];
  std::vector<SpirvValue> x;
  for (const ir::UOp& s : u.src())
    x.push_back(u.op == Op::Where ? b_.chosen(s.get(), b_.kernel.lanes[i], n)
                                  : b_.value(s.get(), b_.kernel.lanes[i], n));
  if (const auto sum = affine(b_, u, x)) return *sum;
  std::vector<Id> ids;
  for (size_t s = 0; s < x.size(); ++s) ids.push_back(b_.id(x[s], u.src(s)->dtype));
  return {b_.ops.emit(u, ids)};
}

// A balanced tree over the folded lanes.
SpirvValue SpirvKernel::reduced(size_t i, int n) {
  const Node& u = *b_.kernel.ops[i];
  const size_t source = b_.position(without_after(u.src(0).get()));
  const LaneMask all = b_.kernel.lanes[source], kept = b_.kernel.lanes[i], folded = all & ~kept;
  const auto at = [&](int f) {
    return static_cast<size_t>(b_.space.project(kept, n, all, folded, f));
  };
  std::vector<Id> x;
  for (int f = 0; f < b_.space.count(folded); ++f)
    x.push_back(b_.id(b_.values[source][at(f)], u.dtype));
  while (x.size() > 1) {
    std::vector<Id> next;
    for (size_t p = 0; p + 1 < x.size(); p += 2)
      next.push_back(b_.ops.binary(u.get<ir::ReduceArg>().op, u.dtype, x[p], x[p + 1]));
    if (x.size() % 2) next.push_back(x.back());
    x = std::move(next);
  }
  return {x[0]};
}

SpirvValue SpirvKernel::dot(size_t i, int n) {
  const Node& u = *b_.kernel.ops[i];
  const LaneMask kept = b_.kernel.lanes[i];
  LaneMask folded = 0;
  for (const ir::UOp& r : ir::dot_lanes(&u)) folded |= LaneMask{1} << b_.space.bit_of(r.get());
  Id sum = b_.id(b_.value(u.src(2).get(), kept, n), u.dtype);
  for (int f = 0; f < b_.space.count(folded); ++f) {
    const auto factor = [&](size_t s) {
      const size_t from = b_.position(without_after(u.src(s).get()));
      const int lane = b_.space.project(kept, n, b_.kernel.lanes[from], folded, f);
      return b_.id(b_.values[from][static_cast<size_t>(lane)], u.dtype);
    };
    sum = b_.ops.mul_add(u.dtype, factor(0), factor(1), sum);
  }
  return {sum};
}

namespace {

// Where the lane is the own one with some bits of its number changed: which, a number that drivers
// have instructions for.
std::optional<uint32_t> xor_mask_of(const Node& lane) {
  if (lane.op != Op::Xor || !lane.src(1)->is_const()) return {};
  const Node* own = ir::through_casts(lane.src(0).get());
  if (own->op != Op::Special || own->get<ir::SpecialArg>() != ir::SpecialArg{'s', 0}) return {};
  return static_cast<uint32_t>(lane.src(1)->const_int());
}

}  // namespace

SpirvValue SpirvKernel::shuffled(size_t i, int n) {
  const Node& u = *b_.kernel.ops[i];
  b_.m.capability(spv::CapabilityGroupNonUniform);
  b_.m.capability(spv::CapabilityGroupNonUniformShuffle);
  const Id scope = b_.t.word(spv::ScopeSubgroup);
  if (const std::optional<uint32_t> mask = xor_mask_of(*u.src(1))) {
    const Id x = b_.id(b_.value(u.src(0).get(), b_.kernel.lanes[i], n), u.dtype);
    return {b_.m.pure(spv::OpGroupNonUniformShuffleXor, b_.t.reg(u.dtype),
                      {scope, x, b_.t.word(*mask)})};
  }
  const SpirvValue lane = b_.value(u.src(1).get(), b_.kernel.lanes[i], n);
  const DType lane_type = u.src(1)->dtype;
  const Id which = lane.base ? b_.ops.cast(b_.id(lane, lane_type), lane_type, DType::U32)
                             : b_.t.word(static_cast<uint32_t>(lane.constant));
  const Id x = b_.id(b_.value(u.src(0).get(), b_.kernel.lanes[i], n), u.dtype);
  return {b_.m.pure(spv::OpGroupNonUniformShuffle, b_.t.reg(u.dtype), {scope, x, which})};
}

}  // namespace tuff::render
