// The digits as vector strokes, in several shapes each, and their antialiased rasterization.
// Called by the digit drawer alone. Must never call libm's sin, cos or exp: their last bits differ
// between machines, the images must not (only + - * / sqrt, and no fused multiply-add).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tuff::models {

// Training and test shapes are disjoint, so that a test asks for the digit and not for the shape.
enum class GlyphUse : uint8_t { Train, Test };

// Paths in a box 10 wide and 14 high, y downwards: "M x y" lifts the pen, "L x y" draws a line,
// "Q cx cy x y" a quadratic curve, "A cx cy rx ry from to" an elliptic arc in degrees, clockwise.
std::span<const std::string_view> glyph_paths(uint32_t digit, GlyphUse use);
inline constexpr double kGlyphWidth = 10, kGlyphHeight = 14;

struct Segment {
  double x0, y0, x1, y1;
};
// Curves flattened to lines. InvalidArgument naming the command that is wrong.
std::vector<Segment> flatten_path(std::string_view path);

struct SinCos {
  double sin, cos;
};
SinCos exact_sin_cos(double degrees);  // Taylor polynomial; same bits everywhere

// Ink of round strokes by distance: 1 inside, 0 outside, linear over one pixel at the edge.
// Coordinates are pixels, the first pixel's centre is (0.5, 0.5); `ink` is [rows, cols], kept at
// the larger value where strokes overlap.
void draw_segments(std::span<const Segment> segments, double half_width, uint32_t rows,
                   uint32_t cols, std::span<double> ink);

}  // namespace tuff::models
