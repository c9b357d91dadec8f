"""Types of tuff.optim."""
from typing import Callable, Sequence, overload

from . import Tensor


class LRScheduler:
    def get_last_lr(self) -> float: ...
    @property
    def last_step(self) -> int: ...
    def rate(self, step: int) -> float: ...
    def step(self) -> None: ...


class Optimizer:
    @property
    def lr(self) -> Tensor: ...
    @property
    def lr_value(self) -> float: ...
    @property
    def parameters(self) -> list[Tensor]: ...
    def set_lr(self, lr: float) -> None: ...
    def step(self, also: Sequence[Tensor] = ()) -> None: ...
    def zero_grad(self) -> None: ...


class SGD(Optimizer):
    def __init__(self, parameters: Sequence[Tensor], lr: float = 0.01, momentum: float = 0.0,
                 weight_decay: float = 0.0, nesterov: bool = False) -> None: ...


class Adam(Optimizer):
    def __init__(self, parameters: Sequence[Tensor], lr: float = 0.001, beta1: float = 0.9,
                 beta2: float = 0.999, eps: float = 1e-08, weight_decay: float = 0.0) -> None: ...


class CosineAnnealingLR(LRScheduler):
    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None: ...


class LambdaLR(LRScheduler):
    def __init__(self, optimizer: Optimizer, factor: Callable[[int], float]) -> None: ...


class LinearLR(LRScheduler):
    def __init__(self, optimizer: Optimizer, start_factor: float = 0.3333333333333333,
                 end_factor: float = 1.0, total_iters: int = 5) -> None: ...


class OneCycleLR(LRScheduler):
    def __init__(self, optimizer: Optimizer, max_lr: float, total_steps: int,
                 pct_start: float = 0.3, div_factor: float = 25.0,
                 final_div_factor: float = 10000.0) -> None: ...


class StepLR(LRScheduler):
    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None: ...


class AdamW(Adam):
    def __init__(self, parameters: Sequence[Tensor], lr: float = 0.001, beta1: float = 0.9,
                 beta2: float = 0.999, eps: float = 1e-08, weight_decay: float = 0.01,
                 decay_matrices_only: bool = False) -> None: ...


def clip_grad_norm_(parameters: Sequence[Tensor], max_norm: float,
                    norm_type: float = 2.0) -> Tensor: ...
def clip_grad_value_(parameters: Sequence[Tensor], clip_value: float) -> None: ...
