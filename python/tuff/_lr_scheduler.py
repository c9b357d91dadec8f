"""tuff.optim.lr_scheduler: the schedules of tuff.optim, where PyTorch has them."""
from ._tuff.optim import (  # noqa: F401
    ChainedScheduler, ConstantLR, CosineAnnealingLR, CosineAnnealingWarmRestarts, CyclicLR, ExponentialLR, LRScheduler,
    LambdaLR, LinearLR, MultiStepLR, OneCycleLR, PolynomialLR, ReduceLROnPlateau, SequentialLR, StepLR,
)
