#include "models/reference_random.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace tuff::models {

Word2 threefry2x32(Word2 key, Word2 counter) {
  constexpr uint32_t kParity = 0x1BD11BDA;
  constexpr std::array<int, 8> kRotations{13, 15, 26, 6, 17, 29, 16, 24};
  const std::array<uint32_t, 3> schedule{key[0], key[1], kParity ^ key[0] ^ key[1]};
  uint32_t x0 = counter[0] + schedule[0];
  uint32_t x1 = counter[1] + schedule[1];
  for (uint32_t round = 0; round < 20; ++round) {
    x0 += x1;
    x1 = std::rotl(x1, kRotations[round % 8]) ^ x0;
    if (round % 4 == 3) {
      const uint32_t injection = round / 4 + 1;
      x0 += schedule[injection % 3];
      x1 += schedule[(injection + 1) % 3] + injection;
    }
  }
  return {x0, x1};
}

double ReferenceRandom::normal(uint32_t stream, uint32_t index) const {
  const Word2 word = words(stream, index);
  const double u1 = 1.0 - unit(word[0]);  // in (0, 1], so that the logarithm is finite
  const double u2 = unit(word[1]);
  return std::sqrt(-2.0 * std::log(u1)) * std::cos(2.0 * std::numbers::pi * u2);
}

std::vector<float> ReferenceRandom::normals(uint32_t stream, uint32_t count,
                                            double deviation) const {
  std::vector<float> values(count);
  for (uint32_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(normal(stream, i) * deviation);
  }
  return values;
}

uint32_t ReferenceParameter::element_count() const {
  uint32_t count = 1;
  for (uint32_t extent : shape) count *= extent;
  return count;
}

std::vector<float> initial_values(uint32_t seed, const ReferenceParameter& parameter,
                                  uint32_t index) {
  const uint32_t count = parameter.element_count();
  if (parameter.deviation == 0) return std::vector<float>(count, parameter.constant);
  return ReferenceRandom(seed).normals(index, count, parameter.deviation);
}

}  // namespace tuff::models
