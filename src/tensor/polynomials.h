// The polynomials that functions of real numbers are made of, and how they are evaluated. Used
// inside tensor; scripts/fit-polynomials.py writes the coefficients.
#pragma once

#include <numbers>
#include <span>

#include <tuff/tensor.h>

namespace tuff::detail {

#define TUFF_POLYNOMIAL(name, ...) inline constexpr double name[] = {__VA_ARGS__};
#include "tensor/polynomials.def"
#undef TUFF_POLYNOMIAL

inline bool is_wide(const Tensor& x) { return x.dtype() == DType::F64; }
// c[0] + x*(c[1] + x*(...))
Tensor horner(const Tensor& x, std::span<const double> c);
// The polynomial for x's type.
inline Tensor horner(const Tensor& x, std::span<const double> f32, std::span<const double> f64) {
  return horner(x, is_wide(x) ? f64 : f32);
}
// erf of x kept in -1..1.
Tensor erf_small(const Tensor& x);
// exp(x^2) erfc(x) of x from 0.4 on.
Tensor scaled_erfc_tail(const Tensor& x);
// x where it is chosen, else a 1, so that what is computed of it is finite and its gradient no NaN.
inline Tensor at(const Tensor& chosen, const Tensor& x) { return Tensor::where(chosen, x, 1.0); }
inline Tensor log_of(const Tensor& x) { return x.log2() * std::numbers::ln2; }
// e^x of f32 or f64 within 2 ULP.
Tensor exact_exp(const Tensor& x);

}  // namespace tuff::detail
