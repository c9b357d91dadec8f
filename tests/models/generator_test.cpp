// Decoding with a key-value cache: the logits and the text of the whole context computed anew at
// each step, one captured graph for every length.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/stats.h"
#include "models/checkpoint.h"
#include "models/gpt_generator.h"
#include "models/gpt_trainer.h"
#include "models/not_finite.h"
#include "io/scratch_folder.h"
#include "tensor/devices.h"

namespace tuff::models {
namespace {

using testing::HasSubstr;
using Tokens = std::vector<uint8_t>;
using Floats = std::vector<float>;

constexpr uint32_t kContext = 16, kVocabulary = 19;
// Sums of a few dozen products of activations that layer norms keep near 1, in different orders:
// each within 64 roundings of the largest, as in dynamic_gpt_test.cpp.
constexpr double kTolerance = 64 * 0x1p-24;

GptRecipe small_recipe() {
  GptRecipe r;
  r.vocabulary = kVocabulary;
  r.layers = 2;
  r.heads = 2;
  r.embed = 16;
  r.context = kContext;
  r.batch = 2;
  r.seed = 5;
  return r;
}

// Fresh weights are small, so that logits would all be close: these are ten times as large.
Gpt lively_gpt(const std::string& device) {
  Gpt model(small_recipe(), device);
  std::vector<Tensor> all;
  const NoGradGuard off;
  for (Tensor p : model.parameters()) {
    if (p.dim() == 2) all.push_back(p.assign(p.detach() * 10.0));
  }
  Tensor::realize(all);
  return model;
}

Tokens sequence(size_t count) {
  Tokens out;
  for (size_t t = 0; t < count; t++) out.push_back(uint8_t((t * t + 7 * t + 3) % kVocabulary));
  return out;
}

// The logits after each of these tokens, by the whole forward pass of a full context: what stands
// right of a position does not change them, so that one shape serves all lengths.
class Recomputed {
 public:
  explicit Recomputed(const Gpt& model) : model_(model) {}
  Floats operator()(std::span<const uint8_t> tokens) const {
    return row(all(tokens), tokens.size());
  }
  Floats all(std::span<const uint8_t> tokens) const {
    std::vector<int32_t> values(tokens.begin(), tokens.end());
    values.resize(kContext);
    const Tensor x = Tensor::from(values, {1, kContext}, {.device = model_.wte.weight.device()});
    return model_(x).to_vector<float>();
  }
  static Floats row(const Floats& all, size_t tokens) {
    const auto begin = all.begin() + std::ptrdiff_t((tokens - 1) * kVocabulary);
    return {begin, begin + kVocabulary};
  }

 private:
  const Gpt& model_;
};

class Generator : public testing::TestWithParam<std::string> {};

void expect_near(std::span<const float> got, const Floats& wanted, const std::string& where) {
  ASSERT_EQ(got.size(), wanted.size());
  double largest = 0;
  for (const float x : wanted) largest = std::max(largest, double(std::abs(x)));
  for (size_t i = 0; i < wanted.size(); i++)
    ASSERT_NEAR(got[i], wanted[i], kTolerance * largest) << where << ", logit " << i;
}

TEST_P(Generator, CachedLogitsAreThoseOfTheWholeForwardPass) {
  const Gpt model = lively_gpt(GetParam());
  const Recomputed recomputed(model);
  GptDecoder decoder(model);
  const Tokens tokens = sequence(kContext);
  for (int round = 0; round < 2; round++) {  // the second begins anew in a used cache
    for (size_t n = 1; n <= kContext; n++) {
      const std::span<const uint8_t> seen = std::span(tokens).first(n);
      expect_near(decoder(seen, n - 1), recomputed(seen), fmt::format("token {}", n));
      if (HasFailure()) return;
    }
  }
}

// However many of the tokens are new: in one piece, in several, more than a piece or fewer. What a
// text before has left in the caches, and what followed a short one in its piece, is not seen.
TEST_P(Generator, PiecesHaveTheLogitsOfTheWholeForwardPass) {
  const Gpt model = lively_gpt(GetParam());
  const Recomputed recomputed(model);
  GptDecoder decoder(model);
  for (size_t known = 0; known < kContext; known++) {
    const Tokens tokens = sequence(kContext + known);
    const std::span<const uint8_t> text = std::span(tokens).subspan(known);
    const Floats all = recomputed.all(text);
    for (const size_t n :
         {known + 1, known + 2, known + 5, known + 8, known + 9, size_t{kContext}}) {
      if (n > kContext) continue;
      if (known > 0) decoder(text.first(known), 0);
      expect_near(decoder(text.first(n), known), Recomputed::row(all, n),
                  fmt::format("{} tokens after {}", n, known));
      if (n < kContext)  // the next one overwrites what a piece has put beyond its text
        expect_near(decoder(text.first(n + 1), n), Recomputed::row(all, n + 1),
                    fmt::format("one after {} after {}", n, known));
      if (HasFailure()) return;
    }
  }
  EXPECT_GT(decoder.piece_stats().replays, 50u);
  EXPECT_THROW(decoder(sequence(3), 3), InvalidArgument);
  EXPECT_THROW(decoder(sequence(kContext + 1), 0), InvalidArgument);
}

TEST_P(Generator, OneGraphReadsEveryLength) {
  const Gpt model = lively_gpt(GetParam());
  GptDecoder decoder(model);
  const Tokens tokens = sequence(kContext);
  decoder(tokens, 0);  // two pieces: the first runs, the second is captured
  const uint64_t compiled = engine::counters().kernels_compiled;
  const uint64_t from_disk = engine::counters().kernels_from_disk;
  const JitStats captured = decoder.piece_stats();
  for (size_t n = kContext / 4 + 1; n <= kContext; n++) decoder(std::span(tokens).first(n), 0);
  EXPECT_EQ(engine::counters().kernels_compiled, compiled);
  EXPECT_EQ(engine::counters().kernels_from_disk, from_disk);
  EXPECT_EQ(decoder.piece_stats().kernels, captured.kernels);
  EXPECT_EQ(decoder.stats().replays, 0u) << "token after token";
}

TEST_P(Generator, GreedyTextIsThatOfTheWholeForwardPass) {
  const Gpt model = lively_gpt(GetParam());
  const Recomputed recomputed(model);
  GptGenerator generator(model, 1);
  Tokens text = sequence(3);
  generator.read(text);
  for (uint32_t i = 0; i < 3 * kContext; i++) {
    const auto window = std::span(text).subspan(gpt_window_begin(text.size(), kContext));
    const uint8_t wanted = draw_token(recomputed(window), 0, 0);
    const uint8_t got = generator.write(0);
    ASSERT_EQ(got, wanted) << "token " << i;
    text.push_back(got);
  }
}

TEST_P(Generator, SaysThatItDrewFromNoNumbers) {
  const Gpt model = lively_gpt(GetParam());
  GptGenerator healthy(model, 1);
  healthy.read(sequence(3));
  healthy.write(0.8);
  EXPECT_FALSE(healthy.drew_from_nan());
  EXPECT_THAT(not_finite_text(model.state_dict()), HasSubstr("no nan or inf in its "));
  {
    const NoGradGuard off;
    Tensor weight = model.lnf.weight;
    weight.assign(weight.detach() * NAN).realize();
  }
  EXPECT_EQ(not_finite_text(model.state_dict()), "nan in lnf.weight");
  GptGenerator broken(model, 1);
  broken.read(sequence(3));
  broken.write(0.8);
  EXPECT_TRUE(broken.drew_from_nan());
}

TEST_P(Generator, OneGraphServesEveryLength) {
  const Gpt model = lively_gpt(GetParam());
  GptGenerator generator(model, 1);
  generator.read(sequence(1));
  // Steps and pieces run and are captured: of the latter two when the window moves.
  constexpr uint32_t kWarm = kContext + 2;
  for (uint32_t i = 0; i < kWarm; i++) generator.write(0.5);
  const uint64_t compiled = engine::counters().kernels_compiled;
  const uint64_t from_disk = engine::counters().kernels_from_disk;
  const JitStats captured = generator.decoder().stats();
  for (uint32_t i = kWarm; i < 4 * kContext; i++) generator.write(0.5);
  EXPECT_EQ(engine::counters().kernels_compiled, compiled);
  EXPECT_EQ(engine::counters().kernels_from_disk, from_disk);
  EXPECT_EQ(generator.decoder().stats().kernels, captured.kernels);
  EXPECT_GE(generator.decoder().stats().replays, 3 * kContext);
  EXPECT_GE(generator.decoder().piece_stats().replays, 8u) << "the window moves by pieces";
}

TEST_P(Generator, SeedAndTemperatureDecideOnTheText) {
  const Gpt model = lively_gpt(GetParam());
  const auto text = [&](uint32_t seed, double temperature) {
    GptGenerator generator(model, seed);
    generator.read(sequence(2));
    Tokens out;
    for (int i = 0; i < 24; i++) out.push_back(generator.write(temperature));
    return out;
  };
  EXPECT_EQ(text(1, 1.0), text(1, 1.0));
  EXPECT_NE(text(1, 1.0), text(2, 1.0));
  EXPECT_EQ(text(1, 0), text(2, 0));
  GptGenerator generator(model, 1);
  EXPECT_THROW(generator.write(1), InvalidArgument);
  generator.read(sequence(1));
  EXPECT_THROW(generator.write(-1), InvalidArgument);
  EXPECT_THROW(generator.write(NAN), InvalidArgument);
}

// A text that is longer than the context is what its last window is.
TEST_P(Generator, LongPromptsAreSeenThroughTheirWindow) {
  const Gpt model = lively_gpt(GetParam());
  const Tokens prompt = sequence(5 * kContext + 3);
  const auto written_after = [&](std::span<const uint8_t> tokens) {
    GptGenerator generator(model, 1);
    generator.read(tokens);
    return generator.write(0);
  };
  const uint64_t begin = gpt_window_begin(prompt.size(), kContext);
  EXPECT_LE(prompt.size() - begin, kContext);
  EXPECT_EQ(written_after(prompt), written_after(std::span(prompt).subspan(begin)));
}

INSTANTIATE_TEST_SUITE_P(Devices, Generator, testing::ValuesIn(test::devices()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

TEST(GptWindow, MovesByHalfAContext) {
  for (const uint32_t context : {1u, 2u, 3u, 16u, 17u}) {
    uint64_t before = 0;
    const uint64_t half = std::max(1u, context / 2);
    for (uint64_t count = 0; count < 200; count++) {
      const uint64_t begin = gpt_window_begin(count, context);
      EXPECT_LE(count - begin, context);
      EXPECT_GT(count - begin + half, std::min<uint64_t>(count, context));
      EXPECT_EQ(begin == 0, count <= context);
      EXPECT_TRUE(begin == before || begin == before + half);
      before = begin;
    }
  }
}

TEST(DrawToken, FollowsTheProbabilities) {
  const Floats logits{0, float(std::log(3.0)), -INFINITY};  // 1/4, 3/4, never
  EXPECT_EQ(draw_token(logits, 1, 0.0), 0);
  EXPECT_EQ(draw_token(logits, 1, 0.24), 0);
  EXPECT_EQ(draw_token(logits, 1, 0.26), 1);
  EXPECT_EQ(draw_token(logits, 1, 0.999), 1);
  EXPECT_EQ(draw_token(logits, 0, 0.0), 1);
  EXPECT_EQ(draw_token(Floats{2, 2}, 0, 0.9), 0);  // the first of equals
}

TEST(Vocabulary, NamesTheCharacterThatItLacks) {
  const std::string text = "abc\xc3\xa9";
  const Vocabulary v({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  EXPECT_EQ(v.hex(), "616263a9c3");
  EXPECT_EQ(Vocabulary::from_hex(v.hex()).hex(), v.hex());
  EXPECT_EQ(v.decode(v.encode("cab\xc3\xa9")), "cab\xc3\xa9");
  const auto error = [&](const std::string& t) -> std::string {
    try {
      v.encode(t);
    } catch (const InvalidArgument& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_THAT(error("abx"), HasSubstr("'x' at byte 2"));
  EXPECT_THAT(error("ab\xc3\xbc"), HasSubstr("'\xc3\xbc' at byte 2"));  // its first byte is known
  EXPECT_THAT(error("a\xe2\x82\xac"), HasSubstr("'\xe2\x82\xac' at byte 1"));
  EXPECT_THAT(error("a\xff"), HasSubstr("0xff at byte 1"));
  EXPECT_THAT(error("a\n"), HasSubstr("0x0a at byte 1"));
  for (const char* hex : {"", "6", "616", "6261", "6161", "zz", "61 2"})
    EXPECT_THROW(Vocabulary::from_hex(hex), InvalidArgument) << hex;
}

}  // namespace
}  // namespace tuff::models
