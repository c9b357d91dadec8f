// What each kind of opt asks for, and what it does: a table of rules, which apply() reads. Called by
// the heuristics, by search and by tests. To add a kind: a row of OptKind, one of the table in
// rules.cpp, its two functions.
#pragma once

#include <string>

#include "kernel/opt/subgroup_rows.h"
#include "kernel/opt/tiling.h"

namespace tuff::kernel {

std::string refusal(const Tiling& t, const Opt& o);  // why it is illegal; empty: it is not
void apply(Tiling& t, const Opt& o);                 // InvalidArgument with that reason
bool try_apply(Tiling& t, const Opt& o);             // false, and nothing has changed: it is illegal
// The AST with its ranges split, renumbered from 0. `rows`: gets those of subgroups that multiply
// matrices of kept rows.
ir::UOp build(const Tiling& t, std::optional<SubgroupRows>* rows = nullptr);

// What a good schedule looks like for this Target, from its numbers alone.
void apply_heuristics(Tiling& t, const ir::UOp& ast, const Target& target);

// ---- the rules, by file; reasons as refusal()'s --------------------------------------------------
// rules_workgroup.cpp: invocations of a workgroup, and launches that nests share.
std::string workgroup_refusal(const Tiling& t, const Opt& o);       // Local, GroupReduce
std::string workgroup_size_refusal(const Tiling& t, const Opt& o);  // ... so many
void take_local(Tiling& t, const Opt& o);
std::string spread_refusal(const Tiling& t, const Opt& o);
void take_spread(Tiling& t, const Opt& o);
// A reduction around or inside of one that is shared cannot be.
std::string nested_refusal(const Tiling& t, const Opt& o);

// rules_kept_rows.cpp: axes of kernels that keep rows in fast memory.
std::string kept_refusal(const Tiling& t, const Opt& o);     // of any opt on a loop
std::string columns_refusal(const Tiling& t, const Opt& o);  // Local, GroupReduce
std::string slab_refusal(const Tiling& t, const Opt& o);
void take_slab(Tiling& t, const Opt& o);

// rules_copies.cpp
std::string stage_refusal(const Tiling& t, const Opt& o);
std::string ahead_refusal(const Tiling& t, const Opt& o);

// matrices.cpp
std::string matrix_refusal(const Tiling& t, const Opt& o);
void take_matrix(Tiling& t, const Opt& o);
std::string matrix_copy_refusal(const Tiling& t, const Opt& o);
// row_matrices.cpp: of kernels that keep rows
std::string row_matrix_refusal(const Tiling& t, const Opt& o);
void take_row_matrices(Tiling& t, const Opt& o);
std::string refusal_beside_matrices(const Tiling& t, const Opt& o);  // of what may follow it

// A part of the axis' main loop, inside what is left of it.
void split_main(Axis& axis, ir::AxisKind kind, int64_t amount);

}  // namespace tuff::kernel
