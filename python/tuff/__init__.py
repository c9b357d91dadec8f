"""tuff: a tensor engine. Lazy tensors with autograd, compiled to fused kernels; steps that are
captured once and replayed.

    import tuff
    x = tuff.tensor([[1.0, 2.0], [3.0, 4.0]])
    print((x @ x.T).softmax())

Names and arguments are those of the C++ API; operators and indexing are NumPy's. Nothing runs until
a value is asked for. Memory is shared with NumPy and others through from_blob(), from_dlpack(),
numpy() and the buffer protocol.
"""

import builtins as _builtins

from ._tuff import (  # noqa: F401
    __version__,
    ChatTemplate, CompileError, DType, DeviceLost, DynamicAxis, Error, Grammar, IndexError, InternalError, InvalidArgument,
    IoError, JitStats, OutOfMemory, ShapeError, Size, Tensor, TensorDict, TensorInfo, TextStream, Tokenizer, TrainingMode,
    Unsupported,
    bfloat16, bool_, float8_e4m3fn, float8_e5m2, float16, float32, float64, int8, int16, int32, int64,
    uint8, uint16, uint32, uint64,
    all_reduce, are_deterministic_algorithms_enabled, canonical_device, default_device, dequantize_int4, devices, digits, finfo, from_dlpack,
    is_grad_enabled, linear_int4, load, pack_int4, pow, promote, quantize_int4,
    realize, save, synchronize, tensor, training, unpack_int4, use_deterministic_algorithms,
)
from . import _names
from . import amp, autograd, data, distributions, fft, func, language, linalg, nn, onnx, optim, special  # noqa: F401
from .autograd import checkpoint, scan, vmap  # noqa: F401
from ._grad import no_grad  # noqa: F401
from ._jit import Jit, jit  # noqa: F401
from ._kernel import Kernel  # noqa: F401
from .fft import (  # noqa: F401
    bartlett_window, blackman_window, hamming_window, hann_window, istft, kaiser_window, stft,
)

# The functions of Tensor that need no tensor to begin with, or several.
empty, zeros, ones, full = Tensor.empty, Tensor.zeros, Tensor.ones, Tensor.full
arange, linspace, eye = Tensor.arange, Tensor.linspace, Tensor.eye
rand, randn, uniform, normal = Tensor.rand, Tensor.randn, Tensor.uniform, Tensor.normal
randint, randperm, manual_seed = Tensor.randint, Tensor.randperm, Tensor.manual_seed
exponential, trunc_normal, scaled_uniform = Tensor.exponential, Tensor.trunc_normal, Tensor.scaled_uniform
ctc_loss = Tensor.ctc_loss
get_rng_state, set_rng_state = Tensor.get_rng_state, Tensor.set_rng_state
from_blob, from_bytes, from_file = Tensor.from_blob, Tensor.from_bytes, Tensor.from_file
cat, stack, einsum, where = Tensor.cat, Tensor.stack, Tensor.einsum, Tensor.where
hstack, vstack, dstack, column_stack = Tensor.hstack, Tensor.vstack, Tensor.dstack, Tensor.column_stack
meshgrid, block_diag, broadcast_tensors = Tensor.meshgrid, Tensor.block_diag, Tensor.broadcast_tensors
cartesian_prod, logspace = Tensor.cartesian_prod, Tensor.logspace
tril_indices, triu_indices = Tensor.tril_indices, Tensor.triu_indices
chain_matmul = linalg.multi_dot
cholesky_inverse, cholesky_solve, matrix_exp = linalg.cholesky_inverse, linalg.cholesky_solve, linalg.matrix_exp
embedding, scaled_dot_product_attention = Tensor.embedding, Tensor.scaled_dot_product_attention


def polygamma(n, x):
    """The n-th derivative of digamma()."""
    return x.polygamma(n)


# Functions of one tensor before others, as PyTorch has them: tuff.exp(x) is x.exp().
for _name in """
    abs acos acosh adaptive_avg_pool1d adaptive_max_pool1d add addbmm addcdiv addcmul addmm addmv addr all allclose
    amax amin aminmax any argmax argmin argsort as_strided as_strided_scatter asin asinh atan atan2 atanh
    atleast_1d atleast_2d atleast_3d avg_pool1d baddbmm bernoulli binary_cross_entropy_with_logits bincount
    bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bmm broadcast_to
    bucketize cdist ceil celu channel_shuffle cholesky chunk clamp clamp_max clamp_min clone combinations conv1d
    conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d copysign corrcoef cos cosh
    cosine_embedding_loss cosine_similarity count_nonzero cov cross cummax cummin cumprod cumsum
    cumulative_trapezoid deg2rad det detach diag diag_embed diagflat diagonal diagonal_scatter diff digamma dist
    div dot dropout dsplit empty_like eq equal erf erfc erfinv exp exp2 expm1 flatten flip fliplr flipud
    float_power floor floor_divide fmax fmin fmod frac frexp full_like gather gcd ge grid_sample gt hardshrink
    heaviside hinge_embedding_loss histc hsplit hypot i0 index_add index_copy index_fill index_put index_reduce
    index_select inner inverse is_floating_point is_nonzero is_same_size is_signed isclose isfinite isin isinf
    isnan isneginf isposinf kl_div kron kthvalue lcm ldexp le lerp lgamma log log10 log1p log2 log_softmax
    logaddexp logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit logsumexp lt
    margin_ranking_loss masked_fill masked_scatter masked_select matmul matrix_power max max_pool1d max_pool2d
    max_pool3d maximum mean median min minimum mm mode movedim msort mul multinomial mv mvlgamma nan_to_num nanmean
    nanmedian nanquantile nansum narrow narrow_copy ne neg nextafter nll_loss nonzero norm numel ones_like outer
    pairwise_distance pdist permute pinverse pixel_shuffle pixel_unshuffle poisson poisson_nll_loss positive prelu
    prod put qr quantile rad2deg rand_like randint_like randn_like ravel reciprocal relu remainder renorm
    repeat_interleave reshape rms_norm roll rot90 round rrelu rsqrt rsub scatter scatter_add scatter_reduce
    searchsorted select select_scatter selu sigmoid sign signbit sin sinc sinh slice slice_scatter slogdet softmax
    sort split split_with_sizes sqrt square squeeze std std_mean sub sum sum_to_size svd swapaxes t take
    take_along_dim tan tanh tensor_split tensordot threshold tile topk trace transpose trapezoid tril
    triplet_margin_loss triu trunc unbind unflatten unfold unique unique_consecutive unravel_index unsqueeze vander
    var var_mean vdot view_as vsplit xlogy zeros_like
""".split() + [*_names.ALIASES]:
    globals()[_name] = getattr(Tensor, _name)

long, double, half, short = int64, float64, float16, int16


def __getattr__(name):
    if name in ("float", "int", "bool"):  # PyTorch's dtypes of these names, which are Python's types here
        return _names.DTYPES[name]
    raise AttributeError(f"module 'tuff' has no attribute {name!r}")


# `from tuff import *` leaves Python's own names, as sum() and IndexError, what they are.
__all__ = [_name for _name in globals() if not _name.startswith("_") and not hasattr(_builtins, _name)]
del _name
