// Events: what a process waits for in the kernel: signal events, which interrupts of GPUs set, and
// the exceptions of memory and hardware. Called by calls of the process (machine.cpp) and, while a
// GPU is locked, by engines.cpp: a leaf among locks. Source: Linux amdkfd/kfd_events.c.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/os_kfd.h"

namespace tuff::emu::amd {

class Events {
 public:
  // What a waiting thread does, without any lock: one step; false if there is none to do.
  using Step = std::function<bool()>;

  // The page that GPUs write event ids to before they interrupt; `keep` owns it.
  void set_page(std::byte* slots, size_t size_bytes, std::shared_ptr<void> keep);
  bool has_page() const;
  // Fills the out fields.
  void create(os::kfd::CreateEvent& arguments);
  void destroy(uint32_t id);
  void set(uint32_t id);
  // Fills in what has happened. `step` empty: others make it happen.
  os::kfd::WaitResult wait(std::span<os::kfd::EventData> events, bool all, uint32_t timeout_ms,
                           const Step& step);
  void clear();  // the process has gone

  // From GPUs: an interrupt that tells an event's id, which holds if that slot was written.
  void interrupt(uint32_t id);
  void memory_exception(const os::kfd::MemoryException& what);
  void hw_exception(const os::kfd::HwException& what);

 private:
  struct Waiter;
  struct Event {
    os::kfd::EventType type;
    bool auto_reset, signaled = false;
    uint64_t age = 1;  // rises when it is set, so that a waiter can tell what it has seen
    os::kfd::MemoryException memory{};
    os::kfd::HwException hardware{};
    std::vector<Waiter*> waiters;
  };
  struct Waiter {
    Event* event = nullptr;  // null: destroyed meanwhile
    bool activated = false;
  };
  uint32_t free_id(bool signal) const;
  Event& find(uint32_t id);
  bool is_written(uint32_t id) const;
  void take_slot(uint32_t id);
  static void set_event(Event& event);
  template <class T>
  void raise(os::kfd::EventType type, T Event::*field, const T& what);
  void start_waiting(std::span<const os::kfd::EventData> events, std::vector<Waiter>& waiters);
  static os::kfd::WaitResult state(const std::vector<Waiter>& waiters, bool all);
  static void report(const std::vector<Waiter>& waiters, std::span<os::kfd::EventData> events);
  static void stop_waiting(std::vector<Waiter>& waiters);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<uint32_t, std::unique_ptr<Event>> events_;
  std::byte* page_ = nullptr;
  size_t slots_ = 0;
  std::shared_ptr<void> keep_page_;
};

}  // namespace tuff::emu::amd
