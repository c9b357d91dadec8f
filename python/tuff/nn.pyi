"""Types of tuff.nn."""
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence, overload

from . import DTypeLike, Padding, PerAxis, Tensor
from . import _functional as functional
from . import _init as init
from . import _parameters as utils


class LoadReport(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class HookHandle:
    def remove(self) -> None: ...


class Module:
    @property
    def training(self) -> bool: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...
    def add_module(self, name: str, module: Module | None) -> None: ...
    def apply(self, f: Callable[[Module], Any]) -> Module: ...
    def bfloat16(self) -> Module: ...
    def buffers(self, recurse: bool = True) -> list[Tensor]: ...
    def children(self) -> list[Module]: ...
    def double(self) -> Module: ...
    def eval(self) -> Module: ...
    def extra_repr(self) -> str: ...
    def float(self) -> Module: ...
    def forward(self, *args: Any, **kwargs: Any) -> Any: ...
    def get_parameter(self, target: str) -> Tensor: ...
    def get_submodule(self, target: str) -> Module: ...
    def half(self) -> Module: ...
    def load_state_dict(self, state_dict: Mapping[str, Tensor], strict: bool = True) -> LoadReport: ...
    def modules(self) -> list[Module]: ...
    def named_buffers(self, prefix: str = '', recurse: bool = True) -> list[tuple[str, Tensor]]: ...
    def named_children(self) -> list[tuple[str, Module]]: ...
    def named_modules(self, prefix: str = '') -> list[tuple[str, Module]]: ...
    def named_parameters(self, prefix: str = '', recurse: bool = True) -> list[tuple[str, Tensor]]: ...
    def parameters(self, recurse: bool = True) -> list[Tensor]: ...
    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None: ...
    def register_forward_hook(self, hook: Callable[[Any, tuple, Any], Any]) -> HookHandle: ...
    def register_forward_pre_hook(self, hook: Callable[[Any, tuple], Any]) -> HookHandle: ...
    def register_module(self, name: str, module: Module | None) -> None: ...
    def register_parameter(self, name: str, parameter: Tensor | None) -> None: ...
    def requires_grad_(self, requires_grad: bool = True) -> Module: ...
    def state_dict(self, prefix: str = '') -> dict[str, Tensor]: ...
    def to(self, *args: DTypeLike | Sequence[str], device: str | Sequence[str] = '',
           dtype: DTypeLike | None = None) -> Module: ...
    def train(self, mode: bool = True) -> Module: ...
    def zero_grad(self, set_to_none: bool = True) -> None: ...


class Function(Module):
    function: Callable[..., Any]
    def __init__(self, function: Callable[..., Any]) -> None: ...
    def extra_repr(self) -> str: ...
    def forward(self, *args: Any, **kwargs: Any) -> Any: ...


class ModuleList(Module):
    def __init__(self, modules: Iterable[Callable[..., Any]] = ()) -> None: ...
    def __delitem__(self, index: int | slice) -> None: ...
    def __getitem__(self, index: int | slice) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...
    def __setitem__(self, index: int, module: Callable[..., Any]) -> None: ...
    def append(self, module: Callable[..., Any]) -> ModuleList: ...
    def extend(self, modules: Iterable[Callable[..., Any]]) -> ModuleList: ...
    def insert(self, index: int, module: Callable[..., Any]) -> ModuleList: ...


class Sequential(ModuleList):
    def __init__(self, *layers: Callable[[Tensor], Tensor]) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...


class ModuleDict(Module):
    def __init__(self, modules: Mapping[str, Callable[..., Any]] = ()) -> None: ...
    def __contains__(self, name: str) -> bool: ...
    def __delitem__(self, name: str) -> None: ...
    def __getitem__(self, name: str) -> Any: ...
    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __setitem__(self, name: str, module: Callable[..., Any]) -> None: ...
    def items(self) -> Iterable[tuple[str, Any]]: ...
    def keys(self) -> Iterable[str]: ...
    def update(self, modules: Mapping[str, Callable[..., Any]]) -> ModuleDict: ...
    def values(self) -> Iterable[Any]: ...


class AdaptiveAvgPool1d(Module):
    def __init__(self, output_size: PerAxis) -> None: ...


class AdaptiveAvgPool2d(Module):
    def __init__(self, output_size: PerAxis) -> None: ...


class AdaptiveAvgPool3d(Module):
    def __init__(self, output_size: PerAxis) -> None: ...


class AdaptiveMaxPool1d(Module):
    def __init__(self, output_size: PerAxis) -> None: ...


class AdaptiveMaxPool2d(Module):
    def __init__(self, output_size: PerAxis) -> None: ...


class AdaptiveMaxPool3d(Module):
    def __init__(self, output_size: PerAxis) -> None: ...


class AvgPool1d(Module):
    def __init__(self, kernel_size: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: int | None = None) -> None: ...


class AvgPool2d(Module):
    def __init__(self, kernel_size: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: int | None = None) -> None: ...


class AvgPool3d(Module):
    def __init__(self, kernel_size: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: int | None = None) -> None: ...


class BatchNorm(Module):
    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor
    running_var: Tensor
    def __init__(self, num_features: int, eps: float = 1e-05, momentum: float = 0.1,
                 affine: bool = True, *, dtype: DTypeLike = ..., device: str = '') -> None: ...


BatchNorm1d = BatchNorm
BatchNorm2d = BatchNorm
BatchNorm3d = BatchNorm


class CELU(Module):
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...


class ChannelShuffle(Module):
    def __init__(self, groups: int) -> None: ...


class CircularPad1d(Module):
    def __init__(self, padding: PerAxis) -> None: ...


class CircularPad2d(Module):
    def __init__(self, padding: PerAxis) -> None: ...


class CircularPad3d(Module):
    def __init__(self, padding: PerAxis) -> None: ...


class ConstantPad1d(Module):
    def __init__(self, padding: PerAxis, value: float) -> None: ...


class ConstantPad2d(Module):
    def __init__(self, padding: PerAxis, value: float) -> None: ...


class ConstantPad3d(Module):
    def __init__(self, padding: PerAxis, value: float) -> None: ...


class Conv1d(Module):
    weight: Tensor
    bias: Tensor | None
    @overload
    def __init__(self, in_channels: int, out_channels: int, kernel_size: PerAxis, stride: PerAxis = 1,
                 padding: Padding = 0, bias: bool = True, dilation: PerAxis = 1, groups: int = 1,
                 padding_mode: str = 'constant', *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
                 padding: Padding = 0, dilation: PerAxis = 1, groups: int = 1,
                 padding_mode: str = 'constant') -> None: ...


class Conv2d(Module):
    weight: Tensor
    bias: Tensor | None
    @overload
    def __init__(self, in_channels: int, out_channels: int, kernel_size: PerAxis, stride: PerAxis = 1,
                 padding: Padding = 0, bias: bool = True, dilation: PerAxis = 1, groups: int = 1,
                 padding_mode: str = 'constant', *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
                 padding: Padding = 0, dilation: PerAxis = 1, groups: int = 1,
                 padding_mode: str = 'constant') -> None: ...


class Conv3d(Module):
    weight: Tensor
    bias: Tensor | None
    @overload
    def __init__(self, in_channels: int, out_channels: int, kernel_size: PerAxis, stride: PerAxis = 1,
                 padding: Padding = 0, bias: bool = True, dilation: PerAxis = 1, groups: int = 1,
                 padding_mode: str = 'constant', *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
                 padding: Padding = 0, dilation: PerAxis = 1, groups: int = 1,
                 padding_mode: str = 'constant') -> None: ...


class ConvTranspose1d(Module):
    weight: Tensor
    bias: Tensor | None
    @overload
    def __init__(self, in_channels: int, out_channels: int, kernel_size: PerAxis, stride: PerAxis = 1,
                 padding: PerAxis = 0, output_padding: PerAxis = 0, groups: int = 1,
                 bias: bool = True, dilation: PerAxis = 1, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
                 padding: PerAxis = 0, output_padding: PerAxis = 0, groups: int = 1,
                 dilation: PerAxis = 1) -> None: ...


class ConvTranspose2d(Module):
    weight: Tensor
    bias: Tensor | None
    @overload
    def __init__(self, in_channels: int, out_channels: int, kernel_size: PerAxis, stride: PerAxis = 1,
                 padding: PerAxis = 0, output_padding: PerAxis = 0, groups: int = 1,
                 bias: bool = True, dilation: PerAxis = 1, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
                 padding: PerAxis = 0, output_padding: PerAxis = 0, groups: int = 1,
                 dilation: PerAxis = 1) -> None: ...


class ConvTranspose3d(Module):
    weight: Tensor
    bias: Tensor | None
    @overload
    def __init__(self, in_channels: int, out_channels: int, kernel_size: PerAxis, stride: PerAxis = 1,
                 padding: PerAxis = 0, output_padding: PerAxis = 0, groups: int = 1,
                 bias: bool = True, dilation: PerAxis = 1, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
                 padding: PerAxis = 0, output_padding: PerAxis = 0, groups: int = 1,
                 dilation: PerAxis = 1) -> None: ...


class Dropout(Module):
    p: float
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None: ...


class ELU(Module):
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None: ...


class Embedding(Module):
    weight: Tensor
    @overload
    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, *,
                 dtype: DTypeLike = ..., device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, padding_idx: int | None = None) -> None: ...


class EmbeddingBag(Module):
    weight: Tensor
    @overload
    def __init__(self, num_embeddings: int, embedding_dim: int, mode: str = 'mean',
                 padding_idx: int | None = None, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, mode: str = 'mean',
                 padding_idx: int | None = None) -> None: ...


class Flatten(Module):
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None: ...


class Fold(Module):
    def __init__(self, output_size: PerAxis, kernel_size: PerAxis, dilation: PerAxis = 1,
                 padding: PerAxis = 0, stride: PerAxis = 1) -> None: ...


class GELU(Module):
    def __init__(self, approximate: str = 'none') -> None: ...


class GLU(Module):
    def __init__(self, dim: int = -1) -> None: ...


class GRU(Module):
    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, *,
                 dtype: DTypeLike = ..., device: str = '') -> None: ...


class GRUCell(Module):
    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None
    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, *,
                 dtype: DTypeLike = ..., device: str = '') -> None: ...


class GroupNorm(Module):
    weight: Tensor | None
    bias: Tensor | None
    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-05, affine: bool = True, *,
                 dtype: DTypeLike = ..., device: str = '') -> None: ...


class Hardsigmoid(Module):
    def __init__(self, inplace: bool = False) -> None: ...


class Hardswish(Module):
    def __init__(self, inplace: bool = False) -> None: ...


class Hardtanh(Module):
    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None: ...


class Identity(Module): ...


class InstanceNorm(Module):
    weight: Tensor | None
    bias: Tensor | None
    def __init__(self, num_features: int, eps: float = 1e-05, affine: bool = False, *,
                 dtype: DTypeLike = ..., device: str = '') -> None: ...


InstanceNorm1d = InstanceNorm
InstanceNorm2d = InstanceNorm
InstanceNorm3d = InstanceNorm


class LPPool1d(Module):
    def __init__(self, norm_type: float, kernel_size: PerAxis, stride: PerAxis | None = None,
                 ceil_mode: bool = False) -> None: ...


class LPPool2d(Module):
    def __init__(self, norm_type: float, kernel_size: PerAxis, stride: PerAxis | None = None,
                 ceil_mode: bool = False) -> None: ...


class LPPool3d(Module):
    def __init__(self, norm_type: float, kernel_size: PerAxis, stride: PerAxis | None = None,
                 ceil_mode: bool = False) -> None: ...


class LSTM(Module):
    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, *,
                 dtype: DTypeLike = ..., device: str = '') -> None: ...


class LSTMCell(Module):
    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None
    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, *,
                 dtype: DTypeLike = ..., device: str = '') -> None: ...


class LayerNorm(Module):
    weight: Tensor
    bias: Tensor
    @overload
    def __init__(self, normalized_shape: PerAxis, eps: float = 1e-05, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, bias: Tensor, eps: float = 1e-05) -> None: ...


class LayerNorm2d(Module):
    weight: Tensor
    bias: Tensor
    def __init__(self, channels: int, eps: float = 1e-06, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...


class LeakyReLU(Module):
    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None: ...


class Linear(Module):
    weight: Tensor
    bias: Tensor | None
    @overload
    def __init__(self, in_features: int, out_features: int, bias: bool = True, *,
                 dtype: DTypeLike = ..., device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None: ...


class LinearInt4(Module):
    packed: Tensor
    scales: Tensor
    zeros: Tensor | None
    bias: Tensor | None
    @overload
    def __init__(self, in_features: int, out_features: int, bias: bool = True, group_size: int = 32,
                 symmetric: bool = False, *, dtype: DTypeLike = ..., device: str = '') -> None: ...
    @overload
    def __init__(self, packed: Tensor, scales: Tensor, zeros: Tensor | None = None,
                 bias: Tensor | None = None, group_size: int = 32) -> None: ...
    @classmethod
    def from_float(cls, linear: Linear, group_size: int = 32, symmetric: bool = False) -> LinearInt4: ...


class LocalResponseNorm(Module):
    def __init__(self, size: int, alpha: float = 0.0001, beta: float = 0.75,
                 k: float = 1.0) -> None: ...


class LogSigmoid(Module): ...


class LogSoftmax(Module):
    def __init__(self, dim: int = -1) -> None: ...


class MaxPool1d(Module):
    def __init__(self, kernel_size: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0,
                 dilation: PerAxis = 1, ceil_mode: bool = False,
                 return_indices: bool = False) -> None: ...


class MaxPool2d(Module):
    def __init__(self, kernel_size: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0,
                 dilation: PerAxis = 1, ceil_mode: bool = False,
                 return_indices: bool = False) -> None: ...


class MaxPool3d(Module):
    def __init__(self, kernel_size: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0,
                 dilation: PerAxis = 1, ceil_mode: bool = False,
                 return_indices: bool = False) -> None: ...


class MaxUnpool1d(Module):
    def __init__(self, kernel_size: PerAxis, stride: PerAxis | None = None,
                 padding: PerAxis = 0) -> None: ...


class MaxUnpool2d(Module):
    def __init__(self, kernel_size: PerAxis, stride: PerAxis | None = None,
                 padding: PerAxis = 0) -> None: ...


class MaxUnpool3d(Module):
    def __init__(self, kernel_size: PerAxis, stride: PerAxis | None = None,
                 padding: PerAxis = 0) -> None: ...


class Mish(Module):
    def __init__(self, inplace: bool = False) -> None: ...


class MultiHeadAttention(Module):
    in_proj_weight: Tensor | None
    q_proj_weight: Tensor | None
    k_proj_weight: Tensor | None
    v_proj_weight: Tensor | None
    in_proj_bias: Tensor | None
    out_proj: Linear
    def __init__(self, features: int, heads: int, dropout: float = 0.0, bias: bool = True,
                 kdim: int | None = None, vdim: int | None = None, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...


class PReLU(Module):
    weight: Tensor
    @overload
    def __init__(self, num_parameters: int = 1, init: float = 0.25, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor) -> None: ...


class PixelShuffle(Module):
    def __init__(self, upscale_factor: int) -> None: ...


class PixelUnshuffle(Module):
    def __init__(self, downscale_factor: int) -> None: ...


class RMSNorm(Module):
    weight: Tensor
    @overload
    def __init__(self, normalized_shape: PerAxis, eps: float | None = None, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, eps: float | None = None) -> None: ...


class RNN(Module):
    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1,
                 nonlinearity: str = 'tanh', bias: bool = True, batch_first: bool = False,
                 dropout: float = 0.0, bidirectional: bool = False, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...


class RNNCell(Module):
    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None
    def __init__(self, input_size: int, hidden_size: int, bias: bool = True,
                 nonlinearity: str = 'tanh', *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...


class ReLU(Module):
    def __init__(self, inplace: bool = False) -> None: ...


class ReLU6(Module):
    def __init__(self, inplace: bool = False) -> None: ...


class ReflectionPad1d(Module):
    def __init__(self, padding: PerAxis) -> None: ...


class ReflectionPad2d(Module):
    def __init__(self, padding: PerAxis) -> None: ...


class ReflectionPad3d(Module):
    def __init__(self, padding: PerAxis) -> None: ...


class ReplicationPad1d(Module):
    def __init__(self, padding: PerAxis) -> None: ...


class ReplicationPad2d(Module):
    def __init__(self, padding: PerAxis) -> None: ...


class ReplicationPad3d(Module):
    def __init__(self, padding: PerAxis) -> None: ...


class SELU(Module):
    def __init__(self, inplace: bool = False) -> None: ...


class SiLU(Module):
    def __init__(self, inplace: bool = False) -> None: ...


class Sigmoid(Module): ...


class Softmax(Module):
    def __init__(self, dim: int = -1) -> None: ...


class Softmin(Module):
    def __init__(self, dim: int = -1) -> None: ...


class Softplus(Module):
    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None: ...


class Softsign(Module): ...


class Tanh(Module): ...


class Tanhshrink(Module): ...


class BCELoss(Module):
    def __init__(self, weight: Tensor | None = None, *, reduction: str = 'mean') -> None: ...


class BCEWithLogitsLoss(Module):
    def __init__(self, weight: Tensor | None = None, *, reduction: str = 'mean', pos_weight: Tensor | None =
                 None) -> None: ...


class CTCLoss(Module):
    def __init__(self, blank: int = 0, reduction: str = 'mean', zero_infinity: bool = False) -> None: ...


class CosineEmbeddingLoss(Module):
    def __init__(self, margin: float = 0.0, *, reduction: str = 'mean') -> None: ...


class CosineSimilarity(Module):
    def __init__(self, dim: int = 1, eps: float = 1e-08) -> None: ...


class CrossEntropyLoss(Module):
    def __init__(self, weight: Tensor | None = None, *, ignore_index: int = -100, reduction: str = 'mean',
                 label_smoothing: float = 0.0) -> None: ...


class Dropout1d(Module): ...


class Dropout2d(Module): ...


class Dropout3d(Module): ...


class GaussianNLLLoss(Module):
    def __init__(self, *, full: bool = False, eps: float = 1e-06, reduction: str = 'mean') -> None: ...


class Hardshrink(Module):
    def __init__(self, lambd: float = 0.5) -> None: ...


class HingeEmbeddingLoss(Module):
    def __init__(self, margin: float = 1.0, *, reduction: str = 'mean') -> None: ...


class HuberLoss(Module):
    def __init__(self, reduction: str = 'mean', delta: float = 1.0) -> None: ...


class KLDivLoss(Module):
    def __init__(self, *, reduction: str = 'mean', log_target: bool = False) -> None: ...


class L1Loss(Module):
    def __init__(self, *, reduction: str = 'mean') -> None: ...


class MSELoss(Module):
    def __init__(self, *, reduction: str = 'mean') -> None: ...


class MarginRankingLoss(Module):
    def __init__(self, margin: float = 0.0, *, reduction: str = 'mean') -> None: ...


class MultiheadAttention(MultiHeadAttention):
    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv:
                 bool = False, add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None,
                 batch_first: bool = False, device: str = '', dtype: DTypeLike = 'float32') -> None: ...
    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]: ...


class NLLLoss(Module):
    def __init__(self, weight: Tensor | None = None, *, ignore_index: int = -100, reduction: str = 'mean') -> None: ...


class PairwiseDistance(Module):
    def __init__(self, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> None: ...


class ParameterDict(Module):
    def __init__(self, values: Mapping[str, Tensor] = ()) -> None: ...
    def update(self, values: Mapping[str, Tensor]) -> ParameterDict: ...
    def keys(self) -> Iterable[str]: ...
    def values(self) -> Iterable[Tensor]: ...
    def items(self) -> Iterable[tuple[str, Tensor]]: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __contains__(self, name: str) -> bool: ...
    def __getitem__(self, name: str) -> Any: ...
    def __setitem__(self, name: str, value: Tensor) -> None: ...
    def __delitem__(self, name: str) -> None: ...


class ParameterList(Module):
    def __init__(self, values: Iterable[Tensor] = ()) -> None: ...
    def append(self, value: Tensor) -> ParameterList: ...
    def extend(self, values: Iterable[Tensor]) -> ParameterList: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __getitem__(self, index: Any) -> Any: ...
    def __setitem__(self, index: Any, value: Tensor) -> None: ...


class PoissonNLLLoss(Module):
    def __init__(self, log_input: bool = True, full: bool = False, *, eps: float = 1e-08, reduction: str =
                 'mean') -> None: ...


class RReLU(Module):
    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None: ...


class SmoothL1Loss(Module):
    def __init__(self, *, reduction: str = 'mean', beta: float = 1.0) -> None: ...


class SoftMarginLoss(Module):
    def __init__(self, *, reduction: str = 'mean') -> None: ...


class Softmax2d(Module): ...


class Softshrink(Module):
    def __init__(self, lambd: float = 0.5) -> None: ...


class Threshold(Module):
    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None: ...


class Transformer(Module):
    encoder: TransformerEncoder
    decoder: TransformerDecoder
    def __init__(self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int
                 = 6, dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Callable[[Tensor],
                 Tensor] = 'relu', custom_encoder: Module | None = None, custom_decoder: Module | None = None,
                 layer_norm_eps: float = 1e-05, batch_first: bool = False, norm_first: bool = False, bias: bool
                 = True, **placed: Any) -> None: ...
    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                src_is_causal: bool = False, tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor: ...
    @staticmethod
    def generate_square_subsequent_mask(size: PerAxis | None, **options: Any) -> Tensor: ...


class TransformerDecoder(Module):
    layers: ModuleList
    num_layers: int
    norm: Module | None
    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None: ...
    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None =
                None, tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor: ...


class TransformerDecoderLayer(Module):
    self_attn: MultiheadAttention
    multihead_attn: MultiheadAttention
    linear1: Linear
    linear2: Linear
    norm1: LayerNorm
    norm2: LayerNorm
    norm3: LayerNorm
    dropout: Dropout
    dropout1: Dropout
    dropout2: Dropout
    dropout3: Dropout
    norm_first: bool
    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation:
                 str | Callable[[Tensor], Tensor] = 'relu', layer_norm_eps: float = 1e-05, batch_first: bool =
                 False, norm_first: bool = False, bias: bool = True, **placed: Any) -> None: ...
    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None =
                None, tgt_key_padding_mask: Tensor | None = None, memory_key_padding_mask: Tensor | None = None,
                tgt_is_causal: bool = False, memory_is_causal: bool = False) -> Tensor: ...


class TransformerEncoder(Module):
    layers: ModuleList
    num_layers: int
    norm: Module | None
    def __init__(self, encoder_layer: Module, num_layers: int, norm: Module | None = None) -> None: ...
    def forward(self, src: Tensor, mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool = False) -> Tensor: ...


class TransformerEncoderLayer(Module):
    self_attn: MultiheadAttention
    linear1: Linear
    linear2: Linear
    norm1: LayerNorm
    norm2: LayerNorm
    dropout: Dropout
    dropout1: Dropout
    dropout2: Dropout
    norm_first: bool
    def __init__(self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation:
                 str | Callable[[Tensor], Tensor] = 'relu', layer_norm_eps: float = 1e-05, batch_first: bool =
                 False, norm_first: bool = False, bias: bool = True, **placed: Any) -> None: ...
    def forward(self, src: Tensor, src_mask: Tensor | None = None, src_key_padding_mask: Tensor | None = None,
                is_causal: bool = False) -> Tensor: ...


class TripletMarginLoss(Module):
    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-06, swap: bool = False, *,
                 reduction: str = 'mean') -> None: ...


class Unflatten(Module):
    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...


class UpsamplingBilinear2d(UpsamplingNearest2d):
    def forward(self, x: Tensor) -> Tensor: ...


class UpsamplingNearest2d(Module):
    def __init__(self, size: PerAxis | None = None, scale_factor: float | Sequence[float] | None = None) -> None: ...
    def forward(self, x: Tensor) -> Tensor: ...


def Parameter(data: Tensor) -> Tensor: ...
def convert_(tensors: list[Tensor], dtype: DTypeLike = ..., device: str = '') -> None: ...
def load_state_dict(into: dict[str, Tensor], values: dict[str, Tensor],
                    strict: bool = True) -> LoadReport: ...



class Unfold(Module):
    def __init__(self, kernel_size: PerAxis, dilation: PerAxis = 1, padding: PerAxis = 0,
                 stride: PerAxis = 1) -> None: ...


class Upsample(Module):
    def __init__(self, size: PerAxis | None = None,
                 scale_factor: float | Sequence[float] | None = None, mode: str = 'nearest',
                 align_corners: bool = False) -> None: ...


class ZeroPad1d(Module):
    def __init__(self, padding: PerAxis) -> None: ...


class ZeroPad2d(Module):
    def __init__(self, padding: PerAxis) -> None: ...


class ZeroPad3d(Module):
    def __init__(self, padding: PerAxis) -> None: ...
