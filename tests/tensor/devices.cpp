#include "tensor/devices.h"

#include <cstdlib>
#include <sstream>

#include "engine/device.h"

namespace tuff::test {
namespace {

std::vector<std::string> find() {
  std::vector<std::string> out;
  if (const char* given = std::getenv("TUFF_TEST_DEVICES")) {
    std::stringstream list(given);
    for (std::string name; std::getline(list, name, ',');) out.push_back(name);
    return out;
  }
  for (const devices::Candidate& c : engine::list_devices()) {
    if (c.usable && (c.name.starts_with("CPU") || c.name.starts_with("VULKAN")))
      out.push_back(c.name);
  }
  return out;
}

}  // namespace

const std::vector<std::string>& devices() {
  static const std::vector<std::string> names = find();
  return names;
}

std::vector<std::string> vulkan_devices() {
  std::vector<std::string> out;
  for (const std::string& name : devices())
    if (name.starts_with("VULKAN")) out.push_back(name);
  return out;
}

bool computes(const std::string& device, DType t) {
  return t != DType::F64 || engine::Device::get(device)->target().features.f64;
}

}  // namespace tuff::test
