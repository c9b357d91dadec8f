"""Functions of Python with gradients of their own, checkpoints, gradients of functions, autocast."""
import gc
import threading
import unittest
import weakref

import numpy as np

import tuff
from tuff import amp, autograd


class Values(unittest.TestCase):
    def test_item_before_backward(self):
        w, x = tuff.ones(3, 3).realize().requires_grad_(), tuff.arange(6).reshape(2, 3).cast(tuff.float32).realize()
        h = (x @ w).tanh()
        str(h)
        loss = (h * h).sum()
        loss.item()
        loss.backward()
        again = (x @ w).tanh()
        np.testing.assert_allclose(w.grad.numpy(), (again * again).sum().gradient([w])[0].numpy(), rtol=1e-6)


class Losses(unittest.TestCase):
    def test_linear_cross_entropy(self):
        import tuff.nn.functional as F
        tuff.manual_seed(3)
        x = tuff.randn(20, 6).realize().requires_grad_()
        w, b = tuff.randn(9, 6).realize().requires_grad_(), tuff.randn(9).realize()
        target = tuff.arange(20) % 9
        want = F.linear(x, w, b).cross_entropy(target, label_smoothing=0.1)
        got = F.linear_cross_entropy(x, w, target, linear_bias=b, label_smoothing=0.1, rows_at_once=7)
        for mine, theirs in zip(got.gradient([x, w]), want.gradient([x, w])):
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=1e-6)
        self.assertAlmostEqual(got.item(), want.item(), 5)
        with self.assertRaisesRegex(IndexError, "linear_cross_entropy.* 9"):
            F.linear_cross_entropy(x, w, tuff.tensor([9] * 20), rows_at_once=7).item()

    def test_a_scan_that_computes_nothing_ahead(self):
        w, x = tuff.randn(4, 4).realize(), tuff.randn(5, 4).realize()

        def step(h, row):
            h = (h + row @ w).tanh()
            return h, h
        ahead, by_step = (tuff.scan(step, tuff.zeros(4), x, ahead=a)[1].numpy() for a in (True, False))
        np.testing.assert_allclose(ahead, by_step, atol=1e-6)


class Scaled(autograd.Function):
    """(x * factor, x), whose gradient by x is 100 g of the first and g of the second."""
    calls = 0

    @staticmethod
    def forward(ctx, x, factor, *, shift=0):
        ctx.factor = factor
        ctx.save_for_backward(x)
        return x * factor + shift, x

    @staticmethod
    def backward(ctx, g, h):
        Scaled.calls += 1
        x, = ctx.saved_tensors
        assert ctx.needs_input_grad == (True, False) and ctx.factor == 3
        return g * 100 + h * x, None


class Exp(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Functions(unittest.TestCase):
    def test_results_and_gradients(self):
        x = tuff.tensor([1.0, 2.0], requires_grad=True)
        y, same = Scaled.apply(x, 3, shift=1)
        self.assertEqual((y.tolist(), same.tolist()), ([4, 7], [1, 2]))
        y, same = Scaled.apply(x, 3, shift=1)
        (y + same * 10).sum().backward()
        self.assertEqual(x.grad.tolist(), [110, 120])
        self.assertEqual(Scaled.calls, 2)

    def test_gradients_of_gradients(self):
        x = tuff.tensor([0.5, -1.0], requires_grad=True)
        y = Exp.apply(x)
        self.assertIsInstance(y, tuff.Tensor)
        first, = y.gradient([x])
        second, = first.gradient([x])
        np.testing.assert_allclose(second.numpy(), np.exp([0.5, -1]), rtol=1e-6)

    def test_errors(self):
        x = tuff.tensor([1.0, 2.0])

        def function(forward, backward):
            return type("Own", (autograd.Function,), {"forward": staticmethod(forward),
                                                      "backward": staticmethod(backward)}).apply
        self.assertRaisesRegex(ValueError, "gave 2 gradients for 1 arguments",
                               function(lambda ctx, x: x * 1, lambda ctx, g: (g, g)), x)
        self.assertRaises(tuff.ShapeError, function(lambda ctx, x: x * 1, lambda ctx, g: g[0]), x)
        self.assertRaisesRegex(ValueError, "gives int", function(lambda ctx, x: 3, lambda ctx, g: g), x)
        self.assertRaisesRegex(ValueError, "a tensor is read that stands for others",
                               function(lambda ctx, x: x * 1, lambda ctx, g: g * g.sum().item()), x)
        self.assertRaises(ZeroDivisionError, function(lambda ctx, x: x * 1, lambda ctx, g: g * (1 / 0)), x)
        self.assertRaises(NotImplementedError, autograd.Function.apply, x)
        with tuff.no_grad():
            self.assertEqual(function(lambda ctx, x: x * 2, None)(x).tolist(), [2, 4])

    def test_nothing_is_kept(self):
        class Big:
            pass
        held = []

        class Holds(autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.big = Big()
                held.append(weakref.ref(ctx.big))
                y = x * 2
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx, g):
                return g * ctx.saved_tensors[0]
        x = tuff.tensor([1.0], requires_grad=True)
        y = Holds.apply(x)
        gc.collect()
        self.assertIsNone(held[0]())  # graphs hold no objects of Python
        self.assertEqual(y.gradient([x])[0].tolist(), [2])

    def test_inside_of_a_jit(self):
        x = tuff.tensor([1.0, 2.0])

        @tuff.jit
        def step(x):
            y = tuff.checkpoint(lambda z: Exp.apply(z) * 2, x)
            return y.gradient([x])[0]
        for i in range(4):
            got = step((x + i).realize()).numpy()
            np.testing.assert_allclose(got, 2 * np.exp([1 + i, 2 + i]), rtol=1e-6)
        self.assertTrue(step.captured)


class Checkpoints(unittest.TestCase):
    def test_of_layers(self):
        tuff.manual_seed(4)
        block = tuff.nn.Sequential(tuff.nn.Linear(4, 16), tuff.nn.Dropout(0.5), tuff.nn.GELU(), tuff.nn.Linear(16, 4))
        x = tuff.rand([8, 4]).realize()
        found = []
        for again in (False, True):
            for p in block.parameters():
                p.grad = None
            tuff.manual_seed(6)
            with tuff.TrainingMode():
                y = tuff.checkpoint(block, x) if again else block(x)
                y.square().sum().backward()
            found.append([p.grad.numpy() for p in block.parameters()])
        for a, b in zip(*found):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)

    def test_other_arguments_and_results(self):
        x = tuff.tensor([1.0, 2.0], requires_grad=True)
        a, b = tuff.checkpoint(lambda x, n, *, shift: (x.exp() * n, x + shift), x, 3, shift=5)
        g, = (a * b).gradient([x])
        self.assertEqual(b.tolist(), [6, 7])
        np.testing.assert_allclose(g.numpy(), np.exp([1, 2]) * 3 * np.array([7, 8]), rtol=1e-5)
        self.assertRaisesRegex(ValueError, "checkpoint: the function gives NoneType", tuff.checkpoint, lambda x: None, x)


class Derivatives(unittest.TestCase):
    def test_all(self):
        x, w = tuff.tensor([1.0, 2.0]), tuff.tensor([3.0, 5.0])
        y, (gx, gw) = autograd.vjp(lambda x, w: x * x * w, (x, w), tuff.tensor([1.0, 10.0]))
        self.assertEqual((y.tolist(), gx.tolist(), gw.tolist()), ([3, 20], [6, 200], [1, 40]))
        y, g = autograd.vjp(lambda x: (x * x).sum(), x)
        self.assertEqual((y.item(), g.tolist()), (5, [2, 4]))
        (y, z), (ty, tz) = autograd.jvp(lambda x: (x * x, x[0] * x[1]), x, tuff.tensor([1.0, 0.5]))
        self.assertEqual((ty.tolist(), tz.tolist()), ([2, 2], 2.5))
        self.assertEqual(autograd.jacrev(lambda x: x * x, x).tolist(), [[2, 0], [0, 4]])
        for jacobian in (autograd.jacrev, autograd.jacfwd):
            jx, jw = jacobian(lambda x, w: x * w, (x, w))
            self.assertEqual((jx.tolist(), jw.tolist()), ([[3, 0], [0, 5]], [[1, 0], [0, 2]]))
            self.assertEqual(jacobian(lambda x: x[0] * x, x).tolist(), [[2, 0], [2, 1]])
        self.assertEqual(autograd.hessian(lambda x: x[0] * x[0] * x[1], x).tolist(), [[4, 2], [2, 0]])
        self.assertRaises(tuff.ShapeError, autograd.hessian, lambda x: x, x)

    def test_under_the_names_of_torch_func(self):
        func, x, w = tuff.func, tuff.tensor([1.0, 2.0]), tuff.tensor([3.0, 5.0])

        def weighted(x, w):
            return (x * x * w).sum()
        self.assertEqual(func.grad(weighted)(x, w).tolist(), [6, 20])
        gradients, value = func.grad_and_value(weighted, argnums=(0, -1))(x, w)
        self.assertEqual(([g.tolist() for g in gradients], value.item()), ([[6, 20], [1, 4]], 23))
        self.assertEqual(func.jacrev(lambda x, w: x * w, 1)(x, w).tolist(), [[1, 0], [0, 2]])
        self.assertEqual(func.jacfwd(lambda x, w: x * w, (0, 1))(x, w)[0].tolist(), [[3, 0], [0, 5]])
        self.assertEqual(func.hessian(weighted)(x, w).tolist(), [[6, 0], [0, 10]])
        y, product = func.vjp(lambda x, w: x * w, x, w)
        self.assertEqual((y.tolist(), [g.tolist() for g in product(tuff.tensor([1.0, 10.0]))]), ([3, 10], [[3, 50], [1, 20]]))
        self.assertEqual(func.jvp(lambda x: x * x, (x,), (w,))[1].tolist(), [6, 20])
        self.assertEqual(func.vmap(func.grad(weighted), (0, None))(tuff.ones((3, 2)), w).tolist(), [[6, 10]] * 3)
        self.assertRaisesRegex(tuff.InvalidArgument, "argnums is 2", func.grad(weighted, 2), x, w)


class Scan(unittest.TestCase):
    def test_trees(self):
        x = tuff.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

        def step(carry, row):
            total, last = carry["total"], carry["last"]
            return {"total": total + row["x"], "last": row["x"]}, (total * 2, None)
        start = {"total": tuff.zeros([2]), "last": tuff.zeros([2])}
        carry, (doubled, nothing) = tuff.scan(step, start, {"x": x})
        self.assertEqual((carry["total"].tolist(), carry["last"].tolist()), ([9, 12], [5, 6]))
        self.assertEqual((doubled.tolist(), nothing), ([[0, 0], [2, 4], [8, 12]], None))
        carry, (doubled, _) = tuff.scan(step, start, {"x": x}, reverse=True)
        self.assertEqual((carry["last"].tolist(), doubled.tolist()), ([1, 2], [[16, 20], [10, 12], [0, 0]]))

    def test_length_and_gradients(self):
        w = tuff.tensor(2.0, requires_grad=True)
        last, nothing = tuff.scan(lambda h, _: (h * w, None), tuff.tensor(1.0), length=5)
        last.backward()
        self.assertEqual((last.item(), nothing, w.grad.item()), (32, None, 80))

    def test_errors(self):
        h = tuff.zeros([2])
        self.assertRaisesRegex(ValueError, "say how many steps", tuff.scan, lambda h, _: (h, None), h)
        self.assertRaisesRegex(ValueError, "after a step", tuff.scan, lambda h, _: (h.sum(), None), h, length=2)
        self.assertRaisesRegex(ValueError, "y has a int: give a tensor", tuff.scan, lambda h, _: (h, 5), h, length=2)
        self.assertRaisesRegex(ZeroDivisionError, "division", tuff.scan, lambda h, _: (h, 1 / 0), h, length=2)


class Vmap(unittest.TestCase):
    def test_slices(self):
        x, w = tuff.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), tuff.tensor([10.0, 100.0])
        self.assertEqual(tuff.vmap(lambda v, w: (v * w).sum(), (0, None))(x, w).tolist(), [210, 430, 650])
        self.assertEqual(tuff.vmap(lambda v, n: v * n)(x, 2).tolist(), [[2, 4], [6, 8], [10, 12]])
        a, b = tuff.vmap(lambda v: (v.flip(), v.max()), 1, -1)(x)
        self.assertEqual((a.tolist(), b.tolist()), ([[5, 6], [3, 4], [1, 2]], [5, 6]))
        gradients = tuff.vmap(lambda v: (v ** 3).sum().gradient([v])[0])(x)
        self.assertEqual(gradients.tolist(), [[3, 12], [27, 48], [75, 108]])
        self.assertRaises(ValueError, tuff.vmap(lambda v: v, None), x)
        self.assertRaises(ValueError, tuff.vmap(lambda v: v, (0, 0)), x)
        self.assertRaisesRegex(ValueError, "a tensor is read that stands for others", tuff.vmap(lambda v: v * v[0].item()), x)


    def test_functions_that_write_in_place(self):
        """What a function makes of its arguments is not what its gradients are asked for."""
        def tripled(v):
            v.mul_(3)
            return v

        class Tripled(autograd.Function):
            @staticmethod
            def forward(ctx, v):
                return v * 2

            @staticmethod
            def backward(ctx, g):
                return tripled(g)

        x = tuff.tensor([1.0, 2.0], requires_grad=True)
        Tripled.apply(x).sum().backward()
        self.assertEqual(x.grad.tolist(), [3, 3])
        x = x.detach()
        self.assertEqual(tuff.vmap(tripled)(x).tolist(), [3, 6])
        self.assertEqual(autograd.vjp(lambda v: (tripled(v) ** 2).sum(), x)[1].tolist(), [18, 36])
        self.assertEqual(autograd.jvp(tripled, x, tuff.tensor([1.0, 10.0]))[1].tolist(), [3, 30])
        self.assertEqual(autograd.jacrev(tripled, x).tolist(), [[3, 0], [0, 3]])
        self.assertEqual(autograd.hessian(lambda v: (tripled(v) ** 2).sum(), x).tolist(), [[18, 0], [0, 18]])
        self.assertEqual(x.tolist(), [1, 2])

    def test_gradients_in_closed_form(self):
        """What linalg's gradients are made of counts matrices: vmap makes it more of them."""
        a = np.random.default_rng(1).standard_normal((2, 3, 3)) + 4 * np.eye(3)
        inverses = tuff.vmap(tuff.linalg.inv)(tuff.tensor(a))
        np.testing.assert_allclose(inverses.numpy(), np.linalg.inv(a), rtol=1e-12)

        def total(m):
            return (tuff.linalg.inv(m) * tuff.tensor(a[1])).sum()

        step = 1e-6 * np.arange(9).reshape(3, 3)
        hessian = autograd.hessian(total, tuff.tensor(a[0])).numpy()
        ahead, behind = (autograd.jacrev(total, tuff.tensor(a[0] + s)).numpy() for s in (step, -step))
        np.testing.assert_allclose(np.tensordot(hessian, step, 2), (ahead - behind) / 2, rtol=1e-5, atol=1e-14)


class Autocast(unittest.TestCase):
    def test_scopes(self):
        x = tuff.rand([2, 3])
        self.assertIsNone(amp.autocast_dtype())
        with amp.autocast():
            self.assertEqual((x @ x.T).dtype, tuff.float16)
            with amp.autocast(tuff.bfloat16):
                self.assertEqual((x @ x.T).dtype, tuff.bfloat16)
                self.assertEqual((x @ x.T).softmax().dtype, tuff.float32)
            with amp.autocast(enabled=False):
                self.assertEqual((x @ x.T).dtype, tuff.float32)
            seen = []
            thread = threading.Thread(target=lambda: seen.append(amp.autocast_dtype()))
            thread.start()
            thread.join()
            self.assertEqual(seen, [None])
        # Factorizations and transforms are as they are outside, and so are their gradients.
        a = tuff.tensor(np.random.default_rng(2).standard_normal((40, 40)) + 8 * np.eye(40), dtype=tuff.float32)
        results = []
        for enabled in (False, True):
            with amp.autocast(enabled=enabled):
                g = tuff.tensor(a.numpy(), requires_grad=True)
                inverse = tuff.linalg.inv(g)
                inverse.square().sum().backward()
                results.append([inverse.numpy(), g.grad.numpy(), tuff.fft.rfft(a).numpy()])
        for outside, inside in zip(*results, strict=True):
            self.assertEqual(outside.dtype, inside.dtype)
            np.testing.assert_array_equal(outside, inside)
        self.assertEqual(amp.autocast("bfloat16")(lambda: (x @ x.T).dtype)(), tuff.bfloat16)
        self.assertIsNone(amp.autocast_dtype())
        self.assertRaises(ValueError, amp.autocast, tuff.float32)
        with self.assertRaises(KeyError), amp.autocast():
            raise KeyError
        self.assertIsNone(amp.autocast_dtype())


if __name__ == "__main__":
    unittest.main()
