#!/usr/bin/python3
"""PyTorch reference of `tuff train gpt`: the same text, initial weights, batches and optimizer.

Usage: gpt-reference.py [--text examples/data/corpus.txt] [--out tests/data/gpt_reference.json]

Weights and batch offsets come from a counter-based generator (reference_random.py), so that the C++
trainer (models/gpt_reference.h) starts from the same numbers and draws the same batches; the losses
then differ by the rounding of float32 alone. Needs Debian's python3-torch and python3-numpy.
"""
import argparse
import json
import math
import os
import sys
import time

import numpy as np
import torch
from torch.nn import functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reference_random as rr  # noqa: E402

TRAIN_STREAM, VALIDATION_STREAM = 0x10000, 0x20000
VALIDATION_BATCHES, VALIDATION_INTERVAL = 8, 50
LEARNING_RATE, LEARNING_RATE_END, WARMUP_STEPS = 1e-3, 1e-4, 20
BETAS, EPSILON, WEIGHT_DECAY = (0.9, 0.95), 1e-8, 0.1
NORM_EPSILON = 1e-5


def recipe(args, vocabulary):
    """Name, shape, deviation (None: the constant) and constant of each parameter, in stream order."""
    width, residual = args.embed, 0.02 / math.sqrt(2.0 * args.layers)

    def norm(name):
        return [(name + ".w", (width,), None, 1.0), (name + ".b", (width,), None, 0.0)]

    def linear(name, fan_in, fan_out, deviation):
        return [(name + ".w", (fan_out, fan_in), deviation, None),
                (name + ".b", (fan_out,), None, 0.0)]

    rows = [("wte", (vocabulary, width), 0.02, None), ("wpe", (args.context, width), 0.02, None)]
    for layer in range(args.layers):
        prefix = f"layer{layer}."
        rows += norm(prefix + "ln1") + linear(prefix + "qkv", width, 3 * width, 0.02)
        rows += linear(prefix + "proj", width, width, residual) + norm(prefix + "ln2")
        rows += linear(prefix + "fc", width, 4 * width, 0.02)
        rows += linear(prefix + "out", 4 * width, width, residual)
    return rows + norm("lnf") + [("head.w", (vocabulary, width), 0.02, None)]


def initial_parameters(args, vocabulary):
    table = {}
    for stream, (name, shape, deviation, constant) in enumerate(recipe(args, vocabulary)):
        if deviation is None:
            value = torch.full(shape, constant)
        else:
            value = torch.from_numpy(rr.normals(args.seed, stream, shape, deviation))
        table[name] = value.requires_grad_(True)
    return table


def attention(p, prefix, x, heads, mask):
    batch, context, width = x.shape
    qkv = F.linear(x, p[prefix + "qkv.w"], p[prefix + "qkv.b"])
    q, k, v = (t.view(batch, context, heads, width // heads).transpose(1, 2)
               for t in qkv.split(width, dim=2))
    scores = q @ k.transpose(-2, -1) / math.sqrt(width // heads)
    weights = scores.masked_fill(mask, float("-inf")).softmax(-1)
    joined = (weights @ v).transpose(1, 2).reshape(batch, context, width)
    return F.linear(joined, p[prefix + "proj.w"], p[prefix + "proj.b"])


def forward(p, args, tokens):
    def norm(name, x):
        return F.layer_norm(x, (args.embed,), p[name + ".w"], p[name + ".b"], NORM_EPSILON)

    context = tokens.shape[1]
    mask = torch.ones(context, context, dtype=torch.bool).triu(1)
    x = p["wte"][tokens] + p["wpe"][:context]
    for layer in range(args.layers):
        prefix = f"layer{layer}."
        x = x + attention(p, prefix, norm(prefix + "ln1", x), args.heads, mask)
        h = F.linear(norm(prefix + "ln2", x), p[prefix + "fc.w"], p[prefix + "fc.b"])
        x = x + F.linear(F.gelu(h, approximate="tanh"), p[prefix + "out.w"], p[prefix + "out.b"])
    return F.linear(norm("lnf", x), p["head.w"])


def batch_offsets(args, stream, index, token_count):
    counter = np.arange(index * args.batch, (index + 1) * args.batch, dtype=np.uint32)
    return rr.bits(args.seed, stream, counter) % np.uint32(token_count - args.context - 1)


def batch_loss(p, args, tokens, offsets):
    rows = torch.stack([tokens[int(o):int(o) + args.context + 1] for o in offsets])
    logits = forward(p, args, rows[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten())


def validation_loss(p, args, tokens):
    with torch.no_grad():
        losses = [batch_loss(p, args, tokens, batch_offsets(args, VALIDATION_STREAM, b, len(tokens)))
                  .item() for b in range(VALIDATION_BATCHES)]
    return sum(losses) / len(losses)


def learning_rate(step, steps):
    if step < WARMUP_STEPS:
        return LEARNING_RATE * (step + 1) / WARMUP_STEPS
    progress = min(1.0, (step - WARMUP_STEPS) / max(1, steps - WARMUP_STEPS))
    return LEARNING_RATE_END + 0.5 * (LEARNING_RATE - LEARNING_RATE_END) * (
        1.0 + math.cos(math.pi * progress))


def train(p, args, train_tokens, heldout_tokens):
    matrices = [v for v in p.values() if v.dim() >= 2]
    vectors = [v for v in p.values() if v.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": vectors, "weight_decay": 0.0}],
        lr=LEARNING_RATE, betas=BETAS, eps=EPSILON)
    losses, validation = [], [[0, validation_loss(p, args, heldout_tokens)]]
    for step in range(args.steps):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, args.steps)
        offsets = batch_offsets(args, TRAIN_STREAM, step, len(train_tokens))
        loss = batch_loss(p, args, train_tokens, offsets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % VALIDATION_INTERVAL == 0 or step + 1 == args.steps:
            validation.append([step + 1, validation_loss(p, args, heldout_tokens)])
            print(f"step {step + 1}: train {loss.item():.4f}, validation {validation[-1][1]:.4f}",
                  flush=True)
    return losses, validation


def samples(args, vocabulary, train_size, heldout_size):
    """Numbers of the generator for the C++ twin's test: no training in between."""
    first = {}
    for stream, (name, shape, deviation, _) in enumerate(recipe(args, vocabulary)):
        if deviation is not None:
            first[name] = [float(v) for v in rr.normals(args.seed, stream, (4,), deviation)]
    return {"first_values": first,
            "train_offsets_step0": batch_offsets(args, TRAIN_STREAM, 0, train_size).tolist(),
            "train_offsets_last": batch_offsets(args, TRAIN_STREAM, args.steps - 1, train_size).tolist(),
            "validation_offsets_batch7": batch_offsets(args, VALIDATION_STREAM, 7,
                                                       heldout_size).tolist(),
            "learning_rate": [learning_rate(s, args.steps) for s in range(args.steps)]}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", default="examples/data/corpus.txt")
    parser.add_argument("--out", default="tests/data/gpt_reference.json")
    for name, value in (("layers", 4), ("heads", 4), ("embed", 128), ("context", 64), ("batch", 16),
                        ("seed", 1), ("steps", 300)):
        parser.add_argument("--" + name, type=int, default=value)
    return parser.parse_args()


def main():
    args = parse_arguments()
    torch.set_num_threads(1)
    with open(args.text, "rb") as file:
        text = file.read()
    vocabulary, ranks = np.unique(np.frombuffer(text, np.uint8), return_inverse=True)
    tokens = torch.from_numpy(ranks.astype(np.int64))
    train_size = len(text) * 9 // 10
    p = initial_parameters(args, len(vocabulary))
    begin = time.monotonic()
    losses, validation = train(p, args, tokens[:train_size], tokens[train_size:])
    seconds = time.monotonic() - begin
    print(f"{seconds:.1f} s, {sum(v.numel() for v in p.values())} parameters")
    settings = {name: getattr(args, name)
                for name in ("layers", "heads", "embed", "context", "batch", "seed", "steps")}
    result = {"torch": torch.__version__, "threads": 1, "corpus_xxh64": rr.xxh64_hex(text),
              "corpus_bytes": len(text), "vocabulary": len(vocabulary), "train_tokens": train_size,
              "settings": settings, "train_loss": losses, "validation_loss": validation,
              "generator": samples(args, len(vocabulary), train_size, len(text) - train_size)}
    with open(args.out, "w", encoding="ascii") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


main()
