#include "emu/run/results.h"

#include <fmt/format.h>

#include <algorithm>

#include <tuff/dtype.h>

namespace tuff::emu {
namespace {

Json values_of(const EmuBuffer& b) {
  Json values = Json::array();
  for (size_t at = 0; at + size_bytes(b.dtype) <= b.bytes.size(); at += size_bytes(b.dtype)) {
    const Scalar value = load_scalar(b.dtype, b.bytes.data() + at);
    if (is_float(b.dtype))
      values.push_back(value.as_double());
    else if (is_unsigned(b.dtype))
      values.push_back(value.bits);
    else
      values.push_back(value.as_int());
  }
  return values;
}

void print_buffer(const EmuBuffer& b) {
  constexpr size_t kShown = 16;
  const Json values = values_of(b);
  std::string text;
  for (size_t k = 0; k < std::min(values.size(), kShown); ++k) text += " " + values[k].dump();
  fmt::print("args[{}], {} {}:{}{}\n", b.argument, values.size(), name(b.dtype), text,
             values.size() > kShown ? " ..." : "");
}

}  // namespace

Json buffers_json(const EmuLaunch& launch) {
  Json buffers = Json::array();
  for (const EmuBuffer& b : launch.buffers) {
    buffers.push_back({{"argument", b.argument},
                       {"dtype", short_name(b.dtype)},
                       {"changed", b.bytes != b.before},
                       {"values", values_of(b)}});
  }
  return buffers;
}

void print_changed(const EmuLaunch& launch) {
  for (const EmuBuffer& b : launch.buffers) {
    if (b.bytes != b.before) print_buffer(b);
  }
}

void print_counts(const std::map<std::string, uint64_t>& counts) {
  for (const auto& [mnemonic, count] : counts) fmt::print("{:>12} {}\n", count, mnemonic);
}

}  // namespace tuff::emu
