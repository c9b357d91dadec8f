#include "base/env.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <sstream>

#include "base/check.h"
#include "base/log.h"
#include "base/nearest.h"
#include "base/os_write_fault.h"
#include "base/parse_number.h"

extern char** environ;

namespace tuff {
namespace {

constexpr EnvRow kRows[] = {
#define TUFF_ENV(name, kind, default_value, allowed, prose) \
  {#name, EnvKind::kind, default_value, allowed, prose},
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

  std::string read(Env v) {
    std::lock_guard lock(mutex);
    return text[size_t(v)];
  }
};
Values& values() {
  static Values v;
  return v;
}

// An integer that the row allows.
std::optional<int64_t> integer_of(const EnvRow& row, const std::string& text) {
  const std::optional<int64_t> value = parse_number<int64_t>(text);
  const std::string_view allowed = row.allowed;
  if (!value || allowed.empty()) return value;
  const size_t dots = allowed.find("..");
  const bool fits = *value >= parse_number<int64_t>(allowed.substr(0, dots)).value() &&
                    *value <= parse_number<int64_t>(allowed.substr(dots + 2)).value();
  return fits ? value : std::nullopt;
}

std::optional<bool> flag_of(std::string_view text) {
  if (text == "1" || text == "true" || text == "on") return true;
  if (text == "0" || text == "false" || text == "off") return false;
  return std::nullopt;
}

std::vector<std::string> words_of(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, separator);)
    if (!word.empty()) out.push_back(word);
  return out;
}

bool is_choice(const EnvRow& row, const std::string& text) {
  const std::vector<std::string> all = words_of(row.allowed, '|');
  return text == row.default_value || std::ranges::find(all, text) != all.end();
}

bool allows(const EnvRow& row, const std::string& text) {
  switch (row.kind) {
    case EnvKind::Flag: return flag_of(text).has_value();
    case EnvKind::Int: return integer_of(row, text).has_value();
    case EnvKind::Choice: return is_choice(row, text);
    case EnvKind::Text: break;
  }
  return true;
}

[[noreturn]] void refuse(const EnvRow& row, const std::string& text) {
  constexpr size_t kShown = 100;
  const bool has_default = *row.default_value != 0;
  fail<InvalidArgument>("{}='{}{}' is not {}; {}", row.name, text.substr(0, kShown),
                        text.size() > kShown ? "..." : "", env_allowed(row),
                        has_default ? fmt::format("the default is {}", row.default_value)
                                    : "unset it for the default");
}

void warn_of_unknown_names() {
  std::vector<std::string> known;
  for (const EnvRow& row : kRows) known.emplace_back(row.name);
  for (char** entry = ::environ; entry && *entry; ++entry) {
    const std::string name(*entry, std::strcspn(*entry, "="));
    if (!name.starts_with("TUFF_")) continue;
    // The tests' own variables, and not tuff's.
    if (name.starts_with("TUFF_TEST_") || name == "TUFF_UPDATE_GOLDENS") continue;
    if (std::ranges::find(known, name) == known.end())
      log_warn("there is no variable {}{} (`tuff docs env` lists them)", name,
               did_you_mean(name, known));
  }
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

std::string env_allowed(const EnvRow& row) {
  switch (row.kind) {
    case EnvKind::Flag: return "0, 1, true, false, on or off";
    case EnvKind::Int: {
      const std::string_view allowed = row.allowed;
      if (allowed.empty()) return "a 64-bit decimal integer";
      const size_t dots = allowed.find("..");
      return fmt::format("an integer from {} to {}", allowed.substr(0, dots),
                         allowed.substr(dots + 2));
    }
    case EnvKind::Choice: {
      const std::vector<std::string> all = words_of(row.allowed, '|');
      std::string out;
      for (const std::string& word : all)
        out += (out.empty() ? "" : &word == &all.back() ? " or " : ", ") + word;
      return out;
    }
    case EnvKind::Text: break;
  }
  return {};
}

void check_environment() {
  static std::atomic<bool> checked{false}, warned{false};
  if (checked.load(std::memory_order_acquire)) return;
  if (!warned.exchange(true)) warn_of_unknown_names();
  for (size_t i = 0; i < kCount; ++i) {
    const std::string text = values().read(Env(i));
    if (!allows(kRows[i], text)) refuse(kRows[i], text);
  }
  os::check_write_fault();
  checked.store(true, std::memory_order_release);
}

std::string env_text(Env v) {
  const EnvRow& row = row_of(v);
  std::string text = values().read(v);
  if (row.kind == EnvKind::Choice && !is_choice(row, text)) refuse(row, text);
  return text;
}

int64_t env_int(Env v) {
  const EnvRow& row = row_of(v);
  const std::string text = env_text(v);
  const std::optional<int64_t> value = integer_of(row, text);
  if (!value) refuse(row, text);
  return *value;
}

bool env_flag(Env v) {
  const EnvRow& row = row_of(v);
  const std::string text = env_text(v);
  const std::optional<bool> value = flag_of(text);
  if (!value) refuse(row, text);
  return *value;
}

std::vector<std::string> env_names(Env v) { return words_of(env_text(v), ','); }

uint32_t env_generation() { return values().generation.load(std::memory_order_acquire); }

std::string system_env(const char* name) {
  const char* text = std::getenv(name);
  return text ? text : "";
}

EnvOverride::EnvOverride(Env v, std::string value)
    : var_(v), before_(exchange_text(v, std::move(value))) {}
EnvOverride::~EnvOverride() { exchange_text(var_, std::move(before_)); }

}  // namespace tuff
