// Machine: the streams of a SHUFFLE device and its next steps, by the rules of hcq/hazards.h:
// - a submission begins when all before it on its queue has finished;
// - a barrier orders all before it in its stream with all after it;
// - a wait holds back what follows in its stream, and nothing before it;
// - a signal or a timestamp comes after all before it in its stream, and holds nothing back (a
//   barrier does wait for timestamps);
// - all else is free: commands, workgroups, pieces of copies, one queue and another.
// Steps are taken on the callers' threads, so the same calls give the same order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/split_mix.h"
#include "devices/shuffle/shuffle.h"

namespace tuff::devices::shuffle {

class Machine;

// What an encoded list leaves to its submissions: it may be gone before they run, and so may the
// blocks that its commands name, whose addresses are kept here.
struct Recorded {
  explicit Recorded(const hcq::CommandList& from);
  Recorded(const Recorded&) = delete;
  hcq::CommandList list;
  std::vector<uint64_t> times;

 private:
  void keep(hcq::Span& span);
  std::unordered_map<const hcq::MemoryBlock*, hcq::MemoryBlock> blocks_;
};

class ShuffleList final : public hcq::EncodedList {
 public:
  ShuffleList(std::shared_ptr<Machine> machine, const hcq::CommandList& list);
  ~ShuffleList() override;
  const std::shared_ptr<Recorded> recorded;

 private:
  std::shared_ptr<Machine> machine_;
};

class ShuffleSignal final : public hcq::Signal {
 public:
  ShuffleSignal(std::shared_ptr<Machine> machine, uint64_t value);
  ~ShuffleSignal() override;
  uint64_t value() const override;
  bool wait(uint64_t value, uint64_t timeout_ns) override;
  void set(uint64_t value) override;  // throws InvalidArgument for a lower one

 private:
  friend class Machine;
  std::shared_ptr<Machine> machine_;
  std::atomic<uint64_t> value_;        // written under the lock of who raises it
  std::atomic<uint64_t> since_ns_{0};  // nominal time at which it was reached
};

class Machine {
 public:
  Machine(const ShuffleOptions& options, uint64_t seed, size_t queues);

  // Returns the value that `timeline` will reach. Throws InvalidArgument for a list that is in
  // flight already and for too few slots.
  uint64_t submit(size_t queue, const std::shared_ptr<Recorded>& recorded,
                  std::span<const uint64_t> slots, ShuffleSignal& timeline);
  uint64_t last_submitted(size_t queue) const;
  uint64_t poll(const ShuffleSignal& signal);
  bool run_until(const ShuffleSignal& signal, uint64_t value, uint64_t timeout_ns);
  void set(ShuffleSignal& signal, uint64_t value);
  // Called by destructors. What is in flight and names them is a fault of the program.
  void forget(const Recorded& recorded) noexcept;
  void forget(const ShuffleSignal& signal) noexcept;
  // Pages go when nothing can touch them any more.
  void unmap(void* pages, size_t size_bytes) noexcept;

  void reseed(uint64_t seed);
  ShuffleStats stats() const;
  void drop() noexcept;  // what is in flight never runs
  // Why the device must be given up: a fault, or every queue has waited for `limit_ns` with no
  // signal to come; else empty.
  std::string defect(uint64_t limit_ns) const;

 private:
  struct Running {  // a command that may run now
    const hcq::Command* command = nullptr;
    uint64_t pieces = 1, left = 1;
    uint64_t width = 1, height = 1;  // of a launch, in groups, as it was when it began
    uint64_t at = 0, stride = 1;     // the next piece, and the way to the one after it
    bool begun = false;
  };
  struct Submitted {
    std::shared_ptr<Recorded> recorded;
    std::vector<uint64_t> slots;
    ShuffleSignal* timeline = nullptr;
    uint64_t value = 0, host_ns = 0;
    size_t next = 0;               // of its commands: the first that may not run yet
    std::vector<Running> running;  // in the order of the list
  };
  struct Stream {
    std::deque<Submitted> submitted;
    uint64_t last = 0;
  };
  // For a while one queue, or one end of what may run, goes first: uniform choices would almost
  // never hold a single command back for long.
  struct Mood {
    enum class Pick : uint8_t { Any, Newest, Oldest } pick = Pick::Any;
    size_t queue = SIZE_MAX;  // goes first if it can
    uint64_t choices_left = 0;
  };

  bool step(std::unique_lock<std::mutex>& lock);  // false: nothing may run
  void note_stuck();
  void advance();  // all that needs no choice
  void advance(Submitted& s);
  bool holds_back(const Submitted& s, const hcq::Command& c) const;
  bool reached(const hcq::WaitCmd& wait, const Submitted& s) const;
  std::vector<hcq::Signal*> blocking() const;  // signals of other machines
  size_t choose_queue();                       // SIZE_MAX: nothing may run
  size_t choose_command(const Submitted& s);
  void begin(Running& r, std::span<const uint64_t> slots);
  void run(std::unique_lock<std::mutex>& lock, Submitted& s, Running& r);
  void run_piece(const Running& r) const;
  void raise(hcq::Signal& signal, uint64_t value);
  void spend(uint64_t cost_ns);
  bool pending() const;
  void release_pages() noexcept;
  void clear_dropped();

  const ShuffleOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // a host set a signal, or submitted
  SplitMix64 random_;
  Mood mood_;
  std::vector<Stream> streams_;
  ShuffleStats stats_;
  std::string fault_;
  uint64_t stuck_since_ns_ = 0;  // of the host's monotonic clock; 0: not stuck
  uint64_t stuck_seen_ns_ = 0;   // and the last time that it was found so
  bool stepping_ = false;        // also while a host call runs, without the lock
  bool dropping_ = false;
  struct Pages {
    void* at;
    size_t size_bytes;
  };
  std::vector<Pages> unmapped_;  // spoilt, and kept while something may still touch them
};

inline constexpr int kSpoilt = 0xFF;

}  // namespace tuff::devices::shuffle
