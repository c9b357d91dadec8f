"""Distributions whose parameters are tensors: draws, log-probabilities, entropies, divergences. Names and arguments are
those of torch.distributions. Draws come from the generator that tuff.rand() uses; rsample() has gradients by its
parameters, sample() none."""
import math

from ._grad import no_grad as _no_grad
from ._tuff import InvalidArgument as _InvalidArgument
from ._tuff import Tensor as _Tensor


def _tensors(*values):
    """As tensors that broadcast to one shape; numbers take the dtype and device of a tensor among them."""
    given = [v for v in values if isinstance(v, _Tensor)]
    if not given:
        return [_Tensor.full((), float(v)) for v in values]
    out = [v if isinstance(v, _Tensor) else _Tensor.full((), float(v), dtype=given[0].dtype, device=given[0].device)
           for v in values]
    total = sum((t * 0 for t in out[1:]), out[0] * 0)
    return [t.expand(total.shape) for t in out]


def _require(what, name, value, condition, holds):
    """Of a number. What a tensor holds is not read, as nothing waits for values: logarithms of what is not there are
    NaN."""
    if not isinstance(value, _Tensor) and not holds(float(value)):
        raise _InvalidArgument(f"{what}: {name} is {value}: it has to be {condition}")


class Distribution:
    """What all of them have: batch_shape, and what is computed of one draw for each of its elements."""
    batch_shape = ()

    def sample(self, sample_shape=()):
        """Draws of shape sample_shape + batch_shape, without gradients."""
        with _no_grad():
            return self._draw(tuple(sample_shape) + self.batch_shape)

    def prob(self, value):
        """exp(log_prob(value))"""
        return self.log_prob(value).exp()


class Normal(Distribution):
    """Of this mean and standard deviation, which is above 0: InvalidArgument for a number that is not; of a tensor's
    elements below 0 the log-probability is NaN."""

    def __init__(self, loc, scale):
        _require("Normal", "scale", scale, "above 0", lambda v: v > 0)
        self.loc, self.scale = _tensors(loc, scale)
        self.batch_shape = self.loc.shape

    def _draw(self, shape):
        return _Tensor.randn(shape, dtype=self.loc.dtype, device=self.loc.device) * self.scale + self.loc

    def rsample(self, sample_shape=()):
        """Draws with gradients by loc and scale."""
        return self._draw(tuple(sample_shape) + self.batch_shape)

    @property
    def mean(self):
        return self.loc

    @property
    def variance(self):
        return self.scale.square()

    def log_prob(self, value):
        """The logarithm of the density."""
        return -((value - self.loc) / self.scale).square() / 2 - self.scale.log() - math.log(2 * math.pi) / 2

    def cdf(self, value):
        """The probability of what is below."""
        return (-(value - self.loc) / (self.scale * math.sqrt(2))).erfc() / 2

    def entropy(self):
        return self.scale.log() + (1 + math.log(2 * math.pi)) / 2


class Uniform(Distribution):
    """Between low and high, without high."""

    def __init__(self, low, high):
        if not isinstance(low, _Tensor):
            _require("Uniform", "high", high, f"above low, {low}", lambda v: v > low)
        self.low, self.high = _tensors(low, high)
        self.batch_shape = self.low.shape

    def _draw(self, shape):
        return _Tensor.rand(shape, dtype=self.low.dtype, device=self.low.device) * (self.high - self.low) + self.low

    def rsample(self, sample_shape=()):
        """Draws with gradients by low and high."""
        return self._draw(tuple(sample_shape) + self.batch_shape)

    @property
    def mean(self):
        return (self.low + self.high) / 2

    @property
    def variance(self):
        return (self.high - self.low).square() / 12

    def log_prob(self, value):
        """The logarithm of the density, -inf outside."""
        density = -(self.high - self.low).log()
        return _Tensor.where((value >= self.low) & (value < self.high), density, -math.inf)

    def cdf(self, value):
        """The probability of what is below."""
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def entropy(self):
        return (self.high - self.low).log()


def _one_of(probs, logits, name):
    if (probs is None) == (logits is None):
        raise _InvalidArgument(f"{name}: give either probs or logits")


class Bernoulli(Distribution):
    """1 with probability probs, or sigmoid(logits); else 0."""

    def __init__(self, probs=None, logits=None):
        _one_of(probs, logits, "Bernoulli")
        if logits is not None:
            self.logits, = _tensors(logits)
            self.probs = self.logits.sigmoid()
        else:
            _require("Bernoulli", "probs", probs, "in 0..1", lambda v: 0 <= v <= 1)
            self.probs, = _tensors(probs)
            self.logits = self.probs.logit()
        self.batch_shape = self.probs.shape

    def _draw(self, shape):
        return self.probs.expand(shape).bernoulli()

    @property
    def mean(self):
        return self.probs

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def log_prob(self, value):
        """value * log(probs) + (1 - value) * log(1 - probs), which 0 times the logarithm of 0 does not spoil."""
        shape = (self.logits * 0 + value * 0).shape
        return -self.logits.expand(shape).binary_cross_entropy_with_logits(value.expand(shape), reduction="none")

    def entropy(self):
        return self.logits.binary_cross_entropy_with_logits(self.probs, reduction="none")


class Categorical(Distribution):
    """0..n-1 with probabilities in proportion to probs, or softmax(logits), along the last axis."""

    def __init__(self, probs=None, logits=None):
        _one_of(probs, logits, "Categorical")
        if logits is None:
            self.probs = probs / probs.sum(-1, keepdim=True)
            self.logits = self.probs.log()
        else:
            self.logits = logits.log_softmax(-1)
            self.probs = self.logits.exp()
        self.batch_shape = self.probs.shape[:-1]

    def _draw(self, shape):
        count = math.prod(shape[:len(shape) - len(self.batch_shape)])
        rows = self.probs.reshape((-1, self.probs.shape[-1]))
        drawn = rows.multinomial(max(count, 1), replacement=True)
        return drawn.T.reshape(shape) if count else _Tensor.zeros(shape, dtype=drawn.dtype, device=drawn.device)

    def log_prob(self, value):
        """The logarithm of the probability of these classes."""
        shape = tuple(value.shape) or self.batch_shape
        logits = self.logits.expand(shape + (self.logits.shape[-1],))
        value = value.expand(shape)
        return logits.gather(-1, value.unsqueeze(-1)).squeeze(-1)

    def entropy(self):
        return -self.probs.xlogy(self.probs).sum(-1)


def _normals(p, q):
    ratio = (p.scale / q.scale).square()
    return (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log()) / 2


def _uniforms(p, q):
    inside = (q.low <= p.low) & (q.high >= p.high)
    return _Tensor.where(inside, ((q.high - q.low) / (p.high - p.low)).log(), math.inf)


def _bernoullis(p, q):
    return p.probs * (q.logits.neg().softplus() - p.logits.neg().softplus()) + \
        (1 - p.probs) * (q.logits.softplus() - p.logits.softplus())


def _categoricals(p, q):
    return _Tensor.where(p.probs == 0, 0.0, p.probs * (p.logits - q.logits)).sum(-1)


_DIVERGENCES = {Normal: _normals, Uniform: _uniforms, Bernoulli: _bernoullis, Categorical: _categoricals}


def kl_divergence(p, q):
    """Of two distributions of one kind (Kullback and Leibler, 1951)."""
    if type(p) is not type(q) or type(p) not in _DIVERGENCES:
        raise _InvalidArgument(f"kl_divergence: none is known of {type(p).__name__} and {type(q).__name__}")
    return _DIVERGENCES[type(p)](p, q)
