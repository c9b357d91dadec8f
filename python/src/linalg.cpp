// tuff.linalg and TensorLinalg: linear algebra.
#include <tuff/linalg.h>

#include "module.h"

namespace tuff::python {
namespace {

using py::arg;

// A norm's order: none, a number, or the name of a norm of matrices.
using Order = std::variant<double, std::string>;

Tensor norm_of(const Tensor& x, const std::optional<Order>& order, const AxesArgument& dim,
               bool keepdim) {
  if (!order) return linalg::norm(x, {}, dim.axes, keepdim);
  if (const double* number = std::get_if<double>(&*order))
    return linalg::norm(x, *number, dim.axes, keepdim);
  return linalg::matrix_norm(x, std::get<std::string>(*order), keepdim);
}
Tensor matrix_norm_of(const Tensor& a, const Order& order, bool keepdim) {
  return std::visit([&](const auto& o) { return linalg::matrix_norm(a, o, keepdim); }, order);
}
Tensor cond_of(const Tensor& a, const std::optional<Order>& order) {
  if (!order) return linalg::cond(a);
  return std::visit([&](const auto& o) { return linalg::cond(a, o); }, *order);
}

void bind_factorizations(py::module_& m) {
  m.def("cholesky", &linalg::cholesky, arg("A"), py::kw_only(), arg("upper") = false,
        "L with A = L Lᵀ; NaN where A is not positive definite.");
  m.def("qr", &linalg::qr, arg("A"), arg("mode") = "reduced",
        "Q and R with A = Q R; mode is \"reduced\", \"complete\" or \"r\".");
  m.def("eigh", &linalg::eigh, arg("A"), arg("UPLO") = "L",
        "Eigenvalues, ascending, and eigenvectors of a symmetric matrix, of which a triangle is "
        "read.");
  m.def("eigvalsh", &linalg::eigvalsh, arg("A"), arg("UPLO") = "L", "The eigenvalues of eigh().");
  m.def("svd", &linalg::svd, arg("A"), arg("full_matrices") = true,
        "U, S and Vh with A = U diag(S) Vh, S descending.");
  m.def("lu", &linalg::lu, arg("A"), "P, L and U with A = P L U.");
  m.def("lu_factor", &linalg::lu_factor, arg("A"),
        "L and U in one matrix, and which rows were exchanged, counted from 1.");
  m.def("householder_product", &linalg::householder_product, arg("A"), arg("tau"),
        "The first columns of the product of reflections 1 - tau v vT.");
  m.def("svdvals", &linalg::svdvals, arg("A"), "The singular values of svd().");
}

void bind_equations(py::module_& m) {
  m.def("solve", &linalg::solve, arg("A"), arg("B"), py::kw_only(), arg("left") = true,
        "X with A X = B, or X A = B.");
  m.def("solve_triangular", &linalg::solve_triangular, arg("A"), arg("B"), py::kw_only(),
        arg("upper"), arg("left") = true, arg("unitriangular") = false,
        "solve() of a triangle, whose other side is not read.");
  m.def("inv", &linalg::inv, arg("A"), "The inverse; inf or NaN where there is none.");
  m.def(
      "lstsq",
      [](const Tensor& a, const Tensor& b, std::optional<double> rcond,
         const std::optional<std::string>& driver) {
        const linalg::LeastSquares found = linalg::lstsq(a, b, rcond, driver.value_or(""));
        return py::make_tuple(found.solution, found.residuals);
      },
      arg("A"), arg("B"), arg("rcond") = py::none(), py::kw_only(), arg("driver") = py::none(),
      "The X of the smallest |A X - B|, and sums of squares of what is left.");
  m.def("pinv", &linalg::pinv, arg("A"), py::kw_only(), arg("atol") = py::none(),
        arg("rtol") = py::none(), "Moore and Penrose's inverse.");
  m.def("lu_solve", &linalg::lu_solve, arg("LU"), arg("pivots"), arg("B"), py::kw_only(),
        arg("left") = true, "X with A X = B, or X A = B, of lu_factor(A).");
  m.def("tensorinv", &linalg::tensorinv, arg("A"), arg("ind") = 2,
        "The inverse of A as a matrix of its first `ind` axes by the others.");
  m.def(
      "tensorsolve",
      [](const Tensor& a, const Tensor& b, const AxesArgument& dims) {
        return linalg::tensorsolve(a, b, dims.axes);
      },
      arg("A"), arg("B"), arg("dims") = AxesArgument{},
      "X with tensordot(A, X, X.dim()) = B, A's axes `dims` moved to its end first.");
  m.def("cholesky_solve", &linalg::cholesky_solve, arg("B"), arg("L"), arg("upper") = false,
        "X with A X = B of a triangle of cholesky(A).");
  m.def("cholesky_inverse", &linalg::cholesky_inverse, arg("L"), arg("upper") = false,
        "The inverse of A of a triangle of cholesky(A).");
  m.def("det", &linalg::det, arg("A"), "The determinant.");
  m.def("slogdet", &linalg::slogdet, arg("A"),
        "The sign of the determinant and the logarithm of its absolute value.");
}

void bind_numbers(py::module_& m) {
  m.def("matrix_exp", &linalg::matrix_exp, arg("A"), "e to the power of a matrix.");
  m.def("vecdot", &linalg::vecdot, arg("x"), arg("y"), py::kw_only(), arg("dim") = -1,
        "The sum of products along an axis.");
  m.def("vander", &linalg::vander, arg("x"), py::kw_only(), arg("N") = py::none(),
        "Powers 0, 1, ... of elements, as a last axis.");
  m.def("matrix_power", &linalg::matrix_power, arg("A"), arg("n"),
        "The product of n factors A; of inv(A) where n is negative.");
  m.def("matrix_rank", &linalg::matrix_rank, arg("A"), py::kw_only(), arg("atol") = py::none(),
        arg("rtol") = py::none(), "How many singular values count.");
  m.def("matrix_norm", &matrix_norm_of, arg("A"), arg("ord") = Order("fro"), py::kw_only(),
        arg("keepdim") = false, "\"fro\", \"nuc\", 1, -1, 2, -2, inf or -inf of matrices.");
  m.def(
      "vector_norm",
      [](const Tensor& x, double order, const AxesArgument& dim, bool keepdim) {
        return linalg::vector_norm(x, order, dim.axes, keepdim);
      },
      arg("x"), arg("ord") = 2.0, arg("dim") = AxesArgument{}, arg("keepdim") = false,
      "(sum |x|^ord)^(1/ord) along axes, or of all elements.");
  m.def("norm", &norm_of, arg("A"), arg("ord") = py::none(), arg("dim") = AxesArgument{},
        arg("keepdim") = false, "vector_norm() of one axis or of all, matrix_norm() of two.");
  m.def("cond", &cond_of, arg("A"), arg("p") = py::none(),
        "The norm times that of the inverse; the largest singular value over the smallest.");
  m.def("multi_dot", &linalg::multi_dot, arg("tensors"),
        "The product of several matrices in the cheapest order.");
}

}  // namespace

void bind_linalg(py::module_& parent, TensorClass& c) {
  py::module_ m = parent.def_submodule("linalg", "Linear algebra of the last two axes.");
  bind_factorizations(m);
  bind_equations(m);
  bind_numbers(m);
  c.def("cholesky", &Tensor::cholesky, arg("upper") = false, "linalg.cholesky().");
  c.def("qr", &Tensor::qr, arg("mode") = "reduced", "linalg.qr().");
  c.def("svd", &Tensor::svd, arg("full_matrices") = true, "linalg.svd(): U, S and Vh.");
  c.def("det", &Tensor::det, "linalg.det().");
  c.def("logdet", &Tensor::logdet, "The logarithm of det(); NaN where that is negative.");
  c.def("slogdet", &Tensor::slogdet, "linalg.slogdet().");
  c.def("inverse", &Tensor::inverse, "linalg.inv().");
  c.def("pinverse", &Tensor::pinverse, arg("rcond") = 1e-15, "linalg.pinv().");
  c.def("matrix_power", &Tensor::matrix_power, arg("n"), "linalg.matrix_power().");
  c.def("newton_schulz", &Tensor::newton_schulz, arg("steps") = 5,
        arg("params") = std::vector<double>{3.4445, -4.7750, 2.0315}, arg("eps") = 1e-7,
        "Each matrix made nearly orthogonal by an odd polynomial of its singular values.");
}

}  // namespace tuff::python
