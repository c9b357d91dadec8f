"""Fourier transforms. Complex numbers are pairs (real part, imaginary part) along a last axis of 2, as PyTorch's
view_as_real() gives them; axes are counted without it. Names and arguments are those of torch.fft."""
from ._tuff.fft import (  # noqa: F401
    bartlett_window, blackman_window, conj, fft, fft2, fftfreq, fftn, fftshift, hamming_window, hann_window, ifft,
    ifft2, ifftn, ifftshift, irfft, irfft2, irfftn, istft, kaiser_window, multiply, rfft, rfft2, rfftfreq, rfftn, stft,
)
