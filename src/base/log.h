// Logging to stderr, level by TUFF_LOG; and debug lines, level by TUFF_DEBUG.
// Called by every room. Never writes to stdout, which belongs to results.
#pragma once

#include <fmt/format.h>

#include "base/env.h"

namespace tuff {

enum class LogLevel : uint8_t { Trace, Debug, Info, Warn, Error, Off };
void log_line(LogLevel level, const std::string& text);

template <class... Args>
void log_warn(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::Warn, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_info(fmt::format_string<Args...> text, Args&&... args) {
  log_line(LogLevel::Info, fmt::format(text, std::forward<Args>(args)...));
}

// TUFF_DEBUG's level, cached; cheap enough for hot paths.
int debug_level();
void debug_line(const std::string& text);  // one line on stderr, as it is
#define TUFF_DEBUG_LINE(level, ...)                    \
  do {                                                 \
    if (::tuff::debug_level() >= (level)) [[unlikely]] \
      ::tuff::debug_line(::fmt::format(__VA_ARGS__));  \
  } while (0)

}  // namespace tuff
