// Fourier transforms of many lengths on every device against sums in F64, their errors, gradients
// and kernels; spectrograms and the way back; what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <random>

#include <tuff/fft.h>
#include <tuff/jit.h>
#include "engine/stats.h"
#include "tensor/devices.h"

namespace tuff::test {
namespace {

using fft::Norm;
using testing::HasSubstr;
using Complexes = std::vector<std::complex<double>>;
using Floats = std::vector<float>;

class Fft : public testing::TestWithParam<std::string> {
 protected:
  TensorOptions on(DType t = DType::F32) const { return {t, GetParam()}; }
  Floats drawn(size_t n) {
    std::normal_distribution<float> normal;
    Floats out(n);
    for (float& v : out) v = normal(random_);
    return out;
  }
  Tensor of(const Floats& v, const Sizes& sizes) const { return Tensor::from(v, sizes, on()); }
  std::mt19937 random_{7};
};
INSTANTIATE_TEST_SUITE_P(Devices, Fft, testing::ValuesIn(devices()),
                         [](const auto& info) { return named_by_device(info); });

Complexes complexes(const Floats& pairs) {
  Complexes out;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) out.emplace_back(pairs[i], pairs[i + 1]);
  return out;
}

// The sum itself, with roots of exact integer angles.
Complexes summed(const Complexes& x, int sign) {
  const size_t n = x.size();
  Complexes roots, out(n);
  for (size_t k = 0; k < n; k++)
    roots.push_back(std::polar(1.0, sign * 2 * std::numbers::pi * double(k) / double(n)));
  for (size_t k = 0; k < n; k++)
    for (size_t j = 0; j < n; j++) out[k] += x[j] * roots[j * k % n];
  return out;
}

// The root of the mean squared error over that of the mean square, in units of 2^-24.
double error_of(const Complexes& got, const Complexes& want) {
  double error = 0, size = 0;
  EXPECT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); i++) {
    error += std::norm(got[i] - want[i]);
    size += std::norm(want[i]);
  }
  return std::sqrt(error / size) * 0x1p24;
}

// A few units for each time that the length doubles; a convolution's three transforms are of twice
// to four times the length.
double allowed(int64_t n) { return 1 + 1.5 * std::log2(double(n)); }

const std::vector<int64_t> kLengths = {1, 2, 7, 64, 65, 97, 101, 243, 512};

TEST_P(Fft, LengthsAgainstSumsInF64) {
  for (const int64_t n : kLengths) {
    const Floats pairs = drawn(size_t(2 * n));
    const Complexes x = complexes(pairs);
    const Tensor t = of(pairs, {n, 2});
    const Complexes forward = complexes(fft::fft(t).to_vector<float>());
    EXPECT_LT(error_of(forward, summed(x, -1)), allowed(n)) << n;
    const Complexes back = complexes(fft::ifft(t, {}, 0, Norm::Forward).to_vector<float>());
    EXPECT_LT(error_of(back, summed(x, 1)), allowed(n)) << n;
  }
}

TEST_P(Fft, RealNumbersAndBack) {
  for (const int64_t n : {int64_t(1), int64_t(2), int64_t(63), int64_t(75), int64_t(202)}) {
    const Floats row = drawn(size_t(n));
    const Complexes x(row.begin(), row.end());
    const Tensor half = fft::rfft(of(row, {n}));
    ASSERT_EQ(half.sizes(), (Sizes{n / 2 + 1, 2}));
    Complexes want = summed(x, -1);
    want.resize(size_t(n / 2 + 1));
    EXPECT_LT(error_of(complexes(half.to_vector<float>()), want), allowed(n)) << n;
    const Floats again = fft::irfft(half, n).to_vector<float>();
    EXPECT_LT(error_of(Complexes(again.begin(), again.end()), x), 2 * allowed(n)) << n;
  }
}

TEST_P(Fft, ImaginaryPartsThatNoRealNumbersHaveAreNotLookedAt) {
  for (const int64_t n : {int64_t(6), int64_t(66), int64_t(75)}) {
    Floats half = drawn(size_t(2 * (n / 2 + 1)));
    const Floats with = fft::irfft(of(half, {n / 2 + 1, 2}), n).to_vector<float>();
    half[1] = 0;
    if (n % 2 == 0) half.back() = 0;
    EXPECT_EQ(fft::irfft(of(half, {n / 2 + 1, 2}), n).to_vector<float>(), with) << n;
  }
}

TEST_P(Fft, Norms) {
  const Tensor x = of(drawn(2 * 12), {12, 2});
  const Floats plain = fft::fft(x).to_vector<float>();
  const auto close = [&](const Tensor& t, double factor) {
    const Floats got = t.to_vector<float>();
    for (size_t i = 0; i < got.size(); i++) EXPECT_NEAR(got[i], plain[i] * factor, 1e-5) << i;
  };
  close(fft::fft(x, {}, -1, Norm::Ortho), 1 / std::sqrt(12.0));
  close(fft::fft(x, {}, -1, Norm::Forward), 1 / 12.0);
  for (const Norm norm : {Norm::Backward, Norm::Ortho, Norm::Forward}) {
    const Tensor there = fft::fft(x, {}, -1, norm);
    EXPECT_LT((fft::ifft(there, {}, -1, norm) - x).abs().max().item(), 1e-6);
  }
}

// d(sum of w * f(x)) against differences, of lengths of every kind.
TEST_P(Fft, GradientsAgainstDifferences) {
  const auto check = [&](const Sizes& sizes, const auto& f) {
    size_t n = 1;
    for (const Size& s : sizes) n *= size_t(int64_t(s));
    const Floats row = drawn(n), direction = drawn(n);
    Tensor x = of(row, sizes).set_requires_grad();
    const Tensor out = f(x), w = of(drawn(size_t(int64_t(out.numel()))), out.sizes());
    const Tensor gradient = (out * w).sum().gradient({x})[0];
    const double along = (gradient * of(direction, sizes)).sum().item();
    // They are linear: the difference is exact but for its rounding.
    const double moved = (f(of(direction, sizes)) * w).sum().item();
    EXPECT_NEAR(along, moved, 2e-5 * double(n) + 1e-4) << n;
  };
  for (const int64_t n : {int64_t(6), int64_t(72), int64_t(101)}) {
    check({n, 2}, [](const Tensor& x) { return fft::fft(x); });
    check({n}, [](const Tensor& x) { return fft::rfft(x); });
    check({n / 2 + 1, 2}, [n](const Tensor& x) { return fft::irfft(x, n); });
  }
  check({40}, [](const Tensor& x) { return fft::stft(x, 8, {.hop_length = 3}); });
  check({5, 6, 2}, [](const Tensor& x) { return fft::istft(x, 8, {.hop_length = 3}); });
}

TEST_P(Fft, GradientsOfGradients) {
  Tensor x = of(drawn(2 * 72), {72, 2}).set_requires_grad();
  const Tensor power = fft::fft(x).square().sum();  // Parseval: n times the sum of squares
  const Tensor first = power.gradient({x})[0];
  const Tensor second = first.sum().gradient({x})[0];
  EXPECT_LT((first - 2 * 72 * x).abs().max().item(), 1e-3);
  EXPECT_LT((second - 2.0 * 72).abs().max().item(), 1e-2);
}

TEST_P(Fft, StagesAreKernels) {
  const auto kernels = [&](const auto& f, const Sizes& sizes) {
    Tensor x = Tensor::ones(sizes, on());
    x.realize();
    f(x).realize();  // tables are uploaded
    const uint64_t before = engine::counters().kernels;
    f(x).realize();
    return engine::counters().kernels - before;
  };
  const auto forward = [](const Tensor& x) { return fft::fft(x); };
  EXPECT_EQ(kernels(forward, {1, 64, 2}), 1u);
  EXPECT_EQ(kernels(forward, {1, 1024, 2}), 3u);
  EXPECT_EQ(kernels(forward, {1, 4096, 2}), 3u);
  EXPECT_EQ(kernels([](const Tensor& x) { return fft::rfft(x); }, {4096}), 4u);
}

TEST_P(Fft, ReplaysInAJit) {
  Jit step([](const std::vector<Tensor>& x) {
    return std::vector<Tensor>{fft::irfft(fft::rfft(x[0]), x[0].size(-1))};
  });
  for (int i = 0; i < 4; i++) {
    const Floats row = drawn(202);
    const Tensor x = of(row, {202});
    EXPECT_LT((step({x})[0] - x).abs().max().item(), 1e-5);
  }
}

TEST_P(Fft, DtypesAreRoundedOnce) {
  const Floats pairs = drawn(2 * 72);
  const Tensor x = of(pairs, {72, 2}).cast(DType::F16);
  EXPECT_EQ(fft::fft(x).dtype(), DType::F16);
  const Tensor wide = fft::fft(x.cast(DType::F32)).cast(DType::F16);
  EXPECT_TRUE(fft::fft(x).equal(wide));
  EXPECT_EQ(fft::fft(Tensor::ones({5, 2}, on(DType::I32))).dtype(), DType::F32);
}

TEST_P(Fft, FramesOverlapBackToTheSignal) {
  const Floats row = drawn(2 * 90);
  const Tensor x = of(row, {2, 90});
  const fft::StftOptions options{.hop_length = 4, .win_length = 12,
                                 .window = fft::hann_window(12, true, on()), .normalized = true};
  const Tensor spectra = fft::stft(x, 16, options);
  EXPECT_EQ(spectra.sizes(), (Sizes{2, 9, 23, 2}));
  const Tensor back = fft::istft(spectra, 16, options, 90);
  EXPECT_LT((back.narrow(1, 0, 88) - x.narrow(1, 0, 88)).abs().max().item(), 2e-6);
  fft::StftOptions both = options;
  both.onesided = false;
  const Tensor all = fft::stft(x, 16, both);
  EXPECT_LT((all.narrow(1, 0, 9) - spectra).abs().max().item(), 1e-6);
  EXPECT_LT((fft::istft(all, 16, both, 88) - back.narrow(1, 0, 88)).abs().max().item(), 2e-6);
}

TEST_P(Fft, WindowsAndFrequencies) {
  const auto near = [](const Tensor& t, const Floats& want) {
    EXPECT_THAT(t.to_vector<float>(), testing::Pointwise(testing::FloatNear(2e-7f), want));
  };
  near(fft::hann_window(4, true, on()), {0, 0.5, 1, 0.5});
  near(fft::hann_window(3, false, on()), {0, 1, 0});
  near(fft::hamming_window(2, true, 0.54, 0.46, on()), {0.08f, 1});
  near(fft::blackman_window(4, true, on()), {0, 0.34f, 1, 0.34f});
  near(fft::bartlett_window(5, false, on()), {0, 0.5, 1, 0.5, 0});
  near(fft::hann_window(1, true, on()), {1});
  near(fft::fftfreq(5, 0.5, on()), {0, 0.4f, 0.8f, -0.8f, -0.4f});
  near(fft::rfftfreq(4, 1, on()), {0, 0.25, 0.5});
  near(fft::ifftshift(fft::fftshift(fft::fftfreq(5, 1, on()))), {0, 0.2f, 0.4f, -0.4f, -0.2f});
}

template <class E, class F>
void refused(const char* text, F&& f) {
  try {
    f();
    ADD_FAILURE() << "nothing thrown: " << text;
  } catch (const E& e) {
    EXPECT_THAT(e.what(), HasSubstr(text));
  }
}

TEST(FftErrors, NameTheValue) {
  const auto floats = [](const Sizes& s) { return Tensor::empty(s, {.device = "CPU"}); };
  refused<ShapeError>("fft: (3, 4) holds no complex numbers", [&] { fft::fft(floats({3, 4})); });
  refused<ShapeError>("one complex number has no axis", [&] { fft::fft(floats({2})); });
  refused<ShapeError>("a length of 0 for axis 0 of (3, 2)", [&] { fft::fft(floats({3, 2}), 0); });
  refused<IndexError>("ifft: axis 1", [&] { fft::ifft(floats({3, 2}), {}, 1); });
  refused<IndexError>("rfft: axis 2", [&] { fft::rfft(floats({3, 2}), {}, 2); });
  refused<ShapeError>("irfft: a length of 0", [&] { fft::irfft(floats({1, 2})); });
  refused<InvalidArgument>("fftn: 1 lengths for 2 axes",
                           [&] { fft::fftn(floats({3, 4, 2}), {3}, {0, 1}); });
  refused<InvalidArgument>("axis 1 occurs twice",
                           [&] { fft::fft2(floats({3, 4, 2}), {}, {1, -1}); });
  refused<IndexError>("rfft2: axis -2", [&] { fft::rfft2(floats({3})); });
  refused<ShapeError>("multiply: (3,)", [&] { fft::multiply(floats({3}), floats({2})); });
  refused<ShapeError>("conj: ()", [&] { fft::conj(floats({})); });
  refused<InvalidArgument>("fftfreq: 0 points", [&] { fft::fftfreq(0); });
  refused<InvalidArgument>("int32 is no floating-point type",
                           [&] { fft::hann_window(3, true, {DType::I32}); });
  refused<InvalidArgument>("bartlett_window: -1 elements", [&] { fft::bartlett_window(-1); });
  refused<ShapeError>("too short for frames of 16", [&] { fft::stft(floats({8}), 16); });
  refused<ShapeError>("neither (L) nor (B, L)", [&] { fft::stft(floats({2, 2, 8}), 4); });
  refused<InvalidArgument>("win_length 9 is above n_fft 8",
                           [&] { fft::stft(floats({20}), 8, {.win_length = 9}); });
  refused<ShapeError>("window (7,) for a win_length of 8",
                      [&] { fft::stft(floats({20}), 8, {.window = floats({7})}); });
  refused<ShapeError>("istft: (4, 3, 2) is not (..., 5, frames, 2)",
                      [&] { fft::istft(floats({4, 3, 2}), 8); });
}

}  // namespace
}  // namespace tuff::test
