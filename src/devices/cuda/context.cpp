#include "devices/cuda/context.h"

#include <algorithm>
#include <iterator>

#include "base/log.h"

namespace tuff::devices::cuda {
namespace {

// After these every call on the context returns the same: what ran has ended (cuda.h, CUresult:
// "leaves the process in an inconsistent state").
bool ends_context(CUresult code) {
  constexpr CUresult kEnds[] = {
      CUDA_ERROR_ILLEGAL_ADDRESS,      CUDA_ERROR_LAUNCH_TIMEOUT,
      CUDA_ERROR_ASSERT,               CUDA_ERROR_HARDWARE_STACK_ERROR,
      CUDA_ERROR_ILLEGAL_INSTRUCTION,  CUDA_ERROR_MISALIGNED_ADDRESS,
      CUDA_ERROR_INVALID_ADDRESS_SPACE, CUDA_ERROR_INVALID_PC,
      CUDA_ERROR_LAUNCH_FAILED};
  return std::ranges::find(kEnds, code) != std::end(kEnds);
}

}  // namespace

Context::Context(const CudaApi& functions, Facts f, std::string n)
    : api(functions), facts(std::move(f)), name(std::move(n)) {
  check(api.DevicePrimaryCtxRetain(&handle_, facts.device), "cuDevicePrimaryCtxRetain");
}

Context::~Context() {
  if (!abandoned())
    release(api.DevicePrimaryCtxRelease(facts.device), "cuDevicePrimaryCtxRelease");
}

[[gnu::hot]]
void Context::check(CUresult code, const char* call) const {
  if (code == CUDA_ERROR_OUT_OF_MEMORY)
    fail<OutOfMemory>("{}: {} returned {}", name, call, error_text(api, code));
  require(code, call);
}

[[gnu::hot]]
void Context::require(CUresult code, const char* call) const {
  if (code == CUDA_SUCCESS) return;
  if (ends_context(code)) dead_.store(true, std::memory_order_release);
  const std::string text = fmt::format("{}: {} returned {}", name, call, error_text(api, code));
  if (lost_) lost_(text);
  throw DeviceLost(text);
}

void Context::release(CUresult code, const char* call) const noexcept {
  if (code == CUDA_SUCCESS || dead_.load(std::memory_order_acquire)) return;
  if (ends_context(code)) dead_.store(true, std::memory_order_release);
  log_warn("{}: {} returned {}", name, call, error_text(api, code));
}

[[gnu::hot]]
Current::Current(const Context& context) : context_(context) {
  context.check(set(), "cuCtxSetCurrent");
}

Current::Current(const Context& context, std::nothrow_t) noexcept : context_(context) {
  if (context.abandoned()) return;
  context.release(set(), "cuCtxSetCurrent");
}

[[gnu::hot]]
CUresult Current::set() noexcept {
  const CudaApi& api = context_.api;
  CUresult code = api.CtxGetCurrent(&before_);
  if (code == CUDA_SUCCESS && before_ != context_.handle())
    code = api.CtxSetCurrent(context_.handle());
  set_ = code == CUDA_SUCCESS;
  return code;
}

[[gnu::hot]]
Current::~Current() {
  if (set_ && before_ && before_ != context_.handle())
    context_.release(context_.api.CtxSetCurrent(before_), "cuCtxSetCurrent");
}

}  // namespace tuff::devices::cuda
