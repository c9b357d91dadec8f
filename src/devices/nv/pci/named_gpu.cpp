#include "devices/nv/pci/named_gpu.h"

#include "base/check.h"

namespace tuff::devices::nv {
namespace {

constexpr uint16_t kNvidia = 0x10de;
// Class and subclass of GPUs (PCI Code and ID Assignment Specification): VGA controllers, and 3D
// controllers, which drive no screen.
constexpr uint32_t kVga = 0x0300, k3d = 0x0302;

bool is_gpu(const PciFunction& f) {
  const uint32_t kind = f.class_code >> 8;
  return kind == kVga || kind == k3d;
}

[[noreturn]] void fail_unnamed(os::Kernel& kernel) {
  std::vector<std::string> gpus;
  for (const PciFunction& f : pci_functions(kernel, kNvidia))
    if (is_gpu(f)) gpus.push_back(describe(f));
  fail<Unsupported>(
      "NV_IFACE=PCI touches no GPU but the one that NV_PCI names, as NV_PCI=0000:01:00.0; on the "
      "bus: {}",
      gpus.empty() ? "none of NVIDIA's" : fmt::format("{}", fmt::join(gpus, ", ")));
}

}  // namespace

PciFunction named_gpu(os::Kernel& kernel, const std::string& address) {
  if (address.empty()) fail_unnamed(kernel);
  PciFunction f = pci_function(kernel, pci_address(address, "NV_PCI"));
  if (f.vendor != kNvidia)
    fail<Unsupported>("NV_PCI: {} is not NVIDIA's ({:04x})", describe(f), kNvidia);
  if (!is_gpu(f))
    fail<Unsupported>("NV_PCI: {} of class {:#08x} is no GPU (classes {:#06x} and {:#06x})",
                      describe(f), f.class_code, kVga, k3d);
  const std::string refusal = pci_refusal(kernel, f);
  if (!refusal.empty()) fail<Unsupported>("NV_PCI={}: {}", f.address, refusal);
  return f;
}

}  // namespace tuff::devices::nv
