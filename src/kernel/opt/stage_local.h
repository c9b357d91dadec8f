// Stage where a workgroup has several invocations: tiles of a product's factors, or of loads,
// copied into workgroup memory by all of them together, between two barriers. Called by Tiling.
// Must never know a Target: what is worth a copy is the heuristics' business.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "ir/uop.h"

namespace tuff::kernel {

// What copies that are made at one place have in common. Ranges stand outermost first.
struct LocalTile {
  std::vector<int64_t> element_bytes;  // in workgroup memory, by value
  // Tiles of loads are read across the direction that they are copied in. Then invocations lie side
  // by side in workgroup memory, what one of them takes at once lies apart, and rows are padded to
  // an odd number of words.
  bool read_across = false;
  // For cooperative matrices, by value: the ranges along their lines and across these, both of them
  // inside. Lines stay lines in the copy, one pitch apart. None: no value is a matrix.
  struct Lines {
    ir::UOp along, across;
    // Lines of one matrix: where the copy is written across its lines, those of the next one begin in
    // other banks. 0: all lines are one pitch apart.
    int64_t together = 0;
  };
  std::vector<Lines> matrices;
  std::vector<ir::UOp> around;       // loops outside the copies
  std::vector<ir::UOp> inside;       // those of a tile, in the order of workgroup memory
  std::vector<ir::UOp> invocations;  // of the workgroup: Local ranges, then lanes of subgroups
  // Neighbouring elements of so many bytes that an invocation reads of memory at once.
  std::function<int64_t(size_t)> together = [](size_t) { return 1; };
};

// Loads of copies of `values` in Shared memory, numbered from `number`, which the workgroup fills
// in each iteration of the loops around. Where a value is `ahead` (software pipelining), what the
// next iteration of the innermost of these loops copies is loaded into registers before the
// products of this one, and its copies take so many places in turn; 0: it is not. Registers are
// numbered as the memory is.
std::vector<ir::UOp> stage_local(std::span<const ir::UOp> values, std::span<const int64_t> ahead,
                                 const LocalTile& tile, int32_t number, int32_t& next_id);

// Workgroup memory of such a copy of `count` elements in rows of `row`, at most: rows may be padded
// against bank conflicts.
int64_t local_copy_bytes(int64_t count, int64_t row, int64_t element_bytes);

// The same of a tile that is read across, in elements of which so many are a word.
int64_t transposed_copy_count(int64_t count, int64_t row, int64_t per_word);

// Whether so many invocations copy `count` elements without a loop, so that registers may hold
// them.
bool copied_together(int64_t count, int64_t element_bytes, int64_t invocations);

}  // namespace tuff::kernel
