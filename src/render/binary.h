// Binary: what a renderer and compiler give for one kernel: bytes, argument layout, local size.
// Made by render (and found again by engine's disk cache), loaded by devices into a Program.
// Must never know buffers, addresses or queues. The launch size is not here: it may be symbolic
// and belongs to the CALL (see kernel/lowered.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tuff::render {

enum class BinaryFormat : uint8_t {
  None,          // the null device: nothing to load
  SpirV,         // words of one module with one entry point, `symbol`
  Object,        // x86-64 ELF relocatable; several Binaries may share one
  AmdgpuObject,  // the same of an AMD GPU
  OpenclC,       // the text of one kernel, which the device's prelude precedes
  Ptx,           // the text of a module for an NVIDIA GPU; several Binaries may share one
};

// The argument block, one ABI on every device: `buffer_count` 64-bit addresses, then `scalar_count`
// 32-bit signed scalars, padded to 16 bytes.
struct ArgLayout {
  uint32_t buffer_count = 0;
  uint32_t scalar_count = 0;
  uint32_t scalar_offset(uint32_t i) const { return buffer_count * 8 + i * 4; }
  uint32_t size_bytes() const { return (buffer_count * 8 + scalar_count * 4 + 15) & ~15u; }
  bool operator==(const ArgLayout&) const = default;
};

// Where buffers are bound and not addressed (no TargetFeatures::device_address) argument i is
// storage buffer i of set 0 and the block the one after them, which a 32-bit push constant gives as
// the first word of the block in its binding. A binding begins at the multiple of kBindingAlignment
// at or before the buffer, so that its kernel finds the rest in the low bits of the block's
// address. Vulkan promises a minStorageBufferOffsetAlignment of 256 or less.
inline constexpr uint32_t kBindingAlignment = 256;

struct Binary {
  std::string name;    // the kernel's readable name, shown by tools
  std::string symbol;  // entry point
  BinaryFormat format = BinaryFormat::None;
  std::shared_ptr<const std::vector<uint8_t>> bytes;  // truly shared: one object file, many kernels
  ArgLayout args;
  std::array<uint32_t, 3> local{1, 1, 1};  // workgroup size (GPU)
  uint32_t shared_bytes = 0;               // workgroup memory, scratch memory on a CPU
  uint32_t subgroup_size = 0;  // of the whole subgroups that it counts on; 0: on none
  // Written by a user: a text is a whole program, which no prelude precedes, and where buffers are
  // bound they are so from their first byte to their last, without a block.
  bool by_user = false;
};

// CPU entry point: called once per group with the argument block, the group's coordinates and the
// calling thread's scratch memory: Binary::shared_bytes at kScratchAlignment, of any contents.
inline constexpr uint32_t kScratchAlignment = 64;
using CpuKernelFn = void (*)(const void* args, uint32_t group_x, uint32_t group_y, uint32_t group_z,
                             void* scratch);

}  // namespace tuff::render
