#include "kernel/opt/schedules.h"

#include <algorithm>

#include "ir/walk.h"
#include "kernel/analysis/gathered_dot.h"

namespace tuff::kernel {

using namespace ir;

namespace {

constexpr double kShortSum = 64;  // products; a longer one needs several sums in flight

class VectorProduct : Chooser {
 public:
  VectorProduct(Tiling& t, const KernelShape& k, const Target& target) : Chooser(t, k, target) {}

  // Rows times vector registers, so that accumulators, one row of vectors and a broadcast fit.
  bool run() {
    const std::vector<int> tile = reused_axes();
    if (tile.empty()) return false;
    ProductTile best;
    for (int column : tile) {
      for (int64_t width = cpu_lanes() / 2; width <= cpu_lanes() * 4; width *= 2) {
        if (left(column) % width == 0) widen_rows(best, tile, column, width);
      }
    }
    const bool gathers = best.column < 0 ||
                         !(axis(best.column).product_units | axis(best.column).product_near);
    if (gathers && tile_dot(tile)) return true;
    // What gathers anyway has lanes where its results are neighbours, as any other reduction.
    if (best.column < 0 || (gathers && is_short_sum())) return false;
    apply(t_, {OptKind::Vector, best.column, best.columns});
    if (best.rows > 1) apply(t_, {OptKind::Upcast, best.row, best.rows});
    if (best.rows > 1 || !is_short_sum()) order_columns_outside(best.column, best.row);
    return true;
  }

 private:
  void widen_rows(ProductTile& best, const std::vector<int>& tile, int column,
                  int64_t width) const {
    const int64_t vectors = std::max<int64_t>(width / cpu_lanes(), 1);
    for (int row : tile) {
      const bool pays = row != column && (saves_vectors(column, row) || !is_short_sum());
      const int64_t most = pays ? std::min<int64_t>(left(row), 16) : 1;
      for (int64_t rows = 1; rows <= most; rows++) {
        if (left(row) % rows != 0 || rows * vectors + vectors + 1 > cost::cpu::registers(target_))
          continue;
        const double loads = vector_loads(column, width, row, rows) / double(rows * width);
        if (loads < best.loads) best = {column, row, width, rows, loads};
      }
    }
  }
  // Rows of a short sum that save nothing but broadcasts, as images do for a window's weights, cost
  // more than they save: each is memory of its own, in the same few sets of the caches.
  bool saves_vectors(int column, int row) const {
    return (axis(column).product_reads & ~axis(row).product_reads) != 0;
  }
  bool is_short_sum() const {
    double steps = 1;
    for (int a = 0; a < count(); a++) steps *= axis(a).reduced ? double(left(a)) : 1;
    return steps <= kShortSum;
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
                            : axis(column).product_near & bit   ? 4 * vectors
                                                                : 2.0 * double(width);
      n += across * (row != column && (axis(row).product_reads & bit) ? double(rows) : 1);
    }
    return n;
  }
  // One panel of columns is used for all rows before the next: it stays in the cache.
  void order_columns_outside(int column, int row) {
    if (row >= 0 && row < column) try_apply(t_, {OptKind::Swap, row, column});
  }

  // Both operands contiguous along the reduction (x times a transposed matrix): partial sums in
  // lanes along the reduction, a small tile of outputs to reuse what was loaded.
  bool tile_dot(const std::vector<int>& tile) {
    const int r = contiguous_reduction();
    if (r < 0) return false;
    // Outputs that none share a load keep several sums each instead.
    const bool alone = std::ranges::all_of(tile, [&](int a) { return together(a, 4) < 2; });
    const int64_t n = lanes_along(r, (alone ? kRowVectors : 1) * cpu_lanes());
    if (n < 4) return false;
    apply(t_, {OptKind::Unroll, r, n});
    const int64_t vectors = n / std::min(n, cpu_lanes());
    int64_t budget =
        std::max<int64_t>(target_.vector_registers / 2 / std::max<int64_t>(vectors, 1), 1);
    const auto take = [&](int a, int64_t most) {
      const int64_t m = together(a, std::min(budget, most));
      if (m < 2 || !try_apply(t_, {OptKind::Upcast, a, m})) return false;
      budget /= m;
      return true;
    };
    // Two along each axis before three of one.
    std::vector<int> rest;
    for (size_t i = tile.size(); i-- > 0;)
      if (!take(tile[i], i + 1 == tile.size() ? 4 : 2)) rest.push_back(tile[i]);
    for (const int a : rest) take(a, 4);
    return true;
  }
  int64_t together(int a, int64_t most) const { return divisor_up_to(left(a), most); }
};

class GatheredDot : Chooser {
 public:
  GatheredDot(Tiling& t, const KernelShape& k, const Target& target) : Chooser(t, k, target) {}

  int run() {
    const int f = gathered();
    if (f < 0) return -1;
    const int sum = k_.main_axes[0];
    int64_t budget = cost::cpu::registers(target_) / 2;
    int longest = -1;
    for (const int a : reused_axes()) {
      const int64_t n = left(a);
      if (!t_.factors[size_t(f)].walks(a)) {
        if (longest < 0 || n > left(longest)) longest = a;
      } else if (n > 1 && try_apply(t_, {OptKind::Upcast, a, n})) {
        budget = std::max<int64_t>(budget / n, 1);
      }
    }
    const int64_t rows = longest < 0 ? 1 : divisor_up_to(left(longest), budget);
    if (rows > 1) try_apply(t_, {OptKind::Upcast, longest, rows});
    apply(t_, {OptKind::Unroll, sum, cpu_lanes()});
    return f;
  }

 private:
  int gathered() const {
    if (k_.main_axes.size() != 1) return -1;
    RangeDeps deps{UOp(k_.main_reduce)};
    const auto source = gathered_factor(k_.main_reduce, deps, cpu_lanes());
    for (const int f : main_factors())
      if (source && t_.factors[size_t(f)].source == *source) return f;
    return -1;
  }
};

}  // namespace

int tile_gathered_dot(Tiling& t, const KernelShape& k, const Target& target) {
  return GatheredDot(t, k, target).run();
}

bool tile_vector_product(Tiling& t, const KernelShape& k, const Target& target) {
  return VectorProduct(t, k, target).run();
}

}  // namespace tuff::kernel
