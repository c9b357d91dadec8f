#include "bench/train_bench.h"

#include <cmath>
#include <functional>
#include <random>

#include <tuff/jit.h>
#include <tuff/nn.h>
#include <tuff/optim.h>

#include "base/check.h"
#include "base/os.h"
#include "engine/device.h"
#include "models/gpt_model.h"

namespace tuff::bench {
namespace {

constexpr int64_t kBatch = 128, kClasses = 10;
constexpr uint32_t kVocabulary = 65;
constexpr int kWarmUp = 6, kLeastSteps = 5;

// A model with its optimizer and the batch that it is trained on.
struct Training {
  std::vector<Tensor> inputs;
  std::function<Tensor(const std::vector<Tensor>&)> loss;
  std::unique_ptr<optim::Optimizer> optimizer;
};

Tensor labels(int64_t count, int32_t classes, const std::string& device) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int32_t> any(0, classes - 1);
  std::vector<int32_t> v(static_cast<size_t>(count));
  for (int32_t& x : v) x = any(random);
  return Tensor::from(v, {count}, {.device = device}).realize();
}

Training mlp(const std::string& device) {
  const TensorOptions on{.device = device};
  const nn::Linear a(784, 512, true, on), b(512, 512, true, on), c(512, kClasses, true, on);
  Training t;
  t.inputs = {Tensor::randn({kBatch, 784}, on).realize(), labels(kBatch, kClasses, device)};
  t.loss = [a, b, c](const std::vector<Tensor>& in) {
    return c(b(a(in[0]).relu()).relu()).cross_entropy(in[1]);
  };
  nn::Parameters all;
  for (const nn::Linear* l : {&a, &b, &c})
    for (const Tensor& p : l->parameters()) all.push_back(p);
  t.optimizer = std::make_unique<optim::Adam>(all, optim::Adam::Options{});
  return t;
}

Training conv(const std::string& device) {
  const TensorOptions on{.device = device};
  const nn::Conv2d a(1, 32, 5, 1, 0, true, on), b(32, 64, 3, 1, 0, true, on);
  const nn::Linear c(1600, kClasses, true, on);
  Training t;
  t.inputs = {Tensor::randn({kBatch, 1, 28, 28}, on).realize(), labels(kBatch, kClasses, device)};
  t.loss = [a, b, c](const std::vector<Tensor>& in) {
    const Tensor x = b(a(in[0]).relu().max_pool2d(2)).relu().max_pool2d(2);
    return c(x.flatten(1)).cross_entropy(in[1]);
  };
  nn::Parameters all = a.parameters();
  for (const auto& more : {b.parameters(), c.parameters()})
    all.insert(all.end(), more.begin(), more.end());
  t.optimizer = std::make_unique<optim::Adam>(all, optim::Adam::Options{});
  return t;
}

Training gpt(const std::string& device) {
  models::GptRecipe recipe;
  recipe.vocabulary = kVocabulary;
  const models::Gpt model(recipe, device);
  const int64_t tokens = int64_t(recipe.batch) * recipe.context;
  const auto rows = [&] {
    return labels(tokens, kVocabulary, device)
        .reshape({int64_t(recipe.batch), int64_t(recipe.context)})
        .contiguous()
        .realize();
  };
  Training t;
  t.inputs = {rows(), rows()};
  t.loss = [model](const std::vector<Tensor>& in) {
    const Tensor logits = model(in[0]);
    return logits.reshape({-1, int64_t(kVocabulary)}).cross_entropy(in[1].reshape({-1}));
  };
  t.optimizer = std::make_unique<optim::AdamW>(model.parameters(), optim::AdamW::Options{});
  return t;
}

struct Model {
  std::string name;
  Training (*make)(const std::string& device);
};
const std::vector<Model>& table() {
  static const std::vector<Model> models{{"mlp", mlp}, {"conv", conv}, {"gpt", gpt}};
  return models;
}

Training make(const std::string& model, const std::string& device) {
  Tensor::manual_seed(1);
  for (const Model& m : table())
    if (m.name == model) return m.make(device);
  fail<InvalidArgument>("bench train: no model \"{}\"", model);
}

}  // namespace

bool TrainFigures::correct() const { return std::isfinite(last_loss) && last_loss < first_loss; }

struct TrainBench::State {
  State(const std::string& model, const std::string& device)
      : queue(engine::Device::get(device)->queue()),
        training(make(model, device)),
        jit([this](const std::vector<Tensor>& in) {
          const TrainingMode on;
          const Tensor loss = training.loss(in);
          loss.backward();
          training.optimizer->step({loss});
          return std::vector<Tensor>{loss};
        }) {}

  // From launch to the loss on the host, as a training loop waits for it.
  void step(bool timed) {
    const uint64_t begin_ns = os::monotonic_ns();
    const Tensor& loss = jit(training.inputs)[0];
    const uint64_t launched_ns = os::monotonic_ns();
    queue.wait_idle();
    const uint64_t end_ns = os::monotonic_ns();
    figures.last_loss = loss.item();
    if (steps++ == 0) figures.first_loss = figures.last_loss;
    if (!timed) return;
    figures.ms.push_back(double(end_ns - begin_ns) / 1e6);
    figures.host_us.push_back(double(launched_ns - begin_ns) / 1e3);
  }

  const uint64_t begin_ns = os::monotonic_ns();
  hcq::Queue& queue;
  Training training;
  Jit jit;
  uint64_t steps = 0;
  TrainFigures figures;
};

void TrainBench::get_ready() {
  State& s = *state_;
  if (s.steps) return;
  while (!s.jit.captured()) s.step(false);
  s.figures.ready_ms = double(os::monotonic_ns() - s.begin_ns) / 1e6;
  s.figures.kernels = s.jit.stats().kernels;
}

TrainBench::TrainBench(const std::string& model, const std::string& device)
    : state_(std::make_unique<State>(model, device)) {}
TrainBench::~TrainBench() = default;

void TrainBench::run(double seconds) {
  State& s = *state_;
  get_ready();
  while (s.steps < kWarmUp) s.step(false);
  const uint64_t end_ns = os::monotonic_ns() + uint64_t(seconds * 1e9);
  for (int i = 0; i < kLeastSteps || os::monotonic_ns() < end_ns; i++) s.step(true);
}

void TrainBench::step() {
  get_ready();
  state_->step(false);
}

const TrainFigures& TrainBench::figures() const { return state_->figures; }

const std::vector<std::string>& TrainBench::models() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const Model& m : table()) out.push_back(m.name);
    return out;
  }();
  return names;
}

}  // namespace tuff::bench
