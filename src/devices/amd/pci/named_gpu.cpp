#include "devices/amd/pci/named_gpu.h"

#include "devices/named_gpu.h"

namespace tuff::devices::amd {
namespace {

// Class and subclass (PCI Code and ID Assignment Specification): VGA and other display
// controllers; the latter drive no screen.
constexpr GpuMaker kMaker{"AMD's", "AMD_IFACE=PCI", "AMD_PCI", 0x1002, {{0x0300, 0x0380}}};

}  // namespace

PciFunction named_gpu(os::Kernel& kernel, const std::string& address) {
  return devices::named_gpu(kernel, kMaker, address);
}

}  // namespace tuff::devices::amd
