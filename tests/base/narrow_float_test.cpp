// The two 16-bit formats, every bit pattern and every rounding boundary, against values computed
// from the definition of the formats with ldexp.
#include <gtest/gtest.h>
#include <string>
#include <tuff/dtype.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace tuff {
namespace {

struct Format {
  const char* name;
  int exponent_bits, mantissa_bits;
  uint16_t (*from_f32)(float);
  uint16_t (*from_f64)(double);
  float (*to_f32)(uint16_t);

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  uint32_t inf() const { return ((1u << exponent_bits) - 1) << mantissa_bits; }

  // The value of a finite or infinite non-negative pattern; infinity as the next power of two,
  // which is what rounding sees (IEEE 754-2019, 4.3.1).
  double value(uint32_t pattern) const {
    const int exponent = int(pattern >> mantissa_bits);
    const double fraction = pattern & ((1u << mantissa_bits) - 1);
    const double significand = exponent ? fraction + std::ldexp(1.0, mantissa_bits) : fraction;
    return std::ldexp(significand, (exponent ? exponent : 1) - bias() - mantissa_bits);
  }
};

class NarrowFloat : public ::testing::TestWithParam<Format> {};

TEST_P(NarrowFloat, EveryPatternRoundTrips) {
  const Format& f = GetParam();
  for (uint32_t pattern = 0; pattern < 0x10000; ++pattern) {
    const uint16_t h = uint16_t(pattern);
    const float v = f.to_f32(h);
    const bool negative = h & 0x8000;
    const uint32_t magnitude = h & 0x7FFF;
    ASSERT_EQ(std::signbit(v), negative) << pattern;
    if (magnitude > f.inf()) {
      ASSERT_TRUE(std::isnan(v)) << pattern;
      const uint16_t quiet = uint16_t(h | 1u << (f.mantissa_bits - 1));
      ASSERT_EQ(f.from_f32(v), quiet) << pattern;
      ASSERT_EQ(f.from_f64(double(v)), quiet) << pattern;
      continue;
    }
    const double expected = magnitude == f.inf() ? INFINITY : f.value(magnitude);
    ASSERT_EQ(double(v), negative ? -expected : expected) << pattern;
    ASSERT_EQ(f.from_f32(v), h) << pattern;
    ASSERT_EQ(f.from_f64(double(v)), h) << pattern;
  }
}

TEST_P(NarrowFloat, EveryMidpointRoundsToEven) {
  const Format& f = GetParam();
  for (uint32_t lower = 0; lower < f.inf(); ++lower) {
    const double middle = (f.value(lower) + f.value(lower + 1)) / 2;
    const uint32_t even = lower & 1 ? lower + 1 : lower;
    for (uint32_t sign : {0u, 0x8000u}) {
      const double s = sign ? -1 : 1;
      ASSERT_EQ(f.from_f64(s * middle), sign | even) << lower;
      ASSERT_EQ(f.from_f64(s * std::nextafter(middle, 0.0)), sign | lower) << lower;
      ASSERT_EQ(f.from_f64(s * std::nextafter(middle, INFINITY)), sign | (lower + 1)) << lower;
      const float narrow = float(middle);
      ASSERT_EQ(double(narrow), middle) << lower;  // midpoints of both formats are float32 values
      const float down = std::nextafter(narrow, 0.0f), up = std::nextafter(narrow, INFINITY);
      ASSERT_EQ(f.from_f32(float(s) * narrow), sign | even) << lower;
      ASSERT_EQ(f.from_f32(float(s) * down), sign | lower) << lower;
      ASSERT_EQ(f.from_f32(float(s) * up), sign | (lower + 1)) << lower;
    }
  }
}

TEST_P(NarrowFloat, RandomDoublesGoToTheNearest) {
  const Format& f = GetParam();
  std::mt19937_64 random(1);
  const int least = 1 - f.bias() - f.mantissa_bits;  // exponent of the least subnormal
  std::uniform_int_distribution<int> exponents(least - 3, f.bias() + 1);
  for (int i = 0; i < 200000; ++i) {
    const double significand = 1 + double(random() >> 12) * 0x1p-52;
    const double v = std::ldexp(significand, exponents(random));
    const int quantum = std::max(std::ilogb(v) - f.mantissa_bits, least);
    double expected = std::ldexp(std::nearbyint(std::ldexp(v, -quantum)), quantum);
    if (expected >= f.value(f.inf())) expected = INFINITY;
    ASSERT_EQ(double(f.to_f32(f.from_f64(v))), expected) << v;
    const float narrow = float(v);  // the same function where the value is a float32
    ASSERT_EQ(f.from_f32(narrow), f.from_f64(double(narrow))) << v;
  }
}

TEST_P(NarrowFloat, EdgesOfDoubleAndNan) {
  const Format& f = GetParam();
  EXPECT_EQ(f.from_f64(std::numeric_limits<double>::max()), f.inf());
  EXPECT_EQ(f.from_f64(-std::numeric_limits<double>::infinity()), 0x8000u | f.inf());
  EXPECT_EQ(f.from_f64(std::numeric_limits<double>::denorm_min()), 0u);
  EXPECT_EQ(f.from_f64(-std::numeric_limits<double>::denorm_min()), 0x8000u);
  EXPECT_EQ(f.from_f32(-std::numeric_limits<float>::denorm_min()), 0x8000u);
  // A NaN whose payload lies in the bits that are cut off must not become infinity.
  for (uint64_t payload : {uint64_t{1}, uint64_t{1} << 51}) {
    const uint16_t h = f.from_f64(std::bit_cast<double>(uint64_t{0xFFF} << 52 | payload));
    EXPECT_GT(h & 0x7FFFu, f.inf());
    EXPECT_TRUE(h & 0x8000u);
  }
  EXPECT_GT(f.from_f32(std::bit_cast<float>(0x7F800001u)), f.inf());
}

// One ulp of float32 above a midpoint is lost by a first rounding to float32: a second one would
// then break the tie the wrong way.
TEST_P(NarrowFloat, DoublesAreRoundedOnce) {
  const Format& f = GetParam();
  const double one_and_half_ulp = 1 + std::ldexp(1.0, -f.mantissa_bits - 1);
  const double v = one_and_half_ulp + 0x1p-40;
  ASSERT_EQ(double(float(v)), one_and_half_ulp);
  EXPECT_EQ(double(f.to_f32(f.from_f64(v))), 1 + std::ldexp(1.0, -f.mantissa_bits));
}

INSTANTIATE_TEST_SUITE_P(
    Formats, NarrowFloat,
    ::testing::Values(Format{"f16", 5, 10, f16_from_f32, f16_from_f64, f16_to_f32},
                      Format{"bf16", 8, 7, bf16_from_f32, bf16_from_f64, bf16_to_f32}),
    [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace tuff
