#include "emu/amd/kfd/events.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "emu/kernel/refusal.h"

namespace tuff::emu::amd {
namespace {

using namespace os::kfd;
using Clock = std::chrono::steady_clock;

constexpr uint64_t kUnsignaled = ~uint64_t(0);  // UNSIGNALED_EVENT_SLOT
constexpr uint32_t kFirstOtherId = 0x40000000;  // KFD_FIRST_NONSIGNAL_EVENT_ID
constexpr uint32_t kInfinite = ~uint32_t(0);    // KFD_EVENT_TIMEOUT_INFINITE
// Engines that step inside of calls look again this often for doorbells of other threads.
constexpr auto kStepAgain = std::chrono::milliseconds(1);

}  // namespace

void Events::set_page(std::byte* slots, size_t size_bytes, std::shared_ptr<void> keep) {
  std::lock_guard lock(mutex_);
  // kfd_event_page_set clears all slots without a look at the size: a smaller page is overrun.
  constexpr size_t kBytes = kSignalEventLimit * sizeof(uint64_t);
  if (page_) refuse(EINVAL, "the event page is set already");
  if (size_bytes < kBytes)
    refuse(EINVAL, "an event page of {} bytes, at least {} are written", size_bytes, kBytes);
  std::memset(slots, 0xff, kBytes);
  page_ = slots;
  slots_ = std::min<size_t>(size_bytes / sizeof(uint64_t), kSignalEventLimit);
  keep_page_ = std::move(keep);
}

bool Events::has_page() const {
  std::lock_guard lock(mutex_);
  return page_ != nullptr;
}

// create_signal_event, create_other_event. Id 0 is never given out (kfd_event_init_process).
uint32_t Events::free_id(bool signal) const {
  uint32_t id = signal ? 1 : kFirstOtherId;
  for (auto at = events_.lower_bound(id); at != events_.end() && at->first == id; ++at) ++id;
  if (signal && id >= slots_) run_out(ENOSPC, "all {} signal events are taken", slots_ - 1);
  return id;
}

void Events::create(CreateEvent& arguments) {
  std::lock_guard lock(mutex_);
  const auto type = EventType(arguments.event_type);
  if (type != EventType::Signal && type != EventType::HwException && type != EventType::Memory)
    refuse(EINVAL, "events of type {} never happen", arguments.event_type);
  const bool signal = type == EventType::Signal;
  // The kernel would make a page of its own here, which GPUs of this generation cannot reach.
  if (signal && !page_) refuse(EINVAL, "a signal event before the event page");
  const uint32_t id = free_id(signal);
  if (signal) take_slot(id);
  events_[id] = std::make_unique<Event>(Event{type, arguments.auto_reset != 0});
  arguments.event_page_offset = signal ? uint64_t(2) << 62 : 0;  // KFD_MMAP_TYPE_EVENTS
  arguments.event_id = arguments.event_trigger_data = id;
  if (signal) arguments.event_slot_index = id;
}

Events::Event& Events::find(uint32_t id) {
  const auto event = events_.find(id);
  if (event == events_.end()) refuse(EINVAL, "there is no event {:#x}", id);
  return *event->second;
}

void Events::destroy(uint32_t id) {
  std::lock_guard lock(mutex_);
  for (Waiter* waiter : find(id).waiters) waiter->event = nullptr;
  events_.erase(id);
  changed_.notify_all();
}

void Events::set(uint32_t id) {
  std::lock_guard lock(mutex_);
  Event& event = find(id);
  if (event.type != EventType::Signal) refuse(EINVAL, "event {:#x} is not a signal event", id);
  set_event(event);
  changed_.notify_all();
}

// An event that resets itself stays set only if no thread waits: each setting wakes once.
void Events::set_event(Event& event) {
  event.signaled = !event.auto_reset || event.waiters.empty();
  if (++event.age == 0) event.age = 2;
  for (Waiter* waiter : event.waiters) waiter->activated = true;
}

// init_event_waiter. Age 0 stands for a caller that keeps no ages.
void Events::start_waiting(std::span<const EventData> events, std::vector<Waiter>& waiters) {
  for (const EventData& data : events) find(data.event_id);
  for (size_t i = 0; i < events.size(); ++i) {
    Event& event = find(events[i].event_id);
    uint64_t last_age = 0;
    if (event.type == EventType::Signal) std::memcpy(&last_age, &events[i], sizeof last_age);
    waiters[i] = {&event, event.signaled || (last_age != 0 && last_age != event.age)};
    event.signaled = event.signaled && !event.auto_reset;
    if (!waiters[i].activated) event.waiters.push_back(&waiters[i]);
  }
}

// test_event_condition.
WaitResult Events::state(const std::vector<Waiter>& waiters, bool all) {
  size_t activated = 0;
  for (const Waiter& waiter : waiters) {
    if (!waiter.event) return WaitResult::Fail;
    if (!waiter.activated) continue;
    if (!all) return WaitResult::Complete;
    ++activated;
  }
  return activated == waiters.size() ? WaitResult::Complete : WaitResult::Timeout;
}

// copy_signaled_event_data.
void Events::report(const std::vector<Waiter>& waiters, std::span<EventData> events) {
  for (size_t i = 0; i < waiters.size(); ++i) {
    if (!waiters[i].activated) continue;
    const Event& event = *waiters[i].event;
    if (event.type == EventType::Memory) events[i].memory_exception = event.memory;
    if (event.type == EventType::HwException) events[i].hw_exception = event.hardware;
    if (event.type == EventType::Signal) std::memcpy(&events[i], &event.age, sizeof event.age);
  }
}

void Events::stop_waiting(std::vector<Waiter>& waiters) {
  for (Waiter& waiter : waiters) {
    if (waiter.event) std::erase(waiter.event->waiters, &waiter);
  }
}

WaitResult Events::wait(std::span<EventData> events, bool all, uint32_t timeout_ms,
                        const Step& step) {
  std::unique_lock lock(mutex_);
  std::vector<Waiter> waiters(events.size());
  start_waiting(events, waiters);
  const bool forever = timeout_ms == kInfinite;
  const auto deadline = Clock::now() + std::chrono::milliseconds(forever ? 0 : timeout_ms);
  WaitResult result = state(waiters, all);
  while (result == WaitResult::Timeout) {
    bool stepped = false;
    if (step) {
      lock.unlock();
      stepped = step();
      lock.lock();
    }
    if (!stepped) {
      const auto now = Clock::now();
      result = state(waiters, all);  // another thread's step may have been the one
      if (result != WaitResult::Timeout || (!forever && now >= deadline)) break;
      const auto again = step || forever ? now + kStepAgain : deadline;
      changed_.wait_until(lock, forever ? again : std::min(again, deadline));
    }
    result = state(waiters, all);
    if (timeout_ms == 0) break;  // a look moves engines by one step and not to their end
  }
  if (result == WaitResult::Complete) report(waiters, events);
  stop_waiting(waiters);
  return result;
}

void Events::clear() {
  std::lock_guard lock(mutex_);
  for (const auto& [id, event] : events_) {
    for (Waiter* waiter : event->waiters) waiter->event = nullptr;
  }
  events_.clear();
  page_ = nullptr;
  slots_ = 0;
  keep_page_.reset();
  changed_.notify_all();
}

bool Events::is_written(uint32_t id) const {
  return std::atomic_ref(reinterpret_cast<uint64_t*>(page_)[id]).load() != kUnsignaled;
}

void Events::take_slot(uint32_t id) {
  std::atomic_ref(reinterpret_cast<uint64_t*>(page_)[id]).store(kUnsignaled);
}

// kfd_signal_event_interrupt: if the id's slot was not written, all slots are searched, as the id
// cannot be right then.
void Events::interrupt(uint32_t id) {
  std::lock_guard lock(mutex_);
  if (!page_) return;
  const bool exact = id < slots_ && is_written(id) && events_.contains(id);
  for (auto& [other, event] : events_) {
    if (other >= slots_ || (exact && other != id) || !is_written(other)) continue;
    take_slot(other);
    set_event(*event);
  }
  changed_.notify_all();
}

template <class T>
void Events::raise(EventType type, T Event::*field, const T& what) {
  std::lock_guard lock(mutex_);
  for (auto& [id, event] : events_) {
    if (event->type != type) continue;
    (*event).*field = what;
    set_event(*event);
  }
  changed_.notify_all();
}

void Events::memory_exception(const MemoryException& what) {
  raise(EventType::Memory, &Event::memory, what);
}

void Events::hw_exception(const HwException& what) {
  raise(EventType::HwException, &Event::hardware, what);
}

}  // namespace tuff::emu::amd
