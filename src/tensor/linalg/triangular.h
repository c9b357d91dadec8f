// Triangles: their inverses and products with them. Called by the other factorizations.
#pragma once

#include "tensor/linalg/batch.h"

namespace tuff::linalg {

// Which elements of a triangle are read.
struct Triangle {
  bool upper = false, unit = false;
};

// The inverses of (batch, n, n).
Tensor inverse_of_triangle(const Tensor& t, Triangle form);
// X with t X = b: (batch, n, n) and (batch, n, k).
Tensor divided_by_triangle(const Tensor& t, const Tensor& b, Triangle form);
// The same with a gradient in closed form.
Tensor triangular_solution(const Tensor& t, const Tensor& b, Triangle form);

}  // namespace tuff::linalg
