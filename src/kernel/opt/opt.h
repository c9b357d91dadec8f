// Opts: the named transformations of a kernel's loops, and the Tiling that applies them.
// Called by the heuristics, by search and by tests. An opt only splits a range and says how its
// parts are run; values are never unrolled in the IR. Must never know a renderer or a device's
// name.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/contains.h"
#include "base/target.h"
#include "ir/uop.h"

namespace tuff::kernel {

enum class OptKind : uint8_t {
  Split,   // inner serial loop of `amount`
  Upcast,  // inner register-tile lanes; pads if `amount` does not divide; output axes
  Vector,  // inner SIMD lanes, a power of two, once per kernel; pads; output axes
  Unroll,  // inner unrolled lanes of a reduction; pads if `amount` does not divide
  Group,   // `amount` launch groups outside what is left (0: all of it); pads; output axes. Those of
           // what is left afterwards are the innermost of the launch: after 1, all of the axis'
  Local,  // inner invocations of a workgroup; pads if `amount` does not divide; output axes. Of an
          // axis that shared reductions depend on: before GroupReduce invocations that share one
          // are neighbours, after it those of different outputs are. Of one that no reduction
          // depends on: the invocations that share them, as many. Along columns of kept rows: the
          // same invocations in each nest
  GroupReduce,  // a reduction shared by `amount` invocations, a power of two; pads
  Swap,         // loops of axis `axis` and axis `amount` change places
  // So many elements of all kept rows at a time, in a loop that all reductions of them have in
  // common: the rows are filled inside of it (see Tiling::slab_axes, of which `axis` is one). Once
  // nothing is left of the axes that one of those reductions has for itself; pads.
  Slab,
  // A grid-stride loop: what is left of the axis is shared out to `amount` launch groups that all
  // nests of the kernel have in common. On devices with workgroups these take rows of a workgroup's
  // width in turn, on others a run each. A group that nothing is left for makes no iteration;
  // output axes, once per nest, the same amount in each. After GroupReduce the invocations that
  // share sums have outputs of their own in nests that share none.
  Spread,
  Stage,  // operand `axis` (see Tiling::operands) is copied into fast memory inside the `amount`
          // outermost loops, those of outputs before those of the reduction, and read from there:
          // by a workgroup together; after all others
  // Software pipelining: what the copy of factor `axis` takes in the next iteration of the innermost
  // loop around it is loaded into registers before the products of this one. `amount`: the places
  // that copies take in turn. 1: invocations wait for the products of the last iteration before they
  // fill it again; 2: they need not (double buffering), at twice the workgroup memory.
  Ahead,
  // Sum of products `axis` (both of its factors are Tiling::factors) by cooperative matrices of the
  // Target's shape `amount`, which divides its axes; before all others. Then Upcast makes fragments
  // of a subgroup and Local subgroups of a workgroup, and nothing pads.
  Matrix,
};
inline constexpr OptKind kOptKinds[] = {
    OptKind::Split, OptKind::Upcast,      OptKind::Vector, OptKind::Unroll, OptKind::Group,
    OptKind::Local, OptKind::GroupReduce, OptKind::Swap,   OptKind::Slab,   OptKind::Spread,
    OptKind::Stage, OptKind::Ahead,       OptKind::Matrix};
const char* name(OptKind k);
bool allows(const Target& target, OptKind k);  // whether any kernel can have it there

struct Opt {
  OptKind kind;
  int axis;
  int64_t amount;
  bool operator==(const Opt&) const = default;
};
std::string to_string(const Opt& o);  // "upcast(0,4)"
std::string to_string(std::span<const Opt> opts);

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
};

// A sum of products that cooperative matrices compute: axis m counts rows of the left factor, n
// columns of the right one, k what is summed. Their innermost parts are those of one matrix.
struct MatrixOperand {
  ir::UOp value;  // of the untouched AST
  bool computed = false;  // no load that lies as a matrix does: one in workgroup memory alone
  MatrixLines lines;
  int source = 0;  // of the product, the factor's
};
struct MatrixProduct {
  ir::UOp reduce;  // of the untouched AST
  int m = -1, n = -1, k = -1;
  MatrixOperand a, b;
  // Where the sums are all that the kernel stores, and lie as matrices do: how.
  std::optional<MatrixLines> stored;
  MatrixShape shape;
  const MatrixOperand& factor(int source) const { return source == a.source ? a : b; }
};

// The loops of one kernel while opts are applied. Axes: output ranges in loop order, then those
// that fill kept rows, then those of reductions, in the order of the graph.
class Tiling {
 public:
  Tiling(const ir::UOp& ast, const Target& target);
  const Target& target() const { return target_; }
  const std::vector<Axis>& axes() const { return axes_; }
  const std::vector<Opt>& applied() const { return applied_; }
  std::string refusal(const Opt& o) const;  // why it is illegal; empty: it is not
  void apply(const Opt& o);                 // InvalidArgument with that reason
  bool try_apply(const Opt& o);             // false, and nothing has changed: it is illegal
  int axis_of(const ir::Node* range) const;  // -1: none
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
  using Factor = Operand;  // of a product
  const std::vector<Factor>& factors() const { return factors_; }
  const std::vector<Operand>& operands() const { return factors_.empty() ? loads_ : factors_; }
  const std::optional<MatrixProduct>& matrices() const { return matrices_; }
  // Elements of the copy that Stage(operand, around) makes; nullopt where a size is symbolic.
  std::optional<int64_t> staged_count(int operand, int64_t around) const;
  // Bytes of kept rows and of what is reduced of them together; 0: no rows are kept.
  int64_t kept_bytes() const;
  // Bytes of one row of each kind that so many invocations share, `slab` elements long (0: whole).
  int64_t kept_row_bytes(int64_t columns, int64_t slab = 0) const;
  // Axes that walk kept rows, if these need not be complete before what reads them begins: what
  // reads them are other rows at the same element, and reductions that one sweep makes together.
  const std::vector<int>& slab_axes() const { return slab_axes_; }
  int64_t local_size() const;   // invocations of a workgroup so far
  // Whether invocations that share a reduction stand further apart than those of different outputs.
  bool shares_outermost() const { return shares_outermost_; }
  int64_t groups_left() const;  // how many times as many workgroups the launch grid can take
  int64_t lane_count() const;
  double useful() const;  // the share of the kernel's steps that no padding has added
  int64_t spread_row(int nest) const;  // elements of a row that Spread shares out
  // The most of them in a workgroup that shares sums: a subgroup's on most devices.
  static constexpr int64_t kSharedRow = 32;
  bool shares_sums(int nest) const;    // whether invocations share a reduction of the nest
  int nests() const { return nests_; }                // loop nests beside each other
  ir::UOp build() const;  // the AST with its ranges split, renumbered from 0

 private:
  void take(const Opt& o);  // what is legal
  // Reasons, as refusal()'s.
  std::string check_kind(const Opt& o) const;
  bool keeps_stores_outside(const Opt& swap) const;
  std::string check_amount(const Opt& o) const;
  std::string check_shared(const Opt& o) const;
  std::string check_workgroup(const Opt& o) const;
  std::string check_vector(const Opt& o) const;
  std::string check_kept(const Opt& o) const;
  std::string check_spread(const Opt& o) const;
  void find_nests();
  void find_columns();
  void spread(Axis& axis, int64_t groups);
  int64_t spread_width() const;  // invocations that have outputs of their own in every nest
  std::string check_stage(const Opt& o) const;
  std::string check_ahead(const Opt& o) const;
  // Of fast memory, beside what is kept and the copies of all but one operand.
  int64_t room_for(int operand, const std::vector<Opt>& staged) const;
  struct TilePart {
    AxisPart part;
    int axis;
    bool reduced, inside, walks;  // inside the copy; the operand depends on it
  };
  bool folds_inside(int axis, int other) const;
  bool is_repeated(const TilePart& loop, const Operand& operand) const;
  std::vector<TilePart> tile_parts(const Operand& f, int64_t around) const;
  DType staged_type(const Operand& f) const;
  int64_t places_of(int operand) const;  // that copies of it take in turn
  int64_t staged_bytes(int operand, int64_t around) const;  // of one place
  int64_t loop_trips(const Operand& f, int64_t around, int64_t count) const;
  std::string check_matrix(const Opt& o) const;
  std::string check_beside_matrices(const Opt& o) const;
  std::string check_matrix_copy(const Opt& o) const;
  void split_matrices(const Opt& o);
  struct Reduction;
  // Kept rows and the parts of shared reductions, so far or with one more opt.
  int64_t workgroup_bytes(const std::optional<Opt>& next = {}) const;
  int64_t parts_in_memory(const Reduction& r, const std::optional<Opt>& next) const;
  int64_t matrix_bytes() const;  // of workgroup memory, for the sums of all fragments; 0: none
  bool has_invocations() const;  // whether a workgroup has several, as far as opts say
  bool has_part(int axis, ir::AxisKind kind) const;  // axis -1: any
  struct Stored;
  // What is copied: what Stage says, and factors of matrices that are computed.
  std::vector<Opt> copies(std::vector<Opt> staged) const;
  bool computes_factors() const;
  bool keeps_rows() const;
  bool is_column(const Opt& o) const;  // it shares kept rows out to invocations of a workgroup
  int64_t columns_together() const;  // invocations that share reductions or kept rows; 1: none do
  bool columns_without_axis() const;   // they share reductions of them alone
  bool is_overwriting(const Stored& s, const std::optional<Opt>& next) const;
  std::string check_columns(const Opt& o) const;
  std::string check_nested(const Opt& o) const;
  bool is_shared(const Reduction& r) const;
  bool walks_far(const Reduction& r) const;
  bool is_beside_shared(int axis) const;
  std::string check_beside(const Reduction& r) const;
  void place_local(int axis);
  void find_slab_axes();
  std::string check_slab(const Opt& o) const;
  void take_slabs(int64_t elements);
  void split_main(Axis& axis, ir::AxisKind kind, int64_t amount);
  void group(Axis& axis, int64_t amount);

  ir::UOp ast_;
  Target target_;
  std::vector<Axis> axes_;
  struct Reduction {
    std::vector<int> own, around;  // axes it folds, axes it depends on
    int64_t bytes = 0;             // of a partial result
  };
  std::vector<Reduction> reductions_;
  // What an End stores, kept rows included: axes it depends on, and bytes that one row keeps.
  struct Stored {
    std::vector<int> axes;
    std::vector<int> around;  // of them, those that it does not close
    int64_t kept_bytes = 0, element_bytes = 0;
    bool overwrites = false;  // a kept row, where invocations share it (lower/kept_rows.h)
  };
  std::vector<Stored> stored_;
  std::vector<int> slab_axes_;
  bool scales_sums_ = false;  // all reductions of slabs are a growing maximum and sums with it
  std::vector<Operand> factors_, loads_;  // loads where there are no products
  std::vector<Opt> staged_;
  std::vector<Opt> ahead_;
  std::optional<MatrixProduct> matrices_;
  std::vector<int> order_;  // position -> axis
  int nests_ = 1;
  bool shares_outermost_ = false;
  int64_t spread_groups_ = 0, spread_width_ = 1;  // of the launch that spread axes share; 0: none
  int64_t spread_rows_ = 0;                       // of all spread axes so far
  std::vector<Opt> applied_;
};

// A workgroup of so many invocations within the target's limits per axis, the longest x first;
// empty where there is none.
std::optional<std::array<uint32_t, 3>> workgroup_shape(int64_t invocations, const Target& target);

// What a good schedule looks like for this Target, from its numbers alone.
void apply_heuristics(Tiling& t, const ir::UOp& ast, const Target& target);

}  // namespace tuff::kernel
