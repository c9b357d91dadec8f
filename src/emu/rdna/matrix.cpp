// WMMA: 16 x 16 x 16 products of a wave. Lane l and lane l + 16 hold row l of A and column l of B;
// of C and D register r, lane l holds row 2 r + l / 16, column l % 16. ISA 7.9. The hardware's
// order of summation is not documented: here k rises, and each step rounds once to 32 bits; a
// result of 16 bits is rounded from there. It lies in the half that op_sel names, where C is read
// too; the other half stays, so that two products may share registers.
#include <algorithm>
#include <cmath>

#include "emu/rdna/handlers.h"
#include "emu/rdna/machine.h"

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

template <class T, class Begin, class F>
void multiply(Wave& w, const Instruction& i, const Matrix<T>& a, const Matrix<T>& b, Begin begin,
              F step) {
  const Operand &c = *i.find('2'), &d = *i.find('D');
  std::array<Words, 8> out;
  for (size_t r = 0; r < out.size(); ++r) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const auto& row = a[2 * r + lane / kSize];
      const auto& column = b[lane % kSize];
      uint32_t sum = c.kind == OperandKind::Vector ? w.v[c.index + r][lane]
                                                   : uint32_t(uniform_bits<float>(w, i, c));
      sum = begin(sum);
      for (size_t k = 0; k < kSize; ++k) sum = step(sum, row[k], column[k]);
      out[r][lane] = sum;
    }
  }
  for (size_t r = 0; r < out.size(); ++r) w.v[d.index + r] = out[r];
}

// neg changes the signs of the low halves of registers, neg_hi of the high ones.
template <bool brain>
Matrix<float> float_factor(const Wave& w, const Instruction& i, char field) {
  auto out =
      factor<float>(w, *i.find(field), 16, [](uint32_t bits) { return widened(bits, brain); });
  for (auto& line : out) {
    for (size_t k = 0; k < kSize; ++k) {
      if ((k % 2 ? i.neg_hi : i.neg) >> (field - '0') & 1) line[k] = -line[k];
    }
  }
  return out;
}

// For C neg_hi takes the absolute value, then neg the sign.
float float_addend(const Instruction& i, float c) {
  if (i.neg_hi >> 2 & 1) c = std::fabs(c);
  return i.neg >> 2 & 1 ? -c : c;
}

// Where denormals of 32 bits are flushed, it is not written down whether those of C and D are, or
// those of factors in bf16, which has the exponents of f32.
bool has_denormals(const Wave& w, const Operand& o) {
  if (o.kind != OperandKind::Vector) return false;
  for (uint32_t r = 0; r < 8; ++r) {
    for (const uint32_t bits : w.v[o.index + r])
      if (std::fpclassify(std::bit_cast<float>(bits)) == FP_SUBNORMAL) return true;
  }
  return false;
}
template <bool brain>
bool has_denormals(const Matrix<float>& values) {
  return brain && std::ranges::any_of(values, [](const auto& line) {
           return std::ranges::any_of(
               line, [](float x) { return std::fpclassify(x) == FP_SUBNORMAL; });
         });
}
void report_denormals(Wave& w) {
  w.machine->report(w, FindingKind::ModeNotEmulated, 0, 0,
                    fmt::format("what it does with denormals in MODE {:#x} is not known", w.mode));
  w.machine->stop();
}

template <bool brain>
void multiply_floats(Wave& w, const Instruction& i) {
  const bool flushes = (w.mode & kSingleDenormals) != kSingleDenormals;
  bool found = flushes && has_denormals(w, *i.find('2'));
  const auto a = float_factor<brain>(w, i, '0'), b = float_factor<brain>(w, i, '1');
  multiply(
      w, i, a, b,
      [&](uint32_t sum) {
        return std::bit_cast<uint32_t>(float_addend(i, std::bit_cast<float>(sum)));
      },
      [](uint32_t sum, float x, float y) {
        return std::bit_cast<uint32_t>(std::fma(x, y, std::bit_cast<float>(sum)));
      });
  found = found || (flushes && (has_denormals(w, *i.find('D')) || has_denormals<brain>(a) ||
                                has_denormals<brain>(b)));
  if (found) report_denormals(w);
}

template <bool brain>
uint32_t narrow_addend(const Wave& w, const Operand& c, size_t r, size_t lane, int shift) {
  if (c.kind == OperandKind::Vector) return w.v[c.index + r][lane] >> shift;
  if (c.kind == OperandKind::Scalar) return read_scalar(w, c.index);
  return uint32_t(brain ? constant_bits<float>(c) >> 16 : constant_bits<F16>(c));
}

template <bool brain>
void multiply_narrow(Wave& w, const Instruction& i) {
  const auto a = float_factor<brain>(w, i, '0'), b = float_factor<brain>(w, i, '1');
  const Operand &c = *i.find('2'), &d = *i.find('D');
  const int shift = i.op_sel >> 2 & 1 ? 16 : 0;
  for (size_t r = 0; r < 8; ++r) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const auto &row = a[2 * r + lane / kSize], &column = b[lane % kSize];
      float sum = float_addend(i, widened(narrow_addend<brain>(w, c, r, lane, shift), brain));
      for (size_t k = 0; k < kSize; ++k) sum = std::fma(row[k], column[k], sum);
      const uint32_t half = brain ? narrow::bf16_from_f32(sum) : narrow::f16_from_f32(sum);
      uint32_t& to = w.v[d.index + r][lane];
      to = (to & ~(0xFFFFu << shift)) | half << shift;
    }
  }
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
  const auto as_it_is = [](uint32_t sum) { return sum; };
  multiply(w, i, elements('0'), elements('1'), as_it_is,
           [clamp](uint32_t sum, int32_t x, int32_t y) {
             const int64_t wide = int64_t(int32_t(sum)) + int64_t(x) * y;
             return uint32_t(clamp ? std::clamp<int64_t>(wide, INT32_MIN, INT32_MAX) : wide);
           });
}

constexpr Handler kRows[] = {
    {Op::V_WMMA_F32_16X16X16_F16, multiply_floats<false>},
    {Op::V_WMMA_F32_16X16X16_BF16, multiply_floats<true>},
    {Op::V_WMMA_F16_16X16X16_F16, multiply_narrow<false>},
    {Op::V_WMMA_BF16_16X16X16_BF16, multiply_narrow<true>},
    {Op::V_WMMA_I32_16X16X16_IU8, multiply_integers<8>},
    {Op::V_WMMA_I32_16X16X16_IU4, multiply_integers<4>},
};

}  // namespace

std::span<const Handler> matrix_handlers() { return kRows; }

}  // namespace tuff::emu::rdna
