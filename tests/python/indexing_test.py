"""Reading and writing what indices pick, against NumPy; gradients of it; no_grad."""
import unittest

import numpy as np

import tuff

RNG = np.random.default_rng(3)
ROWS = np.array([2, 0, 2])


def index_of(shape):
    """A random index for a shape: NumPy's forms, and where they may stand."""
    index, axis, advanced = [], 0, 0
    ellipsis = RNG.random() < 0.3
    end = len(shape) if not ellipsis else int(RNG.integers(0, len(shape) + 1))
    picks = int(RNG.integers(1, 4))

    def one(n):
        kind = RNG.integers(0, 5)
        if kind == 0:
            return int(RNG.integers(-n, n))
        if kind == 1:
            bounds = [None, *range(-n - 2, n + 3)]
            return slice(*(bounds[RNG.integers(0, len(bounds))] for _ in range(2)), (None, 1, 2, 3, -1, -2)[RNG.integers(0, 6)])
        if kind == 2:
            return RNG.integers(-n, n, picks).tolist()
        if kind == 3:
            return RNG.integers(-n, n, (2, picks) if RNG.random() < 0.3 else picks)
        return slice(None)
    while axis < end:
        if RNG.random() < 0.15:
            index.append(None)
            continue
        if RNG.random() < 0.1 and advanced == 0 and not any(isinstance(i, (list, np.ndarray)) for i in index):
            k = int(RNG.integers(1, end - axis + 1))
            mask = RNG.random(shape[axis:axis + k]) < 0.5
            index.append(mask)
            axis += k
            advanced = 2  # a mask alone: how its count meets other lists is chance
            continue
        i = one(shape[axis])
        if advanced == 2 and isinstance(i, (list, np.ndarray)):
            i = slice(None)
        if isinstance(i, (list, np.ndarray)):
            advanced = 1
        index.append(i)
        axis += 1
    if ellipsis:
        index.append(Ellipsis)
    return tuple(index) if len(index) != 1 else index[0]


def mixed_index(shape):
    """Numbers, slices, arrays and masks on random axes, new axes and an ellipsis anywhere between."""
    front, back = sorted(int(n) for n in RNG.integers(0, len(shape) + 1, 2))
    ellipsis = RNG.random() < 0.6
    axes = [*range(front), *range(back, len(shape))] if ellipsis else range(len(shape))
    index, here = [], None
    for axis in [*axes, None]:
        while RNG.random() < 0.12:
            index.append(None)
        if ellipsis and here is None and (axis is None or axis >= front):
            here = len(index)
            index.append(Ellipsis)
        if axis is None:
            break
        n = shape[axis]
        mask = np.zeros(n, bool)
        mask[RNG.permutation(n)[:min(n, 2)]] = True
        index.append([int(RNG.integers(-n, n)), slice(None), slice(n // 3, None), RNG.integers(-n, n, 2),
                      RNG.integers(-n, n, (4, 1)), RNG.integers(-n, n), RNG.integers(-n, n, 1).tolist(), mask][RNG.integers(0, 8)])
    return tuple(index)


class Reading(unittest.TestCase):
    def test_axes_of_mixed_indices(self):
        """Where a list of numbers, arrays, slices, new axes and an ellipsis puts each axis."""
        moved = 0
        for shape in [(2, 3, 5), (2, 3, 5, 7), (3, 4)]:
            a = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
            t = tuff.tensor(a)
            for i in range(400):
                index = mixed_index(shape)
                wanted, got = a[index], t[index]
                self.assertEqual(got.shape, wanted.shape, f"{shape} {index}")
                if i % 25 == 0:
                    np.testing.assert_array_equal(got.numpy(), wanted, f"{shape} {index}")
                    changed = a.copy()
                    value = RNG.integers(-99, 0, wanted.shape).astype(np.int32)
                    if len(np.unique(a[index])) == wanted.size:  # equal positions are another matter
                        changed[index] = value
                        np.testing.assert_array_equal(t.index_put(index, value).numpy(), changed, f"{shape} {index}")
                        moved += wanted.ndim > 1
        self.assertGreater(moved, 5)
        self.assertEqual(tuff.zeros((2, 3, 4))[:, [0], ..., 0].shape, np.zeros((2, 3, 4))[:, [0], ..., 0].shape)

    def test_random_indices(self):
        compared = 0
        for _ in range(150):
            shape = tuple(RNG.integers(1, 5, RNG.integers(1, 5)))
            a = RNG.integers(-99, 99, shape).astype(np.int32)
            index = index_of(shape)
            want = a[index]
            got = tuff.tensor(a)[index]
            self.assertEqual(got.shape, want.shape, index)
            np.testing.assert_array_equal(got.numpy(), want, str(index))
            compared += 1
        self.assertGreater(compared, 90)

    def test_masks(self):
        a = RNG.uniform(-1, 1, (4, 3, 2)).astype(np.float32)
        t = tuff.tensor(a)
        rows = np.array([True, False, True, True])
        for mask in (a > 0, rows, a[:, :, 0] > 0, np.zeros(4, bool), np.ones((4, 3), bool)):
            np.testing.assert_array_equal(t[mask].numpy(), a[mask])
            np.testing.assert_array_equal(t[tuff.tensor(mask)].numpy(), a[mask])
        np.testing.assert_array_equal(t[t > 0].numpy(), a[a > 0])
        np.testing.assert_array_equal(t[rows.tolist()].numpy(), a[rows])
        np.testing.assert_array_equal(t[:, [True, False, True], None].numpy(), a[:, [True, False, True], None])
        np.testing.assert_array_equal(t[..., a[0, 0] > -2].numpy(), a[..., a[0, 0] > -2])
        np.testing.assert_array_equal(t.nonzero().numpy(), np.argwhere(a))
        np.testing.assert_array_equal((t > 0).nonzero().numpy(), np.argwhere(a > 0))
        self.assertEqual(tuff.tensor(3.0).nonzero().shape, (1, 0))
        self.assertEqual(t[[]].shape, (0, 3, 2))

    def test_gradients_through_a_mask(self):
        x = tuff.tensor([1.0, -2.0, 3.0], requires_grad=True)
        (x[x > 0] * tuff.tensor([10.0, 20.0])).sum().backward()
        self.assertEqual(x.grad.tolist(), [10, 0, 20])

    def test_refused(self):
        t = tuff.zeros((3, 4))
        self.assertRaisesRegex(tuff.ShapeError, r"mask of \(4,\) on the axes from 0", lambda: t[tuff.tensor([True] * 4)])
        self.assertRaisesRegex(tuff.IndexError, "3 indices", lambda: t[tuff.ones((3, 4), dtype=bool), 0])
        self.assertRaises(tuff.InvalidArgument, lambda: t[True])
        self.assertRaisesRegex(tuff.InvalidArgument, "without axes", lambda: t[tuff.tensor(True)])
        self.assertRaisesRegex(tuff.InvalidArgument, "not integers", lambda: t[tuff.ones(2)])

        @tuff.jit
        def picked(x):
            return x[x > 0]
        picked(tuff.tensor([1.0, -1.0]))
        self.assertRaisesRegex(tuff.InvalidArgument, "masked_fill", picked, tuff.tensor([1.0, -1.0]))


class Writing(unittest.TestCase):
    def both(self, shape, index, value, dtype=np.float32, realized=True):
        a = np.asarray(RNG.uniform(-9, 9, shape) * 3).astype(dtype)
        t = tuff.tensor(a.copy()) if realized else tuff.tensor(a) * 1
        t = t.realize() if realized else t
        before = t * 1
        a2 = a.copy()
        a2[index] = value
        t[index] = value
        np.testing.assert_array_equal(t.numpy(), a2, str(index))
        np.testing.assert_array_equal(before.numpy(), a, "what was asked for before sees the old contents")

    def test_random_indices(self):
        compared = 0
        for i in range(150):
            shape = tuple(RNG.integers(1, 5, RNG.integers(1, 5)))
            index = index_of(shape)
            picked = np.zeros(shape)[index]
            value = np.asarray(RNG.integers(-99, 99, picked.shape), np.float32)
            for axis in range(value.ndim):  # some axes are broadcast
                if RNG.random() < 0.25 and value.shape[axis]:
                    value = value.take([0], axis)
            if RNG.random() < 0.3:
                value = value.reshape(value.shape[1:]) if value.ndim and value.shape[0] == 1 else np.float32(7)
            self.both(shape, index, value, realized=i % 2)
            compared += 1
        self.assertGreater(compared, 90)

    def test_numbers_lists_and_casts(self):
        self.both((3, 4), (1, 2), 5)
        self.both((3, 4), 1, [1, 2, 3, 4])
        self.both((3, 4), (slice(None), -1), 2.75, np.int32)
        self.both((3, 4), (slice(None), -1), True, np.float64)
        self.both((3, 4), Ellipsis, np.arange(12).reshape(3, 4))
        self.both((), (), 3)
        self.both((5,), slice(4, 0, -2), [1, 2])
        self.both((5,), slice(3, 3), [])
        self.both((5,), slice(3, 3), 1)
        self.both((2, 3), (0,), np.ones((1, 1, 3)))  # axes of one in front are dropped
        for dtype in ("bool", "int8", "uint16", "int64", "uint64", "float16", "float64"):
            self.both((4, 3), (ROWS, slice(None, 2)), RNG.integers(0, 2, (3, 2)), dtype)
        t = tuff.zeros(2, dtype="int64")
        t[0] = 2**53 + 1
        t[1] = -2**62
        self.assertEqual(t.tolist(), [2**53 + 1, -2**62])
        t = tuff.zeros(2, dtype="bfloat16")
        t[1] = 1.5
        self.assertEqual(t.tolist(), [0, 1.5])

    def test_the_last_of_equal_positions_counts(self):
        self.both((4,), [1, 1, 3, 1], [1, 2, 3, 4])
        self.both((4, 3), (ROWS, [1, 1, 1]), [7, 8, 9])

    def test_masks(self):
        a = RNG.uniform(-1, 1, (4, 3))
        rows = [True, False, True, True]
        self.both((4, 3), a > 0, 0)
        self.both((4, 3), a > 0, np.arange((a > 0).sum()))
        self.both((4, 3), np.array(rows), np.arange(3))
        self.both((4, 3), rows, np.arange(9).reshape(3, 3))
        self.both((4, 3), rows, np.arange(3).reshape(3, 1))
        self.both((2, 4, 3), (slice(None), rows), np.arange(6).reshape(2, 1, 3))
        self.both((2, 4, 3), (0, rows), np.arange(3))
        self.both((2, 4, 3), (slice(None, None, -1), a > 0), -1)
        self.both((4, 3), np.zeros((4, 3), bool), 5)
        self.both((4, 3), np.zeros((4, 3), bool), [])

    def test_in_place_operators(self):
        a = np.arange(12, dtype=np.float32).reshape(3, 4)
        t = tuff.tensor(a).realize()
        t[1] += 10
        t[:, ::2] *= 2
        t[ROWS] -= 1
        a[1] += 10
        a[:, ::2] *= 2
        a[ROWS] -= 1
        np.testing.assert_array_equal(t.numpy(), a)

    def test_memory_is_written(self):
        a = np.zeros((2, 3), np.float32)
        t = tuff.from_blob(a)
        address = t.data_ptr()
        t[1, 1:] = [4, 5]
        t.realize()
        tuff.synchronize()
        np.testing.assert_array_equal(a, [[0, 0, 0], [0, 4, 5]])
        self.assertEqual(t.data_ptr(), address)
        part = t[0]
        part[1] = 9
        t.realize()
        tuff.synchronize()
        np.testing.assert_array_equal(a, [[0, 9, 0], [0, 4, 5]])
        self.assertEqual(part.tolist(), [0, 9, 0])

    def test_a_copy_with_something_replaced(self):
        t = tuff.zeros(3).realize()
        u = t.index_put(1, 5)
        v = t.index_put((slice(None, 2),), tuff.tensor([1, 2]))
        self.assertEqual((t.tolist(), u.tolist(), v.tolist()), ([0, 0, 0], [0, 5, 0], [1, 2, 0]))

    def test_inside_a_jit(self):
        cache = tuff.zeros((3, 2)).realize()

        @tuff.jit
        def step(x, row):
            cache[row] = x
            kept = cache * 1
            kept[kept > 2] = 2
            return kept
        for i in range(5):
            out = step(tuff.full((1, 2), float(i)).realize(), tuff.tensor([i % 3]).realize())
            self.assertEqual(out.tolist()[i % 3], [min(i, 2)] * 2)
        self.assertEqual(cache.tolist(), [[3, 3], [4, 4], [2, 2]])

    def test_a_slice_whose_ends_vary(self):
        cache = tuff.zeros((20, 2)).realize()
        want = np.zeros((20, 2), np.float32)

        @tuff.jit(dynamic=[tuff.DynamicAxis(0, 0, "n", 1, 20)])
        def step(seen, row):
            n = seen.shape[0]
            cache[n - 1:n] = row
            return cache[:n].sum(0)
        for i in range(20):
            at = 7 * i % 20
            want[at] = i
            got = step(tuff.zeros(at + 1).realize(), tuff.full((1, 2), float(i)).realize())
            self.assertEqual(got.tolist(), want[:at + 1].sum(0).tolist())
        np.testing.assert_array_equal(cache.numpy(), want)

    def test_gradients(self):
        x = tuff.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        v = tuff.tensor([5.0, 6.0], requires_grad=True)
        y = x * 2
        y[::2] = v * 3
        (y * tuff.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
        self.assertEqual((x.grad.tolist(), v.grad.tolist()), ([0, 20, 0, 2000], [3, 300]))

        x.grad = v.grad = None
        y = x * 2
        y[[1, 3, 1]] = tuff.cat([v, v[:1]]) * 3  # the first of them is overwritten
        (y * tuff.tensor([1.0, 10.0, 100.0, 1000.0])).sum().backward()
        self.assertEqual((x.grad.tolist(), v.grad.tolist()), ([2, 0, 200, 0], [30, 3000]))

        x.grad = v.grad = None
        y = x * 2
        y[x > 2.5] = v[0]
        y.sum().backward()
        self.assertEqual((x.grad.tolist(), v.grad.tolist()), ([2, 2, 0, 0], [2, 0]))

        memory = tuff.zeros(3).realize()
        memory[1] = v.sum()
        v.grad = None
        (memory * 4).sum().backward()
        self.assertEqual(v.grad.tolist(), [4, 4])

    def test_refused(self):
        w = tuff.ones(3, requires_grad=True)
        with self.assertRaisesRegex(tuff.InvalidArgument, "requires_grad.*NoGradGuard"):
            w[0] = 2
        t = tuff.zeros((3, 4))
        for index, value in [(0, [1, 2]), (slice(None), np.zeros((2, 4))), (ROWS, np.zeros((2, 4))), ((0, 0), [1, 2]),
                             (slice(0, 0), [1, 2])]:
            with self.assertRaises(tuff.ShapeError, msg=str(index)):
                t[index] = value
        with self.assertRaises(tuff.IndexError):
            t[5] = 1
        with self.assertRaises(TypeError):
            t["a"] = 1
        with self.assertRaises(TypeError):
            t[0] = "a"
        b = tuff.from_blob(b"\0\1\2")
        with self.assertRaisesRegex(tuff.InvalidArgument, "read-only"):
            b[0] = 1


class NoGrad(unittest.TestCase):
    def test_results_have_no_history(self):
        x = tuff.tensor([1.0, 2.0], requires_grad=True)
        self.assertTrue(tuff.is_grad_enabled())
        with tuff.no_grad():
            self.assertFalse(tuff.is_grad_enabled())
            y = x * x
            with tuff.no_grad():
                z = x.reshape(2, 1)
            self.assertFalse(tuff.is_grad_enabled())
        self.assertTrue(tuff.is_grad_enabled())
        (x * 3 + y + z.reshape(2)).sum().backward()
        self.assertEqual(x.grad.tolist(), [3, 3])

    def test_an_error_leaves_it(self):
        with self.assertRaises(ZeroDivisionError):
            with tuff.no_grad():
                1 / 0
        self.assertTrue(tuff.is_grad_enabled())

    def test_as_a_decorator(self):
        x = tuff.ones(2, requires_grad=True)

        @tuff.no_grad()
        def doubled(t, *, by=2):
            """Of a text."""
            return t * by
        self.assertEqual((doubled.__name__, doubled.__doc__), ("doubled", "Of a text."))
        (doubled(x, by=5) + x).sum().backward()
        self.assertEqual(x.grad.tolist(), [1, 1])

    def test_parameters_may_be_written(self):
        layer = tuff.nn.Linear(3, 2)
        x = tuff.ones((1, 3))
        layer(x).sum().backward()
        with tuff.no_grad():
            layer.weight[0] = 0
            layer.bias[:] = layer.bias - 0.5 * layer.bias.grad
        self.assertTrue(layer.weight.requires_grad)
        self.assertEqual(layer.weight.tolist()[0], [0, 0, 0])
        layer.weight.grad = None
        layer(x).sum().backward()
        self.assertEqual(layer.weight.grad.tolist(), [[1, 1, 1]] * 2)

    def test_other_threads_are_left_alone(self):
        import threading
        seen = []
        with tuff.no_grad():
            thread = threading.Thread(target=lambda: seen.append(tuff.is_grad_enabled()))
            thread.start()
            thread.join()
        self.assertEqual(seen, [True])

    def test_views_share_the_memory(self):
        t = tuff.zeros((2, 2)).realize()
        with tuff.no_grad():
            v = t.reshape(4)
            self.assertEqual(v.data_ptr(), t.data_ptr())


if __name__ == "__main__":
    unittest.main()
