#!/usr/bin/python3
"""Writes tests/data/tensor_values.json: tensor functions and their gradients as PyTorch computes them.

Usage: tensor-values.py [--out tests/data/tensor_values.json]

Each row names a case that src/check/functions.cpp computes with tuff. Inputs are float32 values; PyTorch
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
        ("sum_keepdim", [x], lambda v: v.sum(1, keepdim=True)), ("sum_int", [a], lambda v: v.sum(1, dtype=torch.int32)),
        ("sum_bool", [bools(4, 6)], lambda v: v.sum(0, dtype=torch.int32)), ("min_int", [a], lambda v: v.amin(2)),
        ("prod", [p], lambda v: v.prod(1)), ("stdev", [x], lambda v: v.std(2)), ("var_biased", [x], lambda v: v.var(2, unbiased=False)),
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


def digits(values):
    return [float(f"{v:.9g}") for v in values]


def plain(t):
    names = {torch.float64: "f32", torch.float32: "f32", torch.int32: "i32", torch.bool: "bool"}
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="tests/data/tensor_values.json")
    out = parser.parse_args().out
    rows = [row(*case) for group in (elementwise, movement, reductions, networks) for case in group()]
    with open(out, "w", encoding="utf-8") as file:
        file.write('{"torch":"%s","cases":[\n' % torch.__version__)
        file.write(",\n".join(json.dumps(r, separators=(",", ":"), allow_nan=False) for r in rows))
        file.write("\n]}\n")


if __name__ == "__main__":
    main()
