#include "kernel/opt/schedules.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "ir/walk.h"

namespace tuff::kernel {

namespace {

class GpuProduct : Chooser {
 public:
  GpuProduct(Tiling& t, const KernelShape& k, const Target& target) : Chooser(t, k, target) {}

  // The tile that loads least per multiply-add, with enough invocations left to fill the device.
  GpuTile run() {
    const std::vector<int> tile = reused_axes();
    if (tile.empty()) return {};
    ProductTile best = best_tile(tile);
    if (const GpuTile staged = staged_tile(best); staged.chosen) return staged;
    if (split_sum(tile, best)) return {.chosen = true};
    if (best.columns * best.rows == 1 && k_.outputs < cost::wanted_invocations(target_)) return {};
    if (best.columns > 1) apply(t_, {OptKind::Upcast, best.column, best.columns});
    if (best.rows > 1) apply(t_, {OptKind::Upcast, best.row, best.rows});
    unroll_steps(best);
    share_tile(best, false);
    return {.chosen = true};
  }

 private:
  ProductTile best_tile(const std::vector<int>& tile) const {
    ProductTile best{tile.back(), tile.back(), 1, 1, double(std::max(k_.main_loads, 1))};
    for (int column : tile) {
      for (int row : tile) best_pair(best, column, row);
    }
    return best;
  }
  int longest_reduction() const {
    int best = -1;
    for (int a : k_.main_axes)
      if (splits(a) && (best < 0 || left(a) > left(best))) best = a;
    return best;
  }
  void unroll_steps(const ProductTile& tile) {
    int64_t steps = 4;
    while (steps > 1 && tile_registers(tile.columns, tile.rows, steps) > registers()) steps /= 2;
    unroll_main(steps, true);
  }
  // Split-K within the workgroup: outputs so few that their tiles would be small get larger ones,
  // whose sums several invocations share. False: nothing was done.
  bool split_sum(const std::vector<int>& tile, ProductTile best) {
    const int shared = longest_reduction();
    while (shares_more(best, shared)) {
      shares_ *= 2;
      best = best_tile(tile);
    }
    const Tiling before = t_;
    if (shares_ > 1 && best.columns > 1 && best.rows > 1 && best.row != best.column) {
      apply(t_, {OptKind::Upcast, best.column, best.columns});
      apply(t_, {OptKind::Upcast, best.row, best.rows});
      unroll_steps(best);
      if (try_apply(t_, {OptKind::GroupReduce, shared, shares_})) share_tile(best, false);
      if (local_size(t_) >= int64_t(target_.subgroup_size)) return true;
    }
    t_ = before;
    shares_ = 1;
    return false;
  }
  bool shares_more(const ProductTile& tile, int axis) const {
    constexpr int64_t kMostShares = 16, kLeastSteps = 32, kEnough = 16;
    return axis >= 0 && tile.columns * tile.rows < kEnough &&
           shares_ < kMostShares && left(axis) >= 2 * shares_ * kLeastSteps;
  }

  // What of the main reduction a copy is of: its innermost axes whole, and a part of the one
  // before.
  struct Slab {
    int divided = -1;
    int64_t unroll = 1, split = 1;  // of the divided axis
    int loops = 0;
    int64_t steps = 1;
  };

  // Tiles in workgroup memory, where that is faster than the caches and both factors have some. The
  // longer the slab the fewer barriers; what is loaded ahead takes registers.
  GpuTile staged_tile(const ProductTile& tile) {
    if (!target_.has_fast_shared || t_.factors.size() != 2) return {};
    if (tile.row < 0 || tile.row == tile.column) return {};
    const Tiling before = t_;
    for (const bool ahead : {true, false}) {
      for (const int64_t steps : {16, 8}) {
        const std::optional<Slab> slab = slab_of(steps, unrolled_steps(tile));
        if (!slab) continue;
        divide(*slab);
        share_tile(tile, true);
        const GpuTile staged{.chosen = true, .copied = {0, 1}, .loops_inside = slab->loops,
                             .ahead = ahead, .row = std::min(tile.row, tile.column)};
        if (fits(tile, *slab, staged)) return staged;
        t_ = before;
      }
    }
    return {};
  }
  bool fits(const ProductTile& tile, const Slab& slab, const GpuTile& staged) const {
    Tiling t = t_;
    stage_tile(t, staged);
    int64_t bytes = 0, copied = 0;
    int copies = 0;
    bool ahead = false;
    for (const Opt& o : t.applied) {
      ahead = ahead || o.kind == OptKind::Ahead;
      if (o.kind != OptKind::Stage) continue;
      const int64_t elements = *staged_count(t, o.axis, o.amount);
      copies++;
      bytes += 4 * elements;
      copied += ceil_div(elements, local_size(t));
    }
    const int64_t held =
        tile_registers(tile.columns, tile.rows, slab.unroll) + (ahead ? copied : 0);
    // Occupancy of two workgroups to a core: one multiplies while the other waits at its barrier.
    // In less than a subgroup each invocation would copy much.
    return local_size(t) >= int64_t(target_.subgroup_size) && copies == 2 &&
           ahead == staged.ahead && held <= registers() &&
           2 * bytes <= int64_t(target_.shared_bytes);
  }
  void divide(const Slab& slab) {
    if (slab.unroll > 1) apply(t_, {OptKind::Unroll, slab.divided, slab.unroll});
    if (slab.split > 1) apply(t_, {OptKind::Split, slab.divided, slab.split});
  }
  // Small tiles take several steps at once: a step of the loop costs as much as some multiply-adds.
  static int64_t unrolled_steps(const ProductTile& tile) {
    constexpr int64_t kEnough = 16;  // multiply-adds
    const int64_t lanes = tile.columns * tile.rows;
    return lanes >= kEnough ? 1 : lanes >= kEnough / 2 ? 2 : 4;
  }

  // About so many steps; none where the reduction has no slabs.
  std::optional<Slab> slab_of(int64_t wanted, int64_t unroll) const {
    constexpr int64_t kLeast = 4;
    Slab s;
    for (size_t i = k_.main_axes.size(); i-- > 0;) {
      const int a = k_.main_axes[i];
      if (!t_.axes[size_t(a)].main_is_const()) return {};
      if (left(a) * s.steps > wanted) {
        if (2 * s.steps <= wanted) divide_axis(s, a, wanted / s.steps, unroll);
        break;
      }
      s.steps *= left(a);
      s.loops += left(a) > 1;
    }
    return s.steps >= kLeast ? std::optional(s) : std::nullopt;
  }
  // By a divisor, else with steps past the end of what is long: they are zeros in the copies.
  void divide_axis(Slab& s, int a, int64_t wanted, int64_t unroll) const {
    constexpr int64_t kLong = 32;
    int64_t best = 1;
    bool may_pad = false;
    for (const int64_t n : {unroll, int64_t(1), int64_t(2), int64_t(4), int64_t(8)}) {
      const bool pads = left(a) % n != 0, fits = may_pad && 2 * best <= wanted && left(a) >= kLong;
      may_pad = may_pad || n == 1;
      if (n > wanted || (pads && !fits)) continue;
      const int64_t split = divisor_up_to(ceil_div(left(a), n), wanted / n);
      if (n * split <= best) continue;
      best = n * split;
      s.divided = a, s.unroll = n, s.split = split;
    }
    s.steps *= best;
    s.loops += s.split > 1;
  }

  // One side of a workgroup: invocations along the tile's axis, and, where that is short, along
  // others that are read alike, as images and rows of pixels in a convolution.
  struct Side {
    struct Part {
      int axis;
      int64_t lanes, invocations = 1;
    };
    std::vector<Part> parts;
    int64_t invocations() const {
      int64_t n = 1;
      for (const Part& p : parts) n *= p.invocations;
      return n;
    }
  };
  Side side_of(int a, int64_t lanes, int across) const {
    Side s{{{a, lanes}}};
    std::vector<int> others;
    for (const int b : reused_axes()) {
      if (b != a && b != across && axis(b).product_reads == axis(a).product_reads)
        others.push_back(b);
    }
    // Neighbours in memory belong to neighbouring invocations.
    std::ranges::stable_sort(others, std::greater(),
                             [&](int b) { return std::popcount(axis(b).product_units); });
    for (const int b : others) s.parts.push_back({b, 1});
    return s;
  }

  // A workgroup as square as it can be over the tile's two axes: what its invocations read is
  // theirs in common and comes from memory once. As large as leaves every core some.
  void share_tile(const ProductTile& tile, bool staged) {
    if (tile.row < 0 || tile.row == tile.column) return;
    const auto [x, y] = workgroup_of(tile, staged);
    for (const Side& side : {x, y}) {
      for (const Side::Part& p : side.parts) apply_tile(p.axis, p.lanes, p.invocations, staged);
    }
  }
  // In a staged tile neighbouring invocations take vectors beside each other: all banks of
  // workgroup memory at once (no bank conflicts), and whole lines of the output (coalesced).
  void apply_tile(int a, int64_t lanes, int64_t invocations, bool staged) {
    constexpr int64_t kVector = 4;
    const int64_t inner = lanes % kVector == 0 ? kVector : lanes;
    if (staged && inner > 1) apply(t_, {OptKind::Upcast, a, inner});
    if (invocations > 1) try_apply(t_, {OptKind::Local, a, invocations});
    if (staged && lanes > inner) apply(t_, {OptKind::Upcast, a, lanes / inner});
  }
  std::pair<Side, Side> workgroup_of(const ProductTile& tile, bool staged) const {
    constexpr int64_t kMost = 256;
    const int64_t cores = cost::gpu_cores(target_);
    const int64_t invocations = shares_ * int64_t(k_.outputs) / (tile.columns * tile.rows);
    // Larger tiles read less: cores may have less than two of them, if few are idle in the end.
    const auto keeps_busy = [&](int64_t groups) {
      constexpr int64_t kBusyPercent = 90;
      const int64_t rounds = ceil_div(groups, cores);
      return 2 * groups >= 3 * cores && 100 * groups >= kBusyPercent * rounds * cores;
    };
    const auto fits = [&](int64_t n) {
      const int64_t groups = invocations / n;
      return n <= int64_t(target_.max_invocations) &&
             (groups >= 2 * cores || (staged && keeps_busy(groups)));
    };
    int64_t most = kMost;
    while (most > 32 && !fits(most)) most /= 2;
    Side x = side_of(tile.column, tile.columns, tile.row);
    Side y = side_of(tile.row, tile.rows, tile.column);
    while (shares_ * x.invocations() * y.invocations() < most) {
      const bool wider = x.invocations() * tile.columns <= y.invocations() * tile.rows;
      if (!grow(wider ? x : y, wider ? 0 : 1, staged) &&
          !grow(wider ? y : x, wider ? 1 : 0, staged))
        break;
    }
    return {x, y};
  }
  // Twice the invocations, along the first axis that has so many tiles.
  bool grow(Side& side, size_t local_axis, bool staged) const {
    for (Side::Part& p : side.parts) {
      // The lanes of a staged tile have not been split off yet.
      const int64_t tiles = staged ? ceil_div(left(p.axis), p.lanes) : left(p.axis);
      if (!grows(p.invocations, tiles, local_axis)) continue;
      p.invocations *= 2;
      return true;
    }
    return false;
  }
  bool grows(int64_t n, int64_t tiles, size_t local_axis) const {
    const int64_t rows = ceil_div(tiles, 2 * n) * (2 * n);
    const bool wastes_little = 8 * rows <= 9 * tiles;
    return tiles >= 2 * n && wastes_little && 2 * n <= int64_t(target_.max_local[local_axis]);
  }
  void best_pair(ProductTile& best, int column, int row) const {
    constexpr int64_t kMost = 8;
    for (int64_t c = 1; c <= std::min(kMost, left(column)); c++) {
      for (int64_t r = 1; r <= (row == column ? 1 : std::min(kMost, left(row))); r++) {
        const uint64_t invocations = uint64_t(shares_) * k_.outputs / uint64_t(r * c);
        if (r * c > 1 && invocations < cost::wanted_invocations(target_)) continue;
        if (tile_registers(c, r, 1) > registers()) continue;
        const double loads = scalar_loads(column, c, row, r) / double(r * c) * padding(column, c) *
                             (row == column ? 1 : padding(row, r));
        if (loads < best.loads - 1e-9) best = {column, row, c, r, loads};
      }
    }
  }
  int64_t registers() const { return target_.vector_registers; }
  // Accumulators, the operands of some steps, addresses and counters.
  static int64_t tile_registers(int64_t columns, int64_t rows, int64_t steps) {
    return columns * rows + (columns + rows) * steps + cost::kOtherRegisters;
  }
  double scalar_loads(int column, int64_t columns, int row, int64_t rows) const {
    double n = 0;
    // What a factor is made of, as packed weights, is loaded and computed once for the tile.
    if (t_.factors.size() == 2) {
      for (const Tiling::Operand& f : t_.factors) {
        const double across = f.walks(column) ? double(columns) : 1;
        n += across * (row != column && f.walks(row) ? double(rows) : 1);
      }
      return n;
    }
    for (int l = 0; l < std::min(k_.main_loads, 32); l++) {
      const uint32_t bit = uint32_t(1) << l;
      const double across = axis(column).product_reads & bit ? double(columns) : 1;
      n += across * (row != column && (axis(row).product_reads & bit) ? double(rows) : 1);
    }
    return n;
  }

  int64_t shares_ = 1;  // of each sum
};

}  // namespace

GpuTile tile_gpu_product(Tiling& t, const KernelShape& k, const Target& target) {
  return GpuProduct(t, k, target).run();
}

void stage_tile(Tiling& t, const GpuTile& tile) {
  for (const int o : tile.copied) {
    const int64_t around = loops_of(t, operands(t)[size_t(o)]) - tile.loops_inside;
    try_apply(t, {OptKind::Stage, o, around});
  }
  if (tile.ahead && !tile.copied.empty()) load_ahead(t, tile.copied);
}

void load_ahead(Tiling& t, std::span<const int> operands) {
  for (const int64_t places : {2, 1}) {
    Tiling trial = t;
    const auto loads = [&](int o) { return try_apply(trial, {OptKind::Ahead, o, places}); };
    if (!std::ranges::all_of(operands, loads)) continue;
    t = std::move(trial);
    return;
  }
}

}  // namespace tuff::kernel
