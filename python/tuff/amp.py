"""Mixed precision: autocast, and the GradScaler that goes with float16."""
import functools as _functools

from . import _tuff
from ._tuff import autocast_dtype  # noqa: F401
from .optim import GradScaler  # noqa: F401


class autocast:
    """with autocast(dtype): what this thread computes inside, by function. Products (matmul and what is made of it,
    linear, einsum, convolutions, attention's) round their float32 operands to dtype, float16 or bfloat16, and give
    it, adding up unrounded; of 16 bits these give float32: reductions, norms, softmax, losses, exp, expm1, log, log2,
    log10, log1p, pow, reciprocal, a number over a tensor, rsqrt, softplus, tan, acos, asin, cosh, sinh, erfinv. All
    others follow their operands. Parameters keep their dtype, and so do their gradients. Scopes nest; enabled=False
    computes as written. Also a decorator: @autocast(dtype)."""

    def __init__(self, dtype=_tuff.float16, enabled=True):
        self._scope = _tuff.AutocastScope(dtype, enabled)
        self._made_of = (dtype, enabled)

    def __enter__(self):
        self._scope.enter()
        return self

    def __exit__(self, *error):
        self._scope.exit()

    def __call__(self, function):
        @_functools.wraps(function)
        def in_scope(*args, **kwargs):
            with autocast(*self._made_of):
                return function(*args, **kwargs)
        return in_scope
