// From the third step on a training allocates nothing: every operator new of the process is counted
// while steps are replayed.
#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "engine/device.h"
#include "models/corpus.h"
#include "models/gpt_trainer.h"

namespace {
std::atomic<uint64_t> allocation_count{0};
}

void* operator new(size_t size) {
  allocation_count.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
void* operator new(size_t size, std::align_val_t alignment) {
  allocation_count.fetch_add(1, std::memory_order_relaxed);
  const size_t unit = size_t(alignment);
  if (void* p = std::aligned_alloc(unit, (size + unit - 1) / unit * unit)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { std::free(p); }

namespace tuff::models {
namespace {

class CountingObserver final : public TrainingObserver {
 public:
  void on_step(const StepRecord& r) override {
    if (r.step == 3) begin_ = allocation_count;
    if (r.step == 40) in_steady_state = allocation_count - begin_;
  }
  uint64_t in_steady_state = ~0ull;

 private:
  uint64_t begin_ = 0;
};

bool usable(const std::string& kind) {
  for (const devices::Candidate& c : engine::list_devices()) {
    if (c.usable && c.name.starts_with(kind)) return true;
  }
  return false;
}

class SteadyState : public testing::TestWithParam<const char*> {};

TEST_P(SteadyState, StepsAllocateNothing) {
  if (!usable(GetParam())) GTEST_SKIP() << GetParam() << " cannot be used here";
  {
    const Corpus corpus = embedded_corpus();
    GptTraining settings;
    settings.device = GetParam();
    settings.recipe.layers = 1;
    settings.recipe.heads = 2;
    settings.recipe.embed = 16;
    settings.recipe.context = 16;
    settings.recipe.batch = 4;
    settings.recipe.steps = 45;  // validation after step 45 and before 1, not in between
    GptTrainer trainer(settings, corpus);
    CountingObserver observer;
    trainer.run(observer);
    EXPECT_EQ(observer.in_steady_state, 0u);
  }
  engine::close_devices();
}

INSTANTIATE_TEST_SUITE_P(Devices, SteadyState, testing::Values("NULL", "CPU", "VULKAN"),
                         [](const auto& row) { return std::string(row.param); });

}  // namespace
}  // namespace tuff::models
