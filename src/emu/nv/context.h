// Context: the channels of one address space, stepped together: one piece of work of one of them,
// drawn by seed among all that may go on. Made by rm/ with a VA space. Thread-safe: a step and a
// call exclude each other.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "emu/nv/channel.h"

namespace tuff::emu::nv {

class Context {
 public:
  // `stop`: once so many methods were taken, no channel takes another; 0: never.
  Context(uint32_t gpu, const ChipKind& chip, Reports& reports, uint64_t seed, uint64_t stop,
          std::shared_ptr<PeerMemory> peers)
      : world_(gpu, chip, addresses, reports, seed, std::move(peers)) {
    world_.methods_left = stop ? stop : ~uint64_t{0};
  }
  // Launches to come are counted and told of. Before the first of them.
  void profile_launches(const emu_api::ProfileOptions& options) {
    world_.profiler = std::make_unique<profile::Profiler>(options, profile::Vendor::Nvidia);
  }

  AddressSpace addresses;
  // `failed` is told of the error that ends the channel, and with it its group.
  void attach(const ChannelSetup& setup, std::function<void(const ChannelError&)> failed);
  void add_engine(uint32_t channel, uint32_t engine_class);
  void detach(uint32_t channel);
  // A group that is not scheduled takes no method and runs nothing.
  void schedule(uint32_t group, bool runs);
  void unmap(uint64_t address);
  void ring();  // the doorbell
  // False if nothing can be done before the host does something.
  bool step();
  bool has(uint32_t token);  // a channel that the doorbell is rung for so
  std::string blocked();

 private:
  struct Turn;  // one of a call, which goes before the next step
  void stop_group(uint32_t group);
  World world_;
  std::mutex mutex_;
  std::atomic<uint32_t> visitors_ = 0;
  std::vector<std::unique_ptr<Channel>> channels_;
  std::vector<uint32_t> running_;  // groups
  std::vector<Channel::Choice> choices_;
};

}  // namespace tuff::emu::nv
