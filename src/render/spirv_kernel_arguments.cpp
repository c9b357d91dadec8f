#include "render/spirv_kernel_arguments.h"

#include <bit>

#include <fmt/format.h>
#include <spirv/unified1/spirv.hpp>

#include "render/binary.h"

namespace tuff::render {
namespace {

uint32_t buffer_class(const Target& t) {
  return t.features.device_address ? spv::StorageClassPhysicalStorageBuffer
                                   : spv::StorageClassStorageBuffer;
}

Id bound_buffer(SpirvModule& m, Id block_pointer, uint32_t binding, const std::string& name) {
  const Id variable = m.global(block_pointer, spv::StorageClassStorageBuffer, false);
  m.decorate(variable, spv::DecorationDescriptorSet, {0});
  m.decorate(variable, spv::DecorationBinding, {binding});
  m.name(variable, name);
  return variable;
}

// The low bits of a buffer's address are its distance from where its binding begins.
Id skipped_elements(SpirvModule& m, SpirvTypes& t, Id low_address, DType element) {
  const Id word = t.type(DType::U32);
  const uint32_t bytes = static_cast<uint32_t>(size_bytes(element));
  const Id skipped_bytes =
      m.value(spv::OpBitwiseAnd, word, {low_address, t.word(kBindingAlignment - 1)});
  const Id elements =
      bytes == 1 ? skipped_bytes
                 : m.value(spv::OpShiftRightLogical, word,
                           {skipped_bytes, t.word(static_cast<uint32_t>(std::countr_zero(bytes)))});
  return m.value(spv::OpBitcast, t.type(DType::I32), {elements});
}

// The push constant is one value.
Id load_push_constant(SpirvModule& m, SpirvTypes& t, Id type) {
  const uint32_t push = spv::StorageClassPushConstant;
  const Id push_type = m.type(spv::OpTypeStruct, {type}, 2);
  m.decorate(push_type, spv::DecorationBlock);
  m.decorate_member(push_type, 0, spv::DecorationOffset, {0});
  const Id variable = m.global(t.pointer(push, push_type), push, false);
  m.name(variable, "push");
  const Id where =
      m.value(spv::OpAccessChain, t.pointer(push, type), {variable, t.integer(DType::I32, 0)});
  return m.value(spv::OpLoad, type, {where});
}

Id load_block_pointer(SpirvModule& m, SpirvTypes& t, const std::vector<uint32_t>& members,
                      uint32_t buffer_count) {
  const Id args_type = m.type(spv::OpTypeStruct, members, 1);  // apart from the buffers' structs
  m.decorate(args_type, spv::DecorationBlock);
  for (uint32_t i = 0; i < members.size(); ++i) {
    const uint32_t offset = i < buffer_count ? i * 8 : buffer_count * 8 + (i - buffer_count) * 4;
    m.decorate_member(args_type, i, spv::DecorationOffset, {offset});
    // So that drivers may take it by scalar loads: AMD's does, instead of by vector loads.
    m.decorate_member(args_type, i, spv::DecorationNonWritable);
  }
  const Id args =
      load_push_constant(m, t, t.pointer(spv::StorageClassPhysicalStorageBuffer, args_type));
  m.name(args, "args");
  return args;
}

// Without addresses: a storage buffer of set 0 per argument, then the block as words, of which the
// push constant names the first. One memory may be bound twice, so that all are Aliased.
SpirvArguments bound_arguments(SpirvModule& m, SpirvTypes& t, const kernel::LinearKernel& k,
                               const Target& target) {
  SpirvArguments out;
  const uint32_t buffer_count = static_cast<uint32_t>(k.buffers.size());
  for (uint32_t i = 0; i < buffer_count; ++i) {
    out.buffers.push_back(bound_buffer(m, buffer_pointer(m, t, target, k.buffers[i].dtype), i,
                                       fmt::format("d{}", i)));
    if (buffer_count > 1) m.decorate(out.buffers.back(), spv::DecorationAliased);
  }
  const Id word = t.type(DType::U32), zero = t.integer(DType::I32, 0);
  const Id args = bound_buffer(m, buffer_pointer(m, t, target, DType::U32), buffer_count, "args");
  m.decorate(args, spv::DecorationNonWritable);
  const Id first = load_push_constant(m, t, word);
  const auto block_word = [&](uint32_t i) {
    const Id at = m.value(spv::OpIAdd, word, {first, t.word(i)});
    const Id pointer = m.value(spv::OpAccessChain, t.pointer(spv::StorageClassStorageBuffer, word),
                               {args, zero, at});
    return m.value(spv::OpLoad, word, {pointer});
  };
  for (uint32_t i = 0; i < buffer_count; ++i)
    out.skipped.push_back(skipped_elements(m, t, block_word(2 * i), t.stored(k.buffers[i].dtype)));
  for (uint32_t i = 0; i < k.variables.size(); ++i) {
    const Id bits = block_word(2 * buffer_count + i);
    out.scalars.push_back(m.value(spv::OpBitcast, t.type(DType::I32), {bits}));
    m.name(out.scalars.back(), fmt::format("n{}", i));
  }
  return out;
}

}  // namespace

Id buffer_pointer(SpirvModule& m, SpirvTypes& t, const Target& target, DType element) {
  const Id array = m.type(spv::OpTypeRuntimeArray, {t.memory(element)});
  m.decorate(array, spv::DecorationArrayStride, {static_cast<uint32_t>(size_bytes(element))});
  const Id block = m.type(spv::OpTypeStruct, {array});
  m.decorate(block, spv::DecorationBlock);
  m.decorate_member(block, 0, spv::DecorationOffset, {0});
  return t.pointer(buffer_class(target), block);
}

// The push constant points to the argument block: pointers to the buffers, then i32 scalars.
SpirvArguments load_arguments(SpirvModule& m, SpirvTypes& t, const kernel::LinearKernel& k,
                              const Target& target) {
  if (!target.features.device_address) return bound_arguments(m, t, k, target);
  SpirvArguments out;
  std::vector<uint32_t> members;
  for (const auto& b : k.buffers) members.push_back(buffer_pointer(m, t, target, b.dtype));
  members.resize(members.size() + k.variables.size(), t.type(DType::I32));
  if (members.empty()) return out;
  const uint32_t buffer_count = static_cast<uint32_t>(k.buffers.size());
  const Id args = load_block_pointer(m, t, members, buffer_count);
  for (uint32_t i = 0; i < members.size(); ++i) {
    const bool is_buffer = i < buffer_count;
    const Id member_pointer = t.pointer(spv::StorageClassPhysicalStorageBuffer, members[i]);
    const Id at = m.value(spv::OpAccessChain, member_pointer, {args, t.integer(DType::I32, i)});
    const Id v =
        m.value(spv::OpLoad, members[i], {at, spv::MemoryAccessAlignedMask, is_buffer ? 8u : 4u});
    m.name(v, is_buffer ? fmt::format("d{}", i) : fmt::format("n{}", i - buffer_count));
    (is_buffer ? out.buffers : out.scalars).push_back(v);
  }
  return out;
}

}  // namespace tuff::render
