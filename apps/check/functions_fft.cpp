// tuff::fft as rows, and what else came with it: strides, axes by names, CTC. Operands:
// transforms() of scripts/tensor-values.py. More lengths, and draws: tests/tensor/fft_test.cpp,
// draws_test.cpp.
#include <tuff/fft.h>

#include "check/functions.h"

namespace tuff::check {
namespace {

using Inputs = const std::vector<Tensor>&;
using enum Precision;

fft::StftOptions frames(Inputs x) {
  const DType t = x[0].dtype() == DType::F64 ? DType::F64 : DType::F32;
  const TensorOptions there{t, x[0].device()};
  return {.hop_length = 3, .window = fft::hamming_window(8, true, 0.54, 0.46, there)};
}

std::vector<Function> transforms() {
  using fft::Norm;
  return {
      {"fft", Rounded, [](Inputs x) { return fft::fft(x[0]); }},
      {"fft_stages", Rounded, [](Inputs x) { return fft::fft(x[0], {}, 0, Norm::Ortho); }},
      {"fft_chirp", Rounded, [](Inputs x) { return fft::fft(x[0]); }},
      {"ifft", Rounded, [](Inputs x) { return fft::ifft(x[0], 7, 0); }},
      {"rfft", Rounded, [](Inputs x) { return fft::rfft(x[0]); }},
      {"rfft_pairs", Rounded, [](Inputs x) { return fft::rfft(x[0], {}, -1, Norm::Forward); }},
      {"irfft", Rounded, [](Inputs x) { return fft::irfft(x[0]); }},
      {"irfft_pairs", Rounded, [](Inputs x) { return fft::irfft(x[0], 66); }},
      {"fftn", Rounded, [](Inputs x) { return fft::fftn(x[0]); }},
      {"rfft2", Rounded, [](Inputs x) { return fft::rfft2(x[0]); }},
      {"stft", Rounded, [](Inputs x) { return fft::stft(x[0], 8, frames(x)); }},
      {"istft", Rounded, [](Inputs x) { return fft::istft(x[0], 8, frames(x)); }},
      {"complex_product", Rounded, [](Inputs x) { return fft::multiply(x[0], fft::conj(x[1])); }},
      {"fftshift", Exact, [](Inputs x) { return fft::fftshift(x[0], {1}); }},
  };
}

std::vector<Function> others() {
  return {
      {"as_strided", Exact, [](Inputs x) { return x[0].as_strided({2, 3}, {10, 3}, 1); }},
      {"kaiser_window", Curved, [](Inputs) { return fft::kaiser_window(9, false, 8.6); }},
      {"as_strided_windows", Exact, [](Inputs x) { return x[0].as_strided({5, 4}, {3, 2}, 2); }},
      {"rearrange", Exact,
       [](Inputs x) { return x[0].rearrange("a (b p) ... -> (p a) ... b", {{"p", 2}}); }},
      {"ctc_loss", Curved,
       [](Inputs x) {
         const auto lengths = [&](int32_t a, int32_t b) {
           return Tensor::from(std::vector<int32_t>{a, b}, {2}, {.device = x[0].device()});
         };
         return Tensor::ctc_loss(x[0].log_softmax(2), x[1].cast(DType::I32), lengths(6, 4),
                                 lengths(2, 1));
       }},
  };
}

}  // namespace

std::vector<Function> functions_of_fft() {
  std::vector<Function> out;
  for (const auto part : {transforms, others})
    for (Function& f : part()) out.push_back(std::move(f));
  return out;
}

}  // namespace tuff::check
