// Kept rows: what stands between two products of matrices row by row, as the softmax of attention
// between scores and values, becomes one kernel with both. The matrix between them is not stored:
// a row of it at a time is kept in fast memory. Called by schedule() after fuse_rows. Knows slots
// and ASTs, nothing of what made them.
//
// The kernel of the last product holds the others where it read what they stored:
//   store(y[r, d], sum_j(P[j] * v[j, d]))  with  P = kept row, filled with f(S[j], sum_k(g(S[k])))
//                                           and  S = kept row, filled with sum_e(q[r, e] * w[j, e])
// A kept row is Shared memory that an End inside the value fills:
//   load(index(after(shared, end(store(index(shared, j'), value of j'), j')), j))
// Each iteration of the loops around it, here r, has a row of its own. kernel decides how many rows
// are worked on at once, and widens the memory by them.
//
// Where several products read what the row kernels store, as gradients of attention do, each of
// them is a kernel that computes the matrices again: none is stored. What rows are reduced to (the
// largest score, the sum of the exponentials, what the gradients of a row have in common) is stored
// by the first kernel that holds the reductions, one number a row, by Ends over the rows alone.
// Products that walk the matrices the other way, along columns, have columns for rows: they read
// these numbers and compute everything else element by element, a matrix that is read once where it
// is read. Two of them with the same rows, as the gradients of keys and values, are one kernel.
// Attention with its gradients is three kernels, with nine products for six.
//
// The cost rule where groups are one thread:
//   1. Its scratch memory is a piece of a cache: the rows of one register tile and the packed
//      operands take at most kCacheShare of L2. Both products then keep the register tiles that
//      they have alone, and what is stored and loaded between three kernels is saved, with two
//      launches.
//   2. A row is a whole number of vectors, and every length is known.
//   3. There are at least kMatricesPerCore matrices per core, as heads are: what the rows of one
//      have in common is packed once. Of one large matrix each thread would pack all of it; its
//      products are shared out by columns instead.
//   4. Nothing but row kernels and products that read it so wants a matrix: else it has to be
//      stored, and the kernels that store it were measured to be as fast or faster by themselves.
//   5. Computed again is what together exceeds the last cache kFarCaches times, so that memory is
//      what training is short of; the rows of a register tile fit as in 1, the operands need not.
//      What is smaller is stored: the products cost more than the memory's time.
//   6. Never more buffers than Target::max_buffers, and nothing is read later than before that
//      something overwrites.
// Where a workgroup shares its memory 4 and 6 hold, matrices are computed again where together they
// exceed the last cache kFarCaches times, and besides:
//   7. A workgroup holds a tile of rows, for which it reads the other factors of the products once.
//      So many rows fit beside copies of those factors that reading them for each tile, in all
//      kernels, is less than what matrices pass memory or caches between kernels that store them;
//      or all rows of a matrix fit. Of a kernel that reduces no rows a part of each is enough: it
//      is summed part by part.
//   8. There are rows for every core, and a row is a whole number of the invocations that share it.
//   9. Loads are not dear: such devices take lanes one by one, in workgroup memory, too.
//  10. No cooperative matrices compute the products.
#pragma once

#include <cstdint>
#include <span>

#include "sched/schedule.h"

namespace tuff::sched {

inline constexpr int64_t kRowsTogether = 16;  // of one register tile, at most
inline constexpr int64_t kMatricesPerCore = 2;
inline constexpr double kCacheShare = 0.75;
inline constexpr uint64_t kFarCaches = 4;

// memory: for each Input slot in order, a number that slots in the same allocation share.
void keep_rows(Schedule& s, std::span<const uint32_t> memory, const TargetOf& target_of);

}  // namespace tuff::sched
