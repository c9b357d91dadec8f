// SplitMix64 (Steele, Lea, Flood 2014): the same numbers from a seed with every standard library,
// so that what a seed found is found again elsewhere.
#pragma once

#include <concepts>
#include <cstdint>

namespace tuff {

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  template <std::integral Bound>
  Bound below(Bound bound) {  // bound: above 0
    return Bound(next() % uint64_t(bound));
  }

 private:
  uint64_t state_;
};

}  // namespace tuff
