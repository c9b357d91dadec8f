// What a kernel looks like to the heuristics: its axes, its main reduction, how its accesses walk.
// Called by the heuristics and by search. Must never know a device's name.
#pragma once

#include <cstdint>
#include <vector>

#include "base/arith.h"
#include "ir/uop.h"
#include "kernel/analysis/access.h"
#include "kernel/opt/rules.h"

namespace tuff::kernel {

// Vectors of contiguous memory that are taken apart into as many of every n-th element.
inline constexpr int64_t kMostInterleaved = 4;

// As long as a vector of 32-bit numbers; of shorter pieces each lane loads for itself.
inline constexpr int64_t kLeastPiece = 16;

struct AxisShape {
  int64_t size = 1;  // the most, where it is symbolic
  int64_t least_size = 1;
  bool symbolic = false;
  bool reduced = false;
  bool shared = false;         // an output axis that every reduction depends on
  int unit_loads = 0;          // accesses that walk it with step 1
  uint32_t product_reads = 0;  // loads of the main reduction that depend on it, by number
  uint32_t product_units = 0;  // of them, those that walk it with step 1
  uint32_t product_near = 0;   // of them, those that vectors with a short stride load
  int unit_stores = 0;
  size_t unit_bytes = 0;  // of the widest element that is walked so
  int near_stores = 0;  // that vectors with a short stride store
  int strided = 0;      // accesses that walk it with another step, or irregularly
  int repeated = 0;     // those of them where neighbours load the same element
  int interleaved = 0;  // those of them that take every n-th element of vectors
  int broadcast = 0;    // loads of the main reduction that do not depend on it
  int gated = 0;        // accesses whose gate depends on it
  // Strided loads, neither repeated nor interleaved, that walk it in pieces of kLeastPiece
  // neighbours or more; those of them that walk a piece with step 1; the shortest piece.
  int in_pieces = 0, unit_pieces = 0;
  int64_t piece = 0;
  // unit_loads and unit_stores, strided, and those of the strided ones that are repeated,
  // interleaved or in pieces, each load counted by how often it runs: 1 for what runs most, and for
  // stores.
  double unit_share = 0, strided_share = 0, shuffled_share = 0, unit_pieces_share = 0;
  RangeMask bit = 0;
};

struct KernelShape {
  std::vector<AxisShape> axes;  // as Tiling's
  std::vector<ir::UOp> reduces;
  const ir::Node* main_reduce = nullptr;  // the one with most work
  std::vector<int> main_axes;                // its reduced axes
  int main_loads = 0;                        // loads below it
  bool main_is_product = false;              // a sum of products of two loaded values
  uint64_t work = 0;                         // about operations per launch
  int64_t stored_bytes = 0;                  // of the longest memory that is written
  uint64_t outputs = 1;                      // product of the shared output axes
};

KernelShape shape_of(const ir::UOp& ast, const Tiling& t);

// The largest divisor of n that is at most `most` (and a power of two if asked); 1 if there is
// none.
int64_t divisor_up_to(int64_t n, int64_t most, bool power_of_two = false);

}  // namespace tuff::kernel
