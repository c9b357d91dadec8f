// Jacobi's rotations: eigenvalues of symmetric matrices, singular values.
#pragma once

#include <utility>

#include "tensor/linalg/batch.h"

namespace tuff::linalg {

// a = U diag(s) Vh: (batch, m, n) has U (batch, m, k), or m where it is full, s (batch, k)
// descending, Vh (batch, k, n), k = min(m, n). Gradients are closed forms.
struct Singular {
  Tensor u, s, vh;
};
Singular singular_of(const Tensor& a, bool full);

}  // namespace tuff::linalg
