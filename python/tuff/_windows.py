"""Layers of windows over the last axes: convolutions, pools, padding, resizing, shuffles."""
from ._layer import _Layer
from ._tuff import Tensor as _Tensor, nn as _nn


class Conv1d(_Layer):
    """(N, C, L) by weight (out, in/groups, K)."""
    _core_class = _nn.Conv1d
    weight: _Tensor
    bias: _Tensor | None


class Conv2d(_Layer):
    """(N, C, H, W) by weight (out, in/groups, KH, KW)."""
    _core_class = _nn.Conv2d
    weight: _Tensor
    bias: _Tensor | None


class Conv3d(_Layer):
    """(N, C, D, H, W) by weight (out, in/groups, KD, KH, KW)."""
    _core_class = _nn.Conv3d
    weight: _Tensor
    bias: _Tensor | None


class ConvTranspose1d(_Layer):
    """(N, C, L) by weight (in, out/groups, K): Tensor.conv_transpose1d()."""
    _core_class = _nn.ConvTranspose1d
    weight: _Tensor
    bias: _Tensor | None


class ConvTranspose2d(_Layer):
    """(N, C, H, W) by weight (in, out/groups, KH, KW): Tensor.conv_transpose2d()."""
    _core_class = _nn.ConvTranspose2d
    weight: _Tensor
    bias: _Tensor | None


class ConvTranspose3d(_Layer):
    """(N, C, D, H, W) by weight (in, out/groups, KD, KH, KW): Tensor.conv_transpose3d()."""
    _core_class = _nn.ConvTranspose3d
    weight: _Tensor
    bias: _Tensor | None


class MaxPool1d(_Layer):
    """Tensor.max_pool1d()."""
    _core_class = _nn.MaxPool1d


class MaxPool2d(_Layer):
    """Tensor.max_pool2d()."""
    _core_class = _nn.MaxPool2d


class MaxPool3d(_Layer):
    """Tensor.max_pool3d()."""
    _core_class = _nn.MaxPool3d


class MaxUnpool1d(_Layer):
    """Tensor.max_unpool1d(): called with x, the indices of a MaxPool1d, and output_size if that is
    not what they say."""
    _core_class = _nn.MaxUnpool1d


class AvgPool1d(_Layer):
    """Tensor.avg_pool1d()."""
    _core_class = _nn.AvgPool1d


class MaxUnpool2d(_Layer):
    """Tensor.max_unpool2d(): called with x, the indices of a MaxPool2d, and output_size if that is
    not what they say."""
    _core_class = _nn.MaxUnpool2d


class AvgPool2d(_Layer):
    """Tensor.avg_pool2d()."""
    _core_class = _nn.AvgPool2d


class MaxUnpool3d(_Layer):
    """Tensor.max_unpool3d(): called with x, the indices of a MaxPool3d, and output_size if that is
    not what they say."""
    _core_class = _nn.MaxUnpool3d


class AvgPool3d(_Layer):
    """Tensor.avg_pool3d()."""
    _core_class = _nn.AvgPool3d


class LPPool1d(_Layer):
    """Tensor.lp_pool1d()."""
    _core_class = _nn.LPPool1d


class LPPool2d(_Layer):
    """Tensor.lp_pool2d()."""
    _core_class = _nn.LPPool2d


class LPPool3d(_Layer):
    """Tensor.lp_pool3d()."""
    _core_class = _nn.LPPool3d


class AdaptiveAvgPool1d(_Layer):
    """Tensor.adaptive_avg_pool1d()."""
    _core_class = _nn.AdaptiveAvgPool1d


class AdaptiveAvgPool2d(_Layer):
    """Tensor.adaptive_avg_pool2d()."""
    _core_class = _nn.AdaptiveAvgPool2d


class AdaptiveAvgPool3d(_Layer):
    """Tensor.adaptive_avg_pool3d()."""
    _core_class = _nn.AdaptiveAvgPool3d


class AdaptiveMaxPool1d(_Layer):
    """Tensor.adaptive_max_pool1d()."""
    _core_class = _nn.AdaptiveMaxPool1d


class AdaptiveMaxPool2d(_Layer):
    """Tensor.adaptive_max_pool2d()."""
    _core_class = _nn.AdaptiveMaxPool2d


class AdaptiveMaxPool3d(_Layer):
    """Tensor.adaptive_max_pool3d()."""
    _core_class = _nn.AdaptiveMaxPool3d


class ReflectionPad1d(_Layer):
    """The mirror image, without the edge, around the last axis: one number, or (before, after) from the last axis on."""
    _core_class = _nn.ReflectionPad1d


class ReflectionPad2d(_Layer):
    """The mirror image, without the edge, around the last two axes: one number, or (before, after) from the last axis on."""
    _core_class = _nn.ReflectionPad2d


class ReflectionPad3d(_Layer):
    """The mirror image, without the edge, around the last three axes: one number, or (before, after) from the last axis on."""
    _core_class = _nn.ReflectionPad3d


class ReplicationPad1d(_Layer):
    """The edges around the last axis: one number, or (before, after) from the last axis on."""
    _core_class = _nn.ReplicationPad1d


class ReplicationPad2d(_Layer):
    """The edges around the last two axes: one number, or (before, after) from the last axis on."""
    _core_class = _nn.ReplicationPad2d


class ReplicationPad3d(_Layer):
    """The edges around the last three axes: one number, or (before, after) from the last axis on."""
    _core_class = _nn.ReplicationPad3d


class CircularPad1d(_Layer):
    """The other ends around the last axis: one number, or (before, after) from the last axis on."""
    _core_class = _nn.CircularPad1d


class CircularPad2d(_Layer):
    """The other ends around the last two axes: one number, or (before, after) from the last axis on."""
    _core_class = _nn.CircularPad2d


class CircularPad3d(_Layer):
    """The other ends around the last three axes: one number, or (before, after) from the last axis on."""
    _core_class = _nn.CircularPad3d


class ZeroPad1d(_Layer):
    """Zeros around the last axis: one number, or (before, after) from the last axis on."""
    _core_class = _nn.ZeroPad1d


class ZeroPad2d(_Layer):
    """Zeros around the last two axes: one number, or (before, after) from the last axis on."""
    _core_class = _nn.ZeroPad2d


class ZeroPad3d(_Layer):
    """Zeros around the last three axes: one number, or (before, after) from the last axis on."""
    _core_class = _nn.ZeroPad3d


class ConstantPad1d(_Layer):
    """A value around the last axis: one number, or (before, after) from the last axis on."""
    _core_class = _nn.ConstantPad1d


class ConstantPad2d(_Layer):
    """A value around the last two axes: one number, or (before, after) from the last axis on."""
    _core_class = _nn.ConstantPad2d


class ConstantPad3d(_Layer):
    """A value around the last three axes: one number, or (before, after) from the last axis on."""
    _core_class = _nn.ConstantPad3d


class LocalResponseNorm(_Layer):
    """(N, C, ...) over (k + alpha * the mean square of `size` neighbouring channels)^beta."""
    _core_class = _nn.LocalResponseNorm


class Upsample(_Layer):
    """Tensor.interpolate()."""
    _core_class = _nn.Upsample


class Unfold(_Layer):
    """Tensor.im2col()."""
    _core_class = _nn.Unfold


class Fold(_Layer):
    """Tensor.fold()."""
    _core_class = _nn.Fold


class PixelShuffle(_Layer):
    """Tensor.pixel_shuffle()."""
    _core_class = _nn.PixelShuffle


class PixelUnshuffle(_Layer):
    """Tensor.pixel_unshuffle()."""
    _core_class = _nn.PixelUnshuffle


class ChannelShuffle(_Layer):
    """Tensor.channel_shuffle()."""
    _core_class = _nn.ChannelShuffle
