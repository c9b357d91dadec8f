#include "emu/rdna/code_cache.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace tuff::emu::rdna {

CodeCache::Page& CodeCache::page_of(uint64_t address) {
  const uint64_t number = address >> kPageShift;
  if (!last_ || number != last_number_) {
    auto& page = pages_[number];
    if (!page) page = std::make_unique<Page>();
    if (page->epoch != epoch_) {
      page->ready.fill(nullptr);
      page->compared = 0;
      page->epoch = epoch_;
    }
    last_ = page.get();
    last_number_ = number;
  }
  return *last_;
}

// What was decoded from the word at an address, or reaches it from before.
void CodeCache::forget(uint64_t address) {
  for (uint32_t back = 0; back < kMostWords; ++back) {
    const uint64_t at = address - 4 * back;
    page_of(at).decoded[at % kPageBytes / 4] = nullptr;
  }
}

void CodeCache::compare_line(uint64_t begin, Memory& memory, Defect& defect) {
  Page& page = page_of(begin);
  page.compared |= uint64_t(1) << (begin % kPageBytes / kFetchBytes);
  const uint8_t* bytes = memory.peek(begin, kFetchBytes);
  const uint32_t* held = page.words.data() + begin % kPageBytes / 4;
  if (!bytes || std::memcmp(bytes, held, kFetchBytes) == 0 || defect.kind) return;
  defect = {DefectKind::StaleCode,
            fmt::format("the line at {:#x} has changed in memory, and the instruction cache was "
                        "not invalidated since (GLI_INV)",
                        begin)};
}

bool CodeCache::fetch_line(uint64_t address, Memory& memory, Defect& defect) {
  const uint64_t begin = address / kFetchBytes * kFetchBytes;
  const uint64_t bit = uint64_t(1) << (begin % kPageBytes / kFetchBytes);
  if (page_of(begin).lines & bit) {
    if (!(page_of(begin).compared & bit)) compare_line(begin, memory, defect);
    return true;
  }
  const uint8_t* bytes = memory.reach({begin, kFetchBytes, AccessKind::Fetch, false, 0}, defect);
  if (!bytes) return false;
  std::array<uint32_t, kFetchBytes / 4> words;
  std::memcpy(words.data(), bytes, sizeof words);
  for (uint32_t k = 0; k < words.size(); ++k) {
    uint32_t& word = page_of(begin).words[begin % kPageBytes / 4 + k];
    if (word == words[k]) continue;
    word = words[k];
    forget(begin + 4 * k);
  }
  page_of(begin).lines |= bit;
  page_of(begin).compared |= bit;
  return true;
}

Step CodeCache::decode_at(uint64_t address, Memory& memory, Defect& defect) {
  std::array<uint32_t, kMostWords> words{};
  const uint64_t line_end = address / kFetchBytes * kFetchBytes + kFetchBytes;
  const uint32_t count = uint32_t(std::min<uint64_t>(kMostWords, (line_end - address) / 4));
  const auto read = [&](uint32_t k) {
    words[k] = page_of(address + 4 * k).words[(address + 4 * k) % kPageBytes / 4];
  };
  for (uint32_t k = 0; k < count; ++k) read(k);
  Step step = make_step(std::span(words).first(count), address);
  if (step.instruction.row || count == kMostWords) return step;
  // It may go on in the next line, which is not touched for one that ends in this.
  if (!fetch_line(line_end, memory, defect)) return step;
  for (uint32_t k = count; k < kMostWords; ++k) read(k);
  return make_step(words, address);
}

const Step* CodeCache::fetch(uint64_t address, Memory& memory, Defect& defect) {
  if (!fetch_line(address, memory, defect)) return nullptr;
  const size_t at = address % kPageBytes / 4;
  Step* step = page_of(address).decoded[at];
  if (step && !fetch_line(address + step->instruction.size_bytes - 4, memory, defect)) {
    return nullptr;
  }
  step = page_of(address).decoded[at];  // unless the line has changed it
  if (!step) {
    steps_.push_back(decode_at(address, memory, defect));
    step = &steps_.back();
  }
  Page& page = page_of(address);
  return page.ready[at] = page.decoded[at] = step;
}

const Step* CodeCache::known(uint64_t address) const {
  const auto page = pages_.find(address >> kPageShift);
  return page == pages_.end() ? nullptr : page->second->decoded[address % kPageBytes / 4];
}

void CodeCache::compare_afresh() {
  ++epoch_;
  last_ = nullptr;
}

void CodeCache::invalidate() {
  for (auto& [number, page] : pages_) {
    page->ready.fill(nullptr);
    page->lines = 0;
  }
}

}  // namespace tuff::emu::rdna
