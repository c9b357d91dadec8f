// special: special functions beyond those of Tensor, under PyTorch's names.
#pragma once

#include <tuff/tensor.h>

/// Element by element, and broadcast; integers and bools become F32, F16 and BF16 are computed in
/// F32 and rounded once. Gradients are those of PyTorch.
namespace tuff::special {

/// -x log(x); 0 at 0, -inf below.
Tensor entr(const Tensor& x);
/// exp(x^2) erfc(x), without overflow on the way.
Tensor erfcx(const Tensor& x);
/// The standard normal distribution's integral from -inf to x.
Tensor ndtr(const Tensor& x);
/// Its logarithm, accurate also where it is small.
Tensor log_ndtr(const Tensor& x);
/// The x whose ndtr() this is: -inf at 0, inf at 1, NaN beyond.
Tensor ndtri(const Tensor& p);
/// x log(1 + y), and 0 where x is 0, unless y is NaN.
Tensor xlog1py(const Tensor& x, const Tensor& y);
Tensor xlog1py(const Tensor& x, Number y);
/// Hurwitz' zeta function, the sum of (q + k)^-x over k = 0, 1, ... (NIST DLMF, 25.11), for x > 1:
/// infinite at x = 1, NaN below; infinite where q is a whole number up to 0, NaN at other q below
/// 0. Gradients flow to q alone.
Tensor zeta(const Tensor& x, const Tensor& q);
/// exp(-|x|) i0(x).
Tensor i0e(const Tensor& x);
/// The modified Bessel function of the first kind of order 1 (NIST DLMF, 10.25).
Tensor i1(const Tensor& x);
/// exp(-|x|) i1(x).
Tensor i1e(const Tensor& x);
/// sin(x) / x, 1 at 0: the spherical Bessel function of order 0.
Tensor spherical_bessel_j0(const Tensor& x);

/// Orthogonal polynomials of degree n (NIST DLMF, 18.9), 0 for a negative n, by their recurrence:
/// one addition and two multiplications per degree. InvalidArgument above 1000.
Tensor chebyshev_polynomial_t(const Tensor& x, int64_t n);
Tensor chebyshev_polynomial_u(const Tensor& x, int64_t n);
Tensor chebyshev_polynomial_v(const Tensor& x, int64_t n);
Tensor chebyshev_polynomial_w(const Tensor& x, int64_t n);
/// Those of 2 x - 1.
Tensor shifted_chebyshev_polynomial_t(const Tensor& x, int64_t n);
Tensor shifted_chebyshev_polynomial_u(const Tensor& x, int64_t n);
Tensor shifted_chebyshev_polynomial_v(const Tensor& x, int64_t n);
Tensor shifted_chebyshev_polynomial_w(const Tensor& x, int64_t n);
/// The physicists' (h) and the probabilists' (he).
Tensor hermite_polynomial_h(const Tensor& x, int64_t n);
Tensor hermite_polynomial_he(const Tensor& x, int64_t n);
Tensor laguerre_polynomial_l(const Tensor& x, int64_t n);
Tensor legendre_polynomial_p(const Tensor& x, int64_t n);

}  // namespace tuff::special
