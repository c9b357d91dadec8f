#include "emu/nv/pci/graphics_contexts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace tuff::emu::nv {
namespace {

using nvrm::Status;
namespace buffer = nvrm::context_buffer;

// `number`: that of its size. Those that are not shared are made for each context.
struct BufferKind {
  uint16_t id;
  uint32_t number, bytes;
  bool initialized, shared;
};
constexpr BufferKind kBuffers[] = {
    {buffer::Main, 0x00, 0x14c000, true, false},   {buffer::Patch, 0x10, 0x9000, true, false},
    {buffer::Bundles, 0x11, 0x3000, false, true},  {buffer::PagePool, 0x12, 0x20000, false, true},
    {buffer::Attributes, 0x13, 0x210000, false, true},
    {buffer::RenderTargets, 0x14, 0x1000, false, true},
    {buffer::Events, 0x17, 0x4000, true, true},    {buffer::AccessMap, 0x18, 0x80000, true, true},
    {buffer::UnrestrictedAccessMap, 0x18, 0x80000, true, true},
};
constexpr uint64_t kSubcontextBytes = 64 * 4096;  // beside the main buffer

const BufferKind* kind_of(uint16_t id) {
  const auto* found = std::ranges::find(kBuffers, id, &BufferKind::id);
  return found == std::end(kBuffers) ? nullptr : found;
}

uint64_t least_bytes(const BufferKind& kind) {
  return kind.bytes + (kind.id == buffer::Main ? kSubcontextBytes : 0);
}

}  // namespace

void GraphicsContexts::fill_sizes(std::span<std::byte> parameters) {
  if (parameters.size() != sizeof(nvrm::ContextBufferSizes))
    refuse_rm(Status::InvalidParamStruct, "sizes of context buffers in {} bytes",
              parameters.size());
  nvrm::ContextBufferSizes sizes{};
  for (const BufferKind& kind : kBuffers) sizes[0][kind.number] = {kind.bytes, 4096};
  std::memcpy(parameters.data(), &sizes, sizeof sizes);
}

void GraphicsContexts::check_buffer(const nvrm::PromotedBuffer& b,
                                    const TableMappings& mappings) const {
  const BufferKind* const kind = kind_of(b.id);
  if (!kind) refuse_rm(Status::InvalidArgument, "there is no context buffer {}", b.id);
  const uint64_t bytes = least_bytes(*kind);
  if (b.unmapped && !b.initialize)
    refuse_rm(Status::InvalidArgument, "context buffer {} is neither mapped nor initialized", b.id);
  if (!b.unmapped && !mappings.maps(b.address, bytes))
    refuse_rm(Status::InvalidAddress, "context buffer {} at {:#x} is not mapped", b.id, b.address);
  if (!b.initialize) return;
  if (!kind->initialized || b.attributes != nvrm::kUncachedVideo || b.size_bytes < bytes ||
      b.physical % 4096)
    refuse_rm(Status::InvalidArgument, "context buffer {} of {} bytes at {:#x}, attributes {:#x}",
              b.id, b.size_bytes, b.physical, b.attributes);
  const std::byte* const at = memory_.at(true, b.physical, b.size_bytes);
  if (!at) refuse_rm(Status::InvalidAddress, "context buffer {} at {:#x}", b.id, b.physical);
  if (std::any_of(at, at + b.size_bytes, [](std::byte x) { return x != std::byte{0}; }))
    refuse_rm(Status::InvalidArgument, "context buffer {} was not cleared", b.id);
}

void GraphicsContexts::promote(const nvrm::PromoteContext& request,
                               const TableMappings* mappings) {
  if (request.engine != nvrm::kEngineGraphics || request.count > request.buffers.size() ||
      !mappings)
    refuse_rm(Status::InvalidArgument, "{} context buffers of engine {}", request.count,
              request.engine);
  Context& context = contexts_[request.channel];
  context.mappings = mappings;
  for (uint32_t i = 0; i < request.count; ++i) {
    check_buffer(request.buffers[i], *mappings);
    context.buffers[request.buffers[i].id] = request.buffers[i];
  }
}

// The first has everything initialized; later ones have their own, and map the first one's.
void GraphicsContexts::check(nvrm::Handle channel) {
  const auto context = contexts_.find(channel);
  for (const BufferKind& kind : kBuffers) {
    const bool golden = !has_golden_;
    if (!golden && kind.id == buffer::UnrestrictedAccessMap) continue;
    const nvrm::PromotedBuffer* b = nullptr;
    if (context != contexts_.end())
      if (const auto found = context->second.buffers.find(kind.id);
          found != context->second.buffers.end())
        b = &found->second;
    const bool wanted = kind.initialized && (golden || !kind.shared);
    if (!b || bool(b->initialize) != wanted)
      refuse_rm(Status::InvalidState, "a{} context without buffer {}{}",
                golden ? " golden" : "", kind.id, wanted ? ", initialized" : "");
  }
  has_golden_ = true;
}

void GraphicsContexts::check_mapped() const {
  for (const auto& [channel, context] : contexts_)
    for (const auto& [id, b] : context.buffers)
      if (!b.unmapped && !context.mappings->maps(b.address, least_bytes(*kind_of(id))))
        memory_.mistake(
            fmt::format("context buffer {} is unmapped while its channel is there", id));
}

}  // namespace tuff::emu::nv
