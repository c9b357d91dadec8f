// Counter-based random numbers on the host: Threefry2x32-20 (Salmon et al., "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011). Called by the trainers for initial weights and batch
// offsets and by the digit drawer; scripts/gpt-reference.py computes the same numbers. Must never
// hold state: a number is a function of (seed, stream, index), on every machine the same.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace tuff::models {

using Word2 = std::array<uint32_t, 2>;

// 20 rounds, as Random123's threefry2x32.
Word2 threefry2x32(Word2 key, Word2 counter);

// Key (seed, stream), counter (index, 0).
class ReferenceRandom {
 public:
  explicit ReferenceRandom(uint32_t seed) : seed_(seed) {}
  uint32_t seed() const { return seed_; }

  Word2 words(uint32_t stream, uint32_t index) const {
    return threefry2x32({seed_, stream}, {index, 0});
  }
  uint32_t bits(uint32_t stream, uint32_t index) const { return words(stream, index)[0]; }
  // In [0, 1), a multiple of 2^-24.
  double uniform(uint32_t stream, uint32_t index) const { return unit(bits(stream, index)); }
  // Standard normal by Box-Muller from both words, in double.
  double normal(uint32_t stream, uint32_t index) const;
  // normal(stream, 0 .. count-1) * deviation, each rounded once to float.
  std::vector<float> normals(uint32_t stream, uint32_t count, double deviation) const;

  static double unit(uint32_t word) { return static_cast<double>(word >> 8) * 0x1p-24; }

 private:
  uint32_t seed_;
};

// One parameter of a model's recipe; its index in the recipe is its random stream.
struct ReferenceParameter {
  std::string name;             // "wte", "layer0.qkv.w", "conv1.b", ...
  std::vector<uint32_t> shape;  // a Linear's weight is [out, in]
  double deviation = 0;         // of the initial normal values; 0: all equal `constant`
  float constant = 0;
  uint32_t element_count() const;
};
std::vector<float> initial_values(uint32_t seed, const ReferenceParameter& parameter,
                                  uint32_t index);

}  // namespace tuff::models
