// What a sampler may draw, and how often.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include <tuff/language.h>

namespace tuff::language {
namespace {

using testing::ElementsAre;

// Tokens 0 to 3 of probabilities 0.5, 0.3, 0.15 and 0.05.
const std::vector<float> kLogits{std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
const Sampling kPlain{.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0};

std::set<int32_t> drawn(Sampling options, std::vector<int32_t> seen = {}) {
  Sampler sampler(options);
  std::set<int32_t> out;
  for (int i = 0; i < 400; i++) out.insert(sampler.draw(kLogits, seen));
  return out;
}

TEST(Sampler, DrawsByProbability) {
  Sampler sampler(kPlain);
  std::map<int32_t, int> times;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; i++) times[sampler.draw(kLogits, {})]++;
  // Four standard deviations of the most uncertain one are 0.014.
  for (int32_t t = 0; t < 4; t++)
    EXPECT_NEAR(times[t] / double(kDraws), std::exp(kLogits[size_t(t)]), 0.014);
}

TEST(Sampler, OneSeedIsOneSequence) {
  const auto sequence = [](uint64_t seed) {
    Sampling o = kPlain;
    o.seed = seed;
    Sampler sampler(o);
    std::vector<int32_t> out;
    for (int i = 0; i < 12; i++) out.push_back(sampler.draw(kLogits, {}));
    return out;
  };
  EXPECT_EQ(sequence(7), sequence(7));
  EXPECT_NE(sequence(7), sequence(8));
  EXPECT_THAT(sequence(7), ElementsAre(0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 3));
}

TEST(Sampler, CutsWhatIsUnlikely) {
  Sampling o = kPlain;
  EXPECT_EQ(drawn(o).size(), 4u);
  o.top_k = 2;
  EXPECT_THAT(drawn(o), ElementsAre(0, 1));
  o = kPlain, o.top_p = 0.7;
  EXPECT_THAT(drawn(o), ElementsAre(0, 1));
  o = kPlain, o.top_p = 0.01;
  EXPECT_THAT(drawn(o), ElementsAre(0)) << "one is always left";
  o = kPlain, o.min_p = 0.25;
  EXPECT_THAT(drawn(o), ElementsAre(0, 1, 2));
  // The mean surprise is 1.14: token 1 has 1.20, token 0 0.69, token 2 1.90.
  o = kPlain, o.typical_p = 0.2;
  EXPECT_THAT(drawn(o), ElementsAre(1));
  o = kPlain, o.typical_p = 0.7;
  EXPECT_THAT(drawn(o), ElementsAre(0, 1));
  o = kPlain, o.typical_p = 0.9;
  EXPECT_THAT(drawn(o), ElementsAre(0, 1, 2));
  o = kPlain, o.temperature = 0;
  EXPECT_THAT(drawn(o), ElementsAre(0));
  o = kPlain, o.temperature = 1e-310;
  EXPECT_THAT(drawn(o), ElementsAre(0));
  o = kPlain, o.temperature = 0.05;
  EXPECT_THAT(drawn(o), ElementsAre(0));
}

TEST(Sampler, PenaltiesAndBias) {
  Sampling o = kPlain;
  o.temperature = 0;
  o.presence_penalty = 5;
  EXPECT_THAT(drawn(o, {0}), ElementsAre(1));
  EXPECT_THAT(drawn(o, {0, 1, 0}), ElementsAre(2));
  o.penalty_tokens = 1;
  EXPECT_THAT(drawn(o, {0, 1}), ElementsAre(0)) << "the first one is too far back";
  o = kPlain, o.temperature = 0, o.frequency_penalty = 0.3;
  EXPECT_THAT(drawn(o, {0}), ElementsAre(0));
  EXPECT_THAT(drawn(o, {0, 0, 0}), ElementsAre(1));
  o = kPlain, o.temperature = 0, o.repeat_penalty = 4;
  EXPECT_THAT(drawn(o, {0}), ElementsAre(1));
  o = kPlain, o.temperature = 0, o.bias = {{3, 10}};
  EXPECT_THAT(drawn(o), ElementsAre(3));
  o.bias = {{0, -std::numeric_limits<double>::infinity()}};
  EXPECT_THAT(drawn(o), ElementsAre(1));
}

TEST(Sampler, RefusesWhatMakesNoSense) {
  const auto error = [](Sampling o) -> std::string {
    try {
      Sampler{o}.draw(kLogits, {});
    } catch (const InvalidArgument& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(error({.temperature = -1}), "temperature is -1: a number from 0 on was wanted");
  EXPECT_EQ(error({.top_p = 0}), "top_p is 0: a number above 0, at most 1 was wanted");
  EXPECT_EQ(error({.typical_p = 0}), "typical_p is 0: a number above 0, at most 1 was wanted");
  EXPECT_EQ(error({.min_p = 2}), "min_p is 2: a number from 0 to 1 was wanted");
  EXPECT_EQ(error({.repeat_penalty = 0}), "repeat_penalty is 0: a number above 0 was wanted");
  EXPECT_EQ(error({.bias = {{4, 1.0}}}), "bias of token 4: there are 4");
  EXPECT_EQ(error({.presence_penalty = NAN}), "presence_penalty is nan: a number was wanted");
  EXPECT_EQ(error({.bias = {{0, INFINITY}}}), "bias is inf: a number, or -infinity was wanted");
  EXPECT_THROW(Sampler({}).draw(std::vector<float>{0, NAN}, {}), InvalidArgument);
  EXPECT_THROW(Sampler({}).draw(std::vector<float>{0, INFINITY}, {}), InvalidArgument);
  EXPECT_THROW(Sampler({}).draw(std::vector<float>{-INFINITY, -INFINITY}, {}), InvalidArgument);
}

}  // namespace
}  // namespace tuff::language
