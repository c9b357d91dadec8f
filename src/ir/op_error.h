// How far a device may be from the reference interpreter in one element of one op: running error
// analysis (Higham, "Accuracy and Stability of Numerical Algorithms", chapters 2 to 4) with the
// budgets of the Vulkan specification ("Precision and Operation of SPIR-V Instructions") for what
// is not correctly rounded. Called by error_bound.cpp for kernels and by check's Expectation for
// tensor graphs. Must never know graphs' structure or devices.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "ir/uop.h"

namespace tuff::ir {

// An absolute error; kUnknownError where nothing can be demanded: a comparison of two values nearer
// to each other than their errors, the sign of a zero seen through a bitcast.
inline constexpr double kUnknownError = std::numeric_limits<double>::infinity();

// A value and how far an implementation may be from it.
struct Bounded {
  Scalar value;
  double error = 0;  // 0: exactly this value (zeros of either sign and NaNs of any payload are one)
};

// The distance from |x| to the next value of its dtype; that of subnormals below the least normal.
double ulp_of(DType t, double x);

// The error of data as it stands in memory: its readers may flush subnormal floats.
double leaf_error(const Scalar& v);
// The error of an ALU node's element `out` computed from `src`.
double alu_error(const Node& n, std::span<const Bounded> src, const Scalar& out);

// The error of a reduction in any order and grouping. Rounds of a sum of n terms grow like
// 4 sqrt(n), beyond it with a probability below 1e-3 (Higham and Mary, A New Approach to
// Probabilistic Rounding Error Analysis, SISC 41(5), 2019), never beyond n - 1.
class ReduceError {
 public:
  ReduceError(Op op, DType t) : op_(op), t_(t), acc_(accumulator(t)) {}
  void add(const Bounded& term);
  double of(const Scalar& out) const;

 private:
  double of_sum(const Scalar& out) const;
  double of_product(const Scalar& out) const;
  double rounds() const;

  const Op op_;
  const DType t_, acc_;
  int64_t count_ = 0;
  double worst_ = 0, errors_ = 0, magnitude_ = 0;  // of the terms: largest error, sums
  int lowest_bit_ = 2000;                          // of any term
  double product_ = 1, largest_product_ = 1;       // of magnitudes, of magnitudes and errors
  double above_one_ = 1, below_one_ = 1;           // of those factors alone
  double odd_part_ = 1;                            // of the product
  bool finite_ = true, exact_ = true;
};

// Whether `got` is within the error of what is wanted.
bool agrees(const Scalar& got, const Bounded& want);

}  // namespace tuff::ir
