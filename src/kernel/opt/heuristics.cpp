// The schedule of a kernel chosen without measuring: a register tile for products, vectors along
// contiguous axes, unrolled reductions, and what of the rest goes to the launch grid.
#include <algorithm>
#include <bit>
#include <optional>

#include "kernel/lower/subgroup.h"
#include "kernel/opt/cooperative.h"
#include "kernel/opt/kept_tiles.h"
#include "kernel/opt/products.h"
#include "kernel/opt/shape.h"

namespace tuff::kernel {

using namespace graph;

namespace {

constexpr uint32_t kDearLoad = 4;  // multiply-adds: then accumulators may spill instead
constexpr int64_t kMaxUnrolledLoads =
    512;                               // load instances of one body: compile time and code size
constexpr double kShuffleCost = 0.25;  // with a constant lane, in multiply-adds
// Vectors of partial sums on a CPU: additions take four cycles, and begin twice in one.
constexpr int64_t kRowVectors = 4;
constexpr int64_t kTransposedTogether = 64;  // elements that one launch group stores side by side
constexpr int64_t kMostAccumulators = 256;   // of one invocation; spilled ones stay in the L1 cache

class Heuristics {
 public:
  Heuristics(Tiling& t, const UOp& ast, const Target& target)
      : t_(t), k_(shape_of(ast, t)), target_(target) {}

  void run() {
    if (tile_matrices(t_, target_)) return group_all();
    if (!target_.has_local && tile_kept_rows(t_, k_, target_)) return;
    if (k_.main_reduce && k_.main_is_product && !target_.has_local &&
        tile_packed_product(t_, k_, target_)) {
      return;  // the launch is part of the plan
    }
    if (k_.main_reduce && k_.main_is_product && tile_product()) {
      // The tile is chosen; the grid follows.
    } else if (k_.main_reduce) {
      reduction();
    } else if (!target_.has_local) {
      if (transpose()) return;  // the launch is part of the plan
      vectorize_outputs(cpu_lanes() * 2);
    } else {
      vectorize_outputs(outputs_together(8, wanted_invocations()));
    }
    if (target_.has_local) {
      launch_gpu();
    } else {
      launch_cpu();
    }
  }

 private:
  const AxisShape& axis(int a) const { return k_.axes[size_t(a)]; }
  int64_t left(int a) const { return t_.axes()[size_t(a)].main_size(); }
  bool fixed(int a) const { return !axis(a).symbolic && t_.axes()[size_t(a)].main_is_const(); }
  int64_t cpu_lanes() const { return std::max<int64_t>(target_.vector_bytes / 4, 4); }
  int count() const { return int(k_.axes.size()); }
  bool loop_left(int a) const {
    return t_.axes()[size_t(a)].parts[size_t(t_.axes()[size_t(a)].main)].kind == AxisKind::Loop;
  }

  // How well an axis serves as vector lanes: contiguous accesses for it, gathers against.
  int vector_score(int a) const {
    const AxisShape& x = axis(a);
    return 2 * x.unit_loads + 2 * x.unit_stores - 2 * x.strided;
  }
  // The output axis for vector lanes; -1 if none gains. Axes outside the reductions count only
  // where nothing is reduced.
  int best_vector_axis(int64_t least) const {
    int best = -1;
    for (int a = 0; a < count(); a++) {
      const bool usable = !axis(a).reduced && fixed(a) && divisor_up_to(left(a), 64, true) >= least;
      if (!usable || vector_score(a) <= 0) continue;
      if (best < 0 || vector_score(a) >= vector_score(best)) best = a;
    }
    return best;
  }

  void vectorize_outputs(int64_t lanes) {
    const int a = best_vector_axis(2);
    if (a < 0) return;
    const int64_t n = divisor_up_to(left(a), lanes, true);
    if (n > 1) t_.try_apply({OptKind::Vector, a, n});
  }

  // What is stored along one axis and loaded along another goes through square tiles: vectors are
  // loaded along the one and turned in registers. A launch group takes a few tiles beside each
  // other and walks along the other axis, so that the pages it reads stay the same and the lines it
  // writes are whole. Where these go past the caches it reads each row of tiles from end to end.
  bool transpose() {
    int stored = -1, loaded = -1;
    for (int a = 0; a < count(); a++) {
      if (axis(a).gated || !fixed(a)) continue;
      if (axis(a).unit_stores > 0 && axis(a).strided > 0) stored = a;
      if (axis(a).unit_stores == 0 && axis(a).unit_loads > 0) loaded = a;
    }
    if (stored < 0 || loaded < 0) return false;
    const int64_t n = std::min(divisor_up_to(left(stored), cpu_lanes(), true),
                               divisor_up_to(left(loaded), cpu_lanes(), true));
    if (n < 4) return false;
    t_.apply({OptKind::Vector, stored, n});
    t_.apply({OptKind::Upcast, loaded, n});
    const bool past_caches =
        target_.features.streaming_stores && target_.exceeds_caches(k_.stored_bytes);
    if ((stored < loaded) != past_caches) t_.try_apply({OptKind::Swap, stored, loaded});
    const int64_t tiles = divisor_up_to(left(stored), kTransposedTogether / n);
    if (worthwhile_groups(k_, target_) > 1 && left(stored) > tiles)
      t_.try_apply({OptKind::Group, stored, left(stored) / tiles});
    return true;
  }

  bool reads_pairs() const {
    return target_.component_bytes >= 8 && target_.features.device_address && target_.features.i64;
  }
  // Neighbouring outputs of one invocation: a vector; where the lanes of a subgroup are taken one
  // by one, more, as long as `least` invocations are left: what a workgroup costs to start, and to
  // walk memory with steps, is the same for more.
  int64_t outputs_together(int64_t most, uint64_t least) const {
    int64_t n = reads_pairs() ? most : 4;
    while (n > 4 && k_.outputs / uint64_t(n) < least) n /= 2;
    return n;
  }

  // ---- sums of products ----
  bool tile_product() {
    std::vector<int> tile;  // output axes along which some operand is reused
    for (int a = 0; a < count(); a++) {
      if (axis(a).shared && fixed(a) && axis(a).broadcast > 0 && axis(a).broadcast < k_.main_loads)
        tile.push_back(a);
    }
    if (tile.empty()) return false;
    return target_.has_local ? tile_gpu(tile) : tile_cpu(tile);
  }

  // A register tile: lanes along two output axes (row -1: along one).
  struct Tile {
    int column = -1, row = -1;
    int64_t columns = 1, rows = 1;
    double loads = 1e30;  // per multiply-add
  };

  // Rows times vector registers, so that accumulators, one row of vectors and a broadcast fit.
  bool tile_cpu(const std::vector<int>& tile) {
    Tile best;
    for (int column : tile) {
      for (int64_t width = cpu_lanes() / 2; width <= cpu_lanes() * 4; width *= 2) {
        if (left(column) % width == 0) widen_rows(best, tile, column, width);
      }
    }
    const bool gathers = best.column < 0 || !axis(best.column).product_units;
    if (gathers && tile_dot(tile)) return true;
    if (best.column < 0) return false;
    t_.apply({OptKind::Vector, best.column, best.columns});
    if (best.rows > 1) t_.apply({OptKind::Upcast, best.row, best.rows});
    order_columns_outside(best.column, best.row);
    return true;
  }
  void widen_rows(Tile& best, const std::vector<int>& tile, int column, int64_t width) const {
    const int64_t registers = std::max<int64_t>(target_.vector_registers, 8);
    const int64_t vectors = std::max<int64_t>(width / cpu_lanes(), 1);
    for (int row : tile) {
      const int64_t most = row == column ? 1 : std::min<int64_t>(left(row), 16);
      for (int64_t rows = 1; rows <= most; rows++) {
        if (left(row) % rows != 0 || rows * vectors + vectors + 1 > registers) continue;
        const double loads = vector_loads(column, width, row, rows) / double(rows * width);
        if (loads < best.loads) best = {column, row, width, rows, loads};
      }
    }
  }
  // Load instructions of one step of the main reduction: vectors where an operand is contiguous
  // along the columns, lane by lane (and an insertion each) where it is not, one where it does not
  // move.
  double vector_loads(int column, int64_t width, int row, int64_t rows) const {
    double n = 0;
    for (int l = 0; l < std::min(k_.main_loads, 32); l++) {
      const uint32_t bit = uint32_t(1) << l;
      const double vectors = double(std::max<int64_t>(width / cpu_lanes(), 1));
      const double across = !(axis(column).product_reads & bit) ? 1
                            : axis(column).product_units & bit  ? vectors
                                                                : 2.0 * double(width);
      n += across * (row != column && (axis(row).product_reads & bit) ? double(rows) : 1);
    }
    return n;
  }
  // One panel of columns is used for all rows before the next: it stays in the cache.
  void order_columns_outside(int column, int row) {
    if (row >= 0 && row < column) t_.try_apply({OptKind::Swap, row, column});
  }

  // Both operands contiguous along the reduction (x times a transposed matrix): partial sums in
  // lanes along the reduction, a small tile of outputs to reuse what was loaded.
  bool tile_dot(const std::vector<int>& tile) {
    const int r = contiguous_reduction();
    if (r < 0) return false;
    const int64_t n = divisor_up_to(left(r), cpu_lanes(), true);
    if (n < 4) return false;
    t_.apply({OptKind::Unroll, r, n});
    const int64_t vectors = n / std::min(n, cpu_lanes());
    int64_t budget =
        std::max<int64_t>(target_.vector_registers / 2 / std::max<int64_t>(vectors, 1), 1);
    for (size_t i = tile.size(); i-- > 0 && budget > 1;) {
      const int64_t m =
          divisor_up_to(left(tile[i]), std::min<int64_t>(budget, i + 1 == tile.size() ? 4 : 2));
      if (m > 1 && t_.try_apply({OptKind::Upcast, tile[i], m})) budget /= m;
    }
    return true;
  }
  int contiguous_reduction() const {
    int best = -1;
    for (int a : k_.main_axes) {
      const bool contiguous = axis(a).unit_loads > 0 && axis(a).unit_loads >= axis(a).strided;
      if (contiguous && fixed(a) && (best < 0 || left(a) > left(best))) best = a;
    }
    return best;
  }

  // The tile that loads least per multiply-add, with enough invocations left to fill the device.
  // Where loads are dear, accumulators may spill: rereading them from the stack is cheaper than
  // loading.
  bool tile_gpu(const std::vector<int>& tile) {
    if (tile_subgroup(tile)) return true;
    Tile best{tile.back(), tile.back(), 1, 1, double(std::max(k_.main_loads, 1))};
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
  // A workgroup as square as it can be over the tile's two axes: what its invocations read is
  // theirs in common and comes from memory once. As large as leaves every core some.
  void share_tile(const Tile& tile) {
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
  void best_pair(Tile& best, int column, int row) const {
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
    Tile best;
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
  // A power of two that divides the axis; or the most, where what is past the end is little.
  int64_t steps_of(int a, int64_t most) const {
    constexpr int64_t kLittle = 16;
    const int64_t n = divisor_up_to(left(a), most, true);
    return n < most && left(a) >= kLittle * most ? most : n;
  }
  void best_shared(Tile& best, int column, int row, int along) const {
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
  // Enough to fill every lane of every unit a few times; where the units are unknown, a mid-size
  // GPU.
  uint64_t wanted_invocations() const {
    return target_.cores > 1 ? uint64_t(target_.cores) * target_.subgroup_size * 4 : 4096;
  }
  void unroll_main(int64_t most, bool contiguous_first) {
    int a = contiguous_first ? contiguous_reduction() : -1;
    if (a < 0 && !k_.main_axes.empty()) a = k_.main_axes.back();
    if (a < 0 || !fixed(a) || axis(a).gated > 0) return;
    const int64_t instances = t_.lane_count() * std::max(k_.main_loads, 1);
    while (most > 1 && instances * most > kMaxUnrolledLoads) most /= 2;
    const int64_t divisor = divisor_up_to(left(a), most);
    const bool masks = k_.main_is_product && divisor == 1 && target_.load_cost >= kDearLoad;
    const int64_t n = masks ? steps_of(a, most) : divisor;
    if (n > 1) t_.try_apply({OptKind::Unroll, a, n});
  }

  // ---- other reductions ----
  void reduction() {
    if (target_.has_local) {
      reduction_gpu();
      return;
    }
    // Lanes across outputs where loads are contiguous there, else partial sums along the reduction.
    const int out = best_vector_axis(4);
    if (out >= 0 && axis(out).shared && axis(out).unit_loads > 0) {
      t_.try_apply({OptKind::Vector, out, divisor_up_to(left(out), cpu_lanes() * 2, true)});
      return;
    }
    for (int a = 0; a < count(); a++) partial_sums(a);
    // What is stored for each element of a row, in vectors as wide as its partial sums: then all
    // of them are vectors.
    if (out >= 0 && !axis(out).shared)
      t_.try_apply(
          {OptKind::Vector, out, divisor_up_to(left(out), kRowVectors * cpu_lanes(), true)});
  }
  void partial_sums(int a) {
    if (!axis(a).reduced || !fixed(a) || axis(a).unit_loads == 0) return;
    const int64_t n = divisor_up_to(left(a), kRowVectors * cpu_lanes(), true);
    if (n > 1) t_.try_apply({OptKind::Unroll, a, n});
  }

  // Few outputs and long reductions: the invocations of a workgroup share each reduction.
  void reduction_gpu() {
    int64_t shortest = INT64_MAX, longest = 0;
    for (const UOp& r : k_.reduces) {
      int64_t n = 1;
      for (const UOp& x : r->src().subspan(1)) n *= x->src(0)->max;
      shortest = std::min(shortest, n);
      longest = std::max(longest, n);
    }
    if (by_subgroups(shortest)) return;
    if (k_.outputs < wanted_invocations() && shortest >= 64 && share_reductions(shortest)) return;
    if (longest <= 16 || k_.outputs >= wanted_invocations())
      vectorize_outputs(outputs_together(16, uint64_t(target_.cores) * target_.subgroup_size));
    unroll_main(4, false);
  }
  // A subgroup for each reduction that walks memory step by step, several neighbours to a lane.
  bool by_subgroups(int64_t shortest) {
    const int64_t lanes = target_.subgroup_size;
    const bool usable = folds_by_shuffles(target_, lanes, DType::F32) &&
                        shares_loads(target_, DType::F32) && shortest >= 4 * lanes;
    const std::optional<std::vector<int>> axes = usable ? longest_axes() : std::nullopt;
    if (!axes) return false;
    for (int a : *axes) {
      if (axis(a).unit_loads == 0 || axis(a).strided > 0 || left(a) < 4 * lanes) return false;
    }
    const Tiling before = t_;
    for (int a : *axes) {
      const int64_t together = divisor_up_to(left(a), 4, true);
      if (together > 1) t_.try_apply({OptKind::Unroll, a, together});
      if (t_.try_apply({OptKind::GroupReduce, a, lanes})) {
        unroll_further(a);
        continue;
      }
      t_ = before;
      return false;
    }
    share_outputs(lanes);
    return true;
  }
  // Where a load is a fetch, a step of a loop costs as much: several are done at once.
  void unroll_further(int a) {
    constexpr int64_t kMostFetches = 8;
    if (target_.texel_load_cost == 0) return;
    const int64_t n = divisor_up_to(left(a), kMostFetches / std::max(k_.main_loads, 1), true);
    if (n > 1) t_.try_apply({OptKind::Unroll, a, n});
  }
  // The longest axis of every reduction; none if one of them has no axis of constant size.
  std::optional<std::vector<int>> longest_axes() const {
    std::vector<int> axes;
    for (const UOp& r : k_.reduces) {
      int best = -1;
      for (const UOp& x : r->src().subspan(1)) {
        const int a = t_.axis_of(x.get());
        if (best < 0 || left(a) > left(best)) best = a;
      }
      if (best < 0 || !fixed(best)) return {};
      if (std::find(axes.begin(), axes.end(), best) == axes.end()) axes.push_back(best);
    }
    return axes;
  }
  bool share_reductions(int64_t shortest) {
    const std::optional<std::vector<int>> found = longest_axes();
    if (!found) return false;
    const std::vector<int>& axes = *found;
    int64_t width = std::min<int64_t>({256, target_.max_invocations, target_.max_local[0]});
    // 8 bytes hold a partial result of any dtype.
    width = std::min(width, int64_t(target_.shared_bytes / (8 * k_.reduces.size())));
    for (int a : axes) width = std::min(width, left(a));
    width = int64_t(std::bit_floor(uint64_t(std::min(width, shortest / 2))));
    if (width < 8) return false;
    const Tiling before = t_;
    for (int a : axes) {
      if (t_.try_apply({OptKind::GroupReduce, a, width})) continue;
      t_ = before;
      return false;
    }
    share_outputs(width);
    return true;
  }
  // What is stored for each element of a shared reduction is shared among the same invocations.
  void share_outputs(int64_t width) {
    shared_width_ = width;
    for (int a = count(); a-- > 0;) {
      const bool free_axis = !axis(a).reduced && !axis(a).shared && fixed(a) && left(a) >= width;
      if (!free_axis) continue;
      const int64_t together =
          shares_loads(target_, DType::F32) && left(a) % (4 * width) == 0 && vector_score(a) > 0
              ? 4
              : 1;
      if (together > 1) t_.try_apply({OptKind::Vector, a, together});
      if (t_.try_apply({OptKind::Local, a, width})) break;
    }
  }

  // ---- launch ----
  void launch_cpu() {
    const int64_t wanted = worthwhile_groups(k_, target_);
    if (wanted < 2) return;
    int best = -1;
    int64_t groups = 1;
    for (int a = 0; a < count(); a++) {
      if (!axis(a).shared || !fixed(a) || !loop_left(a)) continue;
      const int64_t n = divisor_up_to(left(a), wanted);
      if (n > groups) groups = n, best = a;
    }
    if (best >= 0) t_.try_apply({OptKind::Group, best, groups});
  }

  // Every output axis that reductions depend on goes to the grid; the one whose neighbours touch
  // neighbouring memory gives the workgroup.
  void launch_gpu() {
    if (shared_width_ > 0 || t_.local_size() > 1) return group_all();
    int fast = -1;
    for (int a = 0; a < count(); a++) {
      if (!axis(a).shared || !fixed(a) || left(a) < 2) continue;
      const auto weight = [&](int x) {
        return std::tuple(axis(x).unit_stores + axis(x).unit_loads, std::min<int64_t>(left(x), 64),
                          x);
      };
      if (fast < 0 || weight(a) >= weight(fast)) fast = a;
    }
    if (fast >= 0) {
      const int64_t size = left(fast);
      const int64_t most =
          std::min<int64_t>({widest_group(), target_.max_invocations, target_.max_local[0]});
      int64_t n = divisor_up_to(size, most);
      if (n < std::min<int64_t>(size, 16)) n = std::min(size, most);  // pads: few idle invocations
      if (n > 1) t_.try_apply({OptKind::Local, fast, n});
      fill_workgroup(fast);
    }
    group_all();
  }
  // Where a workgroup is the work of one core, so many invocations that every core has some.
  int64_t widest_group() const {
    int64_t most = 64, lanes = 1;
    if (!shares_loads(target_, DType::F32)) return most;
    for (const Axis& a : t_.axes()) lanes *= a.reduced ? 1 : a.lanes();
    const int64_t invocations = int64_t(k_.outputs) / lanes;
    while (most > target_.subgroup_size && invocations / most < 4 * int64_t(target_.cores))
      most /= 2;
    return most;
  }
  // Where the fast axis alone leaves lanes of a subgroup idle, another axis joins the workgroup.
  void fill_workgroup(int fast) {
    const int64_t wanted = std::min<int64_t>({32, widest_group(), target_.max_invocations});
    int widest = -1;
    for (int a = 0; a < count(); a++) {
      if (a == fast || !axis(a).shared || !fixed(a) || !loop_left(a) || left(a) < 2) continue;
      if (widest < 0 || left(a) >= left(widest)) widest = a;
    }
    if (widest < 0 || t_.local_size() >= wanted) return;
    const int64_t n = divisor_up_to(left(widest), wanted / t_.local_size());
    if (n > 1) t_.try_apply({OptKind::Local, widest, n});
  }
  void group_all() {
    for (int a = 0; a < count(); a++) {
      if (!axis(a).shared || !loop_left(a) || left(a) < 2) continue;
      // What the grid has no room for stays a loop.
      if (left(a) <= t_.groups_left() || !fixed(a)) {
        t_.try_apply({OptKind::Group, a, 0});
      } else {
        t_.try_apply({OptKind::Group, a, t_.groups_left()});
      }
    }
  }

  Tiling& t_;
  KernelShape k_;
  const Target& target_;
  int64_t shared_width_ = 0;
};

}  // namespace

void apply_heuristics(Tiling& t, const UOp& ast, const Target& target) {
  if (t.nests() > 1) return spread_nests(t, ast, target);
  Heuristics(t, ast, target).run();
}

}  // namespace tuff::kernel
