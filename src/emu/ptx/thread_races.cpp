#include "emu/ptx/thread_races.h"

#include <algorithm>

namespace tuff::emu::ptx {

ThreadRaces::Page& ThreadRaces::page_at(uint64_t address) {
  const uint64_t number = address / kPageBytes;
  if (number != last_number_) {
    auto& page = pages_[number];
    if (!page) page = std::make_unique<Page>();
    last_ = page.get();
    last_number_ = number;
  }
  return *last_;
}

// By bytes from the first access on that takes a part of a word.
static void refine_to_bytes(auto& page, uint32_t page_bytes) {
  decltype(page.shadows) fine(page_bytes);
  for (size_t k = 0; k < fine.size(); ++k) fine[k] = page.shadows[k / 4];
  page.shadows = std::move(fine);
  page.by_bytes = true;
}

bool ThreadRaces::knows(uint32_t me, uint32_t other, uint32_t clock) const {
  if (me / 32 == other / 32) {
    const auto& warp = warps_[me / 32];
    if (warp && warp->epoch == epoch_ && warp->known[me % 32][other % 32] >= clock) return true;
  }
  const auto mine = acquired_.find(me);
  if (mine == acquired_.end()) return false;
  const auto found = mine->second.find(other);
  return found != mine->second.end() && found->second >= clock;
}

std::optional<uint32_t> ThreadRaces::race_of(const Shadow& seen, uint32_t thread,
                                             const ThreadAccess& access) const {
  const uint16_t me = uint16_t(thread + 1);
  const bool both_strong = access.strong && seen.strong_write;
  if (seen.writer && seen.writer != me && seen.write_epoch == epoch_ && !both_strong &&
      !knows(thread, seen.writer - 1u, seen.write_clock))
    return seen.writer - 1u;
  if (!access.writes || !seen.reader || seen.reader == me || seen.read_epoch != epoch_)
    return std::nullopt;
  if (access.strong && seen.strong_read) return std::nullopt;
  if (seen.reader != kMany && knows(thread, seen.reader - 1u, seen.read_clock)) return std::nullopt;
  // Of several readers it is known only that one is not known of.
  if (seen.reader == kMany &&
      (acquired_.contains(thread) || (warps_[thread / 32] && warps_[thread / 32]->epoch == epoch_)))
    return std::nullopt;
  return seen.reader == kMany ? thread : seen.reader - 1u;
}

void ThreadRaces::apply(Shadow& seen, uint32_t thread, const ThreadAccess& access) const {
  const uint16_t me = uint16_t(thread + 1);
  if (access.writes) {
    seen.writer = me;
    seen.write_epoch = epoch_;
    seen.write_clock = clocks_[thread];
    seen.strong_write = access.strong;
    return;
  }
  const bool others = seen.reader && seen.reader != me && seen.read_epoch == epoch_ &&
                      !(seen.reader != kMany && knows(thread, seen.reader - 1u, seen.read_clock));
  seen.strong_read = access.strong && (!others || seen.strong_read);
  seen.reader = others ? kMany : me;
  seen.read_epoch = epoch_;
  seen.read_clock = clocks_[thread];
}

std::optional<uint32_t> ThreadRaces::touch(uint32_t thread, const ThreadAccess& access) {
  std::optional<uint32_t> found;
  const uint64_t end = access.address + access.bytes;
  const bool words = ((access.address | access.bytes) & 3) == 0;
  for (uint64_t at = access.address; at < end;) {
    Page& page = page_at(at);
    if (!words && !page.by_bytes) refine_to_bytes(page, kPageBytes);
    const uint64_t place = at % kPageBytes;
    Shadow& seen = page.shadows[page.by_bytes ? place : place / 4];
    if (!is_known_load(seen, access)) {
      if (!found) found = race_of(seen, thread, access);
      apply(seen, thread, access);
    }
    at += page.by_bytes ? 1 : 4;
  }
  return found;
}

void ThreadRaces::synchronize(uint32_t thread, uint64_t address, bool acquires, bool releases) {
  Clock& word = published_[address];
  Clock* mine = nullptr;
  if (acquires && !word.empty()) {
    mine = &acquired_[thread];
    for (const auto& [other, clock] : word) {
      uint32_t& known = (*mine)[other];
      known = std::max(known, clock);
    }
  }
  if (!releases) return;
  if (const auto found = acquired_.find(thread); found != acquired_.end()) {
    for (const auto& [other, clock] : found->second) {
      uint32_t& known = word[other];
      known = std::max(known, clock);
    }
  }
  word[thread] = clocks_[thread]++;
}

// What was before is apart from what comes: shadows of other epochs are as if they were not there.
void ThreadRaces::pass_barrier() {
  ++epoch_;
  acquired_.clear();
  published_.clear();
}

void ThreadRaces::pass_warp_barrier(uint32_t warp, uint32_t lanes) {
  auto& knowledge = warps_[warp];
  if (!knowledge) knowledge = std::make_unique<WarpKnowledge>();
  if (knowledge->epoch != epoch_) *knowledge = {.epoch = epoch_};
  std::array<uint32_t, 32> all{};
  for (uint32_t k = 0; k < 32; ++k) {
    if (!(lanes >> k & 1)) continue;
    for (uint32_t other = 0; other < 32; ++other)
      all[other] = std::max(all[other], knowledge->known[k][other]);
    all[k] = std::max(all[k], clocks_[warp * 32 + k]++);
  }
  for (uint32_t k = 0; k < 32; ++k) {
    if (lanes >> k & 1) knowledge->known[k] = all;
  }
}

}  // namespace tuff::emu::ptx
