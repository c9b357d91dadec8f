// The cost model by which kernels are formed and their schedules chosen: what work costs on a Target,
// each constant with its unit and its source. What a form of kernel makes of them is for those who
// choose to say. Called by sched and kernel. Must never know a graph, nor a device's name.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/target.h"

namespace tuff::cost {

// ---- what fills a device ---------------------------------------------------------------------
// Of a GPU that does not tell: a small one of today.
inline constexpr int64_t kUnknownCores = 16;
inline int64_t gpu_cores(const Target& t) {
  return t.cores > 1 ? int64_t(t.cores) : kUnknownCores;
}
// Invocations that fill every lane of every unit a few times; where the units are unknown, those of
// a mid-size GPU.
inline uint64_t wanted_invocations(const Target& t) {
  return t.cores > 1 ? uint64_t(t.cores) * t.subgroup_size * 4 : 4096;
}
// What keeps memory busy that is read once: half of the lanes that a core of today's GPUs has room
// for. On an H200, column sums of 8192x8192 take 125 us with 250 invocations to a core and 64 us,
// the rate of a copy, with 1,000 (bench/results/gpu-h200-2026-11-26.md).
inline int64_t streaming_invocations(const Target& t) {
  constexpr int64_t kOfACore = 512;
  return std::max(int64_t(wanted_invocations(t)), int64_t(t.cores) * kOfACore);
}
// How many launch groups so many operations are worth sharing out to on CPU threads; 1: none.
inline int64_t worthwhile_groups(uint64_t operations, const Target& t) {
  constexpr uint64_t kPerMicrosecond = 4000;  // of a core, conservatively: vector code does more
  constexpr uint64_t kMinGroupMicroseconds = 20;  // below it, sharing costs more than it gains
  const uint64_t micros = operations / kPerMicrosecond;
  if (t.cores < 2 || micros < 2 * kMinGroupMicroseconds) return 1;
  return int64_t(std::min<uint64_t>(uint64_t(t.cores) * 4, micros / kMinGroupMicroseconds));
}

// ---- registers -------------------------------------------------------------------------------
// Of a GPU's invocation, 32-bit: addresses, counters, what an epilogue loads.
inline constexpr int64_t kOtherRegisters = 16;
// As many as an invocation of a GPU can have, less what compilers need: where a larger tile saves
// more than further waves would hide.
inline int64_t most_registers(const Target& t) {
  return std::max<int64_t>(t.vector_registers, int64_t(t.most_registers) * 5 / 6);
}
// Of a GPU's core, 32-bit. NVIDIA's since Maxwell (CUDA C++ Programming Guide, compute
// capabilities); AMD's have more.
inline constexpr int64_t kCoreRegisters = 65536;

// ---- CPUs ------------------------------------------------------------------------------------
namespace cpu {

inline int64_t lanes(const Target& t) { return std::max<int64_t>(t.vector_bytes / 4, 4); }
inline int64_t registers(const Target& t) { return std::max<int64_t>(t.vector_registers, 8); }
inline int64_t l1_bytes(const Target& t) { return t.l1_bytes ? int64_t(t.l1_bytes) : 32 << 10; }
inline constexpr int64_t kLineBytes = 64;
inline constexpr int64_t kL1SetSpan = 4096;  // bytes from one line to the next of a set of L1
inline constexpr int64_t kL2Ways = 16;
inline constexpr int64_t kOwnShare = 8;  // L2 caches that a core's share of the last cache is like

// Cycles of one core that does one vector multiply-add in each. They are rough, and were set by
// timing packed and unpacked products on a Zen 4.
inline constexpr double kLoadShare = 0.12;     // of a load beside multiply-adds
inline constexpr double kGatheredElement = 2;  // a load and an insertion
inline constexpr double kScalarCopy = 1.3;     // an element packed by scalar moves
inline constexpr double kVectorCopy = 5;       // a vector packed
inline constexpr double kFarVectorCopy = 15;   // one of a line by itself
inline constexpr double kTransposedCopy = 12;  // one of what lies across it
inline constexpr double kGatedVector = 8;    // the comparisons and the mask of one loaded by parts
inline constexpr double kFarLine = 60;       // a cache line that is not in L1, and its page
inline constexpr double kStreamedVector = 6;  // a load of what the L2 cache has no room for
inline constexpr double kScatteredLine = 3;   // one that the L2 cache has, a row away from the last
inline constexpr double kSharedLine = 3;      // one that the cores' last cache has ...
inline constexpr double kMemoryLine = 40;     // ... and one that it has not, with others that go on
inline constexpr double kTileCost = 40;       // stores and loop of one register tile
inline constexpr double kStoredElement = 2;   // stored by itself: an extraction beside it
inline constexpr double kStridedVector = 8;   // one whose elements are stored with a short stride
inline constexpr double kGroupCost = 400;     // a call, the argument loads, taking a chunk
inline constexpr double kShareCost = 20000;   // waking a thread and waiting for it
inline constexpr double kCyclesPerGroup = 40000;  // no group needs to be shorter
// Sums in lanes along memory: they keep so many at once, load so many vectors for a step, each with
// so much of a mask's comparisons, and add up the lanes of a vector.
inline constexpr int64_t kDotTile = 12, kDotLoads = 8;
inline constexpr double kDotMask = 0.75, kDotSum = 8;

}  // namespace cpu

// ---- GPUs ------------------------------------------------------------------------------------
namespace gpu {

// Multiply-adds of one invocation: estimates of what it waits for, not measured one by one. What
// they choose for attention: docs/design/attention.md.
inline constexpr double kLoad = 1, kShortLoad = 1.5;  // an operand: of four at once, of two
inline constexpr double kLine = 1;    // a lookup in the L1 cache, which has one for all units
inline constexpr double kFetch = 4;   // a component that a workgroup reads once: load, store, waits
inline constexpr double kRowStep = 12;  // an element of a row in a reduction or a fill of its own
inline constexpr double kBarrier = 30, kShuffle = 3;

// A multiply-add of matrices, beside reads of factors. RDNA3: a product of 16x16x16 takes 32 cycles
// of one of the four SIMD units that share 128 bytes of workgroup memory a cycle, and the 512 bytes
// of a factor are read for both halves of a wave (RDNA3 instruction set guide, WMMA).
inline constexpr double kMatrixMultiply = 1.0 / 16;
// Of what is read by half a line: two requests for a line, 2-way bank conflicts.
inline constexpr double kHalfLine = 1.25;

// Banks of workgroup memory, of 4 bytes each, as NVIDIA's, AMD's and Intel's devices have.
inline constexpr int64_t kBanks = 32;

}  // namespace gpu

}  // namespace tuff::cost
