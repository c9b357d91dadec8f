// What the system processor (GSP) asks of the host while it starts, since it cannot reset itself: a
// sequence of accesses to registers and of commands to its own core. Called by the boot by PCI for
// messages of that kind. Everything in them is checked.
// Sources: open-gpu-kernel-modules @8ec351a (570.144), src/nvidia/arch/nvalloc/common/inc/
// rmgspseq.h (commands), kernel_gsp.c, kgspExecuteSequencerBuffer (rules); Linux
// drivers/gpu/drm/nouveau/nvkm/subdev/gsp/rm/r535/gsp.c @44f93b2 (4 s where no time is named).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "devices/pci_device.h"

namespace tuff::devices::nv {

// The core that the GSP runs on.
class GspCore {
 public:
  virtual ~GspCore() = default;
  virtual void reset() = 0;
  virtual void start() = 0;
  virtual void wait_until_halted() = 0;
  virtual void resume() = 0;  // into the firmware, by who started it first
};

using SavedRegisters = std::array<uint32_t, 8>;
// `message`: the payload of GSP_RUN_CPU_SEQUENCER. What it had saved. DeviceLost for a sequence
// that is damaged, and for a register that does not get the value that was waited for.
SavedRegisters run_sequence(std::span<const uint8_t> message, const PciDevice& device,
                            GspCore& core);

}  // namespace tuff::devices::nv
