// The generator against Random123's known answers, the recipes against their PyTorch twins.
#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "models/corpus.h"
#include "models/digits_reference.h"
#include "models/gpt_reference.h"
#include "io/scratch_folder.h"
#include "tuff/error.h"

namespace tuff::models {
namespace {

using testing::HasSubstr;

nlohmann::json reference(const char* name) {
  std::ifstream file(std::string(TUFF_SOURCE_DIR "/tests/data/") + name);
  return nlohmann::json::parse(file);
}

// Random123's kat_vectors, lines "threefry2x32 20".
TEST(Threefry, KnownAnswers) {
  EXPECT_EQ(threefry2x32({0, 0}, {0, 0}), (Word2{0x6b200159, 0x99ba4efe}));
  EXPECT_EQ(threefry2x32({0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Word2{0x1cb996fc, 0xbb002be7}));
  EXPECT_EQ(threefry2x32({0x13198a2e, 0x03707344}, {0x243f6a88, 0x85a308d3}),
            (Word2{0xc4923a9c, 0x483df7a0}));
}

TEST(ReferenceRandom, NormalsHaveUnitMoments) {
  const std::vector<float> values = ReferenceRandom(7).normals(3, 100000, 1.0);
  double sum = 0, squares = 0;
  for (float v : values) sum += v, squares += double{v} * v;
  EXPECT_NEAR(sum / 1e5, 0, 0.015);
  EXPECT_NEAR(squares / 1e5, 1, 0.02);
}

TEST(ReferenceRandom, StreamsAndSeedsDiffer) {
  const ReferenceRandom random(1);
  EXPECT_NE(random.bits(0, 0), random.bits(1, 0));
  EXPECT_NE(random.bits(0, 0), random.bits(0, 1));
  EXPECT_NE(random.bits(0, 0), ReferenceRandom(2).bits(0, 0));
}

class GptTwin : public testing::Test {
 protected:
  nlohmann::json json = reference("gpt_reference.json");
  GptRecipe recipe = [this] {
    const auto& s = json["settings"];
    return GptRecipe{json["vocabulary"], s["layers"], s["heads"], s["embed"],
                     s["context"],       s["batch"],  s["steps"], s["seed"]};
  }();
};

TEST_F(GptTwin, MeasuredOnTheEmbeddedCorpus) {
  const Corpus corpus = embedded_corpus();
  EXPECT_EQ(json["corpus_xxh64"], corpus.hash_hex());
  EXPECT_EQ(json["corpus_bytes"], corpus.size_bytes());
  EXPECT_EQ(json["vocabulary"], corpus.vocabulary().size());
  EXPECT_EQ(json["train_tokens"], corpus.train_tokens().size());
}

TEST_F(GptTwin, SameInitialValues) {
  const auto parameters = gpt_parameters(recipe);
  ASSERT_EQ(parameters.size(), 2u + 12 * recipe.layers + 3);
  size_t compared = 0;
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    const ReferenceParameter& p = parameters[i];
    const std::vector<float> values = initial_values(recipe.seed, p, i);
    if (p.deviation == 0) {
      EXPECT_EQ(values[0], p.name.ends_with(".w") ? 1.0f : 0.0f) << p.name;
      continue;
    }
    const auto& expected = json["generator"]["first_values"].at(p.name);
    for (size_t k = 0; k < 4; ++k, ++compared) {
      EXPECT_FLOAT_EQ(values[k], expected[k].get<float>()) << p.name;
    }
  }
  EXPECT_EQ(compared, 4 * json["generator"]["first_values"].size());
}

TEST_F(GptTwin, SameBatchesAndLearningRates) {
  const auto& expected = json["generator"];
  const uint64_t train = json["train_tokens"], all = json["corpus_bytes"];
  std::vector<uint32_t> starts(recipe.batch);
  gpt_train_offsets(recipe, 0, train, starts);
  EXPECT_EQ(starts, expected["train_offsets_step0"]);
  gpt_train_offsets(recipe, recipe.steps - 1, train, starts);
  EXPECT_EQ(starts, expected["train_offsets_last"]);
  gpt_validation_offsets(recipe, 7, all - train, starts);
  EXPECT_EQ(starts, expected["validation_offsets_batch7"]);
  for (uint32_t step = 0; step < recipe.steps; ++step) {
    EXPECT_DOUBLE_EQ(gpt_learning_rate({}, step, recipe.steps), expected["learning_rate"][step]);
  }
}

TEST(GptRecipe, SaysWhatIsWrong) {
  EXPECT_THAT(error_text<InvalidArgument>([] { gpt_parameters({.vocabulary = 90, .heads = 3}); }),
              HasSubstr("3 heads do not divide embed 128"));
  EXPECT_THAT(error_text<InvalidArgument>([] { gpt_parameters({}); }), HasSubstr("vocabulary 0"));
  EXPECT_THAT(error_text<InvalidArgument>([] { gpt_train_offsets({}, 0, 65, {}); }),
              HasSubstr("65 tokens are too few for context 64"));
}

TEST(GptRecipe, LearningRateWarmsUpAndFalls) {
  EXPECT_DOUBLE_EQ(gpt_learning_rate({}, 0, 300), 1e-3 / 20);
  EXPECT_DOUBLE_EQ(gpt_learning_rate({}, 19, 300), 1e-3);
  EXPECT_DOUBLE_EQ(gpt_learning_rate({}, 300, 300), 1e-4);
  EXPECT_GT(gpt_learning_rate({}, 5, 3), 0);  // fewer steps than the warm-up
}

TEST(DigitsRecipe, ShapesAndBatches) {
  const auto parameters = digits_parameters({});
  ASSERT_EQ(parameters.size(), 8u);
  EXPECT_EQ(parameters[4].shape, (std::vector<uint32_t>{128, 32 * 7 * 7}));
  std::vector<uint32_t> rows(DigitsNetRecipe().batch);
  digits_batch({}, 3, 100, rows);
  for (uint32_t row : rows) EXPECT_LT(row, 100u);
  EXPECT_THAT(error_text<InvalidArgument>([] { digits_parameters({.rows = 3}); }),
              HasSubstr("3 x 28"));
  EXPECT_THAT(error_text<InvalidArgument>([] { digits_batch({}, 0, 0, {}); }), HasSubstr("0 images"));
}

}  // namespace
}  // namespace tuff::models
