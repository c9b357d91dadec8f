// Call: what every function of the library does first: takes the machine's lock, counts, fails
// where a test wants it to, and checks that there is a context. Used by calls_*.cpp.
#pragma once

#include <algorithm>

#include "devices/cuda/fake/machine.h"

#define FAKE_EXPORT extern "C" [[gnu::visibility("default")]]

namespace tuff::devices::cuda {

#define TUFF_CUDA(name, symbol, ...) FAKE_EXPORT CUresult symbol(__VA_ARGS__);
#include "devices/cuda/functions.def"

inline thread_local CUctx_st* current_context = nullptr;

enum class Needs : uint8_t { Init, Context };

class Call {
 public:
  explicit Call(Needs needs = Needs::Context, const char* name = __builtin_FUNCTION())
      : m(machine()), lock(m.mutex) {
    const bool fails = ++m.calls == m.options.fail;
    m.counts[name]++;
    if (!m.initialized) {
      code = CUDA_ERROR_NOT_INITIALIZED;
    } else if (needs == Needs::Context && !current_context) {
      code = CUDA_ERROR_INVALID_CONTEXT;
    } else if (needs == Needs::Context && current_context->retained == 0) {
      code = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    } else if (needs == Needs::Context && current_context->error != CUDA_SUCCESS) {
      code = current_context->error;
    } else if (fails) {
      code = m.options.code;
      if (current_context && code == CUDA_ERROR_ILLEGAL_ADDRESS)
        m.fault(current_context, code, "a fault that the test wants");
    }
  }
  explicit operator bool() const { return code == CUDA_SUCCESS; }
  // The handle is there and of the current context.
  template <class Handle>
  bool takes(const Handle* handle) {
    if (handle && m.is(handle) && handle->context == current_context) return true;
    code = CUDA_ERROR_INVALID_HANDLE;
    return false;
  }
  // One of its own, or 1 or 2 for a default stream.
  bool takes_stream(CUstream& stream) {
    const auto number = reinterpret_cast<uintptr_t>(stream);
    if (number != 1 && number != 2) return takes(stream);
    auto& own = m.defaults[{current_context, int(number)}];
    if (!own) own = std::make_unique<CUstream_st>(CUstream_st{current_context, {}});
    if (std::ranges::find(m.streams, own.get()) == m.streams.end()) m.streams.push_back(own.get());
    stream = own.get();
    return true;
  }
  template <class Handle>
  Handle* add(std::unique_ptr<Handle> handle) {
    m.handles.insert(handle.get());
    return handle.release();
  }

  Machine& m;
  std::unique_lock<std::mutex> lock;
  CUresult code = CUDA_SUCCESS;
};

std::optional<Launch> launch_of(CUfunc_st* function, std::array<uint32_t, 3> grid,
                                std::array<uint32_t, 3> block, unsigned shared_bytes,
                                void** parameters);

}  // namespace tuff::devices::cuda
