// Colours and the progress bar. Called by the commands. Colours only on a terminal and not under
// NO_COLOR (no-color.org); progress goes to standard error, as a bar on a terminal, else a line now
// and then.
#pragma once

#include <cstdint>
#include <string>

namespace tuff::cli {

struct Style {
  std::string bold, good, warn, dim, plain;
  static Style of_stdout();
  static Style of_stderr();
};

class ProgressBar {
 public:
  // `what`: short, in front of the bar.
  ProgressBar(std::string what, uint32_t steps);
  ~ProgressBar();  // leaves the line clean
  ProgressBar(const ProgressBar&) = delete;
  // At most ten redraws a second, or one line every ten seconds; otherwise costs a clock reading.
  void update(uint32_t step, double loss, double step_ms);
  void clear();  // before something else is printed to the terminal

 private:
  bool due(uint32_t step);
  void draw(uint32_t step, double loss, double step_ms);
  std::string what_;
  uint32_t steps_;
  Style style_;
  bool terminal_, drawn_ = false;
  uint64_t next_ns_;
};

}  // namespace tuff::cli
