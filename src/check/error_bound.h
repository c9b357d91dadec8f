// How far a device may be from the reference interpreter in one element of one node: running error
// analysis (Higham, "Accuracy and Stability of Numerical Algorithms", chapters 2 to 4) with the
// budgets of the Vulkan specification ("Precision and Operation of SPIR-V Instructions") for what
// is not correctly rounded. Called by Expectation. Must never know graphs' structure or devices.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "graph/uop.h"

namespace tuff::check {

// An absolute error; kUnknown where nothing can be demanded: a comparison of two values nearer to
// each other than their errors, the sign of a zero seen through a bitcast.
inline constexpr double kUnknown = std::numeric_limits<double>::infinity();

struct Uncertain {
  Scalar value;
  double error = 0;  // 0: exactly this value (zeros of either sign and NaNs of any payload are one)
};

// Of data as it stands in memory: subnormal floats may be flushed by whoever reads them.
double leaf_error(const Scalar& v);
// Of an ALU node's element `out` computed from `src`.
double alu_error(const graph::Node& n, std::span<const Uncertain> src, const Scalar& out);
// Of a reduction of `terms` by `op` to `out`, in any order and grouping.
double reduce_error(graph::Op op, std::span<const Uncertain> terms, const Scalar& out);

// Whether `got` is within the error of what is wanted.
bool agrees(const Scalar& got, const Uncertain& want);

}  // namespace tuff::check
