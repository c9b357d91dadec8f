"""Linear algebra of matrices and batches of them, under PyTorch's names."""
from typing import NamedTuple as _NamedTuple

from ._tuff import Tensor as _Tensor
from ._tuff import linalg as _linalg
from ._tuff.linalg import (  # noqa: F401
    cholesky, cond, det, eigh, eigvalsh, inv, matrix_norm, matrix_power, matrix_rank, multi_dot, norm, pinv,
    qr, slogdet, solve, solve_triangular, svd, svdvals, vector_norm,
)


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
