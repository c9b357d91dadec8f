// TensorRandom: draws from distributions beyond the uniform and the normal one: a part of class
// Tensor, which inherits it. Users include tensor.h. Must never know where the bits come from.
#pragma once

#include <tuff/arguments.h>

namespace tuff {

class Tensor;

/// Random numbers from the generator that Tensor::rand() uses: the same bits for the same seed.
/// They have no gradient. InvalidArgument for parameters outside of their range and for options
/// whose dtype is no float.
class TensorRandom {
 public:
  /// 1 with the probability that each element is, else 0, in this tensor's dtype. A probability
  /// below 0 or NaN counts as 0. InvalidArgument for integers.
  Tensor bernoulli() const;
  /// 1 with probability p, in this tensor's shape and dtype.
  Tensor bernoulli(double p) const;
  /// Counts of events of which each element is the expected number, in this tensor's dtype: by
  /// comparing one uniform number with the distribution's sums up to 12 events, above by
  /// transformed rejection (Hormann, "The transformed rejection method for generating Poisson
  /// random variables", 1993) of 16 candidates, of which each is rejected with less than one chance
  /// in three. NaN for what is negative or NaN. InvalidArgument for integers.
  Tensor poisson() const;
  /// Times until an event that comes `rate` times per unit of time.
  static Tensor exponential(const Sizes& sizes, double rate = 1, const TensorOptions& options = {});
  /// normal() of what lies in [low, high], by the inverse of its distribution function.
  static Tensor trunc_normal(const Sizes& sizes, double mean = 0, double std = 1, double low = -2,
                             double high = 2, const TensorOptions& options = {});
  /// uniform() in [-1, 1) over the root of the number of elements.
  static Tensor scaled_uniform(const Sizes& sizes, const TensorOptions& options = {});

 protected:
  TensorRandom() = default;
  ~TensorRandom() = default;
  TensorRandom(const TensorRandom&) = default;
  TensorRandom& operator=(const TensorRandom&) = default;
};

}  // namespace tuff
