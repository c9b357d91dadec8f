// Windows over planes against loops: kernels, strides and dilations with shared elements or none,
// and the gradient of their maximum.
#include <gtest/gtest.h>

#include <utility>

#include <tuff/tensor.h>

#include "tensor/devices.h"

namespace tuff::test {
namespace {

constexpr int64_t kHeight = 7, kWidth = 9;

struct Windows {
  int64_t k, stride, dilation, out_h, out_w;
  int64_t at(int64_t oh, int64_t ow, int64_t kh, int64_t kw) const {
    return (oh * stride + kh * dilation) * kWidth + ow * stride + kw * dilation;
  }
  // Where the largest element of a window is.
  int64_t largest(const std::vector<float>& x, int64_t oh, int64_t ow) const {
    int64_t best = at(oh, ow, 0, 0);
    for (int64_t kh = 0; kh < k; kh++) {
      for (int64_t kw = 0; kw < k; kw++) {
        if (x[size_t(at(oh, ow, kh, kw))] > x[size_t(best)]) best = at(oh, ow, kh, kw);
      }
    }
    return best;
  }
};

// All different, in no order.
std::vector<float> plane() {
  std::vector<float> x;
  for (int64_t i = 0; i < kHeight * kWidth; i++) x.push_back(float(i * 37 % 101));
  return x;
}

void expect_maxima(const Windows& w) {
  SCOPED_TRACE(testing::Message() << w.k << " / " << w.stride << " / " << w.dilation);
  const std::vector<float> x = plane();
  std::vector<float> maxima, gradient(x.size(), 0);
  for (int64_t oh = 0; oh < w.out_h; oh++) {
    for (int64_t ow = 0; ow < w.out_w; ow++) {
      const int64_t at = w.largest(x, oh, ow);
      maxima.push_back(x[size_t(at)]);
      gradient[size_t(at)] += float(oh * w.out_w + ow + 1);
    }
  }
  Tensor in = Tensor::from(x, {1, 1, kHeight, kWidth}, {.device = "CPU"});
  in.set_requires_grad();
  const Tensor out = in.max_pool2d(w.k, w.stride, 0, w.dilation);
  const Tensor weights = Tensor::arange(1, double(w.out_h * w.out_w + 1), 1, {.device = "CPU"});
  (out.flatten() * weights).sum().backward();
  EXPECT_EQ(in.grad().to_vector<float>(), gradient);
  EXPECT_EQ(out.to_vector<float>(), maxima);
}

TEST(Windows, AreThoseOfLoops) {
  int apart = 0;
  for (const int64_t k : {1, 2, 3}) {
    for (const int64_t dilation : {1, 2}) {
      for (const int64_t stride : {2, 3, 5}) {
        const int64_t reach = dilation * (k - 1) + 1;
        apart += reach <= stride;
        expect_maxima(
            {k, stride, dilation, (kHeight - reach) / stride + 1, (kWidth - reach) / stride + 1});
      }
    }
  }
  EXPECT_EQ(apart, 14) << "windows that share no element";
}

// A convolution with its gradients by loops: what lies between two windows' steps, images that the last
// window does not reach, kernels that the stride does not divide.
struct Convolution {
  int64_t n, c, o, h, w, k, stride, padding;
  int64_t out(int64_t extent) const { return (extent + 2 * padding - k) / stride + 1; }
  template <class F>
  void each(F&& f) const {  // f(image element, weight element, result element)
    const int64_t oh = out(h), ow = out(w);
    for (int64_t i = 0; i < n * o * oh * ow * c * k * k; i++) {
      int64_t at = i;
      const auto digit = [&](int64_t size) { return std::exchange(at, at / size) % size; };
      const int64_t kx = digit(k), ky = digit(k), ic = digit(c), x = digit(ow), y = digit(oh), oc = digit(o);
      const int64_t iy = y * stride + ky - padding, ix = x * stride + kx - padding;
      if (iy < 0 || iy >= h || ix < 0 || ix >= w) continue;
      f(((at * c + ic) * h + iy) * w + ix, ((oc * c + ic) * k + ky) * k + kx,
        ((at * o + oc) * oh + y) * ow + x);
    }
  }
};

std::vector<float> small_numbers(int64_t count, int seed) {
  std::vector<float> v;
  for (int64_t i = 0; i < count; i++) v.push_back(float((i * 29 + seed) % 17 - 8) / 8);
  return v;
}

void expect_convolution(const Convolution& d) {
  SCOPED_TRACE(testing::Message() << d.n << "x" << d.c << "x" << d.h << "x" << d.w << ", " << d.o << " of " << d.k
                                  << ", stride " << d.stride << ", padding " << d.padding);
  const int64_t oh = d.out(d.h), ow = d.out(d.w);
  const std::vector<float> x = small_numbers(d.n * d.c * d.h * d.w, 1), w = small_numbers(d.o * d.c * d.k * d.k, 5),
                           g = small_numbers(d.n * d.o * oh * ow, 3);
  std::vector<float> y(g.size()), dx(x.size()), dw(w.size());
  d.each([&](int64_t i, int64_t j, int64_t r) {
    y[size_t(r)] += x[size_t(i)] * w[size_t(j)];
    dx[size_t(i)] += g[size_t(r)] * w[size_t(j)];
    dw[size_t(j)] += g[size_t(r)] * x[size_t(i)];
  });
  for (const std::string& device : devices()) {
    Tensor image = Tensor::from(x, {d.n, d.c, d.h, d.w}, {.device = device}),
           weight = Tensor::from(w, {d.o, d.c, d.k, d.k}, {.device = device});
    image.set_requires_grad();
    weight.set_requires_grad();
    const Tensor out = image.conv2d(weight, {}, d.stride, d.padding);
    (out * Tensor::from(g, {d.n, d.o, oh, ow}, {.device = device})).sum().backward();
    // Numbers of few bits: every order of these sums is exact.
    EXPECT_EQ(out.to_vector<float>(), y) << device;
    EXPECT_EQ(image.grad().to_vector<float>(), dx) << device;
    EXPECT_EQ(weight.grad().to_vector<float>(), dw) << device;
  }
}

TEST(Windows, StridedConvolutionsAndTheirGradientsAreThoseOfLoops) {
  for (const int64_t k : {2, 3, 4, 5}) {
    for (const int64_t stride : {2, 3, 4}) {
      for (const int64_t padding : {0, 1})
        expect_convolution({2, 3, 4, 9, 16 + k % 2, k, stride, padding});
    }
  }
  expect_convolution({2, 16, 32, 32, 32, 3, 2, 1});  // tiles and vectors, as in a ResNet
  expect_convolution({4, 8, 16, 33, 35, 3, 2, 1});
}

// Not the same numbers alone, but the same kernels: every bit.
TEST(Windows, TransposedConvolutionsAreTheGradientsOfConvolutions) {
  for (const std::string& device : devices()) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t groups : {1, 2}) {
        SCOPED_TRACE(testing::Message() << device << ", stride " << stride << ", groups " << groups);
        const TensorOptions on{.device = device};
        const int64_t out = 4 * stride + 3 - 2;  // of 5 pixels, padding 1
        Tensor image = Tensor::zeros({2, 8, out, out}, on).realize();
        image.set_requires_grad();
        const Tensor weight = Tensor::randn({6, 8 / groups, 3, 3}, on).realize();
        const Tensor g = Tensor::randn({2, 6, 5, 5}, on).realize();
        image.conv2d(weight, {}, stride, 1, 1, groups).backward(g);
        const Tensor y = g.conv_transpose2d(weight, {}, stride, 1, 0, groups);
        EXPECT_EQ(y.to_vector<float>(), image.grad().to_vector<float>());
        const NoGradGuard without;
        EXPECT_EQ(g.conv_transpose2d(weight, {}, stride, 1, 0, groups).to_vector<float>(),
                  y.to_vector<float>());
      }
    }
  }
}

}  // namespace
}  // namespace tuff::test
