// special.h, and what stands in TensorMath, TensorViews, TensorProducts, TensorStatistics and
// linalg.h beside the rows of other files, as rows. Operands: more_math(), more_parts() and
// more_linalg() of scripts/tensor-values.py.
#include <tuff/linalg.h>
#include <tuff/special.h>

#include "check/functions.h"

namespace tuff::check {
namespace {

using Inputs = const std::vector<Tensor>&;
using enum Precision;

const std::vector<DType> kIntegers{DType::I8,  DType::U8,  DType::I16, DType::U16,
                                   DType::I32, DType::U32, DType::I64, DType::U64};

std::vector<Function> numbers() {
  return {
      {"addcmul", Rounded, [](Inputs x) { return x[0].addcmul(x[1], x[2], 2); }},
      {"addcdiv", Rounded, [](Inputs x) { return x[0].addcdiv(x[1], x[2], 2); }},
      {"gcd", Exact, [](Inputs x) { return x[0].gcd(x[1]); }, kIntegers},
      {"lcm", Exact, [](Inputs x) { return x[0].lcm(x[1]); }, kIntegers},
      {"isposinf", Exact, [](Inputs x) { return x[0].isposinf(); }},
      {"logaddexp2", Curved, [](Inputs x) { return x[0].logaddexp2(x[1]); }},
      {"frexp_mantissa", Exact, [](Inputs x) { return x[0].frexp().first; }},
      {"frexp_exponent", Exact, [](Inputs x) { return x[0].frexp().second; }},
      {"nextafter", Exact, [](Inputs x) { return x[0].nextafter(x[1]); }},
      {"fmax", Exact, [](Inputs x) { return x[0].fmax(x[1]); }},
      {"fmin", Exact, [](Inputs x) { return x[0].fmin(x[1]); }},
      {"heaviside", Exact, [](Inputs x) { return x[0].heaviside(x[1]); }},
  };
}

std::vector<Function> special_functions() {
  return {
      {"polygamma", Curved, [](Inputs x) { return x[0].polygamma(2); }},
      {"trigamma", Curved, [](Inputs x) { return x[0].polygamma(1); }},
      {"mvlgamma", Curved, [](Inputs x) { return x[0].mvlgamma(2); }},
      {"entr", Curved, [](Inputs x) { return special::entr(x[0]); }},
      {"erfcx", Curved, [](Inputs x) { return special::erfcx(x[0]); }},
      {"ndtr", Curved, [](Inputs x) { return special::ndtr(x[0]); }},
      {"log_ndtr", Curved, [](Inputs x) { return special::log_ndtr(x[0]); }},
      {"ndtri", Curved, [](Inputs x) { return special::ndtri(x[0]); }},
      {"xlog1py", Curved, [](Inputs x) { return special::xlog1py(x[0], x[1]); }},
      {"zeta", Curved, [](Inputs x) { return special::zeta(x[0].detach(), x[1]); }},
      {"i0e", Curved, [](Inputs x) { return special::i0e(x[0]); }},
      {"i1", Curved, [](Inputs x) { return special::i1(x[0]); }},
      {"i1e", Curved, [](Inputs x) { return special::i1e(x[0]); }},
      {"spherical_bessel_j0", Curved, [](Inputs x) { return special::spherical_bessel_j0(x[0]); }},
      {"chebyshev_polynomial_t", Rounded,
       [](Inputs x) { return special::chebyshev_polynomial_t(x[0], 4); }},
      {"legendre_polynomial_p", Rounded,
       [](Inputs x) { return special::legendre_polynomial_p(x[0], 3); }},
  };
}

std::vector<Function> parts() {
  return {
      {"diff", Exact, [](Inputs x) { return x[0].diff(); }},
      {"block_diag", Exact, [](Inputs x) { return Tensor::block_diag({x[0], x[1]}); }},
      {"cartesian_prod", Exact, [](Inputs x) { return Tensor::cartesian_prod({x[0], x[1]}); }},
      {"combinations", Exact, [](Inputs x) { return x[0].combinations(3, true); }},
      {"select_scatter", Exact, [](Inputs x) { return x[0].select_scatter(x[1], 1, -2); }},
      {"slice_scatter", Exact, [](Inputs x) { return x[0].slice_scatter(x[1], 2, 1, 4, 2); }},
      {"diagonal_scatter", Exact, [](Inputs x) { return x[0].diagonal_scatter(x[1], -1); }},
      {"as_strided_scatter", Exact,
       [](Inputs x) { return x[0].as_strided_scatter(x[1], {2, 3}, {5, 1}, 2); }},
      {"isin", Exact, [](Inputs x) { return x[0].isin(x[1]); }},
      {"inner", Rounded, [](Inputs x) { return x[0].inner(x[1]); }},
      {"tensordot", Rounded, [](Inputs x) { return x[0].tensordot(x[1]); }},
      {"vander", Rounded, [](Inputs x) { return x[0].vander(4); }},
      {"addmv", Rounded, [](Inputs x) { return x[0].addmv(x[1], x[2], 2, 3); }},
      {"addr", Rounded, [](Inputs x) { return x[0].addr(x[1], x[2], 2, 3); }},
      {"addbmm", Rounded, [](Inputs x) { return x[0].addbmm(x[1], x[2]); }},
      {"nansum", Rounded, [](Inputs x) { return x[0].nansum({1}); }},
      {"nanmean", Rounded, [](Inputs x) { return x[0].nanmean({1}); }},
      {"sum_to_size", Rounded, [](Inputs x) { return x[0].sum_to_size({3, 1}); }},
      {"pdist", Rounded, [](Inputs x) { return x[0].pdist(); }},
      {"pairwise_distance", Rounded, [](Inputs x) { return x[0].pairwise_distance(x[1]); }},
      {"renorm", Rounded, [](Inputs x) { return x[0].renorm(2, 0, 1.5); }},
      {"trapezoid", Rounded, [](Inputs x) { return x[0].trapezoid(x[1], 1); }},
      {"cumulative_trapezoid", Rounded, [](Inputs x) { return x[0].cumulative_trapezoid(0.5, 0); }},
  };
}

std::vector<Function> matrices() {
  return {
      {"lu_lower", Curved, [](Inputs x) { return std::get<1>(linalg::lu(x[0])); }},
      {"lu_upper", Curved, [](Inputs x) { return std::get<2>(linalg::lu(x[0])); }},
      {"lu_pivots", Exact, [](Inputs x) { return linalg::lu_factor(x[0].detach()).second; }},
      {"cholesky_solve", Curved,
       [](Inputs x) { return linalg::cholesky_solve(x[1], x[0].tril()); }},
      {"matrix_exp", Curved, [](Inputs x) { return linalg::matrix_exp(x[0]); }},
      {"householder_product", Curved,
       [](Inputs x) { return linalg::householder_product(x[0], x[1]); }},
  };
}

}  // namespace

std::vector<Function> functions_of_special() {
  std::vector<Function> out;
  for (const auto part : {numbers, special_functions, parts, matrices})
    for (Function& f : part()) out.push_back(std::move(f));
  return out;
}

}  // namespace tuff::check
