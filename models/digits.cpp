#include "models/digits.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "models/glyphs.h"
#include "models/reference_random.h"

namespace tuff::models {
namespace {

// Streams of the counter-based generator: one for the order of a set, one per image.
constexpr uint32_t kOrderStream = 0x30000;
constexpr uint32_t kTrainImageStream = 0x40000000, kTestImageStream = 0x80000000;

// Indices within an image's stream.
enum Draw : uint32_t { kShape, kShiftX, kShiftY, kRotation, kScale, kWidth, kFirstNoise = 16 };

constexpr double kGlyphPixels = 18;                         // height of a glyph at scale 1
constexpr double kMinHalfWidth = 0.8, kMaxHalfWidth = 1.4;  // of a stroke, pixels

void check_recipe(const DigitRecipe& r) {
  if (r.train_count > io::kMaxImages || r.test_count > io::kMaxImages) {
    fail<InvalidArgument>("draw_digits: {} + {} images; each set may have at most {}",
                          r.train_count, r.test_count, io::kMaxImages);
  }
  if (!(r.min_scale > 0) || !(r.max_scale >= r.min_scale) || !(r.noise_sigma >= 0)) {
    fail<InvalidArgument>(
        "draw_digits: scale {}..{}, noise sigma {}: the scale must rise from above "
        "0, sigma must not be negative",
        r.min_scale, r.max_scale, r.noise_sigma);
  }
}

// Standard normal as the sum of eight uniform bytes (Irwin-Hall): integers, the same everywhere.
double byte_sum_normal(Word2 words) {
  constexpr double kMean = 8 * 127.5;
  constexpr double kDeviation = 209.02312869047925;  // sqrt(8 * (256^2 - 1) / 12)
  uint32_t sum = 0;
  for (uint32_t word : words) {
    for (int shift = 0; shift < 32; shift += 8) sum += word >> shift & 0xff;
  }
  return (sum - kMean) / kDeviation;
}

class ImageDrawer {
 public:
  ImageDrawer(const DigitRecipe& recipe, GlyphUse use)
      : recipe_(recipe), random_(recipe.seed), use_(use), ink_(kDigitExtent * kDigitExtent) {}

  void draw(uint32_t digit, uint32_t index, std::span<uint8_t> pixels) {
    stream_ = (use_ == GlyphUse::Train ? kTrainImageStream : kTestImageStream) + index;
    const auto paths = glyph_paths(digit, use_);
    std::vector<Segment> segments =
        flatten_path(paths[random_.bits(stream_, kShape) % paths.size()]);
    place(segments);
    std::fill(ink_.begin(), ink_.end(), 0.0);
    draw_segments(segments, between(kWidth, kMinHalfWidth, kMaxHalfWidth), kDigitExtent,
                  kDigitExtent, ink_);
    for (uint32_t i = 0; i < pixels.size(); ++i) {
      const double noise = byte_sum_normal(random_.words(stream_, kFirstNoise + i));
      const double value = std::clamp(ink_[i] + recipe_.noise_sigma * noise, 0.0, 1.0);
      pixels[i] = static_cast<uint8_t>(value * 255 + 0.5);
    }
  }

 private:
  double between(Draw what, double low, double high) const {
    return low + (high - low) * random_.uniform(stream_, what);
  }

  // From the glyph's box to pixels: scaled and rotated about the centre, then shifted.
  void place(std::vector<Segment>& segments) const {
    const double scale =
        between(kScale, recipe_.min_scale, recipe_.max_scale) * kGlyphPixels / kGlyphHeight;
    const double shift = recipe_.max_shift_pixels, turn = recipe_.max_rotation_degrees;
    const double cx = kDigitExtent / 2.0 + between(kShiftX, -shift, shift);
    const double cy = kDigitExtent / 2.0 + between(kShiftY, -shift, shift);
    const SinCos angle = exact_sin_cos(between(kRotation, -turn, turn));
    const auto move = [&](double& x, double& y) {
      const double u = (x - kGlyphWidth / 2) * scale, v = (y - kGlyphHeight / 2) * scale;
      x = cx + u * angle.cos - v * angle.sin;
      y = cy + u * angle.sin + v * angle.cos;
    };
    for (Segment& s : segments) {
      move(s.x0, s.y0);
      move(s.x1, s.y1);
    }
  }

  const DigitRecipe& recipe_;
  ReferenceRandom random_;
  GlyphUse use_;
  uint32_t stream_ = 0;
  std::vector<double> ink_;
};

// 0..9 in turn, shuffled (Fisher-Yates).
std::vector<uint8_t> balanced_labels(uint32_t count, uint32_t seed, uint32_t stream) {
  std::vector<uint8_t> labels(count);
  for (uint32_t i = 0; i < count; ++i) labels[i] = static_cast<uint8_t>(i % io::kImageClasses);
  const ReferenceRandom random(seed);
  for (uint32_t i = count; i > 1; --i) {
    std::swap(labels[i - 1], labels[random.bits(stream, i) % i]);
  }
  return labels;
}

io::ImageSet draw_set(const DigitRecipe& recipe, GlyphUse use, uint32_t count) {
  io::ImageSet set{count, kDigitExtent, kDigitExtent, {}, {}};
  const uint32_t order = kOrderStream + (use == GlyphUse::Train ? 0 : 1);
  set.labels = balanced_labels(count, recipe.seed, order);
  const size_t image_bytes = size_t{kDigitExtent} * kDigitExtent;
  set.pixels.resize(count * image_bytes);
  ImageDrawer drawer(recipe, use);
  for (uint32_t i = 0; i < count; ++i) {
    drawer.draw(set.labels[i], i, {set.pixels.data() + i * image_bytes, image_bytes});
  }
  return set;
}

}  // namespace

io::ImageSplit draw_digits(const DigitRecipe& recipe) {
  check_recipe(recipe);
  return {draw_set(recipe, GlyphUse::Train, recipe.train_count),
          draw_set(recipe, GlyphUse::Test, recipe.test_count),
          fmt::format("drawn, seed {}", recipe.seed)};
}

}  // namespace tuff::models
