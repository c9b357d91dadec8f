// The schedule of a kernel chosen without measuring: a register tile for products, vectors along
// contiguous axes, unrolled reductions, and what of the rest goes to the launch grid.
#include <algorithm>
#include <bit>

#include "kernel/opt/shape.h"

namespace tuff::kernel {

using namespace graph;

namespace {

constexpr uint64_t kWorkPerMicrosecond = 4000;  // a CPU core, conservatively: vector code does more
constexpr uint64_t kMinGroupMicroseconds =
    20;  // below it, sharing a launch costs more than it gains
constexpr int64_t kMaxUnrolledLoads =
    512;  // load instances of one body: compile time and code size

class Heuristics {
 public:
  Heuristics(Tiling& t, const UOp& ast, const Target& target)
      : t_(t), k_(shape_of(ast, t)), target_(target) {}

  void run() {
    if (k_.main_reduce && k_.main_is_product && tile_product()) {
      // The tile is chosen; the grid follows.
    } else if (k_.main_reduce) {
      reduction();
    } else if (!target_.has_local) {
      vectorize_outputs(cpu_lanes() * 2);
    } else {
      vectorize_outputs(4);
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
    Tile best{tile.back(), tile.back(), 1, 1, double(std::max(k_.main_loads, 1))};
    for (int column : tile) {
      for (int row : tile) best_pair(best, column, row);
    }
    if (best.columns > 1) t_.apply({OptKind::Upcast, best.column, best.columns});
    if (best.rows > 1) t_.apply({OptKind::Upcast, best.row, best.rows});
    unroll_main(4, true);
    return true;
  }
  void best_pair(Tile& best, int column, int row) const {
    const int64_t most = target_.load_cost >= 4 ? 16 : 8;
    for (int64_t c = 1; c <= std::min(most, left(column)); c++) {
      if (left(column) % c != 0) continue;
      for (int64_t r = 1; r <= (row == column ? 1 : std::min(most, left(row))); r++) {
        if (left(row) % r != 0) continue;
        if (r * c > 1 && k_.outputs / uint64_t(r * c) < wanted_invocations()) continue;
        const double loads = scalar_loads(column, c, row, r) / double(r * c);
        if (loads < best.loads - 1e-9) best = {column, row, c, r, loads};
      }
    }
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
    const int64_t n = divisor_up_to(left(a), most);
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
    if (out >= 0 && !axis(out).shared)
      t_.try_apply({OptKind::Vector, out, divisor_up_to(left(out), cpu_lanes() * 2, true)});
  }
  void partial_sums(int a) {
    if (!axis(a).reduced || !fixed(a) || axis(a).unit_loads == 0) return;
    const int64_t n = divisor_up_to(left(a), cpu_lanes() * 4, true);
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
    if (k_.outputs < wanted_invocations() && shortest >= 64 && share_reductions(shortest)) return;
    if (longest <= 16 || k_.outputs >= wanted_invocations()) vectorize_outputs(4);
    unroll_main(4, false);
  }
  bool share_reductions(int64_t shortest) {
    std::vector<int> axes;  // the longest axis of every reduction
    for (const UOp& r : k_.reduces) {
      int best = -1;
      for (const UOp& x : r->src().subspan(1)) {
        const int a = t_.axis_of(x.get());
        if (best < 0 || left(a) > left(best)) best = a;
      }
      if (best < 0 || !fixed(best)) return false;
      if (std::find(axes.begin(), axes.end(), best) == axes.end()) axes.push_back(best);
    }
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
    shared_width_ = width;
    for (int a = count(); a-- > 0;) {
      const bool free_axis = !axis(a).reduced && !axis(a).shared && fixed(a) && left(a) >= width;
      if (free_axis && t_.try_apply({OptKind::Local, a, width})) break;
    }
    return true;
  }

  // ---- launch ----
  void launch_cpu() {
    const uint64_t micros = k_.work / kWorkPerMicrosecond;
    if (target_.cores < 2 || micros < 2 * kMinGroupMicroseconds) return;
    const int64_t wanted =
        int64_t(std::min<uint64_t>(uint64_t(target_.cores) * 4, micros / kMinGroupMicroseconds));
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
    if (shared_width_ > 0) return group_all();
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
      const int64_t most = std::min<int64_t>({64, target_.max_invocations, target_.max_local[0]});
      int64_t n = divisor_up_to(size, most);
      if (n < std::min<int64_t>(size, 16)) n = std::min(size, most);  // pads: few idle invocations
      if (n > 1) t_.try_apply({OptKind::Local, fast, n});
      fill_workgroup(fast);
    }
    group_all();
  }
  // Where the fast axis alone leaves lanes of a subgroup idle, another axis joins the workgroup.
  void fill_workgroup(int fast) {
    const int64_t wanted = std::min<int64_t>(32, target_.max_invocations);
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
  Heuristics(t, ast, target).run();
}

}  // namespace tuff::kernel
