// Linear algebra as rows. Operands: linear_algebra() of scripts/tensor-values.py. Signs of vectors
// are arbitrary, so squares of theirs are compared.
#include <tuff/linalg.h>

#include "check/functions.h"

namespace tuff::check {
namespace {

using Inputs = const std::vector<Tensor>&;
using enum Precision;

// Integers stay integers, which the functions refuse.
Tensor symmetric(const Tensor& x) {
  const Tensor twice = x + x.transpose(-2, -1);
  return is_float(twice.dtype()) ? twice * 0.5 : twice;
}

}  // namespace

std::vector<Function> functions_of_linalg() {
  return {
      {"cholesky", Curved, [](Inputs x) { return symmetric(x[0]).cholesky(); }},
      {"qr_q", Curved, [](Inputs x) { return x[0].qr().first; }},
      {"qr_r", Curved, [](Inputs x) { return x[0].qr().second; }},
      {"solve", Curved, [](Inputs x) { return linalg::solve(x[0], x[1]); }},
      {"solve_triangular", Curved,
       [](Inputs x) { return linalg::solve_triangular(x[0], x[1], true, false); }},
      {"inverse", Curved, [](Inputs x) { return x[0].inverse(); }},
      {"det", Curved, [](Inputs x) { return x[0].det(); }},
      {"logdet", Curved, [](Inputs x) { return x[0].logdet(); }},
      {"slogdet", Curved, [](Inputs x) { return x[0].slogdet().second; }},
      {"slogdet_sign", Exact, [](Inputs x) { return x[0].slogdet().first; }},
      {"eigh_values", Curved, [](Inputs x) { return linalg::eigh(symmetric(x[0])).first; }},
      {"eigh_vectors", Curved,
       [](Inputs x) { return linalg::eigh(symmetric(x[0])).second.square(); }},
      {"svd_values", Curved, [](Inputs x) { return std::get<1>(x[0].svd(false)); }},
      {"svd_vectors", Curved, [](Inputs x) { return std::get<0>(x[0].svd(false)).square(); }},
      {"lstsq", Curved, [](Inputs x) { return linalg::lstsq(x[0], x[1]).solution; }},
      {"det_singular", Curved, [](Inputs x) { return x[0].det(); }},
      {"lstsq_any_rank", Curved,
       [](Inputs x) { return linalg::lstsq(x[0], x[1], 1e-4).solution; }},
      {"pinverse", Curved, [](Inputs x) { return x[0].pinverse(1e-6); }},
      {"matrix_power", Rounded, [](Inputs x) { return x[0].matrix_power(3); }},
      {"newton_schulz", Curved, [](Inputs x) { return x[0].newton_schulz(3); }},
  };
}

}  // namespace tuff::check
