// A model split over two devices: the first layers on one, the rest on the other. The training step
// is captured once; a replay submits to both and copies between them without blocking the caller.
// Usage: example_two_devices [FIRST SECOND [STEPS]], for example VULKAN:0 CPU.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <tuff/jit.h>
#include <tuff/nn.h>
#include <tuff/optim.h>

using tuff::Tensor;

struct Split {
  std::string first, second;
  tuff::nn::Linear in{2, 64, true, {.device = first}}, middle{64, 64, true, {.device = first}};
  tuff::nn::Linear out{64, 2, true, {.device = second}};
  Tensor operator()(const Tensor& x) const { return out(middle(in(x).relu()).relu().to(second)); }
};

int main(int argc, char** argv) {
  const std::string first = argc > 2 ? argv[1] : "CPU", second = argc > 2 ? argv[2] : "VULKAN:0";
  constexpr int kUsualSteps = 300;
  const int steps = argc > 3 ? std::atoi(argv[3]) : kUsualSteps;
  const int64_t count = 512;
  std::vector<float> points;
  std::vector<int32_t> labels;
  for (int i = 0; i < count; i++) {  // two spirals
    const float radius = float(i / 2) / (count / 2), angle = 6 * radius + 3.14159f * (i % 2);
    points.insert(points.end(), {radius * std::cos(angle), radius * std::sin(angle)});
    labels.push_back(i % 2);
  }
  const Tensor x = Tensor::from(points, {count, 2}, {.device = first});
  const Tensor y = Tensor::from(labels, {count}, {.device = second});

  Tensor::manual_seed(1);
  const Split model{first, second};
  std::vector<Tensor> parameters;
  for (const auto* layer : {&model.in, &model.middle, &model.out}) {
    for (const Tensor& p : layer->parameters()) parameters.push_back(p);
  }
  tuff::optim::AdamW optimizer(parameters, {.lr = 1e-2});

  tuff::Jit step([&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    Tensor loss = model(in[0]).cross_entropy(in[1]);
    loss.backward();
    optimizer.step({loss});
    return {loss};
  });
  for (int i = 1; i <= steps; i++) {
    const Tensor& loss = step({x, y})[0];
    if (i % 100 == 0 || i == steps) std::printf("step %d: loss %.4f\n", i, loss.item());
  }
  std::printf("a step: %u copies, %u of them by the host\n", step.stats().copies,
              step.stats().host_copies);
  const double right = (model(x).argmax(1) == y).cast(tuff::DType::F32).mean().item();
  std::printf("right: %.1f %%\n", 100 * right);
  return right > 0.95 || steps < kUsualSteps ? 0 : 1;
}
