"""Optimizers, gradient clipping and learning-rate schedules."""
from ._tuff.optim import (  # noqa: F401
    SGD, Adam, AdamW, CosineAnnealingLR, LRScheduler, LambdaLR, LinearLR, OneCycleLR, Optimizer,
    StepLR, clip_grad_norm_, clip_grad_value_,
)
