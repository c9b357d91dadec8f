// Which devices have to read through texel views: tests that need views skip the others alone, so
// that a device which lost them is a failure.
#pragma once

#include <string>

#include "devices/registry.h"
#include "engine/device.h"

namespace tuff::test {

// Why a device reads nothing so; empty: it has to.
inline std::string why_no_views(const std::string& device) {
  const Target& t = engine::Device::get(device)->target();
  if (t.load_cost == 1) return "loads by address are cheap here";
  if (!t.features.device_address) return "buffers are bound here";
  for (const devices::Candidate& c : engine::list_devices()) {
    for (const auto& [name, value] : c.info.features)
      if (c.name == device && name == "texelViews" && value == "no")
        return "views of the driver begin too far apart";
  }
  return {};
}

}  // namespace tuff::test
