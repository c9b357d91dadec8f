#!/usr/bin/env python3
"""Scaled-dot-product attention beside PyTorch's own on the CPU, forwards and with gradients.

Usage: bench/attention.py [--module FOLDER] [--peer-python PYTHON] [--threads 2] [--rounds 5] [--only NAME ...] [--json FILE]
Each row is one batch of heads in f32. With gradients the result is multiplied by a given one, as training does. A row shows
the medians of all rounds in ms, how many times as long as PyTorch tuff takes, and the longest first step, which compiles.
With --check the program fails where tuff takes longer. FOLDER holds the module tuff (default: build/python), PYTHON an
interpreter with PyTorch 2 (default: this one).
"""
import sys

from peers import turns

# name: heads, positions, width, causal, gradients too
SIZES = [(16, 64, 64), (8, 256, 64), (4, 1024, 64), (4, 2048, 64), (4, 4096, 64), (2, 8192, 64), (4, 2048, 128)]
ROWS = {f"{heads} x {positions} x {width}{', causal' * causal}{', gradients' * gradients}":
        (heads, positions, width, causal, gradients)
        for gradients in (False, True) for heads, positions, width in SIZES for causal in (False, True)}


def operands(row):
    import numpy as np
    heads, positions, width, _, gradients = row
    random = np.random.default_rng(1)
    return [random.standard_normal((1, heads, positions, width)).astype(np.float32) for _ in range(3 + gradients)]


def torch_step(row, threads):
    import torch
    torch.set_num_threads(threads)
    causal, gradients = row[3:]
    q, k, v, *given = (torch.from_numpy(a) for a in operands(row))
    for x in (q, k, v):
        x.requires_grad = gradients

    def step():
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        if gradients:
            torch.autograd.grad(y, (q, k, v), given[0])
    return step


def tuff_step(row, module):
    sys.path.insert(0, module)
    import tuff
    causal, gradients = row[3:]
    q, k, v, *given = (tuff.tensor(a).realize() for a in operands(row))
    for x in (q, k, v):
        x.requires_grad = gradients

    @tuff.jit
    def attention(q, k, v, *given):
        y = tuff.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        if not gradients:
            return y
        for x in (q, k, v):
            x.grad = None
        (y * given[0]).sum().backward()
        return y, q.grad, k.grad, v.grad

    def step():
        attention(q, k, v, *given)
        tuff.synchronize()
    return step


if __name__ == "__main__":
    turns.run(__doc__, ROWS, tuff_step, torch_step, {name: 1.0 for name in ROWS})
