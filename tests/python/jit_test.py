"""What a function under tuff.Jit may be given, return, read and leave behind."""
import collections
import math
import unittest

import numpy as np

import tuff
from tuff import optim

Pair = collections.namedtuple("Pair", "first second")


def row(i):
    return tuff.tensor([float(i), 2.0, 3.0]).realize()


def devices():
    return [d for d in tuff.devices() if d.split(":")[0] in ("CPU", "VULKAN")]


class Results(unittest.TestCase):
    def check(self, function):
        """Each call's results are those of the function without a Jit."""
        f = tuff.jit(function)
        got = [f(row(i)) for i in range(6)]
        self.assertTrue(f.captured)
        for i, results in enumerate(got):
            wanted = function(row(i))
            for a, b in zip(results, wanted, strict=True):
                self.assertEqual(a.tolist(), b.tolist(), i)

    def test_arguments_and_what_changes_nothing_of_them(self):
        self.check(lambda x: (x,))
        self.check(lambda x: [x, x])
        self.check(lambda x: (x.reshape(3, 1), x.detach(), x.contiguous(), x.cast(tuff.float32)))
        self.check(lambda x: (x * 1, x + 0, x.dropout(0.5)))
        self.check(lambda x: (x[1:], x[0], x * 2))

    def test_an_argument_that_is_assigned_to(self):
        f = tuff.jit(lambda x: (x.assign(x + 1), x))
        for i in range(5):
            x = row(i)
            first, second = f(x)
            self.assertEqual([first.tolist(), second.tolist(), x.tolist()], [[i + 1, 3, 4]] * 3)

    def test_structures(self):
        f = tuff.jit(lambda x: Pair(x, {"twice": [x * 2, None]}))
        for i in range(4):
            result = f(row(i))
            self.assertIsInstance(result, Pair)
            self.assertEqual(result.first.tolist(), [i, 2, 3])
            self.assertEqual(result.second["twice"][0].tolist(), [2 * i, 4, 6])
            self.assertIsNone(result.second["twice"][1])

    def test_what_is_no_tensor_is_refused(self):
        for result, where in ((3, "the result is 3 of type int"), ("loss", "the result is 'loss'"),
                              (1.5, "the result is 1.5"), (np.ones(2), "of type ndarray"),
                              (row(0).shape, r"the result\[0\] is 3 of type int"),
                              ({"a": [row(0), True]}, r"the result\['a'\]\[1\] is True")):
            with self.assertRaisesRegex(tuff.InvalidArgument, where):
                tuff.jit(lambda x: result)(row(0))


class Arguments(unittest.TestCase):
    def test_constants_have_to_be_the_same(self):
        for first, other in ((1, 2), (1, True), (1, 1.0), ("a", "b"), (None, 0), ([1], (1,)), ([1], [1, 2])):
            f = tuff.jit(lambda x, k: x * 2)
            for _ in range(3):
                f(row(0), first)
            with self.assertRaisesRegex(tuff.InvalidArgument, "same at every call"):
                f(row(0), other)
            with self.assertRaisesRegex(tuff.InvalidArgument, "same at every call"):
                f(row(0), k=first)

    def test_not_a_number_is_the_same(self):
        f = tuff.jit(lambda x, k: x * k)
        for _ in range(3):
            self.assertTrue(math.isnan(f(row(0), float("nan")).tolist()[0]))

    def test_what_cannot_be_compared(self):
        f = tuff.jit(lambda x, k: x * 2)
        f(row(0), np.ones(3))
        with self.assertRaisesRegex(tuff.InvalidArgument, "ndarray.*make it a tensor"):
            f(row(0), np.ones(3))


class Reads(unittest.TestCase):
    def refused(self, function, name):
        f = tuff.jit(function)
        f(row(1))
        for _ in range(2):
            with self.assertRaisesRegex((tuff.InvalidArgument, BufferError), f"{name}: a Jit's function reads"):
                f(row(1))
        self.assertFalse(f.captured)

    def test_of_arguments(self):
        self.refused(lambda x: x * x.sum().item(), "item")
        self.refused(lambda x: x * float(x[0]), "item")
        self.refused(lambda x: x * int(x[1]), "item")
        self.refused(lambda x: x if x[0] > 0 else x * 2, "item")
        self.refused(lambda x: x + x.tolist()[1], "data_ptr")
        self.refused(lambda x: x + float(x.numpy()[1]), "data_ptr")
        self.refused(lambda x: x + float(np.asarray(x)[1]), "data_ptr")
        self.refused(lambda x: x + float(np.from_dlpack(x)[1]), "__dlpack__")
        self.refused(lambda x: x + memoryview(x)[1], "data_ptr")
        self.refused(lambda x: x * f"{x.sum():.3f}".count("."), "item")

    def test_of_state_and_random_numbers(self):
        rate = tuff.tensor(0.5).realize()
        self.refused(lambda x: x * rate.item(), "item")
        tuff.rand(1).realize()
        self.refused(lambda x: x * tuff.rand(1).item(), "item")

    def test_of_constants_and_for_printing(self):
        seen = []

        @tuff.jit
        def f(x):
            seen.append(repr(x))
            return x * tuff.arange(5).sum().item()
        for i in range(4):
            self.assertEqual(f(row(i)).tolist(), [10 * i, 20, 30])
        self.assertEqual(len(seen), 2)


class LeftBehind(unittest.TestCase):
    def test_attributes_and_gradients(self):
        weight = tuff.ones(3).realize().set_requires_grad()
        kept = []

        @tuff.jit
        def f(x):
            kept.append(x * 2)
            weight.grad = None
            (x * weight).sum().backward()
            return x.sum()
        for i in range(3):
            f(row(i))
        self.assertEqual(kept[0].tolist(), [0, 4, 6])
        with self.assertRaisesRegex(tuff.InvalidArgument, "computed while it was captured"):
            kept[1].tolist()
        with self.assertRaisesRegex(tuff.InvalidArgument, "computed while it was captured"):
            weight.grad.numpy()

    def test_rates_are_set_outside(self):
        p = tuff.ones(3).realize().set_requires_grad()
        sgd = optim.SGD([p], lr=0.5)

        @tuff.jit
        def step(x):
            sgd.set_lr(0.25)
            (x * p).sum().backward()
            sgd.step()
        step(row(0))
        with self.assertRaisesRegex(tuff.InvalidArgument, "copy_from: a Jit's function writes"):
            step(row(0))


class Leaves(unittest.TestCase):
    def test_assign_refuses_what_has_a_gradient(self):
        p = tuff.ones(3).realize().set_requires_grad()
        with self.assertRaisesRegex(tuff.InvalidArgument, "assign: the tensor has requires_grad"):
            p.assign(p * 2)
        with tuff.no_grad():
            p.assign(p * 2)
        self.assertEqual(p.tolist(), [2, 2, 2])
        self.assertTrue(p.requires_grad)

    def test_rates_that_are_none(self):
        p = [tuff.ones(3).realize().set_requires_grad()]
        for bad in (-1, float("nan"), float("inf")):
            self.assertRaisesRegex(tuff.InvalidArgument, "lr is", optim.SGD, p, lr=bad)
            self.assertRaisesRegex(tuff.InvalidArgument, "lr is", optim.SGD(p, lr=1).set_lr, bad)

    def test_a_state_of_random_numbers_knows_its_device(self):
        for device in devices():
            state = tuff.get_rng_state(device)
            first = tuff.rand(8, device=device).tolist()
            tuff.set_rng_state(state)
            self.assertEqual(tuff.rand(8, device=device).tolist(), first, device)


if __name__ == "__main__":
    unittest.main()
