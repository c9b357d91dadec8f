// Groups of devices: where a tensor lies that has a part, or a copy, on each of several. A group's
// name is its devices' names in order, "CPU,CPU:1", so that it stands wherever one device's does:
// Node::device, Placement. Called by sched/shards.h and tensor.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tuff::ir {

// Of canonical names. InvalidArgument if one stands there twice.
std::string group_name(std::span<const std::string> devices);
// Files have names with commas: no group has one.
bool is_group(std::string_view device);
// Those of a group, in order; of one device, itself.
std::vector<std::string> group_members(std::string_view device);
// Whether this process has named a group yet: while it has not, no graph needs to be searched.
bool any_group();

}  // namespace tuff::ir
