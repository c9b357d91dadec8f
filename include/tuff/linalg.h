// linalg: linear algebra of matrices and batches of them, under PyTorch's names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <tuff/tensor.h>

/// Linear algebra of the last two axes of tensors (..., m, n), any axes before them being a batch.
///
/// Everything is lazy and made of tensor operations: nothing waits for values, and all of it works
/// in a Jit. So no function throws for what the values are: where PyTorch raises an error for a
/// singular matrix, or one that is not positive definite, what comes out is what the arithmetic
/// gives, which is inf or NaN (each function says where). Extents must be numbers (Unsupported).
///
/// Of F32 and F64, in that dtype, as in PyTorch; integers, F16 and BF16 are InvalidArgument: cast
/// first. Functions that are made of products alone (matrix_power() of n >= 0, multi_dot(),
/// vector_norm()) take any floats. ShapeError names shapes that do not fit. Gradients are closed
/// forms, and have gradients themselves.
///
/// docs/design/linalg.md says how they are computed.
namespace tuff::linalg {

/// L (..., n, n) with a = L Lᵀ, or with `upper` Lᵀ. Of a its lower triangle (with `upper` the upper
/// one) is read; gradients are symmetric. Where a is not positive definite, NaN from the column on
/// that shows it.
Tensor cholesky(const Tensor& a, bool upper = false);

/// {Q, R} with a = Q R (Householder, 1958; compact WY form: Schreiber and Van Loan, 1989). mode
/// "reduced": Q (..., m, k), R (..., k, n), k = min(m, n); "complete": Q (..., m, m), R
/// (..., m, n); "r": Q is empty. Signs are LAPACK's. Gradients of "reduced" where the first k columns are
/// independent (else inf or NaN), and of "complete" where m <= n: Unsupported otherwise.
std::pair<Tensor, Tensor> qr(const Tensor& a, std::string_view mode = "reduced");

/// X with a X = b, or with left = false X a = b: a (..., n, n), b (..., n, k), or a vector: (n), or
/// (..., n) where that is the shape of a without its last axis. Batches broadcast. Gaussian
/// elimination with partial pivoting. inf or NaN where a is singular.
Tensor solve(const Tensor& a, const Tensor& b, bool left = true);

/// X with a X = b, or with left = false X a = b, for a triangle a (..., n, n); what is on its other
/// side is not read, nor with `unitriangular` its diagonal, which counts as 1. b (..., n, k); with
/// left = false (..., k, n). inf or NaN where there is 0 on the diagonal.
Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool left = true,
                        bool unitriangular = false);

/// The inverse; inf or NaN where there is none.
Tensor inv(const Tensor& a);

/// The determinant (...); 0 where a pivot is 0. The gradient there is the matrix of cofactors
/// still, by pivots that are not quite 0; that of the gradient is right where a is regular.
Tensor det(const Tensor& a);

/// {sign, logarithm of the absolute value} of the determinant: {0, -inf} where a pivot is 0. Only
/// the logarithm has a gradient, the inverse transposed: inf and NaN where a pivot is 0, as in
/// PyTorch, since the logarithm has none there.
std::pair<Tensor, Tensor> slogdet(const Tensor& a);

/// {P, L, U} with a = P L U: a (..., m, n), P (..., m, m) a permutation, L (..., m, k) with ones on
/// its diagonal, U (..., k, n), k = min(m, n). Gradients where m = n and a is regular; Unsupported
/// otherwise.
std::tuple<Tensor, Tensor, Tensor> lu(const Tensor& a);
/// {L and U in one matrix (..., m, n), L without its diagonal; pivots (..., k) of I32: row i was
/// exchanged with row pivots[i], both counted from 1}. No gradient: that of lu() has one.
std::pair<Tensor, Tensor> lu_factor(const Tensor& a);
/// X with a X = b, or with left = false X a = b, of lu_factor(a) of a square a. Gradients flow to b.
Tensor lu_solve(const Tensor& lu, const Tensor& pivots, const Tensor& b, bool left = true);

/// X with a X = b of a triangle of cholesky(a): b (..., n, k). As solve_triangular() twice.
Tensor cholesky_solve(const Tensor& b, const Tensor& triangle, bool upper = false);
/// The inverse of a of a triangle of cholesky(a).
Tensor cholesky_inverse(const Tensor& triangle, bool upper = false);

/// e to the power of matrices (..., n, n): Taylor's polynomial of degree 18 of a matrix halved
/// until its 1-norm is at most 1 (up to 2^16), and squared as often.
Tensor matrix_exp(const Tensor& a);

/// The first n columns of the product of reflections 1 - tau_i v_i v_iᵀ: a (..., m, n), m >= n,
/// whose columns below the diagonal are the v_i, with 1 on it; tau (..., k), k <= n.
Tensor householder_product(const Tensor& a, const Tensor& tau);

/// The b with tensordot(b, a, a.dim() - ind) one: the inverse of a as a matrix of its first `ind`
/// axes by the others. ShapeError unless that is square, InvalidArgument unless ind is positive.
Tensor tensorinv(const Tensor& a, int64_t ind = 2);
/// X with tensordot(a, X, X.dim()) = b, a's axes `dims` moved to its end first. ShapeError unless
/// a is square as a matrix of b.numel() rows.
Tensor tensorsolve(const Tensor& a, const Tensor& b, const Axes& dims = {});

/// {eigenvalues (..., n), ascending; eigenvectors, the columns of (..., n, n)} of a symmetric
/// matrix, whose triangle `uplo` ("L" or "U") is read. Jacobi's method (1846), in parallel (Brent
/// and Luk, 1985). Signs of vectors are arbitrary. Gradients of vectors are inf or NaN where
/// eigenvalues are equal.
std::pair<Tensor, Tensor> eigh(const Tensor& a, std::string_view uplo = "L");
/// The eigenvalues alone.
Tensor eigvalsh(const Tensor& a, std::string_view uplo = "L");

/// {U, S, Vh} with a = U diag(S) Vh, S descending: U (..., m, m) and Vh (..., n, n), or
/// without full_matrices the first k = min(m, n) columns and rows. One-sided Jacobi (Hestenes,
/// 1958). U and Vh are orthonormal also where a has not full rank. Signs are arbitrary. Gradients
/// of U and Vh are inf or NaN where singular values are equal, or 0 where m and n differ; those of
/// what full_matrices adds are Unsupported.
std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& a, bool full_matrices = true);
/// The singular values alone, descending.
Tensor svdvals(const Tensor& a);

/// What lstsq() gives.
struct LeastSquares {
  Tensor solution;   ///< (..., n, k)
  Tensor residuals;  ///< (..., k): sums of squares where m > n; else it has no elements
};
/// X of the smallest |a X - b|, and of those the smallest X: a (..., m, n), b (..., m, k); batches
/// broadcast. `driver` is LAPACK's name of a way, as in PyTorch: "gels" by qr() of a, or of its
/// transpose where m < n, gives inf, NaN or large numbers where a has not full rank; "gelsd" (also
/// "gelsy" and "gelss") by svd() takes matrices of any rank: singular values up to rcond times the
/// largest count as 0, rcond being max(m, n) times the dtype's epsilon if not given. The default is
/// "gelsd" if rcond is given, else "gels" (PyTorch's on a CPU is "gelsy"), which is ten times as
/// fast. Gradients are those of a matrix whose rank does not change. InvalidArgument for another
/// driver, a negative rcond, and an rcond for "gels".
LeastSquares lstsq(const Tensor& a, const Tensor& b, std::optional<double> rcond = {},
                   std::string_view driver = {});

/// Moore and Penrose's inverse (..., n, m) by svd(): singular values up to max(atol, rtol times the
/// largest) count as 0. rtol is max(m, n) times the dtype's epsilon if neither is given, else 0.
/// The gradient is that of a matrix whose rank does not change (Golub and Pereyra, 1973).
Tensor pinv(const Tensor& a, std::optional<double> atol = {}, std::optional<double> rtol = {});

/// The product of n factors a, by squaring; of negative n of inv(a).
Tensor matrix_power(const Tensor& a, int64_t n);

/// How many singular values are above max(atol, rtol times the largest), as for pinv(): I64 (...).
Tensor matrix_rank(const Tensor& a, std::optional<double> atol = {},
                   std::optional<double> rtol = {});

/// Norms of matrices: "fro" (root of the sum of squares), "nuc" (sum of the singular values).
Tensor matrix_norm(const Tensor& a, std::string_view order = "fro", bool keepdim = false);
/// 2 and -2: the largest and smallest singular value; 1, -1 and inf, -inf: the largest and smallest
/// sum of magnitudes of a column, and of a row. InvalidArgument for other numbers.
Tensor matrix_norm(const Tensor& a, double order, bool keepdim = false);
/// (sum |x|^order)^(1/order) along the axes, or of all elements; inf and -inf: the largest and
/// smallest magnitude; 0: how many are not 0.
Tensor vector_norm(const Tensor& x, double order = 2, const Axes& dim = {}, bool keepdim = false);
/// vector_norm() of all elements or of one axis, matrix_norm() of two; unless an order is given the
/// root of the sum of squares.
Tensor norm(const Tensor& x, std::optional<double> order = {}, const Axes& dim = {},
            bool keepdim = false);
/// The norm of a times that of its inverse: by default and for 2 the largest singular value over
/// the smallest, for -2 the other way round; "fro", "nuc".
Tensor cond(const Tensor& a, std::optional<double> order = {});
Tensor cond(const Tensor& a, std::string_view order);

/// The sum of products along an axis; both broadcast.
Tensor vecdot(const Tensor& x, const Tensor& y, int64_t dim = -1);
/// Powers 0, 1, ... of the elements of (..., n): (..., n, count), count being n if not given.
Tensor vander(const Tensor& x, std::optional<int64_t> count = {});

/// The product of several matrices, the first and last of which may be vectors, in the order that
/// multiplies least numbers (Godbole, 1973).
Tensor multi_dot(const std::vector<Tensor>& tensors);

}  // namespace tuff::linalg
