"""tuff.nn.functional: layers as functions, under the names of torch.nn.functional. All but a few are functions of Tensor,
whose parameters they have."""
from ._tuff import InvalidArgument as _InvalidArgument
from ._tuff import ShapeError as _ShapeError
from ._tuff import Tensor as _Tensor
from ._tuff import TrainingMode as _TrainingMode

# The name here, and that of the function of Tensor where it is another one.
for _line in """
    adaptive_avg_pool1d
    adaptive_avg_pool2d
    adaptive_avg_pool3d
    adaptive_max_pool1d
    adaptive_max_pool2d
    adaptive_max_pool3d
    affine_grid
    avg_pool1d
    avg_pool2d
    avg_pool3d
    batch_norm batchnorm
    binary_cross_entropy
    binary_cross_entropy_with_logits
    celu
    channel_shuffle
    conv1d
    conv2d
    conv3d
    conv_transpose1d
    conv_transpose2d
    conv_transpose3d
    cosine_embedding_loss
    cosine_similarity
    cross_entropy
    ctc_loss
    elu
    fold
    gaussian_nll_loss
    gelu
    glu
    grid_sample
    hardshrink
    hardsigmoid
    hardswish
    hardtanh
    hinge_embedding_loss
    huber_loss
    interpolate
    kl_div
    l1_loss
    layer_norm layernorm
    leaky_relu
    linear
    linear_cross_entropy
    log_softmax
    logsigmoid
    lp_pool1d
    lp_pool2d
    lp_pool3d
    margin_ranking_loss
    max_pool1d
    max_pool2d
    max_pool3d
    max_unpool1d
    max_unpool2d
    max_unpool3d
    mish
    mse_loss
    nll_loss
    normalize
    one_hot
    pairwise_distance
    pdist
    pixel_shuffle
    pixel_unshuffle
    poisson_nll_loss
    prelu
    relu
    relu6
    rms_norm
    rrelu
    scaled_dot_product_attention
    selu
    sigmoid
    silu
    smooth_l1_loss
    soft_margin_loss
    softmax
    softmin
    softplus
    softshrink
    softsign
    tanh
    tanhshrink
    threshold
    triplet_margin_loss
    unfold im2col
""".strip().splitlines():
    _here, *_there = _line.split()
    globals()[_here] = getattr(_Tensor, *_there or [_here])
del _line, _here, _there


def bilinear(x, y, weight, bias=None):
    """(..., n), (..., m) by weight (out, n, m): x W y of each row, plus bias."""
    out = _Tensor.einsum("...i,oij,...j->...o", [x, weight, y])
    return out if bias is None else out + bias


def dropout(x, p=0.5, training=True):
    """Zeroes with probability p and scales the rest, in or out of training mode."""
    with _TrainingMode(training):
        return x.dropout(p)


def _channel_dropout(x, p, training, axes):
    if x.dim() not in (axes + 1, axes + 2):
        raise _ShapeError(f"dropout{axes}d: {tuple(x.shape)} is neither (N, C, ...) nor (C, ...) of {axes} axes")
    kept = _Tensor.ones([*x.shape[:-axes], *[1] * axes], dtype=x.dtype, device=x.device)
    return x * dropout(kept, p, training)


def dropout1d(x, p=0.5, training=True):
    """Zeroes whole channels of (N, C, L) or (C, L) with probability p and scales the rest."""
    return _channel_dropout(x, p, training, 1)


def dropout2d(x, p=0.5, training=True):
    """Zeroes whole channels of (N, C, H, W) or (C, H, W) with probability p and scales the rest."""
    return _channel_dropout(x, p, training, 2)


def dropout3d(x, p=0.5, training=True):
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W) with probability p and scales the rest."""
    return _channel_dropout(x, p, training, 3)


def embedding(index, weight):
    """Rows of a weight (V, C): integers (...) -> (..., C)."""
    return _Tensor.embedding(weight, index)


def group_norm(x, groups, weight=None, bias=None, eps=1e-5):
    """(N, C, ...) with the mean and variance of each of `groups` parts of the channels."""
    if x.dim() < 2 or groups < 1 or x.shape[1] % groups:
        raise _ShapeError(f"group_norm: {groups} groups of the channels of {tuple(x.shape)}")
    rows = x.reshape(x.shape[0], groups, -1)
    return _scaled(rows.layernorm([rows.shape[2]], eps=eps).reshape(x.shape), weight, bias)


def instance_norm(x, weight=None, bias=None, eps=1e-5):
    """(N, C, ...) with the mean and variance of every channel of every sample."""
    if x.dim() < 2:
        raise _ShapeError(f"instance_norm: {tuple(x.shape)} has no channels")
    return group_norm(x, x.shape[1], weight, bias, eps)


def _scaled(x, weight, bias):
    channels = (-1,) + (1,) * (x.dim() - 2)
    x = x if weight is None else x * weight.reshape(channels)
    return x if bias is None else x + bias.reshape(channels)


def gumbel_softmax(logits, tau=1.0, hard=False, dim=-1):
    """A draw from the classes of these logits, as softmax((logits + noise) / tau) (Jang et al., 2017); hard: as one_hot(),
    with that one's gradient."""
    if not tau > 0:
        raise _InvalidArgument(f"gumbel_softmax: tau is {tau}")
    noise = _Tensor.exponential(logits.shape, device=logits.device).log().cast(logits.dtype)
    soft = ((logits - noise) / tau).softmax(dim)
    if not hard:
        return soft
    chosen = soft.argmax(dim, True)
    one = soft.zeros_like().scatter(dim, chosen, 1)
    return (one - soft).detach() + soft


def pad(x, padding, mode="constant", value=0):
    """Tensor.pad(), with the mode first."""
    return x.pad(padding, value, mode)
