// Device selection: the order of physical devices, selectors, and why there is none.
// Used by vulkan_probe and vulkan_open. Opens no device.
#pragma once

#include <string>
#include <vector>

#include "devices/vulkan/facts/facts.h"

namespace tuff::devices::vulkan {

// Usable ones first, then by rank, by what they can do natively, and by UUID: index 0 is the best.
std::vector<Facts> list_devices(const Instance& instance);

// Index into `devices`. Throws InvalidArgument listing what is there, Unsupported with the reason.
size_t select_device(const std::vector<Facts>& devices, const std::string& selector);

// One sentence per group whose membership would open a render node under `directory`; empty if none
// is forbidden. `may_open` is access(2) but for tests.
std::string forbidden_nodes(const std::string& directory, bool (*may_open)(const char* path));
std::string forbidden_nodes();

}  // namespace tuff::devices::vulkan
