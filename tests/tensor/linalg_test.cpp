// Linear algebra by what defines it: products that give the matrix back, orthonormal columns, on
// every device of this machine; what singular matrices give; gradients against differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <tuff/jit.h>
#include <tuff/linalg.h>
#include "tensor/devices.h"

namespace tuff::test {
namespace {

using Doubles = std::vector<double>;

// Numbers of a fixed pattern without structure, in -1..1.
Doubles pattern(int64_t count, uint64_t seed) {
  Doubles out;
  uint64_t state = seed * 0x9E3779B97F4A7C15 + 1;
  for (int64_t i = 0; i < count; i++) {
    state = state * 6364136223846793005 + 1442695040888963407;
    out.push_back(double(state >> 11) * 0x1p-52 - 1);
  }
  return out;
}

struct Place {
  std::string device;
  DType dtype;
  double tolerance() const { return dtype == DType::F64 ? 1e-12 : 4e-5; }
  Tensor made(const Sizes& sizes, uint64_t seed) const {
    int64_t count = 1;
    for (const Size& s : sizes) count *= int64_t(s);
    return Tensor::from(pattern(count, seed), sizes, {.device = "CPU"}).cast(dtype).to(device);
  }
  Tensor positive(const Sizes& sizes, uint64_t seed) const {
    const Tensor x = made(sizes, seed);
    return x.matmul(x.transpose(-2, -1)) + Tensor::eye(x.size(-1), {dtype, device});
  }
};

double largest(const Tensor& x) {
  double out = 0;
  for (const double v : x.to("CPU").cast(DType::F64).to_vector<double>())
    out = std::isnan(v) ? v : std::max(out, std::abs(v));
  return out;
}

void expect_close(const Tensor& a, const Tensor& b, const Place& p, const char* what) {
  EXPECT_LE(largest(a - b) / std::max(1.0, largest(b)), p.tolerance()) << what;
}
void expect_orthonormal(const Tensor& columns, const Place& p, const char* what) {
  const Tensor product = columns.transpose(-2, -1).matmul(columns);
  expect_close(product, Tensor::eye(columns.size(-1), {p.dtype, p.device}).expand(product.sizes()),
               p, what);
}

class Linalg : public testing::TestWithParam<std::string> {
 protected:
  // Blocks of steps in F32, batches of small matrices in F64.
  struct Case {
    Place place;
    Sizes sizes;
  };
  std::vector<Case> cases(const Sizes& of_f32, const Sizes& of_f64) const {
    std::vector<Case> out{{{GetParam(), DType::F32}, of_f32}};
    if (test::computes(GetParam(), DType::F64)) out.push_back({{GetParam(), DType::F64}, of_f64});
    return out;
  }
};

TEST_P(Linalg, CholeskyInBlocks) {
  for (const auto& [p, s] : cases({35, 35}, {2, 5, 5})) {
    const Tensor a = p.positive(s, 1);
    const Tensor l = linalg::cholesky(a), u = linalg::cholesky(a.tril(), false);
    expect_close(l.matmul(l.transpose(-2, -1)), a, p, "product");
    EXPECT_EQ(largest(l.triu(1)), 0);
    EXPECT_EQ(largest(l - u), 0) << "the other triangle is not read";
    expect_close(linalg::cholesky(a, true), l.transpose(-2, -1), p, "upper");
  }
}

TEST_P(Linalg, EquationsInBlocks) {
  for (const auto& [p, s] : cases({35, 35}, {2, 5, 5})) {
    const int64_t n = s.back();
    const Tensor a = p.made(s, 2) + Tensor::eye(n, {p.dtype, p.device}) * 3;
    const Tensor b = p.made({n, 2}, 3);
    const Tensor x = linalg::solve(a, b);
    expect_close(a.matmul(x), b.expand(x.sizes()), p, "solve");
    const Tensor lower = linalg::solve_triangular(a, b, false);
    expect_close(a.tril().matmul(lower), b.expand(x.sizes()), p, "lower");
    const Tensor upper = linalg::solve_triangular(a, b.transpose(0, 1), true, false, true);
    const Tensor unit = a.triu(1) + Tensor::eye(n, {p.dtype, p.device});
    expect_close(upper.matmul(unit), b.transpose(0, 1).expand(upper.sizes()), p, "unit upper");
  }
}

TEST_P(Linalg, PivotsAreTheLargest) {
  const Place p{GetParam(), DType::F32};
  const Tensor a = Tensor::from(std::vector<float>{1e-9f, 1, 1, 1}, {2, 2}, {.device = "CPU"})
                       .to(p.device);
  const Tensor b = Tensor::from(std::vector<float>{1, 2}, {2}, {.device = "CPU"}).to(p.device);
  expect_close(linalg::solve(a, b), Tensor::ones({2}, {p.dtype, p.device}), p, "solution");
  const Tensor swapped = Tensor::from(std::vector<float>{0, 1, 0, 0, 0, 2, 3, 0, 0}, {3, 3},
                                      {.device = "CPU"}).to(p.device);
  EXPECT_FLOAT_EQ(float(linalg::det(swapped).item()), 6);
}

TEST_P(Linalg, QrInBlocks) {
  for (const auto& [p, s] : cases({40, 34}, {2, 3, 5})) {
    const Tensor a = p.made(s, 4);
    for (const char* mode : {"reduced", "complete"}) {
      const auto [q, r] = linalg::qr(a, mode);
      expect_close(q.matmul(r), a, p, mode);
      expect_orthonormal(q, p, mode);
      EXPECT_EQ(largest(r.tril(-1)), 0);
    }
  }
}

TEST_P(Linalg, Eigenvalues) {
  for (const auto& [p, s] : cases({7, 7}, {2, 4, 4})) {
    const Tensor x = p.made(s, 5), a = x + x.transpose(-2, -1);
    const auto [values, vectors] = linalg::eigh(a);
    expect_orthonormal(vectors, p, "vectors");
    expect_close(a.matmul(vectors), vectors * values.unsqueeze(-2), p, "a V = V diag");
    EXPECT_EQ(largest(values - values.sort().first), 0) << "ascending";
  }
}

TEST_P(Linalg, SingularValues) {
  for (const auto& [p, s] : cases({4, 7}, {2, 5, 3})) {
    const Tensor a = p.made(s, 6);
    const int64_t k = std::min(int64_t(a.size(-2)), int64_t(a.size(-1)));
    for (const bool full : {false, true}) {
      const auto [u, v, vh] = linalg::svd(a, full);
      expect_orthonormal(u, p, "U");
      expect_orthonormal(vh.transpose(-2, -1), p, "V");
      const Tensor product = (u.narrow(-1, 0, k) * v.unsqueeze(-2)).matmul(vh.narrow(-2, 0, k));
      expect_close(product, a, p, "product");
      EXPECT_EQ(largest(v - v.sort(-1, true).first), 0) << "descending";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Linalg, testing::ValuesIn(devices()),
                         [](const auto& info) { return named_by_device(info); });

const Place kHost{"CPU", DType::F64};
const TensorOptions kDoubles{DType::F64, "CPU"};

TEST(LinalgOfSpecialMatrices, ClustersAndGradedSpectra) {
  constexpr int64_t n = 10;
  const Tensor q = linalg::qr(kHost.made({n, n}, 7)).first;
  Doubles clusters, graded;
  for (int64_t i = 0; i < n; i++) {
    clusters.push_back(i < n / 2 ? 1 : 1.001);
    graded.push_back(std::pow(10.0, -double(i)));
  }
  for (const Doubles& values : {clusters, graded}) {
    const Tensor a = (q * Tensor::from(values, {n}, {.device = "CPU"})).matmul(q.T());
    const auto [found, vectors] = linalg::eigh(a);
    Doubles want = values;
    std::sort(want.begin(), want.end());
    expect_close(found, Tensor::from(want, {n}, {.device = "CPU"}), kHost, "values");
    expect_orthonormal(vectors, kHost, "vectors");
    expect_close((vectors * found).matmul(vectors.T()), a, kHost, "product");
    std::reverse(want.begin(), want.end());
    expect_close(linalg::svdvals(a), Tensor::from(want, {n}, {.device = "CPU"}), kHost, "svd");
  }
}

TEST(LinalgOfSpecialMatrices, LessThanFullRank) {
  const Tensor column = kHost.made({5, 1}, 8), a = column.matmul(kHost.made({1, 4}, 9));
  const auto [u, s, vh] = linalg::svd(a);
  expect_orthonormal(u, kHost, "U");
  expect_orthonormal(vh.T(), kHost, "V");
  EXPECT_LE(largest(s.narrow(0, 1, 3)), 1e-14);
  EXPECT_EQ(linalg::matrix_rank(a).item(), 1);
  const Tensor p = linalg::pinv(a);
  expect_close(a.matmul(p).matmul(a), a, kHost, "A P A");
  expect_close(p.matmul(a).matmul(p), p, kHost, "P A P");
  const auto [zero_u, zero_s, zero_vh] = linalg::svd(Tensor::zeros({3, 3}, kDoubles));
  EXPECT_EQ(largest(zero_s), 0);
  expect_orthonormal(zero_u, kHost, "U of zeros");
}

TEST(LinalgOfSpecialMatrices, SingularOnesGiveWhatArithmeticGives) {
  const Tensor a = Tensor::from(Doubles{1, 2, 2, 4}, {2, 2}, {.device = "CPU"});
  EXPECT_EQ(linalg::det(a).item(), 0);
  const auto [sign, logarithm] = linalg::slogdet(a);
  EXPECT_EQ(sign.item(), 0);
  EXPECT_EQ(logarithm.item(), -std::numeric_limits<double>::infinity());
  EXPECT_FALSE(std::isfinite(largest(linalg::inv(a))));
  const Tensor indefinite = Tensor::from(Doubles{1, 2, 2, 1}, {2, 2}, {.device = "CPU"});
  const Doubles l = linalg::cholesky(indefinite).to_vector<double>();
  EXPECT_EQ(l[0], 1);
  EXPECT_TRUE(std::isnan(l[3]));
}

// Against minors: of rank n - 1, n - 2 and less, and with pivots of 0 above each other.
TEST(LinalgOfSpecialMatrices, CofactorsAreTheGradientOfDeterminants) {
  const auto minor_of = [](const Tensor& a, int64_t i, int64_t j) {
    const int64_t n = a.size(0);
    const auto without = [&](const Tensor& x, int64_t axis, int64_t at) {
      return Tensor::cat({x.narrow(axis, 0, at), x.narrow(axis, at + 1, n - at - 1)}, axis);
    };
    return without(without(a, 0, i), 1, j).det().item() * ((i + j) % 2 ? -1 : 1);
  };
  const std::vector<Doubles> all = {{1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 3, 2, 4, 6, 3, 6, 9},
                                    {0, 1, 0, 0, 0, 1, 0, 0, 0}, {0, 0, 0, 0, 0, 0, 0, 0, 0},
                                    {2, 1, 0, 1, 3, 1, 0, 1, 4}};
  for (const Doubles& values : all) {
    const Tensor a = Tensor::from(values, {3, 3}, {.device = "CPU"});
    const Doubles got = a.det().gradient({a})[0].to_vector<double>();
    for (int64_t k = 0; k < 9; k++)
      EXPECT_NEAR(got[size_t(k)], minor_of(a, k / 3, k % 3), 1e-9) << values[1] << " at " << k;
  }
  // As many of them as F32 has room for, and the gradient of a number.
  const Tensor shift = Tensor::eye(9).narrow(0, 1, 8).narrow(1, 0, 8).contiguous();
  EXPECT_LT(largest(shift.det().gradient({shift})[0].abs().sum() - 1), 1e-3);
  const Tensor zero = Tensor::zeros({1, 1}).contiguous();
  EXPECT_EQ(zero.det().gradient({zero})[0].item(), 1);
}

TEST(LinalgOfSpecialMatrices, LeastSquaresOfAnyRank) {
  const Place p{"CPU", DType::F64};
  for (const auto& [m, n] : {std::pair{7, 4}, {4, 7}, {5, 5}}) {
    const Tensor a = p.made({m, 2}, 1).matmul(p.made({2, n}, 2)), b = p.made({m, 3}, 3);
    const auto [x, left] = linalg::lstsq(a, b, 1e-10);
    // What is left is at right angles to the columns, the solution to what a takes to 0.
    expect_close(a.T().matmul(a.matmul(x) - b), Tensor::zeros({n, 3}), p, "normal equations");
    expect_close(a.pinverse(1e-10).matmul(a).matmul(x), x, p, "smallest");
    expect_close(linalg::lstsq(a, b, {}, "gelsd").solution, x, p, "default rcond");
    EXPECT_EQ(left.numel(), m > n ? 3 : 0);
  }
  const Tensor full = p.made({6, 3}, 4), b = p.made({6, 2}, 5);
  expect_close(linalg::lstsq(full, b, 1e-12).solution, linalg::lstsq(full, b).solution, p, "full");
}

TEST(LinalgOfSpecialMatrices, OfOneElement) {
  const Tensor a = Tensor::full({1, 1}, 4, kDoubles);
  EXPECT_EQ(linalg::cholesky(a).item(), 2);
  EXPECT_EQ(linalg::inv(a).item(), 0.25);
  EXPECT_EQ(linalg::eigh(a).first.item(), 4);
  EXPECT_EQ(linalg::qr(a).second.item(), 4);
  EXPECT_EQ(linalg::svdvals(-a).item(), 4);
}

TEST(LinalgOfSpecialMatrices, NoElements) {
  const Tensor none = Tensor::zeros({0, 0}, kDoubles), batch = Tensor::zeros({0, 3, 3}, kDoubles);
  EXPECT_EQ(linalg::det(none).item(), 1);
  for (const Tensor& x : {none, batch}) {
    EXPECT_EQ(linalg::cholesky(x).sizes(), x.sizes());
    EXPECT_EQ(linalg::inv(x).sizes(), x.sizes());
    EXPECT_EQ(linalg::eigh(x).second.sizes(), x.sizes());
    EXPECT_EQ(std::get<0>(linalg::svd(x)).sizes(), x.sizes());
  }
  EXPECT_EQ(linalg::qr(Tensor::zeros({3, 0}, kDoubles), "complete").first.sizes(), (Sizes{3, 3}));
}

TEST(LinalgOfSpecialMatrices, LargeAndSmallElements) {
  const Place p{"CPU", DType::F32};
  for (const double scale : {1e30, 1e-30}) {
    const Tensor x = p.made({4, 4}, 10), a = (x + x.T()) * scale;
    const auto [values, vectors] = linalg::eigh(a);
    expect_close((vectors * (values / scale)).matmul(vectors.T()), x + x.T(), p, "eigh");
    const auto [q, r] = linalg::qr(a);
    expect_close(q.matmul(r / scale), x + x.T(), p, "qr");
  }
}

TEST(LinalgShapes, BatchesBroadcastAndVectorsAreSolved) {
  const Tensor a = kHost.positive({3, 1, 4, 4}, 11), b = kHost.made({2, 4, 2}, 12);
  EXPECT_EQ(linalg::solve(a, b).sizes(), (Sizes{3, 2, 4, 2}));
  EXPECT_EQ(linalg::solve(a, kHost.made({3, 1, 4}, 13)).sizes(), (Sizes{3, 1, 4}));
  EXPECT_EQ(linalg::solve(a, kHost.made({4}, 13)).sizes(), (Sizes{3, 1, 4}));
  EXPECT_EQ(linalg::lstsq(kHost.made({5, 3}, 1), kHost.made({5, 2}, 2)).residuals.sizes(),
            (Sizes{2}));
}

TEST(LinalgShapes, NormsAndChains) {
  const Tensor a = kHost.positive({3, 3}, 14);
  const Tensor s = linalg::svdvals(a);
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_NEAR(linalg::matrix_norm(a, 2).item(), s.max().item(), 1e-12);
  EXPECT_NEAR(linalg::matrix_norm(a, "nuc").item(), s.sum().item(), 1e-12);
  EXPECT_NEAR(linalg::matrix_norm(a, "fro").item(), linalg::vector_norm(a).item(), 1e-12);
  EXPECT_NEAR(linalg::norm(a, inf).item(), a.abs().sum({1}).max().item(), 1e-12);
  EXPECT_NEAR(linalg::cond(a).item(), (s.max() / s.min()).item(), 1e-9);
  EXPECT_NEAR(linalg::cond(a, 1).item(),
              (linalg::matrix_norm(a, 1) * linalg::matrix_norm(linalg::inv(a), 1)).item(), 1e-9);
  const Tensor x = kHost.made({2, 5}, 1), y = kHost.made({5, 3}, 2), z = kHost.made({3}, 3);
  expect_close(linalg::multi_dot({x, y, z}), x.matmul(y).matmul(z), kHost, "multi_dot");
  expect_close(linalg::matrix_power(a, -2), linalg::inv(a.matmul(a)), kHost, "power");
}

TEST(LinalgInAJit, ReplaysWithOtherValues) {
  Jit solve([](const std::vector<Tensor>& x) {
    return std::vector<Tensor>{linalg::solve(x[0], x[1])};
  });
  for (uint64_t i = 0; i < 4; i++) {
    const Tensor a = kHost.positive({4, 4}, 20 + i).realize(),
                 b = kHost.made({4, 1}, 30 + i).contiguous().realize();
    expect_close(a.matmul(solve({a, b})[0]), b, kHost, "replay");
  }
}

// ---- gradients against central differences

using Loss = Tensor (*)(const Tensor&);

Tensor weighted(const Tensor& x) {
  return (x * Tensor::from(pattern(x.numel(), 40), x.sizes(), {.device = "CPU"})).sum();
}
Tensor symmetric(const Tensor& x) { return (x + x.transpose(-2, -1)) * 0.5; }

void check_gradient(const char* name, Loss loss, const Tensor& at) {
  const Doubles x = at.to_vector<double>();
  const auto moved = [&](size_t i, double step) {
    Doubles there = x;
    there[i] += step;
    return Tensor::from(there, at.sizes(), {.device = "CPU"});
  };
  const Tensor leaf = moved(0, 0);
  const Tensor gradient = loss(leaf).gradient({leaf})[0];
  const Tensor second = weighted(gradient).gradient({leaf})[0];
  const Doubles got = gradient.to_vector<double>(), twice = second.to_vector<double>();
  constexpr double h = 1e-5;
  const auto first_order = [&](const Tensor& t) {
    return weighted(loss(t).gradient({t})[0]).item();
  };
  for (const size_t i : {size_t(0), size_t(1), x.size() - 2}) {
    const double want = (loss(moved(i, h)).item() - loss(moved(i, -h)).item()) / (2 * h);
    EXPECT_NEAR(got[i], want, 1e-7 * std::max(1.0, std::abs(want))) << name << " " << i;
    const double again = (first_order(moved(i, h)) - first_order(moved(i, -h))) / (2 * h);
    EXPECT_NEAR(twice[i], again, 1e-6 * std::max(1.0, std::abs(again))) << name << " twice " << i;
  }
}

TEST(LinalgGradients, FirstAndSecond) {
  const Tensor a = kHost.positive({3, 3}, 41), wide = kHost.made({2, 3}, 42),
               tall = kHost.made({3, 2}, 43);
  check_gradient("cholesky", [](const Tensor& x) { return weighted(symmetric(x).cholesky()); }, a);
  check_gradient("inverse", [](const Tensor& x) { return weighted(x.inverse()); }, a);
  check_gradient("det", [](const Tensor& x) { return x.det(); }, a);
  check_gradient("logdet", [](const Tensor& x) { return x.logdet(); }, a);
  check_gradient("solve", [](const Tensor& x) { return weighted(linalg::solve(x, x * x)); }, a);
  check_gradient("triangular", [](const Tensor& x) {
    return weighted(linalg::solve_triangular(x, x * x, true, false));
  }, a);
  check_gradient("pinverse", [](const Tensor& x) { return weighted(linalg::pinv(x)); }, wide);
  check_gradient("lstsq", [](const Tensor& x) {
    return weighted(linalg::lstsq(x, x * x).solution);
  }, tall);
}

TEST(LinalgGradients, OfFactorsWhoseSignsDoNotMatter) {
  const Tensor a = kHost.positive({3, 3}, 44), wide = kHost.made({2, 3}, 45),
               tall = kHost.made({3, 2}, 46);
  const Loss of_qr = [](const Tensor& x) {
    const auto [q, r] = x.qr();
    return weighted(q) + weighted(r.square());
  };
  for (const Tensor& x : {a, wide, tall}) check_gradient("qr", of_qr, x);
  check_gradient("eigh", [](const Tensor& x) {
    const auto [values, vectors] = linalg::eigh(symmetric(x));
    return weighted(values.square()) + weighted(vectors.square());
  }, a);
  const Loss of_svd = [](const Tensor& x) {
    const auto [u, s, vh] = x.svd(false);
    return weighted(u.square()) + weighted(s.square()) + weighted(vh.square());
  };
  for (const Tensor& x : {wide, tall}) check_gradient("svd", of_svd, x);
}

}  // namespace
}  // namespace tuff::test
