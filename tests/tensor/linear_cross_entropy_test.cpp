// linear_cross_entropy() beside the loss of all logits at once: values, gradients, memory.
#include <tuff/autograd.h>
#include <tuff/losses.h>

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "devices.h"
#include "drawn_values.h"
#include "temporaries.h"

namespace tuff::test {
namespace {

constexpr int64_t kRows = 50, kIn = 12, kClasses = 70, kIgnored = -100;

class LinearCrossEntropy : public DrawnValues {
 protected:
  Tensor targets(int64_t rows, int64_t classes) const {
    std::mt19937 draws(5);
    std::vector<int32_t> v(static_cast<size_t>(rows));
    for (size_t i = 0; i < v.size(); i++)
      v[i] = i % 9 == 4 ? int32_t(kIgnored) : int32_t(draws() % uint32_t(classes));
    return Tensor::from(v, {rows}, {.device = GetParam()});
  }
};
INSTANTIATE_TEST_SUITE_P(, LinearCrossEntropy, testing::ValuesIn(devices()),
                         named_by_device<testing::TestParamInfo<std::string>>);

void expect_near(const Tensor& got, const Tensor& want) {
  ASSERT_EQ(got.sizes(), want.sizes());
  EXPECT_LT((got - want).abs().amax().item(), 2e-6);
}

// Chunks that divide the rows, that do not, of one row, and one for all.
TEST_P(LinearCrossEntropy, IsThatOfAllLogitsAtOnce) {
  const Tensor x = trained({kRows, kIn}, 1), w = trained({kClasses, kIn}, 2),
               b = trained({kClasses}, 3), weight = drawn({kClasses}, 4).abs();
  const Tensor target = targets(kRows, kClasses);
  for (const bool plain : {true, false}) {
    const Tensor bias = plain ? Tensor() : b, of_class = plain ? Tensor() : weight;
    const double smoothing = plain ? 0 : 0.2;
    const auto whole = [&](Reduction r) {
      return x.linear(w, bias).cross_entropy(target, of_class, kIgnored, r, smoothing);
    };
    const auto by_rows = [&](Reduction r, int64_t rows) {
      return linear_cross_entropy(x, w, target, bias, of_class, kIgnored, r, smoothing, rows);
    };
    const Tensors by = plain ? Tensors{x, w} : Tensors{x, w, b};
    const Tensor want = whole(Reduction::Mean);
    const Tensors theirs = (want * 3).gradient(by);
    const double sum = whole(Reduction::Sum).item();
    EXPECT_NEAR(by_rows(Reduction::Sum, 16).item(), sum, 1e-5 * std::abs(sum));
    expect_near(by_rows(Reduction::None, 16), whole(Reduction::None));
    for (const int64_t rows : {25, plain ? 1 : 16, 64}) {
      const Tensor got = by_rows(Reduction::Mean, rows);
      const Tensors mine = (got * 3).gradient(by);
      expect_near(got, want);
      for (size_t i = 0; i < by.size(); i++) expect_near(mine[i], theirs[i]);
    }
  }
}

TEST_P(LinearCrossEntropy, TargetsMayBeOfAnyInteger) {
  const Tensor x = drawn({kRows, kIn}, 1), w = drawn({kClasses, kIn}, 2);
  const Tensor target = targets(kRows, kClasses).clamp(0, kClasses - 1);
  for (const DType t : {DType::U8, DType::I16, DType::I32, DType::U32})
    for (const int64_t ignored : {int64_t{3}, kIgnored, int64_t{1} << 40}) {
      const Tensor wanted = target.cast(t).realize();
      expect_near(linear_cross_entropy(x, w, wanted, {}, {}, ignored, Reduction::Mean, 0, 16),
                  x.linear(w).cross_entropy(target, {}, ignored));
    }
}

// By what has no requires_grad as well, as vjp() asks.
TEST_P(LinearCrossEntropy, HasGradientsByConstants) {
  const Tensor x = drawn({kRows, kIn}, 1), w = drawn({kClasses, kIn}, 2);
  const Tensor target = targets(kRows, kClasses);
  const auto gradients = [&](const Tensor& loss) { return loss.gradient({x, w}); };
  const Tensors got = gradients(
                    linear_cross_entropy(x, w, target, {}, {}, kIgnored, Reduction::Mean, 0, 16)),
                want = gradients(x.linear(w).cross_entropy(target, {}, kIgnored));
  for (size_t i = 0; i < got.size(); i++) expect_near(got[i], want[i]);
}

TEST_P(LinearCrossEntropy, MemoryHasTheLogitsOfSomeRows) {
  constexpr int64_t rows = 256, classes = 4096, at_once = 32;
  const Tensor x = trained({rows, kIn}, 1), w = drawn({classes, kIn}, 2);
  const auto bytes = [&](int64_t n) {
    const Tensor loss =
        linear_cross_entropy(x, w, targets(rows, classes), {}, {}, kIgnored, Reduction::Mean, 0, n);
    return temporary_bytes({loss, loss.gradient({x})[0]});
  };
  EXPECT_GE(bytes(rows), rows * classes * 4u);
  EXPECT_LT(bytes(at_once), 3 * at_once * classes * 4u);
}

TEST(LinearCrossEntropyErrors, NameTheArgument) {
  const Tensor x = Tensor::zeros({4, 3}, {.device = "CPU"}),
               w = Tensor::zeros({5, 3}, {.device = "CPU"});
  const auto loss = [&](const std::vector<int32_t>& v, int64_t rows) {
    const Tensor target = Tensor::from(v, {int64_t(v.size())}, {.device = "CPU"});
    return linear_cross_entropy(x, w, target, {}, {}, kIgnored, Reduction::Mean, 0, rows).item();
  };
  EXPECT_THROW(loss({0, 1, 2, 3}, -1), InvalidArgument);
  EXPECT_THROW(loss({0, 1, 2}, 2), ShapeError);
  EXPECT_THROW(loss({0, 1, 2, 5}, 2), IndexError);
  const Tensor target = Tensor::from(std::vector<int32_t>{0, 1, 2, 3}, {4}, {.device = "CPU"});
  const auto smoothed = [&](double s) {
    return linear_cross_entropy(x, w, target, {}, {}, kIgnored, Reduction::Mean, s, 2);
  };
  EXPECT_THROW(smoothed(2), InvalidArgument);
  EXPECT_THROW(smoothed(NAN), InvalidArgument);
  EXPECT_THROW(linear_cross_entropy(x, w, target, x, {}, kIgnored, Reduction::Mean, 0, 2),
               ShapeError);
  EXPECT_THROW(linear_cross_entropy(x, w, target, {}, x, kIgnored, Reduction::Mean, 0, 2),
               ShapeError);
}

}  // namespace
}  // namespace tuff::test
