// ChannelMemory: what the GSP's firmware asks for beside a channel's ring, by physical addresses:
// the instance block, which begins with RAMFC, and the buffer that methods are kept in when a
// channel is switched away. Used by PciGpu and GspChannel, and gone after the channel.
// Sources: open-gpu-kernel-modules @8ec351a (570.144), src/nvidia/src/kernel/gpu/fifo/
// kernel_channel.c (_kchannelSendChannelAllocRpc), alloc_channel.h; Linux, nouveau's
// gsp/rm/r535/fifo.c @0c6aa94 (sizes).
#pragma once

#include "devices/nv/pci/gsp_calls.h"
#include "devices/nv/pci/video_memory.h"
#include "devices/pci_device.h"

namespace tuff::devices::nv {

enum class ChannelPrivilege : uint32_t { User = 0, Admin = 1 };

class ChannelMemory {
 public:
  // `subdevice` is an object of `calls`.
  ChannelMemory(PciDevice& device, VideoMemory& video, const GspCalls& calls,
                nvrm::Handle subdevice);
  // Fills in these, and where USERD is.
  void describe(nvrm::ChannelParameters& parameters, uint64_t userd,
                ChannelPrivilege privilege) const;

 private:
  VideoPiece instance_;
  DmaMemory methods_;
};

}  // namespace tuff::devices::nv
