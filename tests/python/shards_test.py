"""Tensors on several devices from Python: places, training, files."""
import os
import pickle
import tempfile
import unittest

import numpy as np

import tuff
from tuff import nn, optim

TWO = ("CPU", "CPU:1")


def numbers(*shape):
    return tuff.tensor(np.sin(np.arange(np.prod(shape), dtype=np.float32)).reshape(shape))


class Shards(unittest.TestCase):
    def test_places(self):
        x = numbers(4, 6)
        for devices, axis in ((TWO, 0), (list(TWO), -1), ("CPU,CPU:1", 1), (TWO, None)):
            y = x.shard(devices, axis)
            self.assertEqual(y.device, "CPU,CPU:1")
            self.assertEqual(y.shard_axis, None if axis is None else axis % 2)
            np.testing.assert_array_equal(y.numpy(), x.numpy())
            self.assertEqual(y.tolist(), x.tolist())
            self.assertEqual((x * 2).shard_like(y).shard_axis, y.shard_axis)
            self.assertIn("CPU,CPU:1", repr(y))
            np.testing.assert_array_equal(pickle.loads(pickle.dumps(y)).numpy(), x.numpy())
        self.assertIsNone(x.to(TWO).shard_axis)
        self.assertEqual(tuff.Tensor.zeros([2], device=x.to(TWO).device).shard(TWO, 0).tolist(), [0, 0])
        with self.assertRaisesRegex(tuff.InvalidArgument, "shard_like"):
            x + x.shard(TWO)
        with self.assertRaisesRegex(tuff.ShapeError, "do not divide"):
            numbers(3).shard(TWO, 0)

    def test_all_reduce(self):
        x = numbers(4, 3)
        parts = [x[:2].to("CPU"), x[2:].to("CPU:1")]
        for got, device in zip(tuff.all_reduce(parts), TWO):
            self.assertEqual(got.device, device)
            np.testing.assert_array_equal(got.numpy(), x.numpy()[:2] + x.numpy()[2:])
        largest = x.shard(TWO, 0).all_reduce("max")
        np.testing.assert_array_equal(largest.numpy(), np.maximum(x.numpy()[:2], x.numpy()[2:]))

    def train(self, model, place):
        optimizer = optim.Adam(model.parameters(), lr=0.05)

        @tuff.jit
        def step(x, y):
            loss = model(x).cross_entropy(y)
            loss.backward()
            optimizer.step()
            return loss

        y = place(tuff.tensor(np.array([0, 1, 2, 1], np.int32)))
        return [float(step(place(numbers(4, 6) * (1 + i)).realize(), y.realize()).item()) for i in range(6)]

    def test_training_and_files(self):
        def model():
            tuff.Tensor.manual_seed(3)
            return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))

        one, two = model(), model().to(TWO)
        want = self.train(one, lambda t: t)
        np.testing.assert_allclose(self.train(two, lambda t: t.shard(TWO, 0)), want, rtol=1e-5)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.safetensors")
            tuff.save(path, two.state_dict())
            other = model()
            other.load_state_dict(tuff.load(path))
            for p, q in zip(other.parameters(), one.parameters()):
                np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-4, atol=1e-6)
        two.parameters()[0].shard_(TWO, 1)
        two.to("CPU")
        self.assertEqual({p.device for p in two.parameters()}, {"CPU"})


if __name__ == "__main__":
    unittest.main()
