// The stable order of elements on every device against std::stable_sort: lengths around the blocks
// that are counted and merged, duplicates, NaN, infinities and both zeros, every dtype.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include <tuff/tensor.h>

#include "tensor/devices.h"
#include "tensor/order.h"

namespace tuff::test {
namespace {

using Places = std::vector<int32_t>;

class Order : public testing::TestWithParam<std::string> {
 protected:
  TensorOptions on(DType t) const { return {.dtype = t, .device = GetParam()}; }
  bool is_cpu() const { return GetParam() == "CPU"; }
};
INSTANTIATE_TEST_SUITE_P(Devices, Order, testing::ValuesIn(devices()),
                         [](const auto& info) { return named_by_device(info); });

// NaN above all.
template <class T>
bool below(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) || std::isnan(b)) return !std::isnan(a);
  }
  return a < b;
}
template <class T>
Places expected(const std::vector<T>& v, int64_t rows, bool descending) {
  const auto n = int64_t(v.size()) / std::max<int64_t>(rows, 1);
  Places order(v.size());
  for (int64_t r = 0; r < rows; r++) {
    const auto row = order.begin() + r * n;
    std::iota(row, row + n, 0);
    std::stable_sort(row, row + n, [&](int32_t a, int32_t b) {
      const T x = v[size_t(r * n + a)], y = v[size_t(r * n + b)];
      if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(x) && std::isnan(y)) return false;
      }
      return descending ? below(y, x) : below(x, y);
    });
  }
  return order;
}

// Values of few kinds, so that many are equal, or of all.
template <class T>
std::vector<T> values(int64_t count, bool few, std::mt19937_64& random) {
  std::vector<T> out;
  for (int64_t i = 0; i < count; i++) {
    const uint64_t bits = random();
    if constexpr (std::is_floating_point_v<T>) {
      const T special[] = {0, T(-0.0), std::numeric_limits<T>::infinity(),
                           -std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN(),
                           -std::numeric_limits<T>::quiet_NaN(),
                           std::numeric_limits<T>::denorm_min(), T(-1)};
      out.push_back(few ? special[bits % 8] : T(int64_t(bits)) * T(1e-18));
    } else {
      out.push_back(few ? T(int64_t(bits % 5) - 2) : T(bits));
    }
  }
  return out;
}

template <class T>
void expect_order(int64_t rows, int64_t n, bool few, bool descending, const TensorOptions& on) {
  SCOPED_TRACE(testing::Message() << rows << " x " << n << " " << name(dtype_of<T>::value)
                                  << (few ? " few" : "") << (descending ? " descending" : ""));
  std::mt19937_64 random(uint64_t(n * 4 + rows + few));
  const std::vector<T> v = values<T>(rows * n, few, random);
  const Tensor x = Tensor::from(v, {rows, n}, {.device = on.device});
  const Tensor order = detail::stable_order(detail::order_keys(x, descending));
  EXPECT_EQ(order.to_vector<int32_t>(), expected(v, rows, descending));
}

TEST_P(Order, IsThatOfStableSort) {
  for (int64_t n : {0, 1, 2, 3, 31, 32, 33, 127, 128, 129, 255, 256, 257, 1000}) {
    for (bool few : {false, true}) {
      expect_order<float>(3, n, few, false, on(DType::F32));
      expect_order<int32_t>(2, n, few, true, on(DType::I32));
    }
  }
}

TEST_P(Order, OfLongAxes) {
  const int64_t longest = is_cpu() ? 100'003 : 5'003;
  for (int64_t n : {2 * 1024 + 1, int(longest)}) {
    for (bool few : {false, true}) {
      expect_order<float>(1, n, few, few, on(DType::F32));
      expect_order<int64_t>(2, n, few, !few, on(DType::I64));
    }
  }
}

TEST_P(Order, OfAxesThatAreSortedByDigits) {
  for (int64_t n : {131'072, 131'201}) {
    for (bool few : {false, true}) expect_order<float>(1, n, few, few, on(DType::F32));
  }
  expect_order<int32_t>(2, 131'075, false, true, on(DType::I32));
}

TEST_P(Order, OfEveryDType) {
  for (int64_t n : {50, 300}) {
    for (bool descending : {false, true}) {
      for (const bool few : {descending, !descending}) {
        if (test::computes(GetParam(), DType::F64))
          expect_order<double>(2, n, few, descending, on(DType::F64));
      }
      expect_order<int8_t>(2, n, false, descending, on(DType::I8));
      expect_order<uint8_t>(2, n, false, descending, on(DType::U8));
      expect_order<int16_t>(2, n, false, descending, on(DType::I16));
      expect_order<uint16_t>(2, n, true, descending, on(DType::U16));
      expect_order<uint32_t>(2, n, false, descending, on(DType::U32));
      expect_order<int64_t>(2, n, false, descending, on(DType::I64));
      expect_order<uint64_t>(2, n, false, descending, on(DType::U64));
    }
  }
}

// Every bit pattern: subnormals count, whatever the device does to them when it computes.
TEST_P(Order, OfSixteenBitFloatsAndBools) {
  std::vector<uint16_t> bits(1 << 12);
  std::mt19937_64 random(7);
  for (uint16_t& b : bits) b = uint16_t(random());
  const Tensor raw = Tensor::from(bits, {int64_t(bits.size())}, {.device = GetParam()});
  for (DType t : {DType::F16, DType::BF16}) {
    const std::vector<float> v =
        Tensor::from(bits, {int64_t(bits.size())}, {.device = "CPU"}).bitcast(t).cast(DType::F32)
            .to_vector<float>();
    const Tensor order = detail::stable_order(detail::order_keys(raw.bitcast(t)));
    EXPECT_EQ(order.to_vector<int32_t>(), expected(v, 1, false)) << name(t);
  }
  std::vector<int32_t> odd;
  for (uint16_t b : bits) odd.push_back(b & 1);
  const Tensor order = detail::stable_order(detail::order_keys((raw & 1).cast(DType::Bool), true));
  EXPECT_EQ(order.to_vector<int32_t>(), expected(odd, 1, true));
}

TEST_P(Order, HasAnInverse) {
  for (int64_t n : {1, 20, 700}) {
    std::mt19937_64 random(3);
    const std::vector<float> v = values<float>(n, false, random);
    const Tensor x = Tensor::from(v, {n}, on(DType::F32));
    const Tensor order = detail::stable_order(detail::order_keys(x));
    const Tensor back = detail::taken(detail::taken(x, order), detail::inverse_order(order));
    EXPECT_EQ(back.to_vector<float>(), v) << n;
  }
}

}  // namespace
}  // namespace tuff::test
