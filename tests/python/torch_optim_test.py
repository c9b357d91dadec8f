"""Optimizers and learning-rate schedules beside PyTorch's: the same parameters after 20 steps."""
import sys
import unittest

import numpy as np

import tuff
from tuff import nn, optim

try:
    import torch
except ImportError:
    print("skipped: there is no PyTorch here (Debian: python3-torch)")
    sys.exit(77)

torch.manual_seed(4)
STEPS = 20


# PyTorch 1.13 has two of them, and the one for single tensors takes mu twice: the documented formula, which
# later versions have in both, is that of the other.
EXTRA = {"NAdam": {"foreach": True}}


def model(lib):
    return lib.Sequential(lib.Linear(3, 8), lib.Tanh(), lib.Linear(8, 2))


def pair():
    reference = model(torch.nn)
    module = model(nn)
    module.load_state_dict({k: tuff.tensor(v.numpy()) for k, v in reference.state_dict().items()})
    return module, reference


class Steps(unittest.TestCase):
    def compare(self, name, options, captured=False, rtol=2e-4, atol=2e-5):
        module, reference = pair()
        ours = getattr(optim, name)(module.parameters(), **options)
        theirs = getattr(torch.optim, name)(reference.parameters(), **options, **EXTRA.get(name, {}))
        x, y = torch.randn(16, 3), torch.randn(16, 2)
        before = [p.detach().clone() for p in reference.parameters()]

        def step(x, y):
            ours.zero_grad()
            loss = module(x).mse_loss(y)
            loss.backward()
            ours.step([loss])
            return loss
        run = tuff.jit(step) if captured else step
        u, v = tuff.tensor(x.numpy()).realize(), tuff.tensor(y.numpy()).realize()
        for i in range(STEPS):
            theirs.zero_grad()
            loss = torch.nn.functional.mse_loss(reference(x), y)
            loss.backward()
            theirs.step()
            self.assertAlmostEqual(run(u, v).item(), loss.item(), delta=1e-3 * max(1, loss.item()))
            if i == 9:  # as a schedule would
                ours.set_lr(options["lr"] / 2)
                theirs.param_groups[0]["lr"] = options["lr"] / 2
        for p, q, b in zip(module.parameters(), reference.parameters(), before):
            self.assertGreater((q.detach() - b).abs().max().item(), 1e-4, "moves")
            np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=rtol, atol=atol, err_msg=f"{name} {options}")
        state = theirs.state_dict()["state"].get(0, {})  # plain SGD has none in PyTorch 2
        kept = {n.split(".")[2] for n in ours.state_dict() if n.startswith("state.0.")}
        self.assertEqual(kept, {n for n, t in state.items() if t is not None}, name)

    CASES = {
        "SGD": ({"lr": 0.1}, {"lr": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01},
                {"lr": 0.01, "momentum": 0.9, "nesterov": True, "maximize": True}),
        "Adam": ({"lr": 0.01}, {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1, "betas": (0.9, 0.9)}, {"lr": 0.01, "maximize": True}),
        "AdamW": ({"lr": 0.01, "weight_decay": 0.1}, {"lr": 0.01, "amsgrad": True, "betas": (0.8, 0.999), "weight_decay": 0.01}),
        "RMSprop": ({"lr": 0.01}, {"lr": 0.005, "momentum": 0.9, "centered": True, "weight_decay": 0.1, "alpha": 0.9}),
        "Adagrad": ({"lr": 0.05}, {"lr": 0.05, "lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.2}),
        "Adadelta": ({"lr": 1.0}, {"lr": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1}),
        "Adamax": ({"lr": 0.01}, {"lr": 0.02, "betas": (0.9, 0.9), "weight_decay": 0.1}),
        "NAdam": ({"lr": 0.01}, {"lr": 0.01, "betas": (0.9, 0.9), "momentum_decay": 0.05, "weight_decay": 0.1}),
        "RAdam": ({"lr": 0.01}, {"lr": 0.02, "betas": (0.9, 0.9), "weight_decay": 0.1}),
        "ASGD": ({"lr": 0.1}, {"lr": 0.1, "lambd": 0.01, "t0": 5, "alpha": 0.5, "weight_decay": 0.1}),
    }

    def test_eager(self):
        for name, cases in self.CASES.items():
            for options in cases:
                with self.subTest(name=name, options=options):
                    self.compare(name, options)

    def test_captured(self):
        for name, cases in self.CASES.items():
            with self.subTest(name=name):
                self.compare(name, cases[-1], captured=True)

    def test_groups(self):
        module, reference = pair()
        ours = optim.SGD([{"params": module[0].parameters()}, {"params": module[2].parameters(), "lr": 0.01, "momentum": 0.5}],
                         lr=0.1, weight_decay=0.1)
        theirs = torch.optim.SGD([{"params": reference[0].parameters()},
                                  {"params": reference[2].parameters(), "lr": 0.01, "momentum": 0.5}], lr=0.1, weight_decay=0.1)
        ours_rates, theirs_rates = optim.StepLR(ours, 5, 0.5), torch.optim.lr_scheduler.StepLR(theirs, 5, 0.5)
        x = torch.randn(16, 3)
        for _ in range(STEPS):
            theirs.zero_grad()
            reference(x).square().mean().backward()
            theirs.step()
            theirs_rates.step()
            module(tuff.tensor(x.numpy())).square().mean().backward()
            ours.step()
            ours_rates.step()
            np.testing.assert_allclose(ours.lr_values, theirs_rates.get_last_lr())
        for p, q in zip(module.parameters(), reference.parameters()):
            np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=1e-4, atol=1e-6)
        self.assertRaisesRegex(TypeError, 'no option "beta1"', optim.SGD, [{"params": module.parameters(), "beta1": 0.5}])
        self.assertRaisesRegex(TypeError, '"lr" .* cannot be a str', optim.SGD, [{"params": module.parameters(), "lr": "much"}])

    def test_lbfgs(self):
        module, reference = pair()
        ours = optim.LBFGS(module.parameters(), lr=0.5, history_size=4)
        theirs = torch.optim.LBFGS(reference.parameters(), lr=0.5, history_size=4)
        x, y = torch.randn(16, 3), torch.randn(16, 2)
        u, v = tuff.tensor(x.numpy()), tuff.tensor(y.numpy())

        def closure():
            theirs.zero_grad()
            loss = torch.nn.functional.mse_loss(reference(x), y)
            loss.backward()
            return loss

        def our_closure():
            loss = module(u).mse_loss(v)
            loss.backward()
            return loss
        for i in range(3):
            self.assertAlmostEqual(ours.step(our_closure), theirs.step(closure).item(), delta=2e-3)
        self.assertLess(module(u).mse_loss(v).item(), 0.5)


class Schedules(unittest.TestCase):
    def compare(self, make, steps=30, lr=0.4):
        def rates(o, scheduler):
            out = []
            for _ in range(steps):
                out.append(o())
                scheduler.step()
            return out
        p = torch.nn.Parameter(torch.zeros(1))
        theirs = torch.optim.SGD([p], lr=lr)
        ours = optim.SGD([tuff.zeros(1, requires_grad=True)], lr=lr)
        p.grad = torch.zeros(1)
        theirs.step()
        schedule = make(torch.optim.lr_scheduler, theirs)
        mine = make(optim, ours)
        wanted = rates(lambda: theirs.param_groups[0]["lr"], schedule)
        np.testing.assert_allclose(rates(lambda: ours.lr_value, mine), wanted, rtol=1e-6, atol=1e-9)
        again = optim.SGD([tuff.zeros(1, requires_grad=True)], lr=lr)
        resumed = make(optim, again)
        resumed.load_state_dict(mine.state_dict())
        self.assertEqual((resumed.last_step, again.lr_value), (steps, ours.lr_value))

    def test_rates(self):
        for make in (lambda lib, o: lib.StepLR(o, 4, 0.7), lambda lib, o: lib.MultiStepLR(o, [2, 5, 11], 0.5),
                     lambda lib, o: lib.ExponentialLR(o, 0.9), lambda lib, o: lib.PolynomialLR(o, 9, 2.0),
                     lambda lib, o: lib.ConstantLR(o, 0.25, 7), lambda lib, o: lib.LinearLR(o, 0.1, 0.8, 6),
                     lambda lib, o: lib.CosineAnnealingLR(o, 30, 0.01), lambda lib, o: lib.OneCycleLR(o, 0.9, 31),
                     lambda lib, o: lib.CosineAnnealingWarmRestarts(o, 4), lambda lib, o: lib.CosineAnnealingWarmRestarts(o, 3, 2, 0.02),
                     lambda lib, o: lib.LambdaLR(o, lambda t: 0.5 ** t),
                     lambda lib, o: lib.SequentialLR(o, [lib.ConstantLR(o, 0.1, 2), lib.ExponentialLR(o, 0.8)], [4]),
                     lambda lib, o: lib.ChainedScheduler([lib.ConstantLR(o, 0.1, 3), lib.ExponentialLR(o, 0.9)])):
            self.compare(make)

    def test_cyclic(self):
        for mode in ("triangular", "triangular2", "exp_range"):
            def make(lib, o):
                options = {} if lib is optim else {"cycle_momentum": False}
                return lib.CyclicLR(o, 0.1, 0.9, 4, 6, mode, gamma=0.95, **options)
            self.compare(make)
        self.assertRaises(tuff.InvalidArgument, optim.CyclicLR, optim.SGD([tuff.zeros(1, requires_grad=True)]), 0, 1, mode="square")

    def test_plateau(self):
        metrics = [5, 4, 4, 4.1, 4, 3.9999, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2, 2]
        for options in ({"patience": 2}, {"patience": 1, "cooldown": 2, "factor": 0.5}, {"patience": 0, "threshold_mode": "abs", "threshold": 0.5},
                        {"mode": "max", "patience": 3}, {"patience": 0, "factor": 0.3, "min_lr": 0.05}):
            theirs = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.4)
            ours = optim.SGD([tuff.zeros(1, requires_grad=True)], lr=0.4)
            schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
            mine = optim.ReduceLROnPlateau(ours, **options)
            for m in metrics:
                schedule.step(m)
                mine.step(m)
                self.assertAlmostEqual(ours.lr_value, theirs.param_groups[0]["lr"], places=9)
                state = schedule.state_dict()
                for name, value in mine.state_dict().items():
                    self.assertEqual(value.item(), state[name], name)
                again = optim.ReduceLROnPlateau(ours, **options)
                again.load_state_dict(mine.state_dict())
                mine = again
            self.assertLess(ours.lr_value, 0.4)


if __name__ == "__main__":
    unittest.main()
