// What the choosers of a schedule have in common: a kernel's axes as they are while opts are
// applied, and the choices that more than one of them makes. Base of the heuristics' classes. Must
// never know a device's name.
#pragma once

#include "base/cost.h"
#include "kernel/opt/shape.h"

namespace tuff::kernel {

// A register tile: lanes along two output axes (row -1: along one).
struct ProductTile {
  int column = -1, row = -1;
  int64_t columns = 1, rows = 1;
  double loads = 1e30;  // per multiply-add
};

class Chooser {
 protected:
  Chooser(Tiling& t, const KernelShape& k, const Target& target) : t_(t), k_(k), target_(target) {}

  const AxisShape& axis(int a) const { return k_.axes[size_t(a)]; }
  int64_t left(int a) const { return t_.axes[size_t(a)].main_size(); }
  // Whether what is left of an axis can be split: of a symbolic one, by masking its last part.
  bool splits(int a) const {
    const Axis& x = t_.axes[size_t(a)];
    return x.main_is_const() || !x.kept;
  }
  int64_t cpu_lanes() const { return cost::cpu::lanes(target_); }
  int count() const { return int(k_.axes.size()); }
  bool loop_left(int a) const {
    const Axis& x = t_.axes[size_t(a)];
    return x.parts[size_t(x.main)].kind == ir::AxisKind::Loop;
  }

  // So many launch groups along an axis; along a symbolic one each of its pieces is a group.
  bool launch_along(int a, int64_t groups) {
    return try_apply(t_, {OptKind::Group, a, axis(a).symbolic ? 0 : groups});
  }

  // How well an axis serves as vector lanes: contiguous accesses for it, gathers against, loads by
  // how often they run.
  double vector_score(int a) const;
  // Accesses whose lanes each load or store for themselves: not what a CPU's vectors are shuffled
  // from.
  int gathers_along(int a) const;
  // Lanes of the vectors that walk the axis in the least time: a power of two, at most `most`. On a
  // CPU the last vector may be masked, which costs each half as much again; gathers, and what
  // short instruction sets take lane by lane, far more.
  int64_t lanes_along(int a, int64_t most) const;
  // The output axis for vector lanes; -1 if none gains. Axes outside the reductions count only
  // where nothing is reduced.
  int best_vector_axis(int64_t least) const;
  void vectorize_outputs(int64_t lanes);
  // Where a vector's lanes store every n-th element, the outputs between them as lanes too:
  // together they are whole vectors and need no masked stores, which are microcode on some CPUs
  // (VMASKMOVPS from Zen to Zen 4: https://uops.info).
  void upcast_between_lanes();
  // Neighbouring outputs of one invocation: a vector, of narrow elements as long as one access, if
  // enough invocations are left to hide what it waits for.
  int64_t outputs_together() const;
  // In a kernel that keeps rows, the axis along which most products reuse one factor; -1: none.
  int row_axis() const;
  // Of the Tiling's factors, those of the main sum of products.
  std::vector<int> main_factors() const;
  // Output axes along which some operand of the main sum of products is reused.
  std::vector<int> reused_axes() const;
  // The longest axis of the main reduction that loads walk step by step; -1: none.
  int contiguous_reduction() const;
  void unroll_main(int64_t most, bool contiguous_first);
  // The cost factor of lanes that do not divide their axis: some are past the end, and neighbours
  // cannot be proven. Prohibitive where any number from 4 to 8 divides the axis.
  double padding(int a, int64_t lanes) const;

  // Rows times vectors whose sums, a row of vectors and a broadcast fit a CPU's registers: `take`
  // gets how many lanes and rows.
  template <class Take>
  void each_register_tile(int64_t most_rows, const Take& take) const {
    for (int64_t vectors = 1; vectors <= 4; vectors *= 2) {
      const int64_t lanes = vectors * cpu_lanes(), most = cost::cpu::registers(target_);
      if (lanes > 64) continue;
      for (int64_t rows = 1; rows <= most_rows && (rows + 1) * vectors < most; rows++)
        take(lanes, rows);
    }
  }

  Tiling& t_;
  const KernelShape& k_;
  const Target& target_;
};

// Vectors of partial sums on a CPU: additions take four cycles, and begin twice in one.
inline constexpr int64_t kRowVectors = 4;

}  // namespace tuff::kernel
