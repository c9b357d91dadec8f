"""Optimizers, gradient clipping, averages of parameters and learning-rate schedules."""
from ._tuff.optim import (  # noqa: F401
    ASGD, LAMB, LARS, LBFGS, SGD, Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax,
    AveragedParameters, ChainedScheduler, ConstantLR, CosineAnnealingLR, CosineAnnealingWarmRestarts,
    CyclicLR, ExponentialLR, GradScaler, LRScheduler, LambdaLR, LinearLR, Lion, MultiStepLR, Muon, NAdam,
    OneCycleLR, Optimizer, OptimizerGroup, PolynomialLR, RAdam, RMSprop, ReduceLROnPlateau,
    SequentialLR, StepLR, clip_grad_norm_, clip_grad_value_,
)
