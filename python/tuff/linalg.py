"""Linear algebra of matrices and batches of them, under PyTorch's names."""
from typing import NamedTuple as _NamedTuple

from ._tuff import Tensor as _Tensor
from ._tuff import linalg as _linalg
from ._tuff.linalg import (  # noqa: F401
    cholesky, cond, det, eigh, eigvalsh, householder_product, inv, lu, lu_factor, lu_solve, matrix_exp, matrix_norm,
    matrix_power, matrix_rank, multi_dot, norm, pinv, qr, slogdet, solve, solve_triangular, svd, svdvals, tensorinv,
    tensorsolve, vander, vecdot, vector_norm, cholesky_inverse, cholesky_solve,
)

# Tensor's own, by the names that they have here as well.
cross, matmul = _Tensor.cross, _Tensor.matmul


def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """A diagonal of the last two axes, as the last axis."""
    return A.diagonal(offset, dim1, dim2)


class LeastSquares(_NamedTuple):
    """What lstsq() gives: the solution, and where there are more rows than columns the sums of the
    squares of what is left."""
    solution: _Tensor
    residuals: _Tensor


def lstsq(A, B, rcond=None, *, driver=None):
    """The X of the smallest |A X - B|, and of those the smallest X. driver "gels" wants an A of full rank; "gelsd"
    (also "gelsy", "gelss") takes any: singular values up to rcond times the largest count as 0, max(m, n) times the
    dtype's epsilon if it is not given. The default is "gelsd" if rcond is given, else "gels"."""
    return LeastSquares(*_linalg.lstsq(A, B, rcond, driver=driver))
