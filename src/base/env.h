// Environment variables, all declared in env.def. Called by every room; no other code calls getenv.
// Values are read once at first use; tests scope changes with EnvOverride. A value that is not
// allowed is InvalidArgument, wherever it is asked for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tuff {

enum class Env : uint8_t {
#define TUFF_ENV(name, kind, default_value, allowed, prose) name,
#include "base/env.def"
#undef TUFF_ENV
};

enum class EnvKind : uint8_t { Flag, Int, Choice, Text };
struct EnvRow {
  const char* name;
  EnvKind kind;
  const char* default_value;
  const char* allowed;
  const char* prose;
};
std::span<const EnvRow> env_rows();
std::string env_allowed(const EnvRow& row);  // in words; empty for Text

// Checks all variables, also those that this run does not use, and warns once per process about
// unknown variables named TUFF_... Called before a device is opened, so that nothing is begun.
void check_environment();

std::string env_text(Env v);
int64_t env_int(Env v);
bool env_flag(Env v);  // 0/1/true/false/on/off

std::vector<std::string> env_names(Env v);  // what commas divide

// Rises with every EnvOverride made or ended: compared by code that caches a parsed value.
uint32_t env_generation();

// A variable of the system and not of tuff (PATH, HOME, XDG_CACHE_HOME); empty if unset.
std::string system_env(const char* name);

// Sets a variable for the life of the object, on all threads. For tests and the CLI's flags.
class EnvOverride {
 public:
  EnvOverride(Env v, std::string value);
  ~EnvOverride();
  EnvOverride(const EnvOverride&) = delete;

 private:
  Env var_;
  std::string before_;
};

}  // namespace tuff
