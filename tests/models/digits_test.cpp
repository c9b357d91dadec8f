#include "models/digits.h"

#include <gmock/gmock.h>
#include <xxhash.h>

#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "io/scratch_folder.h"
#include "tuff/error.h"

namespace tuff::models {
namespace {

uint64_t hash(const std::vector<uint8_t>& bytes) { return XXH64(bytes.data(), bytes.size(), 0); }

const io::ImageSplit& drawn() {
  static const io::ImageSplit split = draw_digits({});
  return split;
}

TEST(Digits, CountsAndExtents) {
  EXPECT_EQ(drawn().train.count, 12000u);
  EXPECT_EQ(drawn().test.count, 2000u);
  EXPECT_EQ(drawn().train.pixels.size(), 12000u * 28 * 28);
  EXPECT_EQ(drawn().test.pixels.size(), 2000u * 28 * 28);
}

// The same bytes on every machine and in every build: the PyTorch reference saw these, too.
TEST(Digits, SameBytesEverywhere) {
  std::ifstream file(TUFF_SOURCE_DIR "/tests/data/digits_reference.json");
  const auto json = nlohmann::json::parse(file);
  char hex[17];
  std::snprintf(hex, sizeof hex, "%016llx",
                static_cast<unsigned long long>(hash(drawn().train.pixels)));
  EXPECT_EQ(json["train_pixels_xxh64"], hex);
}

TEST(Digits, SeedDecides) {
  const DigitRecipe few{.seed = 5, .train_count = 40, .test_count = 20};
  const DigitRecipe other{.seed = 6, .train_count = 40, .test_count = 20};
  EXPECT_EQ(draw_digits(few).train.pixels, draw_digits(few).train.pixels);
  EXPECT_NE(draw_digits(few).train.pixels, draw_digits(other).train.pixels);
  EXPECT_NE(draw_digits(few).train.labels, draw_digits(other).train.labels);
}

TEST(Digits, ClassesAreBalancedAndMixed) {
  std::array<uint32_t, 10> train{}, test{};
  for (uint8_t label : drawn().train.labels) ++train.at(label);
  for (uint8_t label : drawn().test.labels) ++test.at(label);
  EXPECT_THAT(train, testing::Each(1200u));
  EXPECT_THAT(test, testing::Each(200u));
  uint32_t repeats = 0;  // a random order repeats a tenth of the time; a sorted one always
  for (uint32_t i = 1; i < 12000; ++i) {
    repeats += drawn().train.labels[i] == drawn().train.labels[i - 1];
  }
  EXPECT_NEAR(repeats, 1200, 150);
}

// Without ink the pixels are clamped noise: half of them zero, the rest with sigma's spread.
TEST(Digits, CornersHoldNoiseOnly) {
  double squares = 0;
  uint32_t zeros = 0;
  for (uint32_t i = 0; i < 12000; ++i) {
    const double value = drawn().train.image(i)[0] / 255.0;
    squares += value * value;
    zeros += value == 0;
  }
  EXPECT_NEAR(zeros / 12000.0, 0.5, 0.02);
  EXPECT_NEAR(squares / 12000, 0.2 * 0.2 / 2, 0.0015);
}

TEST(Digits, RefusesBadRecipes) {
  EXPECT_THAT(error_text<InvalidArgument>([] { draw_digits({.train_count = 20'000'000}); }),
              testing::HasSubstr("20000000"));
  EXPECT_THAT(error_text<InvalidArgument>([] { draw_digits({.min_scale = 0}); }),
              testing::HasSubstr("scale 0..1.2"));
}

}  // namespace
}  // namespace tuff::models
