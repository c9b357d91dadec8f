"""Types of tuff.optim."""
from typing import Any, Callable, Mapping, Sequence, overload

from . import Tensor

# Parameters, or groups of them: "params" and options by name.
_Parameters = Sequence[Tensor] | Sequence[Mapping[str, Any]]


class Optimizer:
    @property
    def lr(self) -> Tensor: ...
    @property
    def lr_value(self) -> float: ...
    @property
    def lr_values(self) -> list[float]: ...
    @property
    def parameters(self) -> list[Tensor]: ...
    def load_state_dict(self, state: dict[str, Tensor]) -> None: ...
    @overload
    def set_lr(self, lr: float) -> None: ...
    @overload
    def set_lr(self, lr: float, group: int) -> None: ...
    def state_dict(self) -> dict[str, Tensor]: ...
    def step(self, also: Sequence[Tensor] = ()) -> None: ...
    def zero_grad(self) -> None: ...


class OptimizerGroup:
    def __init__(self, optimizers: Sequence[Optimizer]) -> None: ...
    def load_state_dict(self, state: dict[str, Tensor]) -> None: ...
    def state_dict(self) -> dict[str, Tensor]: ...
    def step(self, also: Sequence[Tensor] = ()) -> None: ...
    def zero_grad(self) -> None: ...


class AveragedParameters:
    @property
    def averages(self) -> list[Tensor]: ...
    def __init__(self, parameters: Sequence[Tensor], decay: float | None = None) -> None: ...
    def load_state_dict(self, state: dict[str, Tensor]) -> None: ...
    def state_dict(self) -> dict[str, Tensor]: ...
    def swap(self) -> None: ...
    def update(self) -> None: ...


class SGD(Optimizer):
    def __init__(self, parameters: _Parameters, lr: float = 0.01, momentum: float = 0.0,
                 weight_decay: float = 0.0, nesterov: bool = False, dampening: float = 0.0,
                 maximize: bool = False) -> None: ...


class Adam(Optimizer):
    def __init__(self, parameters: _Parameters, lr: float = 0.001, beta1: float = 0.9,
                 beta2: float = 0.999, eps: float = 1e-08, weight_decay: float = 0.0,
                 amsgrad: bool = False, maximize: bool = False) -> None: ...


class AdamW(Adam):
    def __init__(self, parameters: _Parameters, lr: float = 0.001, beta1: float = 0.9,
                 beta2: float = 0.999, eps: float = 1e-08, weight_decay: float = 0.01,
                 decay_matrices_only: bool = False, amsgrad: bool = False,
                 maximize: bool = False) -> None: ...


class Adamax(Optimizer):
    def __init__(self, parameters: _Parameters, lr: float = 0.002, beta1: float = 0.9,
                 beta2: float = 0.999, eps: float = 1e-08, weight_decay: float = 0.0,
                 maximize: bool = False) -> None: ...


class NAdam(Optimizer):
    def __init__(self, parameters: _Parameters, lr: float = 0.002, beta1: float = 0.9,
                 beta2: float = 0.999, eps: float = 1e-08, weight_decay: float = 0.0,
                 momentum_decay: float = 0.004, maximize: bool = False) -> None: ...


class RAdam(Optimizer):
    def __init__(self, parameters: _Parameters, lr: float = 0.001, beta1: float = 0.9,
                 beta2: float = 0.999, eps: float = 1e-08, weight_decay: float = 0.0,
                 maximize: bool = False) -> None: ...


class LAMB(Optimizer):
    def __init__(self, parameters: _Parameters, lr: float = 0.001, beta1: float = 0.9,
                 beta2: float = 0.999, eps: float = 1e-06, weight_decay: float = 0.0,
                 maximize: bool = False) -> None: ...


class Lion(Optimizer):
    def __init__(self, parameters: _Parameters, lr: float = 0.0001, beta1: float = 0.9,
                 beta2: float = 0.99, weight_decay: float = 0.0,
                 maximize: bool = False) -> None: ...


class RMSprop(Optimizer):
    def __init__(self, parameters: _Parameters, lr: float = 0.01, alpha: float = 0.99,
                 eps: float = 1e-08, weight_decay: float = 0.0, momentum: float = 0.0,
                 centered: bool = False, maximize: bool = False) -> None: ...


class Adagrad(Optimizer):
    def __init__(self, parameters: _Parameters, lr: float = 0.01, lr_decay: float = 0.0,
                 weight_decay: float = 0.0, initial_accumulator_value: float = 0.0,
                 eps: float = 1e-10, maximize: bool = False) -> None: ...


class Adadelta(Optimizer):
    def __init__(self, parameters: _Parameters, lr: float = 1.0, rho: float = 0.9,
                 eps: float = 1e-06, weight_decay: float = 0.0,
                 maximize: bool = False) -> None: ...


class ASGD(Optimizer):
    def __init__(self, parameters: _Parameters, lr: float = 0.01, lambd: float = 0.0001,
                 alpha: float = 0.75, t0: float = 1000000.0, weight_decay: float = 0.0,
                 maximize: bool = False) -> None: ...


class Adafactor(Optimizer):
    def __init__(self, parameters: _Parameters, lr: float = 0.01, beta2_decay: float = -0.8,
                 eps1: float | None = None, eps2: float = 0.001, d: float = 1.0,
                 weight_decay: float = 0.0, maximize: bool = False) -> None: ...


class LARS(Optimizer):
    def __init__(self, parameters: _Parameters, lr: float = 0.01, momentum: float = 0.9,
                 weight_decay: float = 0.0001, nesterov: bool = False, trust: float = 0.001,
                 eps: float = 0.0, maximize: bool = False) -> None: ...


class Muon(Optimizer):
    def __init__(self, parameters: _Parameters, lr: float = 0.001, weight_decay: float = 0.1,
                 momentum: float = 0.95, nesterov: bool = True, eps: float = 1e-07,
                 ns_steps: int = 5, maximize: bool = False) -> None: ...


class LBFGS(Optimizer):
    def __init__(self, parameters: Sequence[Tensor], lr: float = 1.0, max_iter: int = 20,
                 history_size: int = 100, tolerance_grad: float = 1e-07,
                 tolerance_change: float = 1e-09) -> None: ...
    def step(self, closure: Callable[[], Tensor]) -> float: ...


class LRScheduler:
    def get_last_lr(self, group: int = 0) -> float: ...
    @property
    def last_step(self) -> int: ...
    def load_state_dict(self, state: dict[str, Tensor]) -> None: ...
    def rate(self, step: int) -> float: ...
    def rate_of(self, base: float, step: int) -> float: ...
    def set_last_step(self, step: int) -> None: ...
    def state_dict(self) -> dict[str, Tensor]: ...
    def step(self) -> None: ...


class StepLR(LRScheduler):
    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1) -> None: ...


class MultiStepLR(LRScheduler):
    def __init__(self, optimizer: Optimizer, milestones: Sequence[int],
                 gamma: float = 0.1) -> None: ...


class ExponentialLR(LRScheduler):
    def __init__(self, optimizer: Optimizer, gamma: float) -> None: ...


class PolynomialLR(LRScheduler):
    def __init__(self, optimizer: Optimizer, total_iters: int = 5,
                 power: float = 1.0) -> None: ...


class ConstantLR(LRScheduler):
    def __init__(self, optimizer: Optimizer, factor: float = 0.3333333333333333,
                 total_iters: int = 5) -> None: ...


class LinearLR(LRScheduler):
    def __init__(self, optimizer: Optimizer, start_factor: float = 0.3333333333333333,
                 end_factor: float = 1.0, total_iters: int = 5) -> None: ...


class LambdaLR(LRScheduler):
    def __init__(self, optimizer: Optimizer, factor: Callable[[int], float]) -> None: ...


class CosineAnnealingLR(LRScheduler):
    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0) -> None: ...


class CosineAnnealingWarmRestarts(LRScheduler):
    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1,
                 eta_min: float = 0.0) -> None: ...


class OneCycleLR(LRScheduler):
    def __init__(self, optimizer: Optimizer, max_lr: float, total_steps: int,
                 pct_start: float = 0.3, div_factor: float = 25.0,
                 final_div_factor: float = 10000.0) -> None: ...


class CyclicLR(LRScheduler):
    def __init__(self, optimizer: Optimizer, base_lr: float, max_lr: float,
                 step_size_up: int = 2000, step_size_down: int | None = None,
                 mode: str = 'triangular', gamma: float = 1.0) -> None: ...


class SequentialLR(LRScheduler):
    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler],
                 milestones: Sequence[int]) -> None: ...


class ChainedScheduler(LRScheduler):
    def __init__(self, schedulers: Sequence[LRScheduler]) -> None: ...


class ReduceLROnPlateau:
    def __init__(self, optimizer: Optimizer, mode: str = 'min', factor: float = 0.1,
                 patience: int = 10, threshold: float = 0.0001, threshold_mode: str = 'rel',
                 cooldown: int = 0, min_lr: float = 0.0, eps: float = 1e-08) -> None: ...
    def get_last_lr(self, group: int = 0) -> float: ...
    def load_state_dict(self, state: dict[str, Tensor]) -> None: ...
    def state_dict(self) -> dict[str, Tensor]: ...
    def step(self, metric: float) -> None: ...


def clip_grad_norm_(parameters: Sequence[Tensor], max_norm: float,
                    norm_type: float = 2.0) -> Tensor: ...
def clip_grad_value_(parameters: Sequence[Tensor], clip_value: float) -> None: ...
