// Colours, the progress bar and what a terminal may be shown. Called by the commands. Colours only
// on a terminal and not under NO_COLOR (no-color.org); progress goes to standard error, as a bar on
// a terminal, else a line now and then.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tuff::cli {

struct Style {
  std::string bold, good, warn, dim, plain;
  static Style of_stdout();
  static Style of_stderr();
};

// Names and texts of files may hold anything: what commands a terminal (control characters, also
// those of U+0080 to U+009F), changes the direction of text or is no UTF-8 becomes \x1b, \u202e.
std::string printable(std::string_view text);

class ProgressBar {
 public:
  // `what`: short, in front of the bar, which is full at `total`.
  ProgressBar(std::string what, uint64_t total);
  ~ProgressBar();  // leaves the line clean
  ProgressBar(const ProgressBar&) = delete;
  // At most ten redraws a second, or one line every ten seconds; otherwise costs a clock reading.
  // `facts()`: what stands behind the bar.
  template <class Facts>
  void update(uint64_t done, const Facts& facts) {
    if (due(done)) draw(done, facts());
  }
  void clear();  // before something else is printed to the terminal

 private:
  bool due(uint64_t done);
  void draw(uint64_t done, const std::string& facts);
  std::string what_;
  uint64_t total_;
  Style style_;
  bool terminal_, drawn_ = false;
  uint64_t next_ns_;
};

}  // namespace tuff::cli
