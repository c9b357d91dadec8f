// Extents that are numbers or symbolic: arithmetic, what bounds decide, what is refused by name.
#include <gtest/gtest.h>

#include "tensor/impl.h"

namespace tuff {
namespace {

Size variable(const char* name, int64_t min, int64_t max) {
  return Size(ir::variable(name, min, max).get());
}
std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was refused";
}

TEST(Size, NumbersAreNumbers) {
  const Size n = 6;
  const int64_t plain = n;
  EXPECT_EQ(plain, 6);
  EXPECT_EQ(n * 2 + 1, 13);
  EXPECT_EQ(n / 4, 1);
  EXPECT_EQ(7 % n, 1);
  EXPECT_DOUBLE_EQ(double(n) / 4, 1.5);
  EXPECT_TRUE(n < 7 && n >= 6 && 5u < n && n != 5);
  EXPECT_EQ(n.str(), "6");
  const std::vector<int64_t> list = Sizes{2, n};
  EXPECT_EQ(list, (std::vector<int64_t>{2, 6}));
  EXPECT_EQ(Sizes(list), (Sizes{2, 6}));
}

TEST(Size, DivisionsWithoutAQuotientAreRefused) {
  const Size n = 6;
  EXPECT_EQ(refusal([&] { (void)(n / 0); }), "the extent 6 divided by 0");
  EXPECT_EQ(refusal([&] { (void)(n % Size(0)); }), "the extent 6 divided by 0");
  EXPECT_THROW((void)(Size(INT64_MIN) / -1), InvalidArgument);
}

TEST(Size, ExpressionsAreSimplified) {
  const Size t = variable("T", 1, 64), b = variable("B", 1, 8);
  EXPECT_TRUE((t - t).is_number());
  EXPECT_EQ(t + (64 - t), 64);
  EXPECT_EQ((t * 4 + 4) / 4 - 1, t);
  EXPECT_EQ((t * 6) % 3, 0);
  EXPECT_EQ((t * b).min(), 1);
  EXPECT_EQ((t * b).max(), 512);
  EXPECT_TRUE(detail::same(t * b, b * t));
  EXPECT_FALSE(detail::same(t, b));
  EXPECT_EQ((t + 1).str(), "T + 1");
}

TEST(Size, BoundsDecideOrTheComparisonNamesThem) {
  const Size t = variable("T", 1, 64);
  EXPECT_TRUE(t <= 64 && t >= 1 && t < 65 && t != 0 && t != 65 && !(t == 100));
  EXPECT_EQ(refusal([&] { (void)(t < 10); }), "whether T < 10 depends on its value (T in 1..64)");
  EXPECT_EQ(refusal([&] { (void)(t == 7); }), "whether T == 7 depends on its value (T in 1..64)");
  EXPECT_EQ(refusal([&] { (void)int64_t(t * 2); }),
            "the extent T*2 varies (T in 1..64) where a number is needed");
  EXPECT_EQ(refusal([&] { (void)((t - 5) / 2); }),
            "(T - 5) // 2: extents that vary are divided where neither is negative (T in 1..64)");
  EXPECT_TRUE((Sizes{2, t}) == (Sizes{2, t}));
  EXPECT_FALSE((Sizes{2, t, 3}) == (Sizes{2, t}));
}

TEST(Size, FunctionsThatTakeNumbersSaySo) {
  const Size t = variable("T", 1, 64);
  const auto x = [&] { return Tensor::zeros({2, t, 8}, {.device = "CPU"}); };
  EXPECT_EQ(
      refusal([&] { (void)Tensor::rand({2, t}, {.device = "CPU"}); }),
      "random numbers: the shape (2, T) varies (T in 1..64), and random numbers takes numbers "
      "alone");
  EXPECT_EQ(refusal([&] { (void)Tensor::empty({t}, {.device = "CPU"}); }),
            "empty: the shape (T,) varies (T in 1..64), and empty takes numbers alone");
  EXPECT_NE(refusal([&] { (void)x().split(2, 1); }).find("split: the shape (T,) varies"),
            std::string::npos);
  EXPECT_NE(refusal([&] { (void)x().narrow(1, 0, 2); }).find("narrow"), std::string::npos);
  EXPECT_NE(refusal([&] { (void)x().reshape({2, 64, 8}); }).find("(2, T, 8) has T*16 elements"),
            std::string::npos);
  EXPECT_NE(refusal([&] {
              (void)(x() + Tensor::zeros({64, 8}, {.device = "CPU"}));
            }).find("do not broadcast: T against 64"),
            std::string::npos);
}

TEST(Size, ShapesOfSymbolicTensors) {
  const Size t = variable("T", 1, 64), b = variable("B", 1, 8);
  const Tensor x = Tensor::zeros({b, t, 8}, {.device = "CPU"});
  EXPECT_EQ(x.numel(), b * t * 8);
  EXPECT_EQ(x.reshape({b, t, 2, 4}).transpose(1, 2).sizes(), (Sizes{b, 2, t, 4}));
  EXPECT_EQ(x.reshape({-1, 8}).sizes(), (Sizes{b * t, 8}));
  EXPECT_EQ(x.reshape({b, -1}).sizes(), (Sizes{b, t * 8}));
  EXPECT_EQ(x.flatten().sizes(), (Sizes{b * t * 8}));
  EXPECT_EQ(x.narrow(1, 0, t).sizes(), x.sizes());
  EXPECT_EQ(x.slice(1, 1).sizes(), (Sizes{b, t - 1, 8}));
  EXPECT_EQ(x.slice(1, {}, -1).sizes(), (Sizes{b, t - 1, 8}));
  EXPECT_EQ(x.select(1, -1).sizes(), (Sizes{b, 8}));
  EXPECT_EQ(x.pad({0, 0, 1, 2}).sizes(), (Sizes{b, t + 3, 8}));
  EXPECT_EQ(Tensor::cat({x, x}, 1).sizes(), (Sizes{b, t * 2, 8}));
  EXPECT_EQ(x.sum({1}).sizes(), (Sizes{b, 8}));
  EXPECT_EQ(x.matmul(x.transpose(1, 2)).sizes(), (Sizes{b, t, t}));
  EXPECT_EQ(x.repeat({1, 2, 1}).sizes(), (Sizes{b, t * 2, 8}));
}

}  // namespace
}  // namespace tuff
