#include "hcq/host_queue.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/log.h"
#include "base/os_file_mapping.h"
#include "hcq/hazard_guard.h"

namespace tuff::hcq {
namespace {

constexpr uint64_t kSliceNs = 1'000'000'000;
constexpr size_t kFilePieceBytes = 16 << 20;
constexpr int kAttempts = 20;
constexpr auto kBetweenAttempts = std::chrono::milliseconds(5);

// A driver may have no memory for a moment. Giving up would leave a queue waiting for ever, so only
// a device that is lost ends it at once.
template <class Attempt>
void patiently(const Attempt& attempt) {
  for (int left = kAttempts;; left--) {
    try {
      return attempt();
    } catch (const DeviceLost&) {
      throw;
    } catch (const HazardFound&) {
      throw;  // told once
    } catch (const Error&) {
      if (left == 1) throw;
    }
    std::this_thread::sleep_for(kBetweenAttempts);
  }
}

// While it lives the devices of these queues, except for one, may stand still: they wait for the
// host's queue.
class Hold {
 public:
  Hold(std::span<Queue* const> queues, const Device* but) {
    for (Queue* q : queues)
      if (&q->device() != but) held_.insert(&q->device());
    for (Device* d : held_) d->liveness().hold();
  }
  ~Hold() {
    for (Device* d : held_) d->liveness().release();
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  std::set<Device*> held_;
};

}  // namespace

void copy_by_host(const Span& dst, const Span& src) {
  const size_t size = dst.size_bytes;
  if (size == 0) return;
  if (dst.block->file && src.block->file) {
    std::vector<std::byte> piece(std::min<size_t>(size, kFilePieceBytes));
    for (size_t at = 0; at < size; at += piece.size()) {
      const std::span<std::byte> part = std::span(piece).first(std::min(piece.size(), size - at));
      src.block->file->read(src.offset + at, part);
      dst.block->file->write(dst.offset + at, part);
    }
  } else if (src.block->file) {
    src.block->file->read(src.offset, {dst.host(), size});
  } else if (dst.block->file) {
    dst.block->file->write(dst.offset, {src.host(), size});
  } else {
    std::memcpy(dst.host(), src.host(), size);
  }
}

bool HostTimeline::wait(uint64_t value, uint64_t timeout_ns) {
  if (this->value() >= value) return true;
  std::unique_lock lock(mutex_);
  return raised_.wait_for(lock, std::chrono::nanoseconds(timeout_ns),
                          [&] { return this->value() >= value; });
}

void HostTimeline::set(uint64_t value) {
  std::lock_guard lock(mutex_);
  value_.store(value, std::memory_order_release);
  raised_.notify_all();
}

void HostList::bind_copy(size_t index, const Span& dst, const Span& src) {
  TUFF_CHECK(index < copies_.size() && dst.host_reaches() && src.host_reaches() &&
                 dst.size_bytes == src.size_bytes,
             "copy {} of {}", index, copies_.size());
  copies_[index] = {dst, src};
}

HostQueue::HostQueue(Device& device, std::vector<Queue*> sources, Failed failed)
    : Queue(device),
      sources_(std::move(sources)),
      failed_(std::move(failed)),
      thread_([this] { serve(); }) {}

HostQueue::~HostQueue() {
  {
    std::lock_guard lock(doorbell_mutex_);
    stop_ = true;
  }
  doorbell_.notify_all();
  os::join_own(thread_, started_at_);
  collect(true);
}

std::unique_ptr<EncodedList> HostQueue::encode(const CommandList& list, EncodeUse) {
  auto out = std::make_unique<HostList>();
  for (const Command& c : list.commands) {
    if (const auto* w = std::get_if<WaitCmd>(&c.body)) {
      TUFF_CHECK(w->value_slot < list.slot_count, "slot {} of {}", w->value_slot, list.slot_count);
      const auto source = std::find_if(sources_.begin(), sources_.end(),
                                       [&](Queue* q) { return &q->timeline() == w->signal; });
      if (source == sources_.end() || !out->copies_.empty() || !out->signals_.empty())
        fail<Unsupported>(
            "the host's queue waits for timelines that it was told of, before copies");
      out->waits_.push_back({*source, nullptr, w->value_slot});
    } else if (const auto* copy = std::get_if<CopyCmd>(&c.body)) {
      TUFF_CHECK(out->signals_.empty() && copy->dst.size_bytes == copy->src.size_bytes,
                 "copy of {} bytes into {}, before signals", copy->src.size_bytes,
                 copy->dst.size_bytes);
      out->copies_.push_back({copy->dst, copy->src});
    } else if (const auto* s = std::get_if<SignalCmd>(&c.body)) {
      TUFF_CHECK(s->value_slot < list.slot_count, "slot {} of {}", s->value_slot, list.slot_count);
      out->signals_.push_back({nullptr, s->signal, s->value_slot});
    } else {
      fail<Unsupported>("the host's queue waits, copies and signals");
    }
  }
  for (HostList::Flight& f : out->flights_) {
    f.slots.resize(list.slot_count);
    f.copies = out->copies_;
  }
  return out;
}

uint64_t HostQueue::submit(EncodedList& encoded, std::span<const uint64_t> slots) {
  collect();
  auto& list = static_cast<HostList&>(encoded);
  std::lock_guard lock(submit_mutex_);
  HostList::Flight& flight = list.flights_[list.next_flight_];
  TUFF_CHECK(slots.size() == flight.slots.size(), "{} slot values, {} encoded", slots.size(),
             flight.slots.size());
  const uint64_t value = submitted_.load(std::memory_order_relaxed) + 1;
  wait(flight.value);
  if (value > kRingEntries) wait(value - kRingEntries);
  list.next_flight_ = (list.next_flight_ + 1) % HostList::kInFlight;
  std::copy(slots.begin(), slots.end(), flight.slots.begin());
  std::copy(list.copies_.begin(), list.copies_.end(), flight.copies.begin());
  flight.value = value;
  ring_[value % kRingEntries] = {&list, &flight};
  {
    std::lock_guard doorbell(doorbell_mutex_);
    submitted_.store(value, std::memory_order_release);
  }
  doorbell_.notify_one();
  return value;
}

void HostQueue::wait(uint64_t value) {
  while (!timeline_.wait(value, kSliceNs)) {}
}

void HostQueue::report(uint64_t value, const std::string& reason) noexcept {
  try {
    if (failed_) failed_(value, reason);
  } catch (const std::exception& e) {
    log_warn("a copy between devices failed ({}), and telling so: {}", reason, e.what());
  }
}

void HostQueue::wait_for(Queue& queue, uint64_t value) {
  if (queue.passed(value)) return;
  const Hold others(sources_, &queue.device());
  queue.wait(value);
}

void HostQueue::copy(const HostList::Copy& c) {
  std::optional<Hold> all;
  if (!c.dst.host() || !c.src.host()) all.emplace(sources_, nullptr);  // disks take their time
  copy_by_host(c.dst, c.src);
}

// In the order of submission: what a queue waits for stands before it.
void HostQueue::watch(const Entry& entry, uint64_t value) {
  for (const HostList::Point& w : entry.list->waits_) {
    const uint64_t awaited = entry.flight->slots[w.slot];
    for (bool again = true; again;) {
      again = false;
      try {
        patiently([&] { wait_for(*w.queue, awaited); });
      } catch (const HazardFound& e) {
        report(value, e.what());
        again = true;  // the device goes on
      } catch (const std::exception& e) {
        report(value, e.what());
      }
    }
    try {
      if (!w.queue->passed(awaited) && w.queue->device().lost()) w.queue->release_waiters(awaited);
    } catch (const std::exception& e) {
      log_warn("{}: queues that wait for it cannot go on: {}", w.queue->device().name(), e.what());
    }
  }
}

void HostQueue::run(const Entry& entry, uint64_t value) {
  const HostList& list = *entry.list;
  if (list.copies_.empty() && list.signals_.empty()) return watch(entry, value);
  try {
    for (const HostList::Point& w : list.waits_)
      patiently([&] { wait_for(*w.queue, entry.flight->slots[w.slot]); });
    for (const HostList::Copy& c : entry.flight->copies) copy(c);
  } catch (const std::exception& e) {
    report(value, e.what());
  }
  for (const HostList::Point& s : list.signals_) {
    try {
      patiently([&] { s.signal->set(entry.flight->slots[s.slot]); });
    } catch (const std::exception& e) {
      report(value, e.what());  // its device is lost: nothing waits there any more
    }
  }
}

void HostQueue::serve() {
  os::unblock_bus_errors();
  for (;;) {
    const uint64_t next = timeline_.value() + 1;
    {
      std::unique_lock lock(doorbell_mutex_);
      doorbell_.wait(lock, [&] { return stop_ || submitted_.load() >= next; });
      if (submitted_.load() < next) return;
    }
    run(ring_[next % kRingEntries], next);
    timeline_.set(next);  // last: from here on the list belongs to its owner again
  }
}

}  // namespace tuff::hcq
