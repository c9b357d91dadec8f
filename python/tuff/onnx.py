"""ONNX models: loaded, described and called, and functions of tensors written as such.

    model = tuff.onnx.load("model.onnx")
    outputs = model(x=tuff.zeros(1, 3, 224, 224))  # a dict, in the order of the model's outputs
    session = tuff.onnx.Session(model)             # called like the model; calls are captured and replayed
    tuff.onnx.export(net, tuff.zeros(1, 3), "net.onnx", dynamic={"x": {0: "batch"}})
"""
import inspect as _inspect

from ._tuff import DynamicAxis as _DynamicAxis, InvalidArgument as _InvalidArgument, Tensor as _Tensor
from ._tuff.onnx import Description, Model, OperatorUse, Session, ValueInfo, _save, describe, load  # noqa: F401

_BOUNDS = (1, 65536)


def _names_of_arguments(function, count):
    """Those of forward(), or of the function, where so many are positional; none otherwise."""
    try:
        parameters = _inspect.signature(getattr(function, "forward", function)).parameters.values()
    except (TypeError, ValueError):
        return []
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return named[:count] if len(named) >= count else []


def _dynamic_axes(dynamic, bounds, names):
    axes = []
    known = {name for named in (dynamic or {}).values() for name in named.values()}
    for name in bounds or {}:
        if name not in known:
            raise _InvalidArgument(f"export: bounds of {name!r}, which is no name of a dynamic axis")
    for key, named in (dynamic or {}).items():
        if key not in names:
            raise _InvalidArgument(f"export: dynamic axes of {key!r}, which is no input: {', '.join(names)}")
        for axis, name in named.items():
            least, most = (bounds or {}).get(name, _BOUNDS)
            axes.append(_DynamicAxis(names.index(key), axis, name, least, most))
    return axes


def _results(made):
    if isinstance(made, _Tensor):
        return [made]
    if not isinstance(made, (list, tuple)):
        raise _InvalidArgument(f"export: the function returned a {type(made).__name__}: return a tensor, or several")
    flat = []
    for result in made:
        if isinstance(result, (list, tuple)):  # as an LSTM's states
            flat += _results(result)
        elif isinstance(result, _Tensor):
            flat.append(result)
        else:
            raise _InvalidArgument(f"export: the function returned a {type(made).__name__} with a "
                                   f"{type(result).__name__}: return tensors alone")
    return flat


def export(function, inputs, path, *, input_names=None, output_names=None, dynamic=None, bounds=None,
           parameters=None, external_from=1 << 30, draws=False):
    """Writes a function or module as an ONNX model (operators of version 18), which other programs run.

    It is called once, with tensors that have the dtypes and shapes of `inputs` (a tensor, or several) and no values; it
    returns a tensor, or several, which may be tuples in tuples. A module computes as it is: call eval() before. `dynamic` names axes that may have any
    extent in the model, by input ({"x": {0: "batch"}}); the function sees symbolic extents there, by default of 1 to
    65536, or as `bounds` says ({"batch": (1, 64)}). Inputs are named as the function's arguments, outputs "y", or "y0",
    "y1" ... `parameters` are the tensors that keep a name in the model, by default the module's state_dict(). From
    `external_from` bytes of weights on they lie in a file beside the model, PATH.data. With `draws` random numbers may be
    drawn (dropout in training mode, rand()): by RandomUniform, of which a runtime makes its own at every call.

    InvalidArgument where the function reads values of its inputs; Unsupported for what no model can hold: draws of
    random numbers unless `draws`, changes of tensors.
    """
    given = [inputs] if isinstance(inputs, _Tensor) else list(inputs)
    names = list(input_names or _names_of_arguments(function, len(given)) or
                 (["x"] if len(given) == 1 else [f"x{i}" for i in range(len(given))]))
    if parameters is None:
        parameters = function.state_dict() if hasattr(function, "state_dict") else {}

    def run(tensors):
        return _results(function(*tensors))
    _save(path, run, given, names, list(output_names or []), _dynamic_axes(dynamic, bounds, names), dict(parameters),
          external_from, draws)
