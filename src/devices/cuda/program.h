// CudaProgram: a kernel as the driver has compiled it; those of one PTX text share its module. Made
// by the device, named by dispatches. Knows no queue.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "devices/cuda/context.h"
#include "hcq/device.h"

namespace tuff::devices::cuda {

class LoadedModule {
 public:
  LoadedModule(std::shared_ptr<Context> context, const render::Binary& binary);
  ~LoadedModule();
  LoadedModule(const LoadedModule&) = delete;
  CUfunction function(const std::string& symbol) const;

 private:
  std::shared_ptr<Context> context_;
  CUmodule handle_ = nullptr;
};

class CudaProgram final : public hcq::Program {
 public:
  CudaProgram(const render::Binary& binary, std::shared_ptr<const LoadedModule> module)
      : Program(binary), module_(std::move(module)), function_(module_->function(binary.symbol)) {}
  CUfunction function() const { return function_; }

 private:
  std::shared_ptr<const LoadedModule> module_;
  CUfunction function_;
};

// In the order given. Throws CompileError with the driver's log.
std::vector<std::unique_ptr<hcq::Program>> load_programs(const std::shared_ptr<Context>& context,
                                                         std::span<const render::Binary> binaries);

}  // namespace tuff::devices::cuda
