// Selectors and lists as users write them, and identities as text, alike for all drivers' devices.
// Called when devices are listed and opened. Knows no driver.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tuff::devices {

// What a selector may name of a device. `name` is searched for name=<part>, `shown` is what lists
// of devices say.
struct Choice {
  std::string shown, uuid, name;
};

// Index of the device that `selector` names: "" (the first), "0", "uuid=<hex prefix>" or
// "name=<part>". InvalidArgument listing what there is. `kind`: "VULKAN".
size_t choose(std::string_view kind, std::span<const Choice> choices, const std::string& selector);

// The parts of a list that are not empty.
std::vector<std::string> split(std::string_view list, char separator);
std::string hex(std::span<const uint8_t> bytes);
uint64_t fnv1a(std::span<const uint8_t> bytes);  // checksum of files in the cache folder

}  // namespace tuff::devices
