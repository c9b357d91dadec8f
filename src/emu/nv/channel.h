// Channel: the host engine of one channel: entries of its GPFIFO, methods, semaphores; and behind
// it a compute and a copy engine. Stepped by context.cpp, in turns with the other channels of its
// address space. Knows no system calls.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "emu/nv/compute_engine.h"
#include "emu/nv/copy_engine.h"

namespace tuff::emu::nv {

struct ChannelSetup {
  uint32_t id = 0, group = 0;
  uint32_t token = 0;  // what the doorbell is rung with
  uint64_t gpfifo_address = 0;
  uint32_t entries = 0;
  const uint32_t* put = nullptr;  // of its USERD
  std::vector<uint32_t> engine_classes;  // what methods may go to
};

class Channel {
 public:
  enum class Work : uint8_t { Method, Kernel, Copy };
  struct Choice {
    Channel* channel;
    Work work;
    uint32_t index;
  };
  Channel(World& world, const ChannelSetup& setup, Announce announce);
  ~Channel() { world_.give_slot(slot_); }
  const ChannelSetup& setup() const { return setup_; }
  void add_engine(uint32_t engine_class) { setup_.engine_classes.push_back(engine_class); }
  // The doorbell was rung: what USERD says is to be done.
  void ring();
  bool busy() const { return compute_.choices() > 0 || copy_.choices() > 0; }
  void offer(std::vector<Choice>& choices);
  // False: it could not go on. An error ends the channel.
  bool perform(const Choice& choice);
  void kill();
  void stand_still();
  void forget_order() { issuer_.forget_order(); }
  std::string blocked() const;

 private:
  struct Pending {
    uint32_t method = 0, subchannel = 0, left = 0, data = 0;
    bool increasing = false, immediate = false;
  };
  bool take();
  bool fetch();
  Pending next_method();
  bool run_method();
  bool run_method(uint32_t subchannel, uint32_t method, uint32_t data);
  bool host_method(uint32_t method, uint32_t data);
  bool semaphore(uint32_t execute);
  bool acquire(uint64_t address, uint64_t payload);
  void release(uint64_t address, uint64_t payload, uint32_t execute);
  // What the host's waits wait for: the engine that was used last.
  bool idle() { return copied_last_ ? copy_.idle() : compute_.idle(); }
  void end(const ChannelError& error);

  World& world_;
  ChannelSetup setup_;
  Announce announce_;
  const uint32_t slot_;
  Issuer issuer_;
  ComputeEngine compute_;
  CopyEngine copy_;
  bool copied_last_ = false;

  uint32_t get_ = 0, end_ = 0;  // entries of the ring
  std::vector<uint32_t> words_;  // of the entry that is executed
  size_t at_ = 0;
  std::optional<Pending> pending_;
  std::array<uint32_t, 8> bound_{};  // classes, by subchannel
  std::array<uint32_t, 5> semaphore_{};
  bool dead_ = false;
  std::optional<std::string> waiting_;
};

}  // namespace tuff::emu::nv
