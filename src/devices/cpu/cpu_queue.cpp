#include "devices/cpu/cpu_queue.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/os_file_mapping.h"

namespace tuff::devices {
namespace {

using namespace hcq;

constexpr uint64_t kSleepNs = 1'000'000'000;  // between looks at the ring without a doorbell
constexpr uint64_t kNapNs = 500'000;
constexpr uint32_t kNaps = 200;  // in a row, before it sleeps
constexpr uint64_t kBlockedSliceNs =
    1'000'000;  // between looks at stop_ while a Wait holds the stream
constexpr uint64_t kHaltNs = 1'000'000'000;
constexpr uint64_t kLongNs = 20'000'000;  // waiting threads begin no kernel that takes longer
constexpr uint32_t kClockEvery = 8;       // packets

CpuPacket encode_dispatch(const DispatchCmd& c) {
  const auto* program = dynamic_cast<const CpuProgram*>(c.program);
  TUFF_CHECK(program != nullptr, "dispatch without a program of the CPU");
  TUFF_CHECK(c.args.size_bytes >= program->args().size_bytes(),
             "{}: argument block of {} bytes, needs {}", program->name(), c.args.size_bytes,
             program->args().size_bytes());
  CpuPacket p;
  p.dispatch = {program->fn(),
                c.args ? c.args.host() : nullptr,
                nullptr,
                &program->cost_ns(),
                {c.groups[0], c.groups[1], c.groups[2]}};
  if (c.indirect) {
    p.kind = CpuPacket::Kind::DispatchIndirect;
    p.dispatch.indirect = reinterpret_cast<const uint32_t*>(c.indirect.host());
  } else {
    bool one = p.dispatch.grid.count() == 1;
    p.kind = one ? CpuPacket::Kind::DispatchOne : CpuPacket::Kind::Dispatch;
  }
  return p;
}

CpuPacket encode_copy(const CopyCmd& c) {
  TUFF_CHECK(c.dst.size_bytes == c.src.size_bytes, "copy of {} bytes into {}", c.src.size_bytes,
             c.dst.size_bytes);
  CpuPacket p;
  p.kind = CpuPacket::Kind::Copy;
  p.copy = {c.dst.host(), c.src.host(), c.dst.size_bytes};
  return p;
}

CpuPacket encode_sync(CpuPacket::Kind kind, Signal* signal, uint32_t slot, uint32_t slot_count) {
  TUFF_CHECK(signal != nullptr && slot < slot_count, "slot {} of {}", slot, slot_count);
  CpuPacket p;
  p.kind = kind;
  p.sync = {signal, slot};
  return p;
}

}  // namespace

CpuQueue::CpuQueue(Device& device, const CpuApi& api, uint32_t threads)
    : Queue(device),
      api_(api),
      timeline_(*this),
      pool_(std::max(threads, 1u) - 1, device.target().shared_bytes),
      thread_([this] { serve(); }) {}

CpuQueue::~CpuQueue() { stop(); }

void CpuQueue::halt() noexcept {
  stop_.store(true, std::memory_order_seq_cst);
  ring_doorbell();
  if (std::this_thread::get_id() == thread_.get_id()) return;  // the consumer itself gives up
  // A Wait lets go within its slice. A kernel that never ends cannot be stopped: not waited for.
  uint64_t end_ns = os::monotonic_ns() + kHaltNs;
  while (consuming_.load(std::memory_order_seq_cst) && os::monotonic_ns() < end_ns)
    std::this_thread::yield();
}

void CpuQueue::stop() noexcept {
  stop_.store(true, std::memory_order_seq_cst);
  ring_doorbell();
  os::join_own(thread_, started_at_);
}

// What the parent's threads had begun goes on with the parent alone: half of it has happened here.
void CpuQueue::leave_threads() {
  std::lock_guard lock(fork_mutex_);
  if (process_.load() == os::forks()) return;
  const bool broken_off = consuming_.load() && has_work();
  os::join_own(thread_, started_at_);
  pool_.leave_workers();
  asleep_.store(false);
  consuming_.store(false);
  if (broken_off)
    device().declare_lost(fmt::format(
        "{}: the process was forked while it was at work: wait for it before fork()",
        device().name()));
  process_.store(os::forks(), std::memory_order_release);
}

std::unique_ptr<EncodedList> CpuQueue::encode(const CommandList& list, EncodeUse) {
  auto result = std::make_unique<CpuList>();
  result->packets.reserve(list.commands.size());
  result->slots.resize(list.slot_count);
  result->times.resize(list.timestamp_count);
  for (const Command& c : list.commands) {
    CpuPacket p;
    if (const auto* d = std::get_if<DispatchCmd>(&c.body)) {
      p = encode_dispatch(*d);
    } else if (const auto* copy = std::get_if<CopyCmd>(&c.body)) {
      p = encode_copy(*copy);
    } else if (const auto* w = std::get_if<WaitCmd>(&c.body)) {
      p = encode_sync(CpuPacket::Kind::Wait, w->signal, w->value_slot, list.slot_count);
    } else if (const auto* s = std::get_if<SignalCmd>(&c.body)) {
      p = encode_sync(CpuPacket::Kind::Signal, s->signal, s->value_slot, list.slot_count);
    } else if (const auto* t = std::get_if<TimestampCmd>(&c.body)) {
      TUFF_CHECK(t->index < list.timestamp_count, "timestamp {} of {}", t->index,
                 list.timestamp_count);
      p.kind = CpuPacket::Kind::Timestamp;
      p.time = {t->index};
    } else if (const auto* h = std::get_if<HostCallCmd>(&c.body)) {
      p.kind = CpuPacket::Kind::HostCall;
      p.call = {h->fn, h->context};
    } else {
      continue;  // a barrier: packets run one after another and share one coherent memory
    }
    result->packets.push_back(p);
  }
  return result;
}

uint64_t CpuQueue::submit(EncodedList& list, std::span<const uint64_t> slots) {
  note_fork();
  device().fail_if_lost();
  collect();
  auto& native = static_cast<CpuList&>(list);
  TUFF_CHECK(slots.size() == native.slots.size(), "{} slot values, {} encoded", slots.size(),
             native.slots.size());
  std::lock_guard lock(submit_mutex_);
  uint64_t value = submitted_.load(std::memory_order_relaxed) + 1;
  if (value > kRingEntries) wait(value - kRingEntries);  // the entry must have retired
  std::copy(slots.begin(), slots.end(), native.slots.begin());
  ring_[value % kRingEntries] = &native;
  submitted_.store(value, std::memory_order_seq_cst);
  ring_doorbell();
  return value;
}

std::vector<uint64_t> CpuQueue::timestamps(EncodedList& list) {
  return static_cast<CpuList&>(list).times;
}

// ---- consuming. One thread holds the role at a time; it alone touches cursor_.

// Of a launch that has no groups this time, as of a step that a loop is too short for.
static bool is_empty(const CpuPacket& p) {
  if (p.kind != CpuPacket::Kind::DispatchIndirect) return false;
  const uint32_t* groups = p.dispatch.indirect;
  return groups[0] == 0 || groups[1] == 0 || groups[2] == 0;
}

bool CpuQueue::is_late(const CpuPacket& next, uint64_t end_ns) {
  const bool shared =
      next.kind == CpuPacket::Kind::Dispatch || next.kind == CpuPacket::Kind::DispatchIndirect;
  if (shared && has_thread()) {
    const uint32_t* indirect = next.dispatch.indirect;
    const CpuGrid grid = next.kind == CpuPacket::Kind::Dispatch
                             ? next.dispatch.grid
                             : CpuGrid{indirect[0], indirect[1], indirect[2]};
    const uint64_t group_ns = next.dispatch.cost_ns->load(std::memory_order_relaxed);
    if (group_ns == 0 || group_ns * grid.count() / pool_.threads() > kLongNs) return true;
  }
  return ++packets_ % kClockEvery == 0 && os::monotonic_ns() > end_ns;
}

CpuQueue::Ended CpuQueue::run(CpuList& list, uint64_t end_ns) {
  // cursor_ is written where it may be read again: a kernel's stores would make every packet wait
  // for it otherwise.
  const CpuPacket* const first = list.packets.data();
  const CpuPacket* const end = first + list.packets.size();
  for (const CpuPacket* at = first + cursor_; at != end; ++at) {
    const CpuPacket& p = *at;
    if (is_empty(p)) continue;
    if (stop_.load(std::memory_order_relaxed)) {  // memory that the rest works on may go now
      cursor_ = static_cast<size_t>(at - first);
      blocked_on_ = {&never_, 1};
      return Ended::Blocked;
    }
    if (end_ns != UINT64_MAX && is_late(p, end_ns)) {
      cursor_ = static_cast<size_t>(at - first);
      return Ended::Late;
    }
    switch (p.kind) {
      case CpuPacket::Kind::DispatchOne:
        p.dispatch.fn(p.dispatch.args, 0, 0, 0, pool_.scratch());
        break;
      case CpuPacket::Kind::Dispatch:
        pool_.run(p.dispatch.fn, p.dispatch.args, p.dispatch.grid, *p.dispatch.cost_ns);
        note_progress();
        break;
      case CpuPacket::Kind::DispatchIndirect: {
        const uint32_t* groups = p.dispatch.indirect;
        pool_.run(p.dispatch.fn, p.dispatch.args, {groups[0], groups[1], groups[2]},
                  *p.dispatch.cost_ns);
        note_progress();
        break;
      }
      case CpuPacket::Kind::Copy: std::memcpy(p.copy.dst, p.copy.src, p.copy.size_bytes); break;
      case CpuPacket::Kind::Wait:
        cursor_ = static_cast<size_t>(at - first);
        if (p.sync.signal->value() >= list.slots[p.sync.slot]) break;
        blocked_on_ = {p.sync.signal, list.slots[p.sync.slot]};
        return Ended::Blocked;
      case CpuPacket::Kind::Signal:
        cursor_ = static_cast<size_t>(at - first);
        p.sync.signal->set(list.slots[p.sync.slot]);
        break;
      case CpuPacket::Kind::Timestamp: list.times[p.time.index] = os::monotonic_ns(); break;
      case CpuPacket::Kind::HostCall: p.call.fn(p.call.context); break;
    }
  }
  return Ended::Whole;
}

CpuQueue::Progress CpuQueue::consume(uint64_t until, uint64_t end_ns) {
  for (;;) {
    uint64_t next = timeline_.value() + 1;
    if (next > until) return Progress::Reached;
    if (next > submitted_.load(std::memory_order_acquire)) return Progress::Empty;
    if (stop_.load(std::memory_order_seq_cst)) return Progress::Empty;
    if (api_.runs) {
      const CpuApi::Run how = api_.runs(next);
      if (how == CpuApi::Run::Fails) return Progress::Failed;
      blocked_on_ = {&never_, 1};
      if (how == CpuApi::Run::Hangs) return Progress::Blocked;
    }
    pool_.expect_work(true);
    const Ended ended = run(*ring_[next % kRingEntries], end_ns);
    pool_.expect_work(false);
    if (ended != Ended::Whole)
      return ended == Ended::Late ? Progress::Late : Progress::Blocked;
    cursor_ = 0;
    timeline_.set(next);  // last: from here on the list belongs to its owner again
  }
}

void CpuQueue::declare_failed() noexcept {
  device().declare_lost(fmt::format("{}: a command list failed", device().name()));
}

void CpuQueue::leave_role() {
  consuming_.store(false, std::memory_order_seq_cst);
  if (has_work()) ring_doorbell();
}

bool CpuQueue::has_work() const {
  return submitted_.load(std::memory_order_seq_cst) > timeline_.value();
}

void CpuQueue::ring_doorbell() {
  doorbell_.fetch_add(1, std::memory_order_seq_cst);
  // One wake-up is enough however many submissions come before the thread runs.
  if (asleep_.load(std::memory_order_seq_cst) && asleep_.exchange(false))
    os::futex_wake(&doorbell_, 1);
}

void CpuQueue::sleep_until_rung() {
  uint32_t seen = doorbell_.load(std::memory_order_seq_cst);
  for (int i = 0; i < kSpinRounds; ++i) {
    if (has_work() && !consuming_.load(std::memory_order_seq_cst)) return;
    os::cpu_relax();
  }
  const bool naps = waiter_runs_.load(std::memory_order_relaxed) && naps_++ < kNaps;
  asleep_.store(!naps, std::memory_order_seq_cst);
  bool idle = !has_work() || consuming_.load(std::memory_order_seq_cst);
  if (idle && !stop_.load(std::memory_order_seq_cst))
    os::futex_wait(&doorbell_, seen, naps ? kNapNs : kSleepNs);
  asleep_.store(false, std::memory_order_seq_cst);
}

// The queue's own thread keeps the role while a Wait holds the stream, so the list, and with it the
// signal, stays alive while it sleeps on that signal; any kind of signal may be waited for.
void CpuQueue::serve_stream() {
  try {
    Progress progress = consume(UINT64_MAX);
    while (progress == Progress::Blocked && !stop_.load(std::memory_order_seq_cst)) {
      blocked_on_.signal->wait(blocked_on_.value, kBlockedSliceNs);
      progress = consume(UINT64_MAX);
    }
    if (progress == Progress::Failed) declare_failed();
  } catch (const Error& e) {  // the other device is lost, so what waits for it is too
    device().declare_lost(
        fmt::format("{}: a wait in the queue failed: {}", device().name(), e.what()));
  }
}

void CpuQueue::serve() {
  // Who rings the doorbell often waits next, and then runs the list itself: see Timeline::wait.
  os::wake_without_preempting();
  os::unblock_bus_errors();
  while (!stop_.load(std::memory_order_seq_cst)) {
    if (has_work() && take_role()) {
      waiter_runs_.store(false, std::memory_order_relaxed);
      serve_stream();
      consuming_.store(false, std::memory_order_seq_cst);
    }
    sleep_until_rung();
  }
}

bool CpuQueue::Timeline::wait(uint64_t value, uint64_t timeout_ns) {
  uint64_t end_ns = os::monotonic_ns() + timeout_ns;
  CpuQueue& q = queue_;
  q.note_fork();
  bool helps = true;
  for (int spins = 0;;) {
    if (this->value() >= value) return true;
    if (helps && q.has_work() && q.take_role()) {
      Progress progress = q.consume(value, end_ns);
      q.leave_role();
      if (progress == Progress::Reached) {
        q.waiter_runs_.store(true, std::memory_order_relaxed);
        q.naps_.store(0, std::memory_order_relaxed);
        return true;
      }
      if (progress == Progress::Failed) {
        q.declare_failed();
        return false;
      }
      helps = progress != Progress::Late;
      spins = kSpinRounds;  // held by a Wait, or long: nothing to do here but sleep
    }
    if (++spins < kSpinRounds) {
      os::cpu_relax();
      continue;
    }
    uint64_t now_ns = os::monotonic_ns();
    if (now_ns >= end_ns) return this->value() >= value;
    sleep(value, std::min<uint64_t>(end_ns - now_ns, 1'000'000));
  }
}

}  // namespace tuff::devices
