// The devices of this machine that tests run on: CPU and every usable Vulkan device.
// TUFF_TEST_DEVICES=CPU,VULKAN:0 narrows the list.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tuff/dtype.h"

namespace tuff::test {

const std::vector<std::string>& devices();
std::vector<std::string> vulkan_devices();  // of these
bool computes(const std::string& device, DType t);  // false: it refuses by name, as for float64

// What INSTANTIATE_TEST_SUITE_P calls a test by its device: "VULKAN_0".
template <class Info>
std::string named_by_device(const Info& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

}  // namespace tuff::test
