"""tuff.distributions: log-probabilities, entropies and divergences against formulas in NumPy, draws against means."""
import math
import unittest

import numpy as np

import tuff
from tuff.distributions import Bernoulli, Categorical, Normal, Uniform, kl_divergence

RNG = np.random.default_rng(9)
LOC, SCALE = RNG.uniform(-1, 1, (2, 3)).astype(np.float32), RNG.uniform(0.5, 2, (2, 3)).astype(np.float32)
VALUE = RNG.uniform(-1, 1, (2, 3)).astype(np.float32)
P, Q = RNG.uniform(0.1, 0.9, (2, 4)).astype(np.float32), RNG.uniform(0.1, 0.9, (2, 4)).astype(np.float32)


def rows(x):
    return x / x.sum(-1, keepdims=True)


class Distributions(unittest.TestCase):
    def same(self, got, expected):
        np.testing.assert_allclose(got.numpy(), expected, rtol=2e-5, atol=2e-6)

    def test_parameters(self):
        for make in (lambda: Normal(0, -1), lambda: Normal(tuff.tensor(LOC), 0.0), lambda: Normal(0, math.nan),
                     lambda: Uniform(1, 1), lambda: Bernoulli(1.5)):
            self.assertRaisesRegex(tuff.InvalidArgument, "it has to be", make)
        self.assertTrue(math.isnan(Normal(0, tuff.tensor(-1.0)).log_prob(tuff.tensor(0.5)).item()))

    def test_normal(self):
        n, other = Normal(tuff.tensor(LOC), tuff.tensor(SCALE)), Normal(0.0, tuff.tensor(SCALE * 2))
        density = np.exp(-((VALUE - LOC) / SCALE) ** 2 / 2) / (SCALE * math.sqrt(2 * math.pi))
        self.same(n.log_prob(tuff.tensor(VALUE)), np.log(density))
        self.same(n.prob(tuff.tensor(VALUE)), density)
        self.same(n.cdf(tuff.tensor(VALUE)), [[(1 + math.erf((v - m) / s / math.sqrt(2))) / 2 for v, m, s in zip(*r)]
                                              for r in zip(VALUE, LOC, SCALE)])
        self.same(n.entropy(), np.log(SCALE * math.sqrt(2 * math.pi * math.e)))
        self.same(kl_divergence(n, other), math.log(2) + (1 + (LOC / SCALE) ** 2) / 8 - 0.5)
        tuff.manual_seed(1)
        drawn = n.sample((4000,)).numpy()
        self.assertEqual(drawn.shape, (4000, 2, 3))
        np.testing.assert_allclose(drawn.mean(0), LOC, atol=0.15)
        np.testing.assert_allclose(drawn.std(0), SCALE, rtol=0.1)

    def test_gradients_by_parameters(self):
        loc = tuff.tensor(LOC, requires_grad=True)
        n = Normal(loc, 1.0)
        n.rsample((5,)).sum().backward()
        self.same(loc.grad, np.full_like(LOC, 5))
        self.assertFalse(n.sample().requires_grad)

    def test_uniform(self):
        u = Uniform(-1.0, tuff.tensor(SCALE))
        self.same(u.log_prob(tuff.tensor(VALUE)), np.where(VALUE < SCALE, -np.log(SCALE + 1), -np.inf))
        self.same(u.log_prob(tuff.tensor(SCALE)), np.full_like(SCALE, -np.inf))
        self.same(u.cdf(tuff.tensor(VALUE)), np.clip((VALUE + 1) / (SCALE + 1), 0, 1))
        self.same(u.entropy(), np.log(SCALE + 1))
        self.same(u.variance, (SCALE + 1) ** 2 / 12)
        self.same(kl_divergence(u, Uniform(-2.0, tuff.tensor(SCALE))), np.log((SCALE + 2) / (SCALE + 1)))
        self.same(kl_divergence(u, Uniform(0.0, tuff.tensor(SCALE))), np.full_like(SCALE, np.inf))
        drawn = u.sample((100,)).numpy()
        self.assertTrue(((drawn >= -1) & (drawn < SCALE)).all())

    def test_bernoulli(self):
        logits = np.log(P / (1 - P))
        for b in (Bernoulli(tuff.tensor(P)), Bernoulli(logits=tuff.tensor(logits))):
            ones = (Q > 0.5).astype(np.float32)
            self.same(b.log_prob(tuff.tensor(ones)), np.where(ones, np.log(P), np.log(1 - P)))
            self.same(b.log_prob(tuff.tensor(np.stack([ones] * 3))), np.stack([np.where(ones, np.log(P), np.log(1 - P))] * 3))
            self.same(b.entropy(), -P * np.log(P) - (1 - P) * np.log(1 - P))
            self.same(kl_divergence(b, Bernoulli(tuff.tensor(Q))), P * np.log(P / Q) + (1 - P) * np.log((1 - P) / (1 - Q)))
        drawn = b.sample((4000,)).numpy()
        np.testing.assert_allclose(drawn.mean(0), P, atol=0.05)

    def test_categorical(self):
        p, q = rows(P), rows(Q)
        for c in (Categorical(tuff.tensor(P)), Categorical(logits=tuff.tensor(np.log(P)))):
            self.same(c.log_prob(tuff.tensor(np.array([3, 0], np.int32))), np.log([p[0, 3], p[1, 0]]))
            self.same(c.entropy(), -(p * np.log(p)).sum(-1))
            self.same(kl_divergence(c, Categorical(tuff.tensor(Q))), (p * np.log(p / q)).sum(-1))
        drawn = c.sample((4000,)).numpy()
        self.assertEqual(drawn.shape, (4000, 2))
        for row in range(2):
            np.testing.assert_allclose(np.bincount(drawn[:, row], minlength=4) / 4000, p[row], atol=0.05)
        self.assertEqual(c.sample().shape, (2,))
        self.same(Categorical(tuff.tensor([0.0, 1.0])).entropy(), 0)

    def test_what_is_refused(self):
        with self.assertRaisesRegex(tuff.InvalidArgument, "either probs or logits"):
            Bernoulli()
        with self.assertRaisesRegex(tuff.InvalidArgument, "none is known of Normal and Uniform"):
            kl_divergence(Normal(0.0, 1.0), Uniform(0.0, 1.0))


if __name__ == "__main__":
    unittest.main()
