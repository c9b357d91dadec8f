// The firmware of a GPU's system processor (GSP) that is on this machine, where distributions
// install it. Called by the boot by PCI. Downloads nothing.
#pragma once

#include <string>

#include "base/os_kernel.h"
#include "devices/nv/pci/chip.h"
#include "devices/nv/pci/firmware.h"

namespace tuff::devices::nv {

struct Firmware {
  std::string version, folder;
  GspImage gsp;
  Bootloader bootloader;
  Booter load, unload;  // of Ampere and Ada
  Fmc fmc;              // of Hopper and Blackwell
};
// The newest version that is known and there with all its files, of the chips of a family.
// Unsupported, naming the folders that were looked at and the package, where there is none, or a
// file of one is missing.
Firmware load_firmware(os::Kernel& kernel, const ChipFamily& family);

}  // namespace tuff::devices::nv
