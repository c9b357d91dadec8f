"""Special functions, under the names of torch.special; some are functions of Tensor too."""
from ._tuff import Tensor as _Tensor
from ._tuff.special import (  # noqa: F401
    chebyshev_polynomial_t, chebyshev_polynomial_u, chebyshev_polynomial_v, chebyshev_polynomial_w, entr, erfcx,
    hermite_polynomial_h, hermite_polynomial_he, i0e, i1, i1e, laguerre_polynomial_l, legendre_polynomial_p, log_ndtr,
    ndtr, ndtri, shifted_chebyshev_polynomial_t, shifted_chebyshev_polynomial_u, shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w, spherical_bessel_j0, xlog1py, zeta,
)

digamma = psi = _Tensor.digamma
erf, erfc, erfinv, exp2, expm1, log1p = _Tensor.erf, _Tensor.erfc, _Tensor.erfinv, _Tensor.exp2, _Tensor.expm1, _Tensor.log1p
expit, gammaln, i0, logit, multigammaln = _Tensor.sigmoid, _Tensor.lgamma, _Tensor.i0, _Tensor.logit, _Tensor.mvlgamma
modified_bessel_i0, modified_bessel_i1 = _Tensor.i0, i1
log_softmax, logsumexp, softmax = _Tensor.log_softmax, _Tensor.logsumexp, _Tensor.softmax
round, sinc, xlogy = _Tensor.round, _Tensor.sinc, _Tensor.xlogy


def polygamma(n, x):
    """The n-th derivative of digamma()."""
    return x.polygamma(n)
