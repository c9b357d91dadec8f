// The devices of this machine that tests run on: CPU and every usable Vulkan device.
// TUFF_TEST_DEVICES=CPU,VULKAN:0 narrows the list.
#pragma once

#include <string>
#include <vector>

namespace tuff::test {

const std::vector<std::string>& devices();

}  // namespace tuff::test
