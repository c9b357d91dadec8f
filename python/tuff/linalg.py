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


def lstsq(A, B):
    """The X of the smallest |A X - B|, and of those the smallest X; A has full rank."""
    return LeastSquares(*_linalg.lstsq(A, B))
