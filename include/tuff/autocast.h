// Mixed precision by scope: which functions compute in 16 bits while it lives. Called by programs
// around a model's forward pass; optim.h's GradScaler scales the loss.
#pragma once

#include <tuff/dtype.h>

namespace tuff {

/// As long as it lives, on this thread: products (matmul and what is made of it, linear, einsum,
/// convolutions, attention's) round their F32 operands to `dtype` and give that dtype, adding up
/// unrounded; of F16 and BF16 these give F32: reductions, norms (normalize() too), softmax, losses,
/// and what PyTorch lists for its range: exp, expm1, log, log2, log10, log1p, pow, reciprocal, a
/// number over a tensor, rsqrt, softplus, tan, acos, asin, cosh, sinh, erfinv. Linear algebra and
/// Fourier transforms are as they are outside; all others follow their operands. Floats of 8 bits
/// and parameters stay as they are, and gradients have the parameters' dtype. Scopes nest; one that
/// is not enabled computes as written. InvalidArgument unless dtype is F16 or BF16.
class Autocast {
 public:
  explicit Autocast(DType dtype = DType::F16, bool enabled = true);
  ~Autocast();
  Autocast(const Autocast&) = delete;

 private:
  DType before_;
};

/// The dtype of this thread's scope; Void outside and in one that is not enabled.
DType autocast_dtype();

}  // namespace tuff
