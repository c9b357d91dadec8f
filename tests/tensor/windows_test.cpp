// Windows over planes against loops: kernels, strides and dilations with shared elements or none,
// and the gradient of their maximum.
#include <gtest/gtest.h>

#include <tuff/tensor.h>

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

}  // namespace
}  // namespace tuff::test
