#include "devices/shuffle/machine.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/arith.h"
#include "base/check.h"
#include "base/os.h"
#include "base/os_memory_room.h"
#include "devices/cpu_program.h"

namespace tuff::devices::shuffle {

using namespace hcq;

namespace {

constexpr uint64_t kGroupNs = 1000, kKibibyteNs = 100;
constexpr uint64_t kMaxCopyPieces = 16;
constexpr size_t kCopyPieceBytes = 256;       // at least, where there is so much
constexpr uint64_t kBurstBits = 8;            // at most 2^7 pieces of one command in a row
constexpr uint64_t kPollBits = 6;             // at most 2^5 choices in one poll
constexpr uint64_t kMoodBits = 9;             // at most 2^8 choices
constexpr uint64_t kIdleSliceNs = 1'000'000;  // between looks at signals of other devices
constexpr uint64_t kStuckGapNs = 1'000'000'000;

template <class T>
bool is(const Command& c) {
  return std::holds_alternative<T>(c.body);
}

// What comes after all before it, however late that is.
bool comes_last(const Command& c) { return is<SignalCmd>(c) || is<TimestampCmd>(c); }

std::byte* at(const Span& s) { return reinterpret_cast<std::byte*>(s.address()); }

std::array<uint32_t, 3> groups_of(const DispatchCmd& d, std::span<const uint64_t> slots) {
  std::array<uint32_t, 3> groups = d.groups;
  for (size_t axis = 0; axis < 3; ++axis) {
    if (d.group_slots[axis] >= 0)
      groups[axis] = static_cast<uint32_t>(slots[static_cast<size_t>(d.group_slots[axis])]);
  }
  if (d.indirect) std::memcpy(groups.data(), at(d.indirect), sizeof(groups));
  return groups;
}

size_t copy_piece_bytes(size_t size_bytes) {
  return std::max<size_t>(kCopyPieceBytes, align_up(ceil_div(size_bytes, kMaxCopyPieces), 64));
}

uint64_t pieces_of(const Command& c, std::span<const uint64_t> slots) {
  if (const auto* copy = std::get_if<CopyCmd>(&c.body)) {
    const size_t size = copy->dst.size_bytes;
    return ceil_div(size, copy_piece_bytes(size));
  }
  if (const auto* d = std::get_if<DispatchCmd>(&c.body)) {
    const std::array<uint32_t, 3> groups = groups_of(*d, slots);
    return uint64_t{groups[0]} * groups[1] * groups[2];
  }
  return 1;
}

uint64_t cost_ns(const Command& c) {
  if (is<DispatchCmd>(c)) return kGroupNs;
  const auto* copy = std::get_if<CopyCmd>(&c.body);
  return copy ? copy_piece_bytes(copy->dst.size_bytes) * kKibibyteNs / 1024 : 0;
}

// The groups are those of the launch; where they are read from memory they are read once.
void run_group(const DispatchCmd& d, uint64_t group, uint64_t width, uint64_t height) {
  const auto* program = static_cast<const CpuProgram*>(d.program);
  // Spoilt: a group finds nothing in its scratch memory that it has not written.
  ScratchLine spoilt;
  spoilt.bytes.fill(std::byte{0xff});
  std::vector<ScratchLine> scratch(scratch_lines(program->scratch_bytes()), spoilt);
  program->fn()(d.args ? at(d.args) : nullptr, static_cast<uint32_t>(group % width),
                static_cast<uint32_t>(group / width % height),
                static_cast<uint32_t>(group / width / height), scratch.data());
}

void run_copy(const CopyCmd& c, uint64_t piece) {
  const size_t step = copy_piece_bytes(c.dst.size_bytes), begin = piece * step;
  std::memcpy(at(c.dst) + begin, at(c.src) + begin, std::min(step, c.dst.size_bytes - begin));
}

}  // namespace

// ---- what the host does

Machine::Machine(const ShuffleOptions& options, uint64_t seed, size_t queues)
    : options_(options), random_(seed), streams_(queues) {}

uint64_t Machine::submit(size_t queue, const std::shared_ptr<Recorded>& recorded,
                         std::span<const uint64_t> slots, ShuffleSignal& timeline) {
  std::lock_guard lock(mutex_);
  if (slots.size() < recorded->list.slot_count)
    fail<InvalidArgument>("SHUFFLE: {} values for the {} slots of a list", slots.size(),
                          recorded->list.slot_count);
  for (const Stream& other : streams_)
    for (const Submitted& s : other.submitted)
      if (s.recorded == recorded)
        fail<InvalidArgument>("SHUFFLE: a list is submitted again while it is in flight");
  Stream& stream = streams_[queue];
  stats_.host_ns += options_.submit_cost_ns;
  stats_.submissions++;
  Submitted& s = stream.submitted.emplace_back();
  s.recorded = recorded;
  s.slots.assign(slots.begin(), slots.end());
  s.timeline = &timeline;
  s.value = ++stream.last;
  s.host_ns = stats_.host_ns;
  stuck_since_ns_ = 0;
  changed_.notify_all();
  return s.value;
}

uint64_t Machine::last_submitted(size_t queue) const {
  std::lock_guard lock(mutex_);
  return streams_[queue].last;
}

uint64_t Machine::poll(const ShuffleSignal& signal) {
  std::unique_lock lock(mutex_);
  if (options_.polls_run && !stepping_ && random_.below(2) == 0) {
    for (uint64_t left = uint64_t{1} << random_.below(kPollBits); left > 0 && step(lock); left--) {}
  }
  stats_.host_ns = std::max<uint64_t>(stats_.host_ns, signal.since_ns_);
  return signal.value_;
}

bool Machine::run_until(const ShuffleSignal& signal, uint64_t value, uint64_t timeout_ns) {
  const uint64_t end_ns = os::monotonic_ns() + timeout_ns;
  std::unique_lock lock(mutex_);
  std::vector<Signal*> others;
  while (signal.value_ < value) {
    const bool ran = step(lock);
    const uint64_t now_ns = os::monotonic_ns();
    if (signal.value_ >= value) break;
    if (now_ns >= end_ns) return false;
    if (ran) continue;
    others = blocking();
    lock.unlock();
    for (Signal* s : others) s->value();  // another random-order device runs only if it is asked
    lock.lock();
    if (signal.value_ >= value) break;
    changed_.wait_for(lock, std::chrono::nanoseconds(std::min(kIdleSliceNs, end_ns - now_ns)));
  }
  stats_.host_ns = std::max<uint64_t>(stats_.host_ns, signal.since_ns_);
  return true;
}

void Machine::set(ShuffleSignal& signal, uint64_t value) {
  std::lock_guard lock(mutex_);
  if (value < signal.value_)
    fail<InvalidArgument>("SHUFFLE: a signal at {} is set to {}: timelines only rise",
                          signal.value_.load(), value);
  signal.value_ = value;
  signal.since_ns_ = stats_.host_ns;
  stuck_since_ns_ = 0;
  changed_.notify_all();
}

void Machine::forget(const Recorded& recorded) noexcept {
  std::lock_guard lock(mutex_);
  for (const Stream& stream : streams_)
    for (const Submitted& s : stream.submitted)
      if (s.recorded.get() == &recorded) fault_ = "a command list was destroyed while in flight";
}

void Machine::forget(const ShuffleSignal& signal) noexcept {
  std::lock_guard lock(mutex_);
  auto names = [&](const Command& c) {
    const auto* w = std::get_if<WaitCmd>(&c.body);
    const auto* s = std::get_if<SignalCmd>(&c.body);
    return (w && w->signal == &signal) || (s && s->signal == &signal);
  };
  for (const Stream& stream : streams_)
    for (const Submitted& s : stream.submitted)
      if (std::any_of(s.recorded->list.commands.begin(), s.recorded->list.commands.end(), names))
        fault_ = "a signal was destroyed while a list that names it was in flight";
}

void Machine::unmap(void* pages, size_t size_bytes) noexcept {
  std::lock_guard lock(mutex_);
  std::memset(pages, kSpoilt, size_bytes);
  unmapped_.push_back({pages, size_bytes});
  if (!pending()) release_pages();
}

void Machine::release_pages() noexcept {
  for (const Pages& p : unmapped_) os::unmap_pages_within_limits(p.at, p.size_bytes);
  unmapped_.clear();
}

void Machine::reseed(uint64_t seed) {
  std::lock_guard lock(mutex_);
  random_ = SplitMix64(seed);
  mood_ = {};
}

ShuffleStats Machine::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

void Machine::drop() noexcept {
  std::lock_guard lock(mutex_);
  dropping_ = true;
  if (!stepping_) clear_dropped();
}

void Machine::clear_dropped() {
  for (Stream& stream : streams_) stream.submitted.clear();
  release_pages();
  dropping_ = false;
}

bool Machine::pending() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](const Stream& s) { return !s.submitted.empty(); });
}

std::string Machine::defect(uint64_t limit_ns) const {
  std::lock_guard lock(mutex_);
  if (!fault_.empty()) return "SHUFFLE: " + fault_;
  if (stuck_since_ns_ == 0 || stuck_seen_ns_ - stuck_since_ns_ < limit_ns) return {};
  std::string text = "SHUFFLE: deadlock: nothing may run and nobody signals:";
  for (size_t q = 0; q < streams_.size(); q++) {
    if (streams_[q].submitted.empty()) continue;
    const Submitted& s = streams_[q].submitted.front();
    const auto& wait = std::get<WaitCmd>(s.recorded->list.commands[s.next].body);
    const auto* signal = dynamic_cast<const ShuffleSignal*>(wait.signal);
    text += fmt::format(" queue {}, submission {}, command {} waits for {}", q, s.value, s.next,
                        s.slots[wait.value_slot]);
    text += signal ? fmt::format(" of a signal at {};", signal->value_.load())
                   : " of another device's signal;";
  }
  return text;
}

// ---- what the device does

bool Machine::step(std::unique_lock<std::mutex>& lock) {
  if (stepping_ || !fault_.empty()) return false;
  advance();
  const size_t queue = choose_queue();
  if (queue == SIZE_MAX) {
    note_stuck();
    return false;
  }
  stuck_since_ns_ = 0;
  Submitted& s = streams_[queue].submitted.front();
  const size_t chosen = choose_command(s);
  if (!s.running[chosen].begun) begin(s.running[chosen], s.slots);
  stepping_ = true;
  try {
    run(lock, s, s.running[chosen]);
  } catch (...) {
    stepping_ = false;
    throw;
  }
  stepping_ = false;
  if (dropping_) {
    clear_dropped();
    return true;
  }
  if (s.running[chosen].left == 0)
    s.running.erase(s.running.begin() + static_cast<std::ptrdiff_t>(chosen));
  advance();
  if (!unmapped_.empty() && !pending()) release_pages();
  return true;
}

void Machine::note_stuck() {
  const uint64_t now_ns = os::monotonic_ns();
  // Counted while a thread waits for it to go on, not while the host is elsewhere.
  const bool anew = stuck_since_ns_ == 0 || now_ns - stuck_seen_ns_ > kStuckGapNs;
  stuck_seen_ns_ = now_ns;
  if (!pending())
    stuck_since_ns_ = 0;
  else if (anew)
    stuck_since_ns_ = now_ns;
}

void Machine::advance() {
  for (bool finished = true; finished;) {
    finished = false;
    for (Stream& stream : streams_) {
      while (!stream.submitted.empty()) {
        Submitted& s = stream.submitted.front();
        advance(s);
        if (s.next < s.recorded->list.commands.size() || !s.running.empty()) break;
        raise(*s.timeline, s.value);
        stream.submitted.pop_front();
        finished = true;
      }
    }
  }
}

void Machine::advance(Submitted& s) {
  const std::vector<Command>& commands = s.recorded->list.commands;
  for (; s.next < commands.size() && !holds_back(s, commands[s.next]); s.next++) {
    const Command& c = commands[s.next];
    if (!is<BarrierCmd>(c) && !is<WaitCmd>(c)) s.running.push_back({.command = &c});
  }
}

bool Machine::holds_back(const Submitted& s, const Command& c) const {
  if (is<BarrierCmd>(c))
    return std::any_of(s.running.begin(), s.running.end(),
                       [](const Running& r) { return !is<SignalCmd>(*r.command); });
  const auto* wait = std::get_if<WaitCmd>(&c.body);
  return wait && !reached(*wait, s);
}

bool Machine::reached(const WaitCmd& wait, const Submitted& s) const {
  const Signal& signal = *wait.signal;
  const auto* own = dynamic_cast<const ShuffleSignal*>(&signal);
  return (own ? own->value_.load() : signal.value()) >= s.slots[wait.value_slot];
}

std::vector<Signal*> Machine::blocking() const {
  std::vector<Signal*> out;
  for (const Stream& stream : streams_) {
    if (stream.submitted.empty()) continue;
    const Submitted& s = stream.submitted.front();
    if (s.next == s.recorded->list.commands.size()) continue;
    const auto* wait = std::get_if<WaitCmd>(&s.recorded->list.commands[s.next].body);
    const auto* signal = wait ? dynamic_cast<const ShuffleSignal*>(wait->signal) : nullptr;
    if (signal && signal->machine_.get() != this) out.push_back(wait->signal);
  }
  return out;
}

size_t Machine::choose_queue() {
  if (mood_.choices_left-- == 0) {
    const uint64_t pick = random_.below(4);
    mood_.pick = pick == 0 ? Mood::Pick::Newest : pick == 1 ? Mood::Pick::Oldest : Mood::Pick::Any;
    mood_.queue = random_.below(2 * streams_.size());
    mood_.choices_left = uint64_t{1} << random_.below(kMoodBits);
  }
  auto ready = [&](size_t q) {
    return !streams_[q].submitted.empty() && !streams_[q].submitted.front().running.empty();
  };
  if (mood_.queue < streams_.size() && ready(mood_.queue)) return mood_.queue;
  const size_t first = random_.below(streams_.size());
  for (size_t i = 0; i < streams_.size(); i++) {
    const size_t q = (first + i) % streams_.size();
    if (ready(q)) return q;
  }
  return SIZE_MAX;
}

size_t Machine::choose_command(const Submitted& s) {
  size_t chosen = mood_.pick == Mood::Pick::Newest   ? s.running.size() - 1
                  : mood_.pick == Mood::Pick::Oldest ? 0
                                                     : random_.below(s.running.size());
  while (chosen > 0 && comes_last(*s.running[chosen].command)) chosen--;
  return chosen;
}

void Machine::begin(Running& r, std::span<const uint64_t> slots) {
  r.begun = true;
  stats_.commands++;
  if (const auto* d = std::get_if<DispatchCmd>(&r.command->body)) {
    const std::array<uint32_t, 3> groups = groups_of(*d, slots);
    r.width = groups[0];
    r.height = groups[1];
  }
  r.pieces = r.left = pieces_of(*r.command, slots);
  if (r.pieces < 2) return;
  r.at = random_.below(r.pieces);
  do r.stride = 1 + random_.below(r.pieces);
  while (std::gcd(r.stride, r.pieces) != 1);
}

void Machine::run(std::unique_lock<std::mutex>& lock, Submitted& s, Running& r) {
  const uint64_t count = std::min(r.left, uint64_t{1} << random_.below(kBurstBits));
  spend(count * cost_ns(*r.command));
  stats_.steps += count;
  r.left -= count;
  if (const auto* call = std::get_if<HostCallCmd>(&r.command->body)) {
    lock.unlock();  // it may submit, set or poll
    call->fn(call->context);
    lock.lock();
  } else if (const auto* signal = std::get_if<SignalCmd>(&r.command->body)) {
    raise(*signal->signal, s.slots[signal->value_slot]);
  } else if (const auto* time = std::get_if<TimestampCmd>(&r.command->body)) {
    s.recorded->times[time->index] = os::monotonic_ns();
  } else {
    for (uint64_t i = 0; i < count; i++) {
      run_piece(r);
      r.at = (r.at + r.stride) % r.pieces;
    }
  }
}

void Machine::run_piece(const Running& r) const {
  if (const auto* d = std::get_if<DispatchCmd>(&r.command->body)) {
    run_group(*d, r.at, r.width, r.height);
  } else {
    run_copy(std::get<CopyCmd>(r.command->body), r.at);
  }
}

void Machine::raise(Signal& signal, uint64_t value) {
  auto* own = dynamic_cast<ShuffleSignal*>(&signal);
  if (own == nullptr) return signal.set(value);
  if (value < own->value_) {
    fault_ = fmt::format("a queue signals {} where {} has been reached: timelines only rise", value,
                         own->value_.load());
    return;
  }
  own->value_ = value;
  own->since_ns_ = stats_.device_ns;
  changed_.notify_all();
}

void Machine::spend(uint64_t cost_ns) {
  uint64_t earliest = UINT64_MAX;
  for (const Stream& stream : streams_)
    if (!stream.submitted.empty() && !stream.submitted.front().running.empty())
      earliest = std::min(earliest, stream.submitted.front().host_ns);
  const uint64_t start = std::max(stats_.device_ns, earliest);
  if (stats_.steps > 0) stats_.idle_ns += start - stats_.device_ns;
  stats_.device_ns = start + cost_ns;
  stats_.busy_ns += cost_ns;
}

// ---- what refers to the machine

Recorded::Recorded(const CommandList& from) : list(from), times(from.timestamp_count) {
  for (Command& c : list.commands) {
    c.accesses.clear();
    if (auto* d = std::get_if<DispatchCmd>(&c.body)) {
      keep(d->args);
      keep(d->indirect);
    } else if (auto* copy = std::get_if<CopyCmd>(&c.body)) {
      keep(copy->dst);
      keep(copy->src);
    }
  }
}

void Recorded::keep(Span& span) {
  if (span) span.block = &blocks_.try_emplace(span.block, *span.block).first->second;
}

ShuffleList::ShuffleList(std::shared_ptr<Machine> machine, const CommandList& list)
    : recorded(std::make_shared<Recorded>(list)), machine_(std::move(machine)) {}
ShuffleList::~ShuffleList() { machine_->forget(*recorded); }

ShuffleSignal::ShuffleSignal(std::shared_ptr<Machine> machine, uint64_t value)
    : machine_(std::move(machine)), value_(value) {}
ShuffleSignal::~ShuffleSignal() { machine_->forget(*this); }
uint64_t ShuffleSignal::value() const { return machine_->poll(*this); }
bool ShuffleSignal::wait(uint64_t value, uint64_t timeout_ns) {
  return machine_->run_until(*this, value, timeout_ns);
}
void ShuffleSignal::set(uint64_t value) { machine_->set(*this, value); }

}  // namespace tuff::devices::shuffle
