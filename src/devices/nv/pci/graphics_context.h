// GraphicsContext: the buffers that the graphics engine, which computes, keeps a channel's state
// in: memory that the firmware asks for, mapped where it is told. The first context of a GPU (the
// golden one) has all of them, and later ones share most of its. Used by PciGpu and GspChannel.
// Sources: open-gpu-kernel-modules @8ec351a (570.144), src/nvidia/src/kernel/gpu/gr/
// kernel_graphics_context.c and arch/maxwell/kgraphics_gm200.c (which buffers), ctrl2080gpu.h
// (which are zeroed); Linux, nouveau's gsp/rm/r535/gr.c @0c6aa94 (which are shared, sizes).
#pragma once

#include <memory>
#include <vector>

#include "devices/nv/pci/gsp_va_space.h"
#include "devices/nv/pci/video_memory.h"

namespace tuff::devices::nv {

// What they are made with, which outlives them.
struct GraphicsParts {
  std::shared_ptr<GspCalls> calls;
  nvrm::Handle subdevice = 0;
  VideoMemory& video;
};

// Their memory; null for those that each context has of its own.
struct ContextMemory {
  struct Piece {
    uint16_t id = 0;
    std::shared_ptr<VideoPiece> memory;
  };
  std::vector<Piece> pieces;
  std::shared_ptr<VideoPiece> find(uint16_t id) const;
};

class GraphicsContext {
 public:
  // For `channel`, which has no object that computes yet; its buffers are mapped in `space` until
  // this goes, which has to be after the channel. `golden`: memory of the first context; null: this
  // is the first.
  GraphicsContext(const GraphicsParts& parts, GspVaSpace& space, nvrm::Handle channel,
                  const ContextMemory* golden);
  ~GraphicsContext();
  GraphicsContext(const GraphicsContext&) = delete;
  // For later contexts.
  ContextMemory shared() const;

 private:
  struct Mapped {
    uint16_t id = 0;
    bool shared = false;
    std::shared_ptr<VideoPiece> memory;
    uint64_t address = 0;  // 0: it is not mapped
  };
  void release() noexcept;
  GspVaSpace& space_;
  std::vector<Mapped> buffers_;
};

}  // namespace tuff::devices::nv
