#include "kernel/opt/gpu_products.h"

#include <algorithm>

#include "kernel/lower/subgroup.h"
#include "kernel/opt/chooser.h"

namespace tuff::kernel {

namespace {

constexpr double kShuffleCost = 0.25;       // with a constant lane, in multiply-adds
constexpr int64_t kMostAccumulators = 256;  // of one invocation; spilled ones stay in the L1 cache

class GpuProduct : Chooser {
 public:
  GpuProduct(Tiling& t, const KernelShape& k, const Target& target) : Chooser(t, k, target) {}

  // The tile that loads least per multiply-add, with enough invocations left to fill the device.
  // Where loads are dear, accumulators may spill: rereading them from the stack is cheaper than
  // loading.
  bool run() {
    const std::vector<int> tile = reused_axes();
    if (tile.empty()) return false;
    if (tile_subgroup(tile)) return true;
    ProductTile best{tile.back(), tile.back(), 1, 1, double(std::max(k_.main_loads, 1))};
    for (int column : tile) {
      for (int row : tile) best_pair(best, column, row);
    }
    if (best.columns > 1) t_.apply({OptKind::Upcast, best.column, best.columns});
    if (best.rows > 1) t_.apply({OptKind::Upcast, best.row, best.rows});
    int64_t steps = 4;
    if (target_.load_cost < kDearLoad) {
      while (steps > 1 && tile_registers(best.columns, best.rows, steps) > registers()) steps /= 2;
    }
    unroll_main(steps, true);
    if (target_.load_cost < kDearLoad) share_tile(best);
    return true;
  }

 private:
  // A workgroup as square as it can be over the tile's two axes: what its invocations read is
  // theirs in common and comes from memory once. As large as leaves every core some.
  void share_tile(const ProductTile& tile) {
    constexpr int64_t kMost = 256, kUnknownCores = 16;
    if (tile.row < 0 || tile.row == tile.column) return;
    const int64_t cores = target_.cores > 1 ? int64_t(target_.cores) : kUnknownCores;
    const int64_t invocations = int64_t(k_.outputs) / (tile.columns * tile.rows);
    const auto fits = [&](int64_t n) {
      return n <= int64_t(target_.max_invocations) && invocations / n >= 2 * cores;
    };
    int64_t most = kMost;
    while (most > 32 && !fits(most)) most /= 2;
    int64_t x = 1, y = 1;
    while (x * y < most) {
      const bool wider = x * tile.columns <= y * tile.rows;
      if (grows(x, tile.column, 0) && (wider || !grows(y, tile.row, 1))) {
        x *= 2;
      } else if (grows(y, tile.row, 1)) {
        y *= 2;
      } else {
        break;
      }
    }
    if (x > 1) t_.try_apply({OptKind::Local, tile.column, x});
    if (y > 1) t_.try_apply({OptKind::Local, tile.row, y});
  }
  bool grows(int64_t n, int a, size_t local_axis) const {
    const int64_t rows = (left(a) + 2 * n - 1) / (2 * n) * (2 * n);
    const bool wastes_little = 8 * rows <= 9 * left(a);
    return left(a) >= 2 * n && wastes_little && 2 * n <= int64_t(target_.max_local[local_axis]);
  }
  void best_pair(ProductTile& best, int column, int row) const {
    const int64_t most = target_.load_cost >= kDearLoad ? 16 : 8;
    for (int64_t c = 1; c <= std::min(most, left(column)); c++) {
      for (int64_t r = 1; r <= (row == column ? 1 : std::min(most, left(row))); r++) {
        if (r * c > 1 && k_.outputs / uint64_t(r * c) < wanted_invocations()) continue;
        if (target_.load_cost < kDearLoad && tile_registers(c, r, 1) > registers()) continue;
        const double loads = scalar_loads(column, c, row, r) / double(r * c) * padding(column, c) *
                             (row == column ? 1 : padding(row, r));
        if (loads < best.loads - 1e-9) best = {column, row, c, r, loads};
      }
    }
  }
  // What lanes cost that do not divide their axis: those past the end, and that no neighbours can
  // be proven. Of an axis that some divide others are out of the question.
  double padding(int a, int64_t lanes, int64_t least = 4, int64_t most = 8) const {
    constexpr double kMask = 1.25, kNever = 1e6;
    const int64_t size = left(a), rest = size % lanes;
    if (rest == 0) return 1;
    for (int64_t n = least; n <= most; n++) {
      if (size % n == 0) return kNever;
    }
    return kMask * double(size + lanes - rest) / double(size);
  }
  int64_t registers() const { return target_.vector_registers; }
  // Accumulators, the operands of some steps, addresses and counters.
  static int64_t tile_registers(int64_t columns, int64_t rows, int64_t steps) {
    constexpr int64_t kOthers = 16;
    return columns * rows + (columns + rows) * steps + kOthers;
  }
  // Where loads are dear and lanes can hand values round, the workgroup is one subgroup along the
  // columns, and the tile has rows by the subgroup: what they read is the same in all lanes, so
  // that each loads a part (pass shared-loads).
  bool tile_subgroup(const std::vector<int>& tile) {
    // Bound buffers are read element by element, with the driver's checks: of a body of this size
    // its compiler makes minutes.
    if (!shares_loads(target_, DType::F32) || !target_.features.device_address) return false;
    const int64_t lanes = target_.subgroup_size;
    const auto [along, steps] = steps_together();
    ProductTile best;
    for (int column : tile) {
      if (left(column) < lanes) continue;
      for (int row : tile) {
        if (row != column && left(row) >= lanes) best_shared(best, column, row, along);
      }
    }
    if (best.column < 0) return false;
    if (best.columns > 1) t_.apply({OptKind::Upcast, best.column, best.columns});
    t_.apply({OptKind::Local, best.column, lanes});
    const int64_t per_lane = best.rows / lanes;
    // Rows that stand side by side in memory belong to one lane, which reads them together.
    const bool together = per_lane > 1 && axis(best.row).product_units != 0;
    if (together) t_.apply({OptKind::Upcast, best.row, per_lane});
    t_.apply({OptKind::Upcast, best.row, lanes});
    if (!together && per_lane > 1) t_.apply({OptKind::Upcast, best.row, per_lane});
    if (steps > 1) t_.apply({OptKind::Unroll, along, steps});
    return true;
  }
  // The axis of the main reduction along which some steps are done at once, and how many: what they
  // read side by side is read together, and accumulators that live in memory are touched once.
  std::pair<int, int64_t> steps_together() const {
    const int contiguous = contiguous_reduction();
    const int a = contiguous >= 0 ? contiguous : k_.main_axes.back();
    if (!fixed(a) || axis(a).gated > 0) return {-1, 1};
    const int64_t n = steps_of(a, 4);
    return {n > 1 ? a : -1, n};
  }
  void best_shared(ProductTile& best, int column, int row, int along) const {
    const int64_t lanes = target_.subgroup_size;
    for (int64_t c = 1; c <= std::min<int64_t>(16, left(column) / lanes); c++) {
      for (int64_t r = lanes; r <= std::min(8 * lanes, left(row)); r += lanes) {
        const double waste = padding(column, c * lanes, lanes) * padding(row, r, lanes);
        if (r * c > kMostAccumulators) continue;
        if (k_.outputs / uint64_t(r * c) < wanted_invocations()) continue;
        const double cost = shared_cost(column, c, row, r, along) / double(r * c) * waste;
        if (cost < best.loads - 1e-9) best = {column, row, c, r, cost};
      }
    }
  }
  bool divides(int64_t n, int a) const { return left(a) % n == 0; }
  // Of one step, in multiply-adds, beyond those of the tile itself.
  double shared_cost(int column, int64_t columns, int row, int64_t rows, int along) const {
    double cost = 0;
    const bool pairs = reads_pairs();
    for (int l = 0; l < std::min(k_.main_loads, 32); l++) {
      const uint32_t bit = uint32_t(1) << l;
      const bool by_column = axis(column).product_reads & bit,
                 by_row = axis(row).product_reads & bit;
      const int64_t lanes = by_row && !by_column ? target_.subgroup_size : 1;
      const int64_t loaded = (by_column ? columns : 1) * (by_row ? rows : 1) / lanes;
      const auto together = [&](int64_t n) {
        return (along >= 0 && divides(n, along) && (axis(along).product_units & bit)) ||
               (columns % n == 0 && divides(n, column) && (axis(column).product_units & bit)) ||
               (loaded % n == 0 && divides(n, row) && (axis(row).product_units & bit));
      };
      cost += double(loaded) * component_cost(together(4) ? 4 : pairs && together(2) ? 2 : 1);
      if (lanes > 1) cost += double(rows) * kShuffleCost;
    }
    return cost;
  }
  // Of a component that is loaded with its neighbours, `n` in all.
  double component_cost(int64_t n) const {
    // Half of what a fetch of one takes is for the texel, however long it is.
    if (target_.texel_load_cost > 0)
      return double(target_.texel_load_cost) * (2.0 / double(n) + 0.5);
    return double(target_.load_cost) / (n > 1 && reads_pairs() ? 2 : 1);
  }
  double scalar_loads(int column, int64_t columns, int row, int64_t rows) const {
    double n = 0;
    for (int l = 0; l < std::min(k_.main_loads, 32); l++) {
      const uint32_t bit = uint32_t(1) << l;
      const double across = axis(column).product_reads & bit ? double(columns) : 1;
      n += across * (row != column && (axis(row).product_reads & bit) ? double(rows) : 1);
    }
    return n;
  }
};

}  // namespace

bool tile_gpu_product(Tiling& t, const KernelShape& k, const Target& target) {
  return GpuProduct(t, k, target).run();
}

}  // namespace tuff::kernel
