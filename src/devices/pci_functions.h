// PciFunction: what sysfs says of a function of the PCI bus, and why a driver in user space may not
// take it. Used by drivers that reach GPUs without a kernel driver. Reads only; knows no GPUs.
// Sources: Linux Documentation/ABI/testing/{sysfs-bus-pci,sysfs-kernel-iommu_groups},
// Documentation/PCI/sysfs-pci.rst.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/os_kernel.h"

namespace tuff::devices {

inline constexpr size_t kPciBars = 6;

struct PciFunction {
  std::string address;                // "0000:01:00.0": domain, bus, device, function
  uint16_t vendor = 0, device = 0;
  uint32_t class_code = 0;            // class, subclass, interface: 0x030000
  std::string driver;                 // the kernel's that is bound to it; empty: none
  std::string iommu_group;            // its number; empty: no IOMMU translates for it
  std::array<uint64_t, kPciBars> bar_bytes{}, bar_address{};  // 0: there is none; on the bus
};

// "0000:01:00.0 (10de:2204, driver nvidia)"
std::string describe(const PciFunction& f);

// `text`, which may leave out the domain 0000. InvalidArgument, naming the variable.
std::string pci_address(const std::string& text, const char* variable);

// Those of a vendor, by address; what cannot be read is left out. Empty without a PCI bus.
std::vector<PciFunction> pci_functions(os::Kernel& kernel, uint16_t vendor);

// Unsupported, naming file and contents, for what is not there or cannot be understood.
PciFunction pci_function(os::Kernel& kernel, const std::string& address);

// Why it may not be taken, with the remedy; empty: it may. It has to be bound to vfio-pci, and
// nothing else may hold a function of its IOMMU group, whose memory it would share.
std::string pci_refusal(os::Kernel& kernel, const PciFunction& f);

}  // namespace tuff::devices
