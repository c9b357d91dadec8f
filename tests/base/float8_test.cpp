// The two formats of 8 bits: every code, every float16 and every boundary of rounding, against
// values from the definition (Open Compute Project, "OCP 8-bit Floating Point Specification (OFP8)", 2023,
// sections 5.1 and 5.2): sign, exponent of bias 7 or 15, significand; the last exponent is one of
// numbers in E4M3 but for S.1111.111, NaN, and as in IEEE 754 in E5M2.
#include <gtest/gtest.h>
#include <string>
#include <tuff/dtype.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace tuff {
namespace {

struct ByteFormat {
  DType dtype;
  int bias, mantissa_bits;
  uint8_t end;      // the first code that is no number; as a number it would be what rounding sees
  uint8_t beyond;   // the code of what is rounded to it
  double largest;
};
constexpr ByteFormat kByteFormats[] = {{DType::F8E4M3FN, 7, 3, 0x7f, 0x7f, 448},
                               {DType::F8E5M2, 15, 2, 0x7c, 0x7c, 57344}};

// Of a code without its sign.
double value_of(const ByteFormat& f, int code) {
  const int exponent = code >> f.mantissa_bits, unit = 1 << f.mantissa_bits;
  const double fraction = double(code % unit) / unit;
  return exponent ? std::ldexp(1 + fraction, exponent - f.bias) : std::ldexp(fraction, 1 - f.bias);
}

// By looking for the nearest number.
uint8_t nearest(const ByteFormat& f, double v) {
  const uint8_t sign = std::signbit(v) ? 0x80 : 0;
  if (std::isnan(v)) return sign | 0x7f;
  const double magnitude = std::abs(v);
  int low = 0;
  while (low < f.end && value_of(f, low + 1) <= magnitude) low++;
  if (low == f.end) return sign | f.beyond;
  const double middle = (value_of(f, low) + value_of(f, low + 1)) / 2;
  const bool up = magnitude > middle || (magnitude == middle && low % 2 != 0);
  return uint8_t(sign | (low + up == f.end ? f.beyond : low + up));
}

class Float8 : public testing::TestWithParam<ByteFormat> {
 protected:
  DType dtype() const { return GetParam().dtype; }
  uint8_t from_f64(double v) const {
    uint8_t code = 0;
    store_scalar(Scalar::of_double(dtype(), v), &code);
    const bool e4 = dtype() == DType::F8E4M3FN;
    EXPECT_EQ(e4 ? f8e4m3fn_from_f64(v) : f8e5m2_from_f64(v), code) << v;
    return code;
  }
  uint8_t from_f32(float v) const {
    uint8_t code = 0;
    convert(DType::F32, &v, dtype(), &code, 1);
    const bool e4 = dtype() == DType::F8E4M3FN;
    EXPECT_EQ(e4 ? f8e4m3fn_from_f32(v) : f8e5m2_from_f32(v), code) << v;
    return code;
  }
};
INSTANTIATE_TEST_SUITE_P(Formats, Float8, testing::ValuesIn(kByteFormats),
                         [](const auto& info) { return std::string(name(info.param.dtype)); });

TEST_P(Float8, EveryCodeDecodesAndComesBack) {
  for (int code = 0; code < 256; code++) {
    const uint8_t byte = uint8_t(code), magnitude = byte & 0x7f;
    const double got = load_scalar(dtype(), &byte).as_double();
    float single = 0;
    convert(dtype(), &byte, DType::F32, &single, 1);
    EXPECT_EQ(std::signbit(got), byte > 0x7f) << code;
    const bool infinite = GetParam().dtype == DType::F8E5M2 && magnitude == 0x7c;
    if (magnitude >= GetParam().end && !infinite) {
      EXPECT_TRUE(std::isnan(got) && std::isnan(single)) << code;
      EXPECT_EQ(from_f64(got), byte | 0x7f) << code;
      EXPECT_EQ(from_f32(single), byte | 0x7f) << code;
      continue;
    }
    EXPECT_EQ(std::abs(got), infinite ? INFINITY : value_of(GetParam(), magnitude)) << code;
    EXPECT_EQ(double(single), got) << code;
    EXPECT_EQ(from_f64(got), byte) << code;
    EXPECT_EQ(from_f32(single), byte) << code;
  }
  EXPECT_EQ(value_of(GetParam(), GetParam().end - 1), GetParam().largest);
}

TEST_P(Float8, EveryHalfGoesToTheNearest) {
  for (uint32_t bits = 0; bits < 65536; bits++) {
    const float v = f16_to_f32(uint16_t(bits));
    const uint16_t half = uint16_t(bits);
    uint8_t converted = 0;
    convert(DType::F16, &half, dtype(), &converted, 1);
    const uint8_t want = nearest(GetParam(), v);
    ASSERT_EQ(from_f32(v), want) << v;
    ASSERT_EQ(from_f64(v), want) << v;
    ASSERT_EQ(converted, want) << v;
  }
}

TEST_P(Float8, EveryMidpointRoundsToEven) {
  for (int low = 0; low < GetParam().end; low++) {
    const float middle = float((value_of(GetParam(), low) + value_of(GetParam(), low + 1)) / 2);
    for (const float v : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, INFINITY)}) {
      EXPECT_EQ(from_f32(v), nearest(GetParam(), v)) << v;
      EXPECT_EQ(from_f32(-v), nearest(GetParam(), -v)) << v;
    }
    for (const double v : {double(middle), std::nextafter(double(middle), 0.0),
                           std::nextafter(double(middle), INFINITY)}) {
      EXPECT_EQ(from_f64(v), nearest(GetParam(), v)) << v;
    }
  }
}

TEST_P(Float8, WhatIsBeyondAndWhatIsNearZero) {
  const uint8_t beyond = GetParam().beyond;
  for (const double v : {1e5, 1e30, 1e300, double(INFINITY)}) {
    EXPECT_EQ(from_f64(v), beyond) << v;
    EXPECT_EQ(from_f32(float(-v)), beyond | 0x80) << v;
  }
  EXPECT_EQ(from_f64(std::numeric_limits<double>::denorm_min()), 0);
  EXPECT_EQ(from_f32(-std::numeric_limits<float>::denorm_min()), 0x80);
  EXPECT_EQ(from_f32(-0.0f), 0x80);
  EXPECT_EQ(Scalar::of_int(dtype(), 17).as_double(), 16);
  EXPECT_EQ(Scalar::of_int(dtype(), -19).as_double(), -20);
  EXPECT_EQ(largest_value(dtype()), GetParam().largest);
  EXPECT_EQ(smallest_normal(dtype()), std::ldexp(1.0, 1 - GetParam().bias));
}

}  // namespace
}  // namespace tuff
