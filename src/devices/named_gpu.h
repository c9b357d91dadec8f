// The GPU that a device may take from the PCI bus: the one that the user named, if no driver holds
// it. Asked when devices are listed and opened. Reads sysfs alone.
#pragma once

#include <array>

#include "devices/pci_functions.h"

namespace tuff::devices {

struct GpuMaker {
  const char* name;      // "NVIDIA's"
  const char* setting;   // by which GPUs are taken so: "NV_IFACE=PCI"
  const char* variable;  // that names one: "NV_PCI"
  uint16_t vendor;
  std::array<uint16_t, 2> classes;  // class and subclass of its GPUs
};

// `address` is the variable's text. InvalidArgument for what is no address; Unsupported, with the
// value and the remedy, if it is empty, no GPU of that maker, or may not be taken.
PciFunction named_gpu(os::Kernel& kernel, const GpuMaker& maker, const std::string& address);

}  // namespace tuff::devices
