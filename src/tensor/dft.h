// Discrete Fourier transforms of the last axis of points, without a factor. Called by fft. Must
// never know of axes, norms and the dtypes that results are rounded to.
#pragma once

#include <tuff/tensor.h>

namespace tuff::detail {

enum class Direction { Forward, Inverse };  // exp(-2 pi i j k / n), exp(2 pi i j k / n)

// Of F32 or F64. (..., n, 2) -> (..., n, 2)
Tensor complex_dft(const Tensor& x, Direction direction);
// (..., n) -> (..., n/2 + 1, 2), forward
Tensor dft_of_real(const Tensor& x);
// (..., n/2 + 1, 2) -> (..., n), inverse
Tensor dft_to_real(const Tensor& x, int64_t n);

// Of pairs along the last axis, broadcast.
Tensor complex_product(const Tensor& a, const Tensor& b);
Tensor conjugate(const Tensor& x);

// Forgets the constants that lie on a device.
void drop_tables(const std::string& device);

}  // namespace tuff::detail
