// AmdProgram: a kernel in GPU memory; those of one object file share its image. Made by the device,
// named by dispatches. Knows no queue.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "devices/amd/gpu_state.h"
#include "devices/amd/load/code_object.h"
#include "hcq/device.h"

namespace tuff::devices::amd {

// One object file as it lies in GPU memory.
class LoadedImage {
 public:
  LoadedImage(GpuState& gpu, std::span<const uint8_t> bytes);
  ~LoadedImage();
  LoadedImage(const LoadedImage&) = delete;
  KernelCode kernel(const render::Binary& binary) const;

 private:
  GpuState& gpu_;
  CodeObject object_;
  std::unique_ptr<Buffer> memory_;
  std::shared_ptr<const void> shown_;
};

class AmdProgram final : public hcq::Program {
 public:
  AmdProgram(const render::Binary& binary, std::shared_ptr<const LoadedImage> image)
      : Program(binary), image_(std::move(image)), kernel_(image_->kernel(binary)) {}
  const KernelCode& kernel() const { return kernel_; }

 private:
  std::shared_ptr<const LoadedImage> image_;
  KernelCode kernel_;
};

// In the order given.
std::vector<std::unique_ptr<hcq::Program>> load_programs(GpuState& gpu,
                                                         std::span<const render::Binary> binaries);

}  // namespace tuff::devices::amd
