"""Gradients, layers, optimizers, Jit, contexts, errors and interrupts."""
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import weakref

import numpy as np

import tuff
from tuff import nn, optim


class Gradients(unittest.TestCase):
    def test_backward(self):
        x = tuff.tensor([1.0, 2.0, 3.0], requires_grad=True)
        self.assertIsNone(x.grad)
        (x * x).sum().backward()
        self.assertEqual(x.grad.tolist(), [2, 4, 6])
        (x * 3).backward(tuff.tensor([1.0, 0.0, 2.0]))
        self.assertEqual(x.grad.tolist(), [5, 4, 12])
        x.grad = None
        self.assertIsNone(x.grad)
        x.set_grad(tuff.ones(3))
        self.assertEqual(x.grad.tolist(), [1, 1, 1])
        with self.assertRaises(tuff.ShapeError):
            x.grad = tuff.ones(4)
        with self.assertRaises(tuff.InvalidArgument):
            tuff.arange(3).requires_grad = True

    def test_gradient_of_gradient(self):
        x, y = tuff.tensor(2.0), tuff.tensor(1.0)
        first, none = (x * x * x).gradient([x, y])
        self.assertIsNone(none)
        self.assertEqual(first.gradient([x])[0].item(), 12)

    def test_assign(self):
        x = tuff.tensor([1.0, 2.0])
        before = x * 10
        self.assertIsInstance(x.assign(x + 1), tuff.Tensor)
        self.assertEqual((x.tolist(), before.tolist()), ([2, 3], [10, 20]))
        self.assertRaises(tuff.ShapeError, x.assign, tuff.ones(3))
        self.assertRaises(TypeError, x.assign, None)


class Layers(unittest.TestCase):
    def test_values(self):
        x = tuff.randn([4, 6])
        linear = nn.Linear(6, 3)
        np.testing.assert_allclose(linear(x).numpy(),
                                   x.numpy() @ linear.weight.numpy().T + linear.bias.numpy(),
                                   rtol=1e-5, atol=1e-6)
        self.assertIsNone(nn.Linear(6, 3, bias=False).bias)
        self.assertEqual(nn.Linear(tuff.ones((2, 6)))(tuff.ones((1, 6))).tolist(), [[6, 6]])
        self.assertEqual(nn.Conv2d(2, 4, 3, padding=1, stride=(2, 1))(tuff.ones((1, 2, 8, 8))).shape,
                         (1, 4, 4, 8))
        self.assertEqual(nn.Embedding(10, 4)(tuff.tensor([[1, 2, 3]])).shape, (1, 3, 4))
        for layer in (nn.LayerNorm(6), nn.RMSNorm(6), nn.BatchNorm(6), nn.Dropout(0.3)):
            self.assertEqual(layer(x).shape, (4, 6))
        attention = nn.MultiHeadAttention(8, 2)
        self.assertEqual(attention(tuff.randn([1, 5, 8]), is_causal=True).shape, (1, 5, 8))
        self.assertEqual(attention.out_proj.weight.shape, (8, 8))
        self.assertRaises(tuff.InvalidArgument, nn.MultiHeadAttention, 8, 3)
        self.assertRaises(ValueError, nn.Dropout, 2)
        self.assertEqual(nn.Linear(2, 2, dtype="float16").weight.dtype, "float16")

    def test_states(self):
        model = nn.Sequential(nn.Linear(3, 4), lambda x: x.relu(), nn.BatchNorm(4))
        state = model.state_dict()
        self.assertEqual(list(state), ["0.weight", "0.bias", "2.weight", "2.bias",
                                       "2.running_mean", "2.running_var"])
        self.assertEqual(len(model.parameters()), 4)
        other = nn.Sequential(nn.Linear(3, 4), tuff.Tensor.relu, nn.BatchNorm(4))
        nn.load_state_dict(other.state_dict(), state)
        x = tuff.randn([5, 3])
        self.assertEqual(model(x).tolist(), other(x).tolist())
        self.assertEqual((len(model), model[0].weight.shape), (3, (4, 3)))
        self.assertRaisesRegex(ValueError, "2.bias", nn.load_state_dict, state,
                               {k: v for k, v in state.items() if k != "2.bias"})
        self.assertRaises(tuff.ShapeError, nn.load_state_dict, {"a": tuff.ones(2)},
                          {"a": tuff.ones(3)})

    def test_training_mode(self):
        x = tuff.ones(1000)
        self.assertFalse(tuff.training())
        with tuff.TrainingMode():
            self.assertTrue(tuff.training())
            with tuff.TrainingMode(False):
                self.assertFalse(tuff.training())
            self.assertTrue((x.dropout(0.5) == 0).any())
        self.assertFalse(tuff.training())
        self.assertFalse((x.dropout(0.5) == 0).any())
        with self.assertRaises(KeyError), tuff.TrainingMode():
            raise KeyError
        self.assertFalse(tuff.training())


class Optimizers(unittest.TestCase):
    def test_scaler(self):
        x = tuff.tensor([1.0, 1.0], requires_grad=True)
        optimizer, scaler = optim.SGD([x], lr=0.5), optim.GradScaler(init_scale=4.0, growth_interval=2)
        for g, wanted, scale in ((1.0, 0.5, 4), (float("inf"), 0.5, 2), (1.0, 0.0, 2), (-2.0, 1.0, 4), (float("nan"), 1.0, 2)):
            loss = (x * g).sum()
            scaler.scale(loss).backward()
            scaler.step(optimizer, [loss])
            self.assertEqual((x.tolist(), scaler.get_scale()), ([wanted] * 2, scale))
        other = optim.GradScaler()
        other.load_state_dict(scaler.state_dict())
        self.assertEqual(other.get_scale(), 2)
        x.grad = tuff.ones(2)
        scaler.unscale_(optimizer)
        self.assertRaises(tuff.InvalidArgument, scaler.unscale_, optimizer)
        self.assertEqual(x.grad.tolist(), [0.5, 0.5])

    def test_averages(self):
        x = tuff.tensor([0.0], requires_grad=True)
        optimizer, average = optim.SGD([x], lr=1.0), optim.AveragedParameters([x], decay=0.5)
        for _ in range(2):
            (x * -2).sum().backward()
            optimizer.step()
            average.update()
        self.assertEqual((x.item(), average.averages[0].item()), (4, 3))
        average.swap()
        self.assertEqual((x.item(), average.averages[0].item()), (3, 4))
        self.assertEqual(sorted(average.state_dict()), ["0", "n_averaged"])

    def test_optimizers_together(self):
        a, b = (tuff.full((2, 2), 1.0, requires_grad=True) for _ in range(2))
        both = optim.OptimizerGroup([optim.Muon([a], lr=0.1), optim.SGD([b], lr=0.5)])  # which nothing else keeps
        gc.collect()
        for _ in range(3):
            both.zero_grad()
            loss = (a.square() + b.square()).sum()
            loss.backward()
            both.step([loss])
        self.assertEqual(b.tolist(), [[0, 0], [0, 0]])
        self.assertLess(a.sum().item(), 4)
        both.load_state_dict(both.state_dict())
        schedules = [optim.ConstantLR(optim.SGD([b], lr=1.0), 0.5, 2)]
        chain = optim.ChainedScheduler(schedules)
        schedules.clear()
        gc.collect()
        chain.step()
        self.assertEqual(chain.get_last_lr(), 0.5)

    def test_steps(self):
        for make in (lambda p: optim.SGD(p, lr=0.1), lambda p: optim.SGD(p, 0.05, momentum=0.9),
                     lambda p: optim.Adam(p, lr=0.3), lambda p: optim.AdamW(p, lr=0.3)):
            x = tuff.tensor([3.0, -2.0], requires_grad=True)
            optimizer = make([x])
            for _ in range(60):
                optimizer.zero_grad()
                loss = (x * x).sum()
                loss.backward()
                optimizer.step([loss])
            self.assertLess(loss.item(), 0.5)
            self.assertEqual(len(optimizer.parameters), 1)
            names = set(optimizer.state_dict()) - {"param_groups.0.lr"}
            self.assertTrue(all(n.startswith("state.0.") for n in names))
            other = make([tuff.tensor([3.0, -2.0], requires_grad=True)])
            other.load_state_dict(optimizer.state_dict())
            for name, value in other.state_dict().items():
                np.testing.assert_array_equal(value.numpy(), optimizer.state_dict()[name].numpy())
            self.assertRaises(tuff.InvalidArgument, other.load_state_dict, {})
        self.assertRaises(tuff.InvalidArgument, optim.SGD, [tuff.ones(2)])
        self.assertRaises(tuff.InvalidArgument, optimizer.__class__, [])

    def test_rates(self):
        def scheduler(make):
            return make(optim.SGD([tuff.ones(1, requires_grad=True)], lr=1.0))
        for make, rates in ((lambda o: optim.StepLR(o, 2, 0.5), [1, 1, 0.5]),
                            (lambda o: optim.LambdaLR(o, lambda step: 1 / (step + 1)), [1, 1 / 2, 1 / 3]),
                            (lambda o: optim.CosineAnnealingLR(o, 2), [1, 0.5, 0]),
                            (lambda o: optim.LinearLR(o, 0.5, total_iters=2), [0.5, 0.75, 1])):
            s = scheduler(make)
            gc.collect()  # the optimizer is held by its schedule
            for step, rate in enumerate(rates):
                self.assertAlmostEqual(s.get_last_lr(), rate)
                self.assertEqual(s.last_step, step)
                s.step()
        self.assertLess(scheduler(lambda o: optim.OneCycleLR(o, 2, 10)).rate(0), 0.1)
        optimizer = optim.SGD([tuff.ones(1, requires_grad=True)], lr=1.0)
        optimizer.set_lr(0.25)
        self.assertEqual((optimizer.lr_value, optimizer.lr.item()), (0.25, 0.25))
        failing = scheduler(lambda o: optim.LambdaLR(o, lambda step: 1 if step < 1 else [][step]))
        self.assertRaises(IndexError, failing.step)

    def test_groups_of_parameters(self):
        a, b = (nn.Parameter(tuff.ones(2)) for _ in range(2))
        optimizer = optim.AdamW([{"params": [a]}, {"params": [b], "lr": 0.5, "betas": (0.5, 0.9)}], lr=0.1)
        groups = optimizer.param_groups
        self.assertEqual([dict(g)["lr"] for g in groups], [0.1, 0.5])
        self.assertEqual([g["params"][0] is not None and g["params"][0].tolist() for g in groups], [[1, 1], [1, 1]])
        groups[0]["lr"] = 0.25
        self.assertEqual(optimizer.lr_values, [0.25, 0.5])
        self.assertIn("lr=0.5", repr(groups[1]))
        with self.assertRaisesRegex(tuff.InvalidArgument, "weight_decay"):
            groups[0]["weight_decay"] = 0
        with self.assertRaisesRegex(tuff.InvalidArgument, "params"):
            del groups[0]["params"]
        with self.assertRaises(KeyError):
            groups[0]["momentum"]
        (a * b).sum().backward()
        optimizer.zero_grad(set_to_none=False)
        self.assertEqual(a.grad.tolist(), [0, 0])
        optimizer.zero_grad()
        self.assertIsNone(a.grad)
        self.assertIs(optim.lr_scheduler.StepLR, optim.StepLR)
        trained = filter(lambda p: p.requires_grad, [a, tuff.ones(1), b])
        self.assertEqual(len(optim.SGD(trained, lr=0.1).parameters), 2)
        self.assertEqual(optim.SGD(iter([{"params": [a], "lr": 0.5}])).lr_values, [0.5])
        self.assertRaisesRegex(TypeError, "params", optim.SGD, iter([3]))

    def test_names_of_dtypes(self):
        x = tuff.tensor([0.0, 1.5, -2.5])
        for name, dtype in (("bool", tuff.bool_), ("double", tuff.float64), ("float", tuff.float32), ("half", tuff.float16),
                            ("int", tuff.int32), ("long", tuff.int64), ("short", tuff.int16)):
            self.assertEqual(getattr(tuff, name), dtype)
            self.assertEqual(getattr(x, name)().dtype, dtype)
        self.assertEqual(x.long().tolist(), [0, 1, -2])
        self.assertEqual((x.bfloat16().dtype, x.cpu().device), (tuff.bfloat16, "CPU"))
        self.assertRaises(AttributeError, getattr, tuff, "float7")

    def test_data(self):
        layer = nn.Linear(2, 2)
        layer.weight.data.uniform_(1, 2)
        self.assertTrue((layer.weight >= 1).all().item())
        layer.weight.data = tuff.zeros(2, 2)
        self.assertEqual(layer.weight.abs().sum().item(), 0)
        self.assertTrue(layer.weight.requires_grad and not layer.weight.data.requires_grad)

    def test_clipping(self):
        x = tuff.tensor([3.0, 4.0], requires_grad=True)
        (x * x / 2).sum().backward()
        self.assertEqual(optim.clip_grad_norm_([x], 1).item(), 5)
        np.testing.assert_allclose(x.grad.numpy(), [0.6, 0.8], rtol=1e-5)
        optim.clip_grad_value_([x], 0.7)
        np.testing.assert_allclose(x.grad.numpy(), [0.6, 0.7], rtol=1e-5)


class Jits(unittest.TestCase):
    def test_replays(self):
        runs = []

        @tuff.jit
        def f(a, b):
            """Doc."""
            runs.append(1)
            return {"sum": a + b, "rest": (a * b, [a - b], None)}
        self.assertEqual((f.__doc__, f.__name__), ("Doc.", "f"))
        for i in range(5):
            r = f(tuff.full(3, i).realize(), b=tuff.ones(3).realize())
            self.assertEqual(r["sum"].tolist(), [i + 1] * 3)
            self.assertEqual(r["rest"][1][0].tolist(), [i - 1] * 3)
            self.assertIsNone(r["rest"][2])
        self.assertEqual(len(runs), 2)
        self.assertTrue(f.captured)
        self.assertEqual(f.stats.replays, 3)
        self.assertGreater(f.stats.kernels, 0)

    def test_results_that_are_held_keep_their_values(self):
        f = tuff.jit(lambda x: x * 2)
        results = [f(tuff.full(3, i).realize()) for i in range(6)]
        self.assertEqual([r.tolist()[0] for r in results], [0, 2, 4, 6, 8, 10])

    def test_recurrent_batches_that_vary_or_are_empty(self):
        layer = tuff.nn.LSTM(4, 6)
        forward = tuff.jit(lambda x: layer(x)[0], dynamic=[tuff.DynamicAxis(0, 1, "batch", 1, 8)])
        for batch in (3, 5, 1):
            x = tuff.tensor(np.random.default_rng(batch).random((5, batch, 4), np.float32))
            np.testing.assert_allclose(forward(x).numpy(), layer(x)[0].numpy(), rtol=1e-5)
        self.assertEqual(layer(tuff.zeros([5, 0, 4]))[0].shape, (5, 0, 6))

    def test_dynamic_axes(self):
        shapes = []

        @tuff.jit(dynamic=[tuff.DynamicAxis(0, 0, "n", 1, 16)])
        def f(x):
            shapes.append(x.shape)
            return (x * 2).sum()
        for n in (3, 5, 16, 1, 7):
            self.assertEqual(f(tuff.ones(n).realize()).item(), 2 * n)
        self.assertEqual(len(shapes), 2)
        size = shapes[1][0]
        self.assertIsInstance(size, tuff.Size)
        self.assertEqual((size.min, size.max, str(size), str(size * 2 + 1)), (1, 16, "n", "n*2 + 1"))
        self.assertRaises(tuff.InvalidArgument, int, size)
        self.assertTrue(size >= 1)
        self.assertRaises(tuff.InvalidArgument, f, tuff.ones(17).realize())

    def test_refused(self):
        f = tuff.jit(lambda x, k: x * k)
        for _ in range(3):
            f(tuff.ones(3).realize(), 2)
        with self.assertRaisesRegex(ValueError, "same at every call"):
            f(tuff.ones(3).realize(), 3)
        with self.assertRaisesRegex(ValueError, "Jit: argument 0"):
            f(tuff.ones(4).realize(), 2)
        self.assertEqual(f(tuff.ones(3).realize(), 2).tolist(), [2, 2, 2])

        def fails(x):
            raise KeyError("mine")
        self.assertRaisesRegex(KeyError, "mine", tuff.jit(fails), tuff.ones(1))
        again = tuff.jit(lambda x: again(x))
        self.assertRaisesRegex(ValueError, "calls the Jit", again, tuff.ones(1))

    def test_methods(self):
        class Model:
            def __init__(self, k):
                self.weight = tuff.full(3, k).realize()

            @tuff.jit
            def forward(self, x):
                return x * self.weight
        one, two = Model(1), Model(2)
        for _ in range(3):
            self.assertEqual(one.forward(tuff.ones(3).realize()).tolist(), [1, 1, 1])
            self.assertEqual(two.forward(tuff.ones(3).realize()).tolist(), [2, 2, 2])
        alive = weakref.ref(one)
        del one
        gc.collect()
        self.assertIsNone(alive(), "a captured method and its object are collected together")

    def test_threads_wait_for_each_other(self):
        f = tuff.jit(lambda x: (x * 2).sum())
        wrong = []

        def work(k):
            for _ in range(20):
                if f(tuff.full(3, k).realize()).item() != 6 * k:
                    wrong.append(k)
        threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])


class Errors(unittest.TestCase):
    def test_classes(self):
        for cls, builtin in ((tuff.InvalidArgument, ValueError), (tuff.IndexError, IndexError),
                             (tuff.IndexError, tuff.InvalidArgument), (tuff.ShapeError, ValueError),
                             (tuff.OutOfMemory, MemoryError), (tuff.CompileError, RuntimeError),
                             (tuff.Unsupported, NotImplementedError),
                             (tuff.DeviceLost, RuntimeError), (tuff.IoError, OSError),
                             (tuff.InternalError, AssertionError)):
            self.assertTrue(issubclass(cls, tuff.Error) and issubclass(cls, builtin))
            self.assertEqual(str(cls("text")), "text")
            self.assertEqual(cls.__module__, "tuff")

    def test_texts(self):
        with self.assertRaisesRegex(tuff.ShapeError, r"inner dimensions differ: \(3, 4\) x \(5, 6\)"):
            tuff.ones((3, 4)) @ tuff.ones((5, 6))
        self.assertRaises(tuff.InvalidArgument, tuff.ones, 3, device="NOWHERE")
        self.assertRaises(tuff.InvalidArgument, tuff.ones(1).mse_loss, tuff.ones(1), "median")
        self.assertRaises(MemoryError, tuff.Tensor.realize, tuff.empty([1 << 24, 1 << 20]) + 1)
        self.assertRaises(TypeError, tuff.ones(3).softmax, "a")

    def test_other_threads_run_while_one_waits(self):
        x = tuff.rand([1024, 1024])
        y = x
        for _ in range(30):
            y = y @ x
        ticks, done = [], threading.Event()

        def tick():
            while not done.wait(0.002):
                ticks.append(time.monotonic())
        thread = threading.Thread(target=tick)
        thread.start()
        began = time.monotonic()
        y.sum().item()
        ended = time.monotonic()
        done.set()
        thread.join()
        self.assertGreater(sum(began < t < ended for t in ticks), 3)

    def test_threads_share_what_is_not_computed_yet(self):
        x, wrong = tuff.ones(64).contiguous().realize(), []
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        self.addCleanup(sys.setswitchinterval, before)
        for _ in range(200):
            y = x + x
            z = y * y

            def work(k):
                u = z
                for _ in range(k + 1):
                    u = u + y
                got = u.sum().item()
                if got != 64 * (4 + 2 * (k + 1)):
                    wrong.append((k, got))
            threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        self.assertEqual(wrong, [])

    def test_an_interrupt_ends_a_wait(self):
        # Many kernels, and some that take a second each. The wait looks every 50 ms.
        many = "y = x\nfor _ in range(200): y = (y @ x).realize()\n"
        large = ("x = tuff.rand([3072, 3072]).realize()\ny = (x[:64] @ x).realize()\ny.sum().item()\n"
                 "y = (x @ x).realize()\nfor _ in range(8): y = (x @ y).realize()\n")
        for work in many, large:
            for wait in "y.sum().item()", "tuff.synchronize()":
                with self.subTest(work=work, wait=wait):
                    self.expect_interrupted(work, wait)

    def expect_interrupted(self, work, wait):
        code = ("import tuff, time, os\n"
                "x = tuff.rand([1024, 1024]).realize()\n"
                "tuff.synchronize()\n"
                f"{work}"
                "print('begun', flush=True)\n"
                "try:\n"
                f"    {wait}\n"
                "except KeyboardInterrupt:\n"
                "    print('interrupted', time.monotonic(), flush=True)\n"
                "    os._exit(0)\n")
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        self.assertEqual(process.stdout.readline(), "begun\n")
        time.sleep(0.3)
        asked = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out.split()[0]), (0, "interrupted"))
        self.assertLess(float(out.split()[1]) - asked, 0.5)


if __name__ == "__main__":
    unittest.main()
