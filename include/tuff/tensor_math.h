// TensorMath: elementary and special functions, comparisons by name and activations: a part of
// class Tensor, which inherits it. Users include tensor.h. Must never know how tensors are stored.
#pragma once

#include <optional>
#include <utility>

#include <tuff/arguments.h>

namespace tuff {

class Tensor;

/// Element-wise functions of a tensor beyond arithmetic. What the class Tensor says of dtypes,
/// broadcasting and errors holds here.
///
/// The largest errors over the whole domain, signs of 0, infinities and NaN included, are listed in
/// docs/OPS.md: about 4 ULP in F32 and F64, one rounding in F16 and BF16. Gradients are those of
/// PyTorch, also at the ends of a domain (infinite for asin() at 1), where nothing else is said.
class TensorMath {
 public:
  // ---- arithmetic by name: as the operators. Nothing is scaled on the way (PyTorch's alpha).

  Tensor add(const Tensor& other) const;
  Tensor add(Number other) const;
  Tensor sub(const Tensor& other) const;
  Tensor sub(Number other) const;
  Tensor mul(const Tensor& other) const;
  Tensor mul(Number other) const;
  Tensor div(const Tensor& other) const;
  Tensor div(Number other) const;
  /// Bit by bit, of integers and bools: the operators & | ^. InvalidArgument for floats.
  Tensor bitwise_and(const Tensor& other) const;
  Tensor bitwise_and(Number other) const;
  Tensor bitwise_or(const Tensor& other) const;
  Tensor bitwise_or(Number other) const;
  Tensor bitwise_xor(const Tensor& other) const;
  Tensor bitwise_xor(Number other) const;
  /// x + value a b.
  Tensor addcmul(const Tensor& a, const Tensor& b, Number value = 1) const;
  /// x + value a / b. InvalidArgument if none of x, a and b is a float: cast() one.
  Tensor addcdiv(const Tensor& a, const Tensor& b, Number value = 1) const;
  /// The greatest number that divides both, 0 of two zeros, and the least that both divide.
  /// InvalidArgument unless both are integers.
  Tensor gcd(const Tensor& other) const;
  Tensor lcm(const Tensor& other) const;

  // ---- comparisons by name, and truth: bool results

  Tensor eq(const Tensor& other) const;
  Tensor eq(Number other) const;
  Tensor ne(const Tensor& other) const;
  Tensor ne(Number other) const;
  Tensor lt(const Tensor& other) const;
  Tensor lt(Number other) const;
  Tensor le(const Tensor& other) const;
  Tensor le(Number other) const;
  Tensor gt(const Tensor& other) const;
  Tensor gt(Number other) const;
  Tensor ge(const Tensor& other) const;
  Tensor ge(Number other) const;
  /// Of any dtype: what is not 0 is true, NaN as well.
  Tensor logical_and(const Tensor& other) const;
  Tensor logical_or(const Tensor& other) const;
  Tensor logical_xor(const Tensor& other) const;
  /// Neither infinite nor NaN; integers and bools are.
  Tensor isfinite() const;
  /// |x - y| <= atol + rtol |y|, or equal (infinities); NaN is close to NaN if equal_nan.
  /// InvalidArgument for negative tolerances.
  Tensor isclose(const Tensor& other, double rtol = 1e-5, double atol = 1e-8,
                 bool equal_nan = false) const;
  /// Is the sign bit set: also of -0 and of a NaN that has it.
  Tensor signbit() const;
  /// Infinite and above 0; infinite and below 0. Integers and bools are not.
  Tensor isposinf() const;
  Tensor isneginf() const;

  // ---- elementary functions: integers and bools become F32

  Tensor asin() const;
  Tensor acos() const;
  Tensor atan() const;
  Tensor sinh() const;
  Tensor cosh() const;
  Tensor asinh() const;
  /// NaN below 1.
  Tensor acosh() const;
  /// Infinite at -1 and 1, NaN beyond.
  Tensor atanh() const;
  /// The angle of (x, y) for this y, in -pi..pi, with C's rules for zeros and infinities (ISO C,
  /// F.10.1.4). Its gradient is 0 where both are 0 (PyTorch: NaN).
  Tensor atan2(const Tensor& x) const;
  /// sqrt(x^2 + y^2) without overflow on the way; infinite if either is, even beside NaN. Its
  /// gradient is 0 where both are 0 (PyTorch: NaN).
  Tensor hypot(const Tensor& other) const;
  /// log(1 + x), accurate near 0.
  Tensor log1p() const;
  /// exp(x) - 1, accurate near 0.
  Tensor expm1() const;
  Tensor log10() const;
  /// 1 - erf(x), accurate where that is small.
  Tensor erfc() const;
  /// The x whose erf() this is; infinite at -1 and 1, NaN beyond.
  Tensor erfinv() const;
  /// The logarithm of |gamma(x)|; infinite at 0 and the negative whole numbers, where it has no
  /// gradient. Below 0 it is a difference, which loses digits where it is small.
  Tensor lgamma() const;
  /// The derivative of lgamma(); NaN at the negative whole numbers, infinite at 0. Below 0 as
  /// lgamma().
  Tensor digamma() const;
  /// The n-th derivative of digamma(). NaN below 0 for n > 1, infinite at the whole numbers up to
  /// 0. InvalidArgument for a negative n.
  Tensor polygamma(int64_t n) const;
  /// The logarithm of the multivariate gamma function of p dimensions (Muirhead, 1982), of x above
  /// (p - 1)/2. InvalidArgument unless p is positive.
  Tensor mvlgamma(int64_t p) const;
  /// The modified Bessel function of the first kind of order 0 (NIST DLMF, 10.25).
  Tensor i0() const;
  /// log(x / (1 - x)), of x kept in eps..1 - eps if eps is given.
  Tensor logit(std::optional<double> eps = {}) const;
  /// log(exp(x) + exp(y)) without overflow on the way.
  Tensor logaddexp(const Tensor& other) const;
  /// log2(2^x + 2^y) without overflow on the way.
  Tensor logaddexp2(const Tensor& other) const;
  /// pow() in F64, of whatever dtypes. Unsupported on devices without F64.
  Tensor float_power(const Tensor& exponent) const;
  Tensor float_power(Number exponent) const;
  /// x 2^exponent.
  Tensor ldexp(const Tensor& exponent) const;
  /// {m, e} with x = m 2^e, |m| in 0.5..1 and e in I32; {x, 0} of 0, infinities and NaN.
  /// InvalidArgument for integers and bools.
  std::pair<Tensor, Tensor> frexp() const;
  /// The next number of the dtype from x towards the other one; without gradient. NaN if either is.
  /// InvalidArgument for integers and bools.
  Tensor nextafter(const Tensor& other) const;
  /// x log(y), and 0 where x is 0, unless y is NaN.
  Tensor xlogy(const Tensor& y) const;
  Tensor xlogy(Number y) const;
  /// sin(pi x) / (pi x), 1 at 0; pi x is rounded first.
  Tensor sinc() const;
  Tensor rad2deg() const;
  Tensor deg2rad() const;

  // ---- parts and choices

  /// x - trunc(x). InvalidArgument for integers and bools.
  Tensor frac() const;
  /// The larger (smaller) of two; NaN only if both are. The gradient of equal ones goes to x.
  Tensor fmax(const Tensor& other) const;
  Tensor fmin(const Tensor& other) const;
  /// 0 below 0, 1 above, `values` at 0; 0 of NaN. Without gradient.
  Tensor heaviside(const Tensor& values) const;
  /// |x| with the sign bit of the other one. Gradients flow to x alone, and none at 0.
  Tensor copysign(const Tensor& sign) const;
  Tensor copysign(Number sign) const;
  /// x + weight (end - x), reckoned from the nearer end. InvalidArgument for integers and bools.
  Tensor lerp(const Tensor& end, const Tensor& weight) const;
  Tensor lerp(const Tensor& end, double weight) const;
  /// NaN and infinities replaced, the latter by the largest finite numbers of the dtype if not
  /// given.
  Tensor nan_to_num(double nan = 0, std::optional<double> posinf = {},
                    std::optional<double> neginf = {}) const;

  // ---- activations

  /// x, or alpha (exp(x) - 1) below 0 (Clevert et al., 2016).
  Tensor elu(double alpha = 1) const;
  /// elu() of fixed alpha and scale, which keep mean and variance (Klambauer et al., 2017).
  Tensor selu() const;
  /// x, or alpha (exp(x / alpha) - 1) below 0 (Barron, 2017). InvalidArgument: alpha 0.
  Tensor celu(double alpha = 1) const;
  /// Between 0 and 1 along x/6 + 1/2.
  Tensor hardsigmoid() const;
  /// x hardsigmoid(x) (Howard et al., 2019).
  Tensor hardswish() const;
  /// Kept inside; no gradient at the ends and beyond. InvalidArgument unless min <= max.
  Tensor hardtanh(double min = -1, double max = 1) const;
  /// hardtanh(0, 6).
  Tensor relu6() const;
  /// x tanh(softplus(x)) (Misra, 2019).
  Tensor mish() const;
  /// log(sigmoid(x)).
  Tensor logsigmoid() const;
  /// x / (1 + |x|).
  Tensor softsign() const;
  /// x, or weight x below 0; one weight, or one per channel, which axis 1 holds (He et al., 2015).
  /// ShapeError for another number of weights.
  Tensor prelu(const Tensor& weight) const;
  /// The first half of an axis times the sigmoid of the second (Dauphin et al., 2017). ShapeError
  /// for an odd extent.
  Tensor glu(int64_t dim = -1) const;
  /// softmax(-x).
  Tensor softmin(int64_t dim = -1) const;
  /// x - tanh(x).
  Tensor tanhshrink() const;
  /// 0 where |x| <= lambda.
  Tensor hardshrink(double lambda = 0.5) const;
  /// Moved toward 0 by lambda, and 0 inside. InvalidArgument: a negative lambda.
  Tensor softshrink(double lambda = 0.5) const;
  /// x where it is above the threshold, else the value.
  Tensor threshold(double threshold, double value) const;
  /// x sigmoid(1.702 x) (Hendrycks and Gimpel, 2016).
  Tensor quick_gelu() const;
  /// Below 0 times a slope: drawn for every element between the bounds in training mode, see
  /// training(), else their mean (Xu et al., 2015). InvalidArgument unless lower <= upper.
  Tensor rrelu(double lower = 1.0 / 8, double upper = 1.0 / 3) const;
  /// x / max(norm(x, p), eps), the norm along an axis.
  Tensor normalize(double p = 2, int64_t dim = 1, double eps = 1e-12) const;

 protected:
  TensorMath() = default;
  ~TensorMath() = default;
  TensorMath(const TensorMath&) = default;
  TensorMath& operator=(const TensorMath&) = default;
};

}  // namespace tuff
