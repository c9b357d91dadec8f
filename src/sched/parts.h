// Parts: the transformation of one reduction into two kernels, the sums of parts and the sum of
// these (of products: split-K). Named and legal by rule as kernel's opts are, but the schedule's,
// since the second kernel is one more call; TUFF_SKIP=parts leaves it out. Called by prepare().
// Works on the tensor floor alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/target.h"
#include "ir/uop.h"

namespace tuff::sched {

// A reduction with fewer outputs than this and more reduced elements than that runs as partial
// results first, so that all cores or workgroups have a share.
inline constexpr int64_t kSplitMaxOutputs = 256;
inline constexpr int64_t kSplitMinReduced = 32768;
// So does a matrix product on a GPU with fewer outputs than a third of what keeps its units busy
// (eight subgroups on each, 64 outputs to a lane: tiles of 8x8, which read half of what tiles of
// 4x4 do from workgroup memory), in as many parts as do, none shorter than this.
inline constexpr int64_t kSplitOutputsPerLane = 512, kSplitProductGain = 3, kSplitLeastPart = 512;
// Fewer outputs of many rows of memory each (the channels of images) are cut by these where there
// are so many elements in all: a workgroup would walk them one after another.
inline constexpr int64_t kSplitLeastAcross = 1 << 17;
// Other reductions are cut where the device has room for so many times as many invocations.
inline constexpr int64_t kSplitLeastGain = 4;
// A product with so few rows or columns stays whole: the invocations of a workgroup share its sums.
inline constexpr int64_t kThinProduct = 8;
// And one on a CPU whose packed panel, so many floats wide, takes more than three quarters of the
// L2 cache: in the fewest parts whose panels take three eighths, where each element of both factors
// is used so often that their products are what takes time.
inline constexpr int64_t kSplitPanelBytes = 64 * 4, kSplitLeastReuse = 16;
// Where a CPU multiplies matrices (AMX) nothing is packed: so many bytes for each element of the sum
// are 128 rows of a factor whose numbers have two parts, which half of the cache has to hold.
inline constexpr int64_t kSplitMatrixBytes = 128;

enum class PartOrder : uint8_t {
  Runs,    // a part is a run of the axis, the results of an output lie beside each other
  Turns,   // parts take the axis' elements in turn, so that they lie beside each other
  Panels,  // runs; the results of a part lie beside each other, its long axes innermost
  Planes,  // runs; the results of a part lie beside each other, as the outputs do
};
struct Parts {
  int64_t axis;    // of what is reduced
  int64_t length;  // elements of a part; the last one may be shorter: what it lacks is masked
  PartOrder order = PartOrder::Runs;
  bool operator==(const Parts&) const = default;
};
std::string to_string(const Parts& p);  // "parts(0,4096)", "parts(0,4096,turns)"

// The same value as `reduce`, a Reduce of the tensor floor, by way of memory. What is stored in
// between is not rounded to half a word. InvalidArgument saying why it is illegal.
ir::UOp in_parts(const ir::UOp& reduce, const Parts& p);

// Whether it is a sum of products each factor of which is used for so many outputs: a tile of them
// needs few loads.
bool is_matrix_product(const ir::Node& reduce, int64_t least_reuse = 2);

// What the numbers of the device make of it; none: the reduction stays whole.
std::optional<Parts> choose_parts(const ir::Node& reduce, const Target& target);

// Random legal parts, or none, the same for the same seed everywhere: TUFF_RANDOM_OPTS. Must never
// look at what they are worth.
std::optional<Parts> random_parts(const ir::UOp& reduce, uint64_t seed);
// How often they were drawn and were legal, of all calls in this process.
struct PartsCounts {
  uint64_t tried = 0, applied = 0;
};
PartsCounts random_parts_counts();

}  // namespace tuff::sched
