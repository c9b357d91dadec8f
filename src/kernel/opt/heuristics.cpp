// The schedule of a kernel chosen without measuring, in the order of decisions: what the form of
// the kernel asks for, and what of the rest goes to the launch grid.
#include <algorithm>

#include "kernel/opt/schedules.h"
#include "sched/parts.h"

namespace tuff::kernel {

using namespace ir;

namespace {

constexpr int64_t kTransposedTogether = 64;  // elements that one launch group stores side by side
constexpr int64_t kWidestGroup = 64;         // invocations along the axis that memory is walked by

class Heuristics : Chooser {
 public:
  Heuristics(Tiling& t, const UOp& ast, const KernelShape& k, const Target& target)
      : Chooser(t, k, target), ast_(ast) {}

  void run() {
    if (target_.has_local) {
      choose_gpu();
    } else {
      choose_cpu();
    }
  }

 private:
  bool is_product() const { return k_.main_reduce && k_.main_is_product && !stores_rows(); }
  // A sum of products too where each of its results serves a row of elements, as a norm's gradient.
  bool stores_rows() const {
    return std::ranges::any_of(k_.axes, [](const AxisShape& a) {
      return !a.reduced && a.product_reads == 0 && a.unit_stores > 0 && a.size > 1;
    });
  }

  void choose_gpu() {
    GpuTile tile = tile_matrices(t_, target_);
    if (!tile.chosen && share_kept_rows(t_, ast_, k_, target_)) return;
    if (!tile.chosen) tile = tile_gpu_transpose(t_, ast_, k_, target_);
    if (!tile.chosen && is_product() && !take_thin_product())
      tile = tile_gpu_product(t_, k_, target_);
    if (tile.chosen) {
      // The grid follows.
    } else if (k_.main_reduce) {
      tile_gpu_reduction(t_, ast_, k_, target_);
    } else {
      vectorize_outputs(outputs_together());
    }
    if (local_size(t_) == 1) choose_workgroup();
    group_in_blocks(tile.row);
    group_all();
    stage_tile(t_, tile);
  }

  // A matrix by a few vectors is limited by the one factor that is read once, as a sum is: all
  // vectors' outputs belong to one invocation.
  bool take_thin_product() {
    const std::vector<int> axes = reused_axes();
    int longest = -1;
    int64_t vectors = 1;
    for (int a : axes) {
      if (longest < 0 || left(a) > left(longest)) longest = a;
    }
    for (int a : axes) vectors *= a == longest ? 1 : left(a);
    if (longest < 0 || vectors > sched::kThinProduct) return false;
    for (int a : axes)
      if (a != longest && left(a) > 1) apply(t_, {OptKind::Upcast, a, left(a)});
    return true;
  }

  void choose_cpu() {
    // The launch is part of some plans.
    if (is_product() && tile_thread_matrices(t_, k_, target_)) return;
    if (tile_kept_rows(t_, k_, target_)) return;
    const int gathered = is_product() ? tile_gathered_dot(t_, k_, target_) : -1;
    if (gathered >= 0) {
      launch_cpu();
      try_apply(t_, {OptKind::Stage, gathered, 0});
      return;
    }
    if (is_product() && tile_decoded_product(t_, k_, target_)) return launch_cpu();
    if (is_product() && tile_packed_product(t_, k_, target_)) return;
    if (is_product() && tile_vector_product(t_, k_, target_)) {
      // The tile is chosen; the launch follows.
    } else if (k_.main_reduce) {
      reduction();
    } else {
      if (transpose()) return;
      vectorize_outputs(cpu_lanes() * 2);
    }
    upcast_between_lanes();
    launch_cpu();
  }

  // What is stored along one axis and loaded along another goes through square tiles: vectors are
  // loaded along the one and transposed in registers. A launch group takes a few tiles beside each
  // other and walks along the other axis, so that the pages it reads stay the same and the lines it
  // writes are whole. Where these go past the caches it reads each row of tiles from end to end.
  bool transpose() {
    int stored = -1, loaded = -1;
    for (int a = 0; a < count(); a++) {
      if (axis(a).gated || !splits(a)) continue;
      if (axis(a).unit_stores > 0 && axis(a).strided > 0) stored = a;
      if (axis(a).unit_stores == 0 && axis(a).unit_loads > 0) loaded = a;
    }
    if (stored < 0 || loaded < 0) return false;
    const int64_t n = std::min(divisor_up_to(left(stored), cpu_lanes(), true),
                               divisor_up_to(left(loaded), cpu_lanes(), true));
    if (n < 4) return false;
    apply(t_, {OptKind::Vector, stored, n});
    apply(t_, {OptKind::Upcast, loaded, n});
    const bool past_caches =
        target_.features.streaming_stores && target_.exceeds_caches(k_.stored_bytes);
    if ((stored < loaded) != past_caches) try_apply(t_, {OptKind::Swap, stored, loaded});
    const int64_t tiles = divisor_up_to(left(stored), kTransposedTogether / n);
    if (cost::worthwhile_groups(k_.work, target_) > 1 && left(stored) > tiles)
      try_apply(t_, {OptKind::Group, stored, left(stored) / tiles});
    return true;
  }

  void reduction() {
    // Lanes across outputs where loads are contiguous there, else partial sums along the reduction.
    const int out = best_vector_axis(4);
    const bool across =
        out >= 0 && axis(out).shared && (axis(out).unit_loads > 0 || axis(out).interleaved > 0);
    if (across) {
      for (int a = 0; a < count() && axis(out).interleaved > 0; a++) unroll_short(a);
      try_apply(t_, {OptKind::Vector, out, lanes_along(out, cpu_lanes() * 2)});
      return;
    }
    for (int a = 0; a < count(); a++) partial_sums(a);
    // What is stored for each element of a row, in vectors as wide as its partial sums: then all
    // of them are vectors.
    if (out >= 0 && !axis(out).shared)
      try_apply(t_, {OptKind::Vector, out, lanes_along(out, kRowVectors * cpu_lanes())});
  }
  // All steps of a reduction whose elements lie between those of the vector's lanes.
  void unroll_short(int a) {
    if (!axis(a).reduced || !splits(a) || axis(a).unit_loads == 0 || left(a) > kMostInterleaved)
      return;
    try_apply(t_, {OptKind::Unroll, a, left(a)});
  }
  void partial_sums(int a) {
    if (!axis(a).reduced || !splits(a) || axis(a).unit_loads == 0) return;
    const int64_t n = lanes_along(a, kRowVectors * cpu_lanes());
    if (n > 1) try_apply(t_, {OptKind::Unroll, a, n});
  }

  void launch_cpu() {
    const int64_t wanted = cost::worthwhile_groups(k_.work, target_);
    if (wanted < 2) return;
    const auto [best, groups] = longest_launch(wanted, true);
    if (best < 0) return;
    // Of a symbolic axis there may be fewer pieces than cores.
    if (axis(best).symbolic && axis(best).least_size < int64_t(target_.cores)) {
      const auto [other, parts] = longest_launch(wanted, false);
      if (other >= 0) launch_along(other, parts);
    }
    launch_along(best, groups);
  }
  std::pair<int, int64_t> longest_launch(int64_t wanted, bool symbolic) const {
    std::pair<int, int64_t> best{-1, 1};
    for (int a = 0; a < count(); a++) {
      if (!axis(a).shared || !splits(a) || !loop_left(a)) continue;
      if (axis(a).symbolic && !symbolic) continue;
      const int64_t n = divisor_up_to(left(a), wanted);
      if (n > best.second) best = {a, n};
    }
    return best;
  }

  // The workgroup goes along that output axis, of those that reductions depend on, whose accesses
  // are coalesced.
  void choose_workgroup() {
    int fast = -1;
    for (int a = 0; a < count(); a++) {
      if (!axis(a).shared || !splits(a) || left(a) < 2) continue;
      const auto weight = [&](int x) {
        return std::tuple(axis(x).unit_stores + axis(x).unit_loads, std::min<int64_t>(left(x), 64),
                          x);
      };
      if (fast < 0 || weight(a) >= weight(fast)) fast = a;
    }
    if (fast < 0) return;
    const int64_t size = left(fast);
    const int64_t most =
        std::min<int64_t>({kWidestGroup, target_.max_invocations, target_.max_local[0]});
    int64_t n = divisor_up_to(size, most);
    if (n < std::min<int64_t>(size, 16)) n = std::min(size, most);  // pads: few idle invocations
    if (n > 1) try_apply(t_, {OptKind::Local, fast, n});
    fill_workgroup(fast);
  }
  // Where the fast axis alone leaves lanes of a subgroup idle, another axis joins the workgroup.
  void fill_workgroup(int fast) {
    const int64_t wanted = std::min<int64_t>(32, target_.max_invocations);
    int widest = -1;
    for (int a = 0; a < count(); a++) {
      if (a == fast || !axis(a).shared || !splits(a) || !loop_left(a) || left(a) < 2) continue;
      if (widest < 0 || left(a) >= left(widest)) widest = a;
    }
    if (widest < 0 || local_size(t_) >= wanted) return;
    const int64_t n = divisor_up_to(left(widest), wanted / local_size(t_));
    if (n > 1) try_apply(t_, {OptKind::Local, widest, n});
  }
  // Threadblock swizzle: of a product's workgroups, those of a few rows of tiles follow each other
  // column by column, so that what runs at once, and one after the other, reads the same lines of
  // both factors from L2. Rows so few that half of a small L2 holds what they read; all of them, if
  // there are no more: the second factor is read once.
  void group_in_blocks(int row) {
    constexpr int64_t kMost = 8, kLeast = 2, kPanelBytes = 1 << 20;
    if (row < 0 || !splits(row) || left(row) < 2) return;
    bool has_columns = false;
    for (int a = row + 1; a < count(); a++)
      has_columns = has_columns || (axis(a).shared && loop_left(a) && left(a) > 1);
    if (!has_columns) return;
    int64_t bytes = axis(row).size / left(row) * int64_t(size_bytes(t_.factors[0].value->dtype));
    for (const int a : k_.main_axes) bytes *= axis(a).size;
    const int64_t most = std::clamp(kPanelBytes / std::max<int64_t>(bytes, 1), kLeast, kMost);
    const int64_t block = divisor_up_to(left(row), most);
    if (block > 1) try_apply(t_, {OptKind::Group, row, left(row) / block});
  }
  // Every output axis that reductions depend on goes to the grid.
  void group_all() {
    for (int a = 0; a < count(); a++) {
      if (!axis(a).shared || !loop_left(a) || left(a) < 2) continue;
      // What the grid has no room for stays a loop.
      if (left(a) <= groups_left(t_) || !splits(a)) {
        try_apply(t_, {OptKind::Group, a, 0});
      } else {
        try_apply(t_, {OptKind::Group, a, groups_left(t_)});
      }
    }
  }

  const UOp ast_;
};

}  // namespace

void apply_heuristics(Tiling& t, const UOp& ast, const Target& target) {
  if (t.nests > 1) return spread_nests(t, ast, target);
  const KernelShape k = shape_of(ast, t);
  Heuristics(t, ast, k, target).run();
}

}  // namespace tuff::kernel
