// The lanes of a vector memory access as runs: neighbouring active lanes whose bytes touch or
// overlap make one contiguous range, which memory and the checks are asked for at once. Formed by
// rdna/memory_ops.cpp and ptx/memory_access.cpp; knows nothing of memory. Every byte of a run
// belongs to one of its lanes.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace tuff::emu {

inline constexpr uint32_t kMostLanes = 32;
using Addresses = std::array<uint64_t, kMostLanes>;

struct LaneRun {
  uint64_t begin = 0;
  uint32_t bytes = 0;
  uint32_t lanes = 0;  // a mask
};

class LaneRuns {
 public:
  // `addresses` of the lanes of the mask; `bytes` that each of them accesses.
  LaneRuns(const Addresses& addresses, uint32_t lanes, uint32_t bytes)
      : addresses_(addresses), left_(lanes), bytes_(bytes) {}

  bool done() const { return left_ == 0; }

  LaneRun next() {
    if (left_ == ~0u && all_ascend()) {
      left_ = 0;
      return {addresses_[0], kMostLanes * bytes_, ~0u};
    }
    uint32_t lane = uint32_t(std::countr_zero(left_));
    LaneRun run{addresses_[lane], bytes_, 1u << lane};
    for (left_ &= left_ - 1; left_; left_ &= left_ - 1) {
      lane = uint32_t(std::countr_zero(left_));
      if (!join(run, addresses_[lane])) break;
      run.lanes |= 1u << lane;
    }
    return run;
  }

 private:
  bool all_ascend() const {
    uint64_t differs = 0;
    for (uint32_t k = 0; k < kMostLanes; ++k) {
      differs |= addresses_[k] ^ (addresses_[0] + uint64_t(k) * bytes_);
    }
    return differs == 0;
  }

  // Grows the run by the bytes at an address that touch or overlap it, or says no. Differences wrap
  // like addresses do.
  bool join(LaneRun& run, uint64_t address) const {
    const uint64_t behind = address - run.begin, before = run.begin - address;
    if (behind <= run.bytes) {
      if (behind + bytes_ > run.bytes) run.bytes = uint32_t(behind) + bytes_;
      return true;
    }
    if (before > bytes_) return false;
    run.begin = address;
    run.bytes += uint32_t(before);
    return true;
  }

  const Addresses& addresses_;
  uint32_t left_, bytes_;
};

template <class F>
void for_each_lane(uint32_t lanes, F f) {
  for (; lanes; lanes &= lanes - 1) f(uint32_t(std::countr_zero(lanes)));
}

}  // namespace tuff::emu
