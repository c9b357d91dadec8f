#include "base/log.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <string_view>

#include <tuff/error.h>

namespace tuff {
namespace {

constexpr std::string_view kLevels[] = {"trace", "debug", "info", "warn", "error", "off"};

// One write per line, so that lines of several threads do not mix.
void write_line(std::string line) {
  line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
}

// Logging is never a reason to fail: check_environment() has said what is wrong.
LogLevel parse_log_level() try {
  const std::string text = env_text(Env::TUFF_LOG);
  return LogLevel(std::ranges::find(kLevels, text) - std::begin(kLevels));
} catch (const InvalidArgument&) {
  return LogLevel::Warn;
}

int parse_debug_level() try {
  return int(env_int(Env::TUFF_DEBUG));
} catch (const InvalidArgument&) {
  return 0;
}

// A value parsed from the environment, parsed again when an override changed the environment.
// High half: env_generation() at parsing; low half: the value.
template <class Parse>
int cached(std::atomic<uint64_t>& slot, Parse parse) {
  const uint64_t generation = env_generation();
  const uint64_t packed = slot.load(std::memory_order_relaxed);
  if (packed >> 32 == generation) [[likely]]
    return int(uint32_t(packed));
  const int value = parse();
  slot.store(generation << 32 | uint32_t(value), std::memory_order_relaxed);
  return value;
}

}  // namespace

void log_line(LogLevel level, const std::string& text) {
  static std::atomic<uint64_t> slot{0};
  const int least = cached(slot, [] { return int(parse_log_level()); });
  if (level == LogLevel::Off || int(level) < least) return;
  write_line(fmt::format("[tuff {}] {}", kLevels[int(level)], text));
}

int debug_level() {
  static std::atomic<uint64_t> slot{0};
  return cached(slot, parse_debug_level);
}

void debug_line(const std::string& text) { write_line(text); }

}  // namespace tuff
