// Texts that outgrow their context: what is kept of them, and that it is what it was.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include <tuff/io.h>

#include "language/fixtures.h"
#include "language/paged_reader.h"

namespace tuff::language {
namespace {

using testing::ElementsAreArray;

std::vector<float> copy(std::span<const float> logits) { return {logits.begin(), logits.end()}; }

std::vector<int32_t> counting(size_t count) {
  std::vector<int32_t> out;
  for (size_t i = 0; i < count; i++) out.push_back(int32_t((7 * i * i + 3) % 48));
  return out;
}

std::vector<int32_t> without(std::vector<int32_t> tokens, size_t keep, size_t drop) {
  const auto from = tokens.begin() + long(keep);
  tokens.erase(from, from + long(drop));
  return tokens;
}

// Of one layer keys and values do not depend on what was read before, so that a shift has to give
// what reading anew gives.
class OneLayer {
 public:
  OneLayer(const std::string& name, CacheType cache) {
    const TensorDict file = load(TUFF_SOURCE_DIR "/tests/data/language/" + name + ".gguf");
    config_ = config_of(file.metadata());
    config_.vocabulary = 48;
    weights_ = weights_of(file, config_);
    config_.layers = 1;
    weights_.layers.resize(1);
    if (weights_.rope_factors.defined())
      factors_ = weights_.rope_factors.to_vector<float>();
    reader_.emplace(config_, weights_, factors_, 64, 4, cache);
  }
  std::vector<float> read(std::span<const int32_t> tokens, size_t first,
                          std::span<const int32_t> pages) {
    const Piece piece{tokens, first, pages};
    return copy(reader_->read({&piece, 1}));
  }
  PagedReader& reader() { return *reader_; }

 private:
  Config config_;
  Weights weights_;
  std::vector<float> factors_;
  std::optional<PagedReader> reader_;
};

TEST(Shift, KeysAreTurnedToTheirNewPositions) {
  const std::vector<int32_t> tokens = counting(50), pages{2, 0}, others{2, 1};
  for (const char* name : {"llama", "llama_yarn", "phi3_longrope", "gemma3"}) {
    OneLayer layer(name, CacheType::F32);
    layer.read(std::span(tokens).first(49), 0, pages);
    layer.reader().move({pages, others, 32, 0, 0});
    layer.reader().move({pages, others, 3, 49 - 3 - 11, 11});
    const std::vector<float> got = layer.read(std::span(tokens).last(1), 38, others);
    const std::vector<float> want =
        OneLayer(name, CacheType::F32).read(without(tokens, 3, 11), 0, pages);
    for (size_t i = 0; i < want.size(); i++) ASSERT_NEAR(got[i], want[i], 1e-4) << name;
  }
}

TEST(Shift, KeysInBlocksAreTurned) {
  const std::vector<int32_t> tokens = counting(50), pages{2, 0};
  OneLayer layer("qwen3_wide", CacheType::Q8_0);
  layer.read(std::span(tokens).first(49), 0, pages);
  layer.reader().move({pages, pages, 3, 49 - 3 - 11, 11});
  const std::vector<float> got = layer.read(std::span(tokens).last(1), 38, pages);
  const std::vector<float> want =
      OneLayer("qwen3_wide", CacheType::F32).read(without(tokens, 3, 11), 0, pages);
  for (size_t i = 0; i < want.size(); i++) ASSERT_NEAR(got[i], want[i], 0.1);
}

TEST(Shift, LearnedPositionsAreReadAgain) {
  const Model model = fixture_model("gpt2");
  const std::vector<int32_t> tokens = counting(40), next{5};
  Sequence shifted(model, {.cache = CacheType::F32}), anew(model, {.cache = CacheType::F32});
  shifted.read(tokens), anew.read(without(tokens, 2, 9));
  shifted.shift(2, 9);
  EXPECT_THAT(shifted.tokens(), ElementsAreArray(anew.tokens()));
  const std::vector<float> got = copy(shifted.read(next)), want = copy(anew.read(next));
  for (size_t i = 0; i < want.size(); i++) ASSERT_NEAR(got[i], want[i], 1e-4);
}

TEST(Shift, RefusesMoreThanWasRead) {
  Sequence s(fixture_model("qwen2"));
  s.read(counting(8));
  EXPECT_EQ(error_of([&] { s.shift(4, 5); }), "5 tokens behind the first 4: 8 were read");
  EXPECT_EQ(error_of([&] { s.shift(9, 0); }), "0 tokens behind the first 9: 8 were read");
  s.shift(3, 5);
  EXPECT_THAT(s.tokens(), ElementsAreArray(counting(3)));
}

GenerateOptions greedy(int64_t tokens, int64_t keep) {
  return {.tokens = tokens, .sampling = {.temperature = 0}, .keep = keep};
}

TEST(Shift, AnswersGoOnBeyondTheContext) {
  const Model model = fixture_model("qwen2");
  Sequence s(model, {.context = 32, .cache = CacheType::F32});
  const std::vector<int32_t> prompt = counting(9);
  const Answer ends = generate(s, prompt, greedy(-1, -1));
  const Answer goes_on = generate(s, prompt, greedy(90, 5));
  EXPECT_EQ(ends.tokens.size(), 23u);
  EXPECT_EQ(goes_on.tokens.size(), 90u);
  EXPECT_THAT(std::span(goes_on.tokens).first(23), ElementsAreArray(ends.tokens));
  EXPECT_LE(s.tokens().size(), 32u);
  EXPECT_THAT(s.tokens().first(5), ElementsAreArray(std::span(prompt).first(5)));
  const auto last = std::span(goes_on.tokens).first(89).last(8);
  EXPECT_THAT(s.tokens().last(8), ElementsAreArray(last));
  EXPECT_EQ(error_of([&] { generate(s, prompt, greedy(1, 32)); }),
            "keep is 32: -1, or fewer tokens than the context of 32 were wanted");
}

// The oldest turn of a conversation is gone from the prompt: the others are not read again.
TEST(Shift, WhatAPromptLacksIsForgotten) {
  Sequence s(fixture_model("llama"));
  std::vector<int32_t> prompt = counting(50);
  generate(s, prompt, greedy(1, 4));
  prompt = without(prompt, 4, 10);
  EXPECT_EQ(generate(s, prompt, greedy(1, 4)).prompt_tokens, 1u);
  EXPECT_THAT(s.tokens(), ElementsAreArray(prompt));
}

// Prompts share pages, which one answer's shift must not change for another.
TEST(Shift, AnswersSideBySideAreThoseOfGenerate) {
  for (const char* name : {"qwen2", "gpt2"}) {
    const Model model = fixture_model(name);
    Sequence alone(model, {.cache = CacheType::F32});
    for (const int64_t cache : {64, 512}) {
      Batch batch(model, {.sequences = 4, .cache_tokens = cache, .cache = CacheType::F32});
      std::map<Batch::Id, std::vector<int32_t>> wanted;
      for (const int64_t keep : {0, 33, 40, -1}) {
        const GenerateOptions options = greedy(70 + keep / 8, keep);
        alone.truncate(0);
        const std::vector<int32_t> prompt = counting(size_t(45 + keep / 8));
        wanted[batch.add(prompt, options)] = generate(alone, prompt, options).tokens;
      }
      const size_t count = wanted.size();
      while (!batch.idle())
        for (const auto& [id, answer] : batch.step())
          EXPECT_EQ(answer.tokens, wanted[id]) << name << ' ' << cache << ' ' << id;
      EXPECT_EQ(count, 4u);
      EXPECT_EQ(batch.stats().used_pages, 0u);
    }
  }
}

}  // namespace
}  // namespace tuff::language
