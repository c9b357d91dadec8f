#!/usr/bin/env python3
"""Stores by index beside PyTorch on the CPU.

Usage: bench/scatter.py [--module FOLDER] [--peer-python PYTHON] [--threads 2] [--rounds 5] [--only NAME ...] [--json FILE]
Both sides do the same work in a process of their own, in turns; a row shows the medians of all rounds in ms and how many
times as long as PyTorch tuff takes. Of `scatter_add` 2 is the most that it may be: with --check the program fails above.
FOLDER holds the module tuff (default: build/python), PYTHON an interpreter with PyTorch (default: this one).
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

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


def child(arguments):
    row = ROWS[arguments.only[0]]
    step = tuff_step(row, arguments.module) if arguments.side == "tuff" else torch_step(row, arguments.threads)
    for _ in range(3):
        step()
    times = []
    for _ in range(7):
        begin = time.perf_counter()
        step()
        times.append((time.perf_counter() - begin) * 1e3)
    print(json.dumps(statistics.median(times)))


def measure(name, side, arguments):
    python = sys.executable if side == "tuff" else arguments.peer_python
    command = [python, os.path.abspath(__file__), "--side", side, "--only", name, "--module", arguments.module,
               "--threads", str(arguments.threads)]
    environment = {**os.environ, "TUFF_DEVICE": "CPU", "TUFF_THREADS": str(arguments.threads)}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if result.returncode:
        sys.exit(f"{name}, {side}: {result.stderr}")
    return json.loads(result.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", default="build/python")
    parser.add_argument("--peer-python", default=sys.executable)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--json")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        return child(arguments)
    failed, lines = [], []
    print(f"{'':42}{'tuff':>10}{'PyTorch':>10}{'ratio':>8}")
    for name in arguments.only:
        ours, theirs = [], []
        for _ in range(arguments.rounds):
            ours.append(measure(name, "tuff", arguments))
            theirs.append(measure(name, "torch", arguments))
        a, b = statistics.median(ours), statistics.median(theirs)
        print(f"{name:42}{a:10.2f}{b:10.2f}{a / b:8.2f}", flush=True)
        lines.append({"name": name, "tuff_ms": a, "torch_ms": b, "ratio": a / b, "threads": arguments.threads})
        if arguments.check and a / b > MOST.get(name, float("inf")):
            failed.append(name)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    if failed:
        sys.exit(f"longer than allowed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
