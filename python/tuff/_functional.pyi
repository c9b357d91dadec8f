"""Types of tuff.nn.functional."""
from typing import Sequence

from . import Number, Tensor

adaptive_avg_pool1d = Tensor.adaptive_avg_pool1d
adaptive_avg_pool2d = Tensor.adaptive_avg_pool2d
adaptive_avg_pool3d = Tensor.adaptive_avg_pool3d
adaptive_max_pool1d = Tensor.adaptive_max_pool1d
adaptive_max_pool2d = Tensor.adaptive_max_pool2d
adaptive_max_pool3d = Tensor.adaptive_max_pool3d
affine_grid = Tensor.affine_grid
avg_pool1d = Tensor.avg_pool1d
avg_pool2d = Tensor.avg_pool2d
avg_pool3d = Tensor.avg_pool3d
batch_norm = Tensor.batchnorm
def bilinear(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor: ...
binary_cross_entropy = Tensor.binary_cross_entropy
binary_cross_entropy_with_logits = Tensor.binary_cross_entropy_with_logits
celu = Tensor.celu
channel_shuffle = Tensor.channel_shuffle
conv1d = Tensor.conv1d
conv2d = Tensor.conv2d
conv3d = Tensor.conv3d
conv_transpose1d = Tensor.conv_transpose1d
conv_transpose2d = Tensor.conv_transpose2d
conv_transpose3d = Tensor.conv_transpose3d
cosine_embedding_loss = Tensor.cosine_embedding_loss
cosine_similarity = Tensor.cosine_similarity
cross_entropy = Tensor.cross_entropy
ctc_loss = Tensor.ctc_loss
def dropout(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor: ...
def dropout1d(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor: ...
def dropout2d(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor: ...
def dropout3d(x: Tensor, p: float = 0.5, training: bool = True) -> Tensor: ...
elu = Tensor.elu
def embedding(index: Tensor, weight: Tensor) -> Tensor: ...
fold = Tensor.fold
gaussian_nll_loss = Tensor.gaussian_nll_loss
gelu = Tensor.gelu
glu = Tensor.glu
grid_sample = Tensor.grid_sample
def group_norm(x: Tensor, groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor: ...
def gumbel_softmax(logits: Tensor, tau: float = 1.0, hard: bool = False, dim: int = -1) -> Tensor: ...
hardshrink = Tensor.hardshrink
hardsigmoid = Tensor.hardsigmoid
hardswish = Tensor.hardswish
hardtanh = Tensor.hardtanh
hinge_embedding_loss = Tensor.hinge_embedding_loss
huber_loss = Tensor.huber_loss
def instance_norm(x: Tensor, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor: ...
interpolate = Tensor.interpolate
kl_div = Tensor.kl_div
l1_loss = Tensor.l1_loss
layer_norm = Tensor.layernorm
leaky_relu = Tensor.leaky_relu
linear = Tensor.linear
linear_cross_entropy = Tensor.linear_cross_entropy
log_softmax = Tensor.log_softmax
logsigmoid = Tensor.logsigmoid
lp_pool1d = Tensor.lp_pool1d
lp_pool2d = Tensor.lp_pool2d
lp_pool3d = Tensor.lp_pool3d
margin_ranking_loss = Tensor.margin_ranking_loss
max_pool1d = Tensor.max_pool1d
max_pool2d = Tensor.max_pool2d
max_pool3d = Tensor.max_pool3d
max_unpool1d = Tensor.max_unpool1d
max_unpool2d = Tensor.max_unpool2d
max_unpool3d = Tensor.max_unpool3d
mish = Tensor.mish
mse_loss = Tensor.mse_loss
nll_loss = Tensor.nll_loss
normalize = Tensor.normalize
one_hot = Tensor.one_hot
def pad(x: Tensor, padding: Sequence[int], mode: str = 'constant', value: Number = 0) -> Tensor: ...
pairwise_distance = Tensor.pairwise_distance
pdist = Tensor.pdist
pixel_shuffle = Tensor.pixel_shuffle
pixel_unshuffle = Tensor.pixel_unshuffle
poisson_nll_loss = Tensor.poisson_nll_loss
prelu = Tensor.prelu
relu = Tensor.relu
relu6 = Tensor.relu6
rms_norm = Tensor.rms_norm
rrelu = Tensor.rrelu
scaled_dot_product_attention = Tensor.scaled_dot_product_attention
selu = Tensor.selu
sigmoid = Tensor.sigmoid
silu = Tensor.silu
smooth_l1_loss = Tensor.smooth_l1_loss
soft_margin_loss = Tensor.soft_margin_loss
softmax = Tensor.softmax
softmin = Tensor.softmin
softplus = Tensor.softplus
softshrink = Tensor.softshrink
softsign = Tensor.softsign
tanh = Tensor.tanh
tanhshrink = Tensor.tanhshrink
threshold = Tensor.threshold
triplet_margin_loss = Tensor.triplet_margin_loss
unfold = Tensor.im2col
