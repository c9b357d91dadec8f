// The pass table of kernel: every step from AST to linear list, in order. Called by lower(), by
// tests that stop in the middle and by `tuff`'s tools. A pass must not know any other pass.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/target.h"
#include "ir/op.h"
#include "kernel/lowered.h"
#include "kernel/opt/rules.h"

namespace tuff::kernel {

// What passes hand on: the AST until linearize, the list after it.
struct Lowering {
  const Target& target;
  ir::UOp ast;
  uint64_t key = 0;                            // of the AST as it came
  std::optional<std::vector<Opt>> given_opts;  // instead of the heuristics
  LinearKernel out;
  LowerOptions options{};
  double useful = 1;  // of the lanes and steps of padded axes: the share inside them
  // Invocations share rows that are kept: GroupReduce ranges are which of them, Local ones which
  // rows.
  bool shares_rows = false;
  bool shares_outermost = false;  // Tiling::shares_outermost
  std::optional<SubgroupRows> subgroup_rows;  // where subgroups multiply matrices of kept rows
  // Of a launch beside others: the first of its workgroups, which are along one axis.
  std::optional<int64_t> first_group;
};

struct Pass {
  const char* name;
  void (*run)(Lowering&);
  bool required;  // false: a kernel is right without it, so it may be skipped
};
std::span<const Pass> passes();

// As lower(), but with these opts (InvalidArgument if one is illegal), or without the passes named.
LinearKernel lower_with(const ir::UOp& ast, const Target& target, std::vector<Opt> opts,
                        std::span<const std::string> skipped = {});

// The AST as opts see it: lower_with's axes are those of a Tiling of this.
ir::UOp ast_for_opts(const ir::UOp& ast, const Target& target);

// Total time and calls of every pass since the start of the process.
struct PassTime {
  const char* name;
  uint64_t calls, total_ns;
};
std::vector<PassTime> pass_times();

// ---- the passes, one file each -----------------------------------------------------------------
void pass_separate_loops(Lowering& l);
void pass_merge_axes(Lowering& l);
void pass_simplify(Lowering& l);
void pass_phases(Lowering& l);
void pass_reduce_order(Lowering& l);
void pass_opts(Lowering& l);
void pass_serial_products(Lowering& l);  // products of integers that are emulated: no lanes
void pass_loop_limit(Lowering& l);
void pass_row_factors(Lowering& l);  // what sums along a kept row have in common leaves them
void pass_one_sweep(Lowering& l);    // a maximum, and sums that need it, in one loop
void pass_lane_factors(Lowering& l);  // what unrolled steps of a sum have in common leaves them
void pass_packed_words(Lowering& l);  // bytes of packed numbers as the words they are read in
void pass_packed_rows(Lowering& l);   // rows of them, copied into workgroup memory as they lie
void pass_kept_rows(Lowering& l);     // a kept row for each lane
void pass_row_buffers(Lowering& l);   // expensive values of a row, needed twice, computed once
void pass_reduces(Lowering& l);       // Reduce -> registers, shared memory
void pass_launch(Lowering& l);        // Group, Local, GroupReduce -> Special
void pass_bounds(Lowering& l);        // checks of offsets, where they are asked for
void pass_decompose(Lowering& l);   // what the Target lacks, and what no instruction means exactly
void pass_lost_lanes(Lowering& l);  // folds over lanes that a decomposition made needless
void pass_wide_integers(Lowering& l);  // int64 as two words
void pass_atomic_words(Lowering& l);   // floats combined by compare-exchange, as words
void pass_word_storage(Lowering& l);   // 8- and 16-bit elements inside words
void pass_index_order(Lowering& l);    // offsets: loop-invariant terms first, lanes last
void pass_index_type(Lowering& l);     // Index -> I32 or I64
void pass_linearize(Lowering& l);
void pass_prefetch(Lowering& l);          // asks for memory before it is read or written
void pass_streaming_stores(Lowering& l);  // scattered lines of long outputs
void pass_finish(Lowering& l);            // lanes, arguments, estimate, name

}  // namespace tuff::kernel
