// tests/data/tensor_values.json: what PyTorch computes for every function of check/functions.h.
// Called by the conformance tests of tensor.
#pragma once

#include <string>
#include <vector>

#include <tuff/tensor.h>
#include "ir/interpret.h"

namespace tuff::test {

struct Row {
  std::vector<ir::HostArray> inputs;
  ir::HostArray out;
  std::vector<std::vector<double>> gradients;  // per input, empty: none; no element: no gradients
};

const Row& stored_row(const std::string& name);  // std::out_of_range if there is none
std::vector<std::string> stored_names();
ir::HostArray array_of(DType t, const Sizes& shape, const std::vector<double>& values);
// 1/8, 2/8 ... 7/8, 1/8 ...: the weights that tensor-values.py gives a result before it sums.
Tensor weights(const Tensor& like);

}  // namespace tuff::test
