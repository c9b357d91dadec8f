// Values that other ops computed, with gradients in closed form (ir/gradient.h). Called by functions
// whose own ops would lead the gradient through polynomials, comparisons or a factorization's steps.
#pragma once

#include <initializer_list>
#include <vector>

#include "ir/gradient.h"
#include "tensor/impl.h"

namespace tuff::detail {

// The value, whose gradient is what the rule gives to the sources.
Tensor ruled(const Tensor& value, std::initializer_list<Tensor> sources,
             const ir::GradientRule& rule);
// For rows of rules: a source (or the node itself) as a tensor on the node's device.
Tensor tensor_of(const ir::UOp& u, const ir::UOp& node);
// Of the sources behind the value, which has none.
std::vector<ir::UOp> gradients_of_sources(std::initializer_list<Tensor> of_sources);

}  // namespace tuff::detail
