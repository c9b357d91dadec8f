// float8_e4m3fn and float8_e5m2 on every device: all codes, all float16s, arithmetic through F32,
// reductions, order; against values from the definition of the formats (OCP OFP8, 2023, section 5).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include <tuff/autocast.h>
#include <tuff/tensor.h>
#include "tensor/devices.h"

namespace tuff::test {
namespace {

using Floats = std::vector<float>;
using Codes = std::vector<uint8_t>;

struct ByteFloat {
  DType dtype;
  int bias, mantissa_bits;
  int end;  // the first code without sign that is no finite number, and what rounds to it
};
constexpr ByteFloat kE4m3{DType::F8E4M3FN, 7, 3, 0x7f}, kE5m2{DType::F8E5M2, 15, 2, 0x7c};

double magnitude_of(const ByteFloat& f, int code) {
  const int exponent = code >> f.mantissa_bits, unit = 1 << f.mantissa_bits;
  const double fraction = double(code % unit) / unit;
  return exponent ? std::ldexp(1 + fraction, exponent - f.bias) : std::ldexp(fraction, 1 - f.bias);
}
double value_of(const ByteFloat& f, uint8_t code) {
  const int magnitude = code & 0x7f;
  double v = NAN;
  if (magnitude < f.end) v = magnitude_of(f, magnitude);
  if (magnitude == 0x7c && f.dtype == DType::F8E5M2) v = INFINITY;
  return code & 0x80 ? -v : v;
}
uint8_t code_of(const ByteFloat& f, double v) {
  const uint8_t sign = std::signbit(v) ? 0x80 : 0;
  if (std::isnan(v)) return sign | 0x7f;
  int low = 0;
  while (low < f.end && magnitude_of(f, low + 1) <= std::abs(v)) low++;
  if (low == f.end) return uint8_t(sign | f.end);
  const double middle = (magnitude_of(f, low) + magnitude_of(f, low + 1)) / 2;
  return uint8_t(sign | (low + (std::abs(v) > middle || (std::abs(v) == middle && low % 2))));
}

class Float8 : public testing::TestWithParam<std::tuple<std::string, ByteFloat>> {
 protected:
  const ByteFloat& format() const { return std::get<1>(GetParam()); }
  DType dtype() const { return format().dtype; }
  TensorOptions on(DType t = DType::F32) const { return {t, std::get<0>(GetParam())}; }

  Tensor of(const Floats& v) const {
    return Tensor::from(v, {int64_t(v.size())}, on()).cast(dtype());
  }
  Tensor every_code() const {
    Codes codes(256);
    std::iota(codes.begin(), codes.end(), uint8_t(0));
    return Tensor::from_bytes(codes.data(), {256}, on(dtype()));
  }
  static Codes codes(const Tensor& t) { return t.bitcast(DType::U8).to_vector<uint8_t>(); }
  static Floats floats(const Tensor& t) { return t.cast(DType::F32).to_vector<float>(); }
  // Sign of NaN left out: devices make their own.
  void expect_codes(const Tensor& got, const std::vector<double>& want) const {
    const Codes c = codes(got);
    ASSERT_EQ(c.size(), want.size());
    for (size_t i = 0; i < c.size(); i++) {
      const bool both = std::isnan(want[i]) && std::isnan(value_of(format(), c[i]));
      EXPECT_TRUE(both || c[i] == code_of(format(), want[i]))
          << i << ": " << value_of(format(), c[i]) << " for " << want[i];
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Float8,
                         testing::Combine(testing::ValuesIn(devices()),
                                          testing::Values(kE4m3, kE5m2)),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param) + "_" +
                                              tuff::name(std::get<1>(info.param).dtype);
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

TEST_P(Float8, EveryCodeDecodes) {
  const Tensor x = every_code();
  for (const DType t : {DType::F32, DType::F16}) {
    const Floats got = floats(x.cast(t));
    for (size_t i = 0; i < got.size(); i++) {
      const double want = value_of(format(), uint8_t(i));
      EXPECT_TRUE(got[i] == want || (std::isnan(got[i]) && std::isnan(want))) << i << " " << got[i];
      EXPECT_TRUE(std::isnan(want) || std::signbit(got[i]) == std::signbit(want)) << i;
    }
  }
}

TEST_P(Float8, EveryHalfEncodes) {
  std::vector<uint16_t> halves(65536);
  std::iota(halves.begin(), halves.end(), uint16_t(0));
  const Tensor h = Tensor::from_bytes(halves.data(), {65536}, on(DType::F16));
  const Codes got = codes(h.cast(dtype())), through = codes(h.cast(DType::F32).cast(dtype()));
  int wrong = 0;
  for (size_t i = 0; i < got.size(); i++) {
    const double v = f16_to_f32(uint16_t(i));
    const uint8_t want = code_of(format(), v), sign = std::isnan(v) ? 0x80 : 0;
    if ((got[i] | sign) == (want | sign) && (through[i] | sign) == (want | sign)) continue;
    if (wrong++ == 0) ADD_FAILURE() << v << ": " << int(got[i]) << " for " << int(want);
  }
  EXPECT_EQ(wrong, 0);
}

TEST_P(Float8, IntegersAndTruthBothWays) {
  const std::vector<int32_t> whole = {0, 1, -1, 9, 17, -19, 100, 449, 465, 60000, -70000, 1 << 30};
  const Tensor x = Tensor::from(whole, {int64_t(whole.size())}, on());
  for (const DType t : {DType::I32, DType::I64})
    expect_codes(x.cast(t).cast(dtype()), {whole.begin(), whole.end()});
  const Tensor f = of({0, -0.f, 0.75, -2.5, 100, NAN, 300});
  EXPECT_EQ(f.cast(DType::I32).to_vector<int32_t>(),
            (std::vector<int32_t>{0, 0, 0, -2, 96, 0,
                                  dtype() == DType::F8E5M2 ? 320 : 288}));
  EXPECT_EQ(f.cast(DType::I8).to_vector<int8_t>(), (std::vector<int8_t>{0, 0, 0, -2, 96, 0, 127}));
  EXPECT_EQ(f.cast(DType::Bool).cast(DType::I32).to_vector<int32_t>(),
            (std::vector<int32_t>{0, 0, 1, 1, 1, 1, 1}));
  expect_codes(Tensor::ones({2}, on(DType::Bool)).cast(dtype()), {1, 1});
}

// In F32, then rounded.
TEST_P(Float8, ArithmeticOfAllPairs) {
  const Tensor x = every_code(), rows = x.reshape({256, 1}).expand({256, 256}),
               columns = x.reshape({1, 256}).expand({256, 256});
  const Codes sums = codes(rows + columns), products = codes(rows * columns);
  int wrong = 0;
  for (size_t i = 0; i < sums.size(); i++) {
    const double a = value_of(format(), uint8_t(i / 256)), b = value_of(format(), uint8_t(i % 256));
    const auto right = [&](uint8_t got, double v) {
      return std::isnan(v) ? std::isnan(value_of(format(), got)) : got == code_of(format(), v);
    };
    wrong += !right(sums[i], double(float(a + b))) + !right(products[i], a * b);
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ((x + 1).dtype(), dtype());
  EXPECT_EQ((x * 0.5).dtype(), dtype());
  EXPECT_EQ((x + x.cast(DType::F16)).dtype(), DType::F16);
  EXPECT_EQ(promote(DType::F8E4M3FN, DType::F8E5M2), DType::F16);
}

TEST_P(Float8, ReductionsAccumulateInF32) {
  // A running sum in 8 bits would stop at 16 or 8.
  const Tensor ones = Tensor::ones({3, 40}, on(dtype()));
  expect_codes(ones.sum({1}), {40, 40, 40});
  expect_codes(ones.mean({1}), {1, 1, 1});
  const Tensor x = of({-7, -3, -448, -5}).reshape({2, 2});
  expect_codes(x.max({1}), {-3, -5});
  expect_codes(x.min({1}), {-7, -448});
  expect_codes(of({-7, NAN, -3, -5}).reshape({2, 2}).max({1}), {NAN, -3});
  expect_codes(x.matmul(x), {49 + 3 * 448, 21 + 15, 448 * 7 + 5 * 448, 448 * 3 + 25});
  expect_codes(x.reshape({1, 1, 2, 2}).max_pool2d(2).reshape({1}), {-3});
  expect_codes(of({-7, -3, -5}).cummax(0).first, {-7, -3, -3});
}

TEST_P(Float8, OrderAndWhatIsFinite) {
  const Tensor x = of({2, NAN, -1, 0.5, -300, 0});
  const Floats sorted = floats(x.sort().first);
  EXPECT_EQ(Floats(sorted.begin(), sorted.end() - 1),
            (Floats{dtype() == DType::F8E5M2 ? -320.f : -288.f, -1, 0, 0.5, 2}));
  EXPECT_TRUE(std::isnan(sorted.back()));
  const Tensor all = every_code();
  const auto finite = all.isfinite().cast(DType::I32).to_vector<int32_t>();
  const auto infinite = all.isinf().cast(DType::I32).to_vector<int32_t>();
  for (size_t i = 0; i < 256; i++) {
    const double v = value_of(format(), uint8_t(i));
    EXPECT_EQ(finite[i], std::isfinite(v)) << i;
    EXPECT_EQ(infinite[i], std::isinf(v)) << i;
  }
  const double largest = magnitude_of(format(), format().end - 1);
  const bool has_infinity = dtype() == DType::F8E5M2;
  expect_codes(of({1e9f, -1e9f, NAN}).nan_to_num(2), {has_infinity ? largest : 2,
                                                      has_infinity ? -largest : 2, 2});
  expect_codes(Tensor::full({1}, 1e9, on(dtype())), {has_infinity ? INFINITY : NAN});
  expect_codes(of({-1, 1.5}).exp(), {std::exp(-1), std::exp(1.5)});
}

TEST_P(Float8, StandsOutsideOfAutocast) {
  EXPECT_THROW(Autocast{dtype()}, InvalidArgument);
  const Tensor x = of({1, 2, 3, 4}).reshape({2, 2});
  const Autocast scope(DType::F16);
  EXPECT_EQ(x.matmul(x).dtype(), dtype());
  EXPECT_EQ(x.sum().dtype(), dtype());
}

TEST_P(Float8, GradientsGoThroughCasts) {
  Tensor w = Tensor::from(Floats{0.1f, 3.3f, -2}, {3}, on());
  w.set_requires_grad();
  (w.cast(dtype()).cast(DType::F32) * Tensor::from(Floats{1, 2, 4}, {3}, on())).sum().backward();
  EXPECT_EQ(w.grad().to_vector<float>(), (Floats{1, 2, 4}));
}

}  // namespace
}  // namespace tuff::test
