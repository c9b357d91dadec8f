// Where windows stand: strides, paddings and dilations of convolutions and pools, as attributes
// give them. Called by operators.
#pragma once

#include "onnx/node.h"

namespace tuff::onnx {

struct Windows {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<std::pair<int64_t, int64_t>> pads;  // before and behind each axis
  size_t axes() const { return kernel.size(); }
  int64_t reach(size_t a) const { return (kernel[a] - 1) * dilations[a] + 1; }
};

// Of the axes behind (n, c) of x.
Windows windows_of(const Node& node, std::vector<int64_t> kernel, const Sizes& x);
// The extents of the axes behind (n, c).
Sizes spatial(const Sizes& sizes);

Tensor conv(const Tensor& x, const Tensor& weight, const Tensor& bias, const Windows& w,
            int64_t groups);

}  // namespace tuff::onnx
