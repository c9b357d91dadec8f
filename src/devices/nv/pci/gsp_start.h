// GspStart: how the firmware of a GPU's system processor (GSP) is started and ended: by a booter on
// a falcon (Ampere, Ada), or by FSP (Hopper, Blackwell). Called by Gsp in this order. Knows nothing
// of calls to the firmware.
#pragma once

#include <memory>

#include "devices/nv/pci/boot_memory.h"
#include "devices/nv/pci/boot_registers.h"
#include "devices/nv/pci/falcon.h"
#include "devices/nv/pci/installed_firmware.h"

namespace tuff::devices::nv {

// Where the firmware lies in the host's memory.
struct FirmwareRanges {
  uint64_t image_table = 0, image_bytes = 0;
  DmaRange bootloader, signature;
};

class GspStart {
 public:
  virtual ~GspStart() = default;
  // Whether nothing runs there that a process before has left. Waits for the GPU's own start.
  virtual bool is_clean() const = 0;
  // Unsupported for GPUs that cannot be started so, DeviceLost for those that no reset has helped.
  virtual void prepare() = 0;
  // Of protected memory, once prepared.
  virtual Bytes description(const FirmwareRanges& ranges) const = 0;
  // Addresses of that and of libos's arguments. The firmware runs then.
  virtual void start(uint64_t description, uint64_t libos_arguments) = 0;
  // Again, after it has asked for that.
  virtual void resume() = 0;
  // After the firmware has said that it has ended.
  virtual void end() = 0;
};

// What they work with, which outlives them.
struct GspParts {
  PciDevice& device;
  const Firmware& firmware;
  const BootRegisters& registers;
  const Chip& chip;
  Falcon& gsp;
  BootMemory& memory;
  uint64_t timeout_ms = 0;
};
std::unique_ptr<GspStart> start_by_booter(const GspParts& parts);
std::unique_ptr<GspStart> start_by_fsp(const GspParts& parts);

}  // namespace tuff::devices::nv
