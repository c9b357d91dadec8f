"""Convolutions, pools, resizing and sampling against NumPy, by loops and sliding windows."""
import math
import unittest

import numpy as np

import tuff

RNG = np.random.default_rng(12)


def floats(*shape):
    return RNG.uniform(-2, 2, shape).astype(np.float32)


def shuffled(*shape):
    """All different."""
    return RNG.permutation(math.prod(shape)).reshape(shape).astype(np.float32)


LINE, IMAGE, VOLUME = floats(2, 2, 7), floats(2, 2, 5, 6), floats(1, 2, 3, 4, 5)
PLACES = {1: shuffled(2, 2, 8), 2: shuffled(2, 2, 6, 8), 3: shuffled(1, 2, 4, 6, 4)}


def windows(x, axes, kernel, stride):
    """(..., out, kernel) of the last axes."""
    seen = np.lib.stride_tricks.sliding_window_view(x, (kernel,) * axes, tuple(range(-axes, 0)))
    return seen[(Ellipsis,) + (slice(None, None, stride),) * axes + (slice(None),) * axes]


def convolved(x, weight, bias, stride=1):
    axes = x.ndim - 2
    seen = windows(x, axes, weight.shape[2], stride)
    dims = list(range(-axes, 0))
    out = np.tensordot(seen, weight, ([1, *dims], [1, *range(2, 2 + axes)]))
    return np.moveaxis(out, -1, 1) + bias.reshape(-1, *(1,) * axes)


def spread(x, weight, stride):
    """What a transposed convolution adds up, element by element."""
    axes, k = x.ndim - 2, weight.shape[2]
    out = np.zeros((x.shape[0], weight.shape[1], *[(n - 1) * stride + k for n in x.shape[2:]]), np.float32)
    for at in np.ndindex(x.shape[2:]):
        part = tuple(slice(i * stride, i * stride + k) for i in at)
        value = x[(slice(None), slice(None), *at)]
        out[(slice(None), slice(None), *part)] += np.tensordot(value, weight, 1)
    return out


def over(axes):
    return tuple(range(-axes, 0))


def cuts(n, out):
    return [slice(i * n // out, -(-(i + 1) * n // out)) for i in range(out)]


def adapted(x, axes, out, function):
    shape = x.shape[:-axes] + (out,) * axes
    result = np.zeros(shape, np.float32)
    for at in np.ndindex((out,) * axes):
        part = tuple(cuts(n, out)[i] for n, i in zip(x.shape[-axes:], at))
        result[(Ellipsis, *at)] = function(x[(Ellipsis, *part)], over(axes))
    return result


def unpooled(x, axes):
    """What was largest in windows of 2, where it stood."""
    largest = windows(x, axes, 2, 2).max(over(axes))
    for d in range(-axes, 0):
        largest = largest.repeat(2, d)
    return np.where(x == largest, x, 0)


def columns(x, kernel):
    seen = windows(x, 2, kernel, 1)
    n, c, h, w = seen.shape[:4]
    return seen.transpose(0, 1, 4, 5, 2, 3).reshape(n, c * kernel * kernel, h * w)


def folded(x, size, kernel):
    n, rows, _ = x.shape
    out = np.zeros((n, rows // kernel ** 2, size, size), np.float32)
    parts = x.reshape(n, -1, kernel, kernel, size - kernel + 1, size - kernel + 1)
    for i, j in np.ndindex(kernel, kernel):
        out[:, :, i:i + size - kernel + 1, j:j + size - kernel + 1] += parts[:, :, i, j]
    return out


def linear(x, out):
    n = x.shape[-1]
    at = np.clip((np.arange(out) + 0.5) * n / out - 0.5, 0, n - 1)
    low = np.floor(at).astype(int)
    return x[..., low] * (1 - (at - low)) + x[..., np.minimum(low + 1, n - 1)] * (at - low)


def of_axes(axes, x):
    weight, bias, turned = floats(3, 2, *[2] * axes), floats(3), floats(2, 3, *[3] * axes)

    def call(name, *args, **options):
        return lambda t, *more: getattr(t, f"{name}{axes}d")(*more, *args, **options)
    return {
        f"conv{axes}d": [([x, weight, bias], call("conv", stride=2), lambda *a: convolved(*a, 2)),
                         ([x, weight, bias], call("conv", padding="same"),
                          lambda t, w, b: convolved(np.pad(t, [(0, 0)] * 2 + [(0, 1)] * axes), w, b)),
                         ([x, weight, bias], call("conv", padding=[(1, 0)] * axes),
                          lambda t, w, b: convolved(np.pad(t, [(0, 0)] * 2 + [(1, 0)] * axes), w, b))],
        f"conv_transpose{axes}d": [([x, turned], call("conv_transpose", stride=2), lambda t, w: spread(t, w, 2))],
        f"max_pool{axes}d": [([x], call("max_pool", 2), lambda t: windows(t, axes, 2, 2).max(over(axes)))],
        f"avg_pool{axes}d": [([x], call("avg_pool", 3, stride=1), lambda t: windows(t, axes, 3, 1).mean(over(axes)))],
        f"lp_pool{axes}d": [([x], call("lp_pool", 2.0, 2), lambda t: np.sqrt((windows(t, axes, 2, 2) ** 2).sum(over(axes))))],
        f"adaptive_avg_pool{axes}d": [([x], call("adaptive_avg_pool", 2), lambda t: adapted(t, axes, 2, np.mean))],
        f"adaptive_max_pool{axes}d": [([x], call("adaptive_max_pool", 3), lambda t: adapted(t, axes, 3, np.max))],
    }


def unpool_case(axes):
    def run(t):
        values, indices = getattr(t, f"max_pool{axes}d")(2, return_indices=True)
        return getattr(values, f"max_unpool{axes}d")(indices, 2)
    return [([PLACES[axes]], run, lambda t: unpooled(t, axes))]


CASES = {}
for AXES, X in ((1, LINE), (2, IMAGE), (3, VOLUME)):
    CASES.update(of_axes(AXES, X))
    CASES[f"max_unpool{AXES}d"] = unpool_case(AXES)
CASES.update({
    "interpolate": [([IMAGE], lambda x: x.interpolate(scale_factor=2), lambda x: x.repeat(2, 2).repeat(2, 3)),
                    ([LINE], lambda x: x.interpolate(size=5, mode="linear"), lambda x: linear(x, 5)),
                    ([LINE], lambda x: x.interpolate(14, mode="linear"), lambda x: linear(x, 14))],
    "affine_grid": [([np.array([[[1, 0, 0], [0, 1, 0]]], np.float32)], lambda t: tuff.Tensor.affine_grid(t, (1, 1, 2, 4)),
                     lambda t: np.stack(np.meshgrid([-0.75, -0.25, 0.25, 0.75], [-0.5, 0.5]), -1)[None])],
    "grid_sample": [([IMAGE], lambda x: x.grid_sample(tuff.Tensor.affine_grid(
        tuff.tensor([[[-1.0, 0, 0], [0, 1, 0]]] * 2), x.shape)), lambda x: x[..., ::-1])],
    "im2col": [([IMAGE], lambda x: x.im2col(3), lambda x: columns(x, 3))],
    "fold": [([floats(2, 8, 9)], lambda x: x.fold((4, 4), 2), lambda x: folded(x, 4, 2))],
    "pixel_shuffle": [([floats(2, 8, 2, 3)], lambda x: x.pixel_shuffle(2),
                       lambda x: x.reshape(2, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(2, 2, 4, 6))],
    "pixel_unshuffle": [([floats(2, 2, 4, 6)], lambda x: x.pixel_unshuffle(2),
                         lambda x: x.reshape(2, 2, 2, 2, 3, 2).transpose(0, 1, 3, 5, 2, 4).reshape(2, 8, 2, 3))],
    "channel_shuffle": [([LINE], lambda x: x.channel_shuffle(2), lambda x: x)],
})


class Windows(unittest.TestCase):
    def test_every_function(self):
        for name, cases in CASES.items():
            for arrays, run, expected in cases:
                got = run(*(tuff.tensor(a) for a in arrays)).numpy()
                np.testing.assert_allclose(got, expected(*arrays), rtol=1e-4, atol=1e-5, err_msg=name)

    def test_indices(self):
        for axes in (1, 2, 3):
            x = PLACES[axes]
            values, indices = getattr(tuff.tensor(x), f"max_pool{axes}d")(2, return_indices=True)
            flat = x.reshape(*x.shape[:-axes], -1)
            picked = np.take_along_axis(flat, indices.numpy().reshape(*x.shape[:-axes], -1), -1)
            np.testing.assert_array_equal(values.numpy().ravel(), picked.ravel())

    def test_arguments(self):
        x, w = tuff.tensor(IMAGE), tuff.ones((1, 2, 3, 3))
        self.assertRaisesRegex(tuff.InvalidArgument, "neither 'same' nor 'valid'", x.conv2d, w, padding="full")
        self.assertRaisesRegex(TypeError, "padding has to be", x.conv2d, w, padding=1.5)
        self.assertRaisesRegex(tuff.InvalidArgument, "not both", x.interpolate, size=2, scale_factor=2.0)
        self.assertEqual(x.interpolate(scale_factor=(2, 1)).shape, (2, 2, 10, 6))
        self.assertEqual(x.conv2d(w, padding=((1, 2), (0, 3))).shape, (2, 1, 6, 7))


if __name__ == "__main__":
    unittest.main()
