// Channel: the host engine of one channel, and behind it the compute or the copy engine: entries of
// its GPFIFO, methods, semaphores, launches and copies in flight. Stepped by context.cpp, in turns
// with the other channels of its address space. Knows no system calls.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emu/nv/method.h"
#include "emu/nv/qmd.h"
#include "emu/nv/world.h"

namespace tuff::emu::nv {

struct ChannelError {
  uint32_t code = 0;
  std::optional<MemoryFault> fault;
  std::string why;
};

struct ChannelSetup {
  uint32_t id = 0, group = 0;
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
  // Told of what ends the channel, before anybody is told what was found.
  using Announce = std::function<void(const ChannelError&)>;
  Channel(World& world, const ChannelSetup& setup, Announce announce);
  ~Channel();
  const ChannelSetup& setup() const { return setup_; }
  void add_engine(uint32_t engine_class) { setup_.engine_classes.push_back(engine_class); }
  // The doorbell was rung: what USERD says is to be done.
  void ring();
  bool busy() const { return !kernels_.empty() || !copies_.empty(); }
  void offer(std::vector<Choice>& choices);
  // False: it could not go on. An error ends the channel.
  bool perform(const Choice& choice);
  void kill();
  void forget_order();  // serial numbers start again
  std::string blocked() const;

 private:
  // Kernels end in any order: each chain has a slot of its own.
  static constexpr uint32_t kKernelSlots = 4;
  struct Kernel {
    uint32_t slot;  // of kernel_slots_
    Qmd qmd;
    Stub stub;
    Accessor who;
  };
  struct CopyJob {
    Accessor who;
    uint64_t dst, src, bytes;
    bool flush;
  };

  // host.cpp
  bool take();
  bool fetch();
  bool run_method();
  bool host_method(uint32_t method, uint32_t data);
  bool semaphore(uint32_t execute);
  bool acquire(uint64_t address, uint64_t payload);
  void release(uint64_t address, uint64_t payload, uint32_t execute);
  bool idle();  // what the host's waits wait for: the engine that was used last
  bool idle_kernels();
  bool idle_copies();
  const uint8_t* peek(uint64_t address, uint32_t bytes, const char* what);
  uint8_t* reach(const Accessor& who, const Request& request);
  Accessor accessor(uint32_t slot, const std::string& name);

  // compute.cpp
  bool compute_method(uint32_t method, uint32_t data);
  bool launch(uint64_t qmd_address);
  void run_kernel(uint32_t index);
  Stub fetch_stub(const Qmd& qmd);
  void check_launch(const Qmd& qmd, const Stub& stub);
  std::vector<uint8_t> read_bank(const Kernel& kernel);
  void check_bank(const Kernel& kernel, std::span<const uint8_t> bank) const;
  void finish_kernel(const Kernel& kernel, const ptx::Outcome& outcome, const LaunchMemory& memory);
  void end(const ChannelError& error);

  // copy.cpp
  bool copy_method(uint32_t method, uint32_t data);
  bool start_copy(uint32_t launch);
  void advance_copy(uint32_t index);

  World& world_;
  ChannelSetup setup_;
  Announce announce_;
  std::array<uint32_t, kKernelSlots> kernel_slots_{};
  std::array<bool, kKernelSlots> slot_used_{}, slot_published_{};
  uint32_t copy_slot_, engine_slot_;
  bool copies_flushed_ = true, copied_last_ = false;
  Order order_;  // what the channel knows to have ended
  Invalidation data_, constants_, code_;
  std::deque<Kernel> kernels_;
  std::deque<CopyJob> copies_;

  uint32_t get_ = 0, end_ = 0;  // entries of the ring
  std::vector<uint32_t> words_;  // of the entry that is executed
  size_t at_ = 0;
  struct Pending {
    uint32_t method = 0, subchannel = 0, left = 0, data = 0;
    bool increasing = false, immediate = false;
  };
  std::optional<Pending> pending_;
  std::array<uint32_t, 8> bound_{};  // classes, by subchannel
  std::array<uint32_t, 5> semaphore_{};
  uint64_t shared_window_ = 0, local_window_ = 0, local_memory_ = 0, local_per_tpc_ = 0;
  uint64_t qmd_address_ = 0;
  std::array<uint32_t, 4> offsets_{};  // in upper, in lower, out upper, out lower
  uint32_t line_bytes_ = 0;
  bool dead_ = false;
  std::optional<std::string> waiting_;
};

}  // namespace tuff::emu::nv
