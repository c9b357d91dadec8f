#include "base/env.h"

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <mutex>
#include <sstream>

#include "base/check.h"

namespace tuff {
namespace {

constexpr EnvRow kRows[] = {
#define TUFF_ENV(name, kind, default_value, prose) {#name, EnvKind::kind, default_value, prose},
#include "base/env.def"
#undef TUFF_ENV
};
constexpr size_t kCount = std::size(kRows);

const EnvRow& row_of(Env v) {
  TUFF_CHECK(size_t(v) < kCount, "environment variable {} is outside the table", int(v));
  return kRows[size_t(v)];
}

// The values as read at first use, and a lock, since an override may meet readers on other threads.
struct Values {
  std::mutex mutex;
  std::array<std::string, kCount> text;
  std::atomic<uint32_t> generation{1};

  Values() {
    for (size_t i = 0; i < kCount; ++i) {
      text[i] = system_env(kRows[i].name);
      if (text[i].empty()) text[i] = kRows[i].default_value;
    }
  }
};
Values& values() {
  static Values v;
  return v;
}

std::string exchange_text(Env v, std::string text) {
  row_of(v);
  Values& all = values();
  std::lock_guard lock(all.mutex);
  std::swap(all.text[size_t(v)], text);
  all.generation.fetch_add(1, std::memory_order_release);
  return text;
}

}  // namespace

std::span<const EnvRow> env_rows() { return kRows; }

std::string env_text(Env v) {
  row_of(v);
  Values& all = values();
  std::lock_guard lock(all.mutex);
  return all.text[size_t(v)];
}

int64_t env_int(Env v) {
  const std::string text = env_text(v);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    fail<InvalidArgument>("{}='{}' is no 64-bit decimal integer; unset it for the default '{}'",
                          row_of(v).name, text, row_of(v).default_value);
  return value;
}

bool env_flag(Env v) {
  const std::string text = env_text(v);
  if (text == "1" || text == "true" || text == "on") return true;
  if (text == "0" || text == "false" || text == "off") return false;
  fail<InvalidArgument>("{}='{}' is no flag; say 0, 1, true, false, on or off", row_of(v).name,
                        text);
}

std::vector<std::string> env_names(Env v) {
  std::vector<std::string> out;
  std::istringstream text(env_text(v));
  for (std::string word; std::getline(text, word, ',');) {
    if (!word.empty()) out.push_back(word);
  }
  return out;
}

uint32_t env_generation() { return values().generation.load(std::memory_order_acquire); }

std::string system_env(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

EnvOverride::EnvOverride(Env v, std::string value)
    : var_(v), before_(exchange_text(v, std::move(value))) {}
EnvOverride::~EnvOverride() { exchange_text(var_, std::move(before_)); }

}  // namespace tuff
