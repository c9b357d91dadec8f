// Spectra of frames of a signal, the way back, and the windows of frames.
#include <tuff/fft.h>

#include <cmath>
#include <numbers>

#include "base/check.h"
#include "tensor/dft.h"
#include "tensor/impl.h"

namespace tuff::fft {

using detail::text;

namespace {

// What stft() and istft() were asked for, checked, with the window in the middle of a frame.
struct Frames {
  int64_t n, hop;
  Tensor window;  // (n); undefined: ones

  Frames(const char* what, const Tensor& x, int64_t n_fft, const StftOptions& o)
      : n(n_fft), hop(o.hop_length.value_or(n_fft / 4)) {
    const int64_t length = o.win_length.value_or(n_fft);
    if (n < 1 || hop < 1 || length < 1)
      fail<InvalidArgument>("{}: n_fft {}, hop_length {} and win_length {} must be positive", what,
                            n, hop, length);
    if (length > n)
      fail<InvalidArgument>("{}: win_length {} is above n_fft {}", what, length, n);
    detail::require_numbers(what, x.sizes());
    window = o.window;
    if (window.defined()) {
      detail::require_same_device(what, x, window);
      if (!detail::same(window.sizes(), {length}))
        fail<ShapeError>("{}: window {} for a win_length of {}", what, text(window.sizes()),
                         length);
      window = window.cast(detail::compute_dtype(x.dtype()));
    } else if (length < n) {
      window = Tensor::ones({length}, {detail::compute_dtype(x.dtype()), x.device()});
    }
    const int64_t before = (n - length) / 2;
    if (length < n) window = window.pad({before, n - length - before});
  }
  Tensor weighted(const Tensor& frames) const {
    return window.defined() ? frames * window : frames;
  }
};

Tensor with_zeros(const Tensor& x) { return Tensor::stack({x, x.zeros_like()}, -1); }

// Frames (..., T, n) a hop apart added up: (..., (T - 1) hop + n).
Tensor overlapped(const Tensor& frames, const Frames& f) {
  Sizes sizes = frames.sizes();
  const int64_t count = sizes[sizes.size() - 2];
  sizes.pop_back();
  sizes.back() = (count - 1) * f.hop + f.n;
  return detail::adjoint(sizes, frames,
                         [&](const Tensor& x) { return x.unfold(-1, f.n, f.hop); });
}

// The sum of squared windows wherever frames lie.
Tensor envelope(const Tensor& frames, const Frames& f) {
  const Sizes each{frames.size(-2), f.n};
  const Tensor square = f.window.defined() ? (f.window * f.window).expand(each)
                                           : Tensor::ones(each, {frames.dtype(), frames.device()});
  return overlapped(square, f);
}

Tensor to_length(const Tensor& x, int64_t length) {
  const int64_t n = x.size(-1);
  return n < length ? x.pad({0, length - n}) : x.narrow(-1, 0, length);
}

}  // namespace

Tensor stft(const Tensor& given, int64_t n_fft, const StftOptions& o) {
  const Frames f("stft", given, n_fft, o);
  if (given.dim() < 1 || given.dim() > 2)
    fail<ShapeError>("stft: {} is neither (L) nor (B, L)", text(given.sizes()));
  const int64_t around = o.center ? n_fft / 2 : 0, length = given.size(-1);
  if (length + 2 * around < n_fft || (o.pad_mode == PadMode::Reflect && around >= length && around))
    fail<ShapeError>("stft: a signal of {} elements is too short for frames of {}", length, n_fft);
  return detail::computed_wide(given, [&](const Tensor& x) {
    const Tensor padded = around ? x.pad({around, around}, o.pad_mode) : x;
    const Tensor frames = f.weighted(padded.unfold(-1, f.n, f.hop));
    const Tensor spectra =
        o.onesided ? detail::dft_of_real(frames)
                   : detail::complex_dft(with_zeros(frames), detail::Direction::Forward);
    const Tensor out = spectra.transpose(-3, -2);
    return o.normalized ? out / std::sqrt(double(n_fft)) : out;
  });
}

Tensor istft(const Tensor& given, int64_t n_fft, const StftOptions& o,
             std::optional<int64_t> length) {
  const Frames f("istft", given, n_fft, o);
  const int64_t points = o.onesided ? n_fft / 2 + 1 : n_fft, axes = given.dim();
  if (axes < 3 || axes > 4 || !detail::same(given.size(-1), 2) ||
      !detail::same(given.size(-3), points) || int64_t(given.size(-2)) == 0)
    fail<ShapeError>("istft: {} is not (..., {}, frames, 2)", text(given.sizes()), points);
  if (length && *length < 1) fail<InvalidArgument>("istft: a length of {}", *length);
  return detail::computed_wide(given, [&](const Tensor& x) {
    const Tensor spectra = x.transpose(-3, -2);
    const Tensor whole =
        o.onesided ? detail::dft_to_real(spectra, n_fft)
                   : detail::complex_dft(spectra, detail::Direction::Inverse).select(-1, 0);
    const double factor = o.normalized ? 1 / std::sqrt(double(n_fft)) : 1 / double(n_fft);
    const Tensor frames = f.weighted(whole * factor);
    const Tensor sum = overlapped(frames, f), weight = envelope(frames, f);
    const Tensor some = weight > 1e-11;
    Tensor out = Tensor::where(some, sum / Tensor::where(some, weight, 1.0), 0.0);
    const int64_t all = out.size(-1), cut = o.center ? n_fft / 2 : 0;
    if (all <= 2 * cut)
      fail<ShapeError>("istft: {} frames are all before the signal begins", int64_t(x.size(-2)));
    out = out.narrow(-1, cut, all - cut);
    return to_length(out, length.value_or(all - 2 * cut));
  });
}

namespace {

// f(k, the extent of a period) for k < n, in the dtype that is computed in.
template <class F>
Tensor window_of(const char* what, int64_t n, bool periodic, const TensorOptions& o, F&& f) {
  if (n < 0) fail<InvalidArgument>("{}: {} elements", what, n);
  if (!is_float(o.dtype))
    fail<InvalidArgument>("{}: {} is no floating-point type", what, name(o.dtype));
  Tensor out;
  if (n < 2) {
    out = Tensor::ones({n}, {o.dtype, o.device});
  } else {
    const Tensor k = Tensor::arange(0, n, 1, {DType::I32, o.device});
    out = f(k.cast(detail::compute_dtype(o.dtype)), double(periodic ? n : n - 1)).cast(o.dtype);
  }
  if (o.requires_grad) out.realize();
  return detail::finish(out, o);
}

constexpr double kTwoPi = 2 * std::numbers::pi;

}  // namespace

Tensor hann_window(int64_t n, bool periodic, const TensorOptions& options) {
  return window_of("hann_window", n, periodic, options, [](const Tensor& k, double period) {
    const Tensor nearer = k.minimum(period - k);  // both ends alike, and 0 where they meet
    return (nearer * (std::numbers::pi / period)).sin().square();
  });
}
Tensor hamming_window(int64_t n, bool periodic, double alpha, double beta,
                      const TensorOptions& options) {
  return window_of("hamming_window", n, periodic, options, [=](const Tensor& k, double period) {
    return alpha - (k * (kTwoPi / period)).cos() * beta;
  });
}
Tensor blackman_window(int64_t n, bool periodic, const TensorOptions& options) {
  return window_of("blackman_window", n, periodic, options, [](const Tensor& k, double period) {
    const Tensor at = k * (kTwoPi / period);
    return 0.42 - at.cos() * 0.5 + (at * 2).cos() * 0.08;
  });
}
Tensor kaiser_window(int64_t n, bool periodic, double beta, const TensorOptions& options) {
  return window_of("kaiser_window", n, periodic, options, [=](const Tensor& k, double period) {
    // 1 - (2 k / n - 1)^2 without cancellation.
    const Tensor at = k * (period - k) * (4 / (period * period));
    return (at.sqrt() * beta).i0() / detail::number_like(at, beta).i0();
  });
}
Tensor bartlett_window(int64_t n, bool periodic, const TensorOptions& options) {
  return window_of("bartlett_window", n, periodic, options, [](const Tensor& k, double period) {
    return 1 - (k * (2 / period) - 1).abs();
  });
}

}  // namespace tuff::fft
