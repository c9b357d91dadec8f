// Json, and one object of it per line on standard output. Called by the commands under --json, the
// benchmarks and the emulator's runner. Not included by headers of the corridor: it is heavy to
// parse.
#pragma once

#include <cstdio>

#include <nlohmann/json.hpp>

#include <fmt/format.h>

namespace tuff {

using Json = nlohmann::ordered_json;

// Bytes that are no UTF-8 are replaced, numbers that are not finite become null.
inline void print_json(const Json& object) {
  fmt::print(stdout, "{}\n", object.dump(-1, ' ', false, Json::error_handler_t::replace));
  std::fflush(stdout);
}

}  // namespace tuff
