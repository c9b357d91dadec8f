// ChannelGroup and Channel: the queues of a GPU as RM makes them: a group with a subcontext and the
// memory that errors are left in; channels with a ring of GPFIFO entries, USERD, the engine that
// their methods go to, a token for the doorbell. Made by NvDevice and NvQueue. Know where entries
// go, not what they say.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devices/nv/rm/memory.h"

namespace tuff::devices::nv {

class Channel;

// An error that a channel was ended by, with the fault of the MMU where that was it.
struct ChannelError {
  std::string text;
  std::optional<uint64_t> address;
};

class ChannelGroup {
 public:
  explicit ChannelGroup(Space& space);
  ~ChannelGroup();
  ChannelGroup(const ChannelGroup&) = delete;
  Space& space() const { return space_; }
  nvrm::Handle group() const { return group_->handle(); }
  nvrm::Handle subcontext() const { return subcontext_->handle(); }
  nvrm::Handle notifier() const { return notifiers_.handle(); }
  // Once all channels are there.
  void schedule();
  // Nothing runs from here on. Any number of times.
  void stop() noexcept;
  // A look at memory, unless there is one.
  std::optional<ChannelError> error(const Channel& first) const;
  uint32_t* doorbell() const { return reinterpret_cast<uint32_t*>(usermode_ + nvrm::kDoorbell); }

 private:
  void set_running(bool running);
  Space& space_;
  Buffer notifiers_;
  std::unique_ptr<Object> group_, subcontext_, usermode_object_;
  std::byte* usermode_ = nullptr;
  std::mutex mutex_;
  bool running_ = false;
};

class Channel {
 public:
  static constexpr uint32_t kEntries = 1024;
  // `engine_classes`: whose methods it takes.
  Channel(ChannelGroup& group, std::span<const uint32_t> engine_classes);
  ~Channel();
  Channel(const Channel&) = delete;
  nvrm::Handle handle() const { return channel_->handle(); }
  // Once the group runs: what the doorbell wants to be rung with.
  void read_token();
  // The n-th entry since the beginning; that kEntries - 1 before it has been taken.
  void push(uint64_t number, uint64_t entry);
  // Asks for the memory that such a push comes to, as far as processors keep it in caches.
  void prefetch_entry(uint64_t number) const {
    __builtin_prefetch(entries() + number % kEntries, 1);
    __builtin_prefetch(put(), 1);
    __builtin_prefetch(group_.doorbell(), 1);
  }

 private:
  static constexpr size_t kEntryBytes = 8;
  uint64_t* entries() const { return reinterpret_cast<uint64_t*>(memory_.host()); }
  uint32_t* put() const {
    return reinterpret_cast<uint32_t*>(memory_.host() + kEntries * kEntryBytes + nvrm::kGpPut);
  }
  void create(std::span<const uint32_t> engine_classes);
  void register_with_uvm();
  void release() noexcept;
  ChannelGroup& group_;
  Buffer memory_;  // entries, then USERD
  std::unique_ptr<Object> channel_;
  std::vector<std::unique_ptr<Object>> engines_;
  uint64_t window_ = 0;
  bool registered_ = false;
  uint32_t token_ = 0;
};

}  // namespace tuff::devices::nv
