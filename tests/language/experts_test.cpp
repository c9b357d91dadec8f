// Mixtures of experts: every plan of a call gives what all experts give, and reads the experts that
// were chosen alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>

#include "io/formats/gguf.h"
#include "io/formats/index.h"
#include "io/quantize.h"
#include "language/experts.h"

namespace tuff::language {
namespace {

using Way = ExpertPlan::Way;
constexpr int64_t kWidth = 256, kHidden = 256;

std::vector<float> drawn(std::mt19937& random, int64_t count, float scale) {
  std::vector<float> out(static_cast<size_t>(count));
  for (float& x : out) x = scale * (float(random()) / float(random.max()) * 2 - 1);
  return out;
}

ExpertMaps maps_of(std::mt19937& random, int64_t experts, const std::string& type) {
  const std::vector<float> numbers = drawn(random, experts * kHidden * kWidth, 0.1f);
  ExpertMaps maps{experts, kHidden, kWidth, {}, ""};
  if (type == "F32" || type == "F16") {
    maps.all = Tensor::from(numbers, {experts, kHidden, kWidth});
    if (type == "F16") maps.all = maps.all.to(DType::F16).contiguous().realize();
    return maps;
  }
  const io::BlockType& block = *io::gguf_block(type);
  const size_t bytes = numbers.size() / block.elements * block.size_bytes;
  std::vector<uint8_t> blocks(bytes);
  io::quantize(type, numbers, blocks);
  maps.all = Tensor::from(blocks, {experts, int64_t(bytes) / experts}), maps.type = type;
  return maps;
}

struct Layer {
  Config config;
  Experts experts;
  Tensor x;
};
Layer layer_of(int64_t experts, int64_t used, int64_t rows, const std::string& type) {
  std::mt19937 random(5);
  Layer l;
  l.config.architecture = architecture_of("qwen3moe");
  l.config.width = kWidth, l.config.experts = experts, l.config.experts_used = used;
  l.experts.router = Tensor::from(drawn(random, experts * kWidth, 0.5f), {experts, kWidth});
  for (ExpertMaps* maps : {&l.experts.gate, &l.experts.up, &l.experts.down})
    *maps = maps_of(random, experts, type);
  l.x = Tensor::from(drawn(random, rows * kWidth, 1), {rows, kWidth});
  return l;
}

void expect_same(const Layer& l, const ExpertPlan& plan, const std::vector<float>& want) {
  const std::vector<float> got =
      mixture_by(plan, l.config, l.experts, l.x).to_vector<float>();
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); i++)
    ASSERT_NEAR(got[i], want[i], 2e-5) << "height " << plan.height << " element " << i;
}

std::vector<ExpertPlan> plans() {
  std::vector<ExpertPlan> out;
  for (const int64_t height : {1, 8}) out.push_back({Way::Tiles, height, false});
  out.push_back({Way::Tiles, 16, true});
  return out;
}

class MixtureOf : public testing::TestWithParam<const char*> {};

TEST_P(MixtureOf, IsWhatAllExpertsGive) {
  Layer l = layer_of(8, 2, 19, GetParam());
  const std::vector<float> want = mixture_by({}, l.config, l.experts, l.x).to_vector<float>();
  for (const ExpertPlan& plan : plans()) expect_same(l, plan, want);
  l.x = l.x.narrow(0, 7, 1).contiguous().realize();
  expect_same(l, {Way::One}, {want.begin() + 7 * kWidth, want.begin() + 8 * kWidth});
}
INSTANTIATE_TEST_SUITE_P(, MixtureOf, testing::Values("F32", "F16", "Q8_0", "Q4_K"),
                         [](const auto& row) { return std::string(row.param); });

// All rows want the same experts: the most tiles of one, and none of others.
TEST(Mixture, OfEqualRows) {
  Layer l = layer_of(8, 3, 1, "Q8_0");
  const std::vector<float> one = mixture_by({}, l.config, l.experts, l.x).to_vector<float>();
  l.x = l.x.expand({21, kWidth}).contiguous().realize();
  std::vector<float> want;
  for (int i = 0; i < 21; i++) want.insert(want.end(), one.begin(), one.end());
  for (const ExpertPlan& plan : plans()) expect_same(l, plan, want);
}

// What is not chosen has no effect, not even as a factor of 0.
TEST(Mixture, ReadsTheChosenExpertsAlone) {
  Layer l = layer_of(8, 2, 2, "F32");
  const std::vector<float> want = mixture_by({}, l.config, l.experts, l.x).to_vector<float>();
  const std::vector<int32_t> chosen = l.x.linear(l.experts.router).topk(2).second.to(DType::I32).to_vector<int32_t>();
  for (ExpertMaps* maps : {&l.experts.gate, &l.experts.up, &l.experts.down}) {
    std::vector<float> numbers = maps->all.to_vector<float>();
    for (int32_t e = 0; e < 8; e++)
      if (std::find(chosen.begin(), chosen.end(), e) == chosen.end())
        std::fill_n(numbers.begin() + e * kHidden * kWidth, kHidden * kWidth,
                    std::numeric_limits<float>::quiet_NaN());
    maps->all = Tensor::from(numbers, {8, kHidden, kWidth});
  }
  for (const ExpertPlan& plan : plans()) expect_same(l, plan, want);
  l.x = l.x.narrow(0, 0, 1).contiguous().realize();
  expect_same(l, {Way::One}, {want.begin(), want.begin() + kWidth});
}

TEST(Mixture, TilesSufficeWhateverIsChosen) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; round++) {
    const int64_t experts = 1 + random() % 20, height = 1 + random() % 9, rows = 1 + random() % 40;
    std::vector<int64_t> count(size_t(experts), 0);
    const int64_t used = 1 + random() % uint32_t(experts);
    for (int64_t r = 0; r < rows; r++)
      for (int64_t u = 0, first = random() % uint32_t(experts); u < used; u++)
        count[size_t((first + u) % experts)]++;
    int64_t tiles = 0;
    for (const int64_t n : count) tiles += (n + height - 1) / height;
    EXPECT_LE(tiles, most_tiles(rows * used, experts, height));
  }
  EXPECT_EQ(most_tiles(8, 8, 4), 8) << "one each";
  EXPECT_EQ(most_tiles(64, 8, 8), 8 + 56 / 8);
}

TEST(Mixture, IsPlannedBySizes) {
  const auto plan = [](int64_t rows, int64_t experts, int64_t used, bool in_products) {
    return plan_experts({rows, experts, used, true, in_products});
  };
  EXPECT_EQ(plan(1, 128, 8, true), (ExpertPlan{Way::One}));
  // A few rows of many experts: each choice alone.
  EXPECT_EQ(plan(2, 128, 8, true), (ExpertPlan{Way::Tiles, 1, false}));
  // Of few experts a few rows choose all.
  EXPECT_EQ(plan(8, 8, 2, true), ExpertPlan{});
  // A prompt: a device that decodes in its products copies blocks, one that does not decodes all.
  EXPECT_EQ(plan(512, 128, 8, true), (ExpertPlan{Way::Tiles, 32, false}));
  EXPECT_EQ(plan(512, 128, 8, false).way, Way::Tiles);
  EXPECT_TRUE(plan(512, 128, 8, false).decoded);
  EXPECT_EQ(plan(512, 8, 2, true).way, Way::Tiles);
  for (const int64_t rows : {2, 4, 8, 32, 256, 512})
    for (const bool in_products : {false, true}) {
      const ExpertPlan p = plan(rows, 64, 8, in_products);
      if (p.way != Way::Tiles) continue;
      EXPECT_LT(most_tiles(rows * 8, 64, p.height) * p.height, 64 * rows) << rows;
      EXPECT_TRUE(p.decoded || most_tiles(rows * 8, 64, p.height) <= 2 * 64) << rows;
    }
}

}  // namespace
}  // namespace tuff::language
