"""Writes to views: those that NumPy and PyTorch make in x come to x; others keep what they read."""
import unittest

import numpy as np

import tuff


def both(shape=(4, 6)):
    a = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    return a, tuff.tensor(a)


# In NumPy's and tuff's words alike.
def chunks(x, a, b):
    a += b
    b *= 2


def rows(x):
    for row in x:
        row += row.sum()


WRITES = {
    "x[0] += 1": "x[0] += 1",
    "an element of a row": "x[0][1] = 2",
    "columns of a row": "x[1][2:5] = 7",
    "a step": "x[::2][1] *= 3",
    "backwards": "x[::-1][0, ::-2] = -1",
    "transposed": "x.T[2] -= 4",
    "flat": "x.reshape(-1)[3] = 1",
    "flat run": "x.reshape(-1)[3:15] /= 2",
    "split": "x.reshape(4, 2, 3)[:, 1] = 9",
    "split and turned": "x.reshape(2, 2, 6).swapaxes(0, 1)[1, 0][::2] += 5",
    "new axes": "x[None, ..., None][0, 2] = 3",
    "a mask of a row": "x[1][x[1] > 8] = 0",
    "positions in a row": "x[2][[0, 3]] += 10",
    "powers": "x[1] **= 2",
    "whole quotients": "x[1:3] //= 4",
}


class Writing(unittest.TestCase):
    def test_as_numpy(self):
        for name, text in WRITES.items():
            for lazy in (False, True):
                a, x = both()
                if lazy:
                    x = x * 1
                exec(text, {"x": a})
                exec(text, {"x": x})
                np.testing.assert_array_equal(x.numpy(), a, f"{name}, lazy {lazy}")

    def test_names_that_are_kept(self):
        a, x = both()
        chunks(a, *np.split(a, 2))
        chunks(x, *x.chunk(2))
        rows(a)
        rows(x)
        np.testing.assert_array_equal(x.numpy(), a)
        row, column = x[1], x.T[2]
        row.zero_()
        a[1] = 0
        column.fill_(4)
        a[:, 2] = 4
        x[:, 1:5].diagonal().copy_(tuff.tensor([-1.0, -2.0, -3.0, -4.0]))
        np.fill_diagonal(a[:, 1:5], [-1, -2, -3, -4])
        x.unflatten(1, (2, 3))[0, 1].clamp_(0, 1)
        a[0, 3:] = a[0, 3:].clip(0, 1)
        np.testing.assert_array_equal(x.numpy(), a)
        self.assertEqual(row.tolist(), [0] * 6)

    def test_others_keep_their_values(self):
        _, x = both((2, 2))
        row, column = x[0], x.T[0]
        x += 10
        self.assertEqual(row.tolist(), [0, 1])
        row += 1
        self.assertEqual(x.tolist(), [[11, 12], [12, 13]])
        self.assertEqual(row.tolist(), [11, 12])
        self.assertEqual(column.tolist(), [0, 2])
        row += row
        self.assertEqual(x[0].tolist(), [22, 24])

    def test_what_has_no_other_owner(self):
        x = tuff.arange(6).reshape(2, 3)
        x[0] += 1
        x[1][1] = 9
        self.assertEqual(x.tolist(), [[1, 2, 3], [3, 9, 5]])

    def test_gradients_and_leaves(self):
        w = tuff.ones((2, 2), requires_grad=True)
        y = w * 2
        y[0] *= 3
        y[1][0] = 5
        y.sum().backward()
        self.assertEqual(w.grad.tolist(), [[6, 6], [0, 2]])

        def add():
            w[0] += 1

        self.assertRaisesRegex(tuff.InvalidArgument, "view of one that has requires_grad", add)
        with tuff.no_grad():
            w[0] += 1
            w.T[1].fill_(7)
        w.detach()[1, 0] = 4
        self.assertEqual(w.tolist(), [[2, 7], [4, 7]])
        tuff.nn.init.zeros_(w[1])
        self.assertEqual(w.tolist(), [[2, 7], [0, 0]])

    def test_refused(self):
        x = tuff.ones((1, 3))
        self.assertRaisesRegex(tuff.InvalidArgument, r"expand\(\) of \(1, 3\).*clone\(\)", lambda: x.expand(4, 3).zero_())
        x.expand(4, 3)[2].zero_()
        self.assertEqual(x.tolist(), [[0, 0, 0]])

    def test_in_a_jit(self):
        state = tuff.zeros((3, 2)).realize()

        @tuff.jit
        def step(v):
            state[1] += v
            for row in state[:2]:
                row *= 2
            return state.sum()

        want = np.zeros((3, 2), np.float32)
        for i in range(5):
            step(tuff.tensor([float(i), 1.0]))
            want[1] += (i, 1)
            want[:2] *= 2
        np.testing.assert_array_equal(state.numpy(), want)


if __name__ == "__main__":
    unittest.main()
