// An open CUDA device on the library that stands in for the driver, with a few kernels.
#pragma once

#include <gtest/gtest.h>

#include <cstring>

#include "base/env.h"
#include "base/error_of.h"
#include "base/os.h"
#include "devices/cuda/api.h"
#include "devices/cuda/cuda.h"
#include "devices/cuda/fake/control.h"
#include "devices/default_kinds.h"
#include "devices/ptx_kernels.h"

namespace tuff::devices::cuda::test {

using namespace hcq;
using namespace ptx_kernels;
using Words = std::vector<uint32_t>;

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

class CudaFixture : public testing::Test {
 protected:
  explicit CudaFixture(const char* options = "") {
    reset();
    set_options(options);
  }
  void open(const std::string& selector = "") {
    device = cuda_open(selector);
    programs = device->load(binaries());
  }
  Queue& queue() { return device->compute_queue(); }
  Span words(size_t count, MemoryKind kind = MemoryKind::Device) {
    return device->allocator().allocate(4 * count, kind);
  }
  Span upload(const Words& values) {
    const Span s = words(values.size());
    device->upload(s, values.data());
    return s;
  }
  Words read(const Span& s) {
    Words out(s.size_bytes / 4);
    device->download(s, out.data());
    return out;
  }
  Span args(const std::vector<Span>& buffers, int32_t scalar) {
    std::vector<std::byte> block(32);
    for (size_t i = 0; i < buffers.size(); ++i) {
      const uint64_t address = buffers[i].address();
      std::memcpy(&block[8 * i], &address, 8);
    }
    std::memcpy(&block[8 * buffers.size()], &scalar, 4);
    const Span s = device->allocator().allocate(block.size(), MemoryKind::Args);
    device->upload(s, block.data());
    return s;
  }
  Command dispatch(Kernel k, const std::vector<Span>& buffers, int32_t scalar, uint32_t groups) {
    Command c{DispatchCmd{programs[k].get(), args(buffers, scalar), {groups, 1, 1}, {}}, {}, ""};
    for (size_t i = 0; i < buffers.size(); ++i)
      c.accesses.push_back({buffers[i], i + 1 == buffers.size()});
    return c;
  }
  static Command copy(const Span& dst, const Span& src) {
    return {CopyCmd{dst, src}, {{src, false}, {dst, true}}, ""};
  }
  static CommandList list_of(std::vector<Command> commands, uint32_t slots = 0) {
    CommandList list;
    list.commands = std::move(commands);
    list.slot_count = slots;
    return list;
  }
  uint64_t submit(std::vector<Command> commands) {
    return queue().submit_once(queue().encode(list_of(std::move(commands)), EncodeUse::Once));
  }
  void run(std::vector<Command> commands) { queue().wait(submit(std::move(commands))); }

  const EnvOverride library_{Env::TUFF_CUDA_LIBRARY, TUFF_FAKE_CUDA};
  std::unique_ptr<hcq::Device> device;
  std::vector<std::unique_ptr<Program>> programs;
};

}  // namespace tuff::devices::cuda::test
