#include "devices/registry.h"

#include "devices/cpu/cpu.h"
#include "devices/null/null.h"
#ifdef TUFF_HAS_VULKAN
#include "devices/vulkan/vulkan.h"
#endif

namespace tuff::devices {
namespace {

constexpr DeviceKind kKinds[] = {
#ifdef TUFF_HAS_VULKAN
    {"VULKAN", vulkan_probe, vulkan_open},
#endif
    {"CPU", cpu_probe, cpu_open},
    {"NULL", null_probe, null_open},
};

}  // namespace

std::span<const DeviceKind> device_kinds() { return kKinds; }

}  // namespace tuff::devices
