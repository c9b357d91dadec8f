// A GPU's invocations go through all of a Scatter's index, each for places of its own. Where more is
// stored than there are places, runs of the index are combined beside each other first, each into
// places of its own, and these after that. Called by prepare(), and by linearize for a Scatter's
// kernels. Works on the tensor floor alone.
#pragma once

#include <vector>

#include "base/target.h"
#include "ir/uop.h"
#include "sched/rangeify.h"

namespace tuff::sched {

// Elements of an index that are worth a run of their own.
inline constexpr int64_t kLeastRun = 256;

// The same as `scatter`, by way of memory that holds no more than its value does; null where it
// replaces elements, names none twice, or the target fills the device by itself.
ir::UOp scattered_in_parts(const ir::UOp& scatter, const Target& target);

// Whether what comes to one place of a Scatter may be combined by atomics: where a device has those,
// for 32-bit words, and many places, which are rarely asked for by two invocations at once.
bool is_combined_atomically(const ir::ScatterArg& arg, DType t, int64_t places,
                            const Target& target);

// The kernels that store by index: so many iterations in each as the device makes, so many owners
// as fill it.
std::vector<OrderedStep> ordered_steps(const ir::Node& scatter, const Target& target);

}  // namespace tuff::sched
