// GspChannelGroup and GspChannel: channels that the GSP's firmware makes, called by this process:
// their memory is named by physical addresses, a context of the graphics engine is made here where
// one computes, and errors come as events. Made by GspSpace.
#pragma once

#include <optional>

#include "devices/nv/pci/channel_memory.h"
#include "devices/nv/pci/gsp_space.h"
#include "devices/nv/rm/channel.h"

namespace tuff::devices::nv {

class GspChannelGroup final : public ChannelGroup {
 public:
  explicit GspChannelGroup(GspSpace& space);
  ~GspChannelGroup() override;
  std::unique_ptr<Channel> make_channel(std::span<const uint32_t> engine_classes) override;
  std::optional<ChannelError> error(const Channel& first) override;
  GspSpace& gsp_space() const { return space_; }

 private:
  void on_runaway() noexcept override;
  GspSpace& space_;
};

class GspChannel final : public Channel {
 public:
  GspChannel(GspChannelGroup& group, std::span<const uint32_t> engine_classes);
  ~GspChannel() override;

 private:
  uint32_t token_bits() const override;
  PciGpu& gpu() const { return group_.gsp_space().gpu(); }
  GspChannelGroup& group_;
  const ChannelMemory memory_;
  std::optional<GraphicsContext> context_;  // of a channel that computes
};

}  // namespace tuff::devices::nv
