"""Layers: modules with a call operator, initialized as PyTorch does."""
import sys as _sys

from . import _functional as functional  # noqa: F401
from . import _init as init  # noqa: F401
from . import _parameters as utils  # noqa: F401
from ._layer import _Layer
from ._module import (  # noqa: F401
    Function, HookHandle, LoadReport, Module, ModuleDict, ModuleList, Parameter, Sequential,
    load_state_dict,
)
from ._tuff import Tensor as _Tensor, nn as _nn, quantize_int4 as _quantize_int4
from ._tuff.nn import convert_  # noqa: F401


class Linear(_Layer):
    """y = x @ weight.T + bias; weight (out, in)."""
    _core_class = _nn.Linear
    weight: _Tensor
    bias: _Tensor | None


class LinearInt4(_Layer):
    """A Linear whose weight is packed by tuff.quantize_int4(): (out, in / 2) bytes, and a scale and a zero point for
    each `group_size` numbers of a row. zeros is None where it is symmetric. The weight is trained no more."""
    _core_class = _nn.LinearInt4
    packed: _Tensor
    scales: _Tensor
    zeros: _Tensor | None
    bias: _Tensor | None

    @classmethod
    def from_float(cls, linear, group_size=32, symmetric=False):
        """Of a Linear, whose bias it shares."""
        return cls(*_quantize_int4(linear.weight.detach(), group_size, symmetric), linear.bias, group_size)


class BatchNorm(_Layer):
    """Of (N, C, ...), per channel: in training mode with the batch's statistics, which also move the
    running ones, else with those."""
    _core_class = _nn.BatchNorm
    weight: _Tensor | None
    bias: _Tensor | None
    running_mean: _Tensor
    running_var: _Tensor


BatchNorm1d = BatchNorm2d = BatchNorm3d = BatchNorm


class LayerNorm(_Layer):
    """Over the last axis."""
    _core_class = _nn.LayerNorm
    weight: _Tensor
    bias: _Tensor


class RMSNorm(_Layer):
    """x / sqrt(mean(x^2) + eps) over the last axis."""
    _core_class = _nn.RMSNorm
    weight: _Tensor


class GroupNorm(_Layer):
    """(N, C, ...) with the mean and variance of each of `groups` parts of the channels."""
    _core_class = _nn.GroupNorm
    weight: _Tensor | None
    bias: _Tensor | None


class InstanceNorm(_Layer):
    """(N, C, ...) with the mean and variance of every channel of every sample."""
    _core_class = _nn.InstanceNorm
    weight: _Tensor | None
    bias: _Tensor | None


InstanceNorm1d = InstanceNorm2d = InstanceNorm3d = InstanceNorm


class LayerNorm2d(_Layer):
    """LayerNorm over the channels of (N, C, H, W) at every place."""
    _core_class = _nn.LayerNorm2d
    weight: _Tensor
    bias: _Tensor


class Embedding(_Layer):
    """weight (count, features), standard normal; the row of padding_idx is 0 and gets no gradient."""
    _core_class = _nn.Embedding
    weight: _Tensor


class EmbeddingBag(_Layer):
    """Rows of weight (count, features) picked by integers (bags, length), and their sum, mean or max
    over each bag; those of padding_idx count for nothing."""
    _core_class = _nn.EmbeddingBag
    weight: _Tensor


class Dropout(_Layer):
    """Zeroes with probability p and scales the rest; only in training mode."""
    _core_class = _nn.Dropout
    _inplace_at = 1
    p: float


class MultiHeadAttention(_Layer):
    """Queries, keys and values (batch, time, features) projected, attended in `heads` parts and
    projected back. attn_mask: true attends, or added; key_padding_mask (batch, keys): true is ignored.
    With need_weights the result is a pair. out_proj is computed inside: hooks of its own are not
    called."""
    _core_class = _nn.MultiHeadAttention
    _part_classes = {"out_proj": Linear}
    in_proj_weight: _Tensor | None
    q_proj_weight: _Tensor | None
    k_proj_weight: _Tensor | None
    v_proj_weight: _Tensor | None
    in_proj_bias: _Tensor | None
    out_proj: Linear


class Identity(_Layer):
    """What it is given."""
    _core_class = _nn.Identity


class Flatten(_Layer):
    """The axes from start_dim to end_dim as one."""
    _core_class = _nn.Flatten


class ReLU(_Layer):
    """max(x, 0)"""
    _core_class = _nn.ReLU
    _inplace_at = 0


class ReLU6(_Layer):
    """min(max(x, 0), 6)"""
    _core_class = _nn.ReLU6
    _inplace_at = 0


class SELU(_Layer):
    """elu() of fixed alpha and scale, which keep mean and variance."""
    _core_class = _nn.SELU
    _inplace_at = 0


class ELU(_Layer):
    """x, or alpha (exp(x) - 1) below 0."""
    _core_class = _nn.ELU
    _inplace_at = 1


class CELU(_Layer):
    """x, or alpha (exp(x / alpha) - 1) below 0."""
    _core_class = _nn.CELU
    _inplace_at = 1


class Hardtanh(_Layer):
    """x kept in min..max."""
    _core_class = _nn.Hardtanh
    _inplace_at = 2


class PReLU(_Layer):
    """x, or a learned weight times x below 0: one weight, or one per channel."""
    _core_class = _nn.PReLU
    weight: _Tensor


class LogSigmoid(_Layer):
    """log(sigmoid(x))"""
    _core_class = _nn.LogSigmoid


class Hardsigmoid(_Layer):
    """x/6 + 1/2, kept in 0..1."""
    _core_class = _nn.Hardsigmoid
    _inplace_at = 0


class Hardswish(_Layer):
    """x hardsigmoid(x)"""
    _core_class = _nn.Hardswish
    _inplace_at = 0


class Mish(_Layer):
    """x tanh(softplus(x))"""
    _core_class = _nn.Mish
    _inplace_at = 0


class Softsign(_Layer):
    """x / (1 + |x|)"""
    _core_class = _nn.Softsign


class Tanhshrink(_Layer):
    """x - tanh(x)"""
    _core_class = _nn.Tanhshrink


class GLU(_Layer):
    """The first half of an axis times the sigmoid of the second."""
    _core_class = _nn.GLU


class Softmin(_Layer):
    """softmax(-x) along one axis."""
    _core_class = _nn.Softmin


class LeakyReLU(_Layer):
    """x where it is above 0, else negative_slope * x."""
    _core_class = _nn.LeakyReLU
    _inplace_at = 1


class GELU(_Layer):
    """x * Phi(x); approximate "none" or "tanh"."""
    _core_class = _nn.GELU


class SiLU(_Layer):
    """x * sigmoid(x)"""
    _core_class = _nn.SiLU
    _inplace_at = 0


class Sigmoid(_Layer):
    """1 / (1 + exp(-x))"""
    _core_class = _nn.Sigmoid


class Tanh(_Layer):
    """The hyperbolic tangent."""
    _core_class = _nn.Tanh


class Softplus(_Layer):
    """log(1 + exp(beta x)) / beta"""
    _core_class = _nn.Softplus


class Softmax(_Layer):
    """Along one axis."""
    _core_class = _nn.Softmax


class LogSoftmax(_Layer):
    """Along one axis."""
    _core_class = _nn.LogSoftmax


class RNNCell(_Layer):
    """h' = tanh(W x + b + V h + c), or relu."""
    _core_class = _nn.RNNCell
    weight_ih: _Tensor
    weight_hh: _Tensor
    bias_ih: _Tensor | None
    bias_hh: _Tensor | None


class LSTMCell(_Layer):
    """One step of an LSTM: cell(x, (h, c)) is (h', c')."""
    _core_class = _nn.LSTMCell
    weight_ih: _Tensor
    weight_hh: _Tensor
    bias_ih: _Tensor | None
    bias_hh: _Tensor | None


class GRUCell(_Layer):
    """One step of a GRU: cell(x, h) is h'."""
    _core_class = _nn.GRUCell
    weight_ih: _Tensor
    weight_hh: _Tensor
    bias_ih: _Tensor | None
    bias_hh: _Tensor | None


class RNN(_Layer):
    """RNNCells over a sequence (time, batch, features), or (batch, time, features) if batch_first:
    (output, h). The steps are a loop, of which one is compiled. lengths says how many each sequence of the batch
    has, as pack_padded_sequence() in PyTorch: outputs behind are 0, h is that of the last step, ways back begin at
    it."""
    _core_class = _nn.RNN


class LSTM(_Layer):
    """LSTMCells over a sequence, as RNN: (output, (h, c))."""
    _core_class = _nn.LSTM


class GRU(_Layer):
    """GRUCells over a sequence, as RNN: (output, h)."""
    _core_class = _nn.GRU


from ._attention import MultiheadAttention  # noqa: E402,F401
from ._layers_of_functions import (  # noqa: E402,F401
    CosineSimilarity, Dropout1d, Dropout2d, Dropout3d, Hardshrink, PairwiseDistance, ParameterDict, ParameterList,
    RReLU, Softmax2d, Softshrink, Threshold, Unflatten, UpsamplingBilinear2d, UpsamplingNearest2d,
)
from ._losses import (  # noqa: E402,F401
    BCELoss, BCEWithLogitsLoss, CTCLoss, CosineEmbeddingLoss, CrossEntropyLoss, GaussianNLLLoss, HingeEmbeddingLoss,
    HuberLoss, KLDivLoss, L1Loss, MSELoss, MarginRankingLoss, NLLLoss, PoissonNLLLoss, SmoothL1Loss, SoftMarginLoss,
    TripletMarginLoss,
)
from ._transformer import (  # noqa: E402,F401
    Transformer, TransformerDecoder, TransformerDecoderLayer, TransformerEncoder,
    TransformerEncoderLayer,
)
from ._windows import (  # noqa: E402,F401
    AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d, AdaptiveMaxPool1d, AdaptiveMaxPool2d,
    AdaptiveMaxPool3d, AvgPool1d, AvgPool2d, AvgPool3d, ChannelShuffle, CircularPad1d,
    CircularPad2d, CircularPad3d, ConstantPad1d, ConstantPad2d, ConstantPad3d, Conv1d, Conv2d,
    Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, Fold, LPPool1d, LPPool2d, LPPool3d,
    LocalResponseNorm, MaxPool1d, MaxPool2d, MaxPool3d, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d,
    PixelShuffle, PixelUnshuffle, ReflectionPad1d, ReflectionPad2d, ReflectionPad3d,
    ReplicationPad1d, ReplicationPad2d, ReplicationPad3d, Unfold, Upsample, ZeroPad1d, ZeroPad2d,
    ZeroPad3d,
)

# So that `import tuff.nn.functional as F` finds them.
_sys.modules[__name__ + ".functional"] = functional
_sys.modules[__name__ + ".init"] = init
_sys.modules[__name__ + ".utils"] = utils
