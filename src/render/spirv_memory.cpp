#include "render/spirv_memory.h"

#include <algorithm>
#include <span>

#include <spirv/unified1/spirv.hpp>

#include "ir/kernel_floor.h"
#include "ir/walk.h"
#include "render/spirv_atomics.h"
#include "render/spirv_pointers.h"

namespace tuff::render {

using ir::Node;
using ir::Op;
using kernel::LaneMask;

// ---- words ----------------------------------------------------------------------------------

Id SpirvMemory::wide_pointer(Id element, Id type) {
  return b_.m.pure(spv::OpBitcast, b_.t.pointer(spv::StorageClassPhysicalStorageBuffer, type),
                   {element});
}

Id SpirvMemory::word_type(const SpirvRun& run, DType t) {
  if (run.per_word == 1) return b_.t.memory(t);
  return b_.t.type(integer_of(run.per_word * size_bytes(t), false));
}

// The type of all elements of a run together.
Id SpirvMemory::wide_type(const SpirvRun& run, DType t) {
  const uint32_t words = static_cast<uint32_t>(run.items.size()) / run.per_word;
  return words == 1 ? word_type(run, t) : b_.t.vector(word_type(run, t), words);
}

// In register form.
std::vector<Id> SpirvMemory::elements_of(Id all, const SpirvRun& run, DType t) {
  const uint32_t n = static_cast<uint32_t>(run.items.size()), per = run.per_word;
  const Id element = b_.t.memory(t);
  std::vector<Id> out;
  for (uint32_t c = 0; c < n; ++c) {
    if (per == 1) {
      out.push_back(b_.m.value(spv::OpCompositeExtract, element, {all, c}));
      continue;
    }
    const Id word =
        n == per ? all : b_.m.pure(spv::OpCompositeExtract, word_type(run, t), {all, c / per});
    out.push_back(b_.ops.from_word(word, per, c % per, t));
  }
  return out;
}

Id SpirvMemory::joined(const std::vector<Id>& parts, const SpirvRun& run, DType t) {
  if (run.per_word == 1) return b_.m.value(spv::OpCompositeConstruct, wide_type(run, t), parts);
  std::vector<Id> words;
  for (std::span<const Id> rest = parts; !rest.empty(); rest = rest.subspan(run.per_word))
    words.push_back(b_.ops.to_word(rest.first(run.per_word), t));
  return words.size() == 1 ? words[0]
                           : b_.m.value(spv::OpCompositeConstruct, wide_type(run, t), words);
}

Id SpirvMemory::shared_form(Id x, DType t, bool to_memory) {
  if (t != DType::Bool) return x;
  return to_memory ? b_.ops.cast(x, DType::Bool, DType::U32)
                   : b_.ops.cast(x, DType::U32, DType::Bool);
}

// ---- gates ----------------------------------------------------------------------------------

namespace {

// Whether a gate tells invocations of a workgroup apart, and nothing else.
bool gated_by_local_id(const Node& index) {
  const auto others = [](const Node* n) {
    return n->op == Op::Load || n->op == Op::Range || n->op == Op::Register ||
           (n->op == Op::Special && std::get<ir::SpecialArg>(n->arg).space != 'l');
  };
  return std::ranges::none_of(ir::toposort(index.src(2)), others);
}

}  // namespace

// Whether an invocation whose gate is false may not read at all, since another may store there: in
// memory that the kernel stores to, or that what one invocation reads for a workgroup may lie in.
bool SpirvMemory::loads_alone(const Node& index) const {
  const Node* memory = without_after(index.src(0).get());
  if (index.src_count < 3 || memory->op != Op::Param) return false;
  const auto stores = [&](const ir::UOp& u) {
    return u->op == Op::Store && ir::accessed_memory(u.get()) == memory;
  };
  return gated_by_local_id(index) || std::ranges::any_of(b_.kernel.ops, stores);
}

// What stands between is done where the gate is true. The id is 0 without a gate.
Id SpirvMemory::begin_gate(const std::optional<Id>& gate) {
  const Id then = b_.m.fresh(), merge = b_.m.fresh();
  if (!gate) return 0;
  b_.m.emit(spv::OpSelectionMerge, {merge, spv::SelectionControlMaskNone});
  b_.m.emit(spv::OpBranchConditional, {*gate, then, merge});
  b_.m.label(then);
  return merge;
}

void SpirvMemory::end_gate(Id merge) {
  if (!merge) return;
  b_.m.emit(spv::OpBranch, {merge});
  b_.m.label(merge);
}

// ---- loads ----------------------------------------------------------------------------------

void SpirvMemory::load(size_t i, const Node& index) {
  const LaneMask mask = b_.kernel.lanes[i];
  b_.values[i].resize(b_.space.count(mask));
  const bool branch = loads_alone(index);
  for (const SpirvRun& run : runs_of(b_.target, accesses_of(b_, index, mask), index, true))
    load_run(index, run, branch, b_.values[i]);
}

// Where the gate is false element 0 is read, which is there, and its value dropped: no branch, but
// where it has to be.
void SpirvMemory::load_run(const Node& index, const SpirvRun& run, bool branch,
                           std::vector<SpirvValue>& out) {
  const DType t = index.dtype, offset_type = index.src(1)->dtype;
  const SpirvAccess& first = run.items[0];
  SpirvValue offset = first.offset;
  int64_t least = first.least;
  if (first.gate && !branch) {
    offset = {b_.ops.select(*first.gate, b_.id(offset, offset_type), b_.t.integer(offset_type, 0),
                            offset_type)};
    least = 0;
  }
  const auto load = [&](Id type, std::initializer_list<uint32_t> from) {
    if (!branch) return b_.m.value(spv::OpLoad, type, from);
    const Id before = b_.m.block(), end = begin_gate(first.gate), loading = b_.m.block();
    const Id v = b_.m.value(spv::OpLoad, type, from);
    end_gate(end);
    return b_.m.value(spv::OpPhi, type,
                      {v, loading, b_.m.constant(spv::OpConstantNull, type), before});
  };
  const auto set = [&](const SpirvAccess& a, Id v) {
    if (first.gate && !branch)
      v = b_.ops.select(*first.gate, v, b_.t.opaque(Scalar::of_int(t, 0)), t);
    out[a.instance] = {v};
    for (const int instance : a.also) out[instance] = {v};
  };
  const Id element = access_pointer(b_, index, offset, least);
  if (without_after(index.src(0).get())->op == Op::Shared) {
    std::vector<Id> from{element};
    if (b_.has_matrices) from.push_back(spv::MemoryAccessNonPrivatePointerMask);
    const Id v =
        b_.m.value(spv::OpLoad, t == DType::Bool ? b_.t.type(DType::U32) : b_.t.reg(t), from);
    set(first, shared_form(v, t, false));
    return;
  }
  const uint32_t aligned = spv::MemoryAccessAlignedMask,
                 bytes = static_cast<uint32_t>(size_bytes(t));
  if (run.items.size() == 1) {
    set(first, b_.ops.from_memory(load(b_.t.memory(t), {element, aligned, bytes}), t));
    return;
  }
  const Id type = wide_type(run, t);
  const Id all = load(type, {wide_pointer(element, type), aligned, run.alignment(t)});
  const std::vector<Id> elements = elements_of(all, run, t);
  for (size_t c = 0; c < elements.size(); ++c) set(run.items[c], elements[c]);
}

// ---- stores ---------------------------------------------------------------------------------

void SpirvMemory::store(size_t i, const Node& index, const std::vector<Id>& values) {
  const Node& u = *b_.kernel.ops[i];
  if (u.src_count == 3) return store_bits(i, index, values);
  if (std::holds_alternative<ir::ReduceArg>(u.arg)) return combine(i, index, values);
  const std::vector<SpirvAccess> all = accesses_of(b_, index, b_.kernel.lanes[i]);
  for (const SpirvRun& run : runs_of(b_.target, all, index, false)) store_run(index, run, values);
}

void SpirvMemory::store_run(const Node& index, const SpirvRun& run, const std::vector<Id>& values) {
  const DType t = index.dtype;
  const SpirvAccess& first = run.items[0];
  const Id end = begin_gate(first.gate);
  const Id element = access_pointer(b_, index, first.offset, first.least);
  const uint32_t aligned = spv::MemoryAccessAlignedMask,
                 bytes = static_cast<uint32_t>(size_bytes(t));
  if (without_after(index.src(0).get())->op == Op::Shared) {
    std::vector<Id> to{element, shared_form(values[first.instance], t, true)};
    if (b_.has_matrices) to.push_back(spv::MemoryAccessNonPrivatePointerMask);
    b_.m.emit(spv::OpStore, to);
  } else if (run.items.size() == 1) {
    b_.m.emit(spv::OpStore, {element, b_.ops.to_memory(values[first.instance], t), aligned, bytes});
  } else {
    std::vector<Id> parts;
    for (const SpirvAccess& a : run.items) parts.push_back(values[a.instance]);
    const Id all = joined(parts, run, t);
    b_.m.emit(spv::OpStore,
              {wide_pointer(element, wide_type(run, t)), all, aligned, run.alignment(t)});
  }
  end_gate(end);
}

// Two atomics: each changes the mask's bits alone, which no other invocation writes meanwhile.
void SpirvMemory::store_bits(size_t i, const Node& index, const std::vector<Id>& values) {
  const Node& u = *b_.kernel.ops[i];
  const Id type = b_.t.type(DType::U32);
  const Id scope = b_.t.word(spv::ScopeDevice), relaxed = b_.t.word(spv::MemorySemanticsMaskNone);
  for (const SpirvAccess& a : accesses_of(b_, index, b_.kernel.lanes[i])) {
    const Id mask = b_.id(b_.value(u.src(2).get(), b_.kernel.lanes[i], a.instance), DType::U32);
    const Id end = begin_gate(a.gate);
    const Id element = access_pointer(b_, index, a.offset, a.least);
    const Id others = b_.m.pure(spv::OpNot, type, {mask});
    b_.m.value(spv::OpAtomicAnd, type, {element, scope, relaxed, others});
    b_.m.value(spv::OpAtomicOr, type, {element, scope, relaxed, values[a.instance]});
    end_gate(end);
  }
}

void SpirvMemory::combine(size_t i, const Node& index, const std::vector<Id>& values) {
  const Node& u = *b_.kernel.ops[i];
  const Op op = u.get<ir::ReduceArg>().op;
  SpirvAtomics atomics(b_.m, b_.t, b_.ops);
  for (const SpirvAccess& a : accesses_of(b_, index, b_.kernel.lanes[i])) {
    const Id end = begin_gate(a.gate);
    const Id element = access_pointer(b_, index, a.offset, a.least);
    atomics.combine(op, u.src(1)->dtype, index.dtype, element, values[a.instance]);
    end_gate(end);
  }
}

}  // namespace tuff::render
