// AMD's GPUs by direct submission: rings of packets in memory, signals that are words of memory,
// machine code; no driver library in between. Called through the registry and by tests. Must never
// know UOps or rules, nor whether a GPU is emulated, but to say so.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/os_kernel.h"
#include "devices/machine_findings.h"
#include "devices/registry.h"

namespace tuff::devices {

namespace amd {
class Process;
}

// How the GPUs are reached: the system, or a machine in its place. It is kept as long as its
// devices, one for all of them: a kernel gives a process its address spaces once.
struct AmdIface {
  std::shared_ptr<os::Kernel> kernel;
  bool emulated = false;
  bool pci = false;         // without a kernel driver
  std::string pci_address;  // then: the one GPU that may be touched, as the user has named it
  // What an emulated machine has found since the last call. Its devices throw HazardFound.
  TakeFindings take_findings;

  std::shared_ptr<amd::Process> process;  // with the first device that is opened
  std::mutex mutex;                       // of `process`
};

// The one that AMD_IFACE names: one machine for a process and setting. Throws InvalidArgument for
// an unknown one.
using EmulatedAmd = std::unique_ptr<AmdIface> (*)();  // makes the machine that TUFF_MOCK describes
AmdIface& amd_iface(EmulatedAmd emulated);

// Every GPU, or one candidate with the reason why there is none.
std::vector<Candidate> amd_probe(AmdIface& iface);
// selector: "", a number, or "uuid=...". Throws as DeviceKind::open says.
std::unique_ptr<hcq::Device> amd_open(AmdIface& iface, const std::string& selector);

}  // namespace tuff::devices
