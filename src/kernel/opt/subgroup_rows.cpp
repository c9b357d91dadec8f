#include "kernel/opt/subgroup_rows.h"

#include "ir/kernel_floor.h"

namespace tuff::kernel {

using namespace ir;

UOp SubgroupRows::matrix(const UOp& value, const MatrixArg& like, int32_t number,
                         std::span<const UOp> around) const {
  const UOp memory = make(Op::Shared, value->dtype, {}, SharedArg{number, count});
  const UOp free = around.empty() ? memory : make_after(memory, {make_barrier(around)});
  const UOp store = make_store(make_index(free, row, lt(shares, index_const(1))), value);
  const UOp filled = make_barrier({make_end(store, lanes, std::span(&shares, 1))});
  // Columns that lie in the same place: all of them are the row's value.
  MatrixArg arg{MatrixUse::Sum, like.rows, like.columns};
  arg.by_columns = true;
  const UOp place = make_index(make_after(memory, {filled}), first + fragment * matrix_rows);
  return make(Op::MatrixLoad, value->dtype, {place}, arg);
}

}  // namespace tuff::kernel
