// NVIDIA's GPUs by direct submission: channels of methods in memory, semaphores that are words of
// memory, machine code; through NVIDIA's kernel driver alone, or by PCI, without it.
// Called through the registry and by tests. Must never know UOps or rules, nor whether a GPU is
// emulated, but to say so.
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

namespace nv {
class Client;
}

// How the GPUs are reached: the system, or a machine in its place; and what makes machine code of
// PTX for them. It is kept longer than its devices.
struct NvIface {
  std::shared_ptr<os::Kernel> kernel;
  bool emulated = false;
  bool pci = false;  // without NVIDIA's kernel driver
  std::string pci_address;  // then: the one GPU that may be touched, as the user has named it
  TakeFindings take_findings;  // its devices throw HazardFound
  // An object file of a text of PTX, for compute capability `sm`. Throws CompileError, or
  // Unsupported where there is no assembler.
  std::function<std::vector<uint8_t>(const std::string& ptx, uint32_t sm)> assemble;

  std::weak_ptr<nv::Client> client;  // of the devices that are open
  std::mutex mutex;                  // of `client`
};

// The one that NV_IFACE names: one machine for a process and setting.
using EmulatedNv = std::unique_ptr<NvIface> (*)();  // makes the machine that TUFF_MOCK describes
NvIface& nv_iface(EmulatedNv emulated);

// Every GPU, or one candidate with the reason why there is none.
std::vector<Candidate> nv_probe(NvIface& iface);
// selector: "", a number, or "uuid=...". Throws as DeviceKind::open says.
std::unique_ptr<hcq::Device> nv_open(NvIface& iface, const std::string& selector);

}  // namespace tuff::devices
