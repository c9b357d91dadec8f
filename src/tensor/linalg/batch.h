// Batches of matrices (batch, rows, columns), what every factorization checks and how it says what
// its gradient is. Called by the files of this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <tuff/linalg.h>
#include "tensor/closed_form.h"

namespace tuff::linalg {

using detail::gradients_of_sources;
using detail::matmul;  // whole in a scope of Autocast
using detail::ruled;
using detail::tensor_of;

// The matrices of a tensor (..., m, n) as (batch, m, n), and the way back.
class Batch {
 public:
  // InvalidArgument unless F32 or F64, ShapeError below two axes, Unsupported for varying extents.
  Batch(const char* what, const Tensor& given);
  // ShapeError too unless they are square.
  static Batch square(const char* what, const Tensor& given);
  const Tensor& matrices() const { return matrices_; }
  int64_t count() const { return count_; }
  int64_t m() const { return m_; }
  int64_t n() const { return n_; }
  // (batch, rest...) -> (..., rest...)
  Tensor placed(const Tensor& x) const;

 private:
  Sizes leading_;
  int64_t count_ = 1, m_ = 0, n_ = 0;
  Tensor matrices_;
};

void require_factorable(const char* what, const Tensor& x);

// ---- parts of (batch, m, n)

inline int64_t rows_of(const Tensor& x) { return x.size(1); }
inline int64_t columns_of(const Tensor& x) { return x.size(2); }
inline Tensor rows(const Tensor& x, int64_t begin, int64_t count) {
  return x.narrow(1, begin, count);
}
inline Tensor columns(const Tensor& x, int64_t begin, int64_t count) {
  return x.narrow(2, begin, count);
}
inline Tensor part(const Tensor& x, int64_t row, int64_t row_count, int64_t column,
                   int64_t column_count) {
  return columns(rows(x, row, row_count), column, column_count);
}
// The first k rows (or columns) moved behind the others.
Tensor rolled_rows(const Tensor& x, int64_t k);
Tensor rolled_columns(const Tensor& x, int64_t k);
// Zeros below and at the right, up to (m, n).
Tensor padded(const Tensor& x, int64_t m, int64_t n);
// Ones on the diagonal from element `begin` on.
Tensor with_ones_from(const Tensor& x, int64_t begin);
// What is made of numbers alone, in memory on the tensor's device, which such a node does not know
// by itself.
Tensor stored(const Tensor& x);
// As wide as it is said. Values are widened before they are computed with: then no kernel stores
// them only to be repeated by the next one.
Tensor wide(const Tensor& x, int64_t m, int64_t n);
Tensor ones_on_diagonal(const Tensor& like, int64_t m, int64_t n);  // (batch, m, n)
Tensor diagonal_of(const Tensor& x);                                // (batch, min(m, n))
// The rows that index (batch, k), integers, names; zeros where it names none.
Tensor rows_at(const Tensor& x, const Tensor& index);

// How n columns are cut into `blocks` blocks of `length`, which covers them with the least left
// over.
struct Blocks {
  int64_t blocks = 1, length = 1;
  int64_t covered() const { return blocks * length; }
};
// A block: as long as steps of one column each are worth their launches (docs/design/linalg.md).
inline constexpr int64_t kBlock = 32;
Blocks blocks_of(int64_t n);
// The same with a power of two as the number of blocks.
Blocks halved_blocks(int64_t n);

// marks[k], (1, 1, blocks * length): 1 in the places of blocks that were moved to the end by k
// rolls of `length` elements, else 0. Each is made of the one before, so that all are one kernel.
std::vector<Tensor> marks(const Tensor& like, const Blocks& b);

}  // namespace tuff::linalg
