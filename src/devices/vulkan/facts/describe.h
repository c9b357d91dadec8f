// Facts as the rest of tuff reads them: a Target for the compiler, a DeviceInfo for people.
// Used by the device and by vulkan_probe. Pure.
#pragma once

#include <string>

#include "base/target.h"
#include "devices/vulkan/facts/facts.h"
#include "hcq/device.h"

namespace tuff::devices::vulkan {

Target make_target(const Facts& facts);
hcq::DeviceInfo make_info(const Facts& facts, const std::string& name);

}  // namespace tuff::devices::vulkan
