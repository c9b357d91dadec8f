// What the reference interpreter says of pending tensors, with their buffers' present contents
// bound; and comparisons of arrays. Called by the conformance tests of tensor. Must never know which
// device a tensor is on.
#pragma once

#include <string>
#include <vector>

#include <tuff/tensor.h>
#include "ir/interpret.h"

namespace tuff::test {

// Ask before the tensors are realized: afterwards there is nothing left to interpret.
std::vector<ir::HostArray> interpret(const std::vector<Tensor>& tensors);
ir::HostArray contents(const Tensor& t);  // realizes it

// Empty if all elements agree: equal, both NaN, or for floats within `relative` of the largest
// finite magnitude of `want`. Else the first difference in words.
std::string difference(const ir::HostArray& got, const ir::HostArray& want, double relative);

}  // namespace tuff::test
