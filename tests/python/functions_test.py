"""Every function of Tensor against NumPy."""
import math
import pickle
import unittest

import numpy as np

import tuff
from tuff import _names
from more_functions_test import CASES as MORE
from window_functions_test import CASES as WINDOWS

RNG = np.random.default_rng(7)
X = RNG.uniform(-2, 2, (3, 5)).astype(np.float32)
Y = RNG.uniform(-2, 2, (3, 5)).astype(np.float32)
POSITIVE = RNG.uniform(0.1, 4, (3, 5)).astype(np.float32)
AWAY = np.where(np.abs(Y) < 0.2, np.float32(0.5), Y)
CUBE = RNG.uniform(-2, 2, (2, 3, 4)).astype(np.float32)
A = RNG.integers(-9, 10, (3, 5)).astype(np.int32)
B = RNG.integers(1, 6, (3, 5)).astype(np.int32)
MASK = RNG.random((3, 5)) < 0.5
ODD = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, 2.5, -2.5], np.float32)
IMAGES = RNG.uniform(-1, 1, (2, 2, 6, 6)).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def normalized(x, axes, eps):
    mean, var = x.mean(axis=axes, keepdims=True), x.var(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(var + eps)


def one_hot(x, n):
    return (x[..., None] == np.arange(n)).astype(np.int32)


def cross_entropy(x, target):
    return -np.log(softmax(x, 1))[np.arange(len(target)), target].mean()


erf = np.vectorize(math.erf)
BIAS = np.array([0.5, -1, 2], np.float32)
CLASSES = np.array([1, 4, 0], np.int32)
PICKS = np.array([[0, 2, 1, 1, 0]], np.int32)

# function: cases of (arguments, with tuff, with NumPy).
CASES = {
    "neg": [([X], lambda x: x.neg(), np.negative)],
    "abs": [([X], lambda x: x.abs(), np.abs)],
    "sign": [([X], lambda x: x.sign(), np.sign)],
    "reciprocal": [([AWAY], lambda x: x.reciprocal(), np.reciprocal)],
    "sqrt": [([POSITIVE], lambda x: x.sqrt(), np.sqrt)],
    "rsqrt": [([POSITIVE], lambda x: x.rsqrt(), lambda x: 1 / np.sqrt(x))],
    "exp": [([X], lambda x: x.exp(), np.exp)],
    "exp2": [([X], lambda x: x.exp2(), np.exp2)],
    "log": [([POSITIVE], lambda x: x.log(), np.log)],
    "log2": [([POSITIVE], lambda x: x.log2(), np.log2)],
    "sin": [([X], lambda x: x.sin(), np.sin)],
    "cos": [([X], lambda x: x.cos(), np.cos)],
    "tan": [([X / 2], lambda x: x.tan(), np.tan)],
    "tanh": [([X], lambda x: x.tanh(), np.tanh)],
    "erf": [([X], lambda x: x.erf(), erf)],
    "sigmoid": [([X], lambda x: x.sigmoid(), sigmoid)],
    "relu": [([X], lambda x: x.relu(), lambda x: np.maximum(x, 0))],
    "leaky_relu": [([X], lambda x: x.leaky_relu(0.1), lambda x: np.where(x > 0, x, x * 0.1)),
                   ([X], lambda x: x.leaky_relu(), lambda x: np.where(x > 0, x, x * 0.01))],
    "gelu": [([X], lambda x: x.gelu(), lambda x: x * (1 + erf(x / math.sqrt(2))) / 2),
             ([X], lambda x: x.gelu(approximate="tanh"), lambda x: 0.5 * x * (1 + np.tanh(
                 math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))))],
    "silu": [([X], lambda x: x.silu(), lambda x: x * sigmoid(x))],
    "softplus": [([X], lambda x: x.softplus(beta=2), lambda x: np.log1p(np.exp(2 * x)) / 2)],
    "trunc": [([X], lambda x: x.trunc(), np.trunc)],
    "floor": [([X], lambda x: x.floor(), np.floor)],
    "ceil": [([X], lambda x: x.ceil(), np.ceil)],
    "round": [([ODD], lambda x: x.round(), np.round)],
    "square": [([X], lambda x: x.square(), np.square)],
    "bitwise_not": [([A], lambda x: x.bitwise_not(), np.invert)],
    "logical_not": [([MASK], lambda x: x.logical_not(), np.logical_not)],
    "isnan": [([ODD], lambda x: x.isnan(), np.isnan)],
    "isinf": [([ODD], lambda x: x.isinf(), np.isinf)],
    "contiguous": [([X], lambda x: x.T.contiguous(), lambda x: x.T)],
    "detach": [([X], lambda x: x.detach(), lambda x: x)],
    "maximum": [([X, Y], lambda x, y: x.maximum(y), np.maximum)],
    "minimum": [([X, Y], lambda x, y: x.minimum(y), np.minimum)],
    "bitwise_left_shift": [([A, B], lambda x, y: x.bitwise_left_shift(y), np.left_shift)],
    "bitwise_right_shift": [([A, B], lambda x, y: x.bitwise_right_shift(y), np.right_shift)],
    "matmul": [([X, Y.T], lambda x, y: x.matmul(y), np.matmul)],
    "take": [([X, PICKS], lambda x, i: x.take(i), lambda x, i: x.ravel()[i])],
    "pow": [([X], lambda x: x.pow(3), lambda x: x ** 3),
            ([POSITIVE, X], lambda x, y: x.pow(y), np.power),
            ([X], lambda x: tuff.pow(2, x), lambda x: 2.0 ** x)],
    "floor_divide": [([A, B], lambda x, y: x.floor_divide(y), np.floor_divide),
                     ([X], lambda x: x.floor_divide(0.75), lambda x: np.floor_divide(x, 0.75))],
    "remainder": [([A, B], lambda x, y: x.remainder(y), np.remainder),
                  ([X], lambda x: x.remainder(0.75), lambda x: np.remainder(x, np.float32(0.75)))],
    "fmod": [([A, B], lambda x, y: x.fmod(y), np.fmod),
             ([X], lambda x: x.fmod(0.75), lambda x: np.fmod(x, np.float32(0.75)))],
    "clamp": [([X], lambda x: x.clamp(-0.5, 1), lambda x: np.clip(x, -0.5, 1)),
              ([X], lambda x: x.clamp(max=0), lambda x: np.minimum(x, 0))],
    "masked_fill": [([X, MASK], lambda x, m: x.masked_fill(m, -3), lambda x, m: np.where(m, -3, x))],
    "cast": [([X], lambda x: x.cast(tuff.int32), lambda x: x.astype(np.int32)),
             ([X], lambda x: x.cast("float16"), lambda x: x.astype(np.float16))],
    "bitcast": [([X], lambda x: x.bitcast(np.int32), lambda x: x.view(np.int32))],
    "to": [([X], lambda x: x.to(np.float64), lambda x: x.astype(np.float64)),
           ([X], lambda x: x.to("CPU"), lambda x: x)],
    "sum": [([CUBE], lambda x: x.sum(), np.sum),
            ([CUBE], lambda x: x.sum(1), lambda x: x.sum(1)),
            ([CUBE], lambda x: x.sum([0, -1], keepdim=True),
             lambda x: x.sum((0, -1), keepdims=True))],
    "mean": [([CUBE], lambda x: x.mean((0, 2)), lambda x: x.mean((0, 2)))],
    "max": [([CUBE], lambda x: x.max(1), lambda x: x.max(1))],
    "min": [([CUBE], lambda x: x.min(2, True), lambda x: x.min(2, keepdims=True))],
    "prod": [([CUBE], lambda x: x.prod(dims=-1), lambda x: x.prod(-1))],
    "any": [([MASK], lambda x: x.any(0), lambda x: x.any(0))],
    "all": [([MASK], lambda x: x.all(1), lambda x: x.all(1))],
    "logsumexp": [([CUBE], lambda x: x.logsumexp(1), lambda x: np.log(np.exp(x).sum(1)))],
    "var": [([CUBE], lambda x: x.var(1), lambda x: x.var(1, ddof=1))],
    "std": [([CUBE], lambda x: x.std(1, correction=0), lambda x: x.std(1))],
    "argmax": [([CUBE], lambda x: x.argmax(1), lambda x: x.argmax(1)),
               ([CUBE], lambda x: x.argmax(), np.argmax)],
    "argmin": [([CUBE], lambda x: x.argmin(dim=2, keepdim=True),
                lambda x: x.argmin(2)[:, :, None])],
    "softmax": [([CUBE], lambda x: x.softmax(), lambda x: softmax(x, -1))],
    "log_softmax": [([CUBE], lambda x: x.log_softmax(1), lambda x: np.log(softmax(x, 1)))],
    "cumsum": [([CUBE], lambda x: x.cumsum(1), lambda x: x.cumsum(1))],
    "reshape": [([CUBE], lambda x: x.reshape(4, -1), lambda x: x.reshape(4, -1)),
                ([CUBE], lambda x: x.reshape([6, 4]), lambda x: x.reshape(6, 4))],
    "view": [([CUBE], lambda x: x.view((24,)), np.ravel)],
    "permute": [([CUBE], lambda x: x.permute(2, 0, 1), lambda x: x.transpose(2, 0, 1))],
    "transpose": [([CUBE], lambda x: x.transpose(0, 2), lambda x: x.swapaxes(0, 2))],
    "T": [([CUBE], lambda x: x.T, lambda x: x.swapaxes(1, 2))],
    "expand": [([X], lambda x: x.expand(2, -1, 5), lambda x: np.broadcast_to(x, (2, 3, 5)))],
    "pad": [([X], lambda x: x.pad([1, 2, 0, 1], 7),
             lambda x: np.pad(x, ((0, 1), (1, 2)), constant_values=7))],
    "shrink": [([X], lambda x: x.shrink([(0, 2), (1, 4)]), lambda x: x[0:2, 1:4])],
    "flip": [([CUBE], lambda x: x.flip(0, 2), lambda x: np.flip(x, (0, 2)))],
    "slice": [([X], lambda x: x.slice(1, step=-2), lambda x: x[:, ::-2])],
    "narrow": [([X], lambda x: x.narrow(1, 1, 3), lambda x: x[:, 1:4])],
    "select": [([X], lambda x: x.select(1, -1), lambda x: x[:, -1])],
    "squeeze": [([X[None]], lambda x: x.squeeze(), lambda x: x[0]),
                ([X[None]], lambda x: x.squeeze(0), lambda x: x[0])],
    "unsqueeze": [([X], lambda x: x.unsqueeze(1), lambda x: x[:, None])],
    "flatten": [([CUBE], lambda x: x.flatten(1), lambda x: x.reshape(2, 12))],
    "repeat": [([X], lambda x: x.repeat(2, 3), lambda x: np.tile(x, (2, 3)))],
    "cat": [([X, Y], lambda x, y: tuff.cat([x, y], 1), lambda x, y: np.concatenate([x, y], 1))],
    "stack": [([X, Y], lambda x, y: tuff.stack([x, y], dim=1), lambda x, y: np.stack([x, y], 1))],
    "split": [([X], lambda x: x.split(2, 1)[2], lambda x: x[:, 4:])],
    "split_with_sizes": [([X], lambda x: x.split_with_sizes([1, 4], 1)[1], lambda x: x[:, 1:])],
    "chunk": [([X], lambda x: x.chunk(3)[1], lambda x: x[1:2])],
    "tril": [([X], lambda x: x.tril(), np.tril)],
    "triu": [([X], lambda x: x.triu(1), lambda x: np.triu(x, 1))],
    "gather": [([X, PICKS], lambda x, i: x.gather(0, i),
                lambda x, i: np.take_along_axis(x, i.astype(np.int64), 0))],
    "index_select": [([X, CLASSES], lambda x, i: x.index_select(1, i), lambda x, i: x[:, i])],
    "index_put": [([X, CLASSES], lambda x, i: x.index_put((slice(None), i), -7),
                   lambda x, i: np.where(np.isin(np.arange(5), i), -7, x))],
    "nonzero": [([MASK], lambda x: x.nonzero(), np.argwhere)],
    "one_hot": [([CLASSES], lambda x: x.one_hot(5), lambda x: one_hot(x, 5))],
    "where": [([MASK, X, Y], lambda m, x, y: tuff.where(m, x, y), np.where),
              ([MASK, X], lambda m, x: tuff.where(m, x, 7), lambda m, x: np.where(m, x, 7)),
              ([MASK, X], lambda m, x: tuff.where(m, 7, x), lambda m, x: np.where(m, 7, x)),
              ([MASK], lambda m: tuff.where(m, 1, 2), lambda m: np.where(m, 1, 2))],
    "einsum": [([X, Y], lambda x, y: tuff.einsum("ij,kj->ik", [x, y]), lambda x, y: x @ y.T)],
    "linear": [([X, Y, BIAS], lambda x, w, b: x.linear(w, b), lambda x, w, b: x @ w.T + b),
               ([X, Y], lambda x, w: x.linear(w), lambda x, w: x @ w.T)],
    "layernorm": [([X], lambda x: x.layernorm([5]), lambda x: normalized(x, 1, 1e-5))],
    "rms_norm": [([X], lambda x: x.rms_norm(5, eps=1e-6),
                  lambda x: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6))],
    "batchnorm": [([IMAGES], lambda x: x.batchnorm(tuff.zeros(2), tuff.ones(2), training=True),
                   lambda x: normalized(x, (0, 2, 3), 1e-5))],
    "dropout": [([X], lambda x: x.dropout(0.5), lambda x: x)],
    "cross_entropy": [([X, CLASSES], lambda x, t: x.cross_entropy(t), cross_entropy)],
    "mse_loss": [([X, Y], lambda x, y: x.mse_loss(y), lambda x, y: ((x - y) ** 2).mean()),
                 ([X, Y], lambda x, y: x.mse_loss(y, reduction="none"),
                  lambda x, y: (x - y) ** 2)],
    "binary_cross_entropy_with_logits": [
        ([X, MASK.astype(np.float32)],
         lambda x, t: x.binary_cross_entropy_with_logits(t, reduction="sum"),
         lambda x, t: -(t * np.log(sigmoid(x)) + (1 - t) * np.log(1 - sigmoid(x))).sum())],
    "scaled_dot_product_attention": [
        ([CUBE, CUBE * 2, CUBE + 1],
         lambda q, k, v: tuff.Tensor.scaled_dot_product_attention(q, k, v),
         lambda q, k, v: softmax(q @ k.swapaxes(1, 2) / 2, -1) @ v)],
    "embedding": [([X, CLASSES % 3], tuff.Tensor.embedding, lambda w, i: w[i])],
    "empty_like": [([X], lambda x: x.empty_like().zeros_like(), np.zeros_like)],
    "full_like": [([X], lambda x: x.full_like(2.5), lambda x: np.full_like(x, 2.5))],
    "zeros_like": [([X], lambda x: x.zeros_like(), np.zeros_like)],
    "ones_like": [([A], lambda x: x.ones_like(), np.ones_like)],
    "full": [([], lambda: tuff.full((2, 3), 7, dtype=tuff.int64), lambda: np.full((2, 3), 7))],
    "zeros": [([], lambda: tuff.zeros([2, 0, 3]), lambda: np.zeros((2, 0, 3), np.float32))],
    "ones": [([], lambda: tuff.ones(4, dtype="bool"), lambda: np.ones(4, bool))],
    "arange": [([], lambda: tuff.arange(5), lambda: np.arange(5, dtype=np.int32)),
               ([], lambda: tuff.arange(2, 17, 3), lambda: np.arange(2, 17, 3, dtype=np.int32)),
               ([], lambda: tuff.arange(1, 0, -0.25), lambda: np.arange(1, 0, -0.25, dtype="f"))],
    "linspace": [([], lambda: tuff.linspace(0, 1, 7), lambda: np.linspace(0, 1, 7, dtype="f"))],
    "eye": [([], lambda: tuff.eye(3), lambda: np.eye(3, dtype="f")),
            ([], lambda: tuff.eye(2, 4), lambda: np.eye(2, 4, dtype="f"))],
}
# Operators, by what Python calls them.
OPERATORS = {
    "__add__": lambda x, y: x + y, "__sub__": lambda x, y: x - y, "__mul__": lambda x, y: x * y,
    "__truediv__": lambda x, y: x / y, "__floordiv__": lambda x, y: x // y,
    "__mod__": lambda x, y: x % y, "__lt__": lambda x, y: x < y, "__gt__": lambda x, y: x > y,
    "__le__": lambda x, y: x <= y, "__ge__": lambda x, y: x >= y, "__eq__": lambda x, y: x == y,
    "__ne__": lambda x, y: x != y,
}
INTEGER_OPERATORS = {
    "__and__": lambda x, y: x & y, "__or__": lambda x, y: x | y, "__xor__": lambda x, y: x ^ y,
    "__lshift__": lambda x, y: x << y, "__rshift__": lambda x, y: x >> y,
}
# Where random numbers, state and memory are tested.
ELSEWHERE = {
    "rand", "randn", "rand_like", "randn_like", "uniform", "normal", "randint", "manual_seed",
    "get_rng_state", "set_rng_state",
    "kaiming_uniform", "kaiming_normal", "glorot_uniform", "glorot_normal", "empty",  # below
    "sizes", "size", "dim", "numel", "shape", "ndim", "dtype", "device", "itemsize", "nbytes",
    "str", "item", "is_realized", "realize", "tolist",  # below
    "requires_grad", "requires_grad_", "set_requires_grad", "grad", "set_grad", "backward", "gradient", "assign",
    "from_blob", "from_bytes", "from_file", "copy_to", "copy_from", "numpy", "data_ptr",
    "all_reduce", "shard", "shard_", "shard_axis", "shard_like",  # shards_test.py
    "linear_cross_entropy",  # autograd_test.py
    "bool", "bfloat16", "double", "float", "half", "int", "long", "short", "data",  # training_test.py
}
# Against PyTorch (torch_functions_test.py), and the conformance suite's rows.
WITH_TORCH = set("""
    addbmm addcdiv addcmul addmv addr as_strided_scatter bitwise_and bitwise_or bitwise_xor block_diag
    broadcast_tensors cartesian_prod combinations cumulative_trapezoid diagflat diagonal_scatter diff dist dsplit
    float_power fmax fmin frexp gcd heaviside hsplit inner isin isneginf isposinf lcm ldexp logaddexp2 logspace
    masked_select mvlgamma nanmean nansum nextafter pairwise_distance pdist polygamma renorm select_scatter
    slice_scatter sum_to_size t tensordot trapezoid tril_indices triu_indices unravel_index vander vsplit
""".split())
# Other names for functions, and what is a line of Python (more_functions_test.py, torch_functions_test.py).
NAMES = {*_names.ALIASES, *(f"{n}_" for n in [*_names.ALIASES, *_names.IN_PLACE]),
         *(m.__name__ for m in _names.METHODS + _names.DRAWN)}


class Functions(unittest.TestCase):
    def same(self, got, expected, what):
        expected = np.asarray(expected)
        self.assertEqual(got.shape, expected.shape, what)
        np.testing.assert_allclose(got.numpy().astype(np.float64), expected.astype(np.float64),
                                   rtol=3e-5, atol=3e-6, err_msg=what)

    def test_every_function(self):
        for name, cases in CASES.items():
            for arrays, run, expected in cases:
                with self.subTest(name):
                    got = run(*[tuff.tensor(a) for a in arrays])
                    wide = [a.astype(np.float64) if a.dtype == np.float32 and name not in (
                        "bitcast", "remainder", "fmod", "round") else a for a in arrays]
                    self.same(got, expected(*wide), name)

    def test_dtypes_of_results(self):
        for name in ("relu", "maximum", "sum", "full", "arange", "where", "eye", "cast", "to",
                     "bitcast", "isnan", "any"):
            for arrays, run, expected in CASES[name]:
                with self.subTest(name):
                    got, wanted = run(*[tuff.tensor(a) for a in arrays]), expected(*arrays)
                    # NumPy's own numbers have 64 bits.
                    wanted = {np.dtype("int64"): "int32"}.get(np.asarray(wanted).dtype,
                                                              np.asarray(wanted).dtype)
                    if name not in ("full",):
                        self.assertEqual(got.dtype, wanted)

    def test_operators(self):
        for name, f in OPERATORS.items():
            for x, y in ((X, AWAY), (A, B), (X, AWAY[1]), (A, B[:, :1])):
                with self.subTest(name):
                    expected = f(x, y)
                    self.same(f(tuff.tensor(x), tuff.tensor(y)), expected, name)
            for number in (2, -3, 0.75, True):
                with self.subTest(name, number=number):
                    self.same(f(tuff.tensor(X), number), f(X, np.float32(number)), name)
                    self.same(f(number, tuff.tensor(AWAY)), f(np.float32(number), AWAY), name)
        for name, f in INTEGER_OPERATORS.items():
            self.same(f(tuff.tensor(A), tuff.tensor(B)), f(A, B), name)
            self.same(f(tuff.tensor(A), 3), f(A, 3), name)
            self.same(f(3, tuff.tensor(B)), f(3, B), name)
        x = tuff.tensor(X)
        self.same(-x, -X, "-")
        self.same(+x, X, "+")
        self.same(abs(x), abs(X), "abs")
        self.same(~tuff.tensor(A), ~A, "~")
        self.same(x @ tuff.tensor(Y.T), X @ Y.T, "@")
        self.same(x ** 2, X ** 2, "**")
        self.same(2 ** x, 2.0 ** X, "**")
        self.same(2.5 // tuff.tensor(B), 2.5 // B, "//")

    def test_operands_of_numpy(self):
        x = tuff.tensor(X)
        self.same(x + np.float32(1.5), X + 1.5, "+")
        self.same(np.float64(2) * x, X * 2, "*")
        self.assertEqual((x + np.float64(1)).dtype, tuff.float32)
        self.assertEqual((tuff.tensor(A) + np.int64(1)).dtype, tuff.int32)
        self.same(x + X, X + X, "+")
        self.same(X + x, X + X, "+")
        self.assertRaises(tuff.ShapeError, lambda: x @ X)
        for f in (lambda: x + "1", lambda: x < None):
            with self.assertRaises(TypeError):
                f()

    def test_indexing(self):
        x, rows = tuff.tensor(CUBE), np.array([1, 0, 1])
        for index in (0, -1, (0, 2), (1, -3, 3), slice(None), slice(1, None), (slice(None), 1),
                      (Ellipsis, 0), (0, Ellipsis), (None, 1), (slice(None), None, slice(1, 3)),
                      (slice(None, None, -1), slice(None, None, 2)), (Ellipsis, slice(-3, -1)),
                      (slice(5, 1),), Ellipsis, None, (Ellipsis, slice(3, None, -2)), np.int64(1)):
            with self.subTest(repr(index)):
                self.same(x[index], CUBE[index], repr(index))
        for index in ([1, 0], (slice(None), [2, 0, 0]), ([0, 1], [2, 1]), ([[0], [1]], [2, 1]),
                      (slice(None), [0, 2], slice(1, 3)), ([0, 1], slice(None), [3, 2])):
            with self.subTest(repr(index)):
                self.same(x[index], CUBE[index], repr(index))
        self.same(x[tuff.tensor(rows)], CUBE[rows], "tensor")
        self.same(x[rows], CUBE[rows], "array")
        self.same(x[:, tuff.tensor([-1, 0])], CUBE[:, [-1, 0]], "from the end")
        for index, error in ((2, tuff.IndexError), ((0, 0, 0, 0), tuff.IndexError),
                             (slice(None, None, 0), ValueError), (1.5, Exception),
                             (True, tuff.InvalidArgument), ("a", TypeError),
                             ((Ellipsis, Ellipsis), ValueError)):
            with self.subTest(repr(index)), self.assertRaises(error):
                x[index]
        self.assertEqual(len(x), 2)
        self.assertEqual([row.shape for row in x], [(3, 4), (3, 4)])
        self.assertRaises(TypeError, len, x.sum())
        self.assertRaises(TypeError, iter, x.sum())

    def test_facts(self):
        x = tuff.tensor(CUBE)
        self.assertEqual((x.shape, x.sizes(), x.size(-1), x.ndim, x.dim(), x.numel(), x.nbytes),
                         ((2, 3, 4), (2, 3, 4), 4, 3, 3, 24, 96))
        self.assertEqual((x.dtype, x.itemsize, x.device), (tuff.float32, 4, "CPU"))
        self.assertTrue(x.is_realized())
        self.assertFalse((x + 1).is_realized())
        self.assertTrue((x + 1).realize().is_realized())
        self.assertEqual(tuff.tensor(A).tolist(), A.tolist())
        self.assertEqual((tuff.tensor([1, 2]) * 2).tolist(), [2, 4])
        self.assertEqual(tuff.tensor(2.5).tolist(), 2.5)
        self.assertIs(tuff.tensor(True).item(), True)
        self.assertEqual(tuff.tensor(2 ** 63 - 1, dtype=tuff.int64).item(), 2 ** 63 - 1)
        self.assertEqual(tuff.tensor(2 ** 64 - 1, dtype=tuff.uint64).item(), 2 ** 64 - 1)
        self.assertEqual(float(tuff.tensor([1.5])), 1.5)
        self.assertEqual([10, 20][tuff.tensor(1)], 20)
        self.assertEqual(int(tuff.tensor(3.7)), 3)
        self.assertTrue(tuff.tensor(2))
        self.assertFalse(tuff.tensor([0.0]))
        self.assertRaises(ValueError, bool, tuff.tensor([1, 2]))
        self.assertEqual(len({x, x.detach(), x}), 2)

    def test_printed(self):
        self.assertEqual(repr(tuff.tensor([[1.0, 2.5], [-3.0, 4.0]])),
                         "tensor([[ 1., 2.5],\n        [-3.,  4.]], shape=(2, 2), dtype=float32, "
                         "device=CPU)")
        self.assertEqual(str(tuff.tensor([True])),
                         "tensor([True], shape=(1,), dtype=bool, device=CPU)")
        large = repr(tuff.arange(1000000).reshape(1000, 1000))
        self.assertLess(len(large), 500)
        self.assertIn("...", large)
        self.assertIn("999999", large)
        self.assertIn("shape=(1000, 1000)", large)

    def test_random_numbers(self):
        def draw():
            return [tuff.rand([4, 5]), tuff.randn(20), tuff.uniform([10], -1, 1),
                    tuff.normal(3, 0.5, [10]), tuff.randint(2, 9, [50]), tuff.zeros(6).rand_like(),
                    tuff.zeros(6).randn_like(), tuff.Tensor.kaiming_uniform([4, 9]),
                    tuff.Tensor.kaiming_normal([4, 9], mode="out"),
                    tuff.Tensor.glorot_uniform([4, 9]), tuff.Tensor.glorot_normal([4, 9], gain=2)]
        tuff.manual_seed(5)
        state = tuff.get_rng_state()
        first = [t.numpy().copy() for t in draw()]
        tuff.manual_seed(5)
        for a, b in zip(first, draw()):
            np.testing.assert_array_equal(a, b.numpy())
        tuff.set_rng_state(state)
        np.testing.assert_array_equal(first[0], draw()[0].numpy())
        self.assertTrue((first[0] >= 0).all() and (first[0] < 1).all())
        self.assertTrue((abs(first[2]) <= 1).all() and (first[2] < 0).any())
        self.assertTrue(2 <= first[4].min() and first[4].max() <= 8 and first[4].dtype == np.int32)
        self.assertTrue(2 < first[3].mean() < 4)
        self.assertTrue((abs(first[7]) <= math.sqrt(6 / 9) + 1e-6).all())
        self.assertEqual(tuff.empty([3, 2], dtype="int8").shape, (3, 2))

    def test_all_are_tested(self):
        public = {n for n in dir(tuff.Tensor) if not n.startswith("_")}
        known = set(CASES) | set(MORE) | set(WINDOWS) | ELSEWHERE | WITH_TORCH
        self.assertEqual(public - NAMES, known - NAMES)


class Making(unittest.TestCase):
    def test_tensor(self):
        for data, dtype in ((1, "int32"), (1.5, "float32"), (True, "bool"), ([1, 2.5], "float32"),
                            ([[True, False]], "bool"), ([True, 2], "int32"), ([], "float32"),
                            ([[], []], "float32"), ((1, (2)), "int32"), ([np.float64(2)], "float32"),
                            (np.float64(2), "float32"), (range(3), "int32")):
            t = tuff.tensor(data)
            self.assertEqual(t.dtype, dtype, data)
            np.testing.assert_array_equal(t.numpy(), np.array(data))
        for dtype in ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64",
                      "uint64", "float16", "float32", "float64"):
            a = np.array([[0, 1], [2, 3]], dtype)
            t = tuff.tensor(a)
            self.assertEqual(t.dtype, dtype)
            self.assertEqual(t.dtype, a.dtype)
            np.testing.assert_array_equal(t.numpy(), a)
            self.assertEqual(t.numpy().dtype, a.dtype)
            np.testing.assert_array_equal(tuff.tensor(a.T[::-1]).numpy(), a.T[::-1])
            self.assertEqual(tuff.tensor([0, 1], dtype=a.dtype).dtype, dtype)
        self.assertEqual(tuff.tensor(np.zeros(3), dtype=tuff.float32).dtype, tuff.float32)
        self.assertTrue(tuff.tensor([1.0], requires_grad=True).requires_grad)
        for data, error in (([1, [2]], tuff.ShapeError), ([[1], [2, 3]], tuff.ShapeError),
                            ("12", TypeError), ([None], TypeError), ({}, TypeError),
                            (2 ** 40, tuff.InvalidArgument), (2 ** 70, tuff.InvalidArgument),
                            (np.zeros(2, complex), tuff.InvalidArgument)):
            with self.subTest(repr(data)), self.assertRaises(error):
                tuff.tensor(data)

    def test_a_copy_is_a_copy(self):
        a = np.array([1.0, -0.0], np.float32)
        t = tuff.tensor(a)
        a[0] = 5
        u = tuff.tensor(t)
        t.assign(t * 3)
        self.assertEqual((t.tolist(), u.tolist()), ([3, 0], [1, 0]))
        self.assertEqual(math.copysign(1, u.tolist()[1]), -1)
        self.assertEqual(tuff.tensor(t, dtype=tuff.int32).tolist(), [3, 0])

    def test_bfloat16(self):
        t = tuff.tensor([1.5, 2], dtype=tuff.bfloat16)
        self.assertEqual(t.tolist(), [1.5, 2])
        self.assertEqual(t.cast(float).numpy().tolist(), [1.5, 2])
        self.assertRaisesRegex(tuff.Unsupported, "cast", t.numpy)
        self.assertRaises(BufferError, memoryview, t)

    def test_floats_of_8_bits(self):
        for dtype, name, largest, code in ((tuff.float8_e4m3fn, "float8_e4m3fn", 448, 0x7e),
                                           (tuff.float8_e5m2, "float8_e5m2", 57344, 0x7b)):
            t = tuff.tensor([1.5, -0.1, largest], dtype=dtype)
            self.assertEqual((t.dtype, str(t.dtype), t.dtype.itemsize), (dtype, f"tuff.{name}", 1))
            self.assertEqual(t.tolist()[::2], [1.5, largest])
            self.assertEqual(t.bitcast(tuff.uint8).numpy()[2], code)
            self.assertEqual(tuff.tensor([code], dtype="uint8").bitcast(name).tolist(), [largest])
            self.assertEqual([(t + t).dtype, (t * 2).dtype, (t + t.cast("float16")).dtype],
                             [dtype, dtype, tuff.float16])
            self.assertRaisesRegex(tuff.Unsupported, 'NumPy has no float8.*bitcast\\("uint8"\\)', t.numpy)
            self.assertRaisesRegex(tuff.InvalidArgument, name, lambda: tuff.amp.autocast(dtype).__enter__())
            self.assertIs(pickle.loads(pickle.dumps(dtype)), dtype)
        self.assertEqual(tuff.promote("float8_e4m3fn", "float8_e5m2"), tuff.float16)

    def test_finfo(self):
        for dtype in ("float16", "float32", "float64"):
            ours, numpys = tuff.finfo(dtype), np.finfo(dtype)
            for name in ("bits", "eps", "max", "min", "tiny", "smallest_normal"):
                self.assertEqual(getattr(ours, name), getattr(numpys, name), f"{name} of {dtype}")
        for dtype, values in ((tuff.float8_e4m3fn, (8, 0.125, 448, -448, 2**-6)),
                              (tuff.float8_e5m2, (8, 0.25, 57344, -57344, 2**-14)),
                              (tuff.bfloat16, (16, 2**-7, 2.0**127 * (2 - 2**-7), -2.0**127 * (2 - 2**-7), 2**-126))):
            f = tuff.finfo(dtype)
            self.assertEqual((f.bits, f.eps, f.max, f.min, f.tiny), values)
            self.assertIs(f.dtype, dtype)
        self.assertIs(tuff.finfo().dtype, tuff.float32)
        self.assertRaisesRegex(tuff.InvalidArgument, "finfo: int8", tuff.finfo, "int8")

    def test_dtypes(self):
        self.assertEqual(tuff.float32, np.float32)
        self.assertEqual(tuff.float32, "float32")
        self.assertNotEqual(tuff.float32, tuff.float64)
        self.assertIs(tuff.zeros(1).dtype, tuff.float32)
        self.assertEqual({tuff.int8: 1}[tuff.int8], 1)
        self.assertEqual(repr(tuff.int8), "tuff.int8")
        self.assertEqual((tuff.int16.itemsize, tuff.int16.name), (2, "int16"))
        self.assertEqual(tuff.promote(tuff.int8, tuff.float16), tuff.float16)
        for t, wanted in ((float, "float32"), (int, "int32"), (bool, "bool"), ("half", "float16"),
                          (np.dtype("i2"), "int16"), (np.bool_, "bool")):
            self.assertEqual(tuff.zeros(1, dtype=t).dtype, wanted)
        self.assertRaises(tuff.InvalidArgument, tuff.zeros, 1, dtype="nothing")
        self.assertRaises(TypeError, tuff.zeros, 1, dtype=3)


if __name__ == "__main__":
    unittest.main()
