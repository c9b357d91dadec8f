// Cubin: an object file for one of NVIDIA's GPUs, as its assemblers make them: what of it lies in
// GPU memory, and what a launch of its kernels has to know. Called by NvProgram. Knows no device
// that is open and no instruction. Files may be damaged: every offset is checked.
// Sources: the layouts of ptxas 12.9 and 13.5 and of the drivers' compilers (docs/design/nv.md);
// relocations: tinygrad @a9069c1, runtime/ops_nv.py.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "devices/nv/encode/encode.h"

namespace tuff::devices::nv {

class Cubin {
 public:
  // CompileError for what is damaged or of another generation.
  Cubin(std::span<const uint8_t> bytes, const Generation& generation);
  uint64_t size_bytes() const { return image_.size(); }
  // What lies at `address`, with addresses put in.
  std::vector<uint8_t> image(uint64_t address) const;
  // Of the image at `address`. CompileError for one that is not there.
  KernelCode kernel(const std::string& symbol, uint64_t address,
                    const std::array<uint32_t, 3>& local) const;

 private:
  struct Loader;
  struct Relocation {
    uint64_t offset = 0, target = 0;  // of the image; the address there
    uint8_t width = 8, shift = 0;
  };
  struct Kernel {
    KernelCode code;  // with offsets for addresses
    bool has_parameter = false;
  };
  std::vector<uint8_t> image_;
  std::vector<Relocation> relocations_;
  std::map<std::string, Kernel> kernels_;
};

}  // namespace tuff::devices::nv
