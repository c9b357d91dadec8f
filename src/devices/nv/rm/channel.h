// ChannelGroup and Channel: the queues of a GPU as its resource manager (RM) makes them: a group
// with a subcontext; channels with a ring of GPFIFO entries, USERD, the engine that their methods
// go to, a token for the doorbell. Made by a Space for NvDevice and NvQueue. Who drives the GPU
// adds the rest: memory that RM asks for, and where errors are left (uvm_channel.h,
// pci/gsp_channel.h). Know where entries go, not what they say.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "devices/nv/rm/object_calls.h"
#include "devices/nv/rm/space.h"

namespace tuff::devices::nv {

class Channel;

// An error that a channel was ended by, with the fault of the MMU where that was it.
struct ChannelError {
  std::string text;
  std::optional<uint64_t> address;
};
// "channel error 31: a fault of the MMU"
std::string channel_error_text(uint32_t code);

// The objects that a group is made of, which outlive it.
struct GroupParents {
  std::shared_ptr<ObjectCalls> calls;
  const nvrm::Branch& branch;
  nvrm::Handle device = 0, space = 0;
};

class ChannelGroup {
 public:
  virtual ~ChannelGroup();
  ChannelGroup(const ChannelGroup&) = delete;
  // `engine_classes`: whose methods it takes.
  virtual std::unique_ptr<Channel> make_channel(std::span<const uint32_t> engine_classes) = 0;
  // A look at memory, unless there is one. `first` is any of its channels.
  virtual std::optional<ChannelError> error(const Channel& first) = 0;
  // Once all channels are there.
  void schedule();
  // Nothing runs from here on. Any number of times.
  void stop() noexcept;
  Space& space() const { return space_; }
  const GroupParents& parents() const { return parents_; }
  nvrm::Handle group() const { return group_->handle(); }
  nvrm::Handle subcontext() const { return subcontext_->handle(); }
  uint32_t* doorbell() const { return doorbell_; }

 protected:
  ChannelGroup(Space& space, GroupParents parents);
  uint32_t* doorbell_ = nullptr;

 private:
  void set_running(bool running);
  // Where stopping it fails twice.
  virtual void on_runaway() noexcept {}
  Space& space_;
  const GroupParents parents_;
  std::unique_ptr<Object> group_, subcontext_;
  std::mutex mutex_;
  bool running_ = false;
};

class Channel {
 public:
  static constexpr uint32_t kEntries = 1024;
  virtual ~Channel();
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

 protected:
  static constexpr size_t kUserdOffset = kEntries * sizeof(uint64_t);
  explicit Channel(ChannelGroup& group);
  // What is the same for all, to be completed; made; with engines.
  nvrm::ChannelParameters parameters() const;
  void create(const nvrm::ChannelParameters& parameters);
  void add_engines(std::span<const uint32_t> classes);
  // The channel is gone, its memory not yet.
  void destroy() noexcept;
  const Buffer& memory() const { return *memory_; }

 private:
  uint64_t* entries() const { return reinterpret_cast<uint64_t*>(memory_->host()); }
  uint32_t* put() const {
    return reinterpret_cast<uint32_t*>(memory_->host() + kUserdOffset + nvrm::kGpPut);
  }
  // Bits of a token that the resource manager leaves to its caller.
  virtual uint32_t token_bits() const { return 0; }
  ChannelGroup& group_;
  const std::unique_ptr<Buffer> memory_;  // entries, then USERD
  std::unique_ptr<Object> channel_;
  std::vector<std::unique_ptr<Object>> engines_;
  uint32_t token_ = 0;
};

}  // namespace tuff::devices::nv
