// GraphicsContexts: the buffers of the graphics engine's contexts, as the firmware asks for them
// and is given them: sizes, GPU_PROMOTE_CTX, and that nothing computes on a channel before a first
// context has been made with all of them (the golden one, whose shared buffers later ones map,
// too). Owned by GspChannels. Sources: open-gpu-kernel-modules @8ec351a (570.144), src/nvidia/src/
// kernel/gpu/gr/kernel_graphics_context.c (what is promoted), ctrl2080gpu.h (which are to be
// zeroed); Linux, nouveau's gsp/rm/r535/gr.c @0c6aa94 (in which order). Sizes are invented.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "emu/nv/pci/table_mappings.h"
#include "emu/nv/rm/objects.h"

namespace tuff::emu::nv {

class GraphicsContexts {
 public:
  explicit GraphicsContexts(const PhysicalMemory& memory) : memory_(memory) {}
  static void fill_sizes(std::span<std::byte> parameters);
  // `mappings` are those of the channel's VA space. RmRefused.
  void promote(const nvrm::PromoteContext& request, const TableMappings* mappings);
  // Before an object of compute. RmRefused.
  void check(nvrm::Handle channel);
  // Whose buffers are not where they were promoted, while the channel is there.
  void check_mapped() const;
  void forget(nvrm::Handle channel) { contexts_.erase(channel); }

 private:
  struct Context {
    const TableMappings* mappings = nullptr;
    std::map<uint16_t, nvrm::PromotedBuffer> buffers;
  };
  void check_buffer(const nvrm::PromotedBuffer& b, const TableMappings& mappings) const;
  const PhysicalMemory& memory_;
  std::map<nvrm::Handle, Context> contexts_;  // by channel
  bool has_golden_ = false;
};

}  // namespace tuff::emu::nv
