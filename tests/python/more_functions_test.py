"""Functions that stand in the bases of Tensor (elementary ones, activations, movement, products, statistics, order,
losses, in place) against NumPy."""
import math
import unittest

import numpy as np

import tuff
from tuff import _names

RNG = np.random.default_rng(11)
X = RNG.uniform(-2, 2, (3, 5)).astype(np.float32)
Y = RNG.uniform(-2, 2, (3, 5)).astype(np.float32)
UNIT = RNG.uniform(-0.95, 0.95, (3, 5)).astype(np.float32)
PART = RNG.uniform(0.05, 0.95, (3, 5)).astype(np.float32)
POSITIVE = RNG.uniform(0.1, 6, (3, 5)).astype(np.float32)
SIGNS = np.where(RNG.random((3, 5)) < 0.5, 1, -1).astype(np.float32)
CUBE = RNG.uniform(-2, 2, (2, 3, 4)).astype(np.float32)
V = RNG.uniform(-2, 2, 4).astype(np.float32)
W = RNG.uniform(-2, 2, 4).astype(np.float32)
A = RNG.integers(0, 4, (3, 5)).astype(np.int32)
B = RNG.integers(0, 4, (3, 5)).astype(np.int32)
CLASSES = np.array([1, 4, 0], np.int32)
ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5], np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def expm1_below(x, scale, width):
    return np.where(x > 0, x, scale * np.expm1(np.minimum(x, 0) / width))


def rows(x, y, p=2):
    return (np.abs(x[..., :, None, :] - y[..., None, :, :]) ** p).sum(-1) ** (1 / p)


def cosine(x, y, axis):
    return (x * y).sum(axis) / np.linalg.norm(x, axis=axis) / np.linalg.norm(y, axis=axis)


def unary(name, data, function):
    return {name: [([data], lambda x: getattr(x, name)(), function)]}


def binary(name, a, b, function):
    return {name: [([a, b], lambda x, y: getattr(x, name)(y), function)]}


def with_number(name, a, b, number, function):
    return {name: [([a, b], lambda x, y: getattr(x, name)(y), function), ([a], lambda x: getattr(x, name)(number), lambda x: function(x, number))]}


def in_place(name, function, *more):
    def run(x, *others):
        assert getattr(x, name)(*others, *more) is x
        return x
    return run, function


def entries(*parts):
    return {name: cases for part in parts for name, cases in part.items()}


vectorized = np.vectorize
ELEMENTARY = entries(
    unary("asin", UNIT, np.arcsin), unary("acos", UNIT, np.arccos), unary("atan", X, np.arctan), unary("sinh", X, np.sinh),
    unary("cosh", X, np.cosh), unary("asinh", X, np.arcsinh), unary("acosh", POSITIVE + 1, np.arccosh), unary("atanh", UNIT, np.arctanh),
    unary("log1p", POSITIVE - 1, np.log1p), unary("expm1", X, np.expm1), unary("log10", POSITIVE, np.log10),
    unary("erfc", X, vectorized(math.erfc)), unary("lgamma", POSITIVE, vectorized(math.lgamma)), unary("sinc", X, np.sinc),
    unary("rad2deg", X, np.rad2deg), unary("deg2rad", X, np.deg2rad), unary("isfinite", ODD, np.isfinite), unary("signbit", ODD[1:], np.signbit),
    unary("frac", X, lambda x: x - np.trunc(x)),
    unary("i0", X, np.i0),
    {"erfinv": [([UNIT], lambda x: x.erfinv().erf(), lambda x: x)],
     "digamma": [([POSITIVE], lambda x: (x + 1).digamma() - x.digamma(), lambda x: 1 / x)],
     "logit": [([PART], lambda x: x.logit(), lambda x: np.log(x / (1 - x))), ([PART], lambda x: x.logit(0.25), lambda x: np.log(np.clip(x, .25, .75) / (1 - np.clip(x, .25, .75))))],
     "nan_to_num": [([ODD], lambda x: x.nan_to_num(7, posinf=5), lambda x: np.nan_to_num(x, nan=7, posinf=5, neginf=np.finfo(np.float32).min))],
     "isclose": [([ODD, ODD + np.float32(1e-7)], lambda x, y: x.isclose(y, equal_nan=True), lambda x, y: np.isclose(x, y, equal_nan=True))],
     "lerp": [([X, Y], lambda x, y: x.lerp(y, 0.25), lambda x, y: x + 0.25 * (y - x)), ([X, Y, PART], lambda x, y, w: x.lerp(y, w), lambda x, y, w: x + w * (y - x))]},
    binary("atan2", X, Y, np.arctan2), binary("hypot", X, Y, np.hypot), binary("logaddexp", X, Y, np.logaddexp),
    binary("logical_and", A, B, np.logical_and), binary("logical_or", A, B, np.logical_or), binary("logical_xor", A, B, np.logical_xor),
    with_number("add", X, Y, 3, np.add), with_number("sub", X, Y, 3, np.subtract), with_number("mul", X, Y, 3, np.multiply),
    with_number("div", X, POSITIVE, 4, np.divide), with_number("eq", A, B, 2, np.equal), with_number("ne", A, B, 2, np.not_equal),
    with_number("lt", A, B, 2, np.less), with_number("le", A, B, 2, np.less_equal), with_number("gt", A, B, 2, np.greater),
    with_number("ge", A, B, 2, np.greater_equal), with_number("xlogy", X, POSITIVE, 3, lambda x, y: x * np.log(y)),
    with_number("copysign", X, Y, -1.0, np.copysign),
)
ACTIVATIONS = entries(
    unary("selu", X, lambda x: 1.0507009873554805 * expm1_below(x, 1.6732632423543772, 1)), unary("hardsigmoid", 2 * X, lambda x: np.clip(x / 6 + 0.5, 0, 1)),
    unary("hardswish", 2 * X, lambda x: x * np.clip(x / 6 + 0.5, 0, 1)), unary("relu6", 4 * X, lambda x: np.clip(x, 0, 6)),
    unary("mish", X, lambda x: x * np.tanh(np.log1p(np.exp(x)))), unary("logsigmoid", X, lambda x: np.log(sigmoid(x))),
    unary("softsign", X, lambda x: x / (1 + np.abs(x))), unary("tanhshrink", X, lambda x: x - np.tanh(x)), unary("quick_gelu", X, lambda x: x * sigmoid(1.702 * x)),
    {"elu": [([X], lambda x: x.elu(0.5), lambda x: expm1_below(x, 0.5, 1))], "celu": [([X], lambda x: x.celu(alpha=2), lambda x: expm1_below(x, 2, 2))],
     "hardtanh": [([X], lambda x: x.hardtanh(-0.5), lambda x: np.clip(x, -0.5, 1))],
     "glu": [([CUBE], lambda x: x.glu(), lambda x: x[..., :2] * sigmoid(x[..., 2:]))],
     "softmin": [([X], lambda x: x.softmin(0), lambda x: np.exp(-x) / np.exp(-x).sum(0))],
     "hardshrink": [([X], lambda x: x.hardshrink(lambd=0.75), lambda x: np.where(np.abs(x) <= 0.75, 0, x))],
     "softshrink": [([X], lambda x: x.softshrink(), lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0))],
     "threshold": [([X], lambda x: x.threshold(0.5, -1), lambda x: np.where(x > 0.5, x, -1))],
     "rrelu": [([X], lambda x: x.rrelu(0.25, 0.75), lambda x: np.where(x > 0, x, x / 2))],
     "prelu": [([X, X[0]], lambda x, w: x.prelu(w), lambda x, w: np.where(x > 0, x, x * w))],
     "normalize": [([X], lambda x: x.normalize(dim=-1), lambda x: x / np.linalg.norm(x, axis=1, keepdims=True))]},
)
MOVEMENT = {
    "roll": [([CUBE], lambda x: x.roll((1, -5), (0, 2)), lambda x: np.roll(x, (1, -5), (0, 2))), ([CUBE], lambda x: x.roll(5), lambda x: np.roll(x, 5))],
    "repeat_interleave": [([CUBE], lambda x: x.repeat_interleave(2, dim=1), lambda x: x.repeat(2, 1)), ([X], lambda x: x.repeat_interleave(3), lambda x: x.repeat(3))],
    "tile": [([X], lambda x: x.tile(2), lambda x: np.tile(x, 2)), ([X], lambda x: x.tile((2, 1, 3)), lambda x: np.tile(x, (2, 1, 3)))],
    "movedim": [([CUBE], lambda x: x.movedim(0, -1), lambda x: np.moveaxis(x, 0, -1)), ([CUBE], lambda x: x.movedim((0, 1), (2, 0)), lambda x: np.moveaxis(x, (0, 1), (2, 0)))],
    "swapaxes": [([CUBE], lambda x: x.swapaxes(0, 2), lambda x: x.swapaxes(0, 2))], "broadcast_to": [([X], lambda x: x.broadcast_to(2, 3, 5), lambda x: np.broadcast_to(x, (2, 3, 5)))],
    "expand_as": [([X[:1], X], lambda x, y: x.expand_as(y), lambda x, y: np.broadcast_to(x, y.shape))], "view_as": [([X, X.T], lambda x, y: x.view_as(y), lambda x, y: x.reshape(5, 3))],
    "reshape_as": [([X, X.T], lambda x, y: x.reshape_as(y), lambda x, y: x.reshape(5, 3))], "ravel": [([X], lambda x: x.ravel(), np.ravel)],
    "rot90": [([CUBE], lambda x: x.rot90(), np.rot90), ([CUBE], lambda x: x.rot90(3, (1, 2)), lambda x: np.rot90(x, 3, (1, 2)))],
    "fliplr": [([X], lambda x: x.fliplr(), np.fliplr)], "flipud": [([X], lambda x: x.flipud(), np.flipud)],
    "atleast_1d": [([V], lambda x: x.sum().atleast_1d(), lambda x: x.sum()[None])], "atleast_2d": [([V], lambda x: x.atleast_2d(), np.atleast_2d)],
    "atleast_3d": [([V], lambda x: x.atleast_3d(), np.atleast_3d), ([X], lambda x: x.atleast_3d(), np.atleast_3d)],
    "unbind": [([CUBE], lambda x: tuff.cat(x.unbind(1)), lambda x: np.concatenate([x[:, i] for i in range(3)]))],
    "tensor_split": [([X], lambda x: x.tensor_split(3, 1)[0], lambda x: np.array_split(x, 3, 1)[0]), ([X], lambda x: x.tensor_split([1, 4], dim=1)[1], lambda x: x[:, 1:4])],
    "unflatten": [([CUBE], lambda x: x.unflatten(-1, (2, -1)), lambda x: x.reshape(2, 3, 2, 2))],
    "unfold": [([X], lambda x: x.unfold(1, 3, 1), lambda x: np.lib.stride_tricks.sliding_window_view(x, 3, 1))],
    "pad_to": [([X], lambda x: x.pad_to((4, -1), 7), lambda x: np.pad(x, ((0, 1), (0, 0)), constant_values=7))], "shrink_to": [([X], lambda x: x.shrink_to((-1, 2)), lambda x: x[:, :2])],
    "diag": [([V], lambda x: x.diag(1), lambda x: np.diag(x, 1)), ([X], lambda x: x.diag(), np.diag)], "diagonal": [([CUBE], lambda x: x.diagonal(-1, 1, 2), lambda x: np.diagonal(x, -1, 1, 2))],
    "diag_embed": [([V], lambda x: x.diag_embed(), np.diag)], "trace": [([X], lambda x: x.trace(), np.trace)],
    "meshgrid": [([V, X[0]], lambda x, y: tuff.stack(tuff.meshgrid([x, y], indexing="xy")), lambda x, y: np.stack(np.meshgrid(x, y))),
                 ([V, X[0]], lambda x, y: tuff.stack(tuff.meshgrid([x, y])), lambda x, y: np.stack(np.meshgrid(x, y, indexing="ij")))],
    "hstack": [([X, Y], lambda *p: tuff.hstack(p), lambda *p: np.hstack(p)), ([V, W], lambda *p: tuff.hstack(p), lambda *p: np.hstack(p))],
    "vstack": [([V, W], lambda *p: tuff.vstack(p), lambda *p: np.vstack(p))], "dstack": [([V, W], lambda *p: tuff.dstack(p), lambda *p: np.dstack(p))],
    "column_stack": [([V, W], lambda *p: tuff.column_stack(p), lambda *p: np.column_stack(p))],
    "as_strided": [([X], lambda x: x.as_strided((3, 4), (2, 3), 1), lambda x: x.ravel()[1 + 2 * np.arange(3)[:, None] + 3 * np.arange(4)]), ([X], lambda x: x.as_strided(sizes=(2, 5), stride=(10, 1)), lambda x: x[::2])],
    "rearrange": [([CUBE], lambda x: x.rearrange("a b (c p) -> (p a) c b", p=2), lambda x: x.reshape(2, 3, 2, 2).transpose(3, 0, 2, 1).reshape(4, 2, 3)),
                  ([CUBE], lambda x: x.rearrange("... c -> c (...) 1"), lambda x: x.reshape(6, 4).T[..., None])],
}
PRODUCTS = entries(
    binary("dot", V, W, np.dot), binary("vdot", V, W, np.vdot), binary("mv", CUBE[0], V, np.matmul), binary("mm", X, Y.T, np.matmul),
    binary("bmm", CUBE, CUBE.transpose(0, 2, 1), np.matmul), binary("outer", V, W, np.outer), binary("kron", X, V, lambda x, y: np.kron(x, y)),
    {"cross": [([X[:, :3], Y[:, :3]], lambda x, y: x.cross(y), np.cross)],
     "addmm": [([V[:3], X, Y.T], lambda x, a, b: x.addmm(a, b, beta=2, alpha=0.5), lambda x, a, b: 2 * x + 0.5 * (a @ b))],
     "baddbmm": [([CUBE, CUBE], lambda x, y: x[:, :, :3].baddbmm(x, y.transpose(1, 2)), lambda x, y: x[:, :, :3] + x @ y.transpose(0, 2, 1))]},
)
STATISTICS = {
    "amax": [([CUBE], lambda x: x.amax((0, 2)), lambda x: x.max((0, 2)))], "amin": [([CUBE], lambda x: x.amin(1, True), lambda x: x.min(1, keepdims=True))],
    "aminmax": [([CUBE], lambda x: tuff.stack(x.aminmax()), lambda x: np.array([x.min(), x.max()]))],
    "max_with_indices": [([CUBE], lambda x: x.max_with_indices(1)[0], lambda x: x.max(1)), ([CUBE], lambda x: x.max_with_indices(1)[1], lambda x: x.argmax(1))],
    "min_with_indices": [([CUBE], lambda x: x.min_with_indices(-1)[0], lambda x: x.min(-1)), ([CUBE], lambda x: x.min_with_indices(2)[1], lambda x: x.argmin(2))],
    "var_mean": [([X], lambda x: tuff.stack(x.var_mean(1)), lambda x: np.stack([x.var(1, ddof=1), x.mean(1)]))],
    "std_mean": [([X], lambda x: tuff.stack(x.std_mean(1, correction=0)), lambda x: np.stack([x.std(1), x.mean(1)]))],
    "norm": [([X], lambda x: x.norm(), np.linalg.norm), ([X], lambda x: x.norm(3, 1), lambda x: (np.abs(x) ** 3).sum(1) ** (1 / 3)), ([X], lambda x: x.norm(math.inf, 0), lambda x: np.abs(x).max(0))],
    "count_nonzero": [([A], lambda x: x.count_nonzero(0), lambda x: np.count_nonzero(x, 0)), ([A], lambda x: x.count_nonzero(), np.count_nonzero)],
    "cosine_similarity": [([X, Y], lambda x, y: x.cosine_similarity(y), lambda x, y: cosine(x, y, 1))], "cdist": [([X, Y], lambda x, y: x.cdist(y, p=1), lambda x, y: rows(x, y, 1)), ([X, Y], lambda x, y: x.cdist(y), rows)],
    "cov": [([X], lambda x: x.cov(), np.cov)], "corrcoef": [([X], lambda x: x.corrcoef(), np.corrcoef)],
    "allclose": [([X], lambda x: tuff.tensor([x.allclose(x * 1.000001), x.allclose(x + 1), x.allclose(x * 1.01, rtol=0.1)]), lambda x: np.array([True, False, True]))],
    "equal": [([X], lambda x: tuff.tensor([x.equal(x * 1), x.equal(x + 1), x.equal(x[0])]), lambda x: np.array([True, False, False]))],
    "clone": [([X], lambda x: x.clone(), lambda x: x)],
}
def in_order(x, axis):
    return np.argsort(x, axis, kind="stable")


# Of equal elements the last one so far.
def places_of_largest(x):
    return np.array([[max(j for j in range(i + 1) if row[j] == row[:i + 1].max()) for i in range(len(row))] for row in x])


SORTING = {
    "sort": [([CUBE], lambda x: x.sort(1)[0], lambda x: np.sort(x, 1)), ([A], lambda x: x.sort(descending=True, stable=True)[1], lambda x: in_order(-x, -1))],
    "argsort": [([A], lambda x: x.argsort(0), lambda x: in_order(x, 0))], "msort": [([X], lambda x: x.msort(), lambda x: np.sort(x, 0))],
    "topk": [([X], lambda x: x.topk(2)[0], lambda x: -np.sort(-x, 1)[:, :2]), ([X], lambda x: x.topk(k=1, dim=0, largest=False, sorted=True)[1], lambda x: x.argmin(0)[None])],
    "kthvalue": [([X], lambda x: x.kthvalue(2, 0)[0], lambda x: np.sort(x, 0)[1]), ([X], lambda x: x.kthvalue(1, keepdim=True)[1], lambda x: x.argmin(1)[:, None])],
    "median": [([X], lambda x: x.median(), np.median), ([X], lambda x: x.median(1)[0], lambda x: np.median(x, 1)), ([X], lambda x: x.median(0)[1], lambda x: in_order(x, 0)[1])],
    "nanmedian": [([ODD], lambda x: x.nanmedian(), lambda x: 0.0), ([X], lambda x: x.nanmedian(1, True)[0], lambda x: np.median(x, 1, keepdims=True))],
    "mode": [([A], lambda x: x.mode(1)[0], lambda x: [np.bincount(row).argmax() for row in x])],
    "quantile": [([X], lambda x: x.quantile(0.3), lambda x: np.quantile(x, 0.3)), ([X, PART[0]], lambda x, q: x.quantile(q, 1), lambda x, q: np.quantile(x, q, 1)),
                 ([X], lambda x: x.quantile(0.3, 1, interpolation="higher"), lambda x: np.sort(x, 1)[:, 2])],
    "nanquantile": [([ODD[3:]], lambda x: x.nanquantile(0.75), lambda x: 0.375)],
    "searchsorted": [([np.sort(V), X], lambda x, y: x.searchsorted(y), np.searchsorted), ([np.sort(A[0]), B], lambda x, y: x.searchsorted(y, right=True), lambda x, y: np.searchsorted(x, y, "right"))],
    "bucketize": [([X, np.sort(V)], lambda x, y: x.bucketize(y), lambda x, y: np.searchsorted(y, x))],
    "bincount": [([A[0]], lambda x: x.bincount(), np.bincount), ([A[0], PART[0]], lambda x, w: x.bincount(weights=w, minlength=7), lambda x, w: np.bincount(x, w, 7))],
    "histc": [([X], lambda x: x.histc(5, -1, 1), lambda x: np.histogram(x, 5, (-1, 1))[0]), ([X], lambda x: x.histc(bins=4), lambda x: np.histogram(x, 4)[0])],
    "unique": [([A], lambda x: x.unique(), np.unique), ([A], lambda x: x.unique(return_inverse=True)[1], lambda x: np.unique(x, return_inverse=True)[1].reshape(x.shape)),
               ([A], lambda x: x.unique(return_counts=True)[1], lambda x: np.unique(x, return_counts=True)[1]),
               ([np.sort(A % 2)], lambda x: x.unique(dim=1), lambda x: np.unique(x, axis=1))],
    "unique_consecutive": [([np.sort(A[0])], lambda x: x.unique_consecutive(), np.unique), ([np.sort(A[0])], lambda x: x.unique_consecutive(return_counts=True)[1], lambda x: np.unique(x, return_counts=True)[1])],
    "multinomial": [([np.array([[0, 1, 0], [2, 0, 0]], np.float32)], lambda x: x.multinomial(4, replacement=True), lambda x: [[1] * 4, [0] * 4]),
                    ([POSITIVE], lambda x: x.multinomial(5).sort()[0], lambda x: np.tile(np.arange(5), (3, 1)))],
    "bernoulli": [([np.array([0, 1], np.float32)], lambda x: x.bernoulli(), lambda x: x), ([V], lambda x: x.bernoulli(1.0), np.ones_like)],
    "poisson": [([np.zeros(3, np.float32)], lambda x: x.poisson(), lambda x: x)],
    "exponential": [([V], lambda x: (tuff.exponential((100,), rate=2) >= 0).all(), lambda x: True)],
    "trunc_normal": [([V], lambda x: (tuff.trunc_normal(100, std=0.5, low=0.1, high=0.2) * 10 - 1.5).abs().max() <= 0.5001, lambda x: True)],
    "scaled_uniform": [([V], lambda x: tuff.scaled_uniform((5, 20)).abs().max() <= 0.1, lambda x: True)],
    "randperm": [([V], lambda x: tuff.randperm(100).sort()[0], lambda x: np.arange(100))],
    "cumprod": [([X], lambda x: x.cumprod(1), lambda x: x.cumprod(1))], "cummax": [([X], lambda x: x.cummax(0)[0], lambda x: np.maximum.accumulate(x)), ([A], lambda x: x.cummax(1)[1], places_of_largest)],
    "cummin": [([X], lambda x: x.cummin(1)[0], lambda x: np.minimum.accumulate(x, 1)), ([A], lambda x: x.cummin(1)[1], lambda x: places_of_largest(-x))],
    "logcumsumexp": [([X], lambda x: x.logcumsumexp(0), lambda x: np.log(np.cumsum(np.exp(x), 0)))],
}
LOSSES = {
    # Both classes in three frames: 1 1 2, 1 2 2, 1 2 -, 1 - 2 and - 1 2.
    "ctc_loss": [([np.log(np.full((3, 1, 3), 1 / 3, np.float32)), np.array([[1, 2]], np.int32)], lambda x, y: tuff.ctc_loss(x, y, [3], [2], reduction="sum"), lambda x, y: -math.log(5 / 27)),
                 # One behind the other; of the second 111, 11-, -11, 1--, -1-, --1.
                 ([np.log(np.full((3, 2, 3), 1 / 3, np.float32)), np.array([1, 2, 1], np.int32)], lambda x, y: tuff.ctc_loss(x, y, [3, 3], [2, 1], reduction="none"), lambda x, y: [-math.log(5 / 27), -math.log(6 / 27)])],
    "l1_loss": [([X, Y], lambda x, y: x.l1_loss(y), lambda x, y: np.abs(x - y).mean())], "huber_loss": [([X, Y], lambda x, y: x.huber_loss(y, delta=0.5, reduction="sum"),
        lambda x, y: np.where(np.abs(x - y) <= 0.5, (x - y) ** 2 / 2, 0.5 * (np.abs(x - y) - 0.25)).sum())],
    "smooth_l1_loss": [([X, Y], lambda x, y: x.smooth_l1_loss(y, "none"), lambda x, y: np.where(np.abs(x - y) < 1, (x - y) ** 2 / 2, np.abs(x - y) - 0.5))],
    "binary_cross_entropy": [([PART, UNIT], lambda x, y: x.binary_cross_entropy(y.abs()), lambda x, y: -(abs(y) * np.log(x) + (1 - abs(y)) * np.log(1 - x)).mean())],
    "nll_loss": [([X, CLASSES], lambda x, t: x.nll_loss(t), lambda x, t: -x[np.arange(3), t].mean())],
    "kl_div": [([X, PART], lambda x, y: x.kl_div(y, "batchmean"), lambda x, y: (y * (np.log(y) - x)).sum() / 3)],
    "poisson_nll_loss": [([X, PART], lambda x, y: x.poisson_nll_loss(y), lambda x, y: (np.exp(x) - y * x).mean())],
    "gaussian_nll_loss": [([X, Y, PART], lambda x, y, v: x.gaussian_nll_loss(y, v), lambda x, y, v: ((np.log(v) + (x - y) ** 2 / v) / 2).mean())],
    "hinge_embedding_loss": [([X, SIGNS], lambda x, t: x.hinge_embedding_loss(t), lambda x, t: np.where(t == 1, x, np.maximum(0, 1 - x)).mean())],
    "soft_margin_loss": [([X, SIGNS], lambda x, t: x.soft_margin_loss(t), lambda x, t: np.log1p(np.exp(-t * x)).mean())],
    "margin_ranking_loss": [([X, Y, SIGNS], lambda x, y, t: x.margin_ranking_loss(y, t, 0.5), lambda x, y, t: np.maximum(0, t * (y - x) + 0.5).mean())],
    "cosine_embedding_loss": [([X, Y, SIGNS[:, 0]], lambda x, y, t: x.cosine_embedding_loss(y, t), lambda x, y, t: np.where(t == 1, 1 - cosine(x, y, 1), np.maximum(0, cosine(x, y, 1))).mean())],
    "triplet_margin_loss": [([X, Y, UNIT], lambda x, y, z: x.triplet_margin_loss(y, z, eps=0.0), lambda x, y, z: np.maximum(0, np.linalg.norm(x - y, axis=1) - np.linalg.norm(x - z, axis=1) + 1).mean())],
}
WRITES = {
    "add_": [([X, Y], *in_place("add_", np.add)), ([X], *in_place("add_", lambda x: x + 2, 2))], "sub_": [([X, Y[0]], *in_place("sub_", np.subtract))],
    "mul_": [([X, Y], *in_place("mul_", np.multiply))], "div_": [([X, POSITIVE], *in_place("div_", np.divide))],
    "clamp_": [([X], *in_place("clamp_", lambda x: np.clip(x, -1, 0.5), -1, 0.5))], "fill_": [([X], *in_place("fill_", lambda x: np.full_like(x, 3), 3))],
    "to_": [([X], lambda x: x.to_("CPU"), lambda x: x)], "zero_": [([X], *in_place("zero_", np.zeros_like))], "copy_": [([X, A[:, :1]], *in_place("copy_", lambda x, y: np.broadcast_to(y, x.shape)))],
    "masked_fill_": [([X, A > 1], *in_place("masked_fill_", lambda x, m: np.where(m, 9, x), 9))],
}
PLACES = np.array([[2, 0, 1, 1, 0], [0, 0, 1, 2, 2]], np.int32)
TWO = np.array([2, 0], np.int32)


def stored(ufunc, rows=False):
    """x after y has been stored at the places, by a function of NumPy's or as it is."""
    def run(x, i, y):
        out = x.copy()
        at = (i,) if rows else (i, np.arange(x.shape[1]))
        if ufunc is None:
            out[at] = y
        else:
            ufunc.at(out, at, y)
        return out
    return run


def put_flat(x, i, y):
    out = x.copy()
    np.add.at(out.reshape(-1), i, y)
    return out


def both(name, call, expected, *arrays):
    """A function and the one in place; call(x, function, *others)."""
    pair = lambda x, f, *others: call(x, getattr(x, f), *others)
    return {name: [([*arrays], lambda x, *o: pair(x, name, *o), expected)],
            name + "_": [([*arrays], lambda x, *o: pair(x, name + "_", *o), expected)]}


SCATTER = entries(
    both("scatter", lambda x, f, i, y: f(0, i, y), stored(None), X, PLACES[:1], Y[:1]), both("scatter_add", lambda x, f, i, y: f(0, i, y), stored(np.add), X, PLACES, Y[:2]),
    both("scatter_reduce", lambda x, f, i, y: f(0, i, y, "amax"), stored(np.maximum), X, PLACES, Y[:2]),
    both("index_add", lambda x, f, i, y: f(0, i, y, alpha=2), lambda x, i, y: stored(np.add, True)(x, i, 2 * y), X, TWO, Y[:2]),
    both("index_copy", lambda x, f, i, y: f(0, i, y), stored(None, True), X, TWO, Y[:2]),
    both("index_fill", lambda x, f, i: f(0, i, 3), lambda x, i: stored(None, True)(x, i, 3), X, TWO),
    both("index_reduce", lambda x, f, i, y: f(0, i, y, "amin"), stored(np.minimum, True), X, TWO, Y[:2]),
    both("put", lambda x, f, i, y: f(i, y, accumulate=True), put_flat, X, np.array([14, -1, 3], np.int32), Y[0, :3]),
    both("index_put", lambda x, f, i, y: f((i,), y, accumulate=True), stored(np.add, True), X, TWO, Y[:2]),
    both("masked_scatter", lambda x, f, m, y: f(m, y), lambda x, m, y: (np.putmask(x := x.copy(), m, 0), np.place(x, m, y.ravel()), x)[2], X, A > 1, Y),
    {"take_along_dim": [([X, PLACES.T[:3, :1]], lambda x, i: x.take_along_dim(i, 1), lambda x, i: np.take_along_axis(x, i, 1))]},
)
MATRIX = np.array([[4, 1, 0.5], [1, 3, -0.25], [0.5, -0.25, 2]], np.float32)
LINALG = {
    "cholesky": [([MATRIX], lambda x: x.cholesky(), np.linalg.cholesky), ([MATRIX], lambda x: x.cholesky(upper=True), lambda x: np.linalg.cholesky(x).T)],
    "qr": [([MATRIX], lambda x: x.qr()[1].abs(), lambda x: np.abs(np.linalg.qr(x)[1])), ([MATRIX[:, :2]], lambda x: x.qr("complete")[0] @ x.qr("complete")[1], lambda x: x)],
    "svd": [([MATRIX[:2]], lambda x: x.svd()[1], lambda x: np.linalg.svd(x)[1]), ([MATRIX[:2]], lambda x: x.svd(full_matrices=False)[2].abs(), lambda x: np.abs(np.linalg.svd(x, full_matrices=False)[2]))],
    "det": [([MATRIX], lambda x: x.det(), np.linalg.det)], "logdet": [([MATRIX], lambda x: x.logdet(), lambda x: np.log(np.linalg.det(x)))],
    "slogdet": [([-MATRIX], lambda x: x.slogdet()[0], lambda x: np.linalg.slogdet(x)[0]), ([-MATRIX], lambda x: x.slogdet()[1], lambda x: np.linalg.slogdet(x)[1])],
    "inverse": [([MATRIX], lambda x: x.inverse(), np.linalg.inv)], "pinverse": [([MATRIX[:2]], lambda x: x.pinverse(), np.linalg.pinv)],
    "matrix_power": [([MATRIX], lambda x: x.matrix_power(3), lambda x: np.linalg.matrix_power(x, 3))],
    "newton_schulz": [([MATRIX], lambda x: x.newton_schulz(12, params=(1.5, -0.5)), lambda x: np.eye(3))],
}
CASES = entries(LINALG, ELEMENTARY, ACTIVATIONS, MOVEMENT, PRODUCTS, STATISTICS, SORTING, LOSSES, WRITES, SCATTER)


class MoreFunctions(unittest.TestCase):
    def same(self, got, expected, what):
        expected = np.asarray(expected)
        self.assertEqual(got.shape, expected.shape, what)
        np.testing.assert_allclose(got.numpy().astype(np.float64), expected.astype(np.float64), rtol=3e-5, atol=3e-6, err_msg=what)

    def test_every_function(self):
        for name, cases in CASES.items():
            for arrays, run, expected in cases:
                with self.subTest(name):
                    got = run(*[tuff.tensor(a) for a in arrays])
                    self.same(got, expected(*[a.astype(np.float64) if a.dtype == np.float32 else a for a in arrays]), name)

    def test_linalg(self):
        a, b, l, np_l = tuff.tensor(MATRIX), tuff.tensor(MATRIX[:, :2]), tuff.linalg, np.linalg
        wide, narrow = MATRIX.astype(np.float64), MATRIX[:, :2].astype(np.float64)
        self.same(l.solve(a, b), np_l.solve(wide, narrow), "solve")
        self.same(l.solve_triangular(a, b, upper=True), np_l.solve(np.triu(wide), narrow), "triangular")
        values, vectors = l.eigh(a)
        self.same(values, np_l.eigvalsh(wide), "eigh")
        self.same((vectors * values) @ vectors.T, wide, "eigh")
        found = l.lstsq(b, a[:, :1])
        want = np_l.lstsq(narrow, wide[:, :1], None)
        self.same(found.solution, want[0], "lstsq")
        self.same(found.residuals, want[1], "lstsq")
        self.same(l.matrix_rank(a), np.int64(3), "rank")
        self.same(l.multi_dot([b.T, a, b]), np_l.multi_dot([narrow.T, wide, narrow]), "multi_dot")
        for order in (None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf):
            self.same(l.norm(a, order), np_l.norm(wide, order), f"norm {order}")
            self.same(l.cond(a, order), np_l.cond(wide, order), f"cond {order}")
        self.same(l.vector_norm(a, 3, dim=1), np_l.norm(wide, 3, 1), "vector_norm")
        with self.assertRaisesRegex(tuff.InvalidArgument, "cast it to float32 or float64"):
            l.inv(a.cast("float16"))

    def test_parts_of_given_sizes(self):
        parts = tuff.tensor(X).split([1, 4], 1)
        self.same(parts[1], X[:, 1:], "split")

    def test_pads(self):
        x = tuff.tensor(X)
        for mode, numpy in (("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")):
            self.same(x.pad((2, 1, 1, 2), mode=mode), np.pad(X, ((1, 2), (2, 1)), numpy), mode)
        self.same(x.pad((1, 0), 3, "constant"), np.pad(X, ((0, 0), (1, 0)), constant_values=3), "constant")
        with self.assertRaisesRegex(tuff.InvalidArgument, '"edge" is none of: constant, reflect'):
            x.pad((1, 0), mode="edge")
        with self.assertRaisesRegex(tuff.ShapeError, "no 5 elements"):
            x.pad((5, 0), mode="reflect")

    def test_bounds_that_are_tensors(self):
        x, low, high = tuff.tensor(X), tuff.tensor(-PART), tuff.tensor(PART)
        self.same(x.clamp(low, high), np.clip(X, -PART, PART), "both")
        self.same(x.clamp(max=high), np.minimum(X, PART), "max")

    def test_in_place(self):
        x = tuff.tensor(X)
        held, view = x, x[0]
        x += 1
        x.mul_(2)
        x @= tuff.eye(5)
        self.assertIs(x, held)
        self.same(held, (X + 1) * 2, "held")
        self.same(view, X[0], "view")
        for write, error in ((lambda: tuff.tensor(A).div_(2), "does not hold the result"), (lambda: x.add_(tuff.zeros((2, 3, 5))), "does not hold the result"),
                             (lambda: tuff.ones(2, requires_grad=True).add_(1), "requires_grad")):
            with self.assertRaisesRegex((tuff.InvalidArgument, tuff.ShapeError), error):
                write()

    def test_a_clone_is_apart(self):
        x = tuff.tensor(X, requires_grad=True)
        y = x.realize().clone()
        (y * 3).sum().backward()
        self.same(x.grad, np.full_like(X, 3), "gradient")
        kept = tuff.tensor(X).realize()
        copy = kept.clone().realize()
        kept.zero_()
        self.same(copy, X, "copy")

    def test_random_slopes_while_training(self):
        x = tuff.full(4096, -1.0)
        with tuff.TrainingMode():
            y = -x.rrelu(0.25, 0.75).numpy()
        self.assertTrue(((y >= 0.25) & (y < 0.75)).all() and 0.45 < y.mean() < 0.55 and y.std() > 0.1)


class Names(unittest.TestCase):
    """What tuff/_names.py adds."""

    def test_aliases(self):
        for name, function in _names.ALIASES.items():
            self.assertIs(vars(tuff.Tensor)[name], vars(tuff.Tensor)[function], name)
            self.assertIs(getattr(tuff, name), getattr(tuff.Tensor, function), name)

    def test_lines_of_python(self):
        x = tuff.tensor(X)
        self.assertTrue(np.array_equal(x.clamp_min(0).numpy(), X.clip(0)) and np.array_equal(x.clamp_max(0).numpy(), X.clip(None, 0)))
        self.assertTrue(x.positive() is x and np.array_equal(x.rsub(2).numpy(), 2 - X))
        self.assertEqual((x.is_floating_point(), x.is_signed(), tuff.tensor(A).is_floating_point(), x.element_size()), (True, True, False, 4))
        self.assertEqual((tuff.tensor([3]).is_nonzero(), x.is_same_size(tuff.tensor(Y)), x.is_same_size(tuff.tensor(V))), (True, True, False))
        for made, like in ((x.new_zeros((2, 3)), np.zeros((2, 3))), (x.new_ones([2]), np.ones(2)), (x.new_full((2,), 7), np.full(2, 7))):
            self.assertEqual(made.dtype, "float32")
            self.assertTrue(np.array_equal(made.numpy(), like))
        self.assertEqual((x.new_zeros(2, dtype="int8").dtype, x.new_empty((4, 1)).shape, x.type_as(tuff.tensor(A)).dtype), ("int8", (4, 1), "int32"))
        part = x.narrow_copy(1, 1, 2)
        x.zero_()
        self.assertTrue(np.array_equal(part.numpy(), X[:, 1:3]))
        drawn = x.randint_like(2, 5)
        self.assertTrue(drawn.dtype == "float32" and set(drawn.numpy().flat) <= {2, 3, 4})

    def test_drawn_in_place(self):
        for name, arguments, check in (("uniform_", (2, 5), lambda v: (v >= 2).all() and (v < 5).all()), ("normal_", (3, 0.1), lambda v: abs(v.mean() - 3) < 0.1),
                                       ("exponential_", (2,), lambda v: (v >= 0).all() and abs(v.mean() - 0.5) < 0.1), ("bernoulli_", (0.25,), lambda v: set(v) == {0, 1} and abs(v.mean() - 0.25) < 0.1)):
            x = tuff.zeros(2000)
            self.assertIs(getattr(x, name)(*arguments), x)
            self.assertTrue(check(x.numpy()), name)
        with self.assertRaisesRegex(tuff.InvalidArgument, "the parameters are mean, std"):
            tuff.zeros(2).normal_(scale=2)

    def test_places(self):
        places = tuff.tensor([[0, 5], [11, 7]])
        for got, want in zip(places.unravel_index((3, 4)), np.unravel_index(places.numpy(), (3, 4))):
            self.assertTrue(np.array_equal(got.numpy(), want))
        with self.assertRaises(tuff.IndexError):
            tuff.tensor([0, 11]).unravel_index((3, 3))

    def test_errors_name_the_value(self):
        x = tuff.tensor(X)
        for call, text in ((lambda: x.gcd(x), "gcd: not defined on float32"), (lambda: tuff.tensor(A).addcdiv(tuff.tensor(A), tuff.tensor(B)), "cast"),
                           (lambda: x.t().unsqueeze(0).t(), "more than two axes"), (lambda: x.select_scatter(x, 0, 1), "source of"), (lambda: x.tensordot(x, ([0], [1])), "differ"),
                           (lambda: x.diff(-1), "-1 times"), (lambda: x.trapezoid(x[0], dx=2.0), "leave one out"), (lambda: x.polygamma(-1), "-1"), (lambda: x.renorm(0, 0, 1), "p is 0"),
                           (lambda: tuff.special.legendre_polynomial_p(x, 2000), "above 1000"), (lambda: x.masked_select(x), "not bool"), (lambda: tuff.linalg.lu_solve(x[:, :3], tuff.tensor([1]), x), "pivots")):
            with self.assertRaisesRegex((tuff.InvalidArgument, tuff.ShapeError), text):
                call()


if __name__ == "__main__":
    unittest.main()
