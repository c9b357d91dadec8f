"""no_grad: computing without gradients."""
import functools

from ._tuff import NoGradGuard


class no_grad:
    """with no_grad(): what this thread computes inside is detached from what it is computed of, and
    tensors with requires_grad may be written. Also a decorator: @no_grad()."""

    def __init__(self):
        self._guard = NoGradGuard()

    def __enter__(self):
        self._guard.enter()

    def __exit__(self, *error):
        self._guard.exit()

    def __call__(self, function):
        @functools.wraps(function)
        def without_gradients(*args, **kwargs):
            with no_grad():
                return function(*args, **kwargs)
        return without_gradients
