"""Types of tuff.nn."""
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple, Sequence, overload

from . import DTypeLike, Padding, PerAxis, Tensor
from . import _functional as functional
from . import _init as init


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
    def zero_grad(self) -> None: ...


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
    def __init__(self, output: PerAxis) -> None: ...


class AdaptiveAvgPool2d(Module):
    def __init__(self, output: PerAxis) -> None: ...


class AdaptiveAvgPool3d(Module):
    def __init__(self, output: PerAxis) -> None: ...


class AdaptiveMaxPool1d(Module):
    def __init__(self, output: PerAxis) -> None: ...


class AdaptiveMaxPool2d(Module):
    def __init__(self, output: PerAxis) -> None: ...


class AdaptiveMaxPool3d(Module):
    def __init__(self, output: PerAxis) -> None: ...


class AvgPool1d(Module):
    def __init__(self, kernel: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: int | None = None) -> None: ...


class AvgPool2d(Module):
    def __init__(self, kernel: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: int | None = None) -> None: ...


class AvgPool3d(Module):
    def __init__(self, kernel: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0,
                 ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: int | None = None) -> None: ...


class BatchNorm(Module):
    weight: Tensor | None
    bias: Tensor | None
    running_mean: Tensor
    running_var: Tensor
    def __init__(self, features: int, eps: float = 1e-05, momentum: float = 0.1,
                 affine: bool = True, *, dtype: DTypeLike = ..., device: str = '') -> None: ...


BatchNorm1d = BatchNorm
BatchNorm2d = BatchNorm
BatchNorm3d = BatchNorm


class CELU(Module):
    def __init__(self, alpha: float = 1.0) -> None: ...


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
    def __init__(self, in_channels: int, out_channels: int, kernel: PerAxis, stride: PerAxis = 1,
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
    def __init__(self, in_channels: int, out_channels: int, kernel: PerAxis, stride: PerAxis = 1,
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
    def __init__(self, in_channels: int, out_channels: int, kernel: PerAxis, stride: PerAxis = 1,
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
    def __init__(self, in_channels: int, out_channels: int, kernel: PerAxis, stride: PerAxis = 1,
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
    def __init__(self, in_channels: int, out_channels: int, kernel: PerAxis, stride: PerAxis = 1,
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
    def __init__(self, in_channels: int, out_channels: int, kernel: PerAxis, stride: PerAxis = 1,
                 padding: PerAxis = 0, output_padding: PerAxis = 0, groups: int = 1,
                 bias: bool = True, dilation: PerAxis = 1, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
                 padding: PerAxis = 0, output_padding: PerAxis = 0, groups: int = 1,
                 dilation: PerAxis = 1) -> None: ...


class Dropout(Module):
    p: float
    def __init__(self, p: float = 0.5) -> None: ...


class ELU(Module):
    def __init__(self, alpha: float = 1.0) -> None: ...


class Embedding(Module):
    weight: Tensor
    @overload
    def __init__(self, count: int, features: int, padding_idx: int | None = None, *,
                 dtype: DTypeLike = ..., device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, padding_idx: int | None = None) -> None: ...


class EmbeddingBag(Module):
    weight: Tensor
    @overload
    def __init__(self, count: int, features: int, mode: str = 'mean',
                 padding_idx: int | None = None, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, mode: str = 'mean',
                 padding_idx: int | None = None) -> None: ...


class Flatten(Module):
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None: ...


class Fold(Module):
    def __init__(self, output: PerAxis, kernel: PerAxis, dilation: PerAxis = 1,
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
    def __init__(self, groups: int, channels: int, eps: float = 1e-05, affine: bool = True, *,
                 dtype: DTypeLike = ..., device: str = '') -> None: ...


class Hardsigmoid(Module): ...


class Hardswish(Module): ...


class Hardtanh(Module):
    def __init__(self, min: float = -1.0, max: float = 1.0) -> None: ...


class Identity(Module): ...


class InstanceNorm(Module):
    weight: Tensor | None
    bias: Tensor | None
    def __init__(self, features: int, eps: float = 1e-05, affine: bool = False, *,
                 dtype: DTypeLike = ..., device: str = '') -> None: ...


InstanceNorm1d = InstanceNorm
InstanceNorm2d = InstanceNorm
InstanceNorm3d = InstanceNorm


class LPPool1d(Module):
    def __init__(self, p: float, kernel: PerAxis, stride: PerAxis | None = None,
                 ceil_mode: bool = False) -> None: ...


class LPPool2d(Module):
    def __init__(self, p: float, kernel: PerAxis, stride: PerAxis | None = None,
                 ceil_mode: bool = False) -> None: ...


class LPPool3d(Module):
    def __init__(self, p: float, kernel: PerAxis, stride: PerAxis | None = None,
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
    def __init__(self, features: int, eps: float = 1e-05, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor, bias: Tensor, eps: float = 1e-05) -> None: ...


class LayerNorm2d(Module):
    weight: Tensor
    bias: Tensor
    def __init__(self, channels: int, eps: float = 1e-06, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...


class LeakyReLU(Module):
    def __init__(self, negative_slope: float = 0.01) -> None: ...


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
    def __init__(self, kernel: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0,
                 dilation: PerAxis = 1, ceil_mode: bool = False,
                 return_indices: bool = False) -> None: ...


class MaxPool2d(Module):
    def __init__(self, kernel: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0,
                 dilation: PerAxis = 1, ceil_mode: bool = False,
                 return_indices: bool = False) -> None: ...


class MaxPool3d(Module):
    def __init__(self, kernel: PerAxis, stride: PerAxis | None = None, padding: PerAxis = 0,
                 dilation: PerAxis = 1, ceil_mode: bool = False,
                 return_indices: bool = False) -> None: ...


class MaxUnpool1d(Module):
    def __init__(self, kernel: PerAxis, stride: PerAxis | None = None,
                 padding: PerAxis = 0) -> None: ...


class MaxUnpool2d(Module):
    def __init__(self, kernel: PerAxis, stride: PerAxis | None = None,
                 padding: PerAxis = 0) -> None: ...


class MaxUnpool3d(Module):
    def __init__(self, kernel: PerAxis, stride: PerAxis | None = None,
                 padding: PerAxis = 0) -> None: ...


class Mish(Module): ...


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
    def __init__(self, parameters: int = 1, init: float = 0.25, *, dtype: DTypeLike = ...,
                 device: str = '') -> None: ...
    @overload
    def __init__(self, weight: Tensor) -> None: ...


class PixelShuffle(Module):
    def __init__(self, factor: int) -> None: ...


class PixelUnshuffle(Module):
    def __init__(self, factor: int) -> None: ...


class RMSNorm(Module):
    weight: Tensor
    @overload
    def __init__(self, features: int, eps: float | None = None, *, dtype: DTypeLike = ...,
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


class ReLU(Module): ...


class ReLU6(Module): ...


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


class SELU(Module): ...


class SiLU(Module): ...


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


class Transformer(Module):
    encoder: TransformerEncoder
    decoder: TransformerDecoder
    def __init__(self, features: int = 512, heads: int = 8, num_encoder_layers: int = 6,
                 num_decoder_layers: int = 6, **options: Any) -> None: ...
    def forward(self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None,
                tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None,
                src_key_padding_mask: Tensor | None = None,
                tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None, src_is_causal: bool = False,
                tgt_is_causal: bool = False) -> Tensor: ...
    @staticmethod
    def generate_square_subsequent_mask(size: int, **options: Any) -> Tensor: ...


class TransformerDecoder(Module):
    layers: ModuleList
    norm: LayerNorm | None
    def __init__(self, features: int, heads: int, num_layers: int, norm: bool = False,
                 **options: Any) -> None: ...
    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, tgt_is_causal: bool = False,
                tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None) -> Tensor: ...


class TransformerDecoderLayer(Module):
    self_attn: MultiHeadAttention
    multihead_attn: MultiHeadAttention
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
    activation: str
    def __init__(self, features: int, heads: int, dim_feedforward: int = 2048,
                 dropout: float = 0.1, activation: str = 'relu', layer_norm_eps: float = 1e-05,
                 norm_first: bool = False, **options: Any) -> None: ...
    def forward(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None,
                memory_mask: Tensor | None = None, tgt_is_causal: bool = False,
                tgt_key_padding_mask: Tensor | None = None,
                memory_key_padding_mask: Tensor | None = None) -> Tensor: ...


class TransformerEncoder(Module):
    layers: ModuleList
    norm: LayerNorm | None
    def __init__(self, features: int, heads: int, num_layers: int, norm: bool = False,
                 **options: Any) -> None: ...
    def forward(self, src: Tensor, src_mask: Tensor | None = None, is_causal: bool = False,
                src_key_padding_mask: Tensor | None = None) -> Tensor: ...


class TransformerEncoderLayer(Module):
    self_attn: MultiHeadAttention
    linear1: Linear
    linear2: Linear
    norm1: LayerNorm
    norm2: LayerNorm
    dropout: Dropout
    dropout1: Dropout
    dropout2: Dropout
    norm_first: bool
    activation: str
    def __init__(self, features: int, heads: int, dim_feedforward: int = 2048,
                 dropout: float = 0.1, activation: str = 'relu', layer_norm_eps: float = 1e-05,
                 norm_first: bool = False, **options: Any) -> None: ...
    def forward(self, src: Tensor, src_mask: Tensor | None = None, is_causal: bool = False,
                src_key_padding_mask: Tensor | None = None) -> Tensor: ...


def Parameter(data: Tensor) -> Tensor: ...
def convert_(tensors: list[Tensor], dtype: DTypeLike = ..., device: str = '') -> None: ...
def load_state_dict(into: dict[str, Tensor], values: dict[str, Tensor],
                    strict: bool = True) -> LoadReport: ...



class Unfold(Module):
    def __init__(self, kernel: PerAxis, dilation: PerAxis = 1, padding: PerAxis = 0,
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
