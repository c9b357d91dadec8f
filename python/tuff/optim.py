"""Optimizers, gradient clipping, averages of parameters and learning-rate schedules."""
import collections.abc as _abc
import sys as _sys

from . import _lr_scheduler as lr_scheduler  # noqa: F401
from ._tuff import InvalidArgument as _InvalidArgument
from ._tuff.optim import (  # noqa: F401
    ASGD, LAMB, LARS, LBFGS, SGD, Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax,
    AveragedParameters, ChainedScheduler, ConstantLR, CosineAnnealingLR, CosineAnnealingWarmRestarts,
    CyclicLR, ExponentialLR, GradScaler, LRScheduler, LambdaLR, LinearLR, Lion, MultiStepLR, Muon, NAdam,
    OneCycleLR, Optimizer, OptimizerGroup, PolynomialLR, RAdam, RMSprop, ReduceLROnPlateau,
    SequentialLR, StepLR, clip_grad_norm_, clip_grad_value_,
)


class ParamGroup(_abc.MutableMapping):
    """A group of an optimizer's parameters, as PyTorch's dicts: its "params", and its "lr", which may be set."""

    def __init__(self, optimizer, number):
        self._optimizer, self._number = optimizer, number

    def __getitem__(self, name):
        if name == "lr":
            return self._optimizer.lr_values[self._number]
        if name == "params":
            return self._optimizer._parameters_by_group[self._number]
        raise KeyError(name)

    def __setitem__(self, name, value):
        if name != "lr":
            raise _InvalidArgument(f"{name!r} of a group of parameters is what the optimizer was made with: only "
                                   '"lr" changes')
        self._optimizer.set_lr(float(value), self._number)

    def __delitem__(self, name):
        raise _InvalidArgument(f"{name!r} of a group of parameters stays")

    def __iter__(self):
        return iter(("params", "lr"))

    def __len__(self):
        return 2

    def __repr__(self):
        return f"ParamGroup(lr={self['lr']}, {len(self['params'])} parameters)"


Optimizer.param_groups = property(
    lambda self: [ParamGroup(self, i) for i in range(len(self.lr_values))], doc="Its groups of parameters.")
_sys.modules[__name__ + ".lr_scheduler"] = lr_scheduler
