// A kernel's loops while opts are applied to them: what its AST says, and what opts have decided.
// Data alone, with the questions that rules and heuristics ask of it; rules.h has all that changes
// it. Must never know a renderer or a device's name.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <vector>

#include "base/contains.h"
#include "base/target.h"
#include "ir/uop.h"
#include "kernel/opt/opt.h"

namespace tuff::kernel {

// A range of the AST and the parts it has been split into, outermost first.
struct AxisPart {
  ir::AxisKind kind;
  ir::UOp size;  // Index
};
struct Axis {
  ir::UOp range;  // of the untouched AST
  bool reduced = false;
  bool kept = false;    // walks a row that is kept in fast memory, not an output
  // No kept row, and no shared reduction, depends on it: its invocations are those that share them.
  bool column = false;
  bool slabs = false;   // the first part is the loop over slabs, one for all such axes
  int64_t backwards = 0;  // ... from the last of so many on; 0: from the first on
  bool padded = false;  // the parts cover more than the range: the rest is masked
  int main = 0;         // the part that later opts split further
  int nest = 0;         // axes of one End and of the reductions below it; numbered from 0
  int64_t rows = 0;     // of a spread axis: what its main loop and the launch groups walk together
  int64_t first = 0;    // ... the group that takes its first row
  std::vector<AxisPart> parts;
  int64_t main_size() const { return parts[main].size->max; }
  bool main_is_const() const { return parts[main].size->is_const(); }
  int64_t lanes() const;  // product of Lane, Vector and ReduceLane parts
};

// How a matrix lies in memory.
struct MatrixLines {
  int64_t stride = 0;  // elements from a line to the next
  bool by_columns = false;
  int32_t interleaved = 1;  // rows that lie element by element in a line (MatrixArg)
};

// A sum of products that cooperative matrices compute: axis m counts rows of the left factor, n
// columns of the right one, k what is summed: of a factor whose rows are interleaved, its lines, and
// pair the rows of one. Their innermost parts are those of one matrix.
struct MatrixOperand {
  ir::UOp value;  // of the untouched AST
  bool computed = false;  // no load that lies as a matrix does: one in workgroup memory alone
  MatrixLines lines;
  int source = 0;  // of the product, the factor's
};
struct MatrixProduct {
  ir::UOp reduce;  // of the untouched AST
  int m = -1, n = -1, k = -1, pair = -1;
  MatrixOperand a, b;
  // Where the sums are all that the kernel stores, and lie as matrices do: how.
  std::optional<MatrixLines> stored;
  MatrixShape shape;
  const MatrixOperand& factor(int source) const { return source == a.source ? a : b; }
};

// A sum of products of a kernel that keeps rows, by cooperative matrices: subgroups hold a tile of
// rows each, and the matrices of both factors lie in copies or in a kept row.
struct RowMatrices {
  MatrixProduct product;
  ir::UOp filled;   // the End of the row that is filled with the sums; empty: they are stored
  ir::UOp scaled;   // of stored ones: the sum, or what is made of it and what its row has in common
  ir::UOp element;  // what memory holds: the sum, scaled, or what that is rounded to
  ir::UOp kept;     // the End of the row that is the left factor; empty: that is copied
};

// Axes: output ranges in loop order, then those that fill kept rows, then those of reductions, in
// the order of the graph.
struct Tiling {
  Tiling(const ir::UOp& ast, const Target& target);

  struct Reduction {
    std::vector<int> own, around;  // axes it folds, axes it depends on
    int64_t bytes = 0;             // of a partial result
  };
  // What an End stores, kept rows included: axes it depends on, and bytes that one row keeps.
  struct Stored {
    std::vector<int> axes;
    std::vector<int> around;  // of them, those that it does not close
    int64_t kept_bytes = 0, element_bytes = 0;
    bool overwrites = false;  // a kept row, where invocations share it (lower/kept_rows.h)
  };
  // What Stage may copy, in the order of the graph: both factors of every sum of products; where
  // workgroups store what nothing is summed for, loads that walk another axis than the stores do.
  struct Operand {
    ir::UOp value;            // of the untouched AST
    ir::UOp product;          // the Mul that it is a factor of; none: a load
    int source;               // which of its sources
    std::vector<int> axes;    // that it depends on
    std::vector<int> around;  // that the product, or what is stored, depends on
    bool reduces = false;     // a reduction stands below it
    bool keeps = false;       // a row that an invocation keeps stands below it
    bool walks(int axis) const { return contains(axes, axis); }
  };
  // The launch that spread axes share.
  struct SpreadLaunch {
    int64_t groups = 0;  // 0: none is spread
    int64_t width = 1;   // invocations that have outputs of their own
    int64_t rows = 0;    // of all spread axes so far
  };

  // What the AST says.
  ir::UOp ast;
  Target target;
  int nests = 1;  // loop nests beside each other
  std::vector<Reduction> reductions;
  std::vector<Operand> factors, loads;  // loads where there are no products
  // Axes that walk kept rows, if these need not be complete before what reads them begins: what
  // reads them are other rows at the same element, and reductions that one sweep makes together.
  std::vector<int> slab_axes;
  bool scales_sums = false;  // all reductions of slabs are a growing maximum and sums with it

  // What opts have made of it.
  std::vector<Axis> axes;
  std::vector<int> order;  // position -> axis
  std::vector<Stored> stored;
  std::vector<Opt> applied, staged, ahead;  // all; of them, those that copy
  std::optional<MatrixProduct> matrices;
  std::vector<RowMatrices> row_matrices;  // of a kernel that keeps rows
  // Whether invocations that share a reduction stand further apart than those of different outputs.
  bool shares_outermost = false;
  SpreadLaunch spread;
};

// ---- axes
int axis_of(const Tiling& t, const ir::Node* range);  // -1: none
bool has_part(const Tiling& t, int axis, ir::AxisKind kind);  // axis -1: any
int64_t lane_count(const Tiling& t);
double useful(const Tiling& t);  // the share of the kernel's steps that no padding has added
bool keeps_rows(const Tiling& t);
bool needs_slabs(const Tiling& t);  // rows of a symbolic length are never kept whole
inline const std::vector<Tiling::Operand>& operands(const Tiling& t) {
  return t.factors.empty() ? t.loads : t.factors;
}

// ---- the launch
int64_t local_size(const Tiling& t);    // invocations of a workgroup so far
int64_t groups_left(const Tiling& t);   // how many times as many workgroups the launch grid can take
bool has_invocations(const Tiling& t);  // whether a workgroup has several, as far as opts say
int64_t columns_together(const Tiling& t);  // that share reductions or kept rows; 1: none do
bool columns_without_axis(const Tiling& t);  // they share reductions of them alone
bool is_shared(const Tiling& t, const Tiling::Reduction& r);  // by invocations
bool shares_sums(const Tiling& t, int nest);  // whether invocations share a reduction of the nest
// Whether the invocations along an output axis are those that share reductions. Of kept rows, see
// is_column.
bool is_beside_shared(const Tiling& t, int axis);
bool is_column(const Tiling& t, const Opt& o);  // it shares kept rows out to invocations
// The most rows of a workgroup that shares sums: a subgroup's lanes on most devices.
inline constexpr int64_t kSharedRow = 32;
int64_t spread_width(const Tiling& t);  // invocations that have outputs of their own in every nest
int64_t spread_row(const Tiling& t, int nest);  // elements of a row that Spread shares out

// A workgroup of so many invocations within the target's limits per axis, the longest x first;
// empty where there is none.
std::optional<std::array<uint32_t, 3>> workgroup_shape(int64_t invocations, const Target& target);

// ---- workgroup memory, or what fast memory a CPU has (workgroup_memory.cpp)
int64_t workgroup_bytes(const Tiling& t);  // kept rows and the parts of shared reductions
// Bytes of kept rows and of what is reduced of them together; 0: no rows are kept.
int64_t kept_bytes(const Tiling& t);
// Bytes of one row of each kind that so many invocations share, `slab` elements long (0: whole).
int64_t kept_row_bytes(const Tiling& t, int64_t columns, int64_t slab = 0);
int64_t matrix_bytes(const Tiling& t);  // for the sums of all fragments; 0: none
// Beside what is kept and the copies of all but one operand.
int64_t room_for(const Tiling& t, int operand, const std::vector<Opt>& staged);

// ---- copies of operands (workgroup_memory.cpp)
// A loop, or what a workgroup or lanes do at once, as Stage counts them.
struct TilePart {
  AxisPart part;
  int axis;
  bool reduced, inside, walks;  // inside the copy; the operand depends on it
};
std::vector<TilePart> tile_parts(const Tiling& t, const Tiling::Operand& f, int64_t around);
// What is copied: what Stage says, and factors of matrices that are computed.
std::vector<Opt> copies_of(const Tiling& t, std::vector<Opt> staged);
int64_t loops_of(const Tiling& t, const Tiling::Operand& f);  // those that Stage counts
DType staged_type(const Tiling& t, const Tiling::Operand& f);
// Elements of the copy that Stage(operand, around) makes; nullopt where a size is symbolic.
std::optional<int64_t> staged_count(const Tiling& t, int operand, int64_t around);
int64_t staged_bytes(const Tiling& t, int operand, int64_t around);  // of one place
int64_t places_of(const Tiling& t, int operand);  // that copies of it take in turn

}  // namespace tuff::kernel
