#!/usr/bin/python3
"""A peer of `tuff bench`: the same work in NumPy or PyTorch, timed; prints the milliseconds of every run as JSON.

Usage: peer.py PEER --seconds S BENCH [SHAPE DTYPE TRANSPOSED]; BENCH mlp-step, conv-step, gpt-step: `tuff bench train`
PEER: numpy (with whatever BLAS it has), torch1, torch2 (threads). Called by `tuff bench --peer`, which takes turns with it.
Debian: python3-numpy libopenblas0-pthread python3-torch.
"""
import argparse
import json
import os
import sys
import time

WARM_UP = 3
LEAST_RUNS = 3


def numpy_work(bench, shape, dtype, transposed):
    import numpy as np
    if dtype != "f32":
        sys.exit(f"numpy: {dtype} is not computed with f32 sums")
    random = np.random.default_rng(1)

    def made(*extents):
        return random.uniform(-1, 1, extents).astype(np.float32)

    if bench == "matmul":
        *batch, m, n, k = shape
        a = made(*batch, k, m).swapaxes(-1, -2) if "a" in transposed else made(*batch, m, k)
        b = made(*batch, n, k).swapaxes(-1, -2) if "b" in transposed else made(*batch, k, n)
        out = np.empty((*batch, m, n), np.float32)
        return lambda: np.matmul(a, b, out=out)
    x = made(*shape[:2])
    out = np.empty_like(x)
    if bench == "gemv":
        v, y = made(shape[1]), np.empty(shape[0], np.float32)
        return lambda: np.matmul(x, v, out=y)
    if bench == "elementwise":
        return lambda: np.add(np.multiply(x, 2, out=out), 1, out=out)
    if bench == "broadcast":
        row = made(shape[1])
        return lambda: np.add(x, row, out=out)
    if bench == "reduce":
        return lambda: x.sum()
    if bench == "transpose":
        out = np.empty((shape[1], shape[0]), np.float32)
        return lambda: np.copyto(out, x.T)
    sys.exit(f"numpy: no {bench} here")


def torch_train(torch, bench):
    from torch import nn
    from torch.nn import functional as F
    torch.manual_seed(1)
    if bench == "mlp-step":
        model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        x, y, optimizer = torch.randn(128, 784), torch.randint(10, (128,)), torch.optim.Adam
    elif bench == "conv-step":
        model = nn.Sequential(nn.Conv2d(1, 32, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
                              nn.Flatten(), nn.Linear(1600, 10))
        x, y, optimizer = torch.randn(128, 1, 28, 28), torch.randint(10, (128,)), torch.optim.Adam
    else:
        model = torch_gpt(torch, nn, F)
        x, y, optimizer = torch.randint(65, (16, 64)), torch.randint(65, (16 * 64,)), torch.optim.AdamW
    chosen = optimizer(model.parameters(), lr=1e-3)

    def step():
        chosen.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x).reshape(y.shape[0], -1), y)
        loss.backward()
        chosen.step()
        return loss.item()
    return step


def torch_gpt(torch, nn, F):
    """4 layers, 4 heads, 128 wide, context 64, 65 tokens; GELU by tanh, as tuff's."""
    class Block(nn.Module):
        def __init__(self, width=128, heads=4):
            super().__init__()
            self.heads, self.ln1, self.ln2 = heads, nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
            self.register_buffer("mask", torch.ones(64, 64).tril() == 0)

        def forward(self, x):
            b, t, width = x.shape
            q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            scores = (q @ k.transpose(-1, -2) * (width // self.heads) ** -0.5).masked_fill(self.mask, float("-inf"))
            x = x + self.proj((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, width))
            return x + self.out(F.gelu(self.fc(self.ln2(x)), approximate="tanh"))

    class Gpt(nn.Module):
        def __init__(self, width=128):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(65, width), nn.Embedding(64, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(4)))
            self.lnf, self.head = nn.LayerNorm(width), nn.Linear(width, 65, bias=False)

        def forward(self, tokens):
            return self.head(self.lnf(self.blocks(self.wte(tokens) + self.wpe(torch.arange(64)))))
    return Gpt()


def torch_work(threads, bench, shape, dtype, transposed):
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = str(threads)
    import torch
    from torch.nn import functional as F
    torch.set_num_threads(threads)
    if bench.endswith("-step"):
        return torch_train(torch, bench)
    torch.set_grad_enabled(False)
    kind = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype]

    def made(*extents):
        return (torch.rand(extents) * 2 - 1).to(kind)

    if bench == "matmul":
        *batch, m, n, k = shape
        a = made(*batch, k, m).transpose(-1, -2) if "a" in transposed else made(*batch, m, k)
        b = made(*batch, n, k).transpose(-1, -2) if "b" in transposed else made(*batch, k, n)
        return lambda: a @ b
    if bench == "conv":
        n, c, h, w, o, k = shape
        x, f = made(n, c, h, w), made(o, c, k, k)
        return lambda: F.conv2d(x, f, padding=k // 2)
    if bench == "attention":
        q, k, v = made(*shape), made(*shape), made(*shape)
        return lambda: (q @ k.transpose(-1, -2) * shape[-1] ** -0.5).softmax(-1) @ v
    if bench == "gather":
        table, rows = made(*shape[:2]), torch.randint(shape[0], (shape[2],))
        return lambda: F.embedding(rows, table)
    if bench == "sort":
        x = made(*shape)
        return lambda: torch.sort(x, stable=True)
    if bench == "topk":
        x = made(shape[0])
        return lambda: torch.topk(x, shape[1])
    if bench == "scatter":
        table, rows = made(*shape[:2]), torch.randint(shape[0], (shape[2],))
        source = made(shape[2], shape[1])
        return lambda: table.index_add(0, rows, source)
    x, row = made(*shape), made(shape[-1])
    out = torch.empty_like(x)
    works = {"gemv": lambda: x @ row,
             "elementwise": lambda: torch.add(torch.mul(x, 2, out=out), 1, out=out),
             "broadcast": lambda: torch.add(x, row, out=out),
             "reduce": lambda: x.sum(),
             "softmax": lambda: torch.softmax(x, -1),
             "layernorm": lambda: F.layer_norm(x, shape[-1:], row, row),
             "transpose": lambda: x.t().contiguous()}
    return works[bench]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["numpy", "torch1", "torch2"])
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("bench")
    parser.add_argument("shape", nargs="?", default="")
    parser.add_argument("dtype", nargs="?", default="f32")
    parser.add_argument("transposed", nargs="?", default="")
    o = parser.parse_args()
    shape = [int(n) for n in o.shape.split("x") if n]
    if o.peer == "numpy":
        run = numpy_work(o.bench, shape, o.dtype, o.transposed)
    else:
        run = torch_work(int(o.peer[5:]), o.bench, shape, o.dtype, o.transposed)
    for _ in range(WARM_UP):
        run()
    ms, end = [], time.perf_counter() + o.seconds
    while len(ms) < LEAST_RUNS or time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        ms.append(1e3 * (time.perf_counter() - begin))
    json.dump(ms, sys.stdout)


if __name__ == "__main__":
    main()
