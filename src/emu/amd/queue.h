// Queue: what the command processors of one queue have in common: the ring's pointers, the kernels,
// copies and releases that are still going on behind the packets taken, and what the queue knows
// to have ended and has invalidated. Base of pm4_queue, sdma_queue and aql_queue; stepped by
// gpu.cpp. Knows no packet.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emu/amd/kernel_memory.h"
#include "emu/amd/packet.h"
#include "emu/rdna/dispatch.h"

namespace tuff::emu::amd {

struct CacheActions {
  bool gli_inv = false, glk_inv = false, glv_inv = false, gl1_inv = false, gl2_inv = false,
       gl2_wb = false;
};

// A comparison of a word in memory, as packets ask for it.
struct WordWait {
  uint64_t address = 0;
  uint32_t function = 0, reference = 0, mask = 0;
  bool holds(uint32_t value) const;
  std::string text() const;
};

// What happens once the kernels before it have ended.
struct Release {
  const char* packet = "";
  CacheActions caches;
  enum class Data : uint8_t { Word = 1, Double, Clock } data = Data::Word;  // as DATA_SEL has them
  uint64_t address = 0, value = 0;
  bool interrupt = false;
  uint32_t event_id = 0;
};

class Queue {
 public:
  enum class Work : uint8_t { Packet, Kernel, Copy, Release };
  struct Choice {
    Queue* queue;
    Work work;
    uint32_t index;
  };
  Queue(Chip& chip, const QueueSetup& setup);
  virtual ~Queue();

  uint32_t id() const { return setup_.id; }
  bool busy() const { return !kernels_.empty() || !copies_.empty() || !releases_.empty(); }
  // What may be done next; one of all queues' is drawn.
  void offer(std::vector<Choice>& choices);
  bool perform(const Choice& choice);  // false: it could not go on
  void kill(std::string why);
  void forget_order();  // serial numbers start again
  std::string blocked();

 protected:
  enum class Progress : uint8_t { Done, Begun, Blocked };
  // One packet, or the next attempt at one that waits; true if anything was done.
  virtual bool take() = 0;

  // The doorbell's value if there is something between `read` and it, which is the queue's to
  // judge.
  std::optional<uint64_t> announced(uint64_t read);
  bool may_take();
  void publish_read_pointer(uint64_t value, uint32_t bytes);
  const uint8_t* peek(uint64_t address, uint32_t bytes, const char* packet);
  // By the engine itself, ordered after all that the queue knows.
  void read(uint64_t address, void* out, uint32_t bytes, const char* packet);

  bool idle_kernels();  // true once all have ended, which the queue then knows
  bool idle_copies();
  bool ended();  // of everything, releases as well
  bool wait(const WordWait& wait);
  void acquire(const CacheActions& actions);
  void apply(const CacheActions& actions, const Order& order);
  bool can_launch() const;  // not too many in flight
  void launch(rdna::Launch launch, bool system_release);
  bool can_copy() const;
  void copy(const char* packet, uint64_t dst, uint64_t src, uint64_t bytes);
  void release(const Release& release);  // behind the kernels
  void store(const Release& release);    // at once, with what the queue knows
  void taken() { ++chip_.stats.packets; }
  const QueueSetup& setup() const { return setup_; }

  Chip& chip_;

 private:
  struct Kernel {
    std::unique_ptr<KernelMemory> memory;
    std::unique_ptr<profile::RdnaRecording> recording;  // where kernels are profiled
    std::unique_ptr<rdna::Dispatch> dispatch;
    std::string name;
    bool system_release;
  };
  struct Copy {
    Accessor who;
    uint64_t dst, src, bytes;
  };
  struct Pending {
    OpId after;
    Order order;
    Release release;
  };
  Accessor accessor(uint32_t slot, const std::string& name);
  bool ready(const Pending& pending) const;
  bool work(const Choice& choice);
  void advance(uint32_t kernel);
  void finish(uint32_t kernel);
  void advance_copy(uint32_t index);
  void carry_out(const Release& release, const Order& order);
  uint8_t* reach(const Accessor& who, const Request& request);
  void fault(const std::string& what, const MemoryFault& fault);

  QueueSetup setup_;
  uint32_t kernel_slot_, copy_slot_, engine_slot_;
  Order order_;  // what the queue's packets know to have ended
  Invalidation glv_, glk_, gl1_, gli_;
  std::deque<Kernel> kernels_;
  std::deque<Copy> copies_;
  std::deque<Pending> releases_;
  uint64_t doorbell_ = ~0ull;  // as last seen
  std::optional<WordWait> waiting_;
  std::optional<std::string> dead_;
};

std::unique_ptr<Queue> make_pm4_queue(Chip& chip, const QueueSetup& setup);
std::unique_ptr<Queue> make_sdma_queue(Chip& chip, const QueueSetup& setup);
std::unique_ptr<Queue> make_aql_queue(Chip& chip, const QueueSetup& setup);

}  // namespace tuff::emu::amd
