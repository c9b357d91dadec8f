#include "models/svg.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "base/os.h"

namespace tuff::models {
namespace {

constexpr double kWidth = 760, kHeight = 440;  // user units
constexpr double kLeft = 70, kRight = 20, kTop = 48, kBottom = 56;
constexpr size_t kColours = 6;

// Okabe and Ito's colours, distinguishable with colour blindness; lighter ones on a dark ground.
constexpr const char* kStyle = R"(<style>
 .ground{fill:#ffffff} .text{fill:#222222;font:13px sans-serif} .title{font-size:16px}
 .grid{stroke:#dddddd} .axis{stroke:#555555} .line{fill:none;stroke-width:1.8;stroke-linejoin:round}
 .c0{stroke:#0072b2} .c1{stroke:#d55e00} .c2{stroke:#009e73} .c3{stroke:#cc79a7} .c4{stroke:#7a5c00} .c5{stroke:#444444}
 .dot{fill:#ffffff;stroke-width:2}
 @media (prefers-color-scheme:dark){
 .ground,.dot{fill:#16181d} .text{fill:#e4e4e4} .grid{stroke:#33363d} .axis{stroke:#9a9a9a}
 .c0{stroke:#56b4e9} .c1{stroke:#ff9f40} .c2{stroke:#2fd0a0} .c3{stroke:#e79fc8} .c4{stroke:#f0e442} .c5{stroke:#bbbbbb}}
</style>
)";

std::string escape(const std::string& text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // XML 1.0 forbids the others
    }
  }
  return out;
}

bool drawable(const CurvePoint& p) { return std::isfinite(p.step) && std::isfinite(p.value); }

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void take(double v) {
    low = std::min(low, v);
    high = std::max(high, v);
  }
  // Never empty and never a point.
  void settle() {
    if (!(low <= high)) low = 0, high = 1;
    if (low == high) low -= 0.5, high += 0.5;
  }
};

class Chart {
 public:
  Chart(const ChartText& text, std::span<const Curve> curves) : text_(text), curves_(curves) {
    for (const Curve& curve : curves) {
      for (const CurvePoint& p : curve.points) {
        if (!drawable(p)) continue;
        x_.take(p.step);
        y_.take(p.value);
      }
    }
    x_.settle();
    y_.settle();
    const double margin = (y_.high - y_.low) * 0.05;
    y_.low = y_.low >= 0 ? std::max(0.0, y_.low - margin) : y_.low - margin;
    y_.high += margin;
  }

  std::string draw() {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
        "viewBox=\"0 0 {0} {1}\" role=\"img\">\n<title>{2}</title>\n",
        kWidth, kHeight, escape(text_.title));
    out_ += kStyle;
    out_ += fmt::format("<rect class=\"ground\" width=\"{}\" height=\"{}\"/>\n", kWidth, kHeight);
    draw_axes();
    for (size_t i = 0; i < curves_.size(); ++i) draw_curve(curves_[i], i % kColours);
    draw_legend();
    return out_ + "</svg>\n";
  }

 private:
  double px(double step) const {
    return kLeft + (step - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight);
  }
  double py(double value) const {
    return kHeight - kBottom - (value - y_.low) / (y_.high - y_.low) * (kHeight - kTop - kBottom);
  }
  void line(const char* style, double x0, double y0, double x1, double y1) {
    out_ += fmt::format(
        "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", style, x0,
        y0, x1, y1);
  }
  void label(double x, double y, const char* anchor, const std::string& words,
             const char* style = "text", const char* more = "") {
    out_ +=
        fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n",
                    style, x, y, anchor, more, escape(words));
  }

  void draw_axes() {
    const double bottom = kHeight - kBottom;
    for (double tick : chart_ticks(y_.low, y_.high, 7)) {
      line("grid", kLeft, py(tick), kWidth - kRight, py(tick));
      label(kLeft - 8, py(tick) + 4, "end", fmt::format("{:.6g}", tick));
    }
    for (double tick : chart_ticks(x_.low, x_.high, 9)) {
      line("axis", px(tick), bottom, px(tick), bottom + 5);
      label(px(tick), bottom + 20, "middle", fmt::format("{:.6g}", tick));
    }
    line("axis", kLeft, bottom, kWidth - kRight, bottom);
    line("axis", kLeft, kTop, kLeft, bottom);
    label(kLeft, 26, "start", text_.title, "text title");
    label((kLeft + kWidth - kRight) / 2, kHeight - 14, "middle", text_.x_label);
    const std::string turn =
        fmt::format(" transform=\"rotate(-90 18 {0:.1f})\"", (kTop + bottom) / 2);
    label(18, (kTop + bottom) / 2, "middle", text_.y_label, "text", turn.c_str());
  }

  void draw_curve(const Curve& curve, size_t colour) {
    std::string path;
    bool pen_down = false;
    for (const CurvePoint& p : curve.points) {
      if (!drawable(p)) {
        pen_down = false;
        continue;
      }
      path += fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", px(p.step), py(p.value));
      pen_down = true;
    }
    if (path.empty()) return;
    out_ += fmt::format("<path class=\"line c{}\" d=\"{}\"/>\n", colour, path);
    if (!curve.markers) return;
    for (const CurvePoint& p : curve.points) {
      if (drawable(p)) dot(px(p.step), py(p.value), colour);
    }
  }
  void dot(double x, double y, size_t colour) {
    out_ += fmt::format("<circle class=\"dot c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"/>\n", colour,
                        x, y);
  }

  void draw_legend() {
    const double x = kWidth - kRight - 170;
    for (size_t i = 0; i < curves_.size(); ++i) {
      const double y = kTop + 14 + 20 * static_cast<double>(i);
      const std::string style = fmt::format("line c{}", i % kColours);
      line(style.c_str(), x, y, x + 26, y);
      if (curves_[i].markers) dot(x + 13, y, i % kColours);
      label(x + 34, y + 4, "start", curves_[i].name);
    }
  }

  const ChartText& text_;
  std::span<const Curve> curves_;
  Range x_, y_;
  std::string out_;
};

}  // namespace

std::vector<double> chart_ticks(double low, double high, int at_most) {
  TUFF_CHECK(low < high && at_most >= 1);
  const double rough = (high - low) / at_most;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = power * 10;
  for (double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough) step = factor * power;
  }
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9);
  for (double i = first; i * step <= high + step * 1e-9; i += 1)
    ticks.push_back(i == 0 ? 0 : i * step);
  return ticks;
}

std::string line_chart_svg(const ChartText& text, std::span<const Curve> curves) {
  return Chart(text, curves).draw();
}

void write_line_chart(const std::string& path, const ChartText& text,
                      std::span<const Curve> curves) {
  os::write_text(path, line_chart_svg(text, curves));
}

}  // namespace tuff::models
