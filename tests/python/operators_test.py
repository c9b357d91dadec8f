"""Operators as NumPy has them, on random operands; in place, with arrays of others; what Python does
with any object: copies, pickles, formats, looks for an element."""
import copy
import operator
import pickle
import unittest

import numpy as np

import tuff

RNG = np.random.default_rng(11)
ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod")
BITS = ("and_", "or_", "xor", "lshift", "rshift")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
SHAPES = (((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2)), ((0, 3), (3,)), ((4, 1, 2), (3, 1)))


def operands(dtype, shape):
    if dtype.kind == "f":
        a = np.asarray(RNG.uniform(-4, 4, shape)).astype(dtype)
        return np.where(np.abs(a) < 0.1, dtype.type(0.5), a).astype(dtype)
    return np.asarray(RNG.integers(1, 6, shape)).astype(dtype)


class Operators(unittest.TestCase):
    def same(self, got, want, label):
        self.assertIsInstance(got, tuff.Tensor, label)
        self.assertEqual(got.shape, want.shape, label)
        if want.dtype == bool:
            self.assertEqual(got.dtype, bool, label)
        np.testing.assert_allclose(got.numpy().astype(np.float64), want.astype(np.float64), rtol=3e-5, atol=1e-5,
                                   err_msg=label)

    def test_random_operands(self):
        for name in ARITHMETIC + BITS + COMPARISONS:
            f = getattr(operator, name)
            for kind in (np.float32, np.int32):
                dtype = np.dtype(kind)
                if name in BITS and dtype.kind == "f":
                    continue
                left, right = SHAPES[RNG.integers(0, len(SHAPES))]
                a, b = operands(dtype, left), operands(dtype, right)
                label = f"{name} {dtype} {left} {right}"
                x, y = tuff.tensor(a), tuff.tensor(b)
                want = f(a, b)
                for got in (f(x, y), f(x, b), f(a, y)):
                    self.same(got, want, label)
                n = 3 if dtype.kind == "i" else 2.5
                self.same(f(x, n), np.asarray(f(a, n)), label)
                self.same(f(n, x), np.asarray(f(n, a)), label)

    def test_products_and_powers(self):
        a, b = operands(np.dtype(np.float32), (2, 3)), operands(np.dtype(np.float32), (3, 4))
        for got in (tuff.tensor(a) @ tuff.tensor(b), tuff.tensor(a) @ b, a @ tuff.tensor(b)):
            self.same(got, a @ b, "@")
        p = np.abs(a)
        self.same(tuff.tensor(p) ** 2, p ** 2, "**")
        self.same(2 ** tuff.tensor(p), 2 ** p, "r**")
        self.same(tuff.tensor(p) ** tuff.tensor(p), p ** p, "**")
        for got, want in zip(divmod(tuff.tensor(a), 2), divmod(a, 2)):
            self.same(got, want, "divmod")
        self.same(np.float32(2) * tuff.tensor(a), 2 * a, "scalar of NumPy")

    def test_operands_of_other_kinds(self):
        x = tuff.ones(3)
        for other in (None, "a", object(), {}):
            self.assertRaises(TypeError, operator.add, x, other)
            self.assertRaises(TypeError, operator.add, other, x)
            self.assertIs(x == other, False)
        self.assertRaises(tuff.ShapeError, operator.add, x, np.ones(4, np.float32))
        self.assertRaises(TypeError, np.exp, x)


class InPlace(unittest.TestCase):
    def test_as_numpy(self):
        for name in ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"):
            for realized in (False, True):
                a = operands(np.dtype(np.float32), (2, 3))
                a = np.abs(a)
                x = tuff.tensor(a.copy())
                x = x.realize() if realized else (x * 2) / 2
                alias, before = x, x + 1
                x = getattr(operator, name)(x, 2)
                a2 = getattr(operator, name)(a.copy(), np.float32(2))
                self.assertIs(x, alias)
                np.testing.assert_allclose(x.numpy(), a2, rtol=1e-5)
                np.testing.assert_allclose(before.numpy(), a + 1, rtol=1e-5)
        i = tuff.tensor([1, 2, 6])
        for name in ("iand", "ior", "ixor", "ilshift", "irshift"):
            a = i.numpy().copy()
            self.assertEqual(getattr(operator, name)(i, 2).tolist(), getattr(operator, name)(a, 2).tolist())

    def test_shared_memory_is_written(self):
        a = np.arange(4, dtype=np.float32)
        t = tuff.from_blob(a)
        t += 1
        t *= a
        t.realize()
        tuff.synchronize("CPU")
        self.assertEqual(a.tolist(), [1 * 0, 2 * 1, 3 * 2, 4 * 3])

    def test_what_computes_the_same_value_is_apart(self):
        for of in (lambda x: x + 0, lambda x: 0 + x, lambda x: x * 1, lambda x: x // 1, lambda x: +x, abs,
                   lambda x: x | 0, lambda x: x ** 1, lambda x: x - 0, lambda x: x << 0):
            x = tuff.tensor(np.array([1, 2], np.uint32)).realize()
            y = of(x)
            y += 5
            y.realize()
            self.assertEqual((x.tolist(), y.tolist()), ([1, 2], [6, 7]))

    def test_gradients(self):
        p = tuff.tensor([1.0, 2.0], requires_grad=True)
        h = p * 2
        h += p
        h *= h
        h.sum().backward()
        self.assertEqual(p.grad.tolist(), [18, 36])
        with self.assertRaisesRegex(tuff.InvalidArgument, "requires_grad"):
            p += 1
        with tuff.no_grad():
            p -= p.grad * 0.5
        self.assertEqual((p.tolist(), p.requires_grad), ([-8, -16], True))

    def test_what_does_not_fit(self):
        i = tuff.tensor([1, 2])
        with self.assertRaisesRegex(tuff.InvalidArgument, "int32 does not hold the result, which is float32"):
            i += 0.5
        with self.assertRaises(tuff.ShapeError):
            i += tuff.tensor([[1, 2], [3, 4]])
        with self.assertRaises(TypeError):
            i += "a"
        self.assertEqual(i.tolist(), [1, 2])

    def test_within_a_jit(self):
        @tuff.jit
        def f(x):
            y = x + 1
            y *= 2
            return y
        self.assertEqual([f(tuff.tensor([float(k)])).item() for k in range(5)], [2, 4, 6, 8, 10])

    def test_state_within_a_jit(self):
        for realized in (True, False):
            state = tuff.zeros([2])
            if realized:
                state.realize()

            @tuff.jit
            def f(x):
                nonlocal state
                state += x
                return x * 2
            for _ in range(5):
                f(tuff.tensor([1.0, 10.0]))
            self.assertEqual(state.tolist(), [5, 50], realized)


class AnyObject(unittest.TestCase):
    def test_one_element(self):
        z = tuff.tensor(2.5)
        self.assertEqual((float(z), int(z), bool(z), f"{z:.2f}", f"{tuff.tensor(7):>3d}"), (2.5, 2, True, "2.50", "  7"))
        self.assertEqual(f"{z}", str(z))
        self.assertRaisesRegex(TypeError, "format item", format, tuff.ones(2), ".2f")
        self.assertEqual([10, 20][tuff.tensor(1)], 20)
        self.assertRaises(TypeError, operator.index, z)
        for f in (bool, int, float):
            self.assertRaises(tuff.ShapeError, f, tuff.ones(2))

    def test_containers(self):
        x = tuff.tensor([[1.0, 2.0], [3.0, 4.0]])
        self.assertTrue(3.0 in x and 9 not in x and "a" not in x)
        self.assertEqual((len(x), [r.tolist() for r in x]), (2, [[1, 2], [3, 4]]))
        self.assertRaises(TypeError, len, tuff.tensor(1))
        self.assertRaises(TypeError, iter, tuff.tensor(1))
        self.assertEqual(({x: 1}[x], hash(x) == hash(x), len({x, x, x + 1})), (1, True, 2))

    def test_copies(self):
        for of in (copy.copy, copy.deepcopy):
            x = tuff.tensor([1.0, 2.0], requires_grad=True)
            y = of(x)
            self.assertTrue(y.requires_grad)
            with tuff.no_grad():
                y += 1
            (y * y).sum().backward()
            self.assertEqual((x.tolist(), y.tolist(), x.grad, y.grad.tolist()), ([1, 2], [2, 3], None, [4, 6]))
        both = [x, x]
        twice = copy.deepcopy(both)
        self.assertIs(twice[0], twice[1])

    def test_pickles(self):
        for t in (tuff.bool_, tuff.uint8, tuff.int64, tuff.float16, tuff.bfloat16, tuff.float64):
            x = tuff.tensor([[0, 1, 1]]).cast(t)
            y = pickle.loads(pickle.dumps(x))
            self.assertEqual((y.dtype, y.device, y.tolist()), (t, x.device, x.tolist()))
            self.assertIs(pickle.loads(pickle.dumps(t)), t)
        empty = pickle.loads(pickle.dumps(tuff.zeros((0, 3))))
        self.assertEqual(empty.shape, (0, 3))
        self.assertTrue(pickle.loads(pickle.dumps(tuff.tensor([1.0], requires_grad=True))).requires_grad)
        tail = tuff.arange(10).realize()[7:]
        self.assertLess(len(pickle.dumps(tail)), 400)
        self.assertEqual(pickle.loads(pickle.dumps(tail)).tolist(), [7, 8, 9])

    def test_printing(self):
        self.assertLess(len(repr(tuff.zeros((1000, 1000)))), 2000)
        self.assertIn("shape=(0, 3)", repr(tuff.zeros((0, 3))))
        self.assertIn("tensor(2.5", repr(tuff.tensor(2.5)))

    def test_version(self):
        self.assertRegex(tuff.__version__, r"^\d+\.\d+\.\d+$")


if __name__ == "__main__":
    unittest.main()
