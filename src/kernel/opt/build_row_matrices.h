// The AST of a kernel that keeps rows and multiplies matrices of them (Tiling::row_matrices), where
// it differs from that of one that does not. Called by build.cpp. Must never know a Target's name.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "kernel/opt/built_axis.h"
#include "kernel/opt/rules.h"

namespace tuff::kernel {

class RowMatrixBuilder {
 public:
  // `workgroup`: its invocations; `next_id` and `next_memory`: of ranges and of Shared memory.
  RowMatrixBuilder(const Tiling& t, const std::vector<BuiltAxis>& built,
                   std::vector<ir::UOp> workgroup, int32_t& next_id, int32_t& next_memory);

  const SubgroupRows& rows() const { return rows_; }

  // Rows that matrices are stored to or loaded from lie in memory of the workgroup's own.
  bool keeps(const ir::Node* memory) const;
  ir::UOp memory(const ir::UOp& shared) const;
  ir::UOp element(const ir::UOp& memory, const ir::UOp& within) const;  // of this invocation's row
  // What a row that sums fill is made of, element by element; null: another row.
  const RowMatrices* filled(const ir::Node* memory) const;

  const RowMatrices* of_reduce(const ir::UOp& reduce) const;
  // The sums; `product`: with new sources.
  ir::UOp sums(const RowMatrices& m, const ir::UOp& product);
  // What stands for the End that fills a row, or stores the sums, with new sources: `store` and
  // `ranges`. Empty: it is like that of any other kernel.
  ir::UOp end(const ir::UOp& old, const ir::UOp& store, std::span<const ir::UOp> ranges);

 private:
  struct Sum {
    ir::UOp value, row, column;  // which of the fragments
    std::vector<ir::UOp> lanes;
  };
  void find_rows(int row);
  using Factor = std::pair<const RowMatrices*, bool>;  // the left one, or the right one
  void copy(std::span<const Factor> factors, bool around);
  ir::UOp load(const ir::UOp& copy, const RowMatrices& m, bool left, const ir::UOp& line,
               const ir::UOp& step) const;
  ir::UOp lane(int64_t size, std::vector<ir::UOp>& lanes);
  int64_t size(int axis) const;
  ir::UOp inside(int axis, const ir::UOp& within) const;
  ir::UOp fill(const ir::UOp& old, const ir::UOp& store, std::span<const ir::UOp> ranges);
  static ir::UOp held(const RowMatrices& m, const ir::UOp& element, const ir::UOp& sums);
  ir::UOp filled_with_sums(const RowMatrices& m);
  ir::UOp stored(const RowMatrices& m, const ir::UOp& store, std::span<const ir::UOp> ranges);
  ir::UOp stored_as_matrices(const RowMatrices& m, const ir::UOp& sums,
                             std::span<const ir::UOp> launch) const;
  ir::UOp stored_by_elements(const RowMatrices& m, const ir::UOp& sums,
                             std::span<const ir::UOp> launch);
  // By axis, for that row of the workgroup's and that column.
  ir::UOpMap<ir::UOp> places(const MatrixProduct& p, const ir::UOp& row,
                             const ir::UOp& column) const;

  const Tiling& t_;
  const std::vector<BuiltAxis>& built_;
  const std::vector<ir::UOp> workgroup_;
  int32_t &next_id_, &next_memory_;
  SubgroupRows rows_;
  ir::UOpMap<ir::UOp> group_rows_;  // ranges along the axis for the first row of a workgroup
  ir::UOp first_row_;               // ... which is that, along the axis
  ir::UOp slab_;       // the loop
  struct Copy {
    ir::UOp load, along, across;
  };
  std::map<Factor, Copy> copies_;
  std::map<const RowMatrices*, Sum> sums_;
};

}  // namespace tuff::kernel
