#include "emu/amd/queue.h"

#include <atomic>
#include <cstring>

#include "base/check.h"
#include "emu/amd/clock.h"

namespace tuff::emu::amd {
namespace {

constexpr size_t kKernelsInFlight = 8, kCopiesInFlight = 4;
constexpr int kSlicesPerStep = 4;
constexpr uint64_t kCopyBytesPerStep = 64 * 1024;

template <class T>
T load(const void* from) {
  return std::atomic_ref(*static_cast<T*>(const_cast<void*>(from))).load();
}

FindingKind kind_of(rdna::FindingKind kind) {
  switch (kind) {
    case rdna::FindingKind::StaleData: return FindingKind::StaleData;
    case rdna::FindingKind::StaleCode: return FindingKind::StaleCode;
    case rdna::FindingKind::ConcurrentUse: return FindingKind::ConcurrentUse;
    default: return FindingKind::Kernel;
  }
}

}  // namespace

bool WordWait::holds(uint32_t value) const {
  value &= mask;
  switch (function) {
    case 0: return true;
    case 1: return value < reference;
    case 2: return value <= reference;
    case 3: return value == reference;
    case 4: return value != reference;
    case 5: return value >= reference;
    case 6: return value > reference;
  }
  return false;
}

std::string WordWait::text() const {
  constexpr const char* kFunctions[] = {"anything", "<", "<=", "==", "!=", ">=", ">", "?"};
  return fmt::format("[{:#x}] & {:#x} {} {:#x}", address, mask, kFunctions[function & 7],
                     reference);
}

Queue::Queue(Chip& chip, const QueueSetup& setup)
    : chip_(chip),
      setup_(setup),
      kernel_slot_(chip.take_slot()),
      copy_slot_(chip.take_slot()),
      engine_slot_(chip.take_slot()),
      order_(chip.released()) {}

Queue::~Queue() {
  chip_.give_slot(kernel_slot_);
  chip_.give_slot(copy_slot_);
  chip_.give_slot(engine_slot_);
}

void Queue::forget_order() {
  order_ = {};
  glv_ = glk_ = gl1_ = gli_ = {};
}

// ---- what goes on

bool Queue::ready(const Pending& p) const {
  return kernels_.empty() || kernels_.front().memory->accessor().op > p.after;
}

void Queue::offer(std::vector<Choice>& choices) {
  if (dead_) return;
  for (uint32_t k = 0; k < kernels_.size(); ++k) choices.push_back({this, Work::Kernel, k});
  // Copies overlap, but no more than two.
  for (uint32_t k = 0; k < copies_.size() && k < 2; ++k) choices.push_back({this, Work::Copy, k});
  if (!releases_.empty() && ready(releases_.front())) {
    choices.push_back({this, Work::Release, 0});
  }
  choices.push_back({this, Work::Packet, 0});
}

bool Queue::perform(const Choice& choice) {
  try {
    return work(choice);
  } catch (const BadPacket& e) {
    chip_.report(FindingKind::BadPacket, id(), e.address, e.what());
    kill(e.what());
    chip_.events.queue_error(chip_.index, id(), e.what());
  } catch (const EngineFault& e) {
    fault(e.what, chip_.caches.fault());
    chip_.report(FindingKind::PageFault, id(), chip_.caches.fault().address, *dead_);
  } catch (const Error& e) {  // the host is out of memory, above all; engines have no caller
    kill(e.what());
    chip_.events.queue_error(chip_.index, id(), e.what());
  }
  return true;
}

bool Queue::work(const Choice& choice) {
  switch (choice.work) {
    case Work::Packet: return take();
    case Work::Kernel: advance(choice.index); return true;
    case Work::Copy: advance_copy(choice.index); return true;
    case Work::Release: {
      const Pending pending = std::move(releases_.front());
      releases_.pop_front();
      carry_out(pending.release, pending.order);
      return true;
    }
  }
  return false;
}

void Queue::kill(std::string why) {
  kernels_.clear();
  copies_.clear();
  releases_.clear();
  if (!dead_) dead_ = std::move(why);
}

void Queue::fault(const std::string& what, const MemoryFault& f) {
  kill(fmt::format("{} {} {:#x}, {}", what,
                   f.execute ? "fetches from"
                   : f.write ? "writes to"
                             : "reads from",
                   f.address, f.not_present ? "where nothing is mapped" : "which it may not"));
  chip_.events.memory_fault(chip_.index, f);
}

std::string Queue::blocked() {
  const std::string name = fmt::format("GPU {}, queue {}", chip_.index, id());
  if (dead_) return fmt::format("{} stands still: {}", name, *dead_);
  if (!kernels_.empty()) {
    const Kernel& k = kernels_.front();
    return fmt::format("{} runs {}: {}", name, k.name, k.dispatch->places());
  }
  if (!waiting_) return {};
  const uint8_t* word = chip_.caches.peek(waiting_->address, 4);
  return fmt::format("{} waits for {}, which holds {:#x}", name, waiting_->text(),
                     word ? load<uint32_t>(word) : 0);
}

// ---- the ring

std::optional<uint64_t> Queue::announced(uint64_t read) {
  const uint64_t doorbell = load<uint64_t>(setup_.doorbell);
  if (doorbell == ~0ull) return std::nullopt;
  const uint64_t end = setup_.kind == QueueKind::Aql ? doorbell + 1 : doorbell;
  if (doorbell != doorbell_) {
    doorbell_ = doorbell;
    // Who rings may have seen everything that was released so far.
    order_.join(chip_.released());
    const uint64_t stored = load<uint64_t>(peek(setup_.write_pointer_address, 8, "write pointer"));
    if (stored < end) {
      bad("the doorbell announces {}, the write pointer in memory says {}", end, stored);
    }
  }
  return end == read ? std::nullopt : std::optional(end);
}

bool Queue::may_take() { return chip_.events.may_take_packet(chip_.index, id()); }

void Queue::publish_read_pointer(uint64_t value, uint32_t bytes) {
  if (!chip_.caches.store(setup_.read_pointer_address, value, bytes)) {
    throw EngineFault{"the read pointer's write"};
  }
}

const uint8_t* Queue::peek(uint64_t address, uint32_t bytes, const char* packet) {
  const uint8_t* found = chip_.caches.peek(address, bytes);
  if (!found) throw EngineFault{packet};
  return found;
}

// ---- order

Accessor Queue::accessor(uint32_t slot, const std::string& name) {
  Accessor who;
  who.op = chip_.begin(slot, name);
  who.queue = id();
  who.name = name;
  who.ended = order_;
  who.vector = Invalidation::both(glv_, gl1_);
  who.scalar = Invalidation::both(glk_, gl1_);
  who.code = Invalidation::both(gli_, gl1_);
  return who;
}

bool Queue::idle_kernels() {
  if (!kernels_.empty()) return false;
  order_.add(op_id(chip_.now(), kernel_slot_));
  return true;
}

bool Queue::idle_copies() {
  if (!copies_.empty()) return false;
  order_.add(op_id(chip_.now(), copy_slot_));
  return true;
}

bool Queue::ended() { return releases_.empty() && idle_kernels() && idle_copies(); }

bool Queue::wait(const WordWait& w) {
  const uint32_t value = load<uint32_t>(peek(w.address, 4, "a wait"));
  if (!w.holds(value)) {
    waiting_ = w;
    return false;
  }
  waiting_.reset();
  order_.join(chip_.learned(w.address, value));
  return true;
}

void Queue::acquire(const CacheActions& actions) { apply(actions, order_); }

void Queue::apply(const CacheActions& a, const Order& order) {
  const Invalidation now{order, chip_.tick()};
  if (a.gl2_wb) chip_.caches.write_back();
  if (a.gl2_inv) {
    if (const size_t lines = chip_.caches.invalidate()) {
      chip_.report(FindingKind::StaleData, id(), 0,
                   fmt::format("GL2_INV without GL2_WB drops {} lines that memory has not", lines));
    }
  }
  if (a.glv_inv) glv_ = now;
  if (a.glk_inv) glk_ = now;
  if (a.gl1_inv) gl1_ = now;
  if (!a.gli_inv) return;
  gli_ = now;
  chip_.code.invalidate();
}

void Queue::release(const Release& release) {
  Pending p{op_id(chip_.tick(), kernel_slot_), order_, release};
  p.order.add(p.after);
  releases_.push_back(std::move(p));
}

void Queue::store(const Release& release) { carry_out(release, order_); }

void Queue::carry_out(const Release& r, const Order& order) {
  apply(r.caches, order);
  const uint64_t value = r.data == Release::Data::Clock ? gpu_clock() : r.value;
  if (!chip_.caches.store(r.address, value, r.data == Release::Data::Word ? 4 : 8)) {
    throw EngineFault{r.packet};
  }
  chip_.signalled(r.address, r.value, order);
  if (r.interrupt) chip_.events.interrupt(chip_.index, r.event_id);
}

// ---- kernels

bool Queue::can_launch() const { return kernels_.size() < kKernelsInFlight; }

void Queue::launch(rdna::Launch launch, bool system_release) {
  std::string name = chip_.events.kernel_at(launch.entry_address);
  if (name.empty()) name = fmt::format("at {:#x}", launch.entry_address);
  launch.kernel = name;
  launch.seed = chip_.random.next();
  Kernel k;
  k.name = fmt::format("kernel `{}`", name);
  k.memory = std::make_unique<KernelMemory>(chip_, accessor(kernel_slot_, k.name));
  if (chip_.profiler) k.recording = chip_.profiler->record(launch);
  k.dispatch =
      std::make_unique<rdna::Dispatch>(std::move(launch), *k.memory, chip_.code,
                                       k.recording ? &k.recording->counters() : nullptr);
  k.system_release = system_release;
  kernels_.push_back(std::move(k));
  ++chip_.stats.dispatches;
}

void Queue::advance(uint32_t index) {
  for (int k = 0; k < kSlicesPerStep; ++k) {
    if (!kernels_[index].dispatch->step()) return finish(index);
  }
}

void Queue::finish(uint32_t index) {
  const Kernel k = std::move(kernels_[index]);
  kernels_.erase(kernels_.begin() + index);
  const rdna::Outcome& outcome = k.dispatch->outcome();
  chip_.stats.instructions += outcome.instructions;
  for (const rdna::Finding& f : outcome.findings) {
    chip_.report(kind_of(f.kind), id(), f.data_address, to_text(f));
  }
  if (k.system_release) chip_.caches.write_back();
  if (outcome.finished) {
    if (k.recording) chip_.profiler->report(*k.recording);
    return;
  }
  if (k.memory->fault()) return fault(k.name, *k.memory->fault());
  const bool hangs =
      !outcome.findings.empty() && outcome.findings.back().kind == rdna::FindingKind::Hang;
  kill(outcome.findings.empty() ? k.name + " has stopped" : to_text(outcome.findings.back()));
  if (!hangs) chip_.events.queue_error(chip_.index, id(), *dead_);
}

// ---- engines' accesses

uint8_t* Queue::reach(const Accessor& who, const Request& request) {
  Conflict conflict;
  uint8_t* bytes = chip_.caches.reach(who, request, conflict);
  if (!bytes) throw EngineFault{who.name};
  if (conflict.kind != Conflict::Kind::None) chip_.report(who, request, conflict);
  return bytes;
}

void Queue::read(uint64_t address, void* out, uint32_t bytes, const char* packet) {
  const Accessor who = accessor(engine_slot_, packet);
  std::memcpy(out, reach(who, {address, bytes, Path::L2, true, false}), bytes);
  order_.add(who.op);
}

bool Queue::can_copy() const { return copies_.size() < kCopiesInFlight; }

void Queue::copy(const char* packet, uint64_t dst, uint64_t src, uint64_t bytes) {
  copies_.push_back({accessor(copy_slot_, packet), dst, src, bytes});
}

void Queue::advance_copy(uint32_t index) {
  Copy& c = copies_[index];
  for (uint64_t done = 0; c.bytes > 0 && done < kCopyBytesPerStep;) {
    const uint64_t bytes =
        std::min({c.bytes, kPageBytes - c.src % kPageBytes, kPageBytes - c.dst % kPageBytes});
    const uint8_t* from = reach(c.who, {c.src, uint32_t(bytes), Path::L2, true, false});
    uint8_t* to = reach(c.who, {c.dst, uint32_t(bytes), Path::L2, false, true});
    std::memmove(to, from, bytes);
    c.src += bytes, c.dst += bytes, c.bytes -= bytes, done += bytes;
  }
  if (c.bytes == 0) copies_.erase(copies_.begin() + index);
}

}  // namespace tuff::emu::amd
