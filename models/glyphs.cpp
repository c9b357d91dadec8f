#include "models/glyphs.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/check.h"

namespace tuff::models {
namespace {

constexpr int kCurveSteps = 10;
constexpr double kArcStepDegrees = 15;

// Reads "M 1 .5 L 2 3 ..." and keeps the pen.
class PathReader {
 public:
  explicit PathReader(std::string_view path) : path_(path) {}

  std::vector<Segment> read() {
    while (skip_spaces()) command(path_[at_++]);
    return std::move(segments_);
  }

 private:
  bool skip_spaces() {
    while (at_ < path_.size() && path_[at_] == ' ') ++at_;
    return at_ < path_.size();
  }

  double number() {
    double value = 0;
    skip_spaces();
    const char* begin = path_.data() + at_;
    const auto [end, error] = std::from_chars(begin, path_.data() + path_.size(), value);
    if (error != std::errc{}) {
      fail<InvalidArgument>("glyph path '{}': no number at character {}", path_, at_);
    }
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  void command(char letter) {
    switch (letter) {
      case 'M': {
        x_ = number();
        y_ = number();
        down_ = true;
        return;
      }
      case 'L': {
        const double x = number();
        line_to(x, number());
        return;
      }
      case 'Q': return curve();
      case 'A': return arc();
      default:
        fail<InvalidArgument>("glyph path '{}': command '{}' is none of M, L, Q, A", path_, letter);
    }
  }

  void line_to(double x, double y) {
    if (down_) segments_.push_back({x_, y_, x, y});
    x_ = x;
    y_ = y;
    down_ = true;
  }

  void curve() {
    const double x0 = x_, y0 = y_;
    const double cx = number(), cy = number(), x1 = number(), y1 = number();
    for (int i = 1; i <= kCurveSteps; ++i) {
      const double t = static_cast<double>(i) / kCurveSteps, s = 1 - t;
      line_to(s * s * x0 + 2 * s * t * cx + t * t * x1, s * s * y0 + 2 * s * t * cy + t * t * y1);
    }
  }

  void arc() {
    const double cx = number(), cy = number(), rx = number(), ry = number();
    const double from = number(), to = number();
    const int steps = std::max(1, static_cast<int>((to - from) / kArcStepDegrees));
    for (int i = 0; i <= steps; ++i) {
      const SinCos turn = exact_sin_cos(from + (to - from) * i / steps);
      line_to(cx + rx * turn.cos, cy + ry * turn.sin);
    }
  }

  std::string_view path_;
  size_t at_ = 0;
  double x_ = 0, y_ = 0;
  bool down_ = false;
  std::vector<Segment> segments_;
};

double distance(const Segment& s, double x, double y) {
  const double dx = s.x1 - s.x0, dy = s.y1 - s.y0;
  const double length2 = dx * dx + dy * dy;
  double t = length2 > 0 ? ((x - s.x0) * dx + (y - s.y0) * dy) / length2 : 0;
  t = std::clamp(t, 0.0, 1.0);
  const double ex = x - (s.x0 + t * dx), ey = y - (s.y0 + t * dy);
  return std::sqrt(ex * ex + ey * ey);
}

struct PixelRange {
  uint32_t begin, end;
};
// Pixels whose centre can lie within `reach` of [a, b].
PixelRange pixels_near(double a, double b, double reach, uint32_t count) {
  const double low = std::min(a, b) - reach, high = std::max(a, b) + reach + 1;
  const double limit = count;
  return {static_cast<uint32_t>(std::clamp(std::floor(low), 0.0, limit)),
          static_cast<uint32_t>(std::clamp(std::ceil(high), 0.0, limit))};
}

}  // namespace

std::vector<Segment> flatten_path(std::string_view path) { return PathReader(path).read(); }

SinCos exact_sin_cos(double degrees) {
  constexpr double kPi = 3.14159265358979323846;
  while (degrees > 180) degrees -= 360;
  while (degrees < -180) degrees += 360;
  const double x = degrees * (kPi / 180);
  double sin = 0, cos = 0, term = 1;
  for (int k = 0; k < 32; k += 2) {  // the last term is below 1e-19
    cos += term;
    term = term * x / (k + 1);
    sin += term;
    term = -term * x / (k + 2);
  }
  return {sin, cos};
}

void draw_segments(std::span<const Segment> segments, double half_width, uint32_t rows,
                   uint32_t cols, std::span<double> ink) {
  TUFF_CHECK(ink.size() == size_t{rows} * cols);
  const double reach = half_width + 0.5;
  for (const Segment& s : segments) {
    const PixelRange across = pixels_near(s.x0, s.x1, reach, cols);
    const PixelRange down = pixels_near(s.y0, s.y1, reach, rows);
    for (uint32_t row = down.begin; row < down.end; ++row) {
      for (uint32_t col = across.begin; col < across.end; ++col) {
        const double cover = std::clamp(reach - distance(s, col + 0.5, row + 0.5), 0.0, 1.0);
        double& pixel = ink[size_t{row} * cols + col];
        pixel = std::max(pixel, cover);
      }
    }
  }
}

}  // namespace tuff::models
