#include "devices/registry.h"

#include "base/check.h"
#include "devices/amd/amd.h"
#include "devices/cpu/cpu.h"
#include "devices/null/null.h"
#include "devices/shuffle/shuffle.h"
#ifdef TUFF_HAS_VULKAN
#include "devices/vulkan/vulkan.h"
#endif

namespace tuff::devices {
namespace {

constexpr DeviceKind kKinds[] = {
#ifdef TUFF_HAS_VULKAN
    {"VULKAN", vulkan_probe, vulkan_open, vulkan_raw_replay},
#endif
    {"CPU", cpu_probe, cpu_open, cpu_raw_replay},
    {"AMD", amd_probe, amd_open, nullptr},
    {"NULL", null_probe, null_open, nullptr},
    {"SHUFFLE", shuffle_probe, shuffle_open, nullptr},
};

}  // namespace

std::span<const DeviceKind> device_kinds() { return kKinds; }

const DeviceKind& kind_of(const hcq::Device& device) {
  const std::string kind = device.name().substr(0, device.name().find(':'));
  for (const DeviceKind& row : kKinds)
    if (kind == row.kind) return row;
  fail<InvalidArgument>("{}: a device of no registered kind", device.name());
}

}  // namespace tuff::devices
