"""Types of tuff.nn."""
from typing import Any, Callable, overload

from . import DTypeLike, Pair, Tensor


class _State:
    def parameters(self) -> list[Tensor]: ...
    def state_dict(self) -> dict[str, Tensor]: ...


class _Layer(_State):
    def __call__(self, x: Tensor) -> Tensor: ...


class _Weighted(_Layer):
    weight: Tensor | None


class _Biased(_Weighted):
    bias: Tensor | None


class BatchNorm(_Biased):
    running_mean: Tensor | None
    running_var: Tensor | None
    def __init__(self, features: int, eps: float = 1e-05, momentum: float = 0.1,
                 affine: bool = True, *, dtype: DTypeLike = ..., device: str = '') -> None: ...


class Conv2d(_Biased):
    @overload
    def __init__(self, in_channels: int, out_channels: int, kernel: Pair, stride: Pair = (1, 1),
                 padding: Pair = (0, 0), bias: bool = True, dilation: Pair = (1, 1),
                 groups: int = 1, *, dtype: DTypeLike = ..., device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, bias: Tensor | None = None, stride: Pair = (1, 1),
                 padding: Pair = (0, 0), dilation: Pair = (1, 1), groups: int = 1) -> None: ...


class Dropout(_Layer):
    @property
    def p(self) -> float: ...
    def __init__(self, p: float = 0.5) -> None: ...


class Embedding(_Weighted):
    @overload
    def __init__(self, count: int, features: int, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor) -> None: ...


class LayerNorm(_Biased):
    @overload
    def __init__(self, features: int, eps: float = 1e-05, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, bias: Tensor, eps: float = 1e-05) -> None: ...


class Linear(_Biased):
    @overload
    def __init__(self, in_features: int, out_features: int, bias: bool = True, *,
                 dtype: DTypeLike = ..., device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None: ...


class MultiHeadAttention(_State):
    in_proj_bias: Tensor | None
    in_proj_weight: Tensor | None
    @property
    def out_proj(self) -> Linear: ...
    def __call__(self, query: Tensor, key: Tensor | None = None, value: Tensor | None = None,
                 attn_mask: Tensor | None = None, is_causal: bool = False) -> Tensor: ...
    def __init__(self, features: int, heads: int, dropout: float = 0.0, bias: bool = True, *,
                 dtype: DTypeLike = ..., device: str = '') -> None: ...


class RMSNorm(_Weighted):
    @overload
    def __init__(self, features: int, eps: float | None = None, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, eps: float | None = None) -> None: ...


def load_state_dict(into: dict[str, Tensor], values: dict[str, Tensor]) -> None: ...


class Sequential(_Layer):
    layers: list[Callable[[Tensor], Tensor]]
    def __init__(self, *layers: Callable[[Tensor], Tensor]) -> None: ...
    def append(self, layer: Callable[[Tensor], Tensor]) -> Sequential: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Any: ...
