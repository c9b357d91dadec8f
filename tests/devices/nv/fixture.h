// An open NV device on the emulated machine, with a few kernels.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>

#include <tuff/error.h>

#include "base/env.h"
#include "base/error_of.h"
#include "base/os.h"
#include "devices/nv/nv_device.h"
#include "devices/ptx_kernels.h"
#include "emu/nv/assembler.h"
#include "emu/nv/mock.h"

namespace tuff::devices::nv::test {

using namespace hcq;
using namespace ptx_kernels;
using Words = std::vector<uint32_t>;

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

struct Opened {
  explicit Opened(Machine& m) : device(nv_open(m.iface, "")), programs(device->load(binaries())) {}
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
  Command dispatch(Kernel k, const std::vector<Span>& buffers, int32_t scalar, uint32_t groups,
                   int32_t slot = -1) {
    DispatchCmd d{programs[k].get(), args(buffers, scalar), {groups, 1, 1}, {}};
    d.group_slots[0] = slot;
    return {d, {}, ""};
  }
  static Command copy(const Span& dst, const Span& src) { return {CopyCmd{dst, src}, {}, ""}; }
  static Command barrier() { return {BarrierCmd{}, {}, ""}; }
  static CommandList list_of(std::vector<Command> commands, uint32_t slots = 0) {
    CommandList list;
    list.commands = std::move(commands);
    list.slot_count = slots;
    return list;
  }
  uint64_t submit(Queue& q, std::vector<Command> commands) {
    return q.submit_once(q.encode(list_of(std::move(commands)), EncodeUse::Once));
  }
  void run(std::vector<Command> commands) {
    const uint64_t value = submit(queue(), std::move(commands));
    queue().wait(value);
  }
  std::unique_ptr<hcq::Device> device;
  std::vector<std::unique_ptr<Program>> programs;
};

}  // namespace tuff::devices::nv::test
