// The host engine of a channel. Sources: NVIDIA open-gpu-doc manuals/ampere/ga100/dev_pbdma.ref,
// dev_ram.ref (entries, methods, semaphores), classes/host/clc56f.h.
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/check.h"
#include "emu/kernel/clock.h"
#include "emu/nv/channel.h"

namespace tuff::emu::nv {
namespace {

constexpr uint32_t kMostWords = 1u << 21;
constexpr uint64_t kAddressMask = (uint64_t{1} << 40) - 1;
// Bits of a GPFIFO entry: LEVEL, LENGTH, SYNC.
constexpr int kLevelBit = 41, kLengthBit = 42, kSyncBit = 63;

template <class T>
T load_word(const void* from) {
  return std::atomic_ref(*static_cast<T*>(const_cast<void*>(from))).load();
}

}  // namespace

Channel::Channel(World& world, const ChannelSetup& setup, Announce announce)
    : world_(world),
      setup_(setup),
      announce_(std::move(announce)),
      slot_(world.take_slot()),
      issuer_(world, setup.id),
      compute_(issuer_, [this](const ChannelError& error) { end(error); }),
      copy_(issuer_) {}

void Channel::kill() {
  dead_ = true;
  compute_.kill();
  copy_.kill();
  stand_still();
}

// What it has begun runs no more, and other GPUs may use the memory.
void Channel::stand_still() {
  Order ended = issuer_.order;
  ended.add(op_id(world_.now(), slot_));
  compute_.add_all(ended);
  copy_.add_all(ended);
  world_.stands_still(ended);
}

// Who rings may have seen everything that was released so far.
void Channel::ring() {
  const uint32_t put = load_word<uint32_t>(setup_.put);
  if (put == end_) return;
  end_ = put;
  world_.learn_released(issuer_.order);
}

void Channel::offer(std::vector<Choice>& choices) {
  if (dead_) return;
  for (uint32_t k = 0; k < compute_.choices(); ++k) choices.push_back({this, Work::Kernel, k});
  for (uint32_t k = 0; k < copy_.choices(); ++k) choices.push_back({this, Work::Copy, k});
  if (pending_ || at_ < words_.size() || get_ != end_) choices.push_back({this, Work::Method, 0});
}

// The error's record is written before anything is told, so that who hears of it finds the record.
void Channel::end(const ChannelError& error) {
  announce_(error);
  kill();
}

bool Channel::perform(const Choice& choice) {
  try {
    switch (choice.work) {
      case Work::Kernel: compute_.run(choice.index); return true;
      case Work::Copy: copy_.advance(choice.index); return true;
      case Work::Method: return take();
    }
  } catch (const BadMethod& b) {
    end({b.error, {}, b.why});
    world_.report(FindingKind::BadPacket, setup_.id, 0, b.why);
  } catch (const EngineFault& f) {
    const MemoryFault where = world_.caches.fault();
    const std::string why =
        fmt::format("{} at {:#x}, where nothing is mapped for it", f.what, where.address);
    end({kMmuFault, where, why});
    world_.report(FindingKind::PageFault, setup_.id, where.address, why);
  }
  return true;
}

std::string Channel::blocked() const {
  return dead_ || !waiting_ ? "" : fmt::format("channel {} waits: {}", setup_.id, *waiting_);
}

// ---- entries and methods

bool Channel::take() {
  if (world_.methods_left == 0) return false;
  if (!pending_ && at_ == words_.size() && !fetch()) return false;
  return run_method();
}

bool Channel::fetch() {
  if (get_ == end_) return false;
  if (end_ >= setup_.entries) bad(kHostError, "GPPut {} of {} entries", end_, setup_.entries);
  const uint64_t at = setup_.gpfifo_address + uint64_t(get_) * 8,
                 entry = load_word<uint64_t>(issuer_.peek(at, 8, "the GPFIFO"));
  const uint64_t address = entry & kAddressMask & ~uint64_t{3};
  const uint32_t words = uint32_t(entry >> kLengthBit) & (kMostWords - 1);
  if (words == 0 || (entry & 3) || !(entry >> kLevelBit & 1) || entry >> kSyncBit)
    bad(kHostError, "GPFIFO entry {:#x}", entry);
  const Accessor who = issuer_.accessor(slot_, "a pushbuffer's fetch");
  words_.resize(words);
  for (uint64_t at = 0; at < words * uint64_t{4};) {
    const uint64_t from = address + at;
    const auto bytes =
        uint32_t(std::min<uint64_t>(words * uint64_t{4} - at, kPageBytes - from % kPageBytes));
    std::memcpy(reinterpret_cast<uint8_t*>(words_.data()) + at,
                issuer_.reach(who, {from, bytes, Path::L2, true, false}), bytes);
    at += bytes;
  }
  issuer_.order.add(who.op);
  at_ = 0;
  get_ = (get_ + 1) % setup_.entries;
  return true;
}

Channel::Pending Channel::next_method() {
  const uint32_t head = words_[at_++], kind = head >> 29;
  Pending p;
  p.method = (head & 0xfff) * 4;
  p.subchannel = head >> 13 & 7;
  p.left = head >> 16 & 0x1fff;
  p.increasing = kind == 1;
  p.immediate = kind == 4;
  if ((head & 0x1000) || (kind != 1 && kind != 3 && kind != 4))
    bad(kHostError, "pushbuffer word {:#x} is no method", head);
  if (p.immediate) p.data = std::exchange(p.left, 1);
  else if (p.left > words_.size() - at_)
    bad(kHostError, "method {:#x} has {} words of data, {} are there", p.method, p.left,
        words_.size() - at_);
  return p;
}

// One method with its data; true if it is done.
bool Channel::run_method() {
  if (!pending_) {
    pending_ = next_method();
    if (pending_->left == 0) return pending_.reset(), true;
  }
  Pending& p = *pending_;
  if (!run_method(p.subchannel, p.method, p.immediate ? p.data : words_[at_])) return false;
  waiting_.reset();
  --world_.methods_left;
  if (!p.immediate) ++at_;
  if (p.increasing) p.method += 4;
  if (--p.left == 0) pending_.reset();
  return true;
}

bool Channel::run_method(uint32_t subchannel, uint32_t method, uint32_t data) {
  if (method == host::SET_OBJECT) {
    if (std::ranges::find(setup_.engine_classes, data) == setup_.engine_classes.end())
      bad(kClassError, "SET_OBJECT {:#x}; the channel's engines are {:#x}", data,
          fmt::join(setup_.engine_classes, ", "));
    bound_[subchannel] = data;
    return true;
  }
  if (method < host::END) return host_method(method, data);
  if (bound_[subchannel] == 0)
    bad(kClassError, "method {:#x} of subchannel {}, to which no class is bound", method,
        subchannel);
  copied_last_ = bound_[subchannel] != world_.chip.compute_class;
  return copied_last_ ? copy_.method(method, data) : compute_.method(method, data);
}

bool Channel::host_method(uint32_t method, uint32_t data) {
  switch (method) {
    case host::NOP:
    case host::NON_STALL_INTERRUPT: return true;  // nobody has asked to be told
    case host::WFI:
      if (data > 1) bad(kHostError, "WFI {:#x}", data);
      return idle();
    case host::SEM_EXECUTE: return semaphore(data);
    default: break;
  }
  if (method < host::SEM_ADDR_LO || method > host::SEM_EXECUTE)
    bad(kHostError, "host method {:#x}", method);
  semaphore_[(method - host::SEM_ADDR_LO) / 4] = data;
  return true;
}

// ---- semaphores

bool Channel::semaphore(uint32_t execute) {
  const uint64_t address = semaphore_[0] | uint64_t(semaphore_[1]) << 32,
                 payload = semaphore_[2] | uint64_t(semaphore_[3]) << 32;
  const uint32_t operation = execute & host::kOperation;
  if (!(execute & host::kPayload64)) bad(kHostError, "a semaphore of 32 bits");
  const bool timed = execute & host::kTimestamp;
  if (address >> 40 || address % (timed ? 16 : 8))
    bad(kHostError, "a semaphore {}at {:#x}", timed ? "with a timestamp " : "", address);
  if (operation == host::kAcquireCircularGeq) {
    if (execute & ~(host::kOperation | host::kPayload64 | host::kSwitchTsg))
      bad(kHostError, "SEM_EXECUTE {:#x}", execute);
    return acquire(address, payload);
  }
  const uint32_t known =
      host::kOperation | host::kPayload64 | host::kReleaseWfi | host::kTimestamp;
  if (operation != host::kRelease || (execute & ~known))
    bad(kHostError, "SEM_EXECUTE {:#x}", execute);
  if ((execute & host::kReleaseWfi) && !idle()) return false;
  release(address, payload, execute);
  return true;
}

// At least, by signed difference.
bool Channel::acquire(uint64_t address, uint64_t payload) {
  const uint64_t value = load_word<uint64_t>(issuer_.peek(address, 8, "a semaphore's acquire"));
  if (int64_t(value - payload) < 0) {
    waiting_ = fmt::format("the semaphore at {:#x} is {}, wanted is {}", address, value, payload);
    return false;
  }
  world_.acquire(address, value, issuer_.order);
  return true;
}

// The timestamp is written before the payload.
void Channel::release(uint64_t address, uint64_t payload, uint32_t execute) {
  const bool stored = (!(execute & host::kTimestamp) ||
                       world_.caches.store(address + 8, clock_ns(CLOCK_REALTIME), 8)) &&
                      world_.caches.store(address, payload, 8);
  if (!stored) throw EngineFault{"a semaphore's release"};
  world_.release(address, payload, issuer_.order);
}

}  // namespace tuff::emu::nv
