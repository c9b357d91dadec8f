#include "io/dequantize.h"

#include <algorithm>
#include <cmath>
#include <ranges>

#include "base/check.h"
#include "io/block_fields.h"
#include "io/dequantize_grids.h"

namespace tuff::io {
namespace {

// 16 bytes at `begin` -> 32 numbers of 4 bits: low halves first.
Tensor nibbles(const Tensor& blocks, int64_t begin) {
  return fields(bytes(blocks, begin, 16), 2, 4).reshape({-1, 32});
}
// 4 bytes at `begin` -> the fifth bits of 32 numbers, as 0 or 16.
Tensor fifth_bits(const Tensor& blocks, int64_t begin) {
  const Tensor each = bytes(blocks, begin, 4).unsqueeze(2) >> steps(blocks, 8, 1, 2, 3);
  return (each & 1).reshape({-1, 32}) << 4;
}
Tensor q4_0(const Tensor& b) { return half(b, 0) * as_float(nibbles(b, 2) - 8); }
Tensor q4_1(const Tensor& b) { return half(b, 0) * as_float(nibbles(b, 4)) + half(b, 2); }
Tensor q5_0(const Tensor& b) {
  return half(b, 0) * as_float((nibbles(b, 6) | fifth_bits(b, 2)) - 16);
}
Tensor q5_1(const Tensor& b) {
  return half(b, 0) * as_float(nibbles(b, 8) | fifth_bits(b, 4)) + half(b, 2);
}
Tensor q8_0(const Tensor& b) { return half(b, 0) * as_float(signed_bytes(b, 2, 32)); }

// The signed bytes that IQ4 types number from 0 to 15, four in a word: a table would be one more
// buffer, and its reads one by one.
Tensor iq4_values(const Tensor& number) {
  // -127 -104 -83 -65, -49 -35 -22 -10, 1 13 25 38, 53 69 89 113
  const auto word = [&](int32_t bits) {
    return Tensor::full({}, bits, {DType::I32, number.device()});
  };
  const Tensor low =
                   Tensor::where(number < 4, word(int32_t(0xbfad9881)), word(int32_t(0xf6eaddcf))),
               high = Tensor::where(number < 12, word(0x26190d01), word(0x71594535));
  const Tensor bytes = Tensor::where(number < 8, low, high);
  return as_float(bytes << ((~number & 3) << 3) >> 24);
}
Tensor iq4_nl(const Tensor& b) { return half(b, 0) * iq4_values(nibbles(b, 2)); }
// Eight groups of 32: of a group's scale the low four bits stand in bytes 4..7, two more in bytes 2
// and 3.
Tensor iq4_xs(const Tensor& b) {
  const Tensor low = fields_of_each(bytes(b, 4, 4), 2, 4),
               high = fields_of_each(bytes(b, 2, 2), 4, 2);
  const Tensor quants = iq4_values(fields(bytes(b, 8, 128).reshape({-1, 16}), 2, 4));
  const Tensor by_group = quants.reshape({-1, 8, 32});
  const Tensor factors = group_factors(half(b, 0), (low | (high << 4)) - 32, by_group);
  return (factors * by_group).reshape({-1, 256});
}
// E2M1 numbers, 2^14 times smaller: their bits are those of a half with fewer bits of exponent and
// fraction.
Tensor small_e2m1(const Tensor& number) {
  const TensorOptions integers{DType::I32, number.device()};
  // 8 is no negative zero.
  const Tensor sign = Tensor::where(number > 8, Tensor::full({}, 1 << 15, integers),
                                    Tensor::full({}, 0, integers));
  const Tensor bits = ((number & 7) << 9) | sign;
  return as_float(bits.cast(DType::U16).bitcast(DType::F16));
}
// E2M1 numbers times a power of two, 2^(e - 127). Times two factors, since the two smallest scales
// are subnormal and some devices take such a number for zero.
Tensor mxfp4(const Tensor& b) {
  const Tensor e = bytes(b, 0, 1);
  const Tensor half = e >> 1;
  const auto power = [](const Tensor& n, int64_t bias) {
    return ((n + bias) << 23).bitcast(DType::F32);
  };
  return small_e2m1(nibbles(b, 1)) * power(half, 64) * power(e - half, 77);
}
// Four groups of 16, each with a scale of E4M3 without a sign: as halves, of the same bits, those
// are 2^8 times smaller; 127 stands for 0.
Tensor nvfp4(const Tensor& b) {
  const Tensor scale = bytes(b, 0, 4);
  const Tensor known =
      Tensor::where(scale == 127, Tensor::full({}, 0, {DType::I32, b.device()}), scale & 127);
  const Tensor factor =
      as_float((known << 7).cast(DType::U16).bitcast(DType::F16)) * double(1 << 22);
  const Tensor qs = bytes(b, 4, 32).reshape({-1, 4, 1, 8});
  const Tensor numbers = ((qs >> steps(b, 2, 4, 2, 4)) & 15).reshape({-1, 4, 16});
  return (factor.unsqueeze(2) * small_e2m1(numbers)).reshape({-1, 64});
}

// 32 elements of each of 8 groups: low halves of 32 bytes, then their high halves.
Tensor nibbles_by_64(const Tensor& blocks, int64_t begin) {
  const Tensor qs = bytes(blocks, begin, 128).reshape({-1, 4, 1, 32});
  return ((qs >> steps(blocks, 2, 4, 2, 4)) & 15).reshape({-1, 8, 32});
}
struct ScalesAndMins {
  Tensor scales, mins;  // (n, 8)
};
// 12 bytes hold 8 scales and 8 minima of 6 bits: of the first four the low bits of bytes 0..3 and
// 4..7; of the others four bits in bytes 8..11 and two above those of the first.
ScalesAndMins six_bit_scales(const Tensor& blocks, int64_t begin) {
  const Tensor a = bytes(blocks, begin, 4).unsqueeze(1),
               b = bytes(blocks, begin + 4, 4).unsqueeze(1),
               c = bytes(blocks, begin + 8, 4).unsqueeze(1);
  const Tensor first = steps(blocks, 2, 1, 1, 3) < 1;
  const Tensor scales = Tensor::where(first, a & 63, (c & 15) | ((a >> 6) << 4)),
               mins = Tensor::where(first, b & 63, (c >> 4) | ((b >> 6) << 4));
  return {scales.flatten(1), mins.flatten(1)};
}
// (d * scale) * quant - least * minimum, from groups of one size.
Tensor scaled_by_group(const Tensor& d, const Tensor& least, const ScalesAndMins& s,
                       const Tensor& quants) {
  const Tensor scaled = group_factors(d, s.scales, quants) * as_float(quants);
  return (scaled - group_factors(least, s.mins, quants)).reshape({-1, 256});
}
Tensor scaled_by_group(const Tensor& d, const Tensor& scales, const Tensor& quants) {
  return (group_factors(d, scales, quants) * as_float(quants)).reshape({-1, 256});
}
Tensor q4_k(const Tensor& b) {
  return scaled_by_group(half(b, 0), half(b, 2), six_bit_scales(b, 4), nibbles_by_64(b, 16));
}
Tensor q5_k(const Tensor& b) {
  const Tensor fifth = fields(bytes(b, 16, 32), 8, 1) << 4;
  return scaled_by_group(half(b, 0), half(b, 2), six_bit_scales(b, 4),
                         nibbles_by_64(b, 48) | fifth);
}

// 64 bytes at `begin` -> (n, 2, 4, 32): numbers of two bits, a half of the block from 32 bytes.
Tensor two_bits(const Tensor& blocks, int64_t begin) {
  const Tensor qs = bytes(blocks, begin, 64).reshape({-1, 2, 1, 32});
  return (qs >> steps(blocks, 4, 2, 2, 4)) & 3;
}
Tensor q2_k(const Tensor& b) {
  const Tensor both = bytes(b, 0, 16);
  return scaled_by_group(half(b, 80), half(b, 82), {both & 15, both >> 4},
                         two_bits(b, 16).reshape({-1, 16, 16}));
}
// 16 scales of 6 bits: four low bits in the halves of bytes 0..7, two high ones in bytes 8..11.
Tensor q3_k_scales(const Tensor& b, int64_t begin) {
  const Tensor low = fields(bytes(b, begin, 8), 2, 4).reshape({-1, 16});
  const Tensor high = fields(bytes(b, begin + 8, 4), 4, 2).reshape({-1, 16});
  return (low | (high << 4)) - 32;
}
Tensor q3_k(const Tensor& b) {
  const Tensor third = fields(bytes(b, 0, 32), 8, 1).reshape({-1, 2, 4, 32});
  const Tensor quants = ((two_bits(b, 32) | (third << 2)) - 4).reshape({-1, 16, 16});
  return scaled_by_group(half(b, 108), q3_k_scales(b, 96), quants);
}
Tensor q6_k(const Tensor& b) {
  const Tensor low = bytes(b, 0, 128).reshape({-1, 2, 1, 64}) >> steps(b, 2, 4, 2, 4);
  const Tensor quants = ((low & 15).reshape({-1, 2, 4, 32}) | (two_bits(b, 128) << 4)) - 32;
  return scaled_by_group(half(b, 208), signed_bytes(b, 192, 16), quants.reshape({-1, 16, 16}));
}
Tensor q8_k(const Tensor& b) {
  const Tensor d =
      bytes(b, 0, 1) | (bytes(b, 1, 1) << 8) | (bytes(b, 2, 1) << 16) | (bytes(b, 3, 1) << 24);
  return d.bitcast(DType::F32) * as_float(signed_bytes(b, 4, 256));
}

// Three values: (n, m) bytes of five numbers of base 3, as fractions of 256 rounded up ->
// (n, count * m): the numbers of one place side by side.
Tensor base_three(const Tensor& packed, int64_t count) {
  int64_t power = 1;
  std::vector<Tensor> each;
  for (int64_t i = 0; i < count; i++, power *= 3)
    each.push_back(((packed * power & 255) * 3) >> 8);
  return Tensor::stack(each, 1).flatten(1);
}
Tensor tq1_0(const Tensor& b) {
  const Tensor first = base_three(bytes(b, 0, 32), 5), second = base_three(bytes(b, 32, 16), 5),
               last = base_three(bytes(b, 48, 4), 4);
  const Tensor numbers = Tensor::cat({first, second, last}, 1);
  return as_float(numbers - 1) * half(b, 52);
}
Tensor tq2_0(const Tensor& b) {
  return as_float(two_bits(b, 0).reshape({-1, 256}) - 1) * half(b, 64);
}
Tensor q1_0(const Tensor& b) {
  return as_float((fields_of_each(bytes(b, 2, 16), 8, 1) << 1) - 1) * half(b, 0);
}
Tensor q2_0(const Tensor& b) {
  return as_float(fields_of_each(bytes(b, 2, 16), 4, 2) - 1) * half(b, 0);
}

struct TypeRow {
  std::string_view name;
  Tensor (*decode)(const Tensor&);
};
constexpr TypeRow kTypes[] = {
    {"Q4_0", q4_0}, {"Q4_1", q4_1},   {"Q5_0", q5_0},     {"Q5_1", q5_1},     {"Q8_0", q8_0},
    {"Q2_K", q2_k}, {"Q3_K", q3_k},   {"Q4_K", q4_k},     {"Q5_K", q5_k},     {"Q6_K", q6_k},
    {"Q8_K", q8_k}, {"MXFP4", mxfp4}, {"IQ4_NL", iq4_nl}, {"IQ4_XS", iq4_xs},
    {"Q1_0", q1_0}, {"Q2_0", q2_0}, {"TQ1_0", tq1_0}, {"TQ2_0", tq2_0}, {"NVFP4", nvfp4},
    {"IQ2_XXS", iq2_xxs}, {"IQ2_XS", iq2_xs}, {"IQ2_S", iq2_s}, {"IQ3_XXS", iq3_xxs},
    {"IQ3_S", iq3_s}, {"IQ1_S", iq1_s}, {"IQ1_M", iq1_m},
};

}  // namespace

bool can_dequantize(std::string_view type) {
  return std::ranges::find(kTypes, type, &TypeRow::name) != std::end(kTypes);
}

std::string decoded_types() {
  return fmt::format("{}", fmt::join(kTypes | std::views::transform(&TypeRow::name), ", "));
}

Tensor dequantize(std::string_view type, const Tensor& blocks) {
  const auto* row = std::ranges::find(kTypes, type, &TypeRow::name);
  TUFF_CHECK(row != std::end(kTypes), "no decoder of {}", type);
  return row->decode(blocks);
}

}  // namespace tuff::io
