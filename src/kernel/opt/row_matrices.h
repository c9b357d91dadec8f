// Rows that are kept as subgroups that multiply matrices have them: how many, and of which axis.
// Called by the rule of the opt, by what builds such kernels and by the chooser of their schedules.
// Must never know a device's name.
#pragma once

#include <string>

#include "kernel/opt/rules.h"

namespace tuff::kernel {

// Makes `out` sum of products `number` of a Tiling that keeps rows as one of matrices of this
// shape, or gives the reason why it is none.
std::string row_matrices(const Tiling& t, int number, const MatrixShape& shape, RowMatrices& out);

int row_of_subgroups(const Tiling& t);  // the axis that lanes have rows of; -1: none, or several
int64_t rows_of_workgroup(const Tiling& t, int row);
int64_t rows_of_subgroup(const Tiling& t, int row);
int64_t slab_elements(const Axis& axis);
// Whether the row that is a factor lies where that of the sums was, which it is made of element by
// element.
bool overwrites_scores(const Tiling& t, std::span<const RowMatrices> all);

}  // namespace tuff::kernel
