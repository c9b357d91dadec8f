#!/usr/bin/python3
"""PyTorch reference of `tuff train digits`: the same initial weights, batches and optimizer.

Usage: digits-reference.py IDX_FOLDER [--steps 20] [--out tests/data/digits_reference.json]
       digits-reference.py IDX_FOLDER --judge      how hard the images are

IDX_FOLDER holds MNIST's four files, for instance those that `export_digits FOLDER` writes (a test
program of the build). --judge trains a softmax regression, which must stay below 92 % on the test
images, and the ConvNet, which must reach 98 %. Needs Debian's python3-torch and python3-numpy.
"""
import argparse
import json
import math
import os
import sys

import numpy as np
import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import reference_random as rr  # noqa: E402

TRAIN_STREAM = 0x10000
CHANNELS = (16, 32)
HIDDEN = 128
LEARNING_RATE = 1e-3
BATCH = 64


def read_idx(path, dims):
    with open(path, "rb") as file:
        data = file.read()
    assert data[:4] == bytes([0, 0, 8, dims]), path
    extents = np.frombuffer(data, ">u4", dims, 4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * dims).reshape(extents)


def load(folder, prefix):
    images = read_idx(os.path.join(folder, prefix + "-images-idx3-ubyte"), 3)
    labels = read_idx(os.path.join(folder, prefix + "-labels-idx1-ubyte"), 1)
    pixels = torch.from_numpy(images.astype(np.float32) / np.float32(255))
    return pixels[:, None], torch.from_numpy(labels.astype(np.int64))


def parameters(extent, seed):
    """Name, shape; a weight's deviation is sqrt(2 / fan in), biases are zero (He et al. 2015)."""
    flat = CHANNELS[1] * (extent // 4) ** 2
    shapes = [("conv1", (CHANNELS[0], 1, 5, 5)), ("conv2", (CHANNELS[1], CHANNELS[0], 5, 5)),
              ("fc1", (HIDDEN, flat)), ("fc2", (10, HIDDEN))]
    table = {}
    for index, (name, shape) in enumerate(shapes):
        deviation = math.sqrt(2.0 / math.prod(shape[1:]))
        table[name + ".w"] = torch.from_numpy(rr.normals(seed, 2 * index, shape, deviation))
        table[name + ".b"] = torch.zeros(shape[0])
    for value in table.values():
        value.requires_grad_(True)
    return table


def forward(p, x):
    f = torch.nn.functional
    x = f.max_pool2d(f.relu(f.conv2d(x, p["conv1.w"], p["conv1.b"], padding=2)), 2)
    x = f.max_pool2d(f.relu(f.conv2d(x, p["conv2.w"], p["conv2.b"], padding=2)), 2)
    x = f.relu(f.linear(x.flatten(1), p["fc1.w"], p["fc1.b"]))
    return f.linear(x, p["fc2.w"], p["fc2.b"])


def train(p, images, labels, steps, seed):
    optimizer = torch.optim.AdamW(p.values(), lr=LEARNING_RATE, betas=(0.9, 0.999), eps=1e-8,
                                  weight_decay=0.0)
    losses = []
    for step in range(steps):
        counter = np.arange(step * BATCH, (step + 1) * BATCH, dtype=np.uint32)
        rows = torch.from_numpy((rr.bits(seed, TRAIN_STREAM, counter) % len(labels)).astype(np.int64))
        loss = torch.nn.functional.cross_entropy(forward(p, images[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def accuracy(model, images, labels):
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def softmax_regression(train_set, test_set, epochs=60):
    """Full-batch Adam; the best test accuracy seen on the way, in favour of the regression."""
    x, y = train_set
    linear = torch.nn.Linear(x[0].numel(), 10)
    optimizer = torch.optim.Adam(linear.parameters(), lr=1e-3)
    best = 0.0
    for _ in range(epochs):
        for rows in torch.randperm(len(y)).split(100):
            loss = torch.nn.functional.cross_entropy(linear(x[rows].flatten(1)), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        best = max(best, accuracy(lambda t: linear(t.flatten(1)), *test_set))
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--out", default="tests/data/digits_reference.json")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    train_set, test_set = load(args.folder, "train"), load(args.folder, "t10k")
    if args.judge:
        print(f"softmax regression: {softmax_regression(train_set, test_set):.4f}")
        args.steps = 5 * len(train_set[1]) // BATCH
    p = parameters(train_set[0].shape[-1], args.seed)
    losses = train(p, *train_set, args.steps, args.seed)
    score = accuracy(lambda t: forward(p, t), *test_set)
    print(f"convnet after {args.steps} steps: loss {losses[-1]:.4f}, test accuracy {score:.4f}")
    if args.judge:
        return
    result = {"torch": torch.__version__, "seed": args.seed, "steps": args.steps, "batch": BATCH,
              "learning_rate": LEARNING_RATE, "channels": CHANNELS, "hidden": HIDDEN,
              "train_images": len(train_set[1]), "train_pixels_xxh64": rr.xxh64_hex(
                  (train_set[0].numpy() * 255 + 0.5).astype(np.uint8).tobytes()),
              "train_loss": losses, "test_accuracy": score}
    with open(args.out, "w", encoding="ascii") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


main()
