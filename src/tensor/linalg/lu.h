// LU factorization with partial pivoting. Called by what solves and by determinants.
#pragma once

#include "tensor/linalg/batch.h"

namespace tuff::linalg {

// P a = L U: both triangles in one matrix (batch, n, n), L without its diagonal of ones; where each
// row of the result comes from, and where each row of a went, integers (batch, n).
struct LU {
  Tensor factors, source, place;
};
LU lu_of(const Tensor& a);

// X with a X = b: (batch, n, n) and (batch, n, k); its gradient is a closed form.
Tensor solution(const Tensor& a, const Tensor& b);
// The inverses of (batch, n, n), as well.
Tensor inverse_of(const Tensor& a);

}  // namespace tuff::linalg
