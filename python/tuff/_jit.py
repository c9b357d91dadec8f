"""Jit: a function of tensors that is captured once and then replayed."""
import functools

from ._tuff import InvalidArgument, JitCore, Tensor


class _Result:
    """What a function may return, for messages: where in the result something stands."""

    def __init__(self, path="the result"):
        self.path = path

    def at(self, key):
        return _Result(f"{self.path}[{key!r}]")

    def leaf(self, value):
        if value is None:
            return "value", type(None), None
        raise InvalidArgument(
            f"Jit: {self.path} is {_short(value)} of type {type(value).__name__}, which replays would "
            "give again as it was at the capture: return tensors, or tuples, lists and dicts of "
            "them, or None")


class _Argument:
    """What a function may be given besides tensors: constants, the same at every call."""

    def at(self, key):
        return self

    def leaf(self, value):
        return "value", type(value), value


def _short(value):
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _flatten(value, tensors, rule):
    """The tensors inside a value, in order, appended; returns the value with places for them."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return Tensor
    if isinstance(value, (list, tuple)):
        named = isinstance(value, tuple) and hasattr(value, "_fields")
        kind = type(value) if named else list if isinstance(value, list) else tuple
        return kind, tuple(_flatten(v, tensors, rule.at(i)) for i, v in enumerate(value))
    if isinstance(value, dict):
        return dict, tuple((k, _flatten(v, tensors, rule.at(k))) for k, v in value.items())
    return rule.leaf(value)


def _restore(structure, tensors):
    """The value whose tensors are taken from an iterator."""
    if structure is Tensor:
        return next(tensors)
    if structure[0] == "value":
        return structure[2]
    kind, inside = structure
    if kind is dict:
        return {k: _restore(v, tensors) for k, v in inside}
    items = (_restore(v, tensors) for v in inside)
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


def _shown(given):
    """Arguments as they were written, tensors by that word."""

    class Place:
        def __repr__(self):
            return "Tensor"

    class Places:
        def __next__(self):
            return Place()

    args, kwargs = _restore(given, Places())
    return "(" + ", ".join([*map(repr, args), *(f"{k}={v!r}" for k, v in kwargs.items())]) + ")"


def _same(a, b):
    """Whether two arguments without their tensors are equal: 1, 1.0 and True are not, NaN is."""
    if a is b:
        return True
    if isinstance(a, type) or isinstance(b, type):
        return False
    if isinstance(a, tuple) and isinstance(b, tuple):
        if a[:1] == ("value",) and b[:1] == ("value",):
            return a[1] is b[1] and _equal_values(a[2], b[2])
        return len(a) == len(b) and all(map(_same, a, b))
    return type(a) is type(b) and _equal_values(a, b)


def _equal_values(a, b):
    if a is b:
        return True
    try:
        return bool(a == b) or bool(a != a and b != b)
    except Exception as e:
        raise InvalidArgument(
            f"Jit: an argument of type {type(a).__name__} is neither a tensor nor comparable with that "
            "of the call before: make it a tensor") from e


class Jit:
    """Runs a function once, captures it at its second call and replays that from then on.

    Arguments are tensors, or lists, tuples and dicts of them, which keep shape, dtype and device;
    anything else is a constant and has to be the same at every call. Whatever changes from call to
    call is an argument, or a tensor that the function assigns to: Python code inside runs twice
    only. Results are tensors, or lists, tuples (also named ones) and dicts of them, or None; others
    are refused, as are values that the function reads of arguments and state (item(), float(x),
    numpy(), `if x > 0`), since replays would go on with those of the capture. `dynamic` lists axes
    of arguments whose extent varies (DynamicAxis).
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
        given = _flatten((args, kwargs), tensors, _Argument())
        if self._given is not None and not _same(given, self._given):
            before, now = _shown(self._given), _shown(given)
            raise InvalidArgument(
                f"Jit: called before with the arguments {before}, now with {now}: what is not "
                "a tensor has to be the same at every call")

        def function(inputs):
            inner_args, inner_kwargs = _restore(given, iter(inputs))
            results = []
            self._result = _flatten(self._function(*inner_args, **inner_kwargs), results, _Result())
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
