#include "emu/random_values.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/narrow_float.h"

namespace tuff::emu::testing {

std::vector<uint8_t> random_values(Type type, uint32_t count, SplitMix64& random) {
  std::vector<uint8_t> bytes(size_t(count) * type.bytes);
  const double plain[] = {0, -0.0, 1, -1, 0.5, 3, 1e-3, 65504, 1e30, 1e-40, INFINITY, NAN};
  for (uint32_t k = 0; k < count; ++k) {
    uint64_t bits = random.next();
    const uint64_t choice = random.below(4u);
    if (type.kind == Kind::Integer && choice == 0) bits = random.below(8u) - 4;
    if (type.kind != Kind::Integer && choice < 2) {
      const double value = choice == 0 ? plain[random.below(12u)] * (random.below(2u) ? 1 : 3)
                                       : (double(random.below(1u << 20)) - (1 << 19)) / 1024;
      if (type.kind == Kind::F16) bits = narrow::f16_from_f32(float(value));
      if (type.kind == Kind::F32) bits = std::bit_cast<uint32_t>(float(value));
      if (type.kind == Kind::F64) bits = std::bit_cast<uint64_t>(value);
    }
    std::memcpy(bytes.data() + size_t(k) * type.bytes, &bits, type.bytes);
  }
  return bytes;
}

uint64_t bits_at(const std::vector<uint8_t>& bytes, uint32_t k, Type type) {
  uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + size_t(k) * type.bytes, type.bytes);
  // Which NaN it is, IEEE leaves open.
  if (type.kind == Kind::F16 && (bits & 0x7FFF) > 0x7C00) return 0x7E00;
  if (type.kind == Kind::F32 && (bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FC00000;
  if (type.kind == Kind::F64 && (bits & ~(1ull << 63)) > 0x7FF0000000000000) {
    return 0x7FF8000000000000;
  }
  return bits;
}

}  // namespace tuff::emu::testing
