"""Jit: a function of tensors that is captured once and then replayed."""
import functools

from ._tuff import InvalidArgument, JitCore, Tensor


def _flatten(value, tensors):
    """The tensors inside a value, in order, appended; returns the value with places for them."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return Tensor
    if isinstance(value, (list, tuple)):
        return type(value).__name__, tuple(_flatten(v, tensors) for v in value)
    if isinstance(value, dict):
        return "dict", tuple((k, _flatten(v, tensors)) for k, v in value.items())
    return "value", value


def _restore(structure, tensors):
    """The value whose tensors are taken from an iterator."""
    if structure is Tensor:
        return next(tensors)
    kind, inside = structure
    if kind == "value":
        return inside
    if kind == "dict":
        return {k: _restore(v, tensors) for k, v in inside}
    items = [_restore(v, tensors) for v in inside]
    return items if kind == "list" else tuple(items)


class Jit:
    """Runs a function once, captures it at its second call and replays that from then on.

    Arguments are tensors, or lists, tuples and dicts of them, which keep shape, dtype and device;
    anything else is a constant and has to be the same at every call. Whatever changes from call to
    call is an argument, or a tensor that the function assigns to: Python code inside runs twice
    only. Results are tensors, or lists, tuples and dicts of them, or None. `dynamic` lists axes of
    arguments whose extent varies (DynamicAxis).
    """

    def __init__(self, function, *, dynamic=()):
        self._function = function
        self._dynamic = list(dynamic)
        self._core = JitCore(self._dynamic)
        self._given = None
        self._result = None
        self._name = None
        functools.update_wrapper(self, function)

    def __call__(self, *args, **kwargs):
        tensors = []
        given = _flatten((args, kwargs), tensors)
        if self._given is not None and given != self._given:
            raise InvalidArgument(
                f"Jit: called before with the arguments {self._given}, now with {given}: what is not "
                "a tensor has to be the same at every call")

        def function(inputs):
            inner_args, inner_kwargs = _restore(given, iter(inputs))
            results = []
            self._result = _flatten(self._function(*inner_args, **inner_kwargs), results)
            return results

        results = self._core.call(function, tensors)
        self._given = given
        return _restore(self._result, iter(results))

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, instance, owner=None):
        """A method is captured for each object on its own."""
        if instance is None:
            return self
        bound = Jit(self._function.__get__(instance, owner), dynamic=self._dynamic)
        if self._name is not None:
            instance.__dict__[self._name] = bound
        return bound

    @property
    def captured(self):
        """Whether calls are replays from now on."""
        return self._core.captured

    @property
    def stats(self):
        """What one replay does, and how many there have been."""
        return self._core.stats


def jit(function=None, *, dynamic=()):
    """Decorator: @tuff.jit, or @tuff.jit(dynamic=[tuff.DynamicAxis(0, 0, "rows", 1, 64)])."""
    if function is None:
        return lambda f: Jit(f, dynamic=dynamic)
    return Jit(function, dynamic=dynamic)
