// Kernels that differ in constants alone are one kernel: what it computes, that the next number
// compiles nothing, and what stays a constant.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include <tuff/jit.h>
#include <tuff/tensor.h>

#include "base/check.h"
#include "engine/device.h"
#include "engine/realize/capture.h"
#include "tensor/devices.h"

namespace tuff::engine {
namespace {

using Numbers = std::vector<double>;
using Expression = std::function<Tensor(const Tensor& x, double number)>;
using Reference = std::function<double(double x, double number)>;

const Numbers kFractions = {3.25, 4.75, -7.5, 1.5, 10, -0.375, 12};
const Numbers kWholes = {3, 5, 7, 100, 9, 26, 15};

class Constants : public testing::TestWithParam<std::string> {
 protected:
  size_t programs() const { return Device::get(GetParam())->programs().size(); }
  TensorOptions of(DType t) const { return {.dtype = t, .device = GetParam()}; }
  Tensor counting(DType t) const { return Tensor::arange(0, 24, 1, of(t)).realize(); }
  static Numbers values(const Tensor& t) {
    return t.to("CPU").cast(DType::F64).to_vector<double>();
  }
  static void expect_values(const Tensor& got, double number, const Reference& expected) {
    const Numbers v = values(got);
    for (size_t k = 0; k < v.size(); k++)
      ASSERT_EQ(v[k], expected(double(k), number))
          << name(got.dtype()) << ", element " << k << ", number " << number;
  }
  // How many programs `numbers` bring after the first two of them, results being right.
  size_t more_programs(DType t, const Numbers& numbers, const Expression& f,
                       const Reference& expected) {
    const Tensor x = counting(t);
    size_t before = 0;
    for (size_t i = 0; i < numbers.size(); i++) {
      if (i == 2) before = programs();
      expect_values(f(x, numbers[i]).realize(), numbers[i], expected);
    }
    return programs() - before;
  }
};

TEST_P(Constants, OfFloatsAreArguments) {
  const auto same = [](double, double n) { return n; };
  const auto full = [&](const Tensor&, double n) {
    return Tensor::full({24}, n, of(DType::F32));
  };
  EXPECT_EQ(more_programs(DType::F32, kFractions, full, same), 0u);
  EXPECT_EQ(more_programs(
                DType::F32, kFractions, [](const Tensor& x, double n) { return x * n; },
                [](double x, double n) { return x * n; }),
            0u);
  EXPECT_EQ(more_programs(
                DType::F32, kFractions, [](const Tensor& x, double n) { return n - x; },
                [](double x, double n) { return n - x; }),
            0u);
  const auto clamped = [](const Tensor& x, double n) {
    return x.clamp(n, {}) * 3 + (x < n).cast(DType::F32);
  };
  EXPECT_EQ(more_programs(DType::F32, kFractions, clamped,
                          [](double x, double n) { return std::max(x, n) * 3 + (x < n); }),
            0u);
  EXPECT_EQ(more_programs(
                DType::F32, kFractions, [](const Tensor& x, double n) { return (x * n).sum(); },
                [](double, double n) { return 276 * n; }),
            0u);
}

TEST_P(Constants, OfEveryDtypeAreArguments) {
  const auto add = [](const Tensor& x, double n) {
    return is_int(x.dtype()) ? x + int64_t(n) : x + n;
  };
  const auto sum = [](double x, double n) { return x + n; };
  for (const DType t : {DType::F16, DType::BF16, DType::F32})
    EXPECT_EQ(more_programs(t, kFractions, add, sum), 0u) << name(t);
  for (const DType t : {DType::F8E4M3FN, DType::F8E5M2}) {
    const auto rounded = [t](double v) { return Scalar::of_double(t, v).as_double(); };
    const auto rounded_sum = [&](double x, double n) { return rounded(rounded(x) + rounded(n)); };
    EXPECT_EQ(more_programs(t, kFractions, add, rounded_sum), 0u) << name(t);
  }
  for (const DType t : {DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32,
                        DType::I64, DType::U64})
    EXPECT_EQ(more_programs(t, kWholes, add, sum), 0u) << name(t);
  EXPECT_EQ(more_programs(DType::I32, {-3, 5, -70000, 2147483000.0 - 24, -2147483000.0}, add, sum),
            0u);
}

TEST_P(Constants, OfTwoWordsAreArgumentsWhereTheDeviceHasThem) {
  const TargetFeatures& f = Device::get(GetParam())->target().features;
  const auto add = [](const Tensor& x, double n) {
    return is_int(x.dtype()) ? x + int64_t(n) : x + n;
  };
  const auto sum = [](double x, double n) { return x + n; };
  const Numbers large = {0x1p40 + 3, 0x1p50 + 1, 0x1p33 + 7, 0x1p51 - 9};
  const size_t integers = more_programs(DType::I64, large, add, sum);
  EXPECT_EQ(more_programs(DType::U64, large, add, sum), integers);
  EXPECT_EQ(integers, f.i64 ? 0u : 2u);
  if (!f.f64) return;
  EXPECT_EQ(more_programs(DType::F64, {0.1, 0.3, 1e-300, -1e300}, add, sum), 0u);
}

TEST_P(Constants, OfPowersAreArguments) {
  const Tensor x = counting(DType::F32);
  size_t before = 0;
  const Numbers exponents = {0.3, 0.7, 0.45, 0.9, 0.125};
  for (size_t i = 0; i < exponents.size(); i++) {
    if (i == 2) before = programs();
    const Numbers got = values(x.pow(exponents[i]).realize());
    for (size_t k = 0; k < got.size(); k++)
      ASSERT_NEAR(got[k], std::pow(double(k), double(float(exponents[i]))), 1e-5 * got[k]) << k;
  }
  EXPECT_EQ(programs(), before);
}

// Of several constants those that have been seen to differ.
TEST_P(Constants, ThatNeverDifferStay) {
  const Tensor x = counting(DType::F32);
  const auto variables = [&] {
    size_t most = 0;
    for (const LoadedKernel* k : Device::get(GetParam())->programs().all())
      most = std::max(most, k->variables.size());
    return most;
  };
  const size_t before = variables();
  for (const double n : kFractions) {
    const Tensor y = ((x * 17 + n) * 19).clamp(23, {}) * 29 + 31;
    expect_values(y, n, [](double v, double c) {
      return std::max((v * 17 + c) * 19, 23.0) * 29 + 31;
    });
  }
  EXPECT_LE(variables(), std::max<size_t>(before, 1));
}

// Divisors and shifts are folded into other instructions, offsets are known to lie inside.
TEST_P(Constants, ThatCodeIsMadeOfStay) {
  const Tensor x = counting(DType::I32);
  const auto floor_divided = [&](int64_t n) {
    const size_t before = programs();
    expect_values((x.floor_divide(n)).realize(), double(n),
                  [](double v, double c) { return std::floor(v / c); });
    return programs() - before;
  };
  floor_divided(3);
  EXPECT_EQ(floor_divided(5), 1u);
  EXPECT_EQ(floor_divided(7), 1u);
}

TEST_P(Constants, OfCapturedKernelsAreArgumentsOfEachLaunch) {
  const Tensor x = counting(DType::F32);
  for (const double n : {2.25, 4.25, 5.25}) (x * n - 1).realize();
  Jit jit([](const std::vector<Tensor>& in) {
    const Tensor a = (in[0] * 7.25 - 1).realize(), b = (in[0] * 9.25 - 1).realize();
    return std::vector<Tensor>{a, b, (a + b).realize()};
  });
  for (int i = 1; i <= 5; i++) {
    const Tensor in = (x + 4.0 * i).realize();
    const std::vector<Tensor> got = jit({in});
    const Reference one = [&](double v, double n) { return (v + 4 * i) * n - 1; };
    expect_values(got[0], 7.25, one);
    expect_values(got[1], 9.25, one);
    expect_values(got[2], 0, [&](double v, double) { return one(v, 7.25) + one(v, 9.25); });
  }
  EXPECT_TRUE(jit.captured());
}

TEST_P(Constants, StandBesideSizesThatVary) {
  const Tensor x = counting(DType::F32);
  const auto scaled_with = [](double n) {
    return [n](const std::vector<Tensor>& in) {
      return std::vector<Tensor>{(in[0] * n + 3).realize()};
    };
  };
  for (const double n : {11.5, 13.5, 17.5}) {
    Jit jit(scaled_with(n), {.dynamic = {{0, 0, "rows", 1, 24}}});
    for (const int64_t rows : {24, 5, 9, 1}) {
      const Tensor in = x.narrow(0, 0, rows).contiguous().realize();
      const Tensor got = jit({in})[0];
      EXPECT_EQ(got.size(0), rows);
      expect_values(got, n, [](double v, double c) { return v * c + 3; });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Constants, testing::ValuesIn(test::devices()),
                         test::named_by_device<testing::TestParamInfo<std::string>>);

}  // namespace
}  // namespace tuff::engine
