// An open NV device on the emulated machine, with a few kernels.
#pragma once

#include <gtest/gtest.h>

#include <mutex>

#include <tuff/error.h>

#include "base/env.h"
#include "base/error_of.h"
#include "base/os.h"
#include "devices/nv/nv_device.h"
#include "devices/nv/rm/uvm_space.h"
#include "devices/open_device.h"
#include "devices/ptx_kernels.h"
#include "emu/nv/assembler.h"
#include "emu/nv/mock.h"

namespace tuff::devices::nv::test {

using namespace hcq;
using namespace ptx_kernels;

// A machine; what it finds and no device has taken is a failure. `wrap` stands before it.
struct Machine {
  explicit Machine(const std::string& options = "",
                   const std::function<std::shared_ptr<os::Kernel>(std::shared_ptr<os::Kernel>)>&
                       wrap = {}) {
    emu::nv::MockOptions o = emu::nv::parse_options(options);
    o.report = [this](const emu::Finding& f) {
      std::lock_guard lock(mutex);
      findings.push_back({emu::name(f.kind), f.gpu, f.queue, f.address, to_text(f)});
    };
    mock = emu::nv::make_mock(o);
    iface.kernel = wrap ? wrap(mock) : mock;
    iface.emulated = true;
    iface.take_findings = [this] {
      std::lock_guard lock(mutex);
      return std::exchange(findings, {});
    };
    iface.assemble = [this](const std::string& ptx, uint32_t sm) {
      return emu::nv::assemble(ptx, sm, modern);
    };
  }
  ~Machine() {
    for (const MachineFinding& f : findings) ADD_FAILURE() << f.text;
  }
  bool modern = false;  // object files as since CUDA 13
  std::mutex mutex;
  std::vector<MachineFinding> findings;
  std::shared_ptr<emu::nv::Mock> mock;
  NvIface iface;
};

struct Opened : OpenDevice {
  explicit Opened(Machine& m, const std::string& selector = "") {
    device = nv_open(m.iface, selector);
    programs = device->load(binaries());
  }
};

// Kernels in order, and a copy by the other queue.
inline void expect_kernels_and_copies(Opened& gpu) {
  const Span a = gpu.words(128), b = gpu.words(128), c = gpu.words(128);
  gpu.run({gpu.dispatch(kFill, {a}, 7, 4), Opened::barrier(), gpu.dispatch(kAdd, {a, b}, 5, 4),
           Opened::barrier(), gpu.dispatch(kTurn, {c}, 100, 4)});
  EXPECT_EQ(gpu.read(b), Words(128, 12));
  EXPECT_EQ(gpu.read(c)[0], 131u);
  EXPECT_EQ(gpu.read(c)[33], 130u);
  const Span d = gpu.upload(counting(128, 1000));
  Queue& copies = *gpu.device->copy_queue();
  copies.wait(gpu.submit(copies, {Opened::copy(a, d)}));
  EXPECT_EQ(gpu.read(a), counting(128, 1000));
}

// A device that is opened anew.
inline void expect_works(Machine& machine) {
  Opened gpu(machine);
  const Span a = gpu.words(32);
  gpu.run({gpu.dispatch(kFill, {a}, 2, 1)});
  EXPECT_EQ(gpu.read(a), Words(32, 2));
}

// Two of them around a kernel.
inline void expect_timestamps_of_the_host(Opened& gpu) {
  const Span a = gpu.words(32);
  CommandList list = Opened::list_of({gpu.dispatch(kFill, {a}, 1, 1)});
  add_timestamps(list);
  const auto timed = gpu.queue().encode(list, EncodeUse::Replay);
  const uint64_t before = os::monotonic_ns();
  gpu.queue().wait(gpu.queue().submit(*timed, {}));
  const std::vector<uint64_t> times = gpu.queue().timestamps(*timed);
  const uint64_t after = os::monotonic_ns();
  ASSERT_EQ(times.size(), 2u);
  constexpr uint64_t kSlack = 5'000'000;  // two clocks are read one after the other
  EXPECT_GE(times[0] + kSlack, before);
  EXPECT_LE(times[0], times[1]);
  EXPECT_LE(times[1], after + kSlack);
}

// What is freed is unmapped before it is another's.
inline void expect_freed_memory_named(Opened& gpu) {
  const Span a = gpu.words(16 << 20);
  const Command fill = gpu.dispatch(kFill, {a}, 1, 1);
  gpu.device->allocator().free(a);
  gpu.device->allocator().trim();
  const std::string said = error_of<DeviceLost>([&] {
    gpu.queue().wait(gpu.submit(gpu.queue(), {fill}));
  });
  EXPECT_NE(said.find("that was freed"), std::string::npos) << said;
}

// A queue that waits for what nobody signals; TUFF_TIMEOUT_MS is short.
inline void expect_hang_is_lost(Machine& machine) {
  Opened gpu(machine);
  auto never = gpu.device->create_signal();
  const uint64_t one = 1;
  const CommandList list = Opened::list_of(
      {{WaitCmd{never.get(), 0}, {}, ""}, gpu.dispatch(kFill, {gpu.words(32)}, 1, 1)}, 1);
  const uint64_t value =
      gpu.queue().submit_once(gpu.queue().encode(list, EncodeUse::Once), {&one, 1});
  const std::string said = error_of<DeviceLost>([&] { gpu.queue().wait(value); });
  EXPECT_NE(said.find("no progress"), std::string::npos) << said;
  EXPECT_NE(said.find("fill"), std::string::npos) << said;
}

// For the value of that slot.
inline Command wait_for(hcq::Signal& signal, uint32_t slot = 0) {
  return {WaitCmd{&signal, slot}, {}, ""};
}

}  // namespace tuff::devices::nv::test
