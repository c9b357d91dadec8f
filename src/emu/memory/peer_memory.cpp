#include "emu/memory/peer_memory.h"

#include <algorithm>

#include "base/check.h"

namespace tuff::emu {
namespace {

constexpr size_t kPeerNamesKept = 4096;
constexpr uint64_t kWordBytes = 4, kWordsPerPage = kPageBytes / kWordBytes;
constexpr int kGpuBit = 4, kSlotBit = 8, kSerialBit = kSlotBit + int(kSlotBits);

uint32_t gpu_of(uint64_t use) { return use >> kGpuBit & 15; }
bool same_operation(uint64_t a, uint64_t b) { return a >> kGpuBit == b >> kGpuBit; }
bool known(const Order& order, uint64_t use) {
  return order.knows_of_peer(gpu_of(use), use >> kSlotBit & (kSlots - 1), use >> kSerialBit);
}

// Which bytes of a word are in [begin, end).
uint64_t touched_bytes(uint64_t word, uint64_t begin, uint64_t end) {
  const uint64_t first = word * kWordBytes;
  uint64_t out = 0xF;
  if (begin > first) out &= 0xF << (begin - first);
  if (end < first + kWordBytes) out &= 0xF >> (first + kWordBytes - end);
  return out;
}

}  // namespace

// One access to words, and the first use by another GPU that nothing orders with it.
struct PeerMemory::Judgement {
  uint64_t me;  // without bytes
  const Order &ended, &visible;
  Use found = 0;
  bool found_writes = false;

  bool is_of_another(Use use, uint64_t bytes) const {
    return (use & bytes) && gpu_of(use) != gpu_of(me);
  }
  void judge(Use use, uint64_t bytes, const Order& order, bool writes) {
    if (found || !is_of_another(use, bytes) || known(order, use)) return;
    found = use;
    found_writes = writes;
  }
  void read(Word& w, uint64_t bytes) {
    judge(w.writer, bytes, visible, true);
    if (w.reader && gpu_of(w.reader) != gpu_of(me)) w.other_reader = w.reader;
    w.reader = (same_operation(w.reader, me) ? w.reader : me) | bytes;
  }
  void write(Word& w, uint64_t bytes) {
    judge(w.writer, bytes, ended, true);
    for (const Use reader : {w.reader, w.other_reader}) judge(reader, bytes, ended, false);
    w.writer = (same_operation(w.writer, me) ? w.writer : me) | bytes;
  }
};

PeerMemory::PeerMemory(uint32_t gpus) : names_(gpus), released_(gpus) {
  TUFF_CHECK(gpus <= 16, "{} GPUs in one machine", gpus);
}

PeerMemory::Entry& PeerMemory::entry_of(const std::shared_ptr<Buffer>& buffer) {
  std::erase_if(entries_, [](const auto& e) { return e.second.buffer.expired(); });
  Entry& e = entries_[buffer.get()];
  e.buffer = buffer;
  return e;
}

void PeerMemory::share(const std::shared_ptr<Buffer>& buffer) {
  std::lock_guard lock(mutex_);
  entry_of(buffer).shared = true;
}

void PeerMemory::signalled(Peer by, const Order& order, const std::shared_ptr<Buffer>& buffer,
                           uint64_t offset, uint64_t value) {
  PeerClock clock = order.clock(by.gpu, released_.size(), by.restarts);
  std::lock_guard lock(mutex_);
  join(released_, clock);
  entry_of(buffer).signals[offset] = {value, std::move(clock)};
}

void PeerMemory::released(Peer by, const Order& order) {
  const PeerClock clock = order.clock(by.gpu, released_.size(), by.restarts);
  std::lock_guard lock(mutex_);
  join(released_, clock);
}

void PeerMemory::learn(Peer by, Order& order, const Buffer& buffer, uint64_t offset,
                       uint64_t value) const {
  std::lock_guard lock(mutex_);
  const PeerClock* told = &released_;
  if (const auto e = entries_.find(&buffer); e != entries_.end() && !e->second.buffer.expired()) {
    const auto signal = e->second.signals.find(offset);
    if (signal != e->second.signals.end() && signal->second.value == value)
      told = &signal->second.clock;
  }
  order.learn(*told, by.gpu, by.restarts);
}

void PeerMemory::learn_released(Peer by, Order& order) const {
  std::lock_guard lock(mutex_);
  order.learn(released_, by.gpu, by.restarts);
}

std::optional<PeerConflict> PeerMemory::use(Peer by, const Accessor& who, const Mapping& mapping,
                                            const Request& request) {
  std::lock_guard lock(mutex_);
  const auto e = entries_.find(mapping.buffer.get());
  if (e == entries_.end() || !e->second.shared || e->second.buffer.expired()) return {};
  const uint64_t serial = peer_serial(by.restarts, serial_of(who.op));
  std::map<uint64_t, std::string>& names = names_[by.gpu];
  names.try_emplace(names.end(), serial, who.name);
  if (names.size() > kPeerNamesKept) names.erase(names.begin());

  Judgement j{serial << kSerialBit | uint64_t(slot_of(who.op)) << kSlotBit | by.gpu << kGpuBit,
              who.ended, visible_to(who, request.path)};
  const uint64_t begin = request.address - mapping.address, end = begin + request.bytes;
  for (uint64_t word = begin / kWordBytes; word * kWordBytes < end; ++word) {
    std::vector<Word>& page = e->second.pages[word / kWordsPerPage];
    if (page.empty()) page.resize(kWordsPerPage);
    Word& w = page[word % kWordsPerPage];
    const uint64_t bytes = touched_bytes(word, begin, end);
    if (request.read) j.read(w, bytes);
    if (request.write) j.write(w, bytes);
  }
  if (!j.found) return {};
  const bool unseen = j.found_writes && known(who.ended, j.found);
  const auto name = names_[gpu_of(j.found)].find(j.found >> kSerialBit);
  return PeerConflict{
      {unseen ? Conflict::Kind::Unseen : Conflict::Kind::Concurrent, 0, j.found_writes,
       request.address},
      fmt::format("{} of GPU {}",
                  name == names_[gpu_of(j.found)].end() ? "an earlier operation" : name->second,
                  gpu_of(j.found))};
}

}  // namespace tuff::emu
