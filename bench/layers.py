#!/usr/bin/env python3
"""Layers of convolutional networks, forwards and backwards, beside PyTorch on the CPU.

Usage: bench/layers.py [--module FOLDER] [--peer-python PYTHON] [--threads 2] [--rounds 5] [--only NAME ...] [--json FILE]
Each row is one layer (or one whole training step) with its gradients, as ResNets, MobileNets and U-Nets have them. Both
sides do the same work in a process of their own, in turns; a row shows the medians of all rounds and how many times as fast
tuff is: above 1 tuff is faster. PyTorch runs eagerly, and with --compile also by torch.compile; the faster one counts.
FOLDER holds the module tuff (default: build/python), PYTHON an interpreter with PyTorch (default: this one).
"""
import argparse
import json
import os
import statistics
import sys
import time

from peers import turns

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH = 64

# name: kind, input channels, output channels, extent of the image, kernel, stride, groups
LAYERS = {
    "conv3x3 3>16 32": ("conv", 3, 16, 32, 3, 1, 1),
    "conv3x3 16>16 32": ("conv", 16, 16, 32, 3, 1, 1),
    "conv3x3 32>32 16": ("conv", 32, 32, 16, 3, 1, 1),
    "conv3x3 64>64 8": ("conv", 64, 64, 8, 3, 1, 1),
    "conv3x3 64>64 56, batch 8": ("conv", 64, 64, 56, 3, 1, 1, 8),
    "conv3x3/2 16>32 32": ("conv", 16, 32, 32, 3, 2, 1),
    "conv3x3/2 32>64 16": ("conv", 32, 64, 16, 3, 2, 1),
    "conv1x1 32>64 32": ("conv", 32, 64, 32, 1, 1, 1),
    "conv1x1 64>128 16": ("conv", 64, 128, 16, 1, 1, 1),
    "conv1x1/2 16>32 32": ("conv", 16, 32, 32, 1, 2, 1),
    "depthwise3x3 32 32": ("conv", 32, 32, 32, 3, 1, 32),
    "depthwise3x3 64 16": ("conv", 64, 64, 16, 3, 1, 64),
    "depthwise3x3/2 32 32": ("conv", 32, 32, 32, 3, 2, 32),
    "batch norm, ReLU 16 32": ("batchnorm", 16, 16, 32, 0, 0, 0),
    "batch norm, ReLU 64 8": ("batchnorm", 64, 64, 8, 0, 0, 0),
    "group norm 32 32": ("groupnorm", 32, 32, 32, 0, 0, 8),
    "conv, batch norm, ReLU 16 32": ("block", 16, 16, 32, 3, 1, 1),
    "upsample 32 16": ("upsample", 32, 32, 16, 0, 0, 0),
    "upsample, conv3x3 32>32 16": ("upconv", 32, 32, 16, 3, 1, 1),
    "ResNet step": ("resnet", 3, 10, 32, 3, 1, 1),
    "depthwise net step": ("mobile", 3, 10, 32, 3, 1, 1),
}


def weights_of(kind, inner, outer, kernel, groups):
    """Shapes of a layer's weights."""
    if kind in ("conv", "upconv"):
        return [(outer, inner // groups, kernel, kernel)]
    if kind == "block":
        return [(outer, inner, kernel, kernel), (outer,), (outer,)]
    if kind in ("batchnorm", "groupnorm"):
        return [(inner,), (inner,)]
    if kind == "upsample":
        return []
    shapes = [(16, 3, 3, 3), (16,), (16,)]
    if kind == "resnet":
        for a, b in ((16, 16), (16, 32), (32, 64)):
            shapes += [(b, a, 3, 3), (b,), (b,), (b, b, 3, 3), (b,), (b,)] + ([(b, a, 1, 1)] if a != b else [])
        return shapes + [(64, 10)]
    for a, b in ((16, 32), (32, 64), (64, 64)):
        shapes += [(a, 1, 3, 3), (a,), (a,), (b, a, 1, 1), (b,), (b,)]
    return shapes + [(64, 10)]


class Ops:
    """The functions in which the two libraries differ; the layers are written once, with them."""

    def __init__(self, library):
        self.library = library
        self.torch = library.__name__ == "torch"

    def conv(self, x, w, stride=1, groups=1):
        padding = w.shape[-1] // 2
        if self.torch:
            return self.library.nn.functional.conv2d(x, w, None, stride, padding, 1, groups)
        return x.conv2d(w, None, stride, padding, 1, groups)

    def batchnorm(self, x, w, b, means):
        if self.torch:
            return self.library.nn.functional.batch_norm(x, means[0], means[1], w, b, True)
        return x.batchnorm(means[0], means[1], w, b, True)

    def groupnorm(self, x, groups, w, b):
        if self.torch:
            return self.library.nn.functional.group_norm(x, groups, w, b)
        n, c, h, v = x.shape
        y = x.reshape(n, groups, -1)
        centred = y - y.mean(-1, True)
        y = centred * ((centred * centred).mean(-1, True) + 1e-5).rsqrt()
        return y.reshape(n, c, h, v) * w.reshape(1, c, 1, 1) + b.reshape(1, c, 1, 1)

    def upsample(self, x):
        if self.torch:
            return self.library.nn.functional.interpolate(x, scale_factor=2, mode="nearest")
        n, c, h, w = x.shape
        return x.reshape(n, c, h, 1, w, 1).expand(n, c, h, 2, w, 2).reshape(n, c, 2 * h, 2 * w)


def resnet(ops, x, ws, means):
    ws, means = iter(ws), iter(means)
    norm = lambda t: ops.batchnorm(t, next(ws), next(ws), next(means))
    x = norm(ops.conv(x, next(ws))).relu()
    for a, b in ((16, 16), (16, 32), (32, 64)):
        stride = b // a
        y = norm(ops.conv(x, next(ws), stride)).relu()
        y = norm(ops.conv(y, next(ws)))
        x = (y + (x if a == b else ops.conv(x, next(ws), stride))).relu()
    return x.mean((2, 3)) @ next(ws)


def mobile(ops, x, ws):
    ws = iter(ws)
    x = ops.groupnorm(ops.conv(x, next(ws), 2), 4, next(ws), next(ws)).relu()
    for index, (a, b) in enumerate(((16, 32), (32, 64), (64, 64))):
        x = ops.groupnorm(ops.conv(x, next(ws), 2 if index == 1 else 1, a), 4, next(ws), next(ws)).relu()
        x = ops.groupnorm(ops.conv(x, next(ws)), 4, next(ws), next(ws)).relu()
        if index == 1:
            x = ops.upsample(x)
    return x.mean((2, 3)) @ next(ws)


def forward(ops, layer, x, ws, means):
    kind, inner, outer, _, _, stride, groups = layer[:7]
    if kind == "conv":
        return ops.conv(x, ws[0], stride, groups)
    if kind == "block":
        return ops.batchnorm(ops.conv(x, ws[0]), ws[1], ws[2], means[0]).relu()
    if kind == "batchnorm":
        return ops.batchnorm(x, ws[0], ws[1], means[0]).relu()
    if kind == "groupnorm":
        return ops.groupnorm(x, groups, ws[0], ws[1])
    if kind == "upsample":
        return ops.upsample(x)
    if kind == "upconv":
        return ops.conv(ops.upsample(x), ws[0])
    return resnet(ops, x, ws, means) if kind == "resnet" else mobile(ops, x, ws)


def inputs(layer):
    """NumPy arrays: image, weights, running means and variances, and the gradient of the result (None: the loss is the
    mean of squares)."""
    import numpy as np
    random = np.random.default_rng(1)
    kind, inner, outer, extent, kernel, stride, groups = layer[:7]
    batch = layer[7] if len(layer) > 7 else BATCH
    made = lambda *shape: random.uniform(-1, 1, shape).astype(np.float32)
    ws = [made(*shape) if len(shape) > 1 else random.uniform(0.5, 1, shape).astype(np.float32)
          for shape in weights_of(kind, inner, outer, kernel, groups)]
    if kind in ("resnet", "mobile"):
        ws = [w / np.float32(max(1, np.sqrt(w[0].size))) if w.ndim > 1 else w for w in ws]
    norms = [16, 16, 16, 32, 32, 64, 64] if kind == "resnet" else [outer]
    means = [(np.zeros(n, np.float32), np.ones(n, np.float32)) for n in norms]
    return made(batch, inner, extent, extent), ws, means


def torch_step(layer, compiled, threads):
    import torch
    torch.set_num_threads(threads)
    image, ws, means = inputs(layer)
    whole = layer[0] in ("resnet", "mobile")
    ops = Ops(torch)
    x = torch.from_numpy(image).requires_grad_(not whole)
    ws = [torch.from_numpy(w).requires_grad_() for w in ws]
    means = [tuple(torch.from_numpy(m) for m in pair) for pair in means]
    leaves = ws if whole else [x, *ws]
    run = lambda image: forward(ops, layer, image, ws, means)
    run = torch.compile(run) if compiled else run
    gradient = torch.from_numpy(inputs(layer)[0].ravel()[:1].repeat(run(x).numel())).reshape(run(x).shape)
    optimizer = torch.optim.SGD(ws, lr=1e-3, momentum=0.9) if whole else None

    def step():
        y = run(x)
        for leaf in leaves:
            leaf.grad = None
        if whole:
            (y * y).mean().backward()
            optimizer.step()
        else:
            y.backward(gradient)
    return step


def tuff_step(layer, module):
    sys.path.insert(0, module)
    import tuff
    image, ws, means = inputs(layer)
    whole = layer[0] in ("resnet", "mobile")
    ops = Ops(tuff)
    x = tuff.tensor(image)
    ws = [tuff.tensor(w) for w in ws]
    for w in ws:
        w.requires_grad = True
    means = [tuple(tuff.tensor(m) for m in pair) for pair in means]
    if whole:
        optimizer = tuff.optim.SGD(ws, lr=1e-3, momentum=0.9)

        @tuff.jit
        def train(image):
            optimizer.zero_grad()
            y = forward(ops, layer, image, ws, means)
            loss = (y * y).mean()
            loss.backward()
            optimizer.step()
            return loss
        return lambda: train(x).item()

    gradient = tuff.full(forward(ops, layer, x, ws, means).shape, float(image.ravel()[0])).realize()

    @tuff.jit
    def run(image, gradient):
        image = image.detach()
        image.requires_grad = True
        y = forward(ops, layer, image, ws, means)
        return [y, *y.gradient([image, *ws], gradient)]

    def step():
        run(x, gradient)
        tuff.synchronize()
    return step


def child(arguments):
    layer = LAYERS[arguments.only[0]]
    if arguments.side == "tuff":
        step = tuff_step(layer, arguments.module)
    else:
        step = torch_step(layer, arguments.side == "compiled", arguments.threads)
    for _ in range(5):
        step()
    times, end = [], time.perf_counter() + arguments.seconds
    clock = time.process_time if arguments.cpu_time else time.perf_counter
    while time.perf_counter() < end or len(times) < 5:
        begin = clock()
        step()
        times.append((clock() - begin) * 1e3)
    print(json.dumps(times))


def measure(name, side, arguments):
    return turns.measure(name, side, arguments,
                         ["--seconds", str(arguments.seconds)] + ["--cpu-time"] * arguments.cpu_time)


def row(name, arguments):
    sides = ["tuff", "eager"] + (["compiled"] if arguments.compile else [])
    times = {side: [] for side in sides}
    for _ in range(arguments.rounds):
        for side in sides:
            times[side].append(statistics.median(measure(name, side, arguments)))
    medians = {side: statistics.median(values) for side, values in times.items()}
    peer = min(value for side, value in medians.items() if side != "tuff")
    ratios = [min(times[s][i] for s in sides[1:]) / times["tuff"][i] for i in range(arguments.rounds)]
    return {"layer": name, "tuff_ms": medians["tuff"], "pytorch_ms": peer, "ratio": statistics.median(ratios),
            "ratios": sorted(ratios), "threads": arguments.threads}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default=os.path.join(HERE, "..", "build", "python"))
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--only", nargs="+", default=list(LAYERS), help="names of rows: " + "; ".join(LAYERS))
    parser.add_argument("--cpu-time", action="store_true",
                        help="CPU time of all threads instead of wall time: with --threads 1 on a busy machine")
    parser.add_argument("--compile", action="store_true", help="also by torch.compile")
    parser.add_argument("--json", help="append a line for each row to this file")
    parser.add_argument("--side", choices=("tuff", "eager", "compiled"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    for name in arguments.only:
        if name not in LAYERS:
            parser.error(f"'{name}' is none of: {'; '.join(LAYERS)}")
    if arguments.side:
        return child(arguments)
    print(f"{'layer, batch ' + str(BATCH):32} {'tuff ms':>9} {'PyTorch ms':>11} {'tuff is':>8}")
    for name in arguments.only:
        result = row(name, arguments)
        print(f"{name:32} {result['tuff_ms']:9.3f} {result['pytorch_ms']:11.3f} {result['ratio']:8.2f}", flush=True)
        if arguments.json:
            with open(arguments.json, "a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
