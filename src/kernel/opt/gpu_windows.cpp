#include "kernel/opt/schedules.h"

#include <algorithm>
#include <optional>

#include "kernel/analysis/subgroup.h"

namespace tuff::kernel {

namespace {

constexpr int64_t kMostProducts = 1536;     // of one body: compile time, code size
constexpr int64_t kMostSums = 256;          // accumulators of one invocation, spilled too
constexpr int64_t kInRegisters = 16;        // accumulators that are never spilled
constexpr double kSpillCost = 3;            // to load and store an accumulator, in multiply-adds
constexpr int64_t kMostSteps = 16, kMostColumns = 16, kMostPerLane = 4;

// The lanes of a subgroup go along one output axis, rows that all of them need alike along another;
// each takes columns of a third and steps of a reduced axis, `window`, of which some factor may
// read the sum.
struct WindowTile {
  int lanes = -1, column = -1, row = -1, window = -1;
  int64_t per_lane = 1, columns = 1, rows = 1, steps = 1;
  int further = -1;  // another axis of the reduction, done whole
  int64_t further_steps = 1;
  double cost = 1e30;  // beyond a multiply-add, for each
  int64_t accumulators() const { return per_lane * columns * rows; }
  int64_t products() const { return accumulators() * steps * further_steps; }
};

class GpuWindows : Chooser {
 public:
  GpuWindows(Tiling& t, const KernelShape& k, const Target& target) : Chooser(t, k, target) {}

  bool run() {
    if (!shares_loads(target_, DType::F32) || !target_.features.device_address) return false;
    outputs_ = reused_axes();
    for (const int window : k_.main_axes) {
      if (!fixed(window) || left(window) < 2) continue;
      for (const int column : outputs_) {
        if (left(column) > 1 && (outputs_.size() > 2 || overlap(column, window)))
          best_of(column, window);
      }
    }
    if (best_.lanes < 0) return false;
    apply();
    return true;
  }

 private:
  int64_t width() const { return target_.subgroup_size; }
  bool overlap(int column, int window) const {
    return (axis(column).product_units & axis(window).product_units) != 0;
  }
  void best_of(int column, int window) {
    WindowTile t;
    t.column = column, t.window = window;
    for (t.lanes = 0; t.lanes < count(); t.lanes++) {
      if (!contains(outputs_, t.lanes) || t.lanes == column || left(t.lanes) < width()) continue;
      for (t.row = -1; t.row < count(); t.row++) {
        if (t.row < 0 || is_row(t)) best_sizes(t);
      }
    }
  }
  // Every load that depends on rows is the same in all lanes.
  bool is_row(const WindowTile& t) const {
    return contains(outputs_, t.row) && t.row != t.column && t.row != t.lanes &&
           left(t.row) >= width() &&
           (axis(t.row).product_reads & axis(t.lanes).product_reads) == 0;
  }
  // Divisors alone: what is masked is read one by one.
  std::vector<int64_t> sizes(int a, int64_t most) const {
    std::vector<int64_t> out;
    for (int64_t n = 2; n <= std::min(most, left(a)); n++) {
      if (left(a) % n == 0) out.push_back(n);
    }
    return out;
  }
  void best_sizes(WindowTile t) {
    for (const int64_t columns : sizes(t.column, kMostColumns)) {
      for (const int64_t steps : sizes(t.window, kMostSteps)) {
        t.columns = columns, t.steps = steps;
        for (t.per_lane = 1; t.per_lane <= kMostPerLane; t.per_lane *= 2) {
          if (left(t.lanes) < t.per_lane * width()) break;
          const int64_t most_rows = t.row < 0 ? 1 : std::min(8 * width(), left(t.row));
          for (t.rows = t.row < 0 ? 1 : width(); t.rows <= most_rows; t.rows *= 2) {
            if (t.accumulators() <= kMostSums) best_further(t);
          }
        }
      }
    }
  }
  void best_further(WindowTile t) {
    t.further = -1, t.further_steps = 1;
    rate(t);
    for (const int a : k_.main_axes) {
      if (a == t.window || !fixed(a) || left(a) < 2) continue;
      t.further = a;
      for (const int64_t n : sizes(a, kMostSteps)) {
        t.further_steps = n;
        rate(t);
      }
    }
  }
  void rate(WindowTile t) {
    if (t.products() > kMostProducts) return;
    if (k_.outputs / uint64_t(t.accumulators()) < wanted_invocations()) return;
    const double steps = double(t.steps * t.further_steps);
    const double waste = padding(t.lanes, t.per_lane * width(), width()) *
                         (t.row < 0 ? 1 : padding(t.row, t.rows, width()));
    const double spilled = t.accumulators() > kInRegisters ? kSpillCost / steps : 0;
    t.cost = (1 + load_cost(t) / double(t.products()) + spilled) * waste;
    if (t.cost < best_.cost - 1e-9) best_ = t;
  }

  // The cost of a body's loads, in multiply-adds.
  double load_cost(const WindowTile& t) const {
    double cost = 0;
    for (int l = 0; l < std::min(k_.main_loads, 32); l++) {
      const uint32_t bit = uint32_t(1) << l;
      const auto read = [&](int a, int64_t n) {
        return a >= 0 && (axis(a).product_reads & bit) ? n : 1;
      };
      const bool window = axis(t.column).product_units & axis(t.window).product_units & bit;
      const int64_t along =
          window ? t.columns + t.steps - 1 : read(t.column, t.columns) * read(t.window, t.steps);
      const int64_t elements = along * read(t.lanes, t.per_lane) * read(t.row, t.rows) *
                               read(t.further, t.further_steps);
      const bool shared = read(t.row, 2) == 2;
      const int64_t fetched = shared ? elements / width() : elements;
      cost += double(fetched) * component_cost(neighbours(t, l));
      if (shared) cost += double(elements) * kShuffleCost;
    }
    return cost;
  }
  int64_t taken(const WindowTile& t, int a) const {
    return a == t.column    ? t.columns
           : a == t.window  ? t.steps
           : a == t.lanes   ? t.per_lane
           : a == t.further ? t.further_steps
                            : 1;
  }
  // How many neighbours are fetched together: those that are proven aligned.
  int64_t neighbours(const WindowTile& t, int load) const {
    const uint32_t bit = uint32_t(1) << load;
    for (const int64_t n : {4, 2}) {
      bool aligned = true, walks = false;
      for (int a = 0; a < count(); a++) {
        const bool unit = axis(a).product_units & bit;
        const int64_t tile = taken(t, a);
        walks = walks || (unit && tile > 1);
        // What is masked is read one by one.
        aligned = aligned && (axis(a).gated == 0 || !unit);
        const uint32_t multiples = n == 4 ? axis(a).product_quads : axis(a).product_pairs;
        aligned = aligned &&
                  (unit ? tile > 1 && (tile % n == 0 || tile == left(a)) : (multiples & bit) != 0);
      }
      if (aligned && walks) return n;
    }
    return 1;
  }

  void apply() {
    const WindowTile& b = best_;
    if (b.per_lane > 1) t_.apply({OptKind::Upcast, b.lanes, b.per_lane});
    t_.apply({OptKind::Local, b.lanes, width()});
    if (b.row >= 0) t_.apply({OptKind::Upcast, b.row, width()});
    if (b.rows > width()) t_.apply({OptKind::Upcast, b.row, b.rows / width()});
    t_.apply({OptKind::Upcast, b.column, b.columns});
    t_.apply({OptKind::Unroll, b.window, b.steps});
    if (b.further >= 0) t_.apply({OptKind::Unroll, b.further, b.further_steps});
  }

  std::vector<int> outputs_;
  WindowTile best_;
};

}  // namespace

bool tile_gpu_windows(Tiling& t, const KernelShape& k, const Target& target) {
  return GpuWindows(t, k, target).run();
}

}  // namespace tuff::kernel
