// tuff.fft: Fourier transforms, spectrograms, windows.
#include <tuff/fft.h>

#include "module.h"

namespace pybind11::detail {
template <>
struct type_caster<tuff::fft::Norm> {
  static constexpr std::pair<const char*, tuff::fft::Norm> kRows[] = {
      {"backward", tuff::fft::Norm::Backward},
      {"ortho", tuff::fft::Norm::Ortho},
      {"forward", tuff::fft::Norm::Forward}};
  PYBIND11_TYPE_CASTER(tuff::fft::Norm, const_name("str | None"));
  bool load(handle source, bool) {
    value = tuff::fft::Norm::Backward;
    return source.is_none() || load_word(source, kRows, value);
  }
  static handle cast(tuff::fft::Norm n, return_value_policy, handle) {
    return cast_word(n, kRows);
  }
};
}  // namespace pybind11::detail

namespace tuff::python {
namespace {

using fft::Norm;
using py::arg;

struct OfOneAxis {
  const char* name;
  Tensor (*function)(const Tensor&, std::optional<int64_t>, int64_t, Norm);
  const char* doc;
};
constexpr OfOneAxis kOneAxis[] = {
    {"fft", &fft::fft, "The spectrum of complex numbers, pairs along the last axis."},
    {"ifft", &fft::ifft, "The complex numbers that have this spectrum."},
    {"rfft", &fft::rfft, "Half of the spectrum of real numbers: n/2 + 1 points."},
    {"irfft", &fft::irfft, "The real numbers that have this half of a spectrum."},
};

struct OfSeveralAxes {
  const char* name;
  Tensor (*function)(const Tensor&, const Axes&, const Axes&, Norm);
  const char* doc;
};
constexpr OfSeveralAxes kTwoAxes[] = {
    {"fft2", &fft::fft2, "fftn() of two axes."},
    {"ifft2", &fft::ifft2, "ifftn() of two axes."},
    {"rfft2", &fft::rfft2, "rfftn() of two axes."},
    {"irfft2", &fft::irfft2, "irfftn() of two axes."},
};
constexpr OfSeveralAxes kAllAxes[] = {
    {"fftn", &fft::fftn, "fft() along several axes, or all."},
    {"ifftn", &fft::ifftn, "ifft() along several axes, or all."},
    {"rfftn", &fft::rfftn, "rfft() of the last axis, fft() of the others."},
    {"irfftn", &fft::irfftn, "irfft() of the last axis, ifft() of the others before it."},
};

void bind_transforms(py::module_& m) {
  for (const OfOneAxis& f : kOneAxis)
    m.def(f.name, f.function, arg("input"), arg("n") = py::none(), arg("dim") = -1,
          arg("norm") = Norm::Backward, f.doc);
  const auto several = [&](const OfSeveralAxes& f, const AxesArgument& dims) {
    m.def(
        f.name,
        [f](const Tensor& x, const AxesArgument& s, const AxesArgument& dim, Norm norm) {
          return f.function(x, s.axes, dim.axes, norm);
        },
        arg("input"), arg("s") = AxesArgument{}, arg("dim") = dims, arg("norm") = Norm::Backward,
        f.doc);
  };
  for (const OfSeveralAxes& f : kTwoAxes) several(f, {{-2, -1}});
  for (const OfSeveralAxes& f : kAllAxes) several(f, {});
  const auto shift = [&](const char* name, Tensor (*function)(const Tensor&, const Axes&),
                         const char* doc) {
    m.def(
        name,
        [function](const Tensor& x, const AxesArgument& dim) { return function(x, dim.axes); },
        arg("input"), arg("dim") = AxesArgument{}, doc);
  };
  shift("fftshift", &fft::fftshift,
        "Frequency 0 to the middle of axes of the tensor as it is; of a spectrum name all but the "
        "last.");
  shift("ifftshift", &fft::ifftshift, "fftshift() the other way round.");
  m.def("multiply", &fft::multiply, arg("input"), arg("other"),
        "The product of complex numbers, pairs along the last axis.");
  m.def("conj", &fft::conj, arg("input"), "The conjugates of complex numbers.");
}

#define TUFF_OPTIONS \
  py::kw_only(), arg("dtype") = DType::F32, arg("device") = "", arg("requires_grad") = false

void bind_frequencies(py::module_& m) {
  const auto frequencies = [&](const char* name,
                               Tensor (*function)(int64_t, double, const TensorOptions&),
                               const char* doc) {
    m.def(
        name,
        [function](int64_t n, double d, DType t, const std::string& device, bool grad) {
          return function(n, d, {t, device, grad});
        },
        arg("n"), arg("d") = 1.0, TUFF_OPTIONS, doc);
  };
  frequencies("fftfreq", &fft::fftfreq, "The frequencies of fft()'s points.");
  frequencies("rfftfreq", &fft::rfftfreq, "The frequencies of rfft()'s points.");
  const auto window = [&](const char* name,
                          Tensor (*function)(int64_t, bool, const TensorOptions&),
                          const char* doc) {
    m.def(
        name,
        [function](int64_t n, bool periodic, DType t, const std::string& device, bool grad) {
          return function(n, periodic, {t, device, grad});
        },
        arg("window_length"), arg("periodic") = true, TUFF_OPTIONS, doc);
  };
  window("hann_window", &fft::hann_window, "sin^2(pi k / n).");
  window("blackman_window", &fft::blackman_window,
         "0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n).");
  window("bartlett_window", &fft::bartlett_window, "1 - |2 k / n - 1|.");
  m.def(
      "hamming_window",
      [](int64_t n, bool periodic, double alpha, double beta, DType t, const std::string& device,
         bool grad) { return fft::hamming_window(n, periodic, alpha, beta, {t, device, grad}); },
      arg("window_length"), arg("periodic") = true, arg("alpha") = 0.54, arg("beta") = 0.46,
      TUFF_OPTIONS, "alpha - beta cos(2 pi k / n).");
  m.def(
      "kaiser_window",
      [](int64_t n, bool periodic, double beta, DType t, const std::string& device, bool grad) {
        return fft::kaiser_window(n, periodic, beta, {t, device, grad});
      },
      arg("window_length"), arg("periodic") = true, arg("beta") = 12.0, TUFF_OPTIONS,
      "i0(beta sqrt(1 - (2 k / n - 1)^2)) / i0(beta).");
}

void bind_frames(py::module_& m) {
  using Length = std::optional<int64_t>;
  m.def(
      "stft",
      [](const Tensor& x, int64_t n_fft, Length hop, Length win, const MaybeTensor& window,
         bool center, PadMode mode, bool normalized, bool onesided) {
        return fft::stft(x, n_fft, {hop, win, given(window), center, mode, normalized, onesided});
      },
      arg("input"), arg("n_fft"), arg("hop_length") = py::none(), arg("win_length") = py::none(),
      arg("window") = py::none(), arg("center") = true, arg("pad_mode") = PadMode::Reflect,
      arg("normalized") = false, arg("onesided") = true,
      "Spectra of frames: (B, L) -> (B, points, frames, 2), PyTorch's with view_as_real().");
  m.def(
      "istft",
      [](const Tensor& x, int64_t n_fft, Length hop, Length win, const MaybeTensor& window,
         bool center, bool normalized, bool onesided, Length length) {
        return fft::istft(x, n_fft,
                          {hop, win, given(window), center, PadMode::Reflect, normalized, onesided},
                          length);
      },
      arg("input"), arg("n_fft"), arg("hop_length") = py::none(), arg("win_length") = py::none(),
      arg("window") = py::none(), arg("center") = true, arg("normalized") = false,
      arg("onesided") = true, arg("length") = py::none(), "The signal that has these spectra.");
}

}  // namespace

void bind_fft(py::module_& parent) {
  py::module_ m = parent.def_submodule("fft", "Fourier transforms of pairs of real numbers.");
  bind_transforms(m);
  bind_frequencies(m);
  bind_frames(m);
}

}  // namespace tuff::python
