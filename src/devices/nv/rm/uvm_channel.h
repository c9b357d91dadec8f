// UvmChannelGroup and UvmChannel: channels of NVIDIA's kernel driver: their memory is named by
// handles, errors are left in a record in memory, and unified memory (UVM) is told of each. Made by
// UvmSpace.
#pragma once

#include "devices/nv/rm/channel.h"
#include "devices/nv/rm/uvm_space.h"

namespace tuff::devices::nv {

class UvmChannelGroup final : public ChannelGroup {
 public:
  explicit UvmChannelGroup(UvmSpace& space);
  ~UvmChannelGroup() override;
  std::unique_ptr<Channel> make_channel(std::span<const uint32_t> engine_classes) override;
  std::optional<ChannelError> error(const Channel& first) override;
  UvmSpace& uvm_space() const { return space_; }
  nvrm::Handle notifier() const { return notifiers_.handle(); }

 private:
  UvmSpace& space_;
  UvmBuffer notifiers_;
  std::unique_ptr<Object> usermode_object_;
  std::byte* usermode_ = nullptr;
};

class UvmChannel final : public Channel {
 public:
  UvmChannel(UvmChannelGroup& group, std::span<const uint32_t> engine_classes);
  ~UvmChannel() override;

 private:
  void register_with_uvm();
  void release() noexcept;
  UvmChannelGroup& group_;
  uint64_t window_ = 0;
  bool registered_ = false;
};

}  // namespace tuff::devices::nv
