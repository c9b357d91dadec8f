// Loads and stores of the SPIR-V renderer. What lanes read at neighbouring addresses is read as one
// vector, its alignment claimed as far as the offset's divisors prove it. What is narrower than 32
// bits is read by words of that width; or, where the Target's components are that wide, 32-bit
// pairs as 64-bit words: where the offset is proven to begin one. Memory begins at multiples of 64
// bytes, views of it too.
#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <tuple>

#include <spirv/unified1/spirv.hpp>

#include "base/check.h"
#include "ir/kernel_floor.h"
#include "render/spirv_atomics.h"
#include "render/spirv_kernel.h"

namespace tuff::render {

using ir::Node;
using ir::Op;
using kernel::LaneMask;

namespace {

constexpr size_t kWordsTogether = 4;  // components of a vector

}  // namespace

std::vector<SpirvKernel::Access> SpirvKernel::accesses(const Node& index, LaneMask mask) {
  std::vector<Access> out;
  for (int n = 0; n < space_.count(mask); ++n) {
    Access a{n, value(index.src(1).get(), mask, n), std::nullopt, {}};
    if (index.src_count > 2) a.gate = value(index.src(2).get(), mask, n).base;
    const int64_t lowest = std::max<int64_t>(index.src(1)->min, 0);
    a.least = std::max<int64_t>(a.offset.constant - lowest, 0);
    out.push_back(a);
  }
  // No offset of what is accessed is below the lowest: that of a base says most of it.
  std::map<Id, int64_t> least;
  for (const Access& a : out) {
    if (a.gate) continue;
    const auto [it, fresh] = least.try_emplace(a.offset.base, a.least);
    if (!fresh) it->second = std::min(it->second, a.least);
  }
  for (Access& a : out)
    if (!a.gate) a.least = least.at(a.offset.base);
  return out;
}

// Windows overlap: what several instances load is loaded once. `sorted` by base, gate and constant.
std::vector<SpirvKernel::Access> SpirvKernel::each_once(const std::vector<Access>& sorted) {
  std::vector<Access> out;
  for (const Access& a : sorted) {
    const bool known = !out.empty() && out.back().offset == a.offset && out.back().gate == a.gate;
    if (known)
      out.back().also.push_back(a.instance);
    else
      out.push_back(a);
  }
  return out;
}

// Neighbours with one base and one gate together, as far as the Target's widest access; the rest
// singly.
std::vector<SpirvKernel::Run> SpirvKernel::runs(std::vector<Access> all, const Node& index,
                                                bool loads) const {
  const bool in_buffer = without_after(index.src(0).get())->op == Op::Param;
  std::vector<Run> out;
  // A bound buffer has one type, and a vector of it would claim an alignment that views do not
  // have.
  if (!in_buffer || target_.elements_together(size_bytes(index.dtype)) == 1) {
    for (const Access& a : all) out.push_back({{a}});
    return out;
  }
  std::stable_sort(all.begin(), all.end(), [](const Access& a, const Access& b) {
    return std::tuple(a.offset.base, a.gate.value_or(0), a.offset.constant) <
           std::tuple(b.offset.base, b.gate.value_or(0), b.offset.constant);
  });
  if (loads) all = each_once(all);
  for (std::span<const Access> rest = all; !rest.empty();) {
    out.push_back(run_at(rest, index));
    rest = rest.subspan(out.back().items.size());
  }
  return out;
}

// What begins with the first of them.
SpirvKernel::Run SpirvKernel::run_at(std::span<const Access> all, const Node& index) const {
  const Access& first = all[0];
  const size_t most = static_cast<size_t>(target_.elements_together(size_bytes(index.dtype)));
  const int64_t count = without_after(index.src(0).get())->get<ir::ParamArg>().count;
  size_t n = 1;
  while (n < all.size() && n < most && all[n].offset.base == first.offset.base &&
         all[n].gate == first.gate &&
         all[n].offset.constant == first.offset.constant + static_cast<int64_t>(n))
    ++n;
  n = std::bit_floor(n);
  const uint32_t per_word = elements_of_word(first.offset, index.dtype, n);
  // Only one 16-bit word at a time: compilers read several that are not known to begin a 32-bit word
  // with what stands around them.
  const bool narrow = per_word * size_bytes(index.dtype) < 4;
  n = std::min<size_t>(n, (narrow ? 1 : kWordsTogether) * per_word);
  // Element 0.. is read where the gate is false.
  if (per_word == 0 || (first.gate && count < static_cast<int64_t>(n))) return {{first}};
  return {{all.begin(), all.begin() + static_cast<ptrdiff_t>(n)}, per_word};
}

// How many elements, at most so many, a word of an access has that begins there; 0 where it begins
// within a word. Narrow elements go as words of 32 or 16 bits, of which a vector holds more, and
// nobody knows whether an offset without proof is within one.
uint32_t SpirvKernel::elements_of_word(const SpirvValue& offset, DType t, size_t most) const {
  const uint32_t bytes = static_cast<uint32_t>(size_bytes(t));
  if (bytes >= 4) return 1;
  const uint32_t least = target_.features.storage16 && target_.features.i16 ? 2 : 4;
  for (uint32_t n = 4 / bytes; n > 1 && n * bytes >= least; n /= 2) {
    if (n <= most && divides(n, offset.base, offset.divisor, offset.constant)) return n;
  }
  return 0;
}

// The alignment of the first element's address: a power of two up to the size of the run.
uint32_t SpirvKernel::alignment(const Run& run, DType t) const {
  const SpirvValue& offset = run.items[0].offset;
  int64_t elements = run.per_word;
  const auto proven = [&](int64_t n) {
    return divides(n, offset.base, offset.divisor, offset.constant);
  };
  while (2 * elements <= static_cast<int64_t>(run.items.size()) && proven(2 * elements))
    elements *= 2;
  return static_cast<uint32_t>(elements * static_cast<int64_t>(size_bytes(t)));
}

// Whether every distance from the buffer's beginning is a number of bytes in 32 bits.
bool SpirvKernel::has_short_offsets(const Node& index) const {
  const Node* memory = without_after(index.src(0).get());
  constexpr uint64_t kMostBytes = uint64_t(1) << 32;
  return target_.features.device_address && target_.features.i64 && memory->op == Op::Param &&
         index.src(1)->dtype == DType::I32 &&
         uint64_t(memory->get<ir::ParamArg>().count) <= kMostBytes / size_bytes(index.dtype);
}

// An address in scalar registers, a distance of 32 bits in vector registers and a number in the
// instruction: what AMD's, Intel's and NVIDIA's loads take without adding in 64 bits for each lane.
Id SpirvKernel::address_of(const Node& index, const SpirvValue& offset, int64_t least) {
  const DType t = index.dtype;
  const Id u64 = t_.type(DType::U64);
  const auto bytes = static_cast<int64_t>(size_bytes(t));
  Id address = m_.pure(spv::OpConvertPtrToU, u64, {value(index.src(0).get(), 0, 0).base});
  const auto add = [&](Id to) { address = m_.pure(spv::OpIAdd, u64, {address, to}); };
  if (offset.base) {
    SpirvValue from = offset;
    from.constant = least;
    const Id elements = m_.pure(spv::OpBitcast, t_.type(DType::U32),
                                {id(from, index.src(1)->dtype)});
    const Id distance =
        bytes == 1 ? elements
                   : m_.pure(spv::OpIMul, t_.type(DType::U32),
                             {elements, t_.word(static_cast<uint32_t>(bytes))});
    add(m_.pure(spv::OpUConvert, u64, {distance}));
  }
  const int64_t rest = offset.constant - (offset.base ? least : 0);
  if (rest != 0) add(t_.integer(DType::U64, rest * bytes));
  return address;
}

Id SpirvKernel::access_pointer(const Node& index, const SpirvValue& offset, int64_t least) {
  if (!has_short_offsets(index)) return element_pointer(index, offset);
  return m_.pure(spv::OpConvertUToPtr,
                 t_.pointer(spv::StorageClassPhysicalStorageBuffer, t_.memory(index.dtype)),
                 {address_of(index, offset, least)});
}

Id SpirvKernel::element_pointer(const Node& index, const SpirvValue& offset) {
  const Node* memory = without_after(index.src(0).get());
  const Id base = value(memory, 0, 0).base, at = id(offset, index.src(1)->dtype);
  if (memory->op == Op::Shared) {
    const DType element = index.dtype == DType::Bool ? DType::U32 : index.dtype;
    return m_.pure(spv::OpAccessChain, t_.pointer(spv::StorageClassWorkgroup, t_.reg(element)),
                   {base, at});
  }
  if (!target_.features.device_address) {
    const DType word = index.src(1)->dtype;
    Id skipped = skipped_.at(memory->get<ir::ParamArg>().slot);
    if (word != DType::I32) skipped = m_.pure(spv::OpSConvert, t_.reg(word), {skipped});
    const Id from_binding = m_.pure(spv::OpIAdd, t_.reg(word), {skipped, at});
    return m_.pure(spv::OpAccessChain,
                   t_.pointer(spv::StorageClassStorageBuffer, t_.memory(index.dtype)),
                   {base, t_.integer(DType::I32, 0), from_binding});
  }
  const Id type = t_.pointer(spv::StorageClassPhysicalStorageBuffer, t_.memory(index.dtype));
  return m_.pure(spv::OpAccessChain, type, {base, t_.integer(DType::I32, 0), at});
}

Id SpirvKernel::wide_pointer(Id element, Id type) {
  return m_.pure(spv::OpBitcast, t_.pointer(spv::StorageClassPhysicalStorageBuffer, type),
                 {element});
}

Id SpirvKernel::word_type(const Run& run, DType t) {
  if (run.per_word == 1) return t_.memory(t);
  return t_.type(integer_of(run.per_word * size_bytes(t), false));
}

// The type of all elements of a run together.
Id SpirvKernel::wide_type(const Run& run, DType t) {
  const uint32_t words = static_cast<uint32_t>(run.items.size()) / run.per_word;
  return words == 1 ? word_type(run, t) : t_.vector(word_type(run, t), words);
}

// In register form.
std::vector<Id> SpirvKernel::elements_of(Id all, const Run& run, DType t) {
  const uint32_t n = static_cast<uint32_t>(run.items.size()), per = run.per_word;
  const Id element = t_.memory(t);
  std::vector<Id> out;
  for (uint32_t c = 0; c < n; ++c) {
    if (per == 1) {
      out.push_back(m_.value(spv::OpCompositeExtract, element, {all, c}));
      continue;
    }
    const Id word =
        n == per ? all : m_.pure(spv::OpCompositeExtract, word_type(run, t), {all, c / per});
    out.push_back(ops_.from_word(word, per, c % per, t));
  }
  return out;
}

Id SpirvKernel::joined(const std::vector<Id>& parts, const Run& run, DType t) {
  if (run.per_word == 1) return m_.value(spv::OpCompositeConstruct, wide_type(run, t), parts);
  std::vector<Id> words;
  for (std::span<const Id> rest = parts; !rest.empty(); rest = rest.subspan(run.per_word))
    words.push_back(ops_.to_word(rest.first(run.per_word), t));
  return words.size() == 1 ? words[0]
                           : m_.value(spv::OpCompositeConstruct, wide_type(run, t), words);
}

Id SpirvKernel::shared_form(Id x, DType t, bool to_memory) {
  if (t != DType::Bool) return x;
  return to_memory ? ops_.cast(x, DType::Bool, DType::U32) : ops_.cast(x, DType::U32, DType::Bool);
}

// ---- loads ----------------------------------------------------------------------------------

void SpirvKernel::emit_load(size_t i) {
  const Node& u = *k_.ops[i];
  const Node* from = without_after(u.src(0).get());
  const LaneMask mask = k_.lanes[i];
  values_[i].resize(space_.count(mask));
  if (from->op == Op::Register) {
    for (int n = 0; n < space_.count(mask); ++n)
      values_[i][n] = {m_.value(spv::OpLoad, register_type(*from), {value(from, mask, n).base})};
    return;
  }
  const bool branch = loads_alone(*from);
  for (const Run& run : runs(accesses(*from, mask), *from, true))
    load_run(*from, run, branch, values_[i]);
}

// Whether a gate tells invocations of a workgroup apart, and nothing else.
bool gated_by_local_id(const Node& index) {
  const auto others = [](const Node* n) {
    return n->op == Op::Load || n->op == Op::Range || n->op == Op::Register ||
           (n->op == Op::Special && std::get<ir::SpecialArg>(n->arg).space != 'l');
  };
  return std::ranges::none_of(ir::toposort(index.src(2)), others);
}

// Whether an invocation whose gate is false may not read at all, since another may store there: in
// memory that the kernel stores to, or that what one invocation reads for a workgroup may lie in.
bool SpirvKernel::loads_alone(const Node& index) const {
  const Node* memory = without_after(index.src(0).get());
  if (index.src_count < 3 || memory->op != Op::Param) return false;
  const auto stores = [&](const ir::UOp& u) {
    return u->op == Op::Store && ir::accessed_memory(u.get()) == memory;
  };
  return gated_by_local_id(index) || std::ranges::any_of(k_.ops, stores);
}

// Where the gate is false element 0 is read, which is there, and its value dropped: no branch, but
// where it has to be.
void SpirvKernel::load_run(const Node& index, const Run& run, bool branch,
                           std::vector<SpirvValue>& out) {
  const DType t = index.dtype, offset_type = index.src(1)->dtype;
  const Access& first = run.items[0];
  SpirvValue offset = first.offset;
  int64_t least = first.least;
  if (first.gate && !branch) {
    offset = {
        ops_.select(*first.gate, id(offset, offset_type), t_.integer(offset_type, 0), offset_type)};
    least = 0;
  }
  const auto load = [&](Id type, std::initializer_list<uint32_t> from) {
    if (!branch) return m_.value(spv::OpLoad, type, from);
    const Id before = m_.block(), end = begin_gate(first.gate), loading = m_.block();
    const Id v = m_.value(spv::OpLoad, type, from);
    end_gate(end);
    return m_.value(spv::OpPhi, type, {v, loading, m_.constant(spv::OpConstantNull, type), before});
  };
  const auto set = [&](const Access& a, Id v) {
    if (first.gate && !branch) v = ops_.select(*first.gate, v, t_.opaque(Scalar::of_int(t, 0)), t);
    out[a.instance] = {v};
    for (const int instance : a.also) out[instance] = {v};
  };
  const Id element = access_pointer(index, offset, least);
  if (without_after(index.src(0).get())->op == Op::Shared) {
    std::vector<Id> from{element};
    if (matrices_) from.push_back(spv::MemoryAccessNonPrivatePointerMask);
    const Id v = m_.value(spv::OpLoad, t == DType::Bool ? t_.type(DType::U32) : t_.reg(t), from);
    set(first, shared_form(v, t, false));
    return;
  }
  const uint32_t aligned = spv::MemoryAccessAlignedMask,
                 bytes = static_cast<uint32_t>(size_bytes(t));
  if (run.items.size() == 1) {
    set(first, ops_.from_memory(load(t_.memory(t), {element, aligned, bytes}), t));
    return;
  }
  const Id type = wide_type(run, t);
  const Id all = load(type, {wide_pointer(element, type), aligned, alignment(run, t)});
  const std::vector<Id> elements = elements_of(all, run, t);
  for (size_t c = 0; c < elements.size(); ++c) set(run.items[c], elements[c]);
}

// ---- stores ---------------------------------------------------------------------------------

void SpirvKernel::emit_store(size_t i) {
  const Node& u = *k_.ops[i];
  const Node *to = without_after(u.src(0).get()), *source = u.src(1).get();
  LaneMask mask = k_.lanes[i];
  if (to->op == Op::Register) {
    mask |= k_.lanes[position(to)];
    for (int n = 0; n < space_.count(mask); ++n)
      m_.emit(spv::OpStore, {value(to, mask, n).base, id(chosen(source, mask, n), to->dtype)});
    return;
  }
  std::vector<Id> values;
  for (int n = 0; n < space_.count(mask); ++n)
    values.push_back(id(chosen(source, mask, n), source->dtype));
  if (u.src_count == 3) return store_bits(i, values);
  if (std::holds_alternative<ir::ReduceArg>(u.arg)) return combine(i, values);
  for (const Run& run : runs(accesses(*to, mask), *to, false)) store_run(*to, run, values);
}

// Two atomics: each changes the mask's bits alone, which no other invocation writes meanwhile.
void SpirvKernel::store_bits(size_t i, const std::vector<Id>& values) {
  const Node &u = *k_.ops[i], &to = *without_after(u.src(0).get());
  const Id type = t_.type(DType::U32);
  const Id scope = t_.word(spv::ScopeDevice), relaxed = t_.word(spv::MemorySemanticsMaskNone);
  for (const Access& a : accesses(to, k_.lanes[i])) {
    const Id mask = id(value(u.src(2).get(), k_.lanes[i], a.instance), DType::U32);
    const Id end = begin_gate(a.gate);
    const Id element = access_pointer(to, a.offset, a.least);
    const Id others = m_.pure(spv::OpNot, type, {mask});
    m_.value(spv::OpAtomicAnd, type, {element, scope, relaxed, others});
    m_.value(spv::OpAtomicOr, type, {element, scope, relaxed, values[a.instance]});
    end_gate(end);
  }
}

void SpirvKernel::combine(size_t i, const std::vector<Id>& values) {
  const Node &u = *k_.ops[i], &to = *without_after(u.src(0).get());
  const Op op = u.get<ir::ReduceArg>().op;
  SpirvAtomics atomics(m_, t_, ops_);
  for (const Access& a : accesses(to, k_.lanes[i])) {
    const Id end = begin_gate(a.gate);
    const Id element = access_pointer(to, a.offset, a.least);
    atomics.combine(op, u.src(1)->dtype, to.dtype, element, values[a.instance]);
    end_gate(end);
  }
}

// What stands between is done where the gate is true. The id is 0 without a gate.
Id SpirvKernel::begin_gate(const std::optional<Id>& gate) {
  const Id then = m_.fresh(), merge = m_.fresh();
  if (!gate) return 0;
  m_.emit(spv::OpSelectionMerge, {merge, spv::SelectionControlMaskNone});
  m_.emit(spv::OpBranchConditional, {*gate, then, merge});
  m_.label(then);
  return merge;
}
void SpirvKernel::end_gate(Id merge) {
  if (!merge) return;
  m_.emit(spv::OpBranch, {merge});
  m_.label(merge);
}

void SpirvKernel::store_run(const Node& index, const Run& run, const std::vector<Id>& values) {
  const DType t = index.dtype;
  const Access& first = run.items[0];
  const Id end = begin_gate(first.gate);
  const Id element = access_pointer(index, first.offset, first.least);
  const uint32_t aligned = spv::MemoryAccessAlignedMask,
                 bytes = static_cast<uint32_t>(size_bytes(t));
  if (without_after(index.src(0).get())->op == Op::Shared) {
    std::vector<Id> to{element, shared_form(values[first.instance], t, true)};
    if (matrices_) to.push_back(spv::MemoryAccessNonPrivatePointerMask);
    m_.emit(spv::OpStore, to);
  } else if (run.items.size() == 1) {
    m_.emit(spv::OpStore, {element, ops_.to_memory(values[first.instance], t), aligned, bytes});
  } else {
    std::vector<Id> parts;
    for (const Access& a : run.items) parts.push_back(values[a.instance]);
    const Id all = joined(parts, run, t);
    m_.emit(spv::OpStore,
            {wide_pointer(element, wide_type(run, t)), all, aligned, alignment(run, t)});
  }
  end_gate(end);
}

}  // namespace tuff::render
