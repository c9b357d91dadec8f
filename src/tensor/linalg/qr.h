// Householder's QR factorization. Called by least squares and by the singular value decomposition.
#pragma once

#include <utility>

#include "tensor/linalg/batch.h"

namespace tuff::linalg {

// {Q (batch, m, k), R (batch, k, n)}, k = min(m, n), or m where it is complete; with a gradient in
// closed form. Without a gradient for values_of_qr().
std::pair<Tensor, Tensor> qr_of(const Tensor& a, bool complete);
std::pair<Tensor, Tensor> values_of_qr(const Tensor& a, bool complete);

// The power of two at or below the largest magnitude of each matrix, 1 where that is 0: dividing by
// it rounds nothing, and squares of what is left do not overflow.
Tensor magnitude_of(const Tensor& a);

}  // namespace tuff::linalg
