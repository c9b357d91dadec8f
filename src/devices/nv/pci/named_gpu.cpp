#include "devices/nv/pci/named_gpu.h"

#include "devices/named_gpu.h"

namespace tuff::devices::nv {
namespace {

// Class and subclass (PCI Code and ID Assignment Specification): VGA controllers, and 3D
// controllers, which drive no screen.
constexpr GpuMaker kMaker{"NVIDIA's", "NV_IFACE=PCI", "NV_PCI", 0x10de, {{0x0300, 0x0302}}};

}  // namespace

PciFunction named_gpu(os::Kernel& kernel, const std::string& address) {
  return devices::named_gpu(kernel, kMaker, address);
}

}  // namespace tuff::devices::nv
