// The cost rule of kernels that keep rows (docs/design/attention.md): by caches where a thread has
// rows of its own, by what is read again where a workgroup shares them. Called by keep.cpp and, for
// what may become such a kernel, by parts.cpp. Knows numbers, nothing of slots or ASTs.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/target.h"

namespace tuff::sched {

inline constexpr int64_t kRowsTogether = 16;  // of one register tile, at most
inline constexpr int64_t kMatricesPerCore = 2;
// Of one matrix, that a thread has: what they share is copied by each thread.
inline constexpr int64_t kRowsOfCopy = 256;
inline constexpr double kCacheShare = 0.75;
inline constexpr uint64_t kFarCaches = 4;
inline constexpr uint64_t kMostStored = 256 << 20;  // bytes of matrices that gradients read
inline constexpr int64_t kLeastLength = 8;  // of a product's sum, and of what it is spread over
// Where workgroups share rows: so many of them fill a core.
inline constexpr int64_t kSharedRowsPerCore = 16;
// How often an element of each matrix passes memory between kernels, with what launches cost; and
// how much more expensive memory is than a cache.
inline constexpr int64_t kMatrixPasses = 3, kMemoryCost = 2;

// One kernel.
struct KeptWork {
  int64_t rows = 1;           // in all
  int64_t columns = 0;        // of a row, at most
  bool fixed_rows = true;     // their number is known
  bool fixed_columns = true;  // their length is
  int64_t matrices = 1;       // that its last product is of; 0: it stores what rows are reduced to
  int64_t width = 1;          // of what is stored, for each row
  size_t across = 0;          // loops that these are
  int64_t results = 1;        // last products
  std::vector<int64_t> lengths;            // of the sums of products that fill rows
  int64_t kept = 0, kept_at_once = 0;      // rows of each kind; with memory that others take over
  std::function<bool()> is_one_sweep;      // whether rows need not be whole
  int64_t row_length = 1;                  // of the innermost loop over rows of one matrix
  bool by_elements = false;                // something follows the last product's sums
};

// Of a thread. `again`: another kernel fills the same rows.
bool fits_cache(const Target& t, const KeptWork& w, bool again);
// Of a workgroup: how many numbers of the other factors its tiles of rows read again, for each
// score; empty: no tile is large enough, or too few are for the cores.
std::optional<double> reads_by_tiles(const Target& t, const KeptWork& w);

// Whether the subgroups of a workgroup hold rows as cooperative matrices of this shape, in all of
// its products: what is summed is not kept in memory then, and the shape divides what it walks but
// rows.
bool multiplies_rows(const Target& t, const MatrixShape& shape, const KeptWork& w);

}  // namespace tuff::sched
