// The schedules that the heuristics choose from, a file each. What applies one to `t` gives false,
// and has done nothing, where the kernel has another form. Called by the heuristics. Must never
// know a device's name.
#pragma once

#include <span>
#include <vector>

#include "kernel/opt/chooser.h"

namespace tuff::kernel {

// ---- devices with workgroups ----------------------------------------------------------------
// What a tile asks for once the launch is chosen.
struct GpuTile {
  bool chosen = false;       // false: nothing was done
  std::vector<int> copied;   // operands that are copied into workgroup memory ...
  int64_t loops_inside = 0;  // ... around so many of the innermost loops ...
  bool ahead = false;        // ... and loaded ahead
  int row = -1;              // the outer axis of the tile; -1: it has none
};
void stage_tile(Tiling& t, const GpuTile& tile);  // after all other opts

// Sums of products of narrow numbers where the Target's subgroups multiply matrices: fragments in
// registers, subgroups in a workgroup; all but the launch grid. Factors are copied where workgroup
// memory is faster than the caches.
GpuTile tile_matrices(Tiling& t, const Target& target);

// Software pipelining of copies that are made at one place: in two places of workgroup memory where
// it has room for them, else in one, else not at all.
void load_ahead(Tiling& t, std::span<const int> operands);

// Kernels that keep rows in fast memory: a workgroup takes a tile of rows, and its invocations
// share each nest of loops: register tiles of the products, reductions of the rows, what is stored.
bool share_kept_rows(Tiling& t, const ir::UOp& ast, const KernelShape& k, const Target& target);

// Sums of products: a register tile for each invocation, invocations that read the same beside each
// other, and what they read copied into workgroup memory where that is faster than the caches.
GpuTile tile_gpu_product(Tiling& t, const KernelShape& k, const Target& target);

// Reductions that are no products: by subgroups, by all invocations of a workgroup, or in each
// invocation alone.
void tile_gpu_reduction(Tiling& t, const ir::UOp& ast, const KernelShape& k, const Target& target);

// Kernels that reduce nothing and load along another axis than they store: tiles of whole lines
// both ways, which go through workgroup memory.
GpuTile tile_gpu_transpose(Tiling& t, const ir::UOp& ast, const KernelShape& k,
                           const Target& target);

// ---- devices without ------------------------------------------------------------------------
// Sums of products of narrow numbers that lie as the matrix instructions of a CPU want them: a tile
// of matrices in registers, groups whose part of the longer factor the L2 cache holds. False:
// nothing was done.
bool tile_thread_matrices(Tiling& t, const KernelShape& k, const Target& target);

// Kernels that keep rows in fast memory: one register tile of rows for all products, vectors along
// what is stored, rows shared out among the threads.
bool tile_kept_rows(Tiling& t, const KernelShape& k, const Target& target);

// Sums of products of which one factor is gathered for few outputs (gathered_dot.h): vectors along
// the sum, all outputs that read one of the other factor together. Gives the operand to be copied
// once the launch is chosen; -1: nothing was done.
int tile_gathered_dot(Tiling& t, const KernelShape& k, const Target& target);

// Sums of products of numbers that are decoded from bytes and up to sched::kThinProduct vectors:
// vectors along the sum, whose numbers are decoded once for all vectors. False: nothing was done.
bool tile_decoded_product(Tiling& t, const KernelShape& k, const Target& target);

// Sums of products: a register tile, operands packed into fast memory, edges masked, the rest
// shared out among the threads.
bool tile_packed_product(Tiling& t, const KernelShape& k, const Target& target);

// Those whose operands are not packed: vectors along one output axis and rows of them, or partial
// sums along the reduction. False: no operand is reused.
bool tile_vector_product(Tiling& t, const KernelShape& k, const Target& target);

// ---- both -----------------------------------------------------------------------------------
// Loop nests beside each other, which share vector lanes and the launch (nests.cpp).
void spread_nests(Tiling& t, const ir::UOp& ast, const Target& target);

}  // namespace tuff::kernel
