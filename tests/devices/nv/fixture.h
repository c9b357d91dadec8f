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

// For the value of that slot.
inline Command wait_for(hcq::Signal& signal, uint32_t slot = 0) {
  return {WaitCmd{&signal, slot}, {}, ""};
}

}  // namespace tuff::devices::nv::test
