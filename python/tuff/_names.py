"""PyTorch's further names for functions of Tensor: aliases, functions in place, and what is a line of Python."""
from . import _tuff
from ._grad import no_grad as _no_grad
from ._tuff import InvalidArgument as _InvalidArgument
from ._tuff import Tensor as _Tensor
from ._tuff import int32 as _int32

# Another name, and the function of Tensor that it is. `torch`'s functions of these names are the module's too.
ALIASES = dict(line.split() for line in """
    absolute abs
    arccos acos
    arccosh acosh
    arcsin asin
    arcsinh asinh
    arctan atan
    arctan2 atan2
    arctanh atanh
    argwhere nonzero
    clip clamp
    concat cat
    concatenate cat
    divide div
    fix trunc
    ger outer
    greater gt
    greater_equal ge
    less lt
    less_equal le
    moveaxis movedim
    multiply mul
    ndimension dim
    negative neg
    nelement numel
    not_equal ne
    row_stack vstack
    sgn sign
    subtract sub
    swapdims swapaxes
    true_divide div
    trapz trapezoid
""".strip().splitlines())

# Functions of which there is one in place, whose name ends in _. Comparisons give 0 and 1 in the tensor's dtype there.
COMPARISONS = "eq ne lt le gt ge logical_and logical_not logical_or logical_xor".split()
IN_PLACE = COMPARISONS + """
    abs acos acosh addbmm addcdiv addcmul addmm addmv addr asin asinh atan atan2 atanh baddbmm bitwise_and
    bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp_max clamp_min copysign cos
    cosh cumprod cumsum deg2rad digamma elu erf erfc erfinv exp exp2 expm1 floor floor_divide fmod frac gcd
    hardtanh heaviside hypot i0 lcm ldexp leaky_relu lerp lgamma log log10 log1p log2 logit mvlgamma
    nan_to_num neg nextafter polygamma pow rad2deg reciprocal relu remainder renorm round rrelu rsqrt selu sigmoid sign
    sin sinc sinh sqrt square tan tanh threshold tril triu trunc xlogy
""".split()


def clamp_min(self, min):
    """clamp() from below."""
    return self.clamp(min)


def clamp_max(self, max):
    """clamp() from above."""
    return self.clamp(None, max)


def positive(self):
    """The tensor itself."""
    return self


def rsub(self, other):
    """other - x"""
    return other - self


def narrow_copy(self, dim, start, length):
    """narrow() in memory of its own."""
    return self.narrow(dim, start, length).clone()


def type_as(self, other):
    """cast() to another tensor's dtype."""
    return self.cast(other.dtype)


def is_floating_point(self):
    """Is it of floats?"""
    return self.dtype.is_float


def is_signed(self):
    """Does its dtype have numbers below 0?"""
    return self.dtype.is_float or self.dtype.is_signed


def is_nonzero(self):
    """Is the one element of a tensor other than 0?"""
    return bool(self)


def is_same_size(self, other):
    """Has another tensor this shape?"""
    return self.shape == other.shape


def element_size(self):
    """Bytes of an element."""
    return self.dtype.itemsize


def _like(self, dtype, device):
    return {"dtype": self.dtype if dtype is None else dtype, "device": self.device if device is None else device}


def new_empty(self, sizes, *, dtype=None, device=None):
    """Tensor.empty() of this dtype and device unless others are given."""
    return _Tensor.empty(sizes, **_like(self, dtype, device))


def new_full(self, sizes, value, *, dtype=None, device=None):
    """Tensor.full() of this dtype and device unless others are given."""
    return _Tensor.full(sizes, value, **_like(self, dtype, device))


def new_ones(self, sizes, *, dtype=None, device=None):
    """Tensor.ones() of this dtype and device unless others are given."""
    return _Tensor.ones(sizes, **_like(self, dtype, device))


def new_zeros(self, sizes, *, dtype=None, device=None):
    """Tensor.zeros() of this dtype and device unless others are given."""
    return _Tensor.zeros(sizes, **_like(self, dtype, device))


def randint_like(self, low, high):
    """Whole numbers in [low, high) in this tensor's shape, dtype and device."""
    return _Tensor.randint(low, high, self.shape, dtype=_int32, device=self.device).cast(self.dtype)


def cpu(self):
    """to("CPU")"""
    return self.to("CPU")


METHODS = (cpu, clamp_min, clamp_max, positive, rsub, narrow_copy, type_as, is_floating_point, is_signed, is_nonzero,
           is_same_size, element_size, new_empty, new_full, new_ones, new_zeros, randint_like)


def _in_place(name):
    function = getattr(_Tensor, name)

    def in_place(self, *args, **kwargs):
        now = self._current()
        # x.mul_(x) of a view is of what it is by now, twice.
        args = [now if a is self else a for a in args]
        kwargs = {key: now if a is self else a for key, a in kwargs.items()}
        value = function(now, *args, **kwargs)
        if name in COMPARISONS:
            value = value.cast(self.dtype)
        tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, _Tensor)]
        return self._overwrite(f"{name}_", value, [now, *tensors])

    in_place.__name__ = in_place.__qualname__ = f"{name}_"
    in_place.__doc__ = f"{name}() in place."
    return in_place


def _drawn(name, function, parameters, doc):
    def in_place(self, *args, **kwargs):
        unknown = [key for key in kwargs if key not in parameters]
        if unknown or len(args) > len(parameters):
            raise _InvalidArgument(f"{name}: the parameters are {', '.join(parameters)}")
        values = {**parameters, **dict(zip(parameters, args)), **kwargs}
        return self.copy_(function(self, **values))

    in_place.__name__ = in_place.__qualname__ = name
    in_place.__doc__ = doc
    return in_place


def _options(x):
    return {"dtype": x.dtype, "device": x.device}


DRAWN = (
    _drawn("uniform_", lambda x, **to: _Tensor.uniform(x.shape, to["from"], to["to"], **_options(x)),
           {"from": 0.0, "to": 1.0}, "Uniform in [from, to), in place."),
    _drawn("normal_", lambda x, mean, std: _Tensor.normal(mean, std, x.shape, **_options(x)),
           {"mean": 0.0, "std": 1.0}, "Normal of this mean and standard deviation, in place."),
    _drawn("exponential_", lambda x, lambd: _Tensor.exponential(x.shape, lambd, **_options(x)),
           {"lambd": 1.0}, "Exponential of this rate, in place."),
    _drawn("bernoulli_", lambda x, p: (_Tensor.rand(x.shape, device=x.device) < p).cast(x.dtype),
           {"p": 0.5}, "1 with probability p, else 0, in place."),
)

# What PyTorch calls dtypes, and the functions that cast to them.
DTYPES = {"bool": _tuff.bool_, "double": _tuff.float64, "float": _tuff.float32, "half": _tuff.float16,
          "int": _tuff.int32, "long": _tuff.int64, "short": _tuff.int16}


def _cast(name, dtype):
    def cast(self):
        return self.cast(dtype)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"cast() to {dtype}."
    return cast


def _set_data(self, value):
    with _no_grad():
        self.assign(value)


data = property(lambda self: self.detach(), _set_data,
                doc="detach(), which writes what it is of; assigned to, the elements.")

for _method in METHODS:
    setattr(_Tensor, _method.__name__, _method)
for _name, _dtype in DTYPES.items():
    setattr(_Tensor, _name, _cast(_name, _dtype))
_Tensor.bfloat16 = _cast("bfloat16", _tuff.bfloat16)
_Tensor.data = data
for _name in IN_PLACE:
    setattr(_Tensor, f"{_name}_", _in_place(_name))
for _method in DRAWN:
    setattr(_Tensor, _method.__name__, _method)
for _name, _function in ALIASES.items():
    setattr(_Tensor, _name, vars(_Tensor)[_function])
    if hasattr(_Tensor, f"{_function}_"):
        setattr(_Tensor, f"{_name}_", getattr(_Tensor, f"{_function}_"))
