#include "devices/cuda/fake/control.h"

#include "devices/cuda/fake/call.h"

namespace tuff::devices::cuda {

FAKE_EXPORT void fake_cuda_options(const char* text) {
  Machine& m = machine();
  std::lock_guard lock(m.mutex);
  m.options = parse_options(text);
  m.random.seed(m.options.seed);
  m.calls = 0;
  m.counts.clear();
}

FAKE_EXPORT void fake_cuda_reset() {
  Machine& m = machine();
  std::lock_guard lock(m.mutex);
  for (auto* list : {&m.streams, &m.destroyed}) {
    for (CUstream_st* s : *list) s->queued.clear();
    list->clear();
  }
  m.defaults.clear();
  m.memory.clear();
  m.handles.clear();
  m.used_bytes = 0;
  for (CUctx_st& c : m.contexts) c = {c.device, 0, CUDA_SUCCESS, {}};
}

FAKE_EXPORT uint64_t fake_cuda_calls(const char* name) {
  Machine& m = machine();
  std::lock_guard lock(m.mutex);
  return *name ? m.counts[name] : m.calls;
}

FAKE_EXPORT uint64_t fake_cuda_held() {
  Machine& m = machine();
  std::lock_guard lock(m.mutex);
  return m.memory.size() + m.handles.size();
}

}  // namespace tuff::devices::cuda
