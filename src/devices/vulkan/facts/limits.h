// TUFF_VK_LIMIT: numbers that a driver reports, lowered, so that small devices are tested on large
// ones. Called when Facts are gathered and by `tuff devices` and `tuff docs`. Never raises a
// number; must never know what they are used for.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "devices/vulkan/facts/facts.h"

namespace tuff::devices::vulkan {

// Lowers what a list like "ssbo:4,shared:16384" names. InvalidArgument listing the names of
// limits.def for one that is not there, and naming the lowest value for one that is too small.
void apply_limits(Facts& facts, const std::string& list);

// The values in force, in the order of limits.def; "unlimited" where the driver knows none.
std::vector<std::pair<std::string, std::string>> limit_values(const Facts& facts);

}  // namespace tuff::devices::vulkan
