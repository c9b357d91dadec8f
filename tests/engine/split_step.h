// Training steps of a model split over two devices: the first half on one, the second half and the
// loss on the other; activations and their gradients move with to(device).
#pragma once

#include <string>
#include <vector>

#include <tuff/jit.h>
#include <tuff/optim.h>

namespace tuff::test {

inline std::vector<float> numbers(size_t count, int seed) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; i++) out[i] = float((int(i) * 37 + seed * 11) % 29) / 29 - 0.45f;
  return out;
}

// A result of a replay.
struct Bound {
  std::vector<float> got, wanted;
};
// Of a graph from device a to b and back, replayed with inputs of other memory and other extents.
inline std::vector<Bound> bind_anew(const std::string& a, const std::string& b) {
  Jit jit(
      [&](const std::vector<Tensor>& in) {
        const Tensor there = in[0].to(b);
        return std::vector<Tensor>{(there * 2 + 1).to(a), there.sum({0}).to(a)};
      },
      {.dynamic = {{.argument = 0, .axis = 0, .name = "n", .min = 1, .max = 64}}});
  std::vector<Bound> results;
  for (const int64_t n : {5, 16, 3, 64, 9, 1, 40}) {
    const std::vector<float> x = numbers(size_t(3 * n), int(n));
    const std::vector<Tensor> out = jit({Tensor::from(x, {n, 3}, {.device = a})});
    std::vector<float> twice, sums(3);
    for (size_t i = 0; i < x.size(); i++) {
      twice.push_back(x[i] * 2 + 1);
      sums[i % 3] += x[i];
    }
    results.push_back({out[0].to_vector<float>(), twice});
    results.push_back({out[1].to_vector<float>(), sums});
  }
  return results;
}

class SplitStep {
 public:
  // Sizes are small, so that the hazard checker's judge takes seconds.
  SplitStep(const std::string& first, const std::string& second, int64_t width = 8)
      : first_(first),
        second_(second),
        width_(width),
        w1_(weight(first, 1)),
        w2_(weight(first, 2)),
        w3_(weight(second, 3)),
        w4_(weight(second, 4)),
        optimizer_({w1_, w2_, w3_, w4_}, {.lr = 2e-2}) {}
  std::vector<Tensor> inputs(int seed = 0) const {
    return {Tensor::from(numbers(size_t(4 * width_), 5 + seed), {4, width_}, {.device = first_}),
            Tensor::from(numbers(size_t(4 * width_), 6 + seed), {4, width_}, {.device = second_})};
  }
  std::vector<Tensor> operator()(const std::vector<Tensor>& in) {
    const Tensor h = in[0].matmul(w1_).tanh().matmul(w2_).tanh();
    const Tensor out = h.to(second_).matmul(w3_).tanh().matmul(w4_);
    const Tensor loss = (out - in[1]).square().mean();
    optimizer_.zero_grad();
    loss.backward();
    optimizer_.step({loss});
    return {loss};
  }
  std::vector<std::vector<float>> weights() const {
    std::vector<std::vector<float>> out;
    for (const Tensor& w : {w1_, w2_, w3_, w4_}) {
      out.emplace_back(size_t(w.numel()));
      w.copy_to(out.back().data(), out.back().size() * 4);
    }
    return out;
  }

 private:
  Tensor weight(const std::string& device, int seed) const {
    return Tensor::from(numbers(size_t(width_ * width_), seed), {width_, width_},
                        {.device = device})
        .set_requires_grad();
  }
  std::string first_, second_;
  int64_t width_;
  Tensor w1_, w2_, w3_, w4_;
  optim::AdamW optimizer_;
};

// Losses of `steps` steps, the third and later ones replayed.
inline std::vector<float> train_split(const std::string& first, const std::string& second,
                                      int steps, int64_t width = 8) {
  SplitStep step(first, second, width);
  Jit jit([&](const std::vector<Tensor>& in) { return step(in); });
  std::vector<float> losses;
  for (int i = 0; i < steps; i++) losses.push_back(float(jit(step.inputs(i))[0].item()));
  return losses;
}

}  // namespace tuff::test
