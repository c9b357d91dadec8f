#include "cli/terminal.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "base/env.h"
#include "base/os.h"
#include "base/utf8.h"

namespace tuff::cli {
namespace {

constexpr int kStdout = 1, kStderr = 2;
constexpr uint64_t kRedrawNs = 100'000'000, kLineNs = 10'000'000'000;

Style style_of(int fd) {
  if (!os::is_terminal(fd) || !system_env("NO_COLOR").empty()) return {};
  return {"\x1b[1m", "\x1b[32m", "\x1b[33m", "\x1b[2m", "\x1b[0m"};
}

// Unicode's control characters, separators of lines, marks of direction (UAX #9).
bool is_command(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto [code, bytes] = first_character(text);
    if (bytes == 0 || (is_command(code) && code < 0x80))
      out += fmt::format("\\x{:02x}", uint8_t(text[0]));
    else if (is_command(code))
      out += fmt::format("\\u{:04x}", code);
    else
      out += text.substr(0, bytes);
    text.remove_prefix(std::max<size_t>(1, bytes));
  }
  return out;
}

Style Style::of_stdout() { return style_of(kStdout); }
Style Style::of_stderr() { return style_of(kStderr); }

ProgressBar::ProgressBar(std::string what, uint64_t total)
    : what_(std::move(what)),
      total_(total),
      style_(Style::of_stderr()),
      terminal_(os::is_terminal(kStderr)),
      next_ns_(os::monotonic_ns() + (terminal_ ? 0 : kLineNs)) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::clear() {
  if (!drawn_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  drawn_ = false;
}

bool ProgressBar::due(uint64_t done) {
  const uint64_t now = os::monotonic_ns();
  if (now < next_ns_ && !(terminal_ && done == total_)) return false;
  next_ns_ = now + (terminal_ ? kRedrawNs : kLineNs);
  return true;
}

void ProgressBar::draw(uint64_t done, const std::string& facts) {
  if (!terminal_) {
    fmt::print(stderr, "{}: {}\n", what_, facts);
    return;
  }
  const int width = os::terminal_width(kStderr);
  const int room = std::clamp(width - int(what_.size() + facts.size()) - 6, 0, 40);
  const int full = int(double(room) * double(done) / double(std::max<uint64_t>(1, total_)));
  fmt::print(stderr, "\r\x1b[K{} {}{:=<{}}{}{:.<{}}{} {}", what_, style_.good, "", full,
             style_.plain + style_.dim, "", room - full, style_.plain, facts);
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace tuff::cli
