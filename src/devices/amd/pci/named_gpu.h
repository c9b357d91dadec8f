// The GPU that AMD_IFACE=PCI may touch: the one that the user named, if no driver holds it. Asked
// when devices are listed and opened. Reads sysfs alone.
#pragma once

#include "devices/pci_functions.h"

namespace tuff::devices::amd {

// `address` is AMD_PCI's text. InvalidArgument for what is no address; Unsupported, with the value
// and the remedy, if it is empty, no GPU of AMD's, or may not be taken.
PciFunction named_gpu(os::Kernel& kernel, const std::string& address);

}  // namespace tuff::devices::amd
