"""Layers without tensors of their own that are functions of tuff.nn.functional, and containers of parameters."""
from . import _functional as F
from ._module import Module, Parameter


class _Applied(Module):
    """A function of a tensor with its options."""
    _function = None

    def __init__(self, **options):
        self._options = tuple(options)
        for name, value in options.items():
            setattr(self, name, value)

    def forward(self, *given):
        """As the function."""
        return self._function(*given, **{name: getattr(self, name) for name in self._options})

    def extra_repr(self):
        """The options."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._options)


class Threshold(_Applied):
    """x where it is above the threshold, else a value."""
    _function = staticmethod(F.threshold)

    def __init__(self, threshold, value, inplace=False):
        super().__init__(threshold=threshold, value=value)


class Softshrink(_Applied):
    """x closer to 0 by lambd, 0 within."""
    _function = staticmethod(F.softshrink)

    def __init__(self, lambd=0.5):
        super().__init__(lambd=lambd)


class Hardshrink(_Applied):
    """x, 0 within -lambd..lambd."""
    _function = staticmethod(F.hardshrink)

    def __init__(self, lambd=0.5):
        super().__init__(lambd=lambd)


class RReLU(_Applied):
    """x, or a slope in lower..upper times x below 0: drawn in training mode, else the middle one."""
    _function = staticmethod(F.rrelu)

    def __init__(self, lower=1 / 8, upper=1 / 3, inplace=False):
        super().__init__(lower=lower, upper=upper)


class CosineSimilarity(_Applied):
    """functional.cosine_similarity()"""
    _function = staticmethod(F.cosine_similarity)

    def __init__(self, dim=1, eps=1e-8):
        super().__init__(dim=dim, eps=eps)


class PairwiseDistance(_Applied):
    """functional.pairwise_distance()"""
    _function = staticmethod(F.pairwise_distance)

    def __init__(self, p=2.0, eps=1e-6, keepdim=False):
        super().__init__(p=p, eps=eps, keepdim=keepdim)


class Softmax2d(_Applied):
    """softmax() over the channels of (N, C, H, W) or (C, H, W)."""

    @staticmethod
    def _function(x):
        return x.softmax(-3)


class Unflatten(_Applied):
    """One axis as several."""

    def __init__(self, dim, unflattened_size):
        super().__init__(dim=dim, unflattened_size=tuple(unflattened_size))

    def forward(self, x):
        """x with the axes instead."""
        return x.unflatten(self.dim, self.unflattened_size)


class _DropoutOfChannels(_Applied):
    def __init__(self, p=0.5, inplace=False):
        super().__init__(p=p)

    def forward(self, x):
        """x, some channels of which are 0 in training mode."""
        return self._function(x, self.p, self.training)


class Dropout1d(_DropoutOfChannels):
    """Zeroes whole channels of (N, C, L) or (C, L); only in training mode."""
    _function = staticmethod(F.dropout1d)


class Dropout2d(_DropoutOfChannels):
    """Zeroes whole channels of (N, C, H, W) or (C, H, W); only in training mode."""
    _function = staticmethod(F.dropout2d)


class Dropout3d(_DropoutOfChannels):
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W); only in training mode."""
    _function = staticmethod(F.dropout3d)


class UpsamplingNearest2d(_Applied):
    """functional.interpolate(mode="nearest")"""

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size=size, scale_factor=scale_factor)

    def forward(self, x):
        """x (N, C, H, W) enlarged."""
        return F.interpolate(x, self.size, self.scale_factor, "nearest")


class UpsamplingBilinear2d(UpsamplingNearest2d):
    """functional.interpolate(mode="bilinear", align_corners=True)"""

    def forward(self, x):
        """x (N, C, H, W) enlarged."""
        return F.interpolate(x, self.size, self.scale_factor, "bilinear", True)


class ParameterList(Module):
    """Parameters under their numbers."""

    def __init__(self, values=()):
        self.extend(values)

    def append(self, value):
        """One more, which then has requires_grad."""
        self.register_parameter(str(len(self)), Parameter(value))
        return self

    def extend(self, values):
        """Several more."""
        for v in values:
            self.append(v)
        return self

    def __len__(self):
        return len(self._parameters)

    def __iter__(self):
        return iter(list(self._parameters.values()))

    def __getitem__(self, index):
        return list(self)[index]

    def __setitem__(self, index, value):
        self._parameters[str(range(len(self))[index])] = Parameter(value)


class ParameterDict(Module):
    """Parameters under names."""

    def __init__(self, values=()):
        self.update(values)

    def update(self, values):
        """Those of a dict, or of pairs."""
        for name, v in dict(values).items():
            self[name] = v
        return self

    def keys(self):
        """Their names."""
        return self._parameters.keys()

    def values(self):
        """The parameters."""
        return self._parameters.values()

    def items(self):
        """Both."""
        return self._parameters.items()

    def __len__(self):
        return len(self._parameters)

    def __iter__(self):
        return iter(list(self._parameters))

    def __contains__(self, name):
        return name in self._parameters

    def __getitem__(self, name):
        return self._parameters[name]

    def __setitem__(self, name, value):
        if name not in self._parameters:
            self.register_parameter(name, None)  # refuses what is no name
        self._parameters[name] = Parameter(value)

    def __delitem__(self, name):
        del self._parameters[name]
