"""Datasets and loaders: what is in batches, their order, threads, errors."""
import collections
import threading
import time
import unittest

import numpy as np

import tuff
from tuff import data


class Squares(data.Dataset):
    """Items that say where they were read."""

    def __init__(self, count, delays=()):
        self.count, self.delays, self.threads = count, delays, set()

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        self.threads.add(threading.get_ident())
        if self.delays:
            time.sleep(self.delays[i % len(self.delays)])
        return {"x": np.full(3, i, np.float32), "y": i * i}


def numbers(loader):
    return [batch["y"].tolist() for batch in loader]


class Loaders(unittest.TestCase):
    def test_batches(self):
        loader = data.DataLoader(Squares(7), 3)
        batches = list(loader)
        self.assertEqual((len(loader), len(batches)), (3, 3))
        self.assertEqual([b["y"].tolist() for b in batches], [[0, 1, 4], [9, 16, 25], [36]])
        self.assertEqual(batches[1]["x"].tolist(), [[3] * 3, [4] * 3, [5] * 3])
        self.assertEqual(batches[0]["x"].dtype, "float32")
        short = data.DataLoader(Squares(7), 3, drop_last=True)
        self.assertEqual((len(short), len(list(short))), (2, 2))
        self.assertEqual(list(data.DataLoader([], 3)), [])

    def test_tensors(self):
        x, y = np.arange(12, dtype=np.float32).reshape(6, 2), tuff.arange(6)
        dataset = data.TensorDataset(x, y)
        self.assertEqual((len(dataset), [v.tolist() for v in dataset[2]]), (6, [[4, 5], 2]))
        for workers in (0, 2):
            got = list(data.DataLoader(dataset, 4, num_workers=workers))
            self.assertTrue(all(isinstance(t, tuff.Tensor) for batch in got for t in batch))
            self.assertEqual([t.tolist() for t in got[1]], [[[8, 9], [10, 11]], [4, 5]])
            self.assertEqual(got[0][1].dtype, "int32")
        self.assertRaises(tuff.InvalidArgument, data.TensorDataset, x, np.ones(5))
        self.assertRaises(tuff.InvalidArgument, data.TensorDataset)

    def test_order_is_one_of_the_seed_and_epoch(self):
        def loader(seed=5, workers=0):
            return data.DataLoader(Squares(20, (0.002, 0, 0.001) if workers else ()), 6, shuffle=True, seed=seed, num_workers=workers)
        first = loader()
        one, two = numbers(first), numbers(first)
        self.assertEqual(sorted(sum(one, [])), [i * i for i in range(20)])
        self.assertNotEqual(one, two)
        self.assertNotEqual(sum(one, []), sorted(sum(one, [])))
        threaded = loader(workers=3)
        self.assertEqual([numbers(threaded), numbers(threaded)], [one, two])
        self.assertNotEqual(numbers(loader(seed=6)), one)
        resumed = loader()
        resumed.set_epoch(1)
        self.assertEqual(numbers(resumed), two)

    def test_workers_are_threads(self):
        dataset = Squares(40, (0.005,))
        self.assertEqual(numbers(data.DataLoader(dataset, 4, num_workers=3)), numbers(data.DataLoader(Squares(40), 4)))
        self.assertNotIn(threading.get_ident(), dataset.threads)
        self.assertGreater(len(dataset.threads), 1)

    def test_batches_are_made_ahead_and_not_too_far(self):
        read = []

        class Counted(Squares):
            def __getitem__(self, i):
                read.append(i)
                return super().__getitem__(i)
        iterator = iter(data.DataLoader(Counted(100), 1, num_workers=2, prefetch_factor=3))
        next(iterator)
        end = time.monotonic() + 10
        while len(read) < 6 and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(0.05)
        self.assertEqual(sorted(read), list(range(6)))
        iterator.close()
        time.sleep(0.05)
        self.assertLessEqual(len(read), 8)

    def test_errors_come_where_the_batch_would(self):
        class Broken(Squares):
            def __getitem__(self, i):
                if i == 5:
                    raise KeyError("broken")
                return super().__getitem__(i)
        for workers in (0, 2):
            seen = []
            with self.assertRaisesRegex(KeyError, "broken"):
                for batch in data.DataLoader(Broken(8), 2, num_workers=workers):
                    seen.append(batch["y"].tolist())
            self.assertEqual(seen, [[0, 1], [4, 9]])

    def test_collation(self):
        pair = collections.namedtuple("pair", "a b")
        items = [pair(1.5, [tuff.ones(2), "x"]), pair(2.5, [tuff.zeros(2), "y"])]
        batch = next(iter(data.DataLoader(items, 2)))
        self.assertEqual((batch.a.tolist(), batch.b[0].tolist(), batch.b[1]), ([1.5, 2.5], [[1, 1], [0, 0]], ["x", "y"]))
        self.assertEqual(list(data.DataLoader([1, 2, 3], 2, collate_fn=sum)), [3, 3])
        arrays = next(iter(data.DataLoader([1, 2], 2, collate_fn=np.array)))
        self.assertIsInstance(arrays, tuff.Tensor)

    def test_devices(self):
        batch = next(iter(data.DataLoader([1.0, 2.0], 2, device="NULL", num_workers=1)))
        self.assertEqual(batch.device, "NULL")
        self.assertTrue(batch.is_realized)

    def test_splits(self):
        parts = data.random_split(Squares(10), [7, 3], seed=1)
        got = [[part[i]["y"] for i in range(len(part))] for part in parts]
        self.assertEqual([len(p) for p in got], [7, 3])
        self.assertEqual(sorted(sum(got, [])), [i * i for i in range(10)])
        again = data.random_split(Squares(10), [7, 3], seed=1)
        self.assertEqual([p.indices for p in again], [p.indices for p in parts])
        self.assertRaises(tuff.InvalidArgument, data.random_split, Squares(10), [7, 2])

    def test_refusals(self):
        for options in ({"batch_size": 0}, {"num_workers": -1}, {"prefetch_factor": 0}):
            self.assertRaises(tuff.InvalidArgument, data.DataLoader, [1], **options)
        self.assertRaises(NotImplementedError, len, data.Dataset())

    def test_training(self):
        tuff.Tensor.manual_seed(0)
        x = np.random.RandomState(0).rand(64, 2).astype(np.float32)
        model = tuff.nn.Linear(2, 1)
        optimizer = tuff.optim.SGD(model.parameters(), lr=0.3)
        loader = data.DataLoader(data.TensorDataset(x, x.sum(1, keepdims=True)), 16, shuffle=True, num_workers=2)

        @tuff.jit
        def step(x, y):
            optimizer.zero_grad()
            loss = model(x).mse_loss(y)
            loss.backward()
            optimizer.step([loss])
            return loss
        for _ in range(40):
            losses = [step(a, b).item() for a, b in loader]
        self.assertLess(max(losses), 1e-3)


if __name__ == "__main__":
    unittest.main()
