#!/usr/bin/env python3
"""Stores by index beside PyTorch on the CPU.

Usage: bench/scatter.py [--module FOLDER] [--peer-python PYTHON] [--threads 2] [--rounds 5] [--only NAME ...] [--json FILE]
Both sides do the same work in a process of their own, in turns; a row shows the medians of all rounds in ms and how many
times as long as PyTorch tuff takes. Of `scatter_add` 2 is the most that it may be: with --check the program fails above.
FOLDER holds the module tuff (default: build/python), PYTHON an interpreter with PyTorch (default: this one).
"""
import sys

from peers import turns

# name: function, elements (or rows) of the target, of the index, columns
ROWS = {
    "scatter_add 10M into 1M": ("scatter_add", 1_000_000, 10_000_000, 0),
    "scatter_reduce amax 10M into 1M": ("amax", 1_000_000, 10_000_000, 0),
    "index_add 4096 of 50257x768": ("index_add", 50_257, 4096, 768),
    "index_put 4096 of 50257x768": ("index_put", 50_257, 4096, 768),
    "gradient of embedding 4096 of 50257x768": ("embedding", 50_257, 4096, 768),
}
MOST = {"scatter_add 10M into 1M": 2.0}


def operands(row):
    import numpy as np
    random = np.random.default_rng(1)
    _, places, count, columns = row
    shape = lambda n: (n, columns) if columns else (n,)
    return (np.zeros(shape(places), np.float32), random.integers(0, places, count),
            random.uniform(-1, 1, shape(count)).astype(np.float32))


def torch_step(row, threads):
    import torch
    torch.set_num_threads(threads)
    x, index, source = (torch.from_numpy(a) for a in operands(row))
    if row[0] == "embedding":
        x.requires_grad_()

        def step():
            x.grad = None
            torch.nn.functional.embedding(index, x).backward(source)
        return step
    return {"scatter_add": lambda: x.scatter_add(0, index, source),
            "amax": lambda: x.scatter_reduce(0, index, source, "amax"),
            "index_add": lambda: x.index_add_(0, index, source),
            "index_put": lambda: x.index_put_((index,), source)}[row[0]]


def tuff_step(row, module):
    sys.path.insert(0, module)
    import tuff
    x, index, source = (tuff.tensor(a).realize() for a in operands(row))

    def run(x, index, source):
        if row[0] == "embedding":
            w = x.detach()
            w.requires_grad = True
            y = tuff.Tensor.embedding(w, index)
            return [y, *y.gradient([w], source)]
        return [{"scatter_add": lambda: x.scatter_add(0, index, source),
                 "amax": lambda: x.scatter_reduce(0, index, source, "amax"),
                 "index_add": lambda: x.index_add_(0, index, source),
                 "index_put": lambda: x.index_put_((index,), source)}[row[0]]()]

    jitted = tuff.jit(run)

    def step():
        jitted(x, index, source)
        tuff.synchronize()
    return step


if __name__ == "__main__":
    turns.run(__doc__, ROWS, tuff_step, torch_step, MOST)
