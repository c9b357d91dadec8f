// How a call of the emulated kernel driver ends that it does not take: errno's value and why, in
// words that help to mend the caller. Thrown by what emulates a kernel driver, caught where calls
// enter (machine.cpp), never seen outside.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <utility>

namespace tuff::emu {

struct Refused {
  int error;
  std::string why;
  bool mistake = true;  // of the caller; else something has run out, which happens to the best
};

template <class... Args>
[[noreturn]] void refuse(int error, fmt::format_string<Args...> text, Args&&... args) {
  throw Refused{error, fmt::format(text, std::forward<Args>(args)...)};
}
template <class... Args>
[[noreturn]] void run_out(int error, fmt::format_string<Args...> text, Args&&... args) {
  throw Refused{error, fmt::format(text, std::forward<Args>(args)...), false};
}

// errno of Linux's own that user space has no name for: "operation is not supported".
inline constexpr int kNotSupported = 524;

}  // namespace tuff::emu
