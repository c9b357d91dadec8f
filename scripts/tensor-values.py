#!/usr/bin/python3
"""Writes tests/data/tensor_values.json: tensor functions and their gradients as PyTorch computes them.

Usage: tensor-values.py [--out tests/data/tensor_values.json]

Each row names a case that apps/check/functions.cpp computes with tuff. Inputs are float32 values; PyTorch
works in float64, so that its own rounding stays out of the comparison. The gradient is that of
sum(out * w) with w[i] = (i % 7 + 1) / 8. Needs Debian's python3-torch.
"""
import argparse
import json
import math

import torch
import torch.nn.functional as F

torch.manual_seed(3)


def floats(*shape, low=-2.0, high=2.0):
    return (torch.rand(shape) * (high - low) + low).float().double()


def ints(*shape, low=0, high=10):
    return torch.randint(low, high, shape, dtype=torch.int32)


def bools(*shape):
    return torch.rand(shape) < 0.5


def elementwise():
    x, y, positive = floats(3, 5), floats(3, 5), floats(3, 5, low=0.1, high=4)
    away = torch.where(y.abs() < 0.2, torch.full_like(y, 0.5), y)
    halves = torch.tensor([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0.49, -3.7, 7.0]).double()
    a, b = ints(3, 5, low=-9), ints(3, 5, low=-9)
    yield from [
        ("add", [x, y], lambda p, q: p + q), ("sub", [x, y], lambda p, q: p - q),
        ("mul", [x, y], lambda p, q: p * q), ("div", [x, away], lambda p, q: p / q),
        ("add_broadcast", [x, floats(5)], lambda p, q: p + q),
        ("mul_broadcast", [floats(4, 1, 3), floats(2, 1)], lambda p, q: p * q),
        ("number_left", [away], lambda p: 2 / p - 1), ("number_right", [x], lambda p: (p * 3 + 1) / 4),
        ("div_integers", [a, ints(3, 5, low=1)], lambda p, q: p.double() / q),
        ("integer_arithmetic", [a, b], lambda p, q: p * q - p + 3),
        ("less", [x, y], lambda p, q: p < q), ("greater", [a, b], lambda p, q: p > q),
        ("less_equal", [a, b], lambda p, q: p <= q), ("greater_equal", [a, b], lambda p, q: p >= q),
        ("equal", [a, b], lambda p, q: p == q), ("not_equal", [a, b], lambda p, q: p != q),
        ("and", [a, b], lambda p, q: p & q), ("or", [a, b], lambda p, q: p | q), ("xor", [a, b], lambda p, q: p ^ q),
        ("neg", [x], lambda p: -p), ("abs", [x], torch.abs), ("sign", [x], torch.sign),
        ("reciprocal", [away], torch.reciprocal), ("sqrt", [positive], torch.sqrt), ("rsqrt", [positive], torch.rsqrt),
        ("exp", [x], torch.exp), ("exp2", [x], torch.exp2), ("log", [positive], torch.log), ("log2", [positive], torch.log2),
        ("sin", [x], torch.sin), ("cos", [x], torch.cos), ("tanh", [x], torch.tanh), ("sigmoid", [x], torch.sigmoid),
        ("relu", [x], torch.relu), ("silu", [x], F.silu),
        ("gelu", [x], lambda p: 0.5 * p * (1 + torch.tanh(math.sqrt(2 / math.pi) * (p + 0.044715 * p**3)))),
        ("tails_of_sigmoid", [torch.tensor([-200.0, -100, -50, -12, 12, 50, 200]).double()],
         lambda p: torch.sigmoid(p) + torch.tanh(p) + F.silu(p)),
        ("tails_of_gelu", [torch.tensor([-40.0, -20, -12, -6, 6, 12, 40]).double()],
         lambda p: 0.5 * p * (1 + torch.tanh(math.sqrt(2 / math.pi) * (p + 0.044715 * p**3)))),
        ("trunc", [halves], torch.trunc), ("floor", [halves], torch.floor), ("ceil", [halves], torch.ceil), ("round", [halves], torch.round),
        ("square", [x], torch.square), ("pow_3", [x], lambda p: p**3), ("pow_half", [positive], lambda p: p**0.5),
        ("pow_real", [positive], lambda p: p**1.7), ("pow_negative", [positive], lambda p: p**-2), ("pow_0", [x], lambda p: p**0),
        ("clamp", [x], lambda p: p.clamp(-0.5, 1.0)), ("clamp_min", [x], lambda p: p.clamp(min=0.25)),
        ("maximum", [x, y], torch.maximum), ("minimum", [x, y], torch.minimum), ("minimum_int", [a, b], torch.minimum),
        ("logical_not", [a], torch.logical_not), ("isnan", [x], torch.isnan), ("isinf", [x], torch.isinf),
        ("where", [bools(3, 5), x, y], torch.where), ("where_number", [bools(3, 5), x], lambda c, p: torch.where(c, p, torch.full_like(p, 7))),
        ("masked_fill", [x, bools(5)], lambda p, m: p.masked_fill(m, -3.0)),
        ("cast_int", [x], lambda p: p.to(torch.int32)), ("cast_bool", [a], lambda p: p.to(torch.bool)), ("bitcast", [ints(4, low=0, high=1 << 30)], lambda p: p.view(torch.float32)),
    ]


def movement():
    x, y = floats(2, 3, 4), floats(2, 2, 4)
    grid = torch.arange(6, dtype=torch.int32).reshape(2, 3)
    yield from [
        ("reshape", [x], lambda p: p.reshape(4, -1)), ("permute", [x], lambda p: p.permute(2, 0, 1)),
        ("transpose", [x], lambda p: p.transpose(0, -1)), ("T", [x], lambda p: p.transpose(-2, -1)),
        ("expand", [floats(3, 1)], lambda p: p.expand(2, 3, 4)), ("pad", [x], lambda p: F.pad(p, (1, 2, 0, 1))),
        ("pad_value_crop", [x], lambda p: F.pad(p, (-1, 2), value=3.5)), ("shrink", [x], lambda p: p[0:1, 1:3, 2:4]),
        ("flip", [x], lambda p: p.flip(0, 2)), ("slice_step", [x], lambda p: p[:, :, 0:4:3]),
        ("slice_negative", [x], lambda p: p.flip(2)[:, :, 0::2]), ("slice_from_end", [x], lambda p: p[:, -2:]),
        ("narrow", [x], lambda p: p.narrow(2, 1, 2)), ("select", [x], lambda p: p.select(1, -1)), ("index", [x], lambda p: p[1]),
        ("squeeze", [floats(1, 3, 1)], lambda p: p.squeeze()), ("squeeze_dim", [floats(1, 3, 1)], lambda p: p.squeeze(0)),
        ("unsqueeze", [x], lambda p: p.unsqueeze(-1)), ("flatten", [x], lambda p: p.flatten(1)), ("repeat", [floats(2, 3)], lambda p: p.repeat(2, 1, 3)),
        ("cat", [x, y], lambda p, q: torch.cat([p, q], 1)), ("stack", [x, floats(2, 3, 4)], lambda p, q: torch.stack([p, q], 1)),
        ("split", [x], lambda p: p.split(2, 1)[1]), ("chunk", [x], lambda p: p.chunk(3, 2)[1]),
        ("gather", [floats(3, 5), ints(3, 2, high=5)], lambda p, i: p.gather(1, i.long())),
        ("gather_0", [floats(4, 3), ints(2, 3, high=4)], lambda p, i: p.gather(0, i.long())),
        ("one_hot", [ints(2, 3, high=4)], lambda i: F.one_hot(i.long(), 4).int()),
        ("tril", [x], lambda p: p.tril()), ("triu", [x], lambda p: p.triu(1)), ("transposed_int", [grid], lambda p: p.T * 2),
        ("arange", [], lambda: torch.arange(2, 17, 3, dtype=torch.int32)), ("arange_float", [], lambda: torch.arange(1, 0, -0.25).double()),
        ("eye", [], lambda: torch.eye(4).double()), ("full", [], lambda: torch.full((2, 3), 2.5).double()),
    ]


def reductions():
    x, a, p = floats(3, 4, 5), ints(3, 4, 5, low=-9), floats(3, 4, low=0.5, high=1.5)
    peaks = torch.tensor([[1, 5, 5, 2], [7, 0, 7, 7], [-1, -3, -1, -9]], dtype=torch.int32)
    for dims, tag in (((), "all"), ((1,), "1"), ((0, 2), "02")):
        over = {"dim": dims} if dims else {}
        yield f"sum_{tag}", [x], lambda v, o=over: v.sum(**o)
        yield f"mean_{tag}", [x], lambda v, o=over: v.mean(**o)
        yield f"max_{tag}", [x], lambda v, d=dims: v.amax(d or (0, 1, 2))
        yield f"min_{tag}", [x], lambda v, d=dims: v.amin(d or (0, 1, 2))
        yield f"var_{tag}", [x], lambda v, d=dims: v.var(d or (0, 1, 2), unbiased=True)
    yield from [
        ("sum_keepdim", [x], lambda v: v.sum(1, keepdim=True)), ("sum_int", [a], lambda v: v.sum(1)),
        ("sum_bool", [bools(4, 6)], lambda v: v.sum(0)), ("min_int", [a], lambda v: v.amin(2)),
        ("prod", [p], lambda v: v.prod(1)), ("std", [x], lambda v: v.std(2)), ("var_biased", [x], lambda v: v.var(2, unbiased=False)),
        ("argmax", [peaks], lambda v: torch.tensor([1, 0, 0], dtype=torch.int32)), ("argmin", [peaks], lambda v: v.argmin(1).int()),
        ("argmax_flat", [x], lambda v: v.argmax().int()), ("logsumexp", [x], lambda v: v.logsumexp((1, 2))),
        ("softmax", [x], lambda v: v.softmax(-1)), ("softmax_0", [x], lambda v: v.softmax(0)), ("log_softmax", [x], lambda v: v.log_softmax(1)),
    ]


def networks():
    image = floats(2, 4, 7, 6)
    q, k, v = floats(2, 3, 4), floats(2, 5, 4), floats(2, 5, 6)
    attend = bools(3, 5)
    attend[:, 0] = True
    table = floats(6, 3)
    yield from [
        ("matmul", [floats(3, 4), floats(4, 5)], torch.matmul), ("matmul_batch", [floats(2, 1, 3, 4), floats(5, 4, 2)], torch.matmul),
        ("matmul_vector", [floats(4), floats(4)], torch.matmul), ("matmul_vector_matrix", [floats(4), floats(2, 4, 3)], torch.matmul),
        ("matmul_matrix_vector", [floats(2, 3, 4), floats(4)], torch.matmul),
        ("matmul_int", [ints(3, 4), ints(4, 2)], torch.matmul), ("matmul_large", [floats(37, 65), floats(65, 33)], torch.matmul),
        ("linear", [floats(2, 3, 4), floats(5, 4), floats(5)], F.linear),
        ("conv2d", [image, floats(3, 4, 3, 3), floats(3)], lambda x, w, b: F.conv2d(x, w, b, 1, 1)),
        ("conv2d_stride", [image, floats(3, 4, 3, 2)], lambda x, w: F.conv2d(x, w, None, 2)),
        ("conv2d_dilation", [image, floats(3, 4, 2, 2)], lambda x, w: F.conv2d(x, w, None, 1, 0, 3)),
        ("conv2d_groups", [image, floats(6, 2, 3, 3)], lambda x, w: F.conv2d(x, w, None, 2, 1, 1, 2)),
        ("conv2d_stride_over_kernel", [image, floats(2, 4, 1, 1)], lambda x, w: F.conv2d(x, w, None, 3)),
        ("max_pool2d", [image], lambda x: F.max_pool2d(x, 2)), ("max_pool2d_padded", [image], lambda x: F.max_pool2d(x, 3, 2, 1)),
        ("avg_pool2d", [image], lambda x: F.avg_pool2d(x, 2)), ("avg_pool2d_stride", [image], lambda x: F.avg_pool2d(x, 3, 1)),
        ("layernorm", [floats(3, 6), floats(6), floats(6)], lambda x, w, b: F.layer_norm(x, (6,), w, b)),
        ("layernorm_2", [floats(3, 2, 4)], lambda x: F.layer_norm(x, (2, 4))),
        ("attention", [q, k, v], lambda q, k, v: (q @ k.mT / 2).softmax(-1) @ v),
        ("attention_causal", [q, floats(2, 3, 4), floats(2, 3, 6)], lambda q, k, v: (q @ k.mT / 2).masked_fill(~torch.ones(3, 3).tril().bool(), -math.inf).softmax(-1) @ v),
        ("attention_mask", [q, k, v, attend], lambda q, k, v, m: (q @ k.mT / 2).masked_fill(~m, -math.inf).softmax(-1) @ v),
        ("embedding", [table, ints(2, 4, high=6)], lambda w, i: F.embedding(i.long(), w)),
        ("cross_entropy", [floats(5, 7), ints(5, high=7)], lambda x, t: F.cross_entropy(x, t.long())),
        ("dropout_outside_training", [floats(3, 3)], lambda x: x),
        ("used_twice", [floats(4, 4)], lambda x: x.softmax(0) @ x + x.sum(1, keepdim=True)),
    ]


# Special values; what a function does to them all stands in one row per kind.
NAN, INF = math.nan, math.inf
SPECIAL = [NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.5, -0.5, 100.0, -100.0]


def doubles(*values):
    return torch.tensor(values).double()


def pairs(values):
    """Every value against every value, as two inputs."""
    t = doubles(*values)
    n = len(values)
    return t.reshape(n, 1).expand(n, n).clone(), t.reshape(1, n).expand(n, n).clone()


def constant(function):
    """The function of inputs without gradients."""
    return lambda *x: function(*(v.detach() for v in x))


def creation():
    x = floats(2, 3)
    yield from [
        ("linspace", [], lambda: torch.linspace(-1, 2, 7).double()), ("linspace_one", [], lambda: torch.linspace(3, 9, 1).double()),
        ("linspace_none", [], lambda: torch.linspace(3, 9, 0).double()), ("eye_wide", [], lambda: torch.eye(3, 5).double()),
        ("eye_tall", [], lambda: torch.eye(5, 2, dtype=torch.int32)), ("arange_down", [], lambda: torch.arange(5, -4, -3, dtype=torch.int32)),
        ("arange_none", [], lambda: torch.arange(3, 3, dtype=torch.int32)), ("full_like", [x], lambda p: torch.full_like(p.detach(), 2.5)),
        ("zeros_like", [ints(4)], torch.zeros_like), ("ones_like", [bools(2, 2)], torch.ones_like),
    ]


def more_movement():
    x, zeros = floats(3, 4, 5), doubles(-0.0, 0.0, 1.0)
    yield from [
        ("split_with_sizes", [x], lambda p: p.split([1, 0, 3], 1)[2]), ("cat_zero_signs", [zeros, doubles(-0.0, -2.0)], constant(lambda p, q: 1 / torch.cat([p, q]))),
        ("cat_three", [floats(2, 2), floats(2, 0), floats(2, 3)], lambda p, q, r: torch.cat([p, q, r], 1)), ("cat_mixed", [ints(3), floats(2)], lambda p, q: torch.cat([p, q])),
        ("pad_int", [ints(2, 3)], lambda p: F.pad(p, (1, 0, 2, 1), value=7)), ("pad_nan", [floats(3)], lambda p: F.pad(p, (0, 2), value=NAN).detach()),
        ("repeat_none", [floats(2, 3)], lambda p: p.repeat(2, 0)), ("reshape_scalar", [floats(1, 1)], lambda p: p.reshape(())), ("expand_scalar", [floats()], lambda p: p.expand(2, 3)),
        ("flatten_scalar", [floats()], lambda p: p.flatten()), ("movement_chain", [x], lambda p: p.permute(2, 0, 1).flip(0)[1:, :, ::2].reshape(4, 6).T),
    ]


def indexing():
    x, rows = floats(4, 5, 3), ints(6, low=-4, high=4)
    columns, table = ints(6, low=-5, high=5), ints(2, 3, high=4)
    one = floats(7)
    yield from [
        ("index_select", [x, ints(4, high=5)], lambda p, i: p.index_select(1, i.long())), ("index_select_none", [x, ints(0, high=5)], lambda p, i: p.index_select(1, i.long())),
        ("take", [x, ints(2, 4, low=-60, high=60)], lambda p, i: p.take(i.long())), ("index_rows", [x, rows], lambda p, i: p[i.long()]),
        ("index_table", [x, table], lambda p, i: p[i.long()]), ("index_both", [x, rows, columns], lambda p, i, j: p[i.long(), j.long()]),
        ("index_apart", [x, rows, ints(6, high=3)], lambda p, i, j: p[i.long(), :, j.long()]), ("index_broadcast", [x, ints(2, 1, high=4), ints(3, high=5)], lambda p, i, j: p[i.long(), j.long()]),
        ("index_inner", [x, columns], lambda p, j: p[:, j.long()]), ("index_slices", [x], lambda p: p[1:3, ..., 0::2]), ("index_reversed", [x], lambda p: p.flip(0)[:, 1]),
        ("index_none", [x], lambda p: p[None, 2, ..., None, 1]), ("index_slice_and_rows", [x, columns], lambda p, j: p[1:, j.long(), :2]),
        # NumPy's order of axes: a number beside rows is one of them, and rows apart from one another come first.
        ("index_number_and_rows", [x, ints(6, high=3)], lambda p, j: p[1, :, j.long()].T), ("index_scalar", [one, ints(high=7)], lambda p, i: p[i.long()]),
        ("index_int", [ints(5, low=-9), ints(3, high=5)], lambda p, i: p[i.long()]), ("index_bool", [bools(5), ints(3, high=5)], lambda p, i: p[i.long()]),
        ("gather_repeated", [one, torch.tensor([2, 2, 2, 0], dtype=torch.int32)], lambda p, i: p.gather(0, i.long())),
    ]


def more_elementwise():
    x, y, positive = floats(3, 5), floats(3, 5), floats(3, 5, low=0.1, high=4)
    steps = doubles(-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0)
    a, b = ints(4, 6, low=-9), ints(4, 6, low=1, high=5) * (1 - 2 * bools(4, 6).int())
    quotients = [floats(4, 6, low=-50, high=50), floats(4, 6, low=0.3, high=4) * (1 - 2 * bools(4, 6).int())]
    tiny = doubles(-0.3, -1e-2, -1e-4, 1e-7, 3e-3, 0.2)
    shifts = [ints(5, high=1000), ints(5, high=20)]
    yield from [
        ("tan", [x], torch.tan), ("erf", [x], torch.erf), ("erf_tails", [doubles(-9, -4, -1.0, 1.0, 1.5, 3.5, 9)], torch.erf), ("gelu_exact", [x], F.gelu),
        ("gelu_exact_tails", [doubles(-40, -6, -4, -2, 2, 4, 6, 40)], F.gelu), ("leaky_relu", [x], lambda p: F.leaky_relu(p, 0.1)),
        ("relu_at_0", [steps], F.relu), ("relu_int", [a], torch.relu), ("abs_at_0", [steps], torch.abs), ("abs_zero_signs", [doubles(-0.0, 0.0, -2.0)], constant(lambda p: 1 / p.abs())), ("abs_int", [a], torch.abs),
        ("softplus", [x], F.softplus), ("softplus_options", [x], lambda p: F.softplus(p, 2, 3)), ("softplus_tails", [doubles(-80, -30, -12, 0, 12, 19, 21, 80)], F.softplus),
        ("softplus_small", [doubles(-30, -20, -15)], lambda p: torch.log1p(p.exp()) * 1e6), ("tanh_small", [tiny], constant(lambda p: torch.tanh(p) / p)), ("erf_small", [tiny], constant(lambda p: torch.erf(p) / p)),
        ("cos_far", [doubles(-24000.25, -3000.5, -77.75, 88.0, 1234.5, 20000.125)], torch.cos), ("cos_roots", [doubles(1.5707964, 4.712389, 10.995574, 7.853982)], lambda p: torch.cos(p.float().double()) * 1e5),
        ("pow_tensor", [positive, y], torch.pow), ("pow_negative_base", [doubles(-2, -1.5, -3, -0.5), doubles(2, 3, -1, -2)], lambda p, q: p.pow(q.detach())),
        ("pow_at_0", [doubles(0, 0, 0), doubles(1, 2, 3.5)], lambda p, q: p.pow(q.detach())), ("pow_number_left", [x], lambda p: 2**p), ("pow_far", [doubles(-1, 2, -1.5)], lambda p: p**100),
        ("pow_int", [a, ints(4, 6, high=7)], torch.pow), ("pow_int_number", [a], lambda p: p**5), ("pow_int_negative", [doubles(1, -1, -1, 1).int(), doubles(-3, -3, -2, 0).int()], lambda p, q: doubles(1, -1, 1, 1).int()),
        ("pow_broadcast", [positive, floats(5)], torch.pow), ("pow_scalar_real", [positive], lambda p: p**-0.3),
        ("floor_divide_int", [a, b], lambda p, q: torch.div(p, q, rounding_mode="floor")), ("remainder_int", [a, b], torch.remainder), ("fmod_int", [a, b], torch.fmod), ("remainder_number", [a], lambda p: p % -4),
        ("number_remainder", [b], lambda q: torch.remainder(torch.full_like(q, 7), q)), ("floor_divide_number", [a], lambda p: torch.div(p, -4, rounding_mode="floor")),
        ("floor_divide", quotients, lambda p, q: torch.div(p, q, rounding_mode="floor").detach()), ("remainder", quotients, torch.remainder), ("fmod", quotients, torch.fmod),
        ("fmod_exact", [doubles(6, 0.9, 1e6, -7.5, 5.3), doubles(0.1, 0.3, 0.7, 2.5, 5.3)], lambda p, q: torch.fmod(p.float().double(), q.float().double())),
        ("bitwise_not", [a], torch.bitwise_not), ("bitwise_not_bool", [bools(6)], torch.bitwise_not), ("left_shift", shifts, torch.bitwise_left_shift), ("right_shift", [a, ints(4, 6, high=9)], torch.bitwise_right_shift),
        ("shift_number", [a], lambda p: (p << 3) + (p >> 1)), ("shift_beyond", [doubles(5, -5, 5, -5).int(), doubles(32, 40, -1, -2).int()], lambda p, q: doubles(0, 0, 0, 0, 0, -1, 0, -1).int().reshape(2, 4)),
        ("clamp_at_bounds", [steps], lambda p: p.clamp(-1, 1)), ("clamp_int", [a], lambda p: p.clamp(-3, 4)), ("where_numbers", [bools(2, 3)], lambda c: torch.where(c, torch.tensor(2, dtype=torch.int32), torch.tensor(-1, dtype=torch.int32))),
        ("masked_fill_int", [a, bools(6)], lambda p, m: p.masked_fill(m, 3)), ("compare_number", [a], lambda p: (p > 0.5) & (3 >= p)), ("scalars", [floats(), floats()], lambda p, q: (p * 2 + q).exp() / (1 + p * p)),
    ]


def special():
    x = doubles(*SPECIAL)
    real = [torch.exp, torch.exp2, torch.log, torch.log2, torch.sqrt, torch.rsqrt, torch.reciprocal, torch.sin, torch.cos, torch.tan, torch.tanh, torch.sigmoid, torch.erf, torch.relu,
            F.gelu, F.silu, F.softplus, torch.abs, torch.floor, torch.ceil, torch.round, torch.trunc]
    some = [NAN, INF, -INF, 0.0, 2.0, -3.0, 0.5]
    p, q = pairs(some)
    powers = [NAN, INF, -INF, 0.0, 1.0, -1.0, 2.0, -3.0, 0.5, -2.5]
    holes = doubles(1, NAN, -2, INF, 0, -INF).reshape(2, 3)
    low = doubles(-INF, -INF, 1, -INF).reshape(2, 2)
    yield from [
        ("special_real", [x], constant(lambda v: torch.stack([f(v) for f in real]))), ("special_tests", [x], lambda v: torch.stack([v.isnan(), v.isinf(), v > 0, v <= 1, v == 0, v != v])),
        ("special_binary", [p, q], constant(lambda a, b: torch.stack([a + b, a - b, a * b, a / b, torch.maximum(a, b), torch.minimum(a, b)]))),
        ("special_remainders", [p, q], constant(lambda a, b: torch.stack([torch.fmod(a, b), torch.remainder(a, b)]))),
        ("special_comparisons", [p, q], lambda a, b: torch.stack([a < b, a <= b, a == b, a != b])), ("special_pow", list(pairs(powers)), constant(torch.pow)),
        ("special_clamp", [x], constant(lambda v: v.clamp(-1, 2))), ("special_reductions", [holes], constant(lambda v: torch.stack([v.sum(1), v.amax(1), v.amin(1), v.prod(1)]))),
        ("special_argmax", [holes], lambda v: torch.stack([v.argmax(1), v.argmin(1)]).int()), ("logsumexp_infinite", [low], constant(lambda v: v.logsumexp(1))), ("logsumexp_inf", [doubles(INF, 1)], constant(lambda v: v.logsumexp(0))),
        ("softmax_masked", [doubles(-INF, 1, 2, -INF)], lambda v: v.softmax(0)), ("cast_special", [x], lambda v: doubles(0, 2147483647, -2147483648, 0, 0, 1, -1, 2, 0, 100, -100).int()),
    ]


def more_reductions():
    x, a, none = floats(3, 4, 5), ints(3, 7, high=3), floats(0, 3)
    yield from [
        ("any", [a], lambda v: (v != 0).any(1)), ("all", [a], lambda v: (v != 0).all(0)), ("any_all", [x], lambda v: v.bool().any()), ("all_keepdim", [bools(2, 9)], lambda v: v.all(1, keepdim=True)),
        ("any_none", [none], lambda v: v.bool().any(0)), ("all_none", [none], lambda v: v.bool().all(0)), ("sum_none", [none], lambda v: v.sum(0)), ("prod_none", [none], lambda v: v.prod(0)),
        ("mean_none", [none], constant(lambda v: v.mean(0))), ("var_one", [floats(1, 3)], constant(lambda v: v.var(0))), ("std_biased", [x], lambda v: v.std((0, 2), unbiased=False)), ("prod_int", [a], lambda v: v.prod(1)),
        ("prod_zeros", [doubles(2, 0, 3, 0, 0, 4, 1, 5, 6).reshape(3, 3)], lambda v: v.prod(1)), ("max_bool", [bools(3, 4)], lambda v: v.amax(1)), ("min_bool", [bools(3, 4)], lambda v: v.amin(0)),
        ("cumsum", [x], lambda v: v.cumsum(1)), ("cumsum_last", [x], lambda v: v.cumsum(-1)), ("cumsum_int", [a], lambda v: v.cumsum(1)), ("cumsum_bool", [bools(9)], lambda v: v.cumsum(0)),
        ("cumsum_long", [floats(2, 331)], lambda v: v.cumsum(1)), ("cumsum_none", [none], lambda v: v.cumsum(0)), ("cumsum_scalar", [floats()], lambda v: v.cumsum(0)),
        ("sum_scalar", [floats()], lambda v: v.sum()), ("softmax_scalar", [floats()], lambda v: v.softmax(0)), ("softmax_none", [none], lambda v: v.softmax(1)), ("argmax_keepdim", [x], lambda v: v.argmax(0, keepdim=True).int()),
        ("max_ties", [doubles(2, 2, 1, 3, 0, 3).reshape(2, 3)], lambda v: v.amax(1)), ("logsumexp_scalar", [floats()], lambda v: v.logsumexp(0)),
    ]


EINSUMS = [
    ("matrices", "ij,jk->ik", [(3, 4), (4, 5)]), ("batches", "bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]), ("trace", "ii", [(4, 4)]), ("diagonal", "ii->i", [(5, 5)]),
    ("transpose", "ij->ji", [(3, 4)]), ("outer", "i,j->ij", [(3,), (4,)]), ("inner", "ij,ij->", [(3, 4), (3, 4)]), ("dots", "...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 2)]),
    ("scores", "bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]), ("sum", "ijk->j", [(3, 4, 2)]), ("chain", "ij,jk,kl->il", [(2, 3), (3, 4), (4, 2)]), ("bilinear", "bn,anm,bm->ba", [(2, 3), (4, 3, 5), (2, 5)]),
    ("implicit", "ba,cb", [(3, 4), (2, 3)]), ("inner_diagonal", "iji->ji", [(3, 4, 3)]), ("ones", "ij,ij->ij", [(3, 1), (3, 4)]), ("nothing", "ij,jk->ik", [(2, 0), (0, 3)]), ("dots_kept", "i...->...", [(3, 2, 4)]),
]


def einsums():
    for tag, equation, shapes in EINSUMS:
        yield f"einsum_{tag}", [floats(*s) for s in shapes], lambda *x, e=equation: torch.einsum(e, *x)
    yield "einsum_int", [ints(3, 4), ints(4, 2)], lambda p, q: torch.einsum("ij,jk->ki", p, q)


def rms_norm(x, axes, weight, eps):
    return x / torch.sqrt((x * x).mean(axes, keepdim=True) + eps) * weight


def more_networks():
    image, odd = floats(2, 4, 7, 6), ints(1, 2, 5, 5, low=-20, high=20)
    spread = torch.randperm(2 * 4 * 7 * 6).double().reshape(2, 4, 7, 6) / 64  # no ties
    mean, var = floats(4), floats(4, low=0.5, high=2)
    q, k, v = floats(2, 3, 4), floats(2, 5, 4), floats(2, 5, 6)
    logits, classes = floats(6, 5), ints(6, high=5)
    some = torch.tensor([1, -100, 4, 0, -100, 2], dtype=torch.int32)
    weight, planes, plane_classes = floats(5, low=0.5, high=2), floats(2, 5, 3, 2), ints(2, 3, 2, high=5)
    soft, targets = floats(6, 5, low=0, high=1), floats(6, 5, low=0, high=1)
    far = doubles(-90, -20, 20, 90)
    ce = F.cross_entropy
    bce = F.binary_cross_entropy_with_logits
    yield from [
        ("conv2d_pairs", [image, floats(3, 4, 3, 2), floats(3)], lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 2), (1, 2))), ("conv2d_none", [floats(0, 2, 4, 4), floats(3, 2, 3, 3)], F.conv2d),
        ("conv2d_depthwise", [image, floats(4, 1, 3, 3)], lambda x, w: F.conv2d(x, w, None, 1, 1, 1, 4)), ("max_pool2d_pairs", [spread], lambda x: F.max_pool2d(x, (3, 2), (2, 1), (1, 1))),
        ("max_pool2d_dilation", [spread], lambda x: F.max_pool2d(x, 2, 2, 0, (3, 2))), ("max_pool2d_ceil", [spread], lambda x: F.max_pool2d(x, 3, 2, 1, 1, True)),
        ("max_pool2d_int", [odd], lambda x: F.max_pool2d(x.double(), 3, 2, 1).int()), ("avg_pool2d_padding", [image], lambda x: F.avg_pool2d(x, 3, 2, 1)), ("avg_pool2d_pairs", [image], lambda x: F.avg_pool2d(x, (3, 2), (1, 2), (1, 0))),
        ("avg_pool2d_without_pad", [image], lambda x: F.avg_pool2d(x, 3, 2, 1, False, False)), ("avg_pool2d_ceil", [image], lambda x: F.avg_pool2d(x, 3, 2, 1, True)),
        ("avg_pool2d_ceil_without_pad", [image], lambda x: F.avg_pool2d(x, 2, 3, 1, True, False)), ("avg_pool2d_divisor", [image], lambda x: F.avg_pool2d(x, 2, 2, 0, False, True, 3)),
        ("batchnorm", [image, mean, var, floats(4), floats(4)], lambda x, m, s, w, b: F.batch_norm(x, m.detach(), s.detach(), w, b)), ("batchnorm_training", [image, floats(4), floats(4)], lambda x, w, b: F.batch_norm(x, None, None, w, b, True)),
        ("batchnorm_rows", [floats(6, 3)], lambda x: F.batch_norm(x, None, None, None, None, True, 0.1, 1e-3)), ("rms_norm", [floats(3, 6), floats(6)], lambda x, w: rms_norm(x, (1,), w, 2.0**-23)),
        ("rms_norm_2", [floats(3, 2, 4)], lambda x: rms_norm(x, (1, 2), 1, 1e-3)), ("attention_scale", [q, k, v], lambda q, k, v: (q @ k.mT * 0.3).softmax(-1) @ v), ("attention_bias", [q, k, v, floats(3, 5)], lambda q, k, v, m: (q @ k.mT / 2 + m).softmax(-1) @ v),
        ("cross_entropy_ignored", [logits, some], lambda x, t: ce(x, t.long())), ("cross_entropy_weight", [logits, classes, weight], lambda x, t, w: ce(x, t.long(), w.detach())),
        ("cross_entropy_ignore_index", [logits, classes, weight], lambda x, t, w: ce(x, t.long(), w.detach(), ignore_index=2, reduction="sum")), ("cross_entropy_smoothing", [logits, some], lambda x, t: ce(x, t.long(), label_smoothing=0.2)),
        ("cross_entropy_smoothing_weight", [logits, some, weight], lambda x, t, w: ce(x, t.long(), w.detach(), label_smoothing=0.2)), ("cross_entropy_losses", [logits, some], lambda x, t: ce(x, t.long(), reduction="none")),
        ("cross_entropy_planes", [planes, plane_classes], lambda x, t: ce(x, t.long())), ("cross_entropy_row", [floats(5), ints(high=5)], lambda x, t: ce(x, t.long())),
        ("cross_entropy_probabilities", [logits, soft, weight], lambda x, t, w: ce(x, t, w.detach(), label_smoothing=0.1)), ("cross_entropy_probabilities_losses", [planes, floats(2, 5, 3, 2, low=0, high=1)], lambda x, t: ce(x, t, reduction="none")),
        ("mse_loss", [logits, targets], F.mse_loss), ("mse_loss_sum", [logits, targets], lambda x, t: F.mse_loss(x, t, reduction="sum")), ("mse_loss_none", [logits, targets], lambda x, t: F.mse_loss(x, t, reduction="none")),
        ("bce", [logits, targets], lambda x, t: bce(x, t.detach())), ("bce_none", [logits, targets], lambda x, t: bce(x, t.detach(), reduction="none")),
        ("bce_weights", [logits, targets, floats(6, 1, low=0, high=1), weight], lambda x, t, w, p: bce(x, t.detach(), w.detach(), reduction="sum", pos_weight=p.detach())),
        ("bce_far", [far, doubles(1, 0, 1, 0)], lambda x, t: bce(x, t.detach(), reduction="none")), ("matmul_none", [floats(2, 0), floats(0, 3)], torch.matmul), ("embedding_none", [floats(6, 3), ints(0, 2, high=6)], lambda w, i: F.embedding(i.long(), w)),
        ("add_none", [floats(0, 3), floats(1, 3)], lambda p, q: p + q), ("double_use", [floats(3, 3)], lambda x: torch.einsum("ij,jk->ik", x, x).cumsum(0)),
    ]


def later_elementwise():
    x, y, unit = floats(3, 5, low=-3, high=3), floats(3, 5, low=-3, high=3), floats(3, 5, low=-0.99, high=0.99)
    positive, part, above = floats(3, 5, low=0.1, high=6), floats(3, 5, low=0.01, high=0.99), floats(3, 5, low=1.01, high=6)
    a, b = ints(3, 5, high=4), ints(3, 5, high=4)
    odd = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1, -1, 0.5, -0.5, 3e-5, 50, -50]).double()
    near = torch.tensor([math.nan, math.inf, math.inf, 0.0, 0.25, 1.1, -1, 0.5, -1.5, 3e-5, 50, -45]).double()
    yield from [(f, [unit], getattr(torch, f)) for f in ("asin", "acos", "atanh", "erfinv")]
    yield from [(f, [x], getattr(torch, f)) for f in ("atan", "sinh", "cosh", "asinh", "expm1", "erfc", "sinc", "rad2deg", "deg2rad")]
    yield from [
        ("acosh", [above], torch.acosh), ("log1p", [above - 1.5], torch.log1p), ("log10", [positive], torch.log10),
        ("atan2", [x, y], torch.atan2), ("hypot", [x, y], torch.hypot), ("logaddexp", [x, y], torch.logaddexp),
        ("lgamma", [floats(4, 6, low=-4.3, high=12)], torch.lgamma), ("digamma", [floats(4, 6, low=-4.3, high=12)], torch.digamma),
        ("logit", [part], torch.logit), ("logit_eps", [part], lambda p: torch.logit(p, 0.25)),
        ("xlogy", [x, positive], torch.xlogy), ("xlogy_number", [x], lambda p: torch.xlogy(p, 3)),
        ("special_elementary", [odd], lambda p: torch.stack([f(p.detach()) for f in (
            torch.atan, torch.asinh, torch.log1p, torch.expm1, torch.erfc, torch.sinh, torch.cosh, torch.atanh, torch.asin, torch.erfinv, torch.logit)])),
        ("named_arithmetic", [x, y], lambda p, q: (((p + q) * q - p) / 4 + 1) * 3 - 2),
        ("named_comparisons", [a, b], lambda p, q: torch.stack([p == q, p != q, p < q, p <= q, p > q, p >= q, p == 2, p != 2, p < 2, p <= 2, p > 2, p >= 2])),
        ("logical", [a, b], lambda p, q: torch.stack([torch.logical_and(p, q), torch.logical_or(p, q), torch.logical_xor(p, q)])),
        ("isfinite", [odd], torch.isfinite), ("signbit", [odd[1:]], torch.signbit),
        ("isclose", [odd, near], lambda p, q: torch.stack([torch.isclose(p, q), torch.isclose(p, q, 0, 0.5), torch.isclose(p, q, 0.125, 0, True)])),
        ("frac", [x], torch.frac), ("copysign", [x, y], lambda p, q: torch.copysign(p, q.detach())), ("copysign_number", [x], lambda p: torch.copysign(p, -1)),
        ("lerp", [x, y, floats(5, low=0, high=1)], torch.lerp), ("lerp_number", [x, y], lambda p, q: torch.lerp(p, q, 0.75)),
        ("nan_to_num", [odd], lambda p: torch.nan_to_num(p, 7, 5, -5)),
        ("clamp_tensors", [x, floats(5, low=-2, high=-0.5), floats(3, 1, low=0, high=2)], torch.clamp), ("clamp_tensor_max", [x, y], lambda p, q: torch.clamp(p, max=q)),
    ]


def later_activations():
    x, far = floats(4, 6, low=-4, high=7), torch.tensor([-200.0, -100, -50, -12, 12, 50, 200]).double()
    quick = lambda p: p * torch.sigmoid(1.702 * p)
    yield from [
        ("elu", [x], lambda p: F.elu(p, 1.5)), ("selu", [x], F.selu), ("celu", [x], lambda p: F.celu(p, 0.75)), ("hardsigmoid", [x], F.hardsigmoid),
        ("hardswish", [x], F.hardswish), ("hardtanh", [x], lambda p: F.hardtanh(p, -0.5, 1.5)), ("relu6", [x], F.relu6), ("mish", [x], F.mish),
        ("logsigmoid", [x], F.logsigmoid), ("softsign", [x], F.softsign), ("prelu", [x, floats(1)], F.prelu), ("prelu_channels", [floats(2, 3, 4), floats(3)], F.prelu),
        ("glu", [x], lambda p: F.glu(p, 1)), ("softmin", [x], lambda p: F.softmin(p, 0)), ("tanhshrink", [x], F.tanhshrink), ("hardshrink", [x], F.hardshrink),
        ("softshrink", [x], F.softshrink), ("threshold", [x], lambda p: F.threshold(p, 0.25, -3)), ("quick_gelu", [x], quick), ("rrelu_outside_training", [x], F.rrelu),
        ("normalize", [x], F.normalize), ("normalize_3", [x], lambda p: F.normalize(p, 3, 0)),
        ("tails_of_activations", [far], lambda p: F.mish(p) + F.logsigmoid(p) + quick(p) + F.elu(p)),
    ]


def later_products():
    u, v, m, n = floats(4), floats(4), floats(3, 4), floats(4, 5)
    s, t = floats(2, 3, 4), floats(2, 4, 5)
    yield from [
        ("dot", [u, v], torch.dot), ("vdot", [u, v], torch.vdot), ("mv", [m, v], torch.mv), ("mm", [m, n], torch.mm), ("bmm", [s, t], torch.bmm),
        ("outer", [u, floats(3)], torch.outer), ("cross", [floats(1, 2, 3), floats(4, 1, 3)], lambda p, q: torch.linalg.cross(p, q)), ("kron", [m, floats(2)], torch.kron),
        ("addmm", [floats(5), m, n], lambda x, p, q: torch.addmm(x, p, q, beta=0.5, alpha=2)), ("baddbmm", [floats(2, 1, 5), s, t], torch.baddbmm),
    ]


def later_movement():
    x, m, v = floats(2, 3, 4), floats(3, 4), floats(3)
    grid = lambda order: lambda *p: torch.stack(torch.meshgrid(*p, indexing=order))
    yield from [
        ("roll", [x], lambda p: p.roll((1, -5), (0, 2))), ("roll_flat", [x], lambda p: p.roll(5)), ("repeat_interleave", [x], lambda p: p.repeat_interleave(3, 1)),
        ("repeat_interleave_flat", [m], lambda p: p.repeat_interleave(2)), ("tile", [m], lambda p: p.tile(2)), ("meshgrid", [v, floats(2), floats(4)], grid("ij")),
        ("meshgrid_columns", [v, floats(2)], grid("xy")), ("diag_vector", [v], lambda p: p.diag(-1)), ("diag_matrix", [m], lambda p: p.diag(1)),
        ("diagonal", [x], lambda p: p.diagonal(-1, 2, 0)), ("diagonal_none", [floats(9, 9)], lambda p: p.diagonal(9)), ("diag_embed", [m], lambda p: p.diag_embed(2, 0, -1)),
        ("trace", [m], torch.trace), ("unbind", [x], lambda p: torch.cat(p.unbind(1))), ("tensor_split", [m], lambda p: p.tensor_split(3, 1)[0]),
        ("tensor_split_at", [m], lambda p: p.tensor_split((1, 3), 1)[1]), ("hstack", [m, floats(3, 2)], lambda *p: torch.hstack(p)), ("vstack", [v, floats(2, 3)], lambda *p: torch.vstack(p)),
        ("dstack", [v, v + 1], lambda *p: torch.dstack(p)), ("column_stack", [v, m], lambda *p: torch.column_stack(p)), ("movedim", [x], lambda p: p.movedim((0, 1), (-1, 0))),
        ("swapaxes", [x], lambda p: p.swapaxes(0, 2)), ("broadcast_to", [floats(3, 1)], lambda p: p.broadcast_to((2, 3, 4))), ("expand_as", [floats(3, 1), m], lambda p, q: p.expand_as(q.detach())),
        ("unflatten", [x], lambda p: p.unflatten(2, (2, -1))), ("ravel", [x], torch.ravel), ("rot90", [x], lambda p: p.rot90(1, (0, 2))), ("rot90_back", [m], lambda p: p.rot90(-1)),
        ("fliplr", [m], torch.fliplr), ("flipud", [m], torch.flipud), ("pad_reflect", [x], lambda p: F.pad(p[None], (2, 1, 1, 2), "reflect")[0]),
        ("pad_replicate", [x], lambda p: F.pad(p[None, :, :, :3], (3, 0, 0, 5), "replicate")[0]), ("pad_circular", [x], lambda p: F.pad(p[None], (4, 1, 2, 0), "circular")[0]),
        ("pad_to", [x], lambda p: F.pad(p, (0, 1, 0, 1))), ("shrink_to", [x], lambda p: p[:1, :, :2]), ("unfold", [floats(2, 7)], lambda p: p.unfold(1, 3, 2)),
        ("unfold_apart", [floats(2, 8)], lambda p: p.unfold(1, 2, 3)), ("atleast", [v[:1]], lambda p: torch.atleast_3d(p) + torch.atleast_2d(p) + torch.atleast_1d(p)),
    ]


def later_reductions():
    x, m = floats(3, 4, 5), floats(3, 7)
    peaks, zeros = torch.tensor([[1, 5, 5, 2], [7, 0, 7, 7], [-1, -3, -1, -9]], dtype=torch.int32), torch.tensor([[0, 0, 0], [1, 0, 2]]).double()
    yield from [
        ("amax", [x], lambda p: p.amax((0, 2), True)), ("amin", [x], lambda p: p.amin(1)), ("aminmax", [x], lambda p: torch.stack((p.amin(1), p.amax(1)))),
        ("max_with_indices", [x], lambda p: p.max(1)[0]), ("max_indices", [peaks], lambda p: torch.tensor([[1], [0], [0]], dtype=torch.int32)),
        ("min_with_indices", [x], lambda p: p.min(-1, True)[0]), ("var_mean", [x], lambda p: torch.stack(torch.var_mean(p, (0, 2)))),
        ("std_mean", [x], lambda p: torch.stack(torch.std_mean(p, 1, unbiased=False, keepdim=True))), ("norm", [x], torch.norm), ("norm_1", [x], lambda p: torch.norm(p, 1, 1)),
        ("norm_3", [x], lambda p: torch.norm(p, 3, (0, 2), True)), ("norm_below_1", [x], lambda p: torch.norm(p, -1.5, 1)), ("norm_0", [zeros], lambda p: torch.norm(p.detach(), 0, 1)),
        ("norm_infinity", [x], lambda p: torch.norm(p, math.inf, 1)), ("norm_of_zeros", [zeros], lambda p: torch.norm(p, 2, 1) + torch.norm(p, 3, 1)),
        ("count_nonzero", [peaks], lambda p: p.count_nonzero(1)), ("cosine_similarity", [m, floats(3, 7)], F.cosine_similarity), ("cdist", [m, floats(4, 7)], torch.cdist),
        ("cdist_1", [floats(2, 3, 4), floats(5, 4)], lambda p, q: torch.cdist(p, q.expand(2, 5, 4), 1)), ("cov", [m], torch.cov), ("cov_vector", [m[0]], lambda p: torch.cov(p, correction=0)),
        ("corrcoef", [m], torch.corrcoef), ("clone", [x], torch.clone),
    ]


def later_losses():
    x, y, part, target = floats(4, 5), floats(4, 5), floats(4, 5, low=0.05, high=0.95), floats(4, 5, low=0, high=1)
    signs, ends = torch.where(bools(4, 5), 1.0, -1.0).double(), torch.tensor([0, 0, 1, 1, 0.5]).double()
    classes, weight, counts = ints(4, high=5), floats(5, low=0.5, high=2), ints(4, 5, high=6).double()
    yield from [
        ("binary_cross_entropy", [part, target, floats(5, low=0, high=1)], lambda p, t, w: F.binary_cross_entropy(p, t.detach(), w.detach(), reduction="sum")),
        ("binary_cross_entropy_ends", [ends, torch.tensor([0, 1, 0, 1, 0.25]).double()], lambda p, t: F.binary_cross_entropy(p.detach(), t.detach(), reduction="none")),
        ("nll_loss", [x, classes], lambda p, t: F.nll_loss(p, t.long())), ("nll_loss_weight", [x, classes, weight], lambda p, t, w: F.nll_loss(p, t.long(), w.detach(), ignore_index=2, reduction="none")),
        ("l1_loss", [x, y], F.l1_loss), ("smooth_l1_loss", [x, y], lambda p, t: F.smooth_l1_loss(p, t, beta=0.75)), ("huber_loss", [x, y], lambda p, t: F.huber_loss(p, t, "none", 0.75)),
        ("kl_div", [x, part], lambda p, t: F.kl_div(p, t, reduction="batchmean")), ("kl_div_log", [x, y], lambda p, t: F.kl_div(p, t, reduction="sum", log_target=True)),
        ("poisson_nll_loss", [x, counts], lambda p, t: F.poisson_nll_loss(p, t.detach(), True, True)),
        ("poisson_nll_loss_linear", [part, counts], lambda p, t: F.poisson_nll_loss(p, t.detach(), False, False, eps=1e-3, reduction="none")),
        ("gaussian_nll_loss", [x, y, floats(4, low=0.2, high=2)], lambda p, t, v: F.gaussian_nll_loss(p, t, v, full=True)),
        ("hinge_embedding_loss", [x, signs], lambda p, t: F.hinge_embedding_loss(p, t.detach(), 1.5, reduction="none")), ("soft_margin_loss", [x, signs], lambda p, t: F.soft_margin_loss(p, t.detach())),
        ("margin_ranking_loss", [x, y, signs], lambda p, q, t: F.margin_ranking_loss(p, q, t, 0.5)),
        ("cosine_embedding_loss", [x, y, signs[:, 0]], lambda p, q, t: 1 + F.cosine_embedding_loss(p, q, t.detach(), 0.25, reduction="none")),
        ("triplet_margin_loss", [x, y, floats(4, 5)], F.triplet_margin_loss),
        ("triplet_margin_loss_swap", [x, y, floats(4, 5)], lambda a, p, n: F.triplet_margin_loss(a, p, n, 2, 3, 1e-3, True, reduction="sum")),
    ]


def window_convolutions():
    line, image, volume = floats(2, 4, 9), floats(2, 4, 7, 6), floats(1, 2, 4, 5, 6)
    down, small, cube = floats(2, 4, 5), floats(2, 4, 3, 4), floats(1, 2, 2, 3, 2)
    yield from [
        ("conv1d", [line, floats(3, 4, 3), floats(3)], lambda x, w, b: F.conv1d(x, w, b, 2, 1)), ("conv1d_same", [line, floats(6, 2, 4)], lambda x, w: F.conv1d(x, w, None, 1, "same", 2, 2)),
        ("conv2d_same", [image, floats(3, 4, 4, 3), floats(3)], lambda x, w, b: F.conv2d(x, w, b, 1, "same")), ("conv2d_sides", [image, floats(3, 4, 3, 3)], lambda x, w: F.conv2d(F.pad(x, (2, 0, 0, 1)), w, None, 2)),
        ("conv3d", [volume, floats(3, 2, 2, 3, 3), floats(3)], lambda x, w, b: F.conv3d(x, w, b, 1, (0, 1, 1))), ("conv3d_stride", [volume, floats(4, 1, 2, 2, 2)], lambda x, w: F.conv3d(x, w, None, (1, 2, 2), 0, (2, 1, 1), 2)),
        ("conv_transpose1d", [down, floats(4, 3, 4), floats(3)], lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1)), ("conv_transpose2d", [small, floats(4, 3, 3, 2), floats(3)], F.conv_transpose2d),
        ("conv_transpose2d_stride", [small, floats(4, 3, 4, 3), floats(3)], lambda x, w, b: F.conv_transpose2d(x, w, b, (2, 3), 1, (0, 2))),
        ("conv_transpose2d_apart", [small, floats(4, 3, 2, 2)], lambda x, w: F.conv_transpose2d(x, w, None, (2, 3))),
        ("conv_transpose2d_groups", [small, floats(4, 3, 3, 3), floats(6)], lambda x, w, b: F.conv_transpose2d(x, w, b, 2, (2, 1), 1, 2, (3, 2))),
        ("conv_transpose2d_dilation", [small, floats(4, 2, 2, 2)], lambda x, w: F.conv_transpose2d(x, w, None, 1, 1, (2, 1), 1, (3, 2))),
        ("conv_transpose2d_none", [floats(0, 4, 3, 3), floats(4, 2, 2, 2)], F.conv_transpose2d), ("conv_transpose3d", [cube, floats(2, 3, 2, 3, 3), floats(3)], lambda x, w, b: F.conv_transpose3d(x, w, b, (1, 2, 2), (0, 1, 1), (0, 1, 0))),
        ("im2col", [image], lambda x: F.unfold(x, (3, 2), (1, 2), (1, 0), (2, 1))), ("im2col_line", [line], lambda x: x.unfold(2, 3, 2).permute(0, 1, 3, 2).reshape(2, 12, 4)),
        ("fold", [floats(2, 18, 8)], lambda x: F.fold(x, (7, 5), (3, 2), (1, 2), (1, 0), (2, 2))), ("fold_apart", [floats(1, 8, 6)], lambda x: F.fold(x, (4, 6), 2, stride=2)),
    ]


def window_pools():
    image = torch.randperm(2 * 3 * 7 * 6).double().reshape(2, 3, 7, 6) / 64  # no ties
    line, volume = torch.randperm(2 * 3 * 9).double().reshape(2, 3, 9) / 16, torch.randperm(240).double().reshape(1, 2, 4, 5, 6) / 32
    ties, positive = ints(1, 2, 7, 6, high=3), floats(2, 3, 7, 6, low=0.1, high=2)
    place = lambda f, *a, **o: lambda x: f(x.double().detach(), *a, return_indices=True, **o)[1].int()
    yield from [
        ("max_pool1d", [line], lambda x: F.max_pool1d(x, 3, 2, 1, 2)), ("max_pool3d", [volume], lambda x: F.max_pool3d(x, (2, 3, 2), 2, (0, 1, 1), 1, True)),
        ("max_pool1d_indices", [line], place(F.max_pool1d, 3, 2, 1)), ("max_pool2d_indices", [ties], place(F.max_pool2d, (3, 2), (2, 1), (1, 1), (1, 2))), ("max_pool2d_indices_ceil", [image], place(F.max_pool2d, 3, 2, 1, ceil_mode=True)),
        ("max_pool3d_indices", [volume], place(F.max_pool3d, 2)), ("max_pool2d_none", [floats(0, 2, 4, 4)], lambda x: F.max_pool2d(x, 2)), ("max_pool2d_negative", [-image - 1], lambda x: F.max_pool2d(x, 3, 2, 1)),
        ("avg_pool1d", [line], lambda x: F.avg_pool1d(x, 4, 3, 1, True, False)), ("avg_pool3d", [volume], lambda x: F.avg_pool3d(x, (2, 3, 2), 2, (0, 1, 1), True, False)), ("avg_pool3d_divisor", [volume], lambda x: F.avg_pool3d(x, 2, 2, 0, False, True, 5)),
        ("max_unpool1d", [floats(2, 2, 3), torch.tensor([[[1, 3, 4], [0, 2, 5]], [[0, 3, 4], [1, 2, 4]]], dtype=torch.int32)], lambda x, i: F.max_unpool1d(x, i.long(), 2)),
        ("max_unpool2d", [image], lambda x: F.max_unpool2d(*F.max_pool2d(x, (2, 3), return_indices=True), (2, 3), output_size=(7, 6))),
        ("max_unpool2d_overlapping", [image], lambda x: F.max_unpool2d(F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 3, 2, 1, return_indices=True)[1], 3, 2, 1, (7, 6)).detach()),
        ("max_unpool3d", [volume], lambda x: F.max_unpool3d(*F.max_pool3d(x, 2, (2, 2, 3), return_indices=True), 2, (2, 2, 3), 0, (4, 5, 6))),
        ("lp_pool1d", [positive[0]], lambda x: F.lp_pool1d(x, 3, 3, 2)), ("lp_pool2d", [positive], lambda x: F.lp_pool2d(x, 2, 2)),
        ("lp_pool3d", [volume.abs() + 0.5], lambda x: (F.avg_pool3d(x**1.5, (2, 2, 3), (2, 2, 3)) * 12) ** (1 / 1.5)), ("lp_pool2d_zeros", [torch.zeros(1, 1, 4, 4).double()], lambda x: F.lp_pool2d(x.detach(), 2, 2) + x[..., :2, :2] * 0),
        ("adaptive_avg_pool1d", [line], lambda x: F.adaptive_avg_pool1d(x, 4)), ("adaptive_avg_pool2d", [image], lambda x: F.adaptive_avg_pool2d(x, (3, 4))), ("adaptive_avg_pool2d_one", [image], lambda x: F.adaptive_avg_pool2d(x, 1)),
        ("adaptive_avg_pool2d_kept", [image], lambda x: F.adaptive_avg_pool2d(x, (None, 2))), ("adaptive_avg_pool3d", [volume], lambda x: F.adaptive_avg_pool3d(x, (3, 2, 9))),
        ("adaptive_max_pool1d", [line], lambda x: F.adaptive_max_pool1d(x, 6)), ("adaptive_max_pool2d", [image], lambda x: F.adaptive_max_pool2d(x, (3, 4))), ("adaptive_max_pool2d_equal", [image], lambda x: F.adaptive_max_pool2d(x, (7, 2))),
        ("adaptive_max_pool3d", [volume], lambda x: F.adaptive_max_pool3d(x, (3, 2, 4))), ("adaptive_max_pool1d_indices", [line], place(F.adaptive_max_pool1d, 3)),
        ("adaptive_max_pool2d_indices", [ties], place(F.adaptive_max_pool2d, (3, 4))), ("adaptive_max_pool3d_indices", [volume], place(F.adaptive_max_pool3d, (3, 2, 4))),
    ]


def window_sampling():
    line, image, volume = floats(2, 3, 7), floats(2, 2, 5, 7), floats(1, 2, 3, 4, 5)
    to = lambda size=None, mode="nearest", **o: lambda x: F.interpolate(x, size, mode=mode, **o)
    by = lambda factor, mode="nearest", **o: lambda x: F.interpolate(x, scale_factor=factor, mode=mode, **o)
    place, cube = floats(2, 4, 3, 2, low=-1.6, high=1.6), floats(1, 2, 3, 2, 3, low=-1.3, high=1.3)
    sample = lambda mode, outside, corners: lambda x, g: F.grid_sample(x, g, mode, outside, corners)
    yield from [
        ("interpolate_nearest", [image], to((8, 3))), ("interpolate_nearest_up", [volume], by(2)), ("interpolate_nearest_down", [floats(1, 2, 8)], to(4)), ("interpolate_nearest_factor", [line], by(1.7)), ("interpolate_nearest_int", [ints(1, 2, 3, 4)], lambda x: F.interpolate(x.double(), (5, 8)).int()),
        ("interpolate_exact", [image], to((8, 3), "nearest-exact")), ("interpolate_exact_down", [floats(1, 2, 9)], to(3, "nearest-exact")), ("interpolate_exact_factor", [line], by(0.6, "nearest-exact")),
        ("interpolate_linear", [line], to(10, "linear")), ("interpolate_linear_corners", [line], to(4, "linear", align_corners=True)), ("interpolate_bilinear", [image], to((9, 4), "bilinear")), ("interpolate_bilinear_one", [image], to((1, 1), "bilinear", align_corners=True)),
        ("interpolate_bilinear_up", [image], by((2, 3), "bilinear")), ("interpolate_bilinear_factor", [image], by((1.7, 0.6), "bilinear")), ("interpolate_trilinear", [volume], to((4, 7, 3), "trilinear")), ("interpolate_trilinear_corners", [volume], to((5, 2, 8), "trilinear", align_corners=True)),
        ("interpolate_bicubic", [image], to((9, 4), "bicubic")), ("interpolate_bicubic_corners", [image], to((3, 11), "bicubic", align_corners=True)), ("interpolate_bicubic_factor", [image], by(1.7, "bicubic")), ("interpolate_bicubic_up", [image], by(2, "bicubic")),
        ("interpolate_area", [image], to((3, 9), "area")), ("interpolate_antialias", [image], to((2, 3), "bilinear", antialias=True)), ("interpolate_antialias_cubic", [image], to((3, 10), "bicubic", antialias=True)), ("interpolate_none", [floats(0, 2, 4, 4)], by(2, "bilinear")),
        ("grid_sample", [image, place], sample("bilinear", "zeros", False)), ("grid_sample_corners", [image, place], sample("bilinear", "zeros", True)), ("grid_sample_border", [image, place], sample("bilinear", "border", False)),
        ("grid_sample_reflection", [image, place * 2], sample("bilinear", "reflection", False)), ("grid_sample_reflection_corners", [image, place * 2], sample("bilinear", "reflection", True)),
        ("grid_sample_nearest", [image, place], sample("nearest", "zeros", False)), ("grid_sample_nearest_border", [image, place], sample("nearest", "border", True)), ("grid_sample_bicubic", [image, place], sample("bicubic", "zeros", False)),
        ("grid_sample_bicubic_border", [image, place], sample("bicubic", "border", True)), ("grid_sample_bicubic_reflection", [image, place], sample("bicubic", "reflection", False)), ("grid_sample_volume", [volume, cube], sample("bilinear", "zeros", False)),
        ("grid_sample_volume_nearest", [volume, cube], sample("nearest", "reflection", True)),
        ("affine_grid", [floats(2, 2, 3)], lambda t: F.affine_grid(t, (2, 3, 4, 5), False)), ("affine_grid_corners", [floats(2, 2, 3)], lambda t: F.affine_grid(t, (2, 3, 4, 1), True)), ("affine_grid_volume", [floats(1, 3, 4)], lambda t: F.affine_grid(t, (1, 2, 2, 3, 4), False)),
        ("pixel_shuffle", [floats(2, 8, 2, 3)], lambda x: F.pixel_shuffle(x, 2)), ("pixel_unshuffle", [floats(2, 2, 4, 6)], lambda x: F.pixel_unshuffle(x, 2)), ("channel_shuffle", [floats(2, 6, 2)], lambda x: x.reshape(2, 3, 2, 2).transpose(1, 2).reshape(2, 6, 2)),
    ]


def apart(*shape):
    """In no order, all different, also as whole numbers."""
    return (torch.randperm(math.prod(shape)) - math.prod(shape) // 2).double().reshape(shape) * 1.25


def sorting():
    x, long, v = apart(3, 4, 5), apart(2, 300), apart(4, 7)
    nan, inf = math.nan, math.inf
    odd = torch.tensor([[1, nan, -2, inf, 3, -inf, 0], [nan, nan, 5, 4, 2, -1, 8], [nan] * 7]).double()
    few = ints(4, 9, high=4)
    ends, low, high = torch.tensor([-3.0, -1, 0, 0, 2, 4]).double(), floats(3, 2, low=-4, high=5), torch.tensor([-3.0, 0, 4, 9, -7]).double()
    rows = apart(3, 6).sort(1)[0]
    last = lambda p: torch.tensor([[max(i for i in range(p.shape[0]) if p[i, j] == p.mode(0)[0][j]) for j in range(p.shape[1])]], dtype=torch.int32)
    yield from [
        ("sort", [x], lambda p: p.sort(1)[0]), ("sort_descending", [x], lambda p: p.sort(0, True)[0]), ("sort_positions", [few], lambda p: p.sort(stable=True, dim=-1, descending=True)[1].int()),
        ("sort_special", [odd], lambda p: p.detach().sort(stable=True)[0]), ("sort_long", [long], lambda p: p.sort()[0]), ("argsort", [x], lambda p: p.argsort(0).int()),
        ("argsort_long", [ints(2, 300, high=20)], lambda p: p.sort(stable=True, dim=1, descending=True)[1].int()), ("msort", [x], torch.msort), ("topk", [x], lambda p: p.topk(3, 1)[0]),
        ("topk_smallest", [x], lambda p: p.topk(2, 0, False)[1].int()), ("topk_long", [long], lambda p: p.topk(5)[0]), ("kthvalue", [x], lambda p: p.kthvalue(2, 1)[0]),
        ("kthvalue_place", [x], lambda p: p.kthvalue(2, 1, True)[1].int()),
        ("median", [x], torch.median), ("median_dim", [x], lambda p: p.median(1, True)[0]), ("median_nan", [odd], lambda p: p.detach().median(1)[0]),
        ("nanmedian", [odd], lambda p: p.detach().nanmedian(1)[0]), ("mode", [few], lambda p: p.mode(1)[0]), ("mode_place", [few], last),
        ("quantile", [x], lambda p: p.quantile(0.3)), ("quantile_dim", [x], lambda p: p.quantile(0.8, 1, True)),
        ("quantile_several", [x, torch.tensor([0, 0.25, 1]).double()], lambda p, q: p.quantile(q.detach(), 0)),
        ("quantile_lower", [x], lambda p: p.quantile(0.3, 2, interpolation="lower")), ("quantile_higher", [x], lambda p: p.quantile(0.3, 2, interpolation="higher")),
        ("quantile_nearest", [x], lambda p: p.quantile(0.3, 2, interpolation="nearest")), ("quantile_midpoint", [x], lambda p: p.quantile(0.3, 2, interpolation="midpoint")),
        ("nanquantile", [odd], lambda p: p.detach().nanquantile(0.6, 1)),
        ("searchsorted", [ends, low], lambda p, q: torch.searchsorted(p, q).int()), ("searchsorted_right", [ends, high], lambda p, q: torch.searchsorted(p, q, right=True).int()),
        ("searchsorted_rows", [rows, v[:3, :2].contiguous()], lambda p, q: torch.searchsorted(p, q).int()), ("bucketize", [low, ends], lambda p, q: torch.bucketize(p, q).int()),
        ("histc", [floats(5, 7, low=-3, high=3)], lambda p: torch.histc(p.detach(), 4, -2, 2)),
    ]


def running():
    x, pairs = floats(3, 4, 5), torch.tensor([[2, 0.5], [4, 0.25], [0.5, 2], [-1, 1]]).double()
    powers = pairs[torch.randint(4, (2, 166))].reshape(2, 332)[:, :331]  # no product of them is rounded
    zeros = torch.tensor([[1.5, 0, 2, -1, 3], [0, 2, 0, 1, 1], [2, 3, 1, -2, 0]]).double()
    few = ints(3, 6, low=-3, high=3)
    odd = torch.tensor([[1, math.inf, -math.inf], [3, 2, 1], [math.nan, 0, 5], [2, 7, -1]]).double()
    yield from [
        ("cumprod", [x], lambda p: p.cumprod(1)), ("cumprod_zeros", [zeros], lambda p: p.cumprod(1)), ("cumprod_int", [few], lambda p: p.cumprod(-1)),
        ("cumprod_long", [powers], lambda p: p.cumprod(1)), ("cummax", [x], lambda p: p.cummax(1)[0]), ("cummax_place", [few], lambda p: p.cummax(1)[1].int()),
        ("cummax_special", [odd], lambda p: p.detach().cummax(0)[0]), ("cummin", [x], lambda p: p.cummin(0)[0]), ("cummin_place", [few], lambda p: p.cummin(1)[1].int()),
        ("cummin_long", [floats(2, 331)], lambda p: p.cummin(1)[0]), ("logcumsumexp", [x], lambda p: p.logcumsumexp(1)), ("logcumsumexp_long", [floats(2, 331)], lambda p: p.logcumsumexp(1)),
    ]


def transforms():
    """Complex numbers as pairs, of lengths that are one product, stages, or a convolution with a chirp."""
    as_complex, as_pairs = torch.view_as_complex, torch.view_as_real
    window = torch.hamming_window(8).double()
    labels = torch.tensor([[1, 3], [2, 2]], dtype=torch.int32)
    yield from [
        ("fft", [floats(2, 6, 2)], lambda p: as_pairs(torch.fft.fft(as_complex(p)))),
        ("fft_stages", [floats(72, 2, 2)], lambda p: as_pairs(torch.fft.fft(as_complex(p), dim=0, norm="ortho"))),
        ("fft_chirp", [floats(101, 2)], lambda p: as_pairs(torch.fft.fft(as_complex(p)))),
        ("ifft", [floats(5, 3, 2)], lambda p: as_pairs(torch.fft.ifft(as_complex(p), n=7, dim=0))),
        ("rfft", [floats(3, 9)], lambda p: as_pairs(torch.fft.rfft(p))), ("rfft_pairs", [floats(2, 66)], lambda p: as_pairs(torch.fft.rfft(p, norm="forward"))),
        ("irfft", [floats(2, 4, 2)], lambda p: torch.fft.irfft(as_complex(p))), ("irfft_pairs", [floats(34, 2)], lambda p: torch.fft.irfft(as_complex(p), n=66)),
        ("fftn", [floats(3, 4, 2)], lambda p: as_pairs(torch.fft.fftn(as_complex(p)))), ("rfft2", [floats(4, 6)], lambda p: as_pairs(torch.fft.rfft2(p))),
        ("stft", [floats(2, 20)], lambda p: as_pairs(torch.stft(p, 8, 3, window=window, return_complex=True))),
        ("istft", [floats(5, 4, 2)], lambda p: torch.istft(as_complex(p), 8, 3, window=window)),
        ("complex_product", [floats(3, 4, 2), floats(4, 2)], lambda p, q: as_pairs(as_complex(p) * as_complex(q).conj())),
        ("fftshift", [floats(2, 5)], lambda p: torch.fft.fftshift(p, 1)),
        ("as_strided", [floats(4, 6)], lambda p: p.as_strided((2, 3), (10, 3), 1)), ("as_strided_windows", [floats(4, 6)], lambda p: p.as_strided((5, 4), (3, 2), 2)),
        ("rearrange", [floats(3, 4, 2, 2)], lambda p: p.reshape(3, 2, 2, 2, 2).permute(2, 0, 3, 4, 1).reshape(6, 2, 2, 2)),
        ("ctc_loss", [floats(6, 2, 4), labels], lambda p, q: F.ctc_loss(p.log_softmax(2), q.long(), torch.tensor([6, 4]), torch.tensor([2, 1]))),
    ]


def linear_algebra():
    """Well conditioned; squares of vectors, whose signs are arbitrary."""
    x, tall, wide = floats(2, 3, 3), floats(5, 3), floats(3, 4)
    apart, positive = (x + 3 * torch.eye(3)).float().double(), (x @ x.mT + torch.eye(3)).float().double()
    eye = torch.diag(torch.tensor([3.0, 2, 4, -2])).double()
    four, symmetric = floats(4, 4) * 0.25 + eye, lambda p: (p + p.mT) / 2
    three, two = floats(2, 3, 2), floats(2, 4)
    linalg = torch.linalg
    yield from [
        ("cholesky", [positive], lambda p: linalg.cholesky(symmetric(p))), ("qr_q", [apart], lambda p: linalg.qr(p)[0]), ("qr_r", [wide], lambda p: linalg.qr(p)[1]),
        ("solve", [apart, three], linalg.solve), ("solve_triangular", [four, two], lambda p, q: linalg.solve_triangular(p, q, upper=True, left=False)),
        ("inverse", [apart], linalg.inv), ("det", [four], linalg.det), ("logdet", [positive], torch.logdet), ("slogdet", [four], lambda p: linalg.slogdet(p)[1]),
        ("slogdet_sign", [four], lambda p: linalg.slogdet(p.detach())[0]), ("eigh_values", [positive], lambda p: linalg.eigvalsh(symmetric(p))),
        ("eigh_vectors", [four], lambda p: linalg.eigh(symmetric(p))[1] ** 2), ("svd_values", [wide], linalg.svdvals),
        ("svd_vectors", [tall], lambda p: linalg.svd(p, full_matrices=False)[0] ** 2), ("lstsq", [tall, floats(5, 2)], lambda p, q: linalg.pinv(p) @ q),
        ("pinverse", [wide], linalg.pinv), ("matrix_power", [x], lambda p: torch.matrix_power(p, 3)), ("newton_schulz", [tall], newton_schulz),
    ]


def newton_schulz(x):
    x = x.mT / x.norm()
    for _ in range(3):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.mT


def digits(values):
    """Nine digits; what JSON has no number for as a word, -0 included (a reader may take it for an integer)."""
    words = {"nan": "nan", "inf": "inf", "-inf": "-inf", "-0": "-0"}
    return [words.get(f"{v:.9g}", float(f"{v:.9g}")) for v in values]


def plain(t):
    names = {torch.int64: "i64", torch.float64: "f32", torch.float32: "f32", torch.int32: "i32", torch.bool: "bool"}
    values = t.detach().flatten().tolist()
    return {"shape": list(t.shape), "dtype": names[t.dtype], "values": digits(values) if t.is_floating_point() else [int(v) for v in values]}


def row(name, inputs, function):
    leaves = [t.clone().requires_grad_() if t.is_floating_point() else t for t in inputs]
    out = function(*leaves)
    entry = {"name": name, "inputs": [plain(t) for t in inputs], "out": plain(out)}
    if out.requires_grad:
        weight = (torch.arange(out.numel()) % 7 + 1).double().reshape(out.shape) / 8
        (out * weight).sum().backward()
        entry["grads"] = [digits(t.grad.flatten().tolist()) if t.is_floating_point() and t.grad is not None else None for t in leaves]
    return entry


def schedules():
    """Learning rates of 12 steps from a base of 0.1."""
    lr = torch.optim.lr_scheduler
    makers = {
        "StepLR": lambda o: lr.StepLR(o, 3, 0.5), "CosineAnnealingLR": lambda o: lr.CosineAnnealingLR(o, 11, 0.01),
        "LinearLR": lambda o: lr.LinearLR(o, 0.25, 1.0, 4), "OneCycleLR": lambda o: lr.OneCycleLR(o, 0.4, 12),
        "LambdaLR": lambda o: lr.LambdaLR(o, lambda step: 1 / (1 + step)),
    }
    rates = {}
    for name, make in makers.items():
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
        scheduler = make(optimizer)
        rates[name] = []
        for _ in range(12):
            rates[name].append(float(f"{optimizer.param_groups[0]['lr']:.12g}"))
            optimizer.step()
            if len(rates[name]) < 12:
                scheduler.step()
    return rates


def padded_sequences(flat):
    """An LSTM both ways over sequences of 4, 1 and 3 steps, and the gradients of sums of squares."""
    lstm, x = torch.nn.LSTM(3, 2, bidirectional=True).double(), floats(4, 3, 3).requires_grad_()
    with torch.no_grad():
        for p in lstm.parameters():
            p.copy_(floats(*p.shape, low=-0.7, high=0.7))
    rnn = torch.nn.utils.rnn
    y, (h, c) = lstm(rnn.pack_padded_sequence(x, [4, 1, 3], enforce_sorted=False))
    y = rnn.pad_packed_sequence(y, total_length=4)[0]
    (y.square().sum() + h.square().sum() + c.sum()).backward()
    return {"state": {n: flat(p) for n, p in lstm.state_dict().items()}, "in": flat(x), "out": flat(y), "h": flat(h), "c": flat(c),
            "grad": flat(x.grad), "grads": {n: flat(p.grad) for n, p in lstm.named_parameters()}}


def layers():
    """A layer's state, its input and its output, flat: what tests/nn compares with."""
    attention = torch.nn.MultiheadAttention(6, 2, batch_first=True).double()
    with torch.no_grad():
        for p in attention.parameters():
            p.copy_(floats(*p.shape, low=-0.5, high=0.5))
    x = floats(2, 4, 6)
    causal = ~torch.ones(4, 4).tril().bool()
    norm, batches = torch.nn.BatchNorm2d(3).double(), [floats(2, 3, 2, 2) for _ in range(3)]
    outs = [norm(b) for b in batches]
    flat = lambda t: digits(t.detach().flatten().tolist())
    with torch.random.fork_rng():
        torch.manual_seed(5)
        padded = padded_sequences(flat)
    return {
        "padded": padded,
        "attention": {"state": {n: flat(p) for n, p in attention.state_dict().items()}, "in": flat(x), "out": flat(attention(x, x, x)[0]), "causal": flat(attention(x, x, x, attn_mask=causal)[0])},
        "batchnorm": {"in": [flat(b) for b in batches], "out": [flat(o) for o in outs], "mean": flat(norm.running_mean), "var": flat(norm.running_var), "eval": flat(norm.eval()(batches[0]))},
    }


def later_attention():
    """Long enough that scores stay in workgroup memory, some slabs of a row after the other."""
    q, k, v, short = floats(1, 40, 8), floats(1, 40, 8), floats(1, 40, 8), floats(1, 37, 8)
    return [
        ("attention_rows", [q, k, v], lambda q, k, v: (q @ k.mT / math.sqrt(8)).softmax(-1) @ v),
        ("attention_rows_causal", [short], lambda x: (x @ x.mT / math.sqrt(8)).masked_fill(~torch.ones(37, 37).tril().bool(), -math.inf).softmax(-1) @ x),
    ]


def later_scatter():
    """Indexes of `put` name no element twice, those of `sums` do."""
    x, rows, wide = floats(4, 5), floats(3, 5), floats(7, 5)
    put = torch.stack([torch.randperm(4)[:3] for _ in range(5)], 1).int()
    along = torch.stack([torch.randperm(5)[:3] for _ in range(4)]).int()
    sums, few = ints(7, 5, high=4), ints(2, 3, high=4)
    mask = bools(4, 5)
    yield from [
        ("scatter", [x, put, rows], lambda p, i, q: p.scatter(0, i.long(), q)),
        ("scatter_along", [x, along, floats(4, 3)], lambda p, i, q: p.scatter(1, i.long(), q)),
        ("scatter_value", [x, put], lambda p, i: p.scatter(0, i.long(), 2.5)),
        ("scatter_multiply", [x, sums, wide], lambda p, i, q: p.detach().scatter(0, i.long(), q.detach(), reduce="multiply")),
        ("scatter_add", [x, sums, wide], lambda p, i, q: p.scatter_add(0, i.long(), q)),
        ("scatter_add_few", [x, few, wide], lambda p, i, q: p.scatter_add(0, i.long(), q.detach())),
    ]
    for reduce in ("sum", "prod", "mean", "amax", "amin"):
        for own in (True, False):
            yield (f"scatter_reduce_{reduce}" + ("" if own else "_others"), [x, sums, wide],
                   lambda p, i, q, r=reduce, o=own: p.scatter_reduce(0, i.long(), q, r, include_self=o))
    yield from [
        ("index_add", [x, ints(3, high=4), rows], lambda p, i, q: p.index_add(0, i.long(), q, alpha=2)),
        ("index_add_along", [x, ints(3, high=5), floats(4, 3)], lambda p, i, q: p.index_add(1, i.long(), q)),
        ("index_copy", [x, torch.tensor([2, 0, 3], dtype=torch.int32), rows], lambda p, i, q: p.index_copy(0, i.long(), q)),
        ("index_fill", [x, torch.tensor([3, 1], dtype=torch.int32)], lambda p, i: p.index_fill(1, i.long(), -1.5)),
        ("index_reduce", [x, ints(6, high=4), floats(6, 5)], lambda p, i, q: p.detach().index_reduce(0, i.long(), q.detach(), "amax", include_self=False)),
        ("put", [x, torch.tensor([19, -20, 7], dtype=torch.int32), floats(3)], lambda p, i, q: p.put(i.long(), q)),
        ("put_accumulate", [x, ints(3, 3, low=-20, high=20), floats(3, 3)], lambda p, i, q: p.put(i.long(), q, accumulate=True)),
        ("index_put_accumulate", [x, ints(6, low=-4, high=4), floats(6, 5)], lambda p, i, q: p.index_put((i.long(),), q, accumulate=True)),
        ("masked_scatter", [x, mask, floats(21)], lambda p, m, q: p.masked_scatter(m, q)),
        ("take_along_dim", [x, ints(3, 1, high=4)], lambda p, i: p.take_along_dim(i.long(), 0)),
        ("embedding_many", [floats(64, 4), ints(20, 15, high=64)], lambda w, i: F.embedding(i.long(), w)),
    ]


def recurrence(h, x, w):
    states = []
    for row in x:
        h = (h @ w + row).tanh()
        states.append(h)
    return states


def of_users():
    """With gradients of their own; and computed again."""
    yield from [
        ("function_rounded", [floats(3, 5)], lambda p: (p + (p.round() - p).detach()) * p),
        ("checkpoint", [floats(3, 4), floats(4, 4)], lambda p, w: ((p @ w).tanh() @ w).tanh()),
        ("scan", [floats(2, 3), floats(4, 2, 3), floats(3, 3)], lambda h, x, w: torch.stack(recurrence(h, x, w))),
        ("scan_reverse", [floats(2, 3), floats(4, 2, 3), floats(3, 3)], lambda h, x, w: recurrence(h, x.flip(0), w)[-1]),
    ]


def of_halves_of_bytes():
    """Numbers of 4 bits, two in a byte, the first in the low half."""
    def halves(p):
        return torch.stack([p & 15, p >> 4], -1).flatten(-2)

    def linear(x, p, scales, zeros):
        return x @ ((halves(p).reshape(4, 4, 8) - zeros.unsqueeze(-1)) * scales.unsqueeze(-1)).flatten(1).mT
    packed = ints(4, 16, high=256)
    yield from [
        ("pack_int4", [ints(3, 10, low=-8, high=8)], lambda p: (p[:, ::2] & 15) | ((p[:, 1::2] & 15) << 4)),
        ("unpack_int4", [packed], lambda p: (halves(p) ^ 8) - 8),
        ("linear_int4", [floats(9, 32), packed, floats(4, 4, low=0.1, high=1)], lambda x, p, s: linear(x, p, s, torch.tensor([[8]]))),
        ("linear_int4_vector", [floats(32), packed, floats(4, 4, low=0.1, high=1), ints(4, 4, high=16)], linear),
    ]


def of_any_rank():
    """Singular matrices, by small whole numbers; the Bessel function of windows."""
    halved = torch.tensor([[[1.0, 2], [2, 4]], [[3, 1], [1, 2]]]).double()
    tall = ints(5, 2, low=-3, high=4).double() @ torch.tensor([[1.0, 0, 2], [0, 1, -1]]).double()
    yield from [
        ("i0", [floats(3, 5, low=-6, high=6)], torch.special.i0),
        ("kaiser_window", [], lambda: torch.kaiser_window(9, periodic=False, beta=8.6, dtype=torch.float64)),
        # By its terms: the gradient of PyTorch's det() is 0 there.
        ("det_singular", [halved], lambda p: p[:, 0, 0] * p[:, 1, 1] - p[:, 0, 1] * p[:, 1, 0]),
        ("lstsq_any_rank", [tall, floats(5, 2)], lambda p, q: torch.linalg.pinv(p, rtol=1e-4) @ q),
    ]


def more_math():
    """Functions of numbers, and special ones. What PyTorch has no gradient of is written out."""
    x, y, away, positive = floats(3, 5, low=-3, high=3), floats(3, 5, low=-3, high=3), floats(3, 5, low=0.5, high=3), floats(3, 5, low=0.2, high=6)
    a, b = ints(3, 5, low=-60, high=60), ints(3, 5, low=-60, high=60)
    odd, other = torch.tensor([math.nan, math.inf, -math.inf, 0.0, -0.0, 1, -1, 2, 0.5]), torch.tensor([1.0, math.nan, 0, 3, 4, 1, -3, math.inf, math.nan])
    special = torch.special
    yield from [
        ("addcmul", [x, y, away], lambda p, q, r: torch.addcmul(p, q, r, value=2)), ("addcdiv", [x, y, away], lambda p, q, r: torch.addcdiv(p, q, r, value=2)),
        ("gcd", [a, b], torch.gcd), ("lcm", [a, b], torch.lcm), ("isposinf", [odd], torch.isposinf), ("logaddexp2", [x, y], torch.logaddexp2),
        ("frexp_mantissa", [x], lambda p: torch.frexp(p)[0]), ("frexp_exponent", [x], lambda p: torch.frexp(p.detach())[1]),
        ("nextafter", [odd, other], lambda p, q: torch.nextafter(p.detach(), q.detach())),
        ("fmax", [x, y], torch.fmax), ("fmin", [x, y], torch.fmin), ("heaviside", [odd, other], lambda p, q: torch.heaviside(p.detach(), q.detach())),
        ("polygamma", [positive], lambda p: torch.polygamma(2, p)), ("trigamma", [floats(3, 5, low=-2.4, high=6)], lambda p: torch.polygamma(1, p)),
        ("mvlgamma", [positive + 1], lambda p: torch.mvlgamma(p, 2)), ("entr", [positive], special.entr), ("erfcx", [x], special.erfcx), ("ndtr", [x], special.ndtr),
        ("log_ndtr", [floats(3, 5, low=-9, high=5)], special.log_ndtr), ("ndtri", [floats(3, 5, low=0.01, high=0.99)], special.ndtri), ("xlog1py", [x, positive], special.xlog1py),
        ("zeta", [positive + 1.1, positive], lambda p, q: special.zeta(p.detach(), q)), ("i0e", [x * 4], special.i0e), ("i1", [x], special.i1), ("i1e", [x * 4], special.i1e),
        ("spherical_bessel_j0", [x], lambda p: torch.sin(p) / p), ("chebyshev_polynomial_t", [x], lambda p: 8 * p**4 - 8 * p**2 + 1),
        ("legendre_polynomial_p", [x], lambda p: (5 * p**3 - 3 * p) / 2),
    ]


def more_parts():
    """Parts put in, choices, products, statistics."""
    cube, m, row, v = floats(2, 3, 4), floats(3, 5), floats(5), floats(3)
    some = torch.where(bools(3, 5), m, torch.full_like(m, math.nan))
    yield from [
        ("diff", [m], torch.diff), ("block_diag", [m, row], torch.block_diag), ("cartesian_prod", [row, v], torch.cartesian_prod),
        ("combinations", [row], lambda p: torch.combinations(p, 3, True)), ("select_scatter", [cube, floats(2, 4)], lambda p, q: torch.select_scatter(p, q, 1, -2)),
        ("slice_scatter", [cube, floats(2, 3, 2)], lambda p, q: torch.slice_scatter(p, q, 2, 1, 4, 2)),
        ("diagonal_scatter", [m, floats(2)], lambda p, q: torch.diagonal_scatter(p, q, -1)),
        # By its places: the gradient of PyTorch 1.13 is of memory that nothing was written to.
        ("as_strided_scatter", [m, floats(2, 3)], lambda p, q: p.reshape(-1).index_copy(0, torch.tensor([2, 3, 4, 7, 8, 9]), q.reshape(-1)).reshape(3, 5)),
        ("isin", [ints(3, 5), ints(4)], torch.isin), ("inner", [m, floats(2, 5)], torch.inner), ("tensordot", [cube, floats(3, 4, 2)], torch.tensordot),
        ("vander", [row], lambda p: torch.stack([p**3, p**2, p, torch.ones_like(p)], 1)), ("addmv", [v, m, row], lambda p, q, r: torch.addmv(p, q, r, beta=2, alpha=3)),
        ("addr", [m, v, row], lambda p, q, r: torch.addr(p, q, r, beta=2, alpha=3)), ("addbmm", [m, floats(2, 3, 4), floats(2, 4, 5)], torch.addbmm),
        ("nansum", [some], lambda p: torch.nansum(p, 1)), ("nanmean", [some], lambda p: torch.nanmean(p, 1)), ("sum_to_size", [cube], lambda p: p.sum_to_size(3, 1)),
        ("pdist", [m], F.pdist), ("pairwise_distance", [m, floats(3, 5)], F.pairwise_distance), ("renorm", [m], lambda p: torch.renorm(p, 2, 0, 1.5)),
        ("trapezoid", [m, row], lambda p, q: torch.trapezoid(p, q, dim=1)), ("cumulative_trapezoid", [m], lambda p: torch.cumulative_trapezoid(p, dx=0.5, dim=0)),
    ]


def more_linalg():
    """Factors of well conditioned matrices."""
    four = floats(4, 4) * 0.25 + torch.diag(torch.tensor([3.0, 2, 4, -2])).double()
    triangle = floats(3, 3) * 0.25 + 2 * torch.eye(3).double()
    linalg = torch.linalg
    yield from [
        ("lu_lower", [four], lambda p: linalg.lu(p)[1]), ("lu_upper", [four], lambda p: linalg.lu(p)[2]),
        ("lu_pivots", [floats(5, 5)], lambda p: linalg.lu_factor(p.detach())[1]), ("cholesky_solve", [triangle, floats(3, 2)], lambda p, q: torch.cholesky_solve(q, p.tril())),
        ("matrix_exp", [floats(2, 3, 3)], linalg.matrix_exp), ("householder_product", [floats(4, 3) * 0.5, floats(3)], linalg.householder_product),
    ]


GROUPS = (elementwise, movement, reductions, networks, creation, more_movement, indexing, more_elementwise, special, more_reductions, einsums, more_networks)
# Drawn after all else, so that the operands of the groups above are what they were.
def attention_heads():
    """As many heads as a CPU's threads have rows of in fast memory."""
    causal = ~torch.ones(32, 32).tril().bool()
    return [("attention_rows_heads", [floats(8, 32, 8)],
             lambda x: (x @ x.mT / math.sqrt(8)).masked_fill(causal, -math.inf).softmax(-1) @ x)]


LATER = (later_elementwise, later_activations, later_products, later_movement, later_reductions, later_losses, later_attention, window_convolutions, window_pools, window_sampling, later_scatter, sorting, running, transforms, linear_algebra, of_users, of_halves_of_bytes, of_any_rank, more_math, more_parts, more_linalg, attention_heads)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="tests/data/tensor_values.json")
    out = parser.parse_args().out
    rows = [row(*case) for group in GROUPS for case in group()]
    rest = json.dumps(schedules()), json.dumps(layers())
    rows += [row(*case) for group in LATER for case in group()]
    with open(out, "w", encoding="utf-8") as file:
        file.write('{"torch":"%s","cases":[\n' % torch.__version__)
        file.write(",\n".join(json.dumps(r, separators=(",", ":"), allow_nan=False) for r in rows))
        file.write('\n],\n"schedules":%s,\n"layers":%s}\n' % rest)


if __name__ == "__main__":
    main()
