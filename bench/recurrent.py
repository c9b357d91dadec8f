#!/usr/bin/env python3
"""Training steps of recurrent layers beside PyTorch on the CPU.

Usage: bench/recurrent.py [--module FOLDER] [--peer-python PYTHON] [--threads 2] [--rounds 5] [--only NAME ...] [--json FILE]
Each row is a layer's outputs, the mean square of their distance from given ones, all gradients and a step of SGD. A row shows
the medians of all rounds in ms, how many times as long as PyTorch tuff takes, and the longest first step, which compiles.
With --check the program fails where tuff takes longer. FOLDER holds the module tuff (default: build/python), PYTHON an
interpreter with PyTorch (default: this one).
"""
import sys

from peers import turns

# name: layer, steps, batch, inputs, hidden, layers, both directions
ROWS = {
    "LSTM 512 x 32 x 64 > 128": ("LSTM", 512, 32, 64, 128, 1, False),
    "LSTM 512 x 1 x 64 > 128": ("LSTM", 512, 1, 64, 128, 1, False),
    "LSTM 128 x 64 x 256 > 512": ("LSTM", 128, 64, 256, 512, 1, False),
    "LSTM 64 x 16 x 64 > 128, 2 layers, both ways": ("LSTM", 64, 16, 64, 128, 2, True),
    "GRU 256 x 32 x 128 > 256": ("GRU", 256, 32, 128, 256, 1, False),
    "RNN 512 x 32 x 64 > 128": ("RNN", 512, 32, 64, 128, 1, False),
}


def operands(row):
    import numpy as np
    random = np.random.default_rng(1)
    _, steps, batch, inputs, hidden, _, both = row
    return (random.uniform(-1, 1, (steps, batch, inputs)).astype(np.float32),
            random.uniform(-1, 1, (steps, batch, hidden * (1 + both))).astype(np.float32))


def torch_step(row, threads):
    import torch
    torch.set_num_threads(threads)
    kind, _, _, inputs, hidden, layers, both = row
    layer = getattr(torch.nn, kind)(inputs, hidden, num_layers=layers, bidirectional=both)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)
    x, y = (torch.from_numpy(a) for a in operands(row))

    def step():
        optimizer.zero_grad()
        ((layer(x)[0] - y) ** 2).mean().backward()
        optimizer.step()
    return step


def tuff_step(row, module):
    sys.path.insert(0, module)
    import tuff
    kind, _, _, inputs, hidden, layers, both = row
    layer = getattr(tuff.nn, kind)(inputs, hidden, num_layers=layers, bidirectional=both)
    optimizer = tuff.optim.SGD(list(layer.parameters()), lr=0.01)
    x, y = (tuff.tensor(a).realize() for a in operands(row))

    @tuff.jit
    def train(x, y):
        optimizer.zero_grad()
        loss = ((layer(x)[0] - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    def step():
        train(x, y)
        tuff.synchronize()
    return step


if __name__ == "__main__":
    turns.run(__doc__, ROWS, tuff_step, torch_step, {name: 1.0 for name in ROWS})
