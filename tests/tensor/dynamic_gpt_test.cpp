// The GPT captured at its whole context serves every shorter sequence: logits as eager execution
// computes them, and at each length the same bits whenever it comes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <tuff/jit.h>
#include "models/gpt_model.h"
#include "tensor/devices.h"

namespace tuff::models {
namespace {

constexpr int64_t kContext = 64, kBatch = 2, kVocabulary = 19;
// Logits are sums of a few dozen products of activations that layer norms keep near 1; symbolic and
// fixed kernels add them up in different orders, each within 64 roundings of the largest.
constexpr double kTolerance = 64 * 0x1p-24;

class DynamicGpt : public testing::TestWithParam<std::string> {
 protected:
  static GptRecipe recipe() {
    GptRecipe r;
    r.vocabulary = uint32_t(kVocabulary);
    r.layers = 2;
    r.heads = 2;
    r.embed = 16;
    r.context = uint32_t(kContext);
    r.batch = uint32_t(kBatch);
    return r;
  }
  // The first `length` tokens of each of two fixed sequences.
  Tensor tokens(int64_t length) const {
    std::vector<int32_t> v;
    for (int64_t b = 0; b < kBatch; b++) {
      for (int64_t t = 0; t < length; t++)
        v.push_back(int32_t((t * t + 7 * t + 3 * b) % kVocabulary));
    }
    return Tensor::from(v, {kBatch, length}, {.device = GetParam()});
  }
};

using Floats = std::vector<float>;

TEST_P(DynamicGpt, CapturedAtItsContextServesEveryLength) {
  const Gpt model(recipe(), GetParam());
  Jit forward([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{model(in[0])}; },
              {.dynamic = {{.argument = 0, .axis = 1, .name = "T", .min = 1, .max = kContext}}});
  // A token's logits do not depend on those after it: one eager run has all lengths' results.
  const Floats whole = model(tokens(kContext)).to_vector<float>();
  double largest = 0;
  for (const float x : whole) largest = std::max(largest, double(std::abs(x)));

  std::vector<int64_t> lengths{kContext, kContext};
  for (int64_t t = kContext; t >= 1; t--) lengths.push_back(t);
  for (int64_t t = 1; t <= kContext; t += 5) lengths.push_back(t);
  std::map<int64_t, Floats> first;
  std::vector<std::pair<int64_t, Tensor>> held;
  for (const int64_t t : lengths) {
    const Tensor logits = forward({tokens(t)})[0];
    ASSERT_EQ(logits.sizes(), (Sizes{kBatch, t, kVocabulary}));
    held.emplace_back(t, logits);  // read when all replays have been submitted
  }
  double worst = 0;
  for (const auto& [t, logits] : held) {
    const Floats got = logits.to_vector<float>();
    for (int64_t b = 0; b < kBatch; b++) {
      for (int64_t i = 0; i < t * kVocabulary; i++) {
        const double x = got[size_t(b * t * kVocabulary + i)];
        const double wanted = whole[size_t(b * kContext * kVocabulary + i)];
        worst = std::max(worst, std::abs(x - wanted));
        ASSERT_NEAR(x, wanted, kTolerance * largest) << "length " << t << ", row " << b;
      }
    }
    if (&logits == &held[0].second) continue;  // the first call ran eagerly
    const auto [it, fresh] = first.try_emplace(t, got);
    EXPECT_TRUE(fresh || it->second == got) << "length " << t << " a second time";
  }
  EXPECT_EQ(forward.stats().replays, lengths.size() - 2);
  RecordProperty("worst", std::to_string(worst / largest));

  // Eager execution at the length itself.
  for (const int64_t t : {int64_t(1), int64_t(33)}) {
    const Floats wanted = model(tokens(t)).to_vector<float>(), &got = first.at(t);
    for (size_t i = 0; i < got.size(); i++)
      ASSERT_NEAR(got[i], wanted[i], kTolerance * largest) << "length " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DynamicGpt, testing::ValuesIn(test::devices()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name)
                             c = isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace tuff::models
