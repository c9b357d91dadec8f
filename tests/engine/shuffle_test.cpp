// Training on the random-order device: right in every order, and wrong where a barrier is missing.
#include "devices/shuffle/shuffle.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "engine/device.h"
#include "engine/small_steps.h"
#include "hcq/hazards.h"
#include "models/corpus.h"
#include "models/digits.h"
#include "models/digits_trainer.h"
#include "models/gpt_trainer.h"

namespace tuff::engine {
namespace {

using devices::shuffle_reseed;
using hcq::Command;
using hcq::CommandList;
using hcq::Span;

constexpr const char* kShuffle = "SHUFFLE";

hcq::Device& shuffle() { return Device::get(kShuffle)->hcq(); }

// ---- trainings

std::vector<float> losses(const models::TrainingReport& report) {
  std::vector<float> out;
  for (const models::StepRecord& s : report.steps) out.push_back(s.loss);
  for (const models::ValidationRecord& v : report.validations) out.push_back(float(v.loss));
  return out;
}

std::vector<float> train_gpt(const std::string& device, bool jit) {
  static const models::Corpus corpus = models::embedded_corpus();
  models::GptTraining t;
  t.recipe = {.layers = 2, .heads = 2, .embed = 16, .context = 16, .batch = 4, .steps = 10};
  t.dropout = 0.1;
  t.jit = jit;
  t.device = device;
  models::GptTrainer trainer(t, corpus);
  models::TrainingObserver observer;
  trainer.run(observer);
  return losses(trainer.report());
}

std::vector<float> train_digits(const std::string& device, bool jit) {
  static const io::ImageSplit images = models::draw_digits({.train_count = 200, .test_count = 10});
  models::DigitsTraining t;
  t.recipe.channels1 = 4;
  t.recipe.channels2 = 8;
  t.recipe.hidden = 16;
  t.recipe.batch = 8;
  t.steps = 10;
  t.jit = jit;
  t.device = device;
  models::DigitsTrainer trainer(t, images);
  models::TrainingObserver observer;
  trainer.run(observer);
  return losses(trainer.report());
}

// The same kernels, so the same bits.
template <class Train>
void gives_the_losses_of_the_cpu(Train train) {
  for (const bool jit : {true, false}) {
    Tensor::manual_seed(1);
    const std::vector<float> wanted = train("CPU", jit);
    ASSERT_GE(wanted.size(), 10u);
    EXPECT_NE(wanted[0], wanted[9]);
    for (const char* device : {kShuffle, "SHUFFLE:visible"}) {
      for (uint64_t seed = 0; seed < (jit ? 20 : 5); seed++) {
        shuffle_reseed(Device::get(device)->hcq(), seed);
        Tensor::manual_seed(1);
        EXPECT_EQ(train(device, jit), wanted)
            << device << (jit ? " replayed" : " eager") << ", seed " << seed;
      }
    }
  }
}

TEST(ShuffledTraining, OfAGptGivesTheLossesOfTheCpu) { gives_the_losses_of_the_cpu(train_gpt); }
TEST(ShuffledTraining, OfADigitsNetGivesTheLossesOfTheCpu) {
  gives_the_losses_of_the_cpu(train_digits);
}

// ---- barriers that are missing

std::byte* at(const Span& s) { return reinterpret_cast<std::byte*>(s.address()); }

// The memory that a list writes, brought to the same state before every run: what the list reads
// before it writes it as it was, argument blocks naming a place that no kernel means, and all else
// spoilt, so that nothing right is there before it is made.
class ListMemory {
 public:
  ListMemory(hcq::Device& device, const CommandList& list)
      : device_(device),
        elsewhere_(device.allocator().allocate(kElsewhereBytes, hcq::MemoryKind::Device)) {
    std::vector<Span> read;
    for (const Command& c : list.commands) {
      const auto* copy = std::get_if<hcq::CopyCmd>(&c.body);
      for (const hcq::Access& a : c.accesses)
        if (!a.write) read.push_back(a.span);
      for (const hcq::Access& a : c.accesses)
        if (a.write) add(a.span, read, copy && a.span.block->kind == hcq::MemoryKind::Args);
    }
  }
  ~ListMemory() { device_.allocator().free(elsewhere_); }
  ListMemory(const ListMemory&) = delete;
  void bring_back() const {
    for (const Part& p : parts_) {
      if (!p.before.empty()) {
        std::memcpy(at(p.span), p.before.data(), p.before.size());
      } else if (p.arguments) {
        const uint64_t address = elsewhere_.address();
        for (size_t i = 0; i + 8 <= p.span.size_bytes; i += 8)
          std::memcpy(at(p.span) + i, &address, 8);
      } else {
        std::memset(at(p.span), 0xFF, p.span.size_bytes);
      }
    }
  }
  std::vector<std::byte> now() const {
    std::vector<std::byte> out;
    for (const Part& p : parts_) out.insert(out.end(), at(p.span), at(p.span) + p.span.size_bytes);
    return out;
  }

 private:
  static constexpr size_t kElsewhereBytes = 1 << 20;  // larger than any buffer of these steps
  struct Part {
    Span span;
    std::vector<std::byte> before;
    bool arguments = false;
  };
  static bool overlap(const Span& a, const Span& b) {
    return a.block == b.block && a.offset < b.offset + b.size_bytes &&
           b.offset < a.offset + a.size_bytes;
  }
  void add(const Span& written, const std::vector<Span>& read, bool arguments) {
    const bool kept =
        std::any_of(read.begin(), read.end(), [&](const Span& r) { return overlap(r, written); });
    const bool known = std::any_of(parts_.begin(), parts_.end(),
                                   [&](const Part& p) { return overlap(p.span, written); });
    Part p{written, {}, arguments};
    if (kept && !known) p.before.assign(at(written), at(written) + written.size_bytes);
    if (!known || !contained(written)) parts_.push_back(std::move(p));
  }
  bool contained(const Span& s) const {
    return std::any_of(parts_.begin(), parts_.end(), [&](const Part& p) {
      return p.span.block == s.block && p.span.offset <= s.offset &&
             s.offset + s.size_bytes <= p.span.offset + p.span.size_bytes;
    });
  }
  hcq::Device& device_;
  Span elsewhere_;
  std::vector<Part> parts_;
};

std::vector<std::byte> run(hcq::EncodedList& list, const ListMemory& memory, uint64_t seed) {
  hcq::Queue& queue = shuffle().compute_queue();
  memory.bring_back();
  shuffle_reseed(shuffle(), seed);
  queue.wait(queue.submit(list, {}));
  return memory.now();
}

// The first of `seeds` seeds that gives something else than `wanted`, or `seeds`.
uint64_t first_wrong(const CommandList& list, const ListMemory& memory, uint64_t seeds,
                     const std::vector<std::byte>& wanted) {
  const auto encoded = shuffle().compute_queue().encode(list, hcq::EncodeUse::Replay);
  for (uint64_t seed = 0; seed < seeds; seed++)
    if (run(*encoded, memory, seed) != wanted) return seed;
  return seeds;
}

CommandList without(const CommandList& list, size_t command) {
  CommandList out = list;
  out.commands.erase(out.commands.begin() + std::ptrdiff_t(command));
  return out;
}

bool is_clean(const CommandList& list) {
  hcq::Trace t;
  t.events.emplace_back(hcq::Submission{.list = &list});
  return hcq::check_hazards(t).clean();
}

// As many as a finding is given to show; more of them: TUFF_TEST_SEEDS.
uint64_t seeds() {
  const char* given = std::getenv("TUFF_TEST_SEEDS");
  return given ? std::strtoull(given, nullptr, 10) : 1000;
}

template <class Step>
void delete_each_barrier(const char* what) {
  Tensor::manual_seed(1);
  Step step(kShuffle);
  const std::vector<BoundCall> calls = calls_of_a_step(step);
  const CapturedGraph graph(calls, {});
  ASSERT_EQ(graph.graphs().size(), 1u);
  const CommandList& list = graph.graphs()[0]->commands();
  shuffle().compute_queue().wait_idle();
  const ListMemory memory(shuffle(), list);
  const auto whole = shuffle().compute_queue().encode(list, hcq::EncodeUse::Replay);
  const std::vector<std::byte> wanted = run(*whole, memory, 0);
  EXPECT_EQ(first_wrong(list, memory, seeds(), wanted), seeds()) << "with every barrier";
  size_t barriers = 0, needed = 0, shown = 0;
  std::vector<uint64_t> tries;
  std::string not_shown;
  for (size_t c = 0; c < list.commands.size(); c++) {
    if (!std::holds_alternative<hcq::BarrierCmd>(list.commands[c].body)) continue;
    const CommandList mutant = without(list, c);
    const bool found = !is_clean(mutant);
    const uint64_t seed = first_wrong(mutant, memory, seeds(), wanted);
    EXPECT_FALSE(seed < seeds() && !found)
        << "without command " << c << " seed " << seed << " errs, and the checker finds nothing";
    barriers++;
    needed += found;
    shown += seed < seeds();
    if (seed < seeds()) tries.push_back(seed + 1);
    if (found && seed == seeds()) not_shown += fmt::format(" {}", c);
  }
  ASSERT_FALSE(tries.empty());
  std::sort(tries.begin(), tries.end());
  fmt::print(
      "{}: {} commands, {} barriers deleted one by one: the checker calls {} needed, {} of them "
      "give wrong values within {} seeds (median {}, most {}); not shown: {}{}\n",
      what, list.commands.size(), barriers, needed, shown, seeds(), tries[tries.size() / 2],
      tries.back(), needed - shown, not_shown.empty() ? "" : ":" + not_shown);
  EXPECT_GE(10 * shown, 9 * needed);
}

TEST(ShuffledMutation, MissingBarriersOfAGptStepGiveWrongValues) {
  delete_each_barrier<GptStep>("GPT step");
}
TEST(ShuffledMutation, MissingBarriersOfAConvNetStepGiveWrongValues) {
  delete_each_barrier<ConvNetStep>("ConvNet step");
}

}  // namespace
}  // namespace tuff::engine
