// The Vulkan device as the rest of tuff sees it: how to list, how to open, and what tests may
// reach. Called by devices/registry; the lower half by tests and benchmarks alone. Must never show
// a Vulkan handle to engine: this header declares no Vulkan type.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "devices/registry.h"
#include "hcq/device.h"

namespace tuff::devices {

// Every physical device, best first, with the reason where one cannot be used; where there is none
// at all (no loader, no driver, forbidden render nodes) one row that says so.
std::vector<Candidate> vulkan_probe();

// selector: "" (the best), "0" (index of vulkan_probe()), "uuid=<hex prefix>", "name=<part>".
// Throws InvalidArgument listing what is there, Unsupported with the reason.
std::unique_ptr<hcq::Device> vulkan_open(const std::string& selector);

// The rows of facts/limits.def: what TUFF_VK_LIMIT may name.
struct VulkanLimit {
  const char* name;
  uint64_t lowest;  // smaller values are refused
  const char* prose;
};
std::vector<VulkanLimit> vulkan_limits();

// --- for tests and benchmarks ---

struct VkApi;  // api/api.h
// The function table that every call of this device goes through; a test may exchange entries.
VkApi& vulkan_api(hcq::Device& device);
// Warnings and errors that the validation layer has reported in this process.
uint64_t vulkan_validation_message_count();
// True if the validation layer was asked for and found.
bool vulkan_validation_active(hcq::Device& device);

}  // namespace tuff::devices
