// Products of vectors and matrices whose ranks the name says.
#include <algorithm>
#include <cmath>

#include <tuff/linalg.h>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff {

using detail::self;
using detail::text;

namespace {

void require_ranks(const char* what, const Tensor& a, int64_t rank_a, const Tensor& b,
                   int64_t rank_b) {
  if (a.dim() != rank_a || b.dim() != rank_b)
    fail<ShapeError>("{}: {} and {} must have {} and {} axes", what, text(a.sizes()),
                     text(b.sizes()), rank_a, rank_b);
}

// A whole factor leaves integers what they are.
Tensor scaled(const Tensor& x, double factor) {
  if (factor == 1) return x;
  const bool whole = factor == std::floor(factor) && std::abs(factor) < 0x1p53;
  return whole && !is_float(x.dtype()) ? x * int64_t(factor) : x * factor;
}

// The axes of x that are not among these, behind one another, and these: as a matrix.
struct AsMatrix {
  Sizes free;
  Tensor rows;  // (free axes, those)
};
AsMatrix as_matrix(const Tensor& x, const Axes& dims) {
  AsMatrix out;
  Axes order;
  Size across = 1, along = 1;
  for (int64_t d = 0; d < x.dim(); d++) {
    if (std::find(dims.begin(), dims.end(), d) != dims.end()) continue;
    order.push_back(d);
    out.free.push_back(x.size(d));
    across = across * x.size(d);
  }
  for (int64_t d : dims) {
    order.push_back(d);
    along = along * x.size(d);
  }
  out.rows = x.permute(order).reshape({across, along});
  return out;
}

// In the order given; none of an empty list.
Axes axes_named(const Axes& dims, int64_t rank) {
  Axes out;
  for (int64_t dim : dims) {
    const int64_t d = detail::wrap_dim("tensordot", dim, rank);
    if (std::find(out.begin(), out.end(), d) != out.end())
      fail<InvalidArgument>("tensordot: axis {} twice", d);
    out.push_back(d);
  }
  return out;
}

Tensor added(const char* what, const Tensor& x, const Tensor& product, double beta, double alpha) {
  const Sizes sizes = product.sizes();
  if (!detail::same(detail::broadcast_sizes(what, x.sizes(), sizes), sizes))
    fail<ShapeError>("{}: {} for a product of {}", what, text(x.sizes()), text(sizes));
  detail::require_same_device(what, x, product);
  const Tensor p = scaled(product, alpha);
  return beta == 0 ? p.cast(promote(x.dtype(), p.dtype())) : scaled(x, beta) + p;
}

}  // namespace

Tensor TensorProducts::dot(const Tensor& other) const {
  require_ranks("dot", self(this), 1, other, 1);
  return self(this).matmul(other);
}
Tensor TensorProducts::vdot(const Tensor& other) const {
  require_ranks("vdot", self(this), 1, other, 1);
  return self(this).matmul(other);
}
Tensor TensorProducts::mv(const Tensor& vector) const {
  require_ranks("mv", self(this), 2, vector, 1);
  return self(this).matmul(vector);
}
Tensor TensorProducts::mm(const Tensor& other) const {
  require_ranks("mm", self(this), 2, other, 2);
  return self(this).matmul(other);
}
Tensor TensorProducts::bmm(const Tensor& other) const {
  require_ranks("bmm", self(this), 3, other, 3);
  if (!detail::same(self(this).size(0), other.size(0)))
    fail<ShapeError>("bmm: {} and {} differ in the batch", text(self(this).sizes()),
                     text(other.sizes()));
  return self(this).matmul(other);
}
Tensor TensorProducts::inner(const Tensor& other) const {
  if (self(this).dim() == 0 || other.dim() == 0) return self(this) * other;
  return tensordot(other, Axes{-1}, Axes{-1});
}
Tensor TensorProducts::tensordot(const Tensor& other, int64_t dims) const {
  const int64_t rank = self(this).dim();
  if (dims < 0 || dims > std::min(rank, other.dim()))
    fail<InvalidArgument>("tensordot: {} axes of {} and {}", dims, text(self(this).sizes()),
                          text(other.sizes()));
  Axes last, first;
  for (int64_t d = 0; d < dims; d++) {
    last.push_back(rank - dims + d);
    first.push_back(d);
  }
  return tensordot(other, last, first);
}
Tensor TensorProducts::tensordot(const Tensor& other, const Axes& dims,
                                 const Axes& other_dims) const {
  const Tensor& x = self(this);
  if (dims.size() != other_dims.size())
    fail<InvalidArgument>("tensordot: {} axes and {}", dims.size(), other_dims.size());
  const Axes of_x = axes_named(dims, x.dim()), of_y = axes_named(other_dims, other.dim());
  for (size_t i = 0; i < of_x.size(); i++) {
    if (!detail::same(x.size(of_x[i]), other.size(of_y[i])))
      fail<ShapeError>("tensordot: axis {} of {} and {} of {} differ", of_x[i], text(x.sizes()),
                       of_y[i], text(other.sizes()));
  }
  const AsMatrix a = as_matrix(x, of_x), b = as_matrix(other, of_y);
  Sizes out = a.free;
  out.insert(out.end(), b.free.begin(), b.free.end());
  return a.rows.matmul(b.rows.T()).reshape(out);
}

Tensor TensorProducts::vander(std::optional<int64_t> count, bool increasing) const {
  const Tensor& x = self(this);
  if (x.dim() != 1) fail<ShapeError>("vander: {} is no vector", text(x.sizes()));
  if (count && *count < 0) fail<InvalidArgument>("vander: {} columns", *count);
  const Tensor powers = linalg::vander(x, count);
  return increasing ? powers : powers.flip({-1});
}

Tensor TensorProducts::outer(const Tensor& other) const {
  require_ranks("outer", self(this), 1, other, 1);
  return self(this).unsqueeze(1) * other.unsqueeze(0);
}

Tensor TensorProducts::cross(const Tensor& other, int64_t dim) const {
  const auto [a, b] = detail::unify("cross", self(this), other);
  const int64_t d = detail::wrap_dim("cross", dim, a.dim());
  if (!detail::same(a.size(d), 3))
    fail<ShapeError>("cross: axis {} of {} has no 3 elements", d, text(a.sizes()));
  return a.roll({-1}, {d}) * b.roll({-2}, {d}) - a.roll({-2}, {d}) * b.roll({-1}, {d});
}

Tensor TensorProducts::kron(const Tensor& other) const {
  const int64_t rank = std::max(self(this).dim(), other.dim());
  const auto apart = [&](const Tensor& x, bool first) {
    Sizes own(size_t(rank - x.dim()), 1), out;
    for (const Size& s : x.sizes()) own.push_back(s);
    for (const Size& s : own) {
      out.push_back(first ? s : Size(1));
      out.push_back(first ? Size(1) : s);
    }
    return x.reshape(out);
  };
  const Tensor blocks = apart(self(this), true) * apart(other, false);
  Sizes out;
  for (int64_t d = 0; d < rank; d++) out.push_back(blocks.size(2 * d) * blocks.size(2 * d + 1));
  return blocks.reshape(out);
}

Tensor TensorProducts::addmm(const Tensor& a, const Tensor& b, double beta, double alpha) const {
  return added("addmm", self(this), a.mm(b), beta, alpha);
}
Tensor TensorProducts::addmv(const Tensor& matrix, const Tensor& vector, double beta,
                             double alpha) const {
  return added("addmv", self(this), matrix.mv(vector), beta, alpha);
}
Tensor TensorProducts::addr(const Tensor& a, const Tensor& b, double beta, double alpha) const {
  return added("addr", self(this), a.outer(b), beta, alpha);
}
// The batch is one more axis to add up along.
Tensor TensorProducts::addbmm(const Tensor& a, const Tensor& b, double beta, double alpha) const {
  require_ranks("addbmm", a, 3, b, 3);
  return added("addbmm", self(this), a.tensordot(b, Axes{0, 2}, Axes{0, 1}), beta, alpha);
}
Tensor TensorProducts::baddbmm(const Tensor& a, const Tensor& b, double beta, double alpha) const {
  return added("baddbmm", self(this), a.bmm(b), beta, alpha);
}

}  // namespace tuff
