// How far a wave has come in time, alone on its SIMD. Base of what knows how its instructions wait:
// rdna/timeline.h, ptx/timeline.h.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tuff::emu::profile {

class WaveTime {
 public:
  uint64_t now() const { return now_; }
  void wait_until(uint64_t time) { now_ = std::max(now_, time); }
  // With the stores that are on their way: a wave keeps its registers until then.
  uint64_t end() const { return std::max(now_, stored_); }

 protected:
  uint64_t now_ = 0, stored_ = 0;
};

}  // namespace tuff::emu::profile
