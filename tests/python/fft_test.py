"""tuff.fft against NumPy's, with pairs for complex numbers."""
import unittest

import numpy as np

import tuff
from tuff import fft

RNG = np.random.default_rng(4)
PAIRS = RNG.uniform(-1, 1, (3, 4, 10, 2)).astype(np.float32)
COMPLEX = PAIRS[..., 0].astype(np.float64) + 1j * PAIRS[..., 1]
REAL = PAIRS[..., 0]


class Fft(unittest.TestCase):
    def same(self, got, expected, what=""):
        expected = np.asarray(expected)
        if np.iscomplexobj(expected):
            expected = np.stack([expected.real, expected.imag], -1)
        self.assertEqual(got.shape, expected.shape, what)
        np.testing.assert_allclose(got.numpy(), expected, atol=2e-6 * max(1, np.abs(expected).max()), err_msg=what)

    def test_one_axis(self):
        x, real = tuff.tensor(PAIRS), tuff.tensor(REAL)
        for norm in (None, "backward", "ortho", "forward"):
            self.same(fft.fft(x, norm=norm), np.fft.fft(COMPLEX, norm=norm), norm)
            self.same(fft.ifft(x, 7, 1, norm), np.fft.ifft(COMPLEX, 7, 1, norm), norm)
            self.same(fft.rfft(real, n=12, norm=norm), np.fft.rfft(REAL, 12, norm=norm), norm)
            self.same(fft.irfft(x, dim=0, norm=norm), np.fft.irfft(COMPLEX, axis=0, norm=norm), norm)
        with self.assertRaisesRegex(tuff.InvalidArgument, '"both" is none of: backward, ortho, forward'):
            fft.fft(x, norm="both")

    def test_several_axes(self):
        x, real = tuff.tensor(PAIRS), tuff.tensor(REAL)
        self.same(fft.fft2(x), np.fft.fft2(COMPLEX))
        self.same(fft.ifft2(x, s=(3, 12)), np.fft.ifft2(COMPLEX, (3, 12)))
        self.same(fft.rfft2(real, dim=(0, 1)), np.fft.rfft2(REAL, axes=(0, 1)))
        self.same(fft.irfft2(x), np.fft.irfft2(COMPLEX))
        self.same(fft.fftn(x), np.fft.fftn(COMPLEX))
        self.same(fft.ifftn(x, dim=(0, 2)), np.fft.ifftn(COMPLEX, axes=(0, 2)))
        self.same(fft.rfftn(real, s=(4, 8)), np.fft.rfftn(REAL, (4, 8), (1, 2)))
        self.same(fft.irfftn(x, norm="ortho"), np.fft.irfftn(COMPLEX, norm="ortho"))

    def test_what_stands_around_them(self):
        x = tuff.tensor(PAIRS)
        self.same(fft.multiply(x, fft.conj(x[0])), COMPLEX * COMPLEX[0].conj())
        self.same(fft.fftshift(tuff.tensor(REAL)), np.fft.fftshift(REAL))
        self.same(fft.ifftshift(x, dim=(0, 1)), np.fft.ifftshift(COMPLEX, (0, 1)))
        self.same(fft.fftfreq(9, d=0.1), np.fft.fftfreq(9, 0.1))
        self.same(fft.rfftfreq(8), np.fft.rfftfreq(8))
        self.same(tuff.hann_window(8, periodic=False), np.hanning(8))
        self.same(tuff.kaiser_window(8, periodic=False, beta=8.6), np.kaiser(8, 8.6))
        self.same(tuff.kaiser_window(8), np.kaiser(9, 12)[:8])
        self.same(tuff.hamming_window(8, False), np.hamming(8))
        self.same(tuff.blackman_window(8, False), np.blackman(8))
        self.same(tuff.bartlett_window(8, False), np.bartlett(8))

    def test_frames(self):
        signal = REAL.reshape(3, 40)
        window = tuff.hann_window(16)
        spectra = tuff.stft(tuff.tensor(signal), 16, hop_length=4, window=window)
        around = np.pad(signal, ((0, 0), (8, 8)), "reflect")
        frames = np.lib.stride_tricks.sliding_window_view(around, 16, 1)[:, ::4] * np.hanning(17)[:16]
        self.same(spectra, np.fft.rfft(frames).transpose(0, 2, 1))
        self.same(tuff.istft(spectra, 16, hop_length=4, window=window, length=40), signal)


if __name__ == "__main__":
    unittest.main()
