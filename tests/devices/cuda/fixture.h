// An open CUDA device on the library that stands in for the driver, with a few kernels.
#pragma once

#include <gtest/gtest.h>

#include "base/env.h"
#include "base/error_of.h"
#include "base/os.h"
#include "devices/cuda/api.h"
#include "devices/cuda/cuda.h"
#include "devices/cuda/fake/control.h"
#include "devices/default_kinds.h"
#include "devices/open_device.h"
#include "devices/ptx_kernels.h"

namespace tuff::devices::cuda::test {

using namespace hcq;
using namespace ptx_kernels;

template <class Function>
Function* fake(const char* name) {
  const std::string path[] = {TUFF_FAKE_CUDA};
  static const auto library = os::Library::open(path);
  return reinterpret_cast<Function*>(library->symbol(name));
}
inline void reset() { fake<FakeCudaReset>("fake_cuda_reset")(); }
inline void set_options(const char* text) { fake<FakeCudaOptions>("fake_cuda_options")(text); }
inline uint64_t calls(const char* name = "") {
  return fake<FakeCudaCalls>("fake_cuda_calls")(name);
}
inline uint64_t held() { return fake<FakeCudaHeld>("fake_cuda_held")(); }

class CudaFixture : public testing::Test, protected OpenDevice {
 protected:
  explicit CudaFixture(const char* options = "") {
    reset();
    set_options(options);
  }
  void open(const std::string& selector = "") {
    device = cuda_open(selector);
    programs = device->load(binaries());
  }
  Command dispatch(Kernel k, const std::vector<Span>& buffers, int32_t scalar, uint32_t groups) {
    Command c = OpenDevice::dispatch(k, buffers, scalar, groups);
    for (size_t i = 0; i < buffers.size(); ++i)
      c.accesses.push_back({buffers[i], i + 1 == buffers.size()});
    return c;
  }
  static Command copy(const Span& dst, const Span& src) {
    return {CopyCmd{dst, src}, {{src, false}, {dst, true}}, ""};
  }

  const EnvOverride library_{Env::TUFF_CUDA_LIBRARY, TUFF_FAKE_CUDA};
};

}  // namespace tuff::devices::cuda::test
