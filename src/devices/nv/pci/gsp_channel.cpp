#include "devices/nv/pci/gsp_channel.h"

#include <algorithm>

#include "base/check.h"

namespace tuff::devices::nv {

// ---- the group

GspChannelGroup::GspChannelGroup(GspSpace& space)
    : ChannelGroup(space, {space.gpu().calls(), gsp_branch(), space.gpu().device_object(),
                           space.addresses().handle()}),
      space_(space) {
  doorbell_ = reinterpret_cast<uint32_t*>(space.gpu().doorbells() + nvrm::kDoorbell);
}

GspChannelGroup::~GspChannelGroup() { stop(); }

std::unique_ptr<Channel> GspChannelGroup::make_channel(std::span<const uint32_t> engine_classes) {
  return std::make_unique<GspChannel>(*this, engine_classes);
}

// What channels of a group leave memory to be given back must not go on.
void GspChannelGroup::on_runaway() noexcept {
  space_.gpu().reset("its channels could not be stopped");
}

// The first is what ended the group, others follow from it. Without the firmware there is nothing
// that could go on.
[[gnu::hot]]
std::optional<ChannelError> GspChannelGroup::error(const Channel&) {
  try {
    const std::vector<GspChannelError> errors = space_.gpu().calls()->take_errors();
    if (errors.empty()) return std::nullopt;
    ChannelError e;
    e.text = channel_error_text(errors[0].code);
    e.address = errors[0].address;
    if (e.address) e.text += fmt::format(" at {:#x}", *e.address);
    return e;
  } catch (const DeviceLost& lost) {
    return ChannelError{lost.what(), std::nullopt};
  }
}

// ---- a channel

GspChannel::GspChannel(GspChannelGroup& group, std::span<const uint32_t> engine_classes)
    : Channel(group),
      group_(group),
      memory_(gpu().device(), gpu().video(), *gpu().calls(), gpu().subdevice()) {
  nvrm::ChannelParameters p = parameters();
  const uint64_t ring = static_cast<const GspBuffer&>(memory()).physical();
  memory_.describe(p, ring + kUserdOffset, ChannelPrivilege::User);
  create(p);
  try {
    const uint32_t compute = gpu().facts().generation->compute_class;
    if (std::ranges::find(engine_classes, compute) != engine_classes.end())
      context_.emplace(gpu().graphics_parts(), group.gsp_space().addresses(), handle(),
                       &gpu().golden());
    add_engines(engine_classes);
  } catch (...) {
    destroy();
    throw;
  }
}

// What the firmware was told of for the channel goes after it.
GspChannel::~GspChannel() {
  group_.stop();
  destroy();
}

uint32_t GspChannel::token_bits() const { return gpu().family().token_bits; }

}  // namespace tuff::devices::nv
