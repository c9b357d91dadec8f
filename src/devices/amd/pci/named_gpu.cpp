#include "devices/amd/pci/named_gpu.h"

#include "base/check.h"

namespace tuff::devices::amd {
namespace {

constexpr uint16_t kAmd = 0x1002;
// Class and subclass of GPUs (PCI Code and ID Assignment Specification): VGA and other display
// controllers; the latter drive no screen.
constexpr uint32_t kVga = 0x0300, kOther = 0x0380;

bool is_gpu(const PciFunction& f) {
  const uint32_t kind = f.class_code >> 8;
  return kind == kVga || kind == kOther;
}

[[noreturn]] void fail_unnamed(os::Kernel& kernel) {
  std::vector<std::string> gpus;
  for (const PciFunction& f : pci_functions(kernel, kAmd))
    if (is_gpu(f)) gpus.push_back(describe(f));
  fail<Unsupported>(
      "AMD_IFACE=PCI touches no GPU but the one that AMD_PCI names, as AMD_PCI=0000:03:00.0; on "
      "the bus: {}",
      gpus.empty() ? "none of AMD's" : fmt::format("{}", fmt::join(gpus, ", ")));
}

}  // namespace

PciFunction named_gpu(os::Kernel& kernel, const std::string& address) {
  if (address.empty()) fail_unnamed(kernel);
  PciFunction f = pci_function(kernel, pci_address(address, "AMD_PCI"));
  if (f.vendor != kAmd)
    fail<Unsupported>("AMD_PCI: {} is not AMD's ({:04x})", describe(f), kAmd);
  if (!is_gpu(f))
    fail<Unsupported>("AMD_PCI: {} of class {:#08x} is no GPU (classes {:#06x} and {:#06x})",
                      describe(f), f.class_code, kVga, kOther);
  const std::string refusal = pci_refusal(kernel, f);
  if (!refusal.empty()) fail<Unsupported>("AMD_PCI={}: {}", f.address, refusal);
  return f;
}

}  // namespace tuff::devices::amd
