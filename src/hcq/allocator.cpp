#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <unordered_map>

#include "base/arith.h"
#include "base/check.h"
#include "base/log.h"
#include "hcq/device.h"
#include "hcq/memory.h"
#include "hcq/tlsf.h"

#ifdef TUFF_POISON_FREED_MEMORY
#include <sanitizer/asan_interface.h>
#endif

namespace tuff::hcq {
namespace {

constexpr size_t kSharedBlockBytes = 16u << 20;
constexpr size_t kLargeBytes = kSharedBlockBytes / 2;  // from here on a request gets its own block
constexpr uint64_t kCacheSlackBytes = 256u << 20;
constexpr const char* kKindNames[kMemoryKindCount] = {"Device", "Args", "Upload", "Readback"};

// In builds that ask for it the address sanitizer is told whose turn it is: memory that waits in
// the cache may not be touched.
void set_usable([[maybe_unused]] const std::byte* host, [[maybe_unused]] size_t size_bytes,
                [[maybe_unused]] bool usable) {
#ifdef TUFF_POISON_FREED_MEMORY
  if (host == nullptr) return;
  if (usable)
    __asan_unpoison_memory_region(host, size_bytes);
  else
    __asan_poison_memory_region(host, size_bytes);
#endif
}

// A raw block: shared (sub-allocated by tlsf) or of one large request, live or cached.
struct Block {
  MemoryBlock raw;
  std::unique_ptr<Tlsf> tlsf;
  bool live = false;
  std::function<void()> release;  // of foreign memory
};

struct Deferred {
  Span span;
  TimelinePoint last_use;
  // Memory is freed by destructors. Where the driver cannot tell, it waits; on a lost device for
  // ever.
  bool passed() const noexcept {
    try {
      return !last_use.queue || last_use.queue->passed(last_use.value);
    } catch (const Error&) {
      return false;
    }
  }
};

}  // namespace

struct Allocator::State {
  explicit State(Device& d) : device(d) {}
  Device& device;
  mutable std::mutex mutex;
  std::unordered_map<const MemoryBlock*, std::unique_ptr<Block>> owners;
  std::array<std::vector<Block*>, kMemoryKindCount> shared, cached;  // cached: large, oldest first
  std::deque<Deferred> deferred;
  std::vector<std::function<void()>> released;  // to be called without the mutex
  std::atomic<size_t> unreturned{0};            // adopted and freed, release() not called yet
  std::function<void(const Span&)> spoil;
  MemoryStats stats;

  Block& map(size_t size_bytes, MemoryKind kind);
  void unmap(Block& block) noexcept;
  Span take(size_t size_bytes, MemoryKind kind, size_t alignment);
  Span take_small(size_t size_bytes, MemoryKind kind, size_t alignment);
  Span take_large(size_t size_bytes, MemoryKind kind, size_t alignment);
  Span take_alone(size_t size_bytes);
  void count_live(size_t size_bytes);
  void give_back(const Span& span);
  void release_passed(bool scan_all);
  void end_adoption(Block& block);
  void call_released() noexcept;
  void evict();
  void drop_cache();
  std::string holders() const;
  [[noreturn]] void out_of_memory(size_t size_bytes, MemoryKind kind, const char* why) const;
};

Block& Allocator::State::map(size_t size_bytes, MemoryKind kind) {
  auto block = std::make_unique<Block>();
  block->raw = device.map_block(size_bytes, kind);
  stats.mapped_bytes += block->raw.size_bytes;
  ++stats.block_count;
  Block& result = *block;
  owners.emplace(&result.raw, std::move(block));
  TUFF_DEBUG_LINE(7, "{}: mapped {} bytes of {} memory", device.name(), size_bytes,
                  kKindNames[static_cast<int>(kind)]);
  return result;
}

void Allocator::State::unmap(Block& block) noexcept {
  stats.mapped_bytes -= block.raw.size_bytes;
  --stats.block_count;
  set_usable(block.raw.host, block.raw.size_bytes, true);
  device.unmap_block(block.raw);
  owners.erase(&block.raw);
}

void Allocator::State::count_live(size_t size_bytes) {
  stats.live_bytes += size_bytes;
  stats.peak_live_bytes = std::max(stats.peak_live_bytes, stats.live_bytes);
}

Span Allocator::State::take_small(size_t size_bytes, MemoryKind kind, size_t alignment) {
  auto& blocks = shared[static_cast<size_t>(kind)];
  auto from = [&](Block& b) -> Span {
    if (b.raw.address % alignment != 0) return {};
    auto offset = b.tlsf->allocate(size_bytes, alignment);
    if (!offset) return {};
    count_live(b.tlsf->range_bytes(*offset));
    return {&b.raw, *offset, size_bytes};
  };
  for (Block* b : blocks)
    if (Span s = from(*b)) return s;
  Block& fresh = map(kSharedBlockBytes, kind);
  fresh.tlsf = std::make_unique<Tlsf>(fresh.raw.size_bytes);
  blocks.push_back(&fresh);
  Span span = from(fresh);
  return span ? span : take_large(size_bytes, kind, alignment);
}

Span Allocator::State::take_large(size_t size_bytes, MemoryKind kind, size_t alignment) {
  // Blocks begin on a page at best; a stricter alignment is found inside a longer block.
  size_t rounded = align_up(size_bytes + (alignment > Tlsf::kGranuleBytes ? alignment : 0), 4096);
  auto& list = cached[static_cast<size_t>(kind)];
  auto best = list.end();
  for (auto it = list.begin(); it != list.end(); ++it) {
    size_t size = (*it)->raw.size_bytes;
    bool fits = size >= rounded && size <= rounded + rounded / 4;
    // Among equals the most recently freed one, whose pages are warm.
    if (fits && (best == list.end() || size <= (*best)->raw.size_bytes)) best = it;
  }
  Block* block;
  if (best != list.end()) {
    block = *best;
    list.erase(best);
  } else {
    block = &map(rounded, kind);
  }
  block->live = true;
  count_live(block->raw.size_bytes);
  size_t lead = (alignment - block->raw.address % alignment) % alignment;
  return {&block->raw, lead, size_bytes};
}

// Memory of files: what is written there stays there, so no block is used twice.
Span Allocator::State::take_alone(size_t size_bytes) {
  Block& block = map(size_bytes, MemoryKind::Device);
  block.live = true;
  count_live(block.raw.size_bytes);
  return {&block.raw, 0, size_bytes};
}

Span Allocator::State::take(size_t size_bytes, MemoryKind kind, size_t alignment) {
  const size_t wanted = std::max<size_t>(size_bytes, 1);
  Span span = kind == MemoryKind::Device && device.files() ? take_alone(wanted)
              : wanted >= kLargeBytes || alignment >= kLargeBytes
                  ? take_large(wanted, kind, alignment)
                  : take_small(wanted, kind, alignment);
  set_usable(span.host(), span.size_bytes, true);
  span.size_bytes = size_bytes;
  return span;
}

void Allocator::State::give_back(const Span& span) {
  auto it = owners.find(span.block);
  TUFF_CHECK(it != owners.end(), "span of a foreign or dead block");
  Block& b = *it->second;
  if (b.release) return end_adoption(b);
  if (spoil) spoil(span);
  set_usable(span.host(), span.size_bytes, false);
  if (b.tlsf) {
    stats.live_bytes -= b.tlsf->free(span.offset);
    return;
  }
  TUFF_CHECK(b.live, "large span freed twice");
  b.live = false;
  stats.live_bytes -= b.raw.size_bytes;
  if (b.raw.file) return unmap(b);
  cached[static_cast<size_t>(b.raw.kind)].push_back(&b);
  evict();
}

void Allocator::State::end_adoption(Block& block) {
  released.push_back(std::move(block.release));
  owners.erase(&block.raw);
}

// Owners may free what they like from here, in this allocator too.
void Allocator::State::call_released() noexcept {
  std::vector<std::function<void()>> due;
  {
    std::lock_guard lock(mutex);
    due.swap(released);
    unreturned -= due.size();
  }
  for (const std::function<void()>& release : due) {
    try {
      release();
    } catch (const std::exception& e) {
      log_warn("{}: the owner of memory refused to take it back: {}", device.name(), e.what());
    }
  }
}

// Keeps the cache from outgrowing what the program ever had live: beyond that it is fragmentation.
void Allocator::State::evict() {
  uint64_t limit = stats.peak_live_bytes + stats.peak_live_bytes / 4 + kCacheSlackBytes;
  for (auto& list : cached)
    while (stats.mapped_bytes > limit && !list.empty()) {
      unmap(*list.front());
      list.erase(list.begin());
    }
}

void Allocator::State::release_passed(bool scan_all) {
  // In the order of their release; usually the first that has not passed ends the search.
  for (auto it = deferred.begin(); it != deferred.end();) {
    if (it->passed()) {
      give_back(it->span);
      it = deferred.erase(it);
    } else if (scan_all) {
      ++it;
    } else {
      return;
    }
  }
}

void Allocator::State::drop_cache() {
  for (auto& list : cached) {
    for (Block* b : list) unmap(*b);
    list.clear();
  }
  for (auto& blocks : shared)
    std::erase_if(blocks, [&](Block* b) {
      if (b->tlsf->used_bytes() > 0) return false;
      unmap(*b);
      return true;
    });
}

// What is live: single large allocations by size, the largest first, and small ones by kind.
std::string Allocator::State::holders() const {
  constexpr size_t kShownSizes = 5;
  std::map<std::pair<size_t, MemoryKind>, size_t, std::greater<>> large;
  std::array<uint64_t, kMemoryKindCount> small{};
  for (const auto& [raw, block] : owners) {
    if (block->tlsf) small[static_cast<size_t>(raw->kind)] += block->tlsf->used_bytes();
    if (block->live) ++large[{raw->size_bytes, raw->kind}];
  }
  std::vector<std::string> parts;
  size_t others = 0;
  for (const auto& [what, count] : large) {
    const char* kind = kKindNames[static_cast<int>(what.second)];
    if (parts.size() < kShownSizes)
      parts.push_back(fmt::format("{} x {} bytes ({})", count, what.first, kind));
    else
      others += count;
  }
  if (others) parts.push_back(fmt::format("{} smaller ones", others));
  for (size_t k = 0; k < small.size(); ++k) {
    if (small[k])
      parts.push_back(fmt::format("{} bytes in small pieces ({})", small[k], kKindNames[k]));
  }
  return parts.empty() ? "nothing" : fmt::format("{}", fmt::join(parts, ", "));
}

void Allocator::State::out_of_memory(size_t size_bytes, MemoryKind kind, const char* why) const {
  fail<OutOfMemory>(
      "{}: out of {} memory: request {} bytes, live {}, cached {}, mapped {}, memory of the device "
      "{} ({}); it is held by {}; free tensors or use a smaller batch",
      device.name(), kKindNames[static_cast<int>(kind)], size_bytes, stats.live_bytes,
      stats.mapped_bytes - stats.live_bytes, stats.mapped_bytes, device.info().memory_bytes, why,
      holders());
}

void ForeignMemory::after_release(std::function<void()> then) {
  if (!then) return;
  release = [first = std::move(release), then = std::move(then)] {
    if (first) first();
    then();
  };
}

Allocator::Allocator(Device& device) : state_(std::make_unique<State>(device)) {}

Allocator::~Allocator() {
  State& s = *state_;
  for (auto& [raw, block] : s.owners) {
    if (block->release) {
      s.released.push_back(std::move(block->release));
    } else {
      set_usable(raw->host, raw->size_bytes, true);
      s.device.unmap_block(*raw);
    }
  }
  s.unreturned = s.released.size();
  s.call_released();
}

Span Allocator::allocate(size_t size_bytes, MemoryKind kind, size_t alignment) {
  collect();
  TUFF_CHECK(alignment > 0 && (alignment & (alignment - 1)) == 0, "alignment {}", alignment);
  State& s = *state_;
  std::vector<TimelinePoint> pending;
  {
    std::lock_guard lock(s.mutex);
    s.release_passed(false);
    try {
      return s.take(size_bytes, kind, alignment);
    } catch (const OutOfMemory&) {
      for (const Deferred& d : s.deferred) pending.push_back(d.last_use);
    }
  }
  // Memory that only waits for the device is as good as free: wait for it (not under the lock,
  // since host calls in the queue may allocate), drop the cache and try once more.
  for (const TimelinePoint& p : pending) p.queue->wait(p.value);
  std::lock_guard lock(s.mutex);
  s.release_passed(true);
  s.drop_cache();
  try {
    return s.take(size_bytes, kind, alignment);
  } catch (const OutOfMemory& e) {
    s.out_of_memory(size_bytes, kind, e.what());
  }
}

void Allocator::free(Span span, TimelinePoint last_use) noexcept {
  if (!span) return;
  State& s = *state_;
  {
    std::lock_guard lock(s.mutex);
    const auto owner = s.owners.find(span.block);
    s.unreturned += owner != s.owners.end() && owner->second->release;
    const Deferred d{span, last_use};
    if (d.passed())
      s.give_back(span);
    else
      s.deferred.push_back(d);
  }
  collect();
}

Span Allocator::adopt(ForeignMemory memory, size_t size_bytes) {
  TUFF_CHECK(memory.offset <= memory.block.size_bytes &&
                 size_bytes <= memory.block.size_bytes - memory.offset,
             "{} bytes at {} of a block of {}", size_bytes, memory.offset, memory.block.size_bytes);
  auto block = std::make_unique<Block>();
  block->raw = memory.block;
  block->release = memory.release ? std::move(memory.release) : [] {};
  std::lock_guard lock(state_->mutex);
  const MemoryBlock* raw = &block->raw;
  state_->owners.emplace(raw, std::move(block));
  return {raw, memory.offset, size_bytes};
}

void Allocator::spoil_freed(std::function<void(const Span&)> spoil) {
  state_->spoil = std::move(spoil);
}

std::optional<MemoryBlock> Allocator::block_with(uint64_t native) const {
  std::lock_guard lock(state_->mutex);
  for (const auto& [raw, block] : state_->owners)
    if (raw->native == native) return *raw;
  return std::nullopt;
}

void Allocator::collect() noexcept {
  State& s = *state_;
  if (s.unreturned.load(std::memory_order_relaxed) == 0) return;
  {
    std::lock_guard lock(s.mutex);
    s.release_passed(true);
  }
  s.call_released();
}

void Allocator::trim() {
  {
    std::lock_guard lock(state_->mutex);
    state_->release_passed(true);
    state_->drop_cache();
  }
  state_->call_released();
}

MemoryStats Allocator::stats() const {
  std::lock_guard lock(state_->mutex);
  MemoryStats result = state_->stats;
  uint64_t waiting = 0;
  for (const Deferred& d : state_->deferred) {
    if (!state_->owners.at(d.span.block)->release)
      waiting += align_up(d.span.size_bytes, Tlsf::kGranuleBytes);
  }
  result.live_bytes -= std::min(waiting, result.live_bytes);
  result.cached_bytes = result.mapped_bytes - result.live_bytes;
  return result;
}

}  // namespace tuff::hcq
