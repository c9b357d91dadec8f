#include "ir/device_group.h"

#include <algorithm>
#include <atomic>

#include <fmt/ranges.h>

#include "base/check.h"

namespace tuff::ir {
namespace {

std::atomic<bool> named{false};

}  // namespace

std::string group_name(std::span<const std::string> devices) {
  for (size_t i = 0; i < devices.size(); i++) {
    if (std::find(devices.begin(), devices.begin() + ptrdiff_t(i), devices[i]) !=
        devices.begin() + ptrdiff_t(i))
      fail<InvalidArgument>(
          "shard: {} is named twice in {}: each device holds one part (CPU and CPU:1 are two "
          "in one machine)",
          devices[i], fmt::join(devices, ","));
  }
  if (devices.size() > 1) named.store(true, std::memory_order_relaxed);
  return fmt::format("{}", fmt::join(devices, ","));
}

bool is_group(std::string_view device) {
  return device.find(',') != std::string_view::npos && !device.starts_with("DISK:");
}

std::vector<std::string> group_members(std::string_view device) {
  if (!is_group(device)) return {std::string(device)};
  std::vector<std::string> out;
  for (size_t at = 0; at <= device.size();) {
    const size_t end = std::min(device.find(',', at), device.size());
    out.emplace_back(device.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool any_group() { return named.load(std::memory_order_relaxed); }

}  // namespace tuff::ir
