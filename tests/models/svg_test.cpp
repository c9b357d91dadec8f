#include "models/svg.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "base/os.h"
#include "io/scratch_folder.h"

namespace tuff::models {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Tags nest and close, attributes are quoted, no bare '&' or '<': what an XML parser insists on.
std::string xml_fault(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = 0; at < xml.size();) {
    if (xml[at] == '&' && xml.find(';', at) > at + 6) return "bare & in text";
    if (xml[at] != '<') {
      ++at;
      continue;
    }
    const size_t end = xml.find('>', at);
    if (end == std::string::npos) return "tag without end";
    const std::string tag = xml.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.find('<') != std::string::npos) return "< within tag " + tag;
    if (std::count(tag.begin(), tag.end(), '"') % 2) return "odd quotes in " + tag;
    const std::string name =
        tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return "unexpected </" + tag;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

Curve loss_curve() {
  Curve curve{"training", {}};
  for (int step = 0; step < 300; ++step)
    curve.points.push_back({double(step), 4.5 * std::exp(-step / 90.0)});
  return curve;
}

TEST(Svg, WellFormedWithAwkwardNames) {
  const Curve curves[] = {loss_curve(), {"<validation> & \"rest\"", {{0, 4.6}, {299, 2}}, true}};
  const std::string svg = line_chart_svg({"a < b & c\x01", "step", "loss (nats)"}, curves);
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, HasSubstr("&lt;validation&gt; &amp; &quot;rest&quot;"));
  EXPECT_THAT(svg, HasSubstr("<circle"));
  EXPECT_THAT(svg, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(svg, Not(HasSubstr("\x01")));
}

TEST(Svg, NonFinitePointsBreakTheLine) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const Curve curve{"loss", {{0, 1}, {1, 2}, {2, nan}, {3, inf}, {4, 2}, {5, 1}}};
  const std::string svg = line_chart_svg({"t", "x", "y"}, {&curve, 1});
  EXPECT_EQ(xml_fault(svg), "");
  const size_t path = svg.find(" d=\"");
  const std::string d = svg.substr(path, svg.find('"', path + 4) - path);
  EXPECT_EQ(std::count(d.begin(), d.end(), 'M'), 2);
  EXPECT_EQ(std::count(d.begin(), d.end(), 'L'), 2);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(Svg, NothingToDrawIsStillAChart) {
  EXPECT_EQ(xml_fault(line_chart_svg({"empty", "x", "y"}, {})), "");
  const Curve point{"one", {{7, 3}}};
  const std::string svg = line_chart_svg({"one point", "x", "y"}, {&point, 1});
  EXPECT_EQ(xml_fault(svg), "");
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(Svg, TicksAreRound) {
  EXPECT_THAT(chart_ticks(0, 300, 9), ElementsAre(0, 50, 100, 150, 200, 250, 300));
  EXPECT_THAT(chart_ticks(1.9, 4.6, 7), ElementsAre(2, 2.5, 3, 3.5, 4, 4.5));
  EXPECT_LE(chart_ticks(-1e-9, 1e12, 7).size(), 8u);
}

TEST(Svg, WritesTheFile) {
  const ScratchFolder folder;
  const Curve curve = loss_curve();
  write_line_chart(folder.path("loss.svg"), {"t", "x", "y"}, {&curve, 1});
  EXPECT_EQ(os::read_text(folder.path("loss.svg")), line_chart_svg({"t", "x", "y"}, {&curve, 1}));
}

}  // namespace
}  // namespace tuff::models
