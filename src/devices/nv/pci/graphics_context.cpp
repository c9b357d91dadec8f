#include "devices/nv/pci/graphics_context.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/arith.h"
#include "base/check.h"
#include "base/log.h"

namespace tuff::devices::nv {
namespace {

namespace buffer = nvrm::context_buffer;

// `size`: which of the firmware's sizes it has. Initialized ones are zeroed by the host, and named
// by their physical address.
struct ContextBufferKind {
  uint16_t id;
  uint8_t size;
  bool shared, initialized, writable;
};
constexpr ContextBufferKind kContextBuffers[] = {
    {buffer::Main, 0x00, false, true, true},
    {buffer::Patch, 0x10, false, true, true},
    {buffer::Bundles, 0x11, true, false, true},
    {buffer::PagePool, 0x12, true, false, true},
    {buffer::Attributes, 0x13, true, false, true},
    {buffer::RenderTargets, 0x14, true, false, true},
    {buffer::Events, 0x17, true, true, true},
    {buffer::AccessMap, 0x18, true, true, false},
    {buffer::UnrestrictedAccessMap, 0x18, true, true, false},
};
constexpr uint64_t kPage = 4096, kSubcontexts = 64;  // each with a page behind the main buffer

nvrm::ContextBufferSizes read_sizes(const GraphicsParts& parts) {
  const auto sizes = std::make_unique<nvrm::ContextBufferSizes>();
  parts.calls->control(parts.subdevice, nvrm::control::ContextBufferSizes,
                       "INTERNAL_STATIC_KGR_GET_CONTEXT_BUFFERS_INFO", *sizes);
  return *sizes;
}

uint64_t bytes_of(const ContextBufferKind& kind, const nvrm::ContextBufferSizes& sizes) {
  const uint64_t bytes = align_up(uint64_t{sizes[0][kind.size].bytes}, kPage);
  if (bytes == 0) fail<DeviceLost>("NV: the GSP names no size of context buffer {}", kind.id);
  return bytes + (kind.id == buffer::Main ? kSubcontexts * kPage : 0);
}

uint64_t page_for(uint64_t bytes) {
  return bytes >= 2u << 20 ? 2u << 20 : bytes >= 64u << 10 ? 64u << 10 : kPage;
}

}  // namespace

std::shared_ptr<VideoPiece> ContextMemory::find(uint16_t id) const {
  const auto found = std::ranges::find(pieces, id, &Piece::id);
  return found == pieces.end() ? nullptr : found->memory;
}

GraphicsContext::GraphicsContext(const GraphicsParts& parts, GspVaSpace& space,
                                 nvrm::Handle channel, const ContextMemory* golden)
    : space_(space) {
  const nvrm::ContextBufferSizes sizes = read_sizes(parts);
  nvrm::PromoteContext request{};
  request.engine = nvrm::kEngineGraphics;
  request.channel_client = parts.calls->root();
  request.channel = channel;
  try {
    for (const ContextBufferKind& kind : kContextBuffers) {
      if (golden && kind.id == buffer::UnrestrictedAccessMap) continue;
      const uint64_t bytes = bytes_of(kind, sizes);
      const bool fresh = !golden || !kind.shared, initialized = kind.initialized && fresh;
      Mapped& b = buffers_.emplace_back(Mapped{kind.id, kind.shared});
      b.memory = fresh ? std::make_shared<VideoPiece>(parts.video, bytes, page_for(bytes),
                                                      initialized)
                       : golden->find(kind.id);
      TUFF_CHECK(b.memory);
      if (initialized) std::memset(b.memory->host(), 0, bytes);
      nvrm::PromotedBuffer& p = request.buffers[request.count++];
      p.id = kind.id;
      p.initialize = initialized;
      p.unmapped = fresh && kind.id == buffer::AccessMap;
      const uint64_t alignment =
          kind.id == buffer::Attributes ? std::bit_ceil(bytes) : page_for(bytes);
      if (!p.unmapped)
        p.address = b.address =
            space.map(b.memory->address(), bytes, alignment,
                      {.writable = kind.writable, .cached = !kind.initialized});
      if (!initialized) continue;
      p.physical = b.memory->address();
      p.size_bytes = bytes;
      p.attributes = nvrm::kUncachedVideo;
    }
    parts.calls->control(parts.subdevice, nvrm::control::PromoteContext, "GPU_PROMOTE_CTX",
                         request);
  } catch (...) {
    release();
    throw;
  }
}

GraphicsContext::~GraphicsContext() { release(); }

void GraphicsContext::release() noexcept {
  for (const Mapped& b : buffers_) {
    if (!b.address) continue;
    try {
      space_.unmap(b.address, b.memory->size_bytes());
    } catch (const Error& e) {
      log_warn("{}", e.what());
    }
  }
}

ContextMemory GraphicsContext::shared() const {
  ContextMemory out;
  for (const Mapped& b : buffers_)
    if (b.shared) out.pieces.push_back({b.id, b.memory});
  return out;
}

}  // namespace tuff::devices::nv
