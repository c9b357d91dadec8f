#include "render/spirv_pointers.h"

#include <spirv/unified1/spirv.hpp>

#include "ir/walk.h"

namespace tuff::render {

using ir::Node;
using ir::Op;

namespace {

// Whether every distance from the buffer's beginning is a number of bytes in 32 bits.
bool has_short_offsets(const Target& target, const Node& index) {
  const Node* memory = without_after(index.src(0).get());
  constexpr uint64_t kMostBytes = uint64_t(1) << 32;
  return target.features.device_address && target.features.i64 && memory->op == Op::Param &&
         index.src(1)->dtype == DType::I32 &&
         uint64_t(memory->get<ir::ParamArg>().count) <= kMostBytes / size_bytes(index.dtype);
}

// An address in scalar registers, a distance of 32 bits in vector registers and a number in the
// instruction: what AMD's, Intel's and NVIDIA's loads take without adding in 64 bits for each lane.
Id address_of(SpirvBody& b, const Node& index, const SpirvValue& offset, int64_t least) {
  const DType t = index.dtype;
  const Id u64 = b.t.type(DType::U64);
  const auto bytes = static_cast<int64_t>(size_bytes(t));
  Id address = b.m.pure(spv::OpConvertPtrToU, u64, {b.value(index.src(0).get(), 0, 0).base});
  const auto add = [&](Id to) { address = b.m.pure(spv::OpIAdd, u64, {address, to}); };
  if (offset.base) {
    SpirvValue from = offset;
    from.constant = least;
    const Id elements =
        b.m.pure(spv::OpBitcast, b.t.type(DType::U32), {b.id(from, index.src(1)->dtype)});
    const Id distance = bytes == 1 ? elements
                                   : b.m.pure(spv::OpIMul, b.t.type(DType::U32),
                                              {elements, b.t.word(static_cast<uint32_t>(bytes))});
    add(b.m.pure(spv::OpUConvert, u64, {distance}));
  }
  const int64_t rest = offset.constant - (offset.base ? least : 0);
  if (rest != 0) add(b.t.integer(DType::U64, rest * bytes));
  return address;
}

}  // namespace

Id element_pointer(SpirvBody& b, const Node& index, const SpirvValue& offset) {
  const Node* memory = without_after(index.src(0).get());
  const Id base = b.value(memory, 0, 0).base, at = b.id(offset, index.src(1)->dtype);
  if (memory->op == Op::Shared) {
    const DType element = index.dtype == DType::Bool ? DType::U32 : index.dtype;
    return b.m.pure(spv::OpAccessChain, b.t.pointer(spv::StorageClassWorkgroup, b.t.reg(element)),
                    {base, at});
  }
  if (!b.target.features.device_address) {
    const DType word = index.src(1)->dtype;
    Id skipped = b.arguments.skipped.at(memory->get<ir::ParamArg>().slot);
    if (word != DType::I32) skipped = b.m.pure(spv::OpSConvert, b.t.reg(word), {skipped});
    const Id from_binding = b.m.pure(spv::OpIAdd, b.t.reg(word), {skipped, at});
    return b.m.pure(spv::OpAccessChain,
                    b.t.pointer(spv::StorageClassStorageBuffer, b.t.memory(index.dtype)),
                    {base, b.t.integer(DType::I32, 0), from_binding});
  }
  const Id type = b.t.pointer(spv::StorageClassPhysicalStorageBuffer, b.t.memory(index.dtype));
  return b.m.pure(spv::OpAccessChain, type, {base, b.t.integer(DType::I32, 0), at});
}

Id access_pointer(SpirvBody& b, const Node& index, const SpirvValue& offset, int64_t least) {
  if (!has_short_offsets(b.target, index)) return element_pointer(b, index, offset);
  return b.m.pure(spv::OpConvertUToPtr,
                  b.t.pointer(spv::StorageClassPhysicalStorageBuffer, b.t.memory(index.dtype)),
                  {address_of(b, index, offset, least)});
}

}  // namespace tuff::render
