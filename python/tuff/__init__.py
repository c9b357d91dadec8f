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
    CompileError, DType, DeviceLost, DynamicAxis, Error, IndexError, InternalError, InvalidArgument, IoError,
    JitStats, OutOfMemory, ShapeError, Size, Tensor, TensorDict, TensorInfo, TrainingMode,
    Unsupported,
    bfloat16, bool_, float8_e4m3fn, float8_e5m2, float16, float32, float64, int8, int16, int32, int64,
    uint8, uint16, uint32, uint64,
    all_reduce, are_deterministic_algorithms_enabled, canonical_device, default_device, dequantize_int4, devices, digits, finfo, from_dlpack,
    is_grad_enabled, linear_int4, load, pack_int4, pow, promote, quantize_int4,
    realize, save, synchronize, tensor, training, unpack_int4, use_deterministic_algorithms,
)
from . import amp, autograd, data, distributions, fft, func, linalg, nn, onnx, optim  # noqa: F401
from .autograd import checkpoint, scan, vmap  # noqa: F401
from ._grad import no_grad  # noqa: F401
from ._jit import Jit, jit  # noqa: F401
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
meshgrid = Tensor.meshgrid

# Functions of one tensor before others, as PyTorch has them: tuff.exp(x) is x.exp().
for _name in """
    abs acos acosh add addmm all allclose amax amin aminmax any argmax argmin argsort as_strided asin asinh atan
    atan2 atanh baddbmm bincount bitwise_not bmm broadcast_to bucketize cdist ceil chunk clamp clone copysign
    cos cosh count_nonzero cross cummax cummin cumprod cumsum deg2rad diag diag_embed diagonal digamma div dot
    dropout empty_like eq equal erf erfc erfinv exp exp2 expm1 flatten flip fliplr flipud floor floor_divide
    fmod frac full_like gather ge gt histc hypot i0 index_add index_copy index_fill index_put index_select
    inverse isclose isfinite isinf isnan kron kthvalue le lerp lgamma log log10 log1p log2 log_softmax logaddexp
    logcumsumexp logical_and logical_not logical_or logical_xor logit logsumexp lt masked_fill matmul max
    maximum mean median min minimum mm mode movedim mul multinomial mv nan_to_num nanmedian nanquantile narrow
    ne neg nonzero norm numel ones_like outer permute prod quantile rad2deg rand_like randn_like ravel
    reciprocal relu remainder repeat_interleave reshape roll rot90 round rsqrt scatter scatter_add
    scatter_reduce searchsorted select sigmoid sign signbit sin sinc sinh slice softmax sort split sqrt square
    squeeze std std_mean sub sum swapaxes take take_along_dim tan tanh tensor_split tile topk trace transpose
    tril triu trunc unbind unflatten unfold unique unique_consecutive unsqueeze var var_mean vdot view_as xlogy
    zeros_like
""".split():
    globals()[_name] = getattr(Tensor, _name)

# `from tuff import *` leaves Python's own names, as sum() and IndexError, what they are.
__all__ = [_name for _name in globals() if not _name.startswith("_") and not hasattr(_builtins, _name)]
del _name
