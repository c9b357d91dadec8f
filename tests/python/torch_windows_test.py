"""Layers of windows beside PyTorch's, with its states: results and gradients of inputs and parameters."""
import sys
import unittest

import numpy as np

import tuff
from tuff import nn

try:
    import torch
except ImportError:
    print("skipped: there is no PyTorch here (Debian: python3-torch)")
    sys.exit(77)

torch.manual_seed(9)
SHAPES = {1: (2, 4, 11), 2: (2, 4, 9, 7), 3: (1, 4, 5, 6, 7)}


def tensor(t):
    return tuff.tensor(t.detach().contiguous().numpy())


class Layers(unittest.TestCase):
    def compare(self, layer, reference, shape, *more):
        if reference.state_dict():
            self.assertEqual(layer.load_state_dict({k: tensor(v) for k, v in reference.state_dict().items()}), ([], []))
        given = torch.randn(shape, requires_grad=True)
        x = tensor(given)
        x.set_requires_grad()
        got, wanted = layer(x, *more), reference(given, *more)
        weight = torch.linspace(-1, 1, wanted.numel()).reshape(wanted.shape)
        (wanted * weight).sum().backward()
        (got * tensor(weight)).sum().backward()
        np.testing.assert_allclose(got.numpy(), wanted.detach().numpy(), rtol=1e-4, atol=2e-5, err_msg=str(reference))
        np.testing.assert_allclose(x.grad.numpy(), given.grad.numpy(), rtol=1e-3, atol=1e-4, err_msg=str(reference))
        theirs = dict(reference.named_parameters())
        self.assertEqual({n for n, _ in layer.named_parameters()}, set(theirs))
        for name, p in layer.named_parameters():
            np.testing.assert_allclose(p.grad.numpy(), theirs[name].grad.numpy(), rtol=1e-3, atol=2e-4, err_msg=name)

    def same(self, name, axes, *args, shape=None, theirs={}, **options):
        ours, reference = getattr(nn, f"{name}{axes}d"), getattr(torch.nn, f"{name}{axes}d")
        self.compare(ours(*args, **options), reference(*args, **(options | theirs)), shape or SHAPES[axes])

    def test_extents_of_weights(self):
        for options in ({"kernel_size": (3, -1)}, {"kernel_size": 0}):
            self.assertRaisesRegex(tuff.InvalidArgument, "at least 1", nn.Conv2d, 1, 1, **options)
            self.assertRaisesRegex(tuff.InvalidArgument, "at least 1", nn.ConvTranspose2d, 1, 1, **options)

    def test_convolutions(self):
        for axes in (1, 2, 3):
            self.same("Conv", axes, 4, 6, 3)
            self.same("Conv", axes, 4, 6, 3, 2, 2, dilation=2, groups=2, bias=False)
            self.same("Conv", axes, 4, 2, 2, padding="same")
            for mode in ("reflect", "replicate", "circular", "zeros"):
                self.same("Conv", axes, 4, 2, 3, 2, 1, padding_mode=mode)
            self.same("ConvTranspose", axes, 4, 6, 3)
            self.same("ConvTranspose", axes, 4, 6, 3, 2, 1, 1, groups=2)
            self.same("ConvTranspose", axes, 4, 2, 2, 2, bias=False)
            self.same("ConvTranspose", axes, 4, 2, 2, 3, 0, 2, dilation=2)
        self.assertRaises(tuff.InvalidArgument, nn.ConvTranspose2d, 4, 6, 3, groups=4)

    def test_pools(self):
        for axes in (1, 2, 3):
            self.same("MaxPool", axes, 3, 2, 1)
            self.same("MaxPool", axes, 2, 3, 0, 2, ceil_mode=True)
            self.same("AvgPool", axes, 3, 2, 1, ceil_mode=True, count_include_pad=False)
            self.same("AdaptiveAvgPool", axes, 3)
            self.same("AdaptiveMaxPool", axes, 3)
        for axes in (1, 2):
            layer = getattr(nn, f"LPPool{axes}d")(2, 3, 2)
            self.compare(layer, getattr(torch.nn, f"LPPool{axes}d")(2, 3, 2), SHAPES[axes])
        self.same("AdaptiveAvgPool", 2, (2, 5))

    def test_local_response_norm(self):
        for size in (3, 4):
            for axes in (1, 2):
                self.compare(nn.LocalResponseNorm(size, 0.5, 0.6, 2), torch.nn.LocalResponseNorm(size, 0.5, 0.6, 2), SHAPES[axes])
        self.assertRaises(tuff.InvalidArgument, nn.LocalResponseNorm, 0)

    def test_unpools(self):
        for axes in (1, 2, 3):
            given = torch.randn(SHAPES[axes])
            values, at = getattr(torch.nn, f"MaxPool{axes}d")(2, return_indices=True)(given)
            ours, indices = getattr(nn, f"MaxPool{axes}d")(2, return_indices=True)(tensor(given))
            np.testing.assert_array_equal(indices.numpy(), at.numpy())
            wanted = getattr(torch.nn, f"MaxUnpool{axes}d")(2)(values, at, output_size=given.shape)
            got = getattr(nn, f"MaxUnpool{axes}d")(2)(ours, indices, output_size=SHAPES[axes][2:])
            np.testing.assert_array_equal(got.numpy(), wanted.numpy())

    def test_pads(self):
        for axes in (1, 2, 3):
            for kind in ("ReflectionPad", "ReplicationPad", "CircularPad"):
                if hasattr(torch.nn, f"{kind}{axes}d"):
                    self.same(kind, axes, 2)
                    self.same(kind, axes, [1, 2, 0, 1, 2, 0][:2 * axes])
            self.same("ConstantPad", axes, 2, 0.5)
        self.same("ZeroPad", 2, (1, 0, -1, 2))
        self.assertEqual(nn.CircularPad1d(1)(tuff.tensor([[[1.0, 2, 3]]])).tolist(), [[[3, 1, 2, 3, 1]]])
        self.assertEqual(nn.ZeroPad1d((1, 0))(tuff.tensor([[1.0]])).tolist(), [[0, 1]])
        self.assertRaises(tuff.InvalidArgument, nn.ZeroPad2d, (1, 2))

    def test_resizing(self):
        line, image, volume = SHAPES[1], SHAPES[2], SHAPES[3]
        for factor in (2, 1.7, 0.6):
            for mode, shape in (("nearest", image), ("nearest-exact", image), ("linear", line), ("bilinear", image),
                                ("bicubic", image), ("trilinear", volume)):
                options = {"scale_factor": factor, "mode": mode}
                self.compare(nn.Upsample(**options), torch.nn.Upsample(**options), shape)
        for size in ((5, 7), (9, 14), (13, 3), (6, 4)):
            for mode in ("bilinear", "bicubic", "area"):
                options = {"size": size, "mode": mode}
                self.compare(nn.Upsample(**options), torch.nn.Upsample(**options), image)
            for mode in ("bilinear", "bicubic"):
                options = {"size": size, "mode": mode, "align_corners": True}
                self.compare(nn.Upsample(**options), torch.nn.Upsample(**options), image)
                given = torch.randn(image)
                wanted = torch.nn.functional.interpolate(given, size, mode=mode, antialias=True)
                got = tensor(given).interpolate(size, mode=mode, antialias=True)
                np.testing.assert_allclose(got.numpy(), wanted.numpy(), rtol=1e-4, atol=1e-5)

    def test_infinite_elements_reach_no_further(self):
        x = torch.zeros(1, 1, 8)
        x[0, 0, 3] = float("inf")
        wanted = torch.nn.functional.interpolate(x, scale_factor=2, mode="linear")
        np.testing.assert_array_equal(tensor(x).interpolate(scale_factor=2, mode="linear").numpy(), wanted.numpy())

    def test_views(self):
        self.compare(nn.Unfold(3, 2, 1, 2), torch.nn.Unfold(3, 2, 1, 2), SHAPES[2])
        self.compare(nn.Fold((9, 7), 3, 2, 1, 2), torch.nn.Fold((9, 7), 3, 2, 1, 2), (2, 36, 12))
        self.compare(nn.PixelShuffle(2), torch.nn.PixelShuffle(2), (2, 8, 3, 5))
        self.compare(nn.PixelUnshuffle(3), torch.nn.PixelUnshuffle(3), (2, 2, 6, 9))
        given = torch.randn(SHAPES[1])  # PyTorch's has no gradient
        np.testing.assert_array_equal(nn.ChannelShuffle(2)(tensor(given)).numpy(), torch.nn.ChannelShuffle(2)(given).numpy())

    def test_gradients_of_gradients(self):
        given = torch.randn(2, 3, 4, 5, requires_grad=True)
        weight = torch.randn(3, 2, 3, 3, requires_grad=True)
        y = torch.nn.functional.conv_transpose2d(given, weight, None, 2, 1)
        first, = torch.autograd.grad((y ** 3).sum(), given, create_graph=True)
        second, = torch.autograd.grad((first ** 2).sum(), weight)
        x, w = tensor(given), tensor(weight)
        y = x.conv_transpose2d(w, None, 2, 1)
        first, = (y * y * y).sum().gradient([x])
        got, = (first * first).sum().gradient([w])
        np.testing.assert_allclose(got.numpy(), second.numpy(), rtol=1e-3, atol=1e-2)
        with tuff.no_grad():
            np.testing.assert_allclose(x.conv_transpose2d(w, None, 2, 1).numpy(), y.numpy(), rtol=1e-6)


if __name__ == "__main__":
    unittest.main()
