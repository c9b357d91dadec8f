// CodeObject: kernels for AMD's GPUs as clang writes them, unlinked: an ELF64 relocatable object
// with code, and for each kernel a descriptor of 64 bytes. From its bytes to what lies in GPU
// memory and to what dispatches need, as pure functions: nothing is allocated on a device. Called
// by the AMD device for Binaries of format AmdgpuObject. Damaged objects throw CompileError; every
// offset is checked before it is followed. Sources: LLVM AMDGPUUsage (code object, kernel
// descriptor), AMDHSAKernelDescriptor.h, ELFRelocs/AMDGPU.def.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "devices/amd/encode/encode.h"
#include "devices/amd/generation.h"

namespace tuff::devices::amd {

// What the object says of one kernel, as it says it.
struct KernelDescriptor {
  uint32_t group_bytes = 0, private_bytes = 0, kernarg_bytes = 0;
  uint32_t rsrc1 = 0, rsrc2 = 0, rsrc3 = 0;
  uint16_t properties = 0;  // KernelProperty bits
  uint64_t offset = 0;      // of the descriptor in the image
  uint64_t entry = 0;       // of the first instruction in the image
};

class CodeObject {
 public:
  // Where an image begins in GPU memory is a multiple of this.
  static constexpr uint64_t kAlignment = 4096;

  CodeObject(std::span<const uint8_t> bytes, const Generation& generation);

  uint64_t size_bytes() const { return image_.size(); }
  // The image for that address, relocated.
  std::vector<uint8_t> image(uint64_t address) const;
  // CompileError naming the kernel where there is none.
  const KernelDescriptor& descriptor(const std::string& symbol) const;
  const std::map<std::string, KernelDescriptor>& kernels() const { return kernels_; }
  // The file with sections' places in the image as their addresses (sh_addr), for debuggers.
  std::vector<uint8_t> placed_file(std::span<const uint8_t> bytes) const;
  // As the hardware takes it, of the image at that address.
  KernelCode kernel(const std::string& symbol, uint64_t address,
                    const std::array<uint32_t, 3>& local) const;

 private:
  struct Loader;
  // value = symbol + addend [- place], of which `width` bytes from bit `shift` are stored.
  struct Relocation {
    uint64_t place = 0, target = 0;  // in the image; the addend is in the target
    uint8_t width = 4, shift = 0;
    bool relative = false, absolute_target = false;
  };
  const Generation& generation_;
  std::vector<uint8_t> image_;
  std::vector<Relocation> relocations_;
  std::vector<uint64_t> placed_;  // by section
  std::map<std::string, KernelDescriptor> kernels_;
};

}  // namespace tuff::devices::amd
