// fft: discrete Fourier transforms, spectrograms and their windows. Called by users; must never
// know how a length is factored.
#pragma once

#include <cstdint>
#include <optional>

#include <tuff/tensor.h>

/// Complex numbers are pairs (real part, imaginary part) along a last axis of extent 2, as
/// PyTorch's view_as_real() gives them. Axes are counted without it: dim -1 is the last axis of the complex
/// tensor, as in PyTorch, also where the tensor is a real one. Names and arguments are PyTorch's.
///
/// F16, BF16 and integers are computed in F32 and rounded once; integers become F32. Everything is
/// lazy and has gradients. ShapeError for tensors that hold no pairs and for lengths below 1,
/// IndexError for axes that are not there, Unsupported for extents that vary.
///
/// Any length is computed in O(n log n) operations: Cooley and Tukey (1965), Bluestein (1970).
namespace tuff::fft {

/// Which direction is divided by the number of points: the inverse, both by its root, the forward.
enum class Norm { Backward, Ortho, Forward };

/// The sum over j of x[j] exp(-2 pi i j k / n) for each k: (..., n, 2) -> (..., n, 2). Another n
/// than the extent cuts the axis or puts zeros behind it.
Tensor fft(const Tensor& x, std::optional<int64_t> n = {}, int64_t dim = -1,
           Norm norm = Norm::Backward);
/// The same with exp(2 pi i j k / n), divided by n.
Tensor ifft(const Tensor& x, std::optional<int64_t> n = {}, int64_t dim = -1,
            Norm norm = Norm::Backward);
/// fft() of real numbers, of which the other half would be the conjugates of this one:
/// (..., n) -> (..., n/2 + 1, 2).
Tensor rfft(const Tensor& x, std::optional<int64_t> n = {}, int64_t dim = -1,
            Norm norm = Norm::Backward);
/// The real numbers that have this half of a spectrum: (..., n/2 + 1, 2) -> (..., n). Unless n is
/// given it is 2 (m - 1) for m points. The imaginary parts of the first point and, for an even n,
/// the last one are not looked at.
Tensor irfft(const Tensor& x, std::optional<int64_t> n = {}, int64_t dim = -1,
             Norm norm = Norm::Backward);

/// Along several axes, the last ones or all unless they are named; s are their lengths (-1 keeps
/// one). InvalidArgument for lengths and axes that differ in number, and for an axis named twice.
Tensor fftn(const Tensor& x, const Axes& s = {}, const Axes& dims = {}, Norm norm = Norm::Backward);
/// The inverse of fftn().
Tensor ifftn(const Tensor& x, const Axes& s = {}, const Axes& dims = {},
             Norm norm = Norm::Backward);
/// rfft() of the last axis named, fft() of the others.
Tensor rfftn(const Tensor& x, const Axes& s = {}, const Axes& dims = {},
             Norm norm = Norm::Backward);
/// irfft() of the last axis named, ifft() of the others before it.
Tensor irfftn(const Tensor& x, const Axes& s = {}, const Axes& dims = {},
              Norm norm = Norm::Backward);
/// fftn() of two axes.
Tensor fft2(const Tensor& x, const Axes& s = {}, const Axes& dims = {-2, -1},
            Norm norm = Norm::Backward);
/// ifftn() of two axes.
Tensor ifft2(const Tensor& x, const Axes& s = {}, const Axes& dims = {-2, -1},
             Norm norm = Norm::Backward);
/// rfftn() of two axes.
Tensor rfft2(const Tensor& x, const Axes& s = {}, const Axes& dims = {-2, -1},
             Norm norm = Norm::Backward);
/// irfftn() of two axes.
Tensor irfft2(const Tensor& x, const Axes& s = {}, const Axes& dims = {-2, -1},
              Norm norm = Norm::Backward);

/// The frequencies of fft()'s points in cycles per unit of the sample spacing d: 0, 1, ..., then
/// the negative ones, over d n.
Tensor fftfreq(int64_t n, double d = 1, const TensorOptions& options = {});
/// Those of rfft()'s points: 0, 1, ..., n/2, over d n.
Tensor rfftfreq(int64_t n, double d = 1, const TensorOptions& options = {});
/// The point of frequency 0 from the front to the middle of axes, or of all. These are axes of the
/// tensor as it is: of a spectrum the last one holds pairs, so name the others, from the front.
Tensor fftshift(const Tensor& x, const Axes& dims = {});
/// The other way round.
Tensor ifftshift(const Tensor& x, const Axes& dims = {});

/// The product of complex numbers, broadcast: a spectrum times a filter's.
Tensor multiply(const Tensor& a, const Tensor& b);
/// The conjugates of complex numbers.
Tensor conj(const Tensor& x);

/// How stft() and istft() cut a signal into frames.
struct StftOptions {
  std::optional<int64_t> hop_length = {};  ///< between frames; a quarter of n_fft
  std::optional<int64_t> win_length = {};  ///< of the window, in the middle of a frame; n_fft
  Tensor window = {};                      ///< (win_length); ones
  bool center = true;                      ///< frame t has element t * hop_length in its middle
  PadMode pad_mode = PadMode::Reflect;     ///< what stands around the signal if center
  bool normalized = false;                 ///< divided by the root of n_fft
  bool onesided = true;                    ///< n_fft/2 + 1 points: those of rfft()
};

/// Spectra of frames: (L) or (B, L) of real numbers -> (..., points, frames, 2). ShapeError for a
/// signal shorter than a frame and for a window of another length, InvalidArgument for lengths
/// below 1 and a win_length above n_fft.
Tensor stft(const Tensor& x, int64_t n_fft, const StftOptions& options = {});
/// The signal that has these spectra, by overlapping frames, weighted by the window and divided by
/// the sum of its squares (Griffin and Lim, 1984), 0 where that is 0; `length` cuts or pads it.
/// pad_mode is not looked at.
Tensor istft(const Tensor& x, int64_t n_fft, const StftOptions& options = {},
             std::optional<int64_t> length = {});

/// sin^2(pi k / n) for k < n; with a symmetric end over n - 1 unless periodic. As all windows:
/// ones for n = 1, InvalidArgument for a negative n and for no float.
Tensor hann_window(int64_t n, bool periodic = true, const TensorOptions& options = {});
/// alpha - beta cos(2 pi k / n).
Tensor hamming_window(int64_t n, bool periodic = true, double alpha = 0.54, double beta = 0.46,
                      const TensorOptions& options = {});
/// 0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n).
Tensor blackman_window(int64_t n, bool periodic = true, const TensorOptions& options = {});
/// 1 - |2 k / n - 1|.
Tensor bartlett_window(int64_t n, bool periodic = true, const TensorOptions& options = {});
/// i0(beta sqrt(1 - (2 k / n - 1)^2)) / i0(beta) (Kaiser, 1974); beta trades the width of the main
/// lobe for the height of the others.
Tensor kaiser_window(int64_t n, bool periodic = true, double beta = 12,
                     const TensorOptions& options = {});

}  // namespace tuff::fft
