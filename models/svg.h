// Line charts of losses over steps, as SVG 1.1. Called by the trainers.
// Must never know what was trained; readable on light and dark grounds (its own colours for both).
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tuff::models {

struct CurvePoint {
  double step, value;
};
struct Curve {
  std::string name;  // legend
  std::vector<CurvePoint> points;
  bool markers = false;  // a dot on each point, for sparse curves such as validation
};
struct ChartText {
  std::string title, x_label, y_label;
};

// Points that are not finite are left out and break the line. Up to six curves differ in colour.
std::string line_chart_svg(const ChartText& text, std::span<const Curve> curves);
// IoError from os::write_text.
void write_line_chart(const std::string& path, const ChartText& text,
                      std::span<const Curve> curves);

// Round tick positions (1, 2 or 5 times a power of ten) within [low, high].
std::vector<double> chart_ticks(double low, double high, int at_most);

}  // namespace tuff::models
