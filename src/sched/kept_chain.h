// A kernel in the making that keeps rows in fast memory: products that read what row kernels store,
// which read what products store. Called by keep.cpp, which decides. Knows slots and ASTs, nothing
// of targets, nor of who else reads what is kept.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "sched/schedule.h"

namespace tuff::sched {

// A kernel that stores one matrix, by what its reductions are; values of rows beside it.
struct MatrixKernel {
  bool possible = false;
  ir::UOp end;                        // Params carry slots
  std::vector<ir::UOp> values;        // Ends of row values, over some of the loops
  std::vector<ir::UOp> loops;         // of `end`, outermost first
  const ir::Node* product = nullptr;  // the sum of products of what is repeated; null: none
  bool rows = false;                     // reductions that walk memory once, and none else
  bool elements = false;                 // no reductions
  std::vector<uint32_t> reads;
  uint32_t writes = 0;  // by `end`
};
MatrixKernel matrix_kernel_of(const Call& c);

// The loop of a row kernel that none of its reductions depends on. Empty where it is not one.
ir::UOp column_of(const MatrixKernel& rows);
// The row kernel element by element: what its rows are reduced to is read from the memory that its
// values are stored to.
MatrixKernel by_element(const MatrixKernel& rows);
// Exponentials of scores less their row's maximum, which one of `rows` stores, are 0 where a causal
// mask hides the score, as one of `products` stores it: of an element-by-element kernel.
MatrixKernel with_hidden_zero(const MatrixKernel& elements,
                              std::span<const MatrixKernel* const> products,
                              std::span<const MatrixKernel* const> rows);
// The loop walked as outer * n + inner.
MatrixKernel with_loop_split(const MatrixKernel& p, const ir::UOp& loop, int64_t n);
// Of a product that reads one of these matrices: loops along the rows that it reads stand around
// the others.
void put_rows_outermost(MatrixKernel& p, std::span<const uint32_t> matrices);
// The sum's steps take one element of the slot each.
bool is_factor(const ir::Node* product, uint32_t slot);

class Chain {
 public:
  // The last products. Where there are several, their loops are as long and share the rows. Or
  // `values` of one row kernel, an end each.
  explicit Chain(std::span<const MatrixKernel* const> last, bool values = false);

  // What `p` stores is kept, row by row; false, and nothing done, where it is not read so.
  bool keep(const MatrixKernel& p);
  // As keep(); where one row alone reads it, once, it is computed there and not kept.
  bool take_in(const MatrixKernel& p);
  // Stores those values of a row kernel that is kept which go to these slots.
  void store_values(const MatrixKernel& rows, std::span<const uint32_t> slots);

  bool reads(uint32_t slot) const;
  const std::vector<ir::UOp>& rows() const { return row_loops_; }
  // The column of what was kept last, among its own loops.
  const ir::UOp& column() const { return column_; }
  // So many of them, at most.
  int64_t columns() const { return column_->src(0)->max; }
  int32_t kept() const { return number_; }
  // The same where rows that others are made of, element by element, give them their memory.
  int32_t kept_at_once() const;
  // Rows outermost, so that each is filled once.
  std::vector<ir::UOp> ends() const;

 private:
  struct RowRead;
  struct Kept {
    std::vector<ir::UOp> values;
    ir::UOpMap<ir::UOp> at;  // its kernel's ranges
  };
  std::optional<RowRead> row_read(const MatrixKernel& p) const;
  std::vector<ir::UOp> loads_of(uint32_t slot) const;
  bool is_row(const ir::UOp& x) const;
  MatrixKernel aligned(const MatrixKernel& p) const;
  bool agree(const RowRead& read);
  bool compute_where_read(const MatrixKernel& p);
  ir::UOp filled_row(const MatrixKernel& p, const RowRead& read);
  bool may_overwrite(const ir::Node* fill, const ir::Node* memory,
                     std::span<const ir::Node* const> all) const;

  std::vector<ir::UOp> ends_, loops_, row_loops_;
  std::map<uint32_t, Kept> kept_;           // by slot
  std::vector<ir::UOp> columns_, full_;  // what rows are filled along; with a product already
  ir::UOp column_;
  int32_t next_ = 0, number_ = 0;
};

}  // namespace tuff::sched
