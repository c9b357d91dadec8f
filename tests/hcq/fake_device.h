// FakeDevice: a device for tests of hcq. Its queue runs lists in order, at once or only when told;
// its memory may hide its host pointer, as a discrete GPU's does; it has a limit. Kernels are
// C++ functions. Shares no code with the real devices.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <thread>

#include "base/check.h"
#include "hcq/device.h"

namespace tuff::hcq {

struct FakeOptions {
  bool hidden = false;       // Device and Args memory have no host pointer
  bool manual = false;       // lists run in step() only, else at submit
  bool group_slots = false;  // launch sizes come from slots, not from memory
  bool run_on_wait = false;  // with manual: a host wait runs what it waits for
  size_t limit_bytes = SIZE_MAX;
  uint64_t max_submission_ns = 0;  // of its Target
};

class FakeSignal : public Signal {
 public:
  std::function<void(uint64_t)> on_wait;
  uint64_t value() const override { return value_.load(); }
  bool wait(uint64_t value, uint64_t timeout_ns) override {
    if (on_wait) on_wait(value);
    if (value_.load() < value)
      std::this_thread::sleep_for(
          std::chrono::nanoseconds(std::min<uint64_t>(timeout_ns, 1'000'000)));
    return value_.load() >= value;
  }
  void set(uint64_t value) override { value_.store(value); }

 private:
  std::atomic<uint64_t> value_{0};
};

class FakeProgram : public Program {
 public:
  using Fn = std::function<void(const std::byte* args, std::array<uint32_t, 3> groups)>;
  FakeProgram(const std::string& name, uint32_t buffers, uint32_t scalars, Fn fn = {})
      : Program(binary(name, buffers, scalars)), fn(std::move(fn)) {}
  Fn fn;

 private:
  static render::Binary binary(const std::string& name, uint32_t buffers, uint32_t scalars) {
    render::Binary b;
    b.name = name;
    b.args = {buffers, scalars};
    return b;
  }
};

struct FakeList : EncodedList {
  explicit FakeList(CommandList l, int* alive) : list(std::move(l)), alive(alive) { ++*alive; }
  ~FakeList() override { --*alive; }
  CommandList list;
  std::vector<uint64_t> slots, times;
  int* alive;
};

class FakeQueue : public Queue {
 public:
  FakeQueue(Device& d, const FakeOptions& o) : Queue(d), options_(o) {
    if (o.run_on_wait)
      timeline_.on_wait = [this](uint64_t v) {
        while (timeline_.value() < v && step()) {}
      };
  }
  std::unique_ptr<EncodedList> encode(const CommandList& list, EncodeUse) override {
    ++encoded;
    return std::make_unique<FakeList>(list, &lists_alive);
  }
  uint64_t submit(EncodedList& list, std::span<const uint64_t> slots) override {
    device().fail_if_lost();
    collect();
    auto& fake = static_cast<FakeList&>(list);
    fake.slots.assign(slots.begin(), slots.end());
    waiting_.push_back(&fake);
    ++submitted_;
    if (on_submit) on_submit(fake.list, submitted_);
    if (!options_.manual) step();
    return submitted_;
  }
  bool step() {
    if (waiting_.empty()) return false;
    FakeList& list = *waiting_.front();
    list.times.resize(list.list.timestamp_count);
    for (const Command& c : list.list.commands) {
      if (const auto* t = std::get_if<TimestampCmd>(&c.body)) list.times[t->index] = clock_;
      run(c, list.slots);
      clock_ += duration ? duration(c) : 1;
    }
    waiting_.pop_front();
    timeline_.set(timeline_.value() + 1);
    return true;
  }
  // Of a clock that counts commands, or what `duration` says of each.
  std::vector<uint64_t> timestamps(EncodedList& list) override {
    return static_cast<FakeList&>(list).times;
  }
  Signal& timeline() override { return timeline_; }
  bool takes_group_slots() const override { return options_.group_slots; }
  uint64_t last_submitted() const override { return submitted_; }
  int encoded = 0, lists_alive = 0;
  std::function<void(const CommandList& list, uint64_t value)> on_submit;
  std::function<uint64_t(const Command&)> duration;

 private:
  static std::byte* at(const Span& s) { return reinterpret_cast<std::byte*>(s.address()); }
  static void run(const Command& c, const std::vector<uint64_t>& slots) {
    if (const auto* copy = std::get_if<CopyCmd>(&c.body)) {
      std::memcpy(at(copy->dst), at(copy->src), copy->dst.size_bytes);
    } else if (const auto* d = std::get_if<DispatchCmd>(&c.body)) {
      std::array<uint32_t, 3> groups = d->groups;
      if (d->indirect) std::memcpy(groups.data(), at(d->indirect), 12);
      for (size_t axis = 0; axis < 3; ++axis)
        if (int32_t slot = d->group_slots[axis]; slot >= 0)
          groups[axis] = static_cast<uint32_t>(slots.at(static_cast<size_t>(slot)));
      static_cast<const FakeProgram*>(d->program)->fn(at(d->args), groups);
    } else if (const auto* s = std::get_if<SignalCmd>(&c.body)) {
      s->signal->set(slots[s->value_slot]);
    }
  }
  FakeOptions options_;
  FakeSignal timeline_;
  std::deque<FakeList*> waiting_;
  uint64_t submitted_ = 0, clock_ = 1000;
};

class FakeDevice : public Device {
 public:
  explicit FakeDevice(FakeOptions o = {}) : options_(o), queue_(*this, o) {
    info_.name = "FAKE";
    info_.memory_bytes = o.limit_bytes;
    target_.features.device_address = true;
    target_.max_submission_ns = o.max_submission_ns;
  }
  ~FakeDevice() override {
    while (queue_.step()) {}
    shut_down();
    EXPECT_EQ(mapped, 0u) << "blocks left mapped";
  }
  const DeviceInfo& info() const override { return info_; }
  const Target& target() const override { return target_; }
  MemoryBlock map_block(size_t size_bytes, MemoryKind kind) override {
    if (mapped + size_bytes > options_.limit_bytes) fail<OutOfMemory>("fake limit");
    mapped += size_bytes;
    ++map_calls;
    auto* p =
        static_cast<std::byte*>(std::aligned_alloc(4096, (size_bytes + 4095) & ~size_t{4095}));
    bool hide = options_.hidden && (kind == MemoryKind::Device || kind == MemoryKind::Args);
    return {reinterpret_cast<uint64_t>(p), size_bytes, hide ? nullptr : p, kind, 0};
  }
  void unmap_block(const MemoryBlock& b) noexcept override {
    mapped -= b.size_bytes;
    // Whoever has the pages next may touch all of them, also in the address sanitizer's eyes.
    std::memset(reinterpret_cast<void*>(b.address), 0, b.size_bytes);
    std::free(reinterpret_cast<void*>(b.address));
  }
  std::vector<std::unique_ptr<Program>> load(std::span<const render::Binary>) override {
    return {};
  }
  FakeQueue& compute_queue() override { return queue_; }
  std::unique_ptr<Signal> create_signal(uint64_t value) override {
    auto signal = std::make_unique<FakeSignal>();
    signal->set(value);
    return signal;
  }
  size_t mapped = 0;
  int map_calls = 0;

 private:
  FakeOptions options_;
  DeviceInfo info_;
  Target target_;
  FakeQueue queue_;
};

}  // namespace tuff::hcq
