#include "devices/cuda/program.h"

#include <array>
#include <iterator>
#include <map>

namespace tuff::devices::cuda {
namespace {

constexpr size_t kLogBytes = 4096;

// The driver refused the text, and nothing else happened.
bool refuses_code(CUresult code) {
  return code == CUDA_ERROR_INVALID_PTX || code == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
         code == CUDA_ERROR_NO_BINARY_FOR_GPU || code == CUDA_ERROR_INVALID_IMAGE ||
         code == CUDA_ERROR_NOT_FOUND;
}

}  // namespace

LoadedModule::LoadedModule(std::shared_ptr<Context> context, const render::Binary& binary)
    : context_(std::move(context)) {
  const Context& c = *context_;
  const Current current(c);
  const std::string ptx(binary.bytes->begin(), binary.bytes->end());
  std::array<char, kLogBytes> log{};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  const CUresult code = c.api.ModuleLoadDataEx(&handle_, ptx.c_str(),
                                               static_cast<unsigned>(std::size(options)), options,
                                               values);
  if (refuses_code(code))
    fail<CompileError>("kernel {}: {}: cuModuleLoadDataEx returned {}\n{}", binary.name, c.name,
                       error_text(c.api, code), log.data());
  c.check(code, "cuModuleLoadDataEx");
}

LoadedModule::~LoadedModule() {
  const Current current(*context_, std::nothrow);
  if (current) context_->release(context_->api.ModuleUnload(handle_), "cuModuleUnload");
}

CUfunction LoadedModule::function(const std::string& symbol) const {
  const Context& c = *context_;
  const Current current(c);
  CUfunction function = nullptr;
  const CUresult code = c.api.ModuleGetFunction(&function, handle_, symbol.c_str());
  if (refuses_code(code))
    fail<CompileError>("{}: cuModuleGetFunction({}) returned {}", c.name, symbol,
                       error_text(c.api, code));
  c.check(code, "cuModuleGetFunction");
  return function;
}

std::vector<std::unique_ptr<hcq::Program>> load_programs(const std::shared_ptr<Context>& context,
                                                         std::span<const render::Binary> binaries) {
  std::map<const void*, std::shared_ptr<const LoadedModule>> modules;
  std::vector<std::unique_ptr<hcq::Program>> programs;
  for (const render::Binary& b : binaries) {
    if (b.format != render::BinaryFormat::Ptx || !b.bytes)
      fail<CompileError>("{}: no PTX for an NVIDIA GPU", b.name);
    auto& module = modules[b.bytes.get()];
    if (!module) module = std::make_shared<const LoadedModule>(context, b);
    programs.push_back(std::make_unique<CudaProgram>(b, module));
  }
  return programs;
}

}  // namespace tuff::devices::cuda
