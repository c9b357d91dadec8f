#include "render/spirv_kernel.h"

#include <algorithm>
#include <bit>

#include <spirv/unified1/spirv.hpp>

#include "base/check.h"
#include "ir/kernel_floor.h"
#include "ir/scalar_eval.h"
#include "render/binary.h"
#include "render/unrolled_loops.h"

namespace tuff::render {

using ir::Node;
using ir::Op;
using kernel::LaneMask;

SpirvKernel::SpirvKernel(const kernel::LinearKernel& k, const Target& t, SpirvModule& m)
    : k_(k),
      target_(t),
      m_(m),
      t_(m, target_.features),
      ops_(m, t_),
      space_(k),
      values_(k.ops.size()),
      matrices_(uses_matrices(k)) {
  for (size_t i = 0; i < k.ops.size(); ++i) position_[k.ops[i].get()] = i;
}

void SpirvKernel::write() {
  m_.begin_function();
  m_.execution_mode(m_.entry(), spv::ExecutionModeLocalSize,
                    {k_.local[0], k_.local[1], k_.local[2]});
  const TargetFeatures& f = target_.features;
  if ((f.signed_zero_inf_nan || f.denormals) && m_.version_minor() < 4)
    m_.extension("SPV_KHR_float_controls");
  if (f.denormals) {
    m_.capability(spv::CapabilityDenormPreserve);
    m_.execution_mode(m_.entry(), spv::ExecutionModeDenormPreserve, {32});
  }
  if (f.signed_zero_inf_nan) {
    m_.capability(spv::CapabilitySignedZeroInfNanPreserve);
    m_.execution_mode(m_.entry(), spv::ExecutionModeSignedZeroInfNanPreserve, {32});
    const bool doubles = std::any_of(k_.ops.begin(), k_.ops.end(),
                                     [](const ir::UOp& u) { return u->dtype == DType::F64; });
    if (doubles) m_.execution_mode(m_.entry(), spv::ExecutionModeSignedZeroInfNanPreserve, {64});
  }
  arguments();
  for (size_t i = 0; i < k_.ops.size(); ++i) {
    current_ = i;
    m_.line(kernel::text_line(i));
    emit(i);
  }
  m_.line(0);
  TUFF_CHECK(loops_.empty(), "kernel {}: a loop is not closed", k_.name);
  m_.end_function();
}

namespace {

uint32_t buffer_class(const Target& t) {
  return t.features.device_address ? spv::StorageClassPhysicalStorageBuffer
                                   : spv::StorageClassStorageBuffer;
}

}  // namespace

// A pointer to struct { element[] }.
Id SpirvKernel::buffer_pointer(DType t) {
  const Id array = m_.type(spv::OpTypeRuntimeArray, {t_.memory(t)});
  m_.decorate(array, spv::DecorationArrayStride, {static_cast<uint32_t>(size_bytes(t))});
  const Id block = m_.type(spv::OpTypeStruct, {array});
  m_.decorate(block, spv::DecorationBlock);
  m_.decorate_member(block, 0, spv::DecorationOffset, {0});
  return t_.pointer(buffer_class(target_), block);
}

Id SpirvKernel::bound_buffer(Id block_pointer, uint32_t binding, const std::string& name) {
  const Id variable = m_.global(block_pointer, spv::StorageClassStorageBuffer, false);
  m_.decorate(variable, spv::DecorationDescriptorSet, {0});
  m_.decorate(variable, spv::DecorationBinding, {binding});
  m_.name(variable, name);
  return variable;
}

// The low bits of a buffer's address are its distance from where its binding begins.
Id SpirvKernel::skipped_elements(Id low_address, DType t) {
  const Id word = t_.type(DType::U32);
  const uint32_t bytes = static_cast<uint32_t>(size_bytes(t));
  const Id skipped_bytes =
      m_.value(spv::OpBitwiseAnd, word, {low_address, t_.word(kBindingAlignment - 1)});
  const Id elements =
      bytes == 1
          ? skipped_bytes
          : m_.value(spv::OpShiftRightLogical, word,
                     {skipped_bytes, t_.word(static_cast<uint32_t>(std::countr_zero(bytes)))});
  return m_.value(spv::OpBitcast, t_.type(DType::I32), {elements});
}

// Without addresses: a storage buffer of set 0 per argument, then the block as words, of which the
// push constant names the first. One memory may be bound twice, so that all are Aliased.
void SpirvKernel::bound_arguments() {
  const uint32_t buffer_count = static_cast<uint32_t>(k_.buffers.size());
  for (uint32_t i = 0; i < buffer_count; ++i) {
    buffers_.push_back(bound_buffer(buffer_pointer(k_.buffers[i].dtype), i, fmt::format("d{}", i)));
    if (buffer_count > 1) m_.decorate(buffers_.back(), spv::DecorationAliased);
  }
  const Id word = t_.type(DType::U32), zero = t_.integer(DType::I32, 0);
  const Id args = bound_buffer(buffer_pointer(DType::U32), buffer_count, "args");
  m_.decorate(args, spv::DecorationNonWritable);
  const Id first = load_push_constant(word);
  const auto block_word = [&](uint32_t i) {
    const Id at = m_.value(spv::OpIAdd, word, {first, t_.word(i)});
    const Id pointer = m_.value(spv::OpAccessChain,
                                t_.pointer(spv::StorageClassStorageBuffer, word), {args, zero, at});
    return m_.value(spv::OpLoad, word, {pointer});
  };
  for (uint32_t i = 0; i < buffer_count; ++i)
    skipped_.push_back(skipped_elements(block_word(2 * i), t_.stored(k_.buffers[i].dtype)));
  for (uint32_t i = 0; i < k_.variables.size(); ++i) {
    const Id bits = block_word(2 * buffer_count + i);
    scalars_.push_back(m_.value(spv::OpBitcast, t_.type(DType::I32), {bits}));
    m_.name(scalars_.back(), fmt::format("n{}", i));
  }
}

// The push constant points to the argument block: pointers to the buffers, then i32 scalars.
void SpirvKernel::arguments() {
  if (!target_.features.device_address) return bound_arguments();
  std::vector<uint32_t> members;
  for (const auto& b : k_.buffers) members.push_back(buffer_pointer(b.dtype));
  members.resize(members.size() + k_.variables.size(), t_.type(DType::I32));
  if (members.empty()) return;
  const uint32_t buffer_count = static_cast<uint32_t>(k_.buffers.size());
  const Id args = load_block_pointer(members, buffer_count);
  for (uint32_t i = 0; i < members.size(); ++i) {
    const bool is_buffer = i < buffer_count;
    const Id member_pointer = t_.pointer(spv::StorageClassPhysicalStorageBuffer, members[i]);
    const Id at = m_.value(spv::OpAccessChain, member_pointer, {args, t_.integer(DType::I32, i)});
    const Id v =
        m_.value(spv::OpLoad, members[i], {at, spv::MemoryAccessAlignedMask, is_buffer ? 8u : 4u});
    m_.name(v, is_buffer ? fmt::format("d{}", i) : fmt::format("n{}", i - buffer_count));
    (is_buffer ? buffers_ : scalars_).push_back(v);
  }
}

Id SpirvKernel::load_block_pointer(const std::vector<uint32_t>& members, uint32_t buffer_count) {
  const Id args_type = m_.type(spv::OpTypeStruct, members, 1);  // apart from the buffers' structs
  m_.decorate(args_type, spv::DecorationBlock);
  for (uint32_t i = 0; i < members.size(); ++i) {
    const uint32_t offset = i < buffer_count ? i * 8 : buffer_count * 8 + (i - buffer_count) * 4;
    m_.decorate_member(args_type, i, spv::DecorationOffset, {offset});
    // So that drivers may take it by scalar loads: AMD's does, instead of by vector loads.
    m_.decorate_member(args_type, i, spv::DecorationNonWritable);
  }
  const Id args = load_push_constant(t_.pointer(spv::StorageClassPhysicalStorageBuffer, args_type));
  m_.name(args, "args");
  return args;
}

// The push constant is one value.
Id SpirvKernel::load_push_constant(Id type) {
  const uint32_t push = spv::StorageClassPushConstant;
  const Id push_type = m_.type(spv::OpTypeStruct, {type}, 2);
  m_.decorate(push_type, spv::DecorationBlock);
  m_.decorate_member(push_type, 0, spv::DecorationOffset, {0});
  const Id variable = m_.global(t_.pointer(push, push_type), push, false);
  m_.name(variable, "push");
  const Id where = m_.value(spv::OpAccessChain, t_.pointer(push, type),
                            {variable, t_.integer(DType::I32, 0)});
  return m_.value(spv::OpLoad, type, {where});
}

size_t SpirvKernel::position(const Node* u) const {
  const auto it = position_.find(u);
  TUFF_CHECK(it != position_.end(), "kernel {}: a source of {} is not in the list", k_.name,
             ir::name(k_.ops[current_]->op));
  return it->second;
}

SpirvValue SpirvKernel::value(const Node* u, LaneMask mask, int instance) {
  u = without_after(u);
  const size_t at = position(u);
  TUFF_CHECK(!values_[at].empty(), "kernel {}: op {} ({}) is used before it has a value", k_.name,
             at, ir::name(u->op));
  return values_[at][static_cast<size_t>(space_.project(mask, instance, k_.lanes[at]))];
}

Id SpirvKernel::constant(const Node& u) {
  const Scalar& v = u.get<Scalar>();
  return is_float(v.dtype) && v.as_double() == 0 ? t_.opaque(v) : t_.constant(v);
}

SpirvValue SpirvKernel::chosen(const Node* u, LaneMask mask, int instance) {
  const bool constant_float = u->op == Op::Const && is_float(u->dtype);
  return constant_float ? SpirvValue{t_.opaque(u->get<Scalar>())} : value(u, mask, instance);
}

Id SpirvKernel::id(const SpirvValue& v, DType t) {
  if (!v.base) return t_.integer(t, v.constant);
  if (!v.constant) return v.base;
  return m_.pure(spv::OpIAdd, t_.reg(t), {v.base, t_.integer(t, v.constant)});
}

// ---- the walk -------------------------------------------------------------------------------

void SpirvKernel::emit(size_t i) {
  const Node& u = *k_.ops[i];
  switch (u.op) {
    case Op::Const:
      if (u.dtype == DType::I32 || u.dtype == DType::I64)
        values_[i] = {{0, u.const_int()}};
      else
        values_[i] = {{constant(u)}};
      return;
    case Op::Param: values_[i] = {{buffer_as(u)}}; return;
    case Op::Variable:
      for (size_t n = 0; n < k_.variables.size(); ++n)
        if (k_.variables[n].get() == &u) values_[i] = {{scalars_[n]}};
      TUFF_CHECK(!values_[i].empty(), "kernel {}: variable '{}' is no argument", k_.name,
                 u.get<ir::VariableArg>().name);
      return;
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
    case Op::MatrixMulAdd: return emit_matrix(i);
    case Op::MatrixStore: return emit_matrix_store(i);
    case Op::After:
    case Op::Prefetch:
    case Op::Index:
    case Op::Sink: return;
    default: return ir::matrix_of(&u) ? emit_matrix(i) : emit_lanes(i);
  }
}

void SpirvKernel::emit_lanes(size_t i) {
  const Op op = k_.ops[i]->op;
  for (int n = 0; n < space_.count(k_.lanes[i]); ++n) {
    values_[i].push_back(op == Op::Reduce    ? reduced(i, n)
                         : op == Op::Dot     ? dot(i, n)
                         : op == Op::Shuffle ? shuffled(i, n)
                                             : computed(i, n));
  }
}

// An argument's pointer; of other elements than it is declared with where a kernel reads bytes as
// words.
Id SpirvKernel::buffer_as(const Node& param) {
  const auto slot = static_cast<size_t>(param.get<ir::ParamArg>().slot);
  const Id pointer = buffers_.at(slot);
  if (!target_.features.device_address || k_.buffers[slot].dtype == param.dtype) return pointer;
  return m_.pure(spv::OpBitcast, buffer_pointer(param.dtype), {pointer});
}

void SpirvKernel::emit_special(size_t i) {
  const Node& u = *k_.ops[i];
  const auto& s = u.get<ir::SpecialArg>();
  const Id word = t_.type(DType::U32);
  Id number;
  if (s.space == 's') {
    m_.capability(spv::CapabilityGroupNonUniform);
    const Id variable = t_.builtin(
        s.axis == 0 ? spv::BuiltInSubgroupLocalInvocationId : spv::BuiltInSubgroupId, word);
    number = m_.value(spv::OpLoad, word, {variable});
  } else {
    const Id triple = t_.vector(word, 3);
    const Id variable = t_.builtin(
        s.space == 'g' ? spv::BuiltInWorkgroupId : spv::BuiltInLocalInvocationId, triple);
    const Id all = m_.value(spv::OpLoad, triple, {variable});
    number = m_.value(spv::OpCompositeExtract, word, {all, static_cast<uint32_t>(s.axis)});
  }
  values_[i] = {{ops_.cast(number, DType::U32, u.dtype)}};
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
  const Node& u = *k_.ops[i];
  m_.capability(spv::CapabilityGroupNonUniform);
  m_.capability(spv::CapabilityGroupNonUniformShuffle);
  const Id scope = t_.word(spv::ScopeSubgroup);
  if (const std::optional<uint32_t> mask = xor_mask_of(*u.src(1))) {
    const Id x = id(value(u.src(0).get(), k_.lanes[i], n), u.dtype);
    return {m_.pure(spv::OpGroupNonUniformShuffleXor, t_.reg(u.dtype),
                    {scope, x, t_.word(*mask)})};
  }
  const SpirvValue lane = value(u.src(1).get(), k_.lanes[i], n);
  const DType lane_type = u.src(1)->dtype;
  const Id which = lane.base ? ops_.cast(id(lane, lane_type), lane_type, DType::U32)
                             : t_.word(static_cast<uint32_t>(lane.constant));
  const Id x = id(value(u.src(0).get(), k_.lanes[i], n), u.dtype);
  return {m_.pure(spv::OpGroupNonUniformShuffle, t_.reg(u.dtype), {scope, x, which})};
}

// header: counter, test; body ... ; next: increment, back to the header.
void SpirvKernel::emit_range(size_t i) {
  const Node& u = *k_.ops[i];
  const int bit = space_.bit_of(&u);
  if (bit >= 0) {
    for (int l = 0; l < space_.size(bit); ++l) values_[i].push_back({0, l});
    return;
  }
  const Id size = id(value(u.src(0).get(), 0, 0), u.src(0)->dtype), before = m_.block();
  const Loop loop{m_.fresh(), m_.fresh(), m_.fresh(), m_.fresh(), m_.fresh(), m_.fresh()};
  m_.emit(spv::OpBranch, {loop.header});
  m_.label(loop.header);
  m_.emit(spv::OpPhi, {t_.reg(u.dtype), loop.counter, t_.integer(u.dtype, 0), before,
                       loop.increment, loop.next});
  const Id more = m_.value(spv::OpSLessThan, t_.boolean(), {loop.counter, size});
  const bool unrolls = is_worth_unrolling(k_, space_, i);
  m_.emit(spv::OpLoopMerge, {loop.merge, loop.next,
                             unrolls ? spv::LoopControlUnrollMask : spv::LoopControlMaskNone});
  m_.emit(spv::OpBranchConditional, {more, loop.body, loop.merge});
  m_.label(loop.body);
  m_.name(loop.counter, fmt::format("r{}", u.get<ir::RangeArg>().id));
  loops_[&u] = loop;
  values_[i] = {{loop.counter}};
}

void SpirvKernel::emit_end(const Node& range) {
  const auto it = loops_.find(&range);
  TUFF_CHECK(it != loops_.end(), "kernel {}: an end without its loop", k_.name);
  const Loop loop = it->second;
  loops_.erase(it);
  m_.emit(spv::OpBranch, {loop.next});
  m_.label(loop.next);
  m_.emit(spv::OpIAdd,
          {t_.reg(range.dtype), loop.increment, loop.counter, t_.integer(range.dtype, 1)});
  m_.emit(spv::OpBranch, {loop.header});
  m_.label(loop.merge);
}

SpirvValue SpirvKernel::computed(size_t i, int n) {
  const Node& u = *k_.ops[i];
  std::vector<SpirvValue> x;
  for (const ir::UOp& s : u.src())
    x.push_back(u.op == Op::Where ? chosen(s.get(), k_.lanes[i], n)
                                  : value(s.get(), k_.lanes[i], n));
  SpirvValue out;
  if (affine(u, x, out)) return out;
  std::vector<Id> ids;
  for (size_t s = 0; s < x.size(); ++s) ids.push_back(id(x[s], u.src(s)->dtype));
  return {ops_.emit(u, ids)};
}

// Sums keep constants apart; products by a number too; numbers alone are folded.
bool SpirvKernel::affine(const Node& u, const std::vector<SpirvValue>& x, SpirvValue& out) {
  const DType t = u.src(0)->dtype;
  const auto index_type = [](DType d) { return d == DType::I32 || d == DType::I64; };
  if (!index_type(t) || u.op == Op::Bitcast || u.op == Op::Where) return false;
  bool numbers = true;
  for (const SpirvValue& v : x) numbers &= v.base == 0;
  if (numbers && (index_type(u.dtype) || u.dtype == DType::Bool)) {
    std::vector<Scalar> scalars;
    for (size_t s = 0; s < x.size(); ++s)
      scalars.push_back(Scalar::of_int(u.src(s)->dtype, x[s].constant));
    const Scalar result = ir::eval_scalar(u.op, u.dtype, scalars);
    out = u.dtype == DType::Bool ? SpirvValue{t_.constant(result)} : SpirvValue{0, result.as_int()};
    return true;
  }
  const auto product = [&](const SpirvValue& v, int64_t factor) {
    if (factor == 0) return SpirvValue{};
    const Id base =
        factor == 1 ? v.base : m_.pure(spv::OpIMul, t_.reg(t), {v.base, t_.integer(t, factor)});
    return SpirvValue{base, v.constant * factor, divisor_of_product(v.divisor, factor)};
  };
  switch (u.op) {
    case Op::Add:
      out.constant = x[0].constant + x[1].constant;
      out.divisor = divisor_of_sum(x[0].base, x[0].divisor, x[1].base, x[1].divisor);
      out.base = !x[0].base   ? x[1].base
                 : !x[1].base ? x[0].base
                              : m_.pure(spv::OpIAdd, t_.reg(t), {x[0].base, x[1].base});
      return true;
    case Op::Sub:
      if (x[1].base) return false;
      out = {x[0].base, x[0].constant - x[1].constant, x[0].divisor};
      return true;
    case Op::Mul:
      if (x[0].base && x[1].base) return false;
      out = x[1].base ? product(x[1], x[0].constant) : product(x[0], x[1].constant);
      return true;
    case Op::Shl:
      if (x[1].base || x[1].constant < 0 || x[1].constant > 30) return false;
      out = product(x[0], int64_t{1} << x[1].constant);
      return true;
    default: return false;
  }
}

// A balanced tree over the folded lanes.
SpirvValue SpirvKernel::reduced(size_t i, int n) {
  const Node& u = *k_.ops[i];
  const size_t source = position(without_after(u.src(0).get()));
  const LaneMask all = k_.lanes[source], kept = k_.lanes[i], folded = all & ~kept;
  const auto at = [&](int f) {
    return static_cast<size_t>(space_.project(kept, n, all, folded, f));
  };
  std::vector<Id> x;
  for (int f = 0; f < space_.count(folded); ++f)
    x.push_back(id(values_[source][at(f)], u.dtype));
  while (x.size() > 1) {
    std::vector<Id> next;
    for (size_t p = 0; p + 1 < x.size(); p += 2)
      next.push_back(ops_.binary(u.get<ir::ReduceArg>().op, u.dtype, x[p], x[p + 1]));
    if (x.size() % 2) next.push_back(x.back());
    x = std::move(next);
  }
  return {x[0]};
}

SpirvValue SpirvKernel::dot(size_t i, int n) {
  const Node& u = *k_.ops[i];
  const LaneMask kept = k_.lanes[i];
  LaneMask folded = 0;
  for (const ir::UOp& r : ir::dot_lanes(&u)) folded |= LaneMask{1} << space_.bit_of(r.get());
  Id sum = id(value(u.src(2).get(), kept, n), u.dtype);
  for (int f = 0; f < space_.count(folded); ++f) {
    const auto factor = [&](size_t s) {
      const size_t from = position(without_after(u.src(s).get()));
      const int lane = space_.project(kept, n, k_.lanes[from], folded, f);
      return id(values_[from][static_cast<size_t>(lane)], u.dtype);
    };
    sum = ops_.mul_add(u.dtype, factor(0), factor(1), sum);
  }
  return {sum};
}

void SpirvKernel::emit_register(size_t i) {
  const Node& u = *k_.ops[i];
  const auto* matrix = std::get_if<ir::MatrixArg>(&u.arg);
  const int64_t number = matrix ? matrix->number : u.get<int64_t>();
  const Id type = t_.pointer(spv::StorageClassFunction, register_type(u));
  for (int n = 0; n < space_.count(k_.lanes[i]); ++n) {
    const Id variable = m_.local(type);
    m_.name(variable, fmt::format("acc{}_{}", number, n));
    values_[i].push_back({variable});
  }
}

// Shared elements are in register form (no 8- or 16-bit workgroup storage is needed), bools words.
void SpirvKernel::emit_shared(size_t i) {
  const Node& u = *k_.ops[i];
  const auto& s = u.get<ir::SharedArg>();
  const DType element = u.dtype == DType::Bool ? DType::U32 : u.dtype;
  const Id array =
      m_.type(spv::OpTypeArray, {t_.reg(element), t_.word(static_cast<uint32_t>(s.count))});
  const Id variable =
      m_.global(t_.pointer(spv::StorageClassWorkgroup, array), spv::StorageClassWorkgroup, false);
  m_.name(variable, fmt::format("s{}", s.number));
  values_[i] = {{variable}};
}

void SpirvKernel::emit_barrier() {
  const Id scope = t_.word(spv::ScopeWorkgroup);
  uint32_t semantics =
      spv::MemorySemanticsAcquireReleaseMask | spv::MemorySemanticsWorkgroupMemoryMask;
  if (matrices_)
    semantics |= spv::MemorySemanticsMakeAvailableMask | spv::MemorySemanticsMakeVisibleMask;
  m_.emit(spv::OpControlBarrier, {scope, scope, t_.word(semantics)});
}

}  // namespace tuff::render
