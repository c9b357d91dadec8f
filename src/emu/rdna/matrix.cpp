// WMMA: 16 x 16 x 16 products of a wave. Lane l and lane l + 16 hold row l of A and column l of B;
// of C and D register r, lane l holds row 2 r + l / 16, column l % 16. ISA 7.9. The hardware's
// order of summation is not documented: here k rises, and each step rounds once.
#include <algorithm>

#include "emu/rdna/meanings.h"

namespace tuff::emu::rdna {
namespace {

constexpr int kSize = 16;
template <class T>
using Matrix = std::array<std::array<T, kSize>, kSize>;

// Row l of A, or column l of B, from `width` bits per element.
template <class T, class F>
Matrix<T> factor(const Wave& w, const Operand& o, int width, F convert) {
  Matrix<T> out;
  const int per_word = 32 / width;
  for (size_t line = 0; line < kSize; ++line) {
    for (int k = 0; k < kSize; ++k) {
      const uint32_t word = w.v[size_t(o.index + k / per_word)][line];
      out[line][size_t(k)] = convert(word >> (width * (k % per_word)));
    }
  }
  return out;
}

template <class T, class F>
void multiply(Wave& w, const Instruction& i, const Matrix<T>& a, const Matrix<T>& b, F step) {
  const Operand &c = *i.find('2'), &d = *i.find('D');
  std::array<Words, 8> out;
  for (size_t r = 0; r < out.size(); ++r) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const auto& row = a[2 * r + lane / kSize];
      const auto& column = b[lane % kSize];
      uint32_t sum = c.kind == OperandKind::Vector ? w.v[c.index + r][lane]
                                                   : uint32_t(uniform_bits<float>(w, i, c));
      for (size_t k = 0; k < kSize; ++k) sum = step(sum, row[k], column[k]);
      out[r][lane] = sum;
    }
  }
  for (size_t r = 0; r < out.size(); ++r) w.v[d.index + r] = out[r];
}

template <bool brain>
void multiply_floats(Wave& w, const Instruction& i) {
  const auto convert = [](uint32_t bits) {
    return brain ? narrow::bf16_to_f32(uint16_t(bits)) : narrow::f16_to_f32(uint16_t(bits));
  };
  const auto a = factor<float>(w, *i.find('0'), 16, convert);
  const auto b = factor<float>(w, *i.find('1'), 16, convert);
  multiply(w, i, a, b, [](uint32_t sum, float x, float y) {
    return std::bit_cast<uint32_t>(std::fma(x, y, std::bit_cast<float>(sum)));
  });
}

// neg says which factor is signed.
template <int width>
void multiply_integers(Wave& w, const Instruction& i) {
  const auto elements = [&](char field) {
    const bool is_signed = i.neg >> (field - '0') & 1;
    return factor<int32_t>(w, *i.find(field), width, [is_signed](uint32_t bits) {
      const uint32_t top = bits << (32 - width);
      return is_signed ? int32_t(top) >> (32 - width) : int32_t(top >> (32 - width));
    });
  };
  const bool clamp = i.clamp;
  multiply(w, i, elements('0'), elements('1'), [clamp](uint32_t sum, int32_t x, int32_t y) {
    const int64_t wide = int64_t(int32_t(sum)) + int64_t(x) * y;
    return uint32_t(clamp ? std::clamp<int64_t>(wide, INT32_MIN, INT32_MAX) : wide);
  });
}

constexpr Meaning kRows[] = {
    {Op::V_WMMA_F32_16X16X16_F16, multiply_floats<false>},
    {Op::V_WMMA_F32_16X16X16_BF16, multiply_floats<true>},
    {Op::V_WMMA_I32_16X16X16_IU8, multiply_integers<8>},
    {Op::V_WMMA_I32_16X16X16_IU4, multiply_integers<4>},
};

}  // namespace

std::span<const Meaning> matrix_meanings() { return kRows; }

}  // namespace tuff::emu::rdna
