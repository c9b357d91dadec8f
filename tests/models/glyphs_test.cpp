#include "models/glyphs.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>
#include <set>

#include "io/scratch_folder.h"
#include "tuff/error.h"

namespace tuff::models {
namespace {

using testing::HasSubstr;

TEST(Glyphs, TestShapesDoNotOccurInTraining) {
  std::set<std::string_view> seen;
  for (uint32_t digit = 0; digit < 10; ++digit) {
    const auto train = glyph_paths(digit, GlyphUse::Train),
               test = glyph_paths(digit, GlyphUse::Test);
    EXPECT_GE(train.size(), 8u);
    EXPECT_GE(test.size(), 3u);
    for (auto shapes : {train, test}) {
      for (std::string_view path : shapes) EXPECT_TRUE(seen.insert(path).second) << path;
    }
  }
  EXPECT_THAT(error_text<InvalidArgument>([] { glyph_paths(10, GlyphUse::Test); }),
              HasSubstr("digit 10"));
}

TEST(Glyphs, EveryShapeStaysInItsBox) {
  for (uint32_t digit = 0; digit < 10; ++digit) {
    for (GlyphUse use : {GlyphUse::Train, GlyphUse::Test}) {
      for (std::string_view path : glyph_paths(digit, use)) {
        const auto segments = flatten_path(path);
        EXPECT_FALSE(segments.empty()) << path;
        for (const Segment& s : segments) {
          EXPECT_TRUE(s.x1 >= 0 && s.x1 <= kGlyphWidth && s.y1 >= 0 && s.y1 <= kGlyphHeight)
              << path;
        }
      }
    }
  }
}

TEST(Glyphs, PathsSayWhatIsWrong) {
  EXPECT_THAT(error_text<InvalidArgument>([] { flatten_path("M 1 2 L 3"); }),
              HasSubstr("no number at character 9"));
  EXPECT_THAT(error_text<InvalidArgument>([] { flatten_path("M 1 2 Z"); }), HasSubstr("'Z'"));
}

TEST(Glyphs, SinCosAgreeWithTheLibrary) {
  for (int degrees = -720; degrees <= 720; degrees += 7) {
    const SinCos turn = exact_sin_cos(degrees);
    const double radians = degrees * std::numbers::pi / 180;
    EXPECT_NEAR(turn.sin, std::sin(radians), 1e-13);
    EXPECT_NEAR(turn.cos, std::cos(radians), 1e-13);
  }
}

// A horizontal stroke of half width 1 along y = 4: rows 3 and 4 are full (their centres are 0.5
// off), rows 2 and 5 (1.5 off) empty.
TEST(Glyphs, InkFallsWithDistance) {
  const Segment stroke{2, 4, 6, 4};
  std::vector<double> ink(8 * 8);
  draw_segments({&stroke, 1}, 1.0, 8, 8, ink);
  EXPECT_EQ(ink[3 * 8 + 4], 1);
  EXPECT_EQ(ink[4 * 8 + 4], 1);
  EXPECT_EQ(ink[2 * 8 + 4], 0);
  EXPECT_EQ(ink[5 * 8 + 4], 0);
  const double end = 1.5 - std::sqrt(1.5 * 1.5 + 0.5 * 0.5);  // round cap past the end
  EXPECT_DOUBLE_EQ(ink[3 * 8 + 7], std::max(0.0, end));
  EXPECT_DOUBLE_EQ(ink[3 * 8 + 6], 1.5 - std::sqrt(0.5));
}

TEST(Glyphs, StrokesOutsideThePictureAreCut) {
  const Segment strokes[] = {{-50, -50, -40, -40}, {100, 3, 200, 3}, {-1e9, 2.5, 1e9, 2.5}};
  std::vector<double> ink(4 * 4);
  draw_segments(strokes, 0.5, 4, 4, ink);
  EXPECT_EQ(ink[2 * 4 + 0], 1);
  EXPECT_EQ(ink[0], 0);
}

}  // namespace
}  // namespace tuff::models
