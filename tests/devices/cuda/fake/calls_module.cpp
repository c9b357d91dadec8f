// Modules of PTX, and what a launch of their kernels does.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "devices/cuda/fake/call.h"

namespace tuff::devices::cuda {
namespace {

constexpr size_t kOptions = 2;
constexpr double kNewestPtx = 8.4;  // of the driver that this stands in for (CUDA 12.4)

void write_log(unsigned count, const CUjit_option* options, void** values,
               const std::string& text) {
  char* log = nullptr;
  size_t size = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      size = reinterpret_cast<size_t>(values[i]);
  }
  if (log && size > 0) std::snprintf(log, size, "%s", text.c_str());
}

// "sm_86" runs on 8.6 and later, "sm_90a" on 9.0 alone.
bool runs_on(const std::string& target, int capability) {
  int wanted = 0;
  char own = 0;
  const int read = std::sscanf(target.c_str(), "sm_%d%c", &wanted, &own);
  return read == 2 ? wanted == capability : read == 1 && wanted <= capability;
}

CUresult why_refused(const emu_api::PtxModule& code, int capability) {
  if (std::strtod(code.version().c_str(), nullptr) > kNewestPtx)
    return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  return runs_on(code.target(), capability) ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

}  // namespace

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                            CUjit_option* options, void** values) {
  Call call;
  if (!call) return call.code;
  if (count != kOptions) return CUDA_ERROR_INVALID_VALUE;
  const auto* text = static_cast<const char*>(image);
  if (!std::strstr(text, ".version")) return CUDA_ERROR_INVALID_IMAGE;
  emu_api::Failure failure;
  auto code = emulator_api().load_ptx(text, failure);
  if (!code) {
    write_log(count, options, values, failure.text);
    return CUDA_ERROR_INVALID_PTX;
  }
  if (const CUresult why = why_refused(*code, call.m.options.capability); why != CUDA_SUCCESS)
    return why;
  auto out = std::make_unique<CUmod_st>();
  out->context = current_context;
  for (const emu_api::PtxKernelInfo& info : code->kernels()) {
    auto function = std::make_unique<CUfunc_st>();
    function->module = out.get();
    function->info = info;
    call.m.handles.insert(function.get());
    out->functions.emplace(info.name, std::move(function));
  }
  out->code = std::move(code);
  *module = call.add(std::move(out));
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  Call call;
  if (!call || !call.takes(module)) return call.code;
  for (const auto& [name, function] : module->functions) call.m.handles.erase(function.get());
  call.m.handles.erase(module);
  delete module;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  Call call;
  if (!call || !call.takes(module)) return call.code;
  const auto it = module->functions.find(name);
  if (it == module->functions.end()) return CUDA_ERROR_NOT_FOUND;
  *function = it->second.get();
  return CUDA_SUCCESS;
}

// The kernel sees what its context may touch, and no more. Whatever is found wrong is a fault.
void Machine::run(CUctx_st* context, const Launch& launch) {
  if (!is(launch.function))
    return fault(context, CUDA_ERROR_ILLEGAL_ADDRESS, "a kernel runs whose module was unloaded");
  emu_api::PtxLaunchRequest request;
  request.module = launch.function->module->code.get();
  request.kernel = launch.function->info.name;
  request.grid = launch.grid;
  request.block = launch.block;
  request.parameters = launch.parameters;
  request.seed = random();
  for (auto& [address, a] : memory)
    if (!a.owner || a.owner == context || context->reaches.contains(a.owner))
      request.memory.push_back({a.address, a.size_bytes, a.bytes});
  emu_api::Failure failure;
  const emu_api::PtxLaunchResult result = emulator_api().launch_ptx(request, failure);
  if (!failure.kind.empty())
    return fault(context, CUDA_ERROR_LAUNCH_FAILED, request.kernel + ": " + failure.text);
  for (const emu_api::MachineFinding& f : result.findings) {
    const bool misaligned = f.kind == "misaligned access";
    fault(context,
          misaligned           ? CUDA_ERROR_MISALIGNED_ADDRESS
          : f.kind == "out of bounds" ? CUDA_ERROR_ILLEGAL_ADDRESS
                               : CUDA_ERROR_LAUNCH_FAILED,
          f.text);
  }
  if (!result.finished)
    fault(context, CUDA_ERROR_LAUNCH_FAILED, request.kernel + " did not finish");
}

}  // namespace tuff::devices::cuda
