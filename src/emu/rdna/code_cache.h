// The instructions of a GPU as its instruction cache holds them: fetched by lines when a wave first
// comes to them, decoded once, kept until they are invalidated. Shared by the dispatches of a GPU
// (one at a time calls it); knows nothing of waves.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>

#include "emu/memory/memory.h"
#include "emu/rdna/step.h"

namespace tuff::emu::rdna {

class CodeCache {
 public:
  // The instruction at an address (a multiple of 4), fetched through `memory` if need be. Null
  // where nothing is mapped. Valid until the next call.
  const Step* find(uint64_t address, Memory& memory, Defect& defect) {
    if (last_ && address >> kPageShift == last_number_) {
      if (const Step* step = last_->ready[address % kPageBytes / 4]) return step;
    }
    return fetch(address, memory, defect);
  }
  // The instruction at an address if it was ever decoded, else null.
  const Step* known(uint64_t address) const;
  // What memory holds now is fetched again. What it changes alone is decoded again.
  void invalidate();
  // A dispatch begins: each line that it comes to is compared with memory once. Where they differ
  // the driver has loaded code and not invalidated: a Defect, and the cache's line is what runs.
  void compare_afresh();

 private:
  static constexpr uint32_t kPageShift = 12, kPageBytes = 1u << kPageShift, kWords = kPageBytes / 4;
  struct Page {
    std::array<uint32_t, kWords> words{};
    std::array<const Step*, kWords> ready{};  // may be used at once
    std::array<Step*, kWords> decoded{};      // from `words`; its lines may have been invalidated
    uint64_t lines = 0;                       // that are valid
    uint64_t compared = 0;                    // with memory, since `epoch`
    uint32_t epoch = 0;
  };
  Page& page_of(uint64_t address);
  void compare_line(uint64_t begin, Memory& memory, Defect& defect);
  bool fetch_line(uint64_t address, Memory& memory, Defect& defect);
  void forget(uint64_t address);
  Step decode_at(uint64_t address, Memory& memory, Defect& defect);
  const Step* fetch(uint64_t address, Memory& memory, Defect& defect);

  std::map<uint64_t, std::unique_ptr<Page>> pages_;
  std::deque<Step> steps_;
  Page* last_ = nullptr;
  uint64_t last_number_ = 0;
  uint32_t epoch_ = 0;  // counts compare_afresh()
};

}  // namespace tuff::emu::rdna
