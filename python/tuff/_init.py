"""tuff.nn.init: parameters set in place, without gradients. Names and arguments are those of torch.nn.init; each function
gives the tensor that it was given."""
import math

from ._grad import no_grad as _no_grad
from ._tuff import InvalidArgument as _InvalidArgument
from ._tuff import ShapeError as _ShapeError
from ._tuff import Tensor as _Tensor

_GAINS = {"linear": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": math.sqrt(2), "selu": 3 / 4}


def _set(tensor, value):
    with _no_grad():
        tensor.copy_(value)
    return tensor


def _like(tensor):
    return {"dtype": tensor.dtype, "device": tensor.device}


def uniform_(tensor, a=0.0, b=1.0):
    """Uniform in [a, b)."""
    return _set(tensor, _Tensor.uniform(tensor.shape, a, b, **_like(tensor)))


def normal_(tensor, mean=0.0, std=1.0):
    """Normal of this mean and standard deviation."""
    return _set(tensor, _Tensor.normal(mean, std, tensor.shape, **_like(tensor)))


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0):
    """normal_() of what lies in [a, b]."""
    return _set(tensor, _Tensor.trunc_normal(tensor.shape, mean, std, a, b, **_like(tensor)))


def constant_(tensor, val):
    """The same number everywhere."""
    return _set(tensor, tensor.full_like(val))


def ones_(tensor):
    """1 everywhere."""
    return constant_(tensor, 1)


def zeros_(tensor):
    """0 everywhere."""
    return constant_(tensor, 0)


def eye_(tensor):
    """Ones on the diagonal of a matrix."""
    if tensor.dim() != 2:
        raise _ShapeError(f"eye_: {tuple(tensor.shape)} is no matrix")
    return _set(tensor, _Tensor.eye(*tensor.shape, **_like(tensor)))


def calculate_gain(nonlinearity, param=None):
    """What a layer's weights are multiplied with before this function, so that it keeps the variance."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS and not nonlinearity.startswith("conv"):
        known = ", ".join([*_GAINS, "leaky_relu"])
        raise _InvalidArgument(f'calculate_gain: "{nonlinearity}" is none of: {known}')
    return _GAINS.get(nonlinearity, 1.0)


def xavier_uniform_(tensor, gain=1.0):
    """Of a weight (out, in, ...), for tanh and the like (Glorot and Bengio, 2010), uniform."""
    return _set(tensor, _Tensor.glorot_uniform(tensor.shape, gain, **_like(tensor)))


def xavier_normal_(tensor, gain=1.0):
    """Of a weight (out, in, ...), for tanh and the like, normal."""
    return _set(tensor, _Tensor.glorot_normal(tensor.shape, gain, **_like(tensor)))


def _kaiming(function, tensor, a, mode, nonlinearity):
    if mode not in ("fan_in", "fan_out"):
        raise _InvalidArgument(f'kaiming: mode "{mode}" is none of: fan_in, fan_out')
    gain = calculate_gain(nonlinearity, a)
    # As of a ReLU, whose gain is the root of 2.
    value = function(tensor.shape, 0.0, mode[4:], **_like(tensor))
    return _set(tensor, value * (gain / math.sqrt(2)))


def kaiming_uniform_(tensor, a=0.0, mode="fan_in", nonlinearity="leaky_relu"):
    """Of a weight (out, in, ...), before a ReLU of slope a (He et al., 2015), uniform."""
    return _kaiming(_Tensor.kaiming_uniform, tensor, a, mode, nonlinearity)


def kaiming_normal_(tensor, a=0.0, mode="fan_in", nonlinearity="leaky_relu"):
    """Of a weight (out, in, ...), before a ReLU of slope a, normal."""
    return _kaiming(_Tensor.kaiming_normal, tensor, a, mode, nonlinearity)
