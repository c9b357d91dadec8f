// An open OpenCL device with two kernels, for the tests of its queues.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <ostream>

#include "base/env.h"
#include "base/error_of.h"
#include "devices/opencl/api.h"
#include "devices/open_device.h"
#include "devices/opencl/opencl.h"

namespace tuff::devices::opencl::test {

using namespace hcq;

// Of 32 work-items each.
inline render::Binary binary(const std::string& name, uint32_t buffers, const std::string& text) {
  render::Binary b;
  b.name = b.symbol = name;
  b.format = render::BinaryFormat::OpenclC;
  b.bytes = std::make_shared<const std::vector<uint8_t>>(text.begin(), text.end());
  b.args = {buffers, 1};
  b.local = {32, 1, 1};
  return b;
}

inline std::vector<render::Binary> binaries() {
  return {binary("fill", 1, R"(TUFF_KERNEL(32, 1, 1) void fill(TUFF_GLOBAL u8* b0, u64 o0, i32 n0) {
  ((TUFF_GLOBAL u32*)(b0 + o0))[TUFF_GROUP(x) * 32 + TUFF_LOCAL(x)] = (u32)n0; }
)"),
          binary("add", 2, R"(TUFF_KERNEL(32, 1, 1)
void add(TUFF_GLOBAL u8* b0, u64 o0, TUFF_GLOBAL u8* b1, u64 o1, i32 n0) {
  const i32 i = TUFF_GROUP(x) * 32 + TUFF_LOCAL(x);
  ((TUFF_GLOBAL u32*)(b1 + o1))[i] = ((TUFF_GLOBAL u32*)(b0 + o0))[i] + (u32)n0; }
)")};
}
enum Kernel { kFill, kAdd };

// How a device is opened.
struct Setting {
  const char* name;
  const char* disable = "";
  const char* queue = "";
  const char* command_buffer = "0";
  const char* copy_queue = "0";
};
inline void PrintTo(const Setting& s, std::ostream* out) { *out << s.name; }
constexpr Setting kSettings[] = {{"Addresses"},
                                 {"Buffers", "svm"},
                                 {"Coarse", "fine-svm"},
                                 {"InOrder", "", "in-order"},
                                 {"Recorded", "", "out-of-order", "1"},
                                 {"InOrderBuffers", "svm", "in-order"},
                                 {"RecordedBuffers", "svm", "out-of-order", "1"},
                                 {"RecordedInOrder", "", "in-order", "1"}};
constexpr size_t kUsual = 5;  // the first, for what hardly depends on the others

class DeviceFixture : public testing::Test, protected OpenDevice {
 protected:
  explicit DeviceFixture(const Setting& s)
      : tier_(Env::TUFF_CL_DISABLE, s.disable),
        order_(Env::TUFF_CL_QUEUE, s.queue),
        buffers_(Env::TUFF_CL_COMMAND_BUFFER, s.command_buffer),
        copies_(Env::TUFF_CL_COPY_QUEUE, s.copy_queue) {}
  void SetUp() override {
    device = opencl_open("");
    programs = device->load(binaries());
  }
  bool addressed() const { return device->target().features.device_address; }
  static void write_args(const Span& at, const std::vector<Span>& buffers, int32_t scalar) {
    for (size_t i = 0; i < buffers.size(); ++i) {
      const uint64_t address = buffers[i].address();
      std::memcpy(at.host() + 8 * i, &address, 8);
    }
    std::memcpy(at.host() + 8 * buffers.size(), &scalar, 4);
  }
  Command dispatch(Kernel k, const std::vector<Span>& buffers, int32_t scalar, uint32_t groups) {
    const Span args = device->allocator().allocate(32, MemoryKind::Args);
    write_args(args, buffers, scalar);
    Command c{DispatchCmd{programs[k].get(), args, {groups, 1, 1}, {}}, {}, ""};
    c.buffers = buffers;
    return c;
  }

  const EnvOverride tier_, order_, buffers_, copies_;
};

}  // namespace tuff::devices::opencl::test
