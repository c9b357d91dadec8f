"""Trains the digits ConvNet of `tuff train digits`: the same network, data, batches and losses.

    PYTHONPATH=build/python python3 examples/python/train_digits.py --steps 200
"""
import argparse
import dataclasses

import numpy as np

import tuff
from tuff import digits, nn, optim

BATCH = 64


class ConvNet:
    """Two convolutions with pooling, two linear layers; images (N, 1, 28, 28) -> logits (N, 10)."""

    def __init__(self, seed, device):
        p = digits.parameters(seed, device)
        self.conv1 = nn.Conv2d(p[0], p[1], padding=2)
        self.conv2 = nn.Conv2d(p[2], p[3], padding=2)
        self.fc1 = nn.Linear(p[4], p[5])
        self.fc2 = nn.Linear(p[6], p[7])

    def __call__(self, x):
        x = self.conv1(x).relu().max_pool2d(2)
        x = self.conv2(x).relu().max_pool2d(2)
        return self.fc2(self.fc1(x.flatten(1)).relu())

    def parameters(self):
        return [p for layer in (self.conv1, self.conv2, self.fc1, self.fc2)
                for p in layer.parameters()]


@dataclasses.dataclass
class Training:
    losses: list
    accuracy: float


def batches(images, labels, steps, seed):
    """Pixels in 0..1 and labels of each step, in arrays that are NumPy's."""
    for step in range(steps):
        rows = digits.batch(step, len(images), BATCH, seed)
        yield (images[rows].reshape(BATCH, 1, 28, 28).astype(np.float32) / np.float32(255),
               labels[rows].astype(np.int32))


def accuracy(model, images, labels, device):
    classify = tuff.jit(lambda x: model(x).argmax(1))
    right = 0
    for first in range(0, len(images) - BATCH + 1, BATCH):
        part = images[first:first + BATCH].reshape(BATCH, 1, 28, 28).astype(np.float32) / 255
        answers = classify(tuff.tensor(part, device=device).realize()).numpy()
        right += int((answers == labels[first:first + BATCH]).sum())
    return right / (len(images) // BATCH * BATCH)


def train(steps, device="", seed=1, jit=True, report=lambda step, loss: None, test=False):
    training_set, test_set = digits.draw(seed)
    images, labels = (t.numpy() for t in training_set)
    model = ConvNet(seed, device)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0)

    def step(x, y):
        with tuff.TrainingMode():
            optimizer.zero_grad()
            loss = model(x).cross_entropy(y)
            loss.backward()
            optimizer.step([loss])
            return loss

    if jit:  # runs once, is captured at the second call, replayed from then on
        step = tuff.jit(step)
    losses = []
    for number, (x, y) in enumerate(batches(images, labels, steps, seed)):
        loss = step(tuff.tensor(x, device=device), tuff.tensor(y, device=device)).item()
        losses.append(loss)
        report(number + 1, loss)
    rate = accuracy(model, *(t.numpy() for t in test_set), device) if test else float("nan")
    return Training(losses, rate)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--steps", type=int, default=400)
    options.add_argument("--device", default="", help="CPU, VULKAN:0, ...; the default device if left out")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()

    def report(step, loss):
        if step % 20 == 0 or step == given.steps:
            print(f"step {step:4}  loss {loss:.4f}", flush=True)

    training = train(given.steps, given.device, given.seed, report=report, test=True)
    print(f"test accuracy {100 * training.accuracy:.2f} %")


if __name__ == "__main__":
    main()
