// Host cost of scheduling a training step that was scheduled before: the default GPT's forward,
// backward and AdamW graph is built anew for every step, as without a Jit, and found in the
// schedule cache. Prints medians in microseconds. On the NULL device, so that nothing but the host
// works.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include <tuff/optim.h>
#include "engine/stats.h"
#include "models/gpt_model.h"

namespace {

using namespace tuff;

struct Sample {
  double build_us, schedule_us;
};

// One step; how long building took, and the schedules of its realize calls.
Sample step(const models::Gpt& model, optim::AdamW& optimizer, const Tensor& tokens,
            const Tensor& targets) {
  const engine::GlobalCounters& counters = engine::counters();
  const uint64_t before = counters.schedule_ns;
  const auto begin = std::chrono::steady_clock::now();
  optimizer.zero_grad();
  const Tensor logits = model(tokens);
  const Tensor loss = logits.reshape({-1, logits.size(-1)}).cross_entropy(targets.reshape({-1}));
  loss.backward();
  const std::chrono::duration<double, std::micro> built = std::chrono::steady_clock::now() - begin;
  optimizer.step({loss});
  return {built.count(), double(counters.schedule_ns - before) / 1e3};
}

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

}  // namespace

int main() {
  constexpr int kSteps = 200;
  const TensorOptions ints{.dtype = DType::I32, .device = "NULL"};
  const models::GptRecipe recipe{.vocabulary = 96};
  const models::Gpt model(recipe, "NULL");
  optim::AdamW optimizer(model.parameters(), {});
  const Tensor tokens = Tensor::zeros({16, recipe.context}, ints).contiguous();
  const Tensor targets = Tensor::zeros({16, recipe.context}, ints).contiguous();
  std::vector<double> build, schedule;
  for (int i = 0; i < kSteps; i++) {
    const Sample s = step(model, optimizer, tokens, targets);
    if (i < 3)
      std::printf("step %d: build %.0f us, schedule %.1f us\n", i, s.build_us, s.schedule_us);
    build.push_back(s.build_us);
    schedule.push_back(s.schedule_us);
  }
  std::printf("median: build %.0f us, schedule %.1f us\n", median(build), median(schedule));
  return 0;
}
