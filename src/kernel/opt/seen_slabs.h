// The loop over slabs of kept rows, as long as what a mask shows of them. Called by what rebuilds
// the AST (build.cpp).
#pragma once

#include <span>

#include "ir/shown_columns.h"
#include "kernel/opt/built_axis.h"
#include "kernel/opt/tiling.h"

namespace tuff::kernel {

// By the rows: how much of a row that is taken slab by slab its mask lets through. None: all of it,
// or what is as much for all rows.
ir::ShownColumns seen_of_slabs(const Tiling& t);

// Gives an axis of slabs those that any of the rows sees that are taken together: up to a last one,
// or from the last one of all backwards, so that all rows count them alike. `built`: the axes that
// walk rows are.
void take_seen_slabs(Axis& axis, const ir::ShownColumns& seen, const Tiling& t,
                     std::span<const BuiltAxis> built);

}  // namespace tuff::kernel
