// Random tensors on each device.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include <tuff/tensor.h>

namespace tuff::test {

class DrawnValues : public testing::TestWithParam<std::string> {
 protected:
  Tensor drawn(const Sizes& sizes, uint32_t seed) const {
    Tensor::manual_seed(seed);
    return Tensor::randn(sizes, {.device = GetParam()}).realize();
  }
  Tensor trained(const Sizes& sizes, uint32_t seed) const {
    return drawn(sizes, seed).set_requires_grad();
  }
};

}  // namespace tuff::test
