// NvProgram: a kernel in GPU memory; those of one PTX text share its image. Made by the device,
// named by dispatches. Knows no queue.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "devices/nv/load/cubin.h"
#include "devices/nv/rm/space.h"
#include "hcq/device.h"

namespace tuff::devices::nv {

// Makes an object file of a text of PTX, for compute capability `sm`. Throws CompileError.
using Assemble = std::function<std::vector<uint8_t>(const std::string& ptx, uint32_t sm)>;

class LoadedCubin {
 public:
  LoadedCubin(Space& space, std::span<const uint8_t> cubin);
  KernelCode kernel(const render::Binary& binary) const;

 private:
  Cubin cubin_;
  std::unique_ptr<Buffer> memory_;
};

class NvProgram final : public hcq::Program {
 public:
  NvProgram(const render::Binary& binary, std::shared_ptr<const LoadedCubin> cubin)
      : Program(binary), cubin_(std::move(cubin)), kernel_(cubin_->kernel(binary)) {}
  const KernelCode& kernel() const { return kernel_; }

 private:
  std::shared_ptr<const LoadedCubin> cubin_;
  KernelCode kernel_;
};

// In the order given.
std::vector<std::unique_ptr<hcq::Program>> load_programs(Space& space, const Assemble& assemble,
                                                         std::span<const render::Binary> binaries);

}  // namespace tuff::devices::nv
