// Digits that the program draws itself, for `tuff train digits` without --idx: glyphs in several
// shapes, shifted, rotated, scaled and noised. Called by that trainer and by tests.
// Must never read a clock, a file or the machine: a seed gives the same bytes everywhere.
#pragma once

#include "io/idx.h"

namespace tuff::models {

struct DigitRecipe {
  uint32_t seed = 1;
  uint32_t train_count = 12000;
  uint32_t test_count = 2000;
  double max_shift_pixels = 3;
  double max_rotation_degrees = 20;
  double min_scale = 0.8, max_scale = 1.2;
  double noise_sigma = 0.2;  // of full ink
};
inline constexpr uint32_t kDigitExtent = 28;  // pixels, both ways

// Classes are balanced to within one image and stand in a seeded order. Shapes of the test set do
// not occur in the training set. InvalidArgument for a count above io::kMaxImages or a bad range.
io::ImageSplit draw_digits(const DigitRecipe& recipe);

}  // namespace tuff::models
