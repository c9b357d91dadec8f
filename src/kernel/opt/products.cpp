#include "kernel/opt/schedules.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/walk.h"
#include "kernel/opt/stage.h"

namespace tuff::kernel {

using namespace ir;
using namespace cost::cpu;

namespace {

constexpr int64_t kLeastReduction = 8, kLeastSide = 4;

// One operand as the tile reads it.
struct Operand {
  int factor = -1;        // of the Tiling
  double operations = 0;  // arithmetic per element, conversions included
  bool unit = false;      // vector lanes (columns) or successive steps (rows) are neighbours
  bool gated = false;
  int64_t element_bytes = 4;
  int64_t apart = 0;         // bytes from one column, or row, to the next
  int along = -1;            // the reduction that walks its memory element by element
  bool gated_along = false;  // masks depend on that one
};

struct Plan {
  int column = -1, row = -1;
  Operand x, y;  // x moves with the columns, y with the rows
  int64_t width = 1, rows = 1;
  bool stage_x = false, stage_y = false;
  int64_t column_groups = 1, row_groups = 1;
  // Output axes beside the tile's that x does not walk can be loops inside: one copy of x serves
  // all their iterations. The longest of them is shared out to so many groups; 0: all are groups.
  int inner = -1;
  int64_t inner_groups = 0;
  // x is copied for all columns of a group, which are loops inside those of the rows: y is read once.
  bool whole_x = false;
  // Where y is copied too, once in each of those iterations, x is copied for all of its columns.
  bool keeps_x() const { return stage_x && stage_y && inner_groups > 0; }
  double cost = 1e300;
};

class PackedProduct : Chooser {
 public:
  PackedProduct(Tiling& t, const KernelShape& k, const Target& target)
      : Chooser(t, k, target), lanes_(lanes(target)) {}

  bool run() {
    const Plan plan = best();
    if (plan.column < 0) return false;
    const Tiling before = t_;
    if (apply(plan)) return true;
    t_ = before;
    return false;
  }

 private:
  Plan best() {
    Plan best;
    if (!has_form()) return best;
    for (int c = 0; c < count(); c++) {
      for (int r = 0; r < count(); r++) {
        Plan p;
        p.column = c, p.row = r;
        if (!find_operands(p)) continue;
        choose_tile(p);
        find_inner(p);
        choose_groups(p);
        if (p.cost < best.cost) best = p;
      }
    }
    if (best.column >= 0 && share_a_set(best) && dot_cost(best) < best.cost) return {};
    return best;
  }

  // Output axes that the register tile has no part of.
  bool is_other(const Plan& p, int a) const {
    return !axis(a).reduced && a != p.column && a != p.row && (axis(a).symbolic || left(a) > 1);
  }
  bool may_be_inner(const Plan& p, int a) const {
    return is_other(p, a) && !axis(a).symbolic && !walks(p.x.factor, a);
  }

  // Every output axis stands around the sum, and how many steps that has is known.
  bool has_form() {
    const std::vector<int> factors = main_factors();
    if (factors.empty()) return false;
    first_ = factors[0];
    for (const int f : factors)
      if (t_.factors[size_t(f)].reduces) return false;
    for (int a : k_.main_axes) {
      if (axis(a).symbolic || a < 0) return false;
      reduced_ *= left(a);
    }
    batch_ = 1;
    for (const AxisShape& a : k_.axes) {
      if (!a.reduced && !a.shared) return false;
      if (!a.reduced) batch_ *= double(a.size);
    }
    return reduced_ >= kLeastReduction;
  }

  bool walks(int factor, int a) const { return t_.factors[size_t(factor)].walks(a); }

  bool find_operands(Plan& p) const {
    if (p.column == p.row) return false;
    for (int a : {p.column, p.row}) {
      if (axis(a).reduced || left(a) < kLeastSide) return false;
    }
    for (int f : {first_, first_ + 1}) {
      if (walks(f, p.column) && !walks(f, p.row)) p.x = operand(f, p.column, p.column);
      if (walks(f, p.row) && !walks(f, p.column)) p.y = operand(f, k_.main_axes.back(), p.row);
    }
    return p.x.factor >= 0 && p.y.factor >= 0;
  }

  // A factor that is walked along one axis, for an axis of the tile.
  Operand operand(int factor, int walked, int own) const {
    const Tiling::Operand& f = t_.factors[size_t(factor)];
    const UOp& value = f.product->src(size_t(f.source));
    RangeDeps deps(value);
    Operand o{factor, 0, true, false, int64_t(size_bytes(value->dtype))};
    const UOp& next = t_.axes[size_t(own)].range;
    for (const Node* n : toposort(value)) {
      const bool counts = is_alu(n->op) && n->dtype != DType::Index && n->dtype != DType::Bool;
      if (counts) o.operations += n->op == Op::Cast ? 2 : 1;
    }
    const UOp& range = t_.axes[size_t(walked)].range;
    for (const Access& a : accesses(value, deps)) {
      const bool irregular = (a.irregular & deps.bit(range)) != 0;
      // Vectors are loaded upwards; single elements are as near downwards, as a gradient's windows
      // go.
      const bool backwards = a.step(range) < 0 && !t_.axes[size_t(walked)].reduced;
      if (irregular || std::abs(a.step(range)) > 1 || backwards) o.unit = false;
      if (a.gate & deps.bit(range)) o.gated = true;
      o.apart = std::max(o.apart, std::abs(a.step(next)) * o.element_bytes);
      for (int r : k_.main_axes) {
        const UOp& reduced = t_.axes[size_t(r)].range;
        if (std::abs(a.step(reduced)) != 1) continue;
        o.along = r;
        o.gated_along = (a.gate & deps.bit(reduced)) != 0;
      }
    }
    return o;
  }

  // A symbolic axis is as likely a quarter, a sixteenth or a 64th of its most, of which large pieces
  // leave much masked: what a cost is on average for as much work as that of the most.
  template <class Cost>
  double over_extents(const Cost& cost) const {
    constexpr int64_t kLeastPart = 64;
    double sum = 0, n = 0, last = 0;
    for (int64_t part = 1; part <= kLeastPart; part *= 4) {
      double work = 1;
      for (int a = 0; a < count(); a++)
        if (!axis(a).reduced) work *= double(extent(a, part)) / double(left(a));
      if (work == last) break;
      sum += cost(part) / work;
      n++, last = work;
    }
    return sum / n;
  }
  // One part of its most where an axis is symbolic, and not below its least.
  int64_t extent(int a, int64_t part) const {
    return axis(a).symbolic ? std::max(ceil_div(left(a), part), axis(a).least_size) : left(a);
  }

  // The register tile that wastes least at the edges and loads least inside. The accumulators, one
  // row of vectors and a broadcast fit the registers.
  void choose_tile(Plan& p) const {
    double best = 1e300;
    each_register_tile(std::min<int64_t>(16, left(p.row)), [&](int64_t width, int64_t rows) {
      const int64_t vectors = width / lanes_;
      if (width >= 2 * left(p.column) && vectors > 1) return;
      const double tiles = over_extents([&](int64_t part) {
        return double(ceil_div(extent(p.column, part), width)) *
               double(ceil_div(extent(p.row, part), rows));
      });
      const double step = double(rows * vectors) + kLoadShare * double(vectors + rows);
      const double cost =
          tiles * (step * double(reduced_) + store_cost(p.column, p.row, width, rows));
      if (cost < best) best = cost, p.width = width, p.rows = rows;
    });
  }

  // Vectors where the columns are neighbours, or nearly; else each element by itself, in lines that
  // the tile fills where its rows are neighbours, and in one of its own where they are not.
  double store_cost(int column, int row, int64_t width, int64_t rows) const {
    if (axis(column).unit_stores > 0) return kTileCost;
    const double elements = double(width * rows);
    if (axis(column).near_stores > 0)
      return kTileCost + elements / double(lanes_) * kStridedVector +
             double(rows * (1 + 2 * width * 4 / kLineBytes)) * kScatteredLine;
    if (axis(row).unit_stores == 0) return kTileCost + elements * kFarLine;
    const int64_t lines = width * (1 + rows * 4 / kLineBytes);
    return kTileCost + elements * kStoredElement + double(lines) * kScatteredLine;
  }

  void find_inner(Plan& p) const {
    for (int a = 0; a < count(); a++)
      if (may_be_inner(p, a) && (p.inner < 0 || left(a) > left(p.inner))) p.inner = a;
  }

  bool stays_in_l1(int64_t lines) const {
    return lines * kLineBytes <= l1_bytes(target_);
  }
  // The rows are read where they lie, so far apart that the L1 cache cannot hold a line of each.
  bool share_a_set(const Plan& p) const {
    return !p.stage_y && p.y.apart % kL1SetSpan == 0 && p.y.apart > 0 &&
           p.rows > l1_bytes(target_) / kL1SetSpan;
  }
  // The cost of sums in lanes along memory, as vector_products.cpp makes them: out of reach where
  // not both factors walk memory, or where a run has less than two vectors.
  double dot_cost(const Plan& p) const {
    const int r = p.x.along == p.y.along ? p.x.along : -1;
    if (r < 0 || left(r) < 2 * lanes_) return 1e300;
    const double mask = p.x.gated_along || p.y.gated_along ? kDotMask : 0;
    const double step = double(kDotTile) + double(kDotLoads) * (kLoadShare * 2 + mask);
    const double tile = step * double(reduced_) / double(lanes_) + double(kDotTile) * kDotSum;
    const double alone = batch_ / double(kDotTile) * tile;
    const double cores = double(std::max(target_.cores, 1u));
    return cores < 2 || alone < 2 * kShareCost ? alone : alone / cores + kShareCost;
  }
  int64_t copy_bytes(const Plan& p) const { return reduced_ * p.width * p.x.element_bytes; }
  bool pads(const Plan& p) const {
    return axis(p.column).symbolic || left(p.column) % p.width != 0;
  }
  // One step of the sum in one register tile.
  double step_cost(const Plan& p, bool stage_x, bool stage_y) const {
    const double vectors = double(p.width) / double(lanes_);
    double x = kLoadShare * vectors, y = kLoadShare * double(p.rows);
    if (stage_x && copy_bytes(p) > int64_t(target_.l2_bytes)) x = kStreamedVector * vectors;
    if (!stage_x) {
      // Rows of a large operand lie in as many pages, and in few sets of the caches: what leaves
      // the L1 cache between two tiles comes back without being foreseen.
      const double bytes = double(reduced_) * double(left(p.column)) * double(p.x.element_bytes);
      const int64_t lines = ceil_div(p.width * p.x.element_bytes, kLineBytes);
      const double load = !stays_in_l1(reduced_ * lines)     ? kScatteredLine
                          : bytes > double(target_.l2_bytes) ? kLoadShare * 6
                                                             : kLoadShare * 2;
      const double mask = p.x.gated ? kGatedVector : pads(p) ? 1 : 0;
      x = p.x.unit ? vectors * (load + p.x.operations + mask)
                   : double(p.width) * kGatheredElement + vectors * p.x.operations;
    }
    if (!stage_y)
      y = double(p.rows) *
              (kLoadShare * (p.y.unit ? 1.5 : 4) + p.y.operations + (p.y.gated ? 1 : 0)) +
          (p.y.unit || stays_in_l1(2 * reduced_) ? 0 : kFarLine) +
          (share_a_set(p) ? double(p.rows) * kScatteredLine : 0);
    return double(p.rows) * vectors + x + y;
  }
  double copy_x_cost(const Plan& p) const {
    const double vectors = double(p.width) / double(lanes_);
    // Tiles of fewer steps than lanes cost about what scalar moves do.
    const bool transposed = !p.x.gated && !pads(p) &&
                            transposed_steps(left(k_.main_axes.back()), lanes_) == lanes_;
    const bool near = stays_in_l1(reduced_ * ceil_div(p.width * p.x.element_bytes, kLineBytes));
    const double copy = near ? kVectorCopy : kFarVectorCopy;
    const bool streamed = copy_bytes(p) > int64_t(target_.l2_bytes);
    const double mask = p.x.gated ? kGatedVector : 0;
    const double one = p.x.unit ? vectors * (copy + p.x.operations + mask)
                       : transposed ? vectors * (kTransposedCopy + p.x.operations)
                                : double(p.width) * kScalarCopy + vectors * p.x.operations;
    return (one + (streamed ? kStreamedVector * vectors : 0)) * double(reduced_);
  }
  // Rows that are read where they lie, once for each column of tiles: they leave the L2 cache between
  // two of these.
  double read_y_cost(const Plan& p, int64_t times, int64_t tiles) const {
    const double bytes = double(tiles * p.rows * reduced_ * p.y.element_bytes);
    const double copy = p.stage_x ? double(copy_bytes(p)) : 0;
    if (target_.l2_bytes == 0 || bytes + copy <= double(target_.l2_bytes)) return 0;
    const double all = double(left(p.row) * reduced_ * p.y.element_bytes);
    const double line = all > double(kOwnShare) * double(target_.l2_bytes) ? kMemoryLine : kSharedLine;
    return double(times) * bytes / double(kLineBytes) * line / sets_of_rows(p);
  }
  // The part of the L2 cache's sets that rows lie in which begin a power of two apart: of a sum that
  // is cut each row has a piece.
  double sets_of_rows(const Plan& p) const {
    const int64_t span = int64_t(target_.l2_bytes) / kL2Ways, run = reduced_ * p.y.element_bytes;
    if (p.y.apart <= run || span == 0) return 1;
    const int64_t beginnings = span / std::gcd(span, p.y.apart);
    return double(std::min(span, beginnings * run)) / double(span);
  }
  double copy_y_cost(const Plan& p, int64_t tiles) const {
    const int64_t rows = tiles * p.rows, apart = std::min(p.y.apart, kLineBytes);
    const int64_t run = p.y.unit ? left(k_.main_axes.back()) : 1;
    const int64_t lines =
        std::min(reduced_ * (1 + rows * apart / kLineBytes),
                 rows * (reduced_ / run) * (1 + run * p.y.element_bytes / kLineBytes));
    return double(rows) * double(reduced_) * (kScalarCopy + p.y.operations) +
           double(lines) * kScatteredLine;
  }

  void choose_groups(Plan& p) {
    const int64_t columns = ceil_div(left(p.column), p.width),
                  row_tiles = ceil_div(left(p.row), p.rows);
    const Plan tile = p;
    p.cost = 1e300;
    for (const bool stage_x : {false, true}) {
      for (const bool stage_y : {false, true}) {
        for (int64_t gc = 1; gc <= columns; gc = next_count(gc, columns)) {
          for (int64_t gr = 1; gr <= row_tiles; gr = next_count(gr, row_tiles)) {
            if (!may_launch(p.column, gc, columns) || !may_launch(p.row, gr, row_tiles)) continue;
            Plan q = tile;
            q.stage_x = stage_x, q.stage_y = stage_y, q.column_groups = gc, q.row_groups = gr;
            choose_inner(p, q, ceil_div(columns, gc), ceil_div(row_tiles, gr));
            q.whole_x = stage_x && !stage_y && q.inner < 0;
            if (q.whole_x && columns > gc)
              choose_inner(p, q, ceil_div(columns, gc), ceil_div(row_tiles, gr));
          }
        }
      }
    }
  }
  // The pieces of a symbolic axis are all groups, or none is.
  bool may_launch(int a, int64_t groups, int64_t pieces) const {
    return !axis(a).symbolic || groups == 1 || groups == pieces;
  }
  void choose_inner(Plan& best, Plan q, int64_t columns, int64_t row_tiles) const {
    const int64_t most = q.stage_x && q.inner >= 0 ? left(q.inner) : 0;
    for (int64_t g = 0; g <= most; g = g == 0 ? 1 : next_count(g, most)) {
      q.inner_groups = g;
      q.cost = fits(q, columns, row_tiles)
                   ? over_extents([&](int64_t part) { return makespan(q, part); })
                   : 1e300;
      if (q.cost < best.cost) best = q;
    }
  }
  // 1, 2, 3, 4, 6, 8, 12, 16 ..., and all.
  static int64_t next_count(int64_t n, int64_t all) {
    if (n >= all) return all + 1;
    const bool power = (n & (n - 1)) == 0;
    const int64_t next = n == 1 ? 2 : n == 2 ? 3 : power ? n + n / 2 : n / 3 * 4;
    return std::min(next, all);
  }

  // Whether there is room for the copies of a group of so many tiles, whose size is known here.
  bool fits(const Plan& p, int64_t columns, int64_t row_tiles) const {
    if (p.stage_y && axis(p.row).symbolic && row_tiles > 1) return false;
    const bool all_columns = p.keeps_x() || p.whole_x;
    if (all_columns && axis(p.column).symbolic && columns > 1) return false;
    const int64_t x_bytes = p.stage_x ? copy_bytes(p) * (all_columns ? columns : 1) : 0;
    const int64_t y_bytes = p.stage_y ? reduced_ * row_tiles * p.rows * p.y.element_bytes : 0;
    if (x_bytes + y_bytes + 256 > int64_t(target_.shared_bytes)) return false;
    // Rows that are read where they lie pass through the cache as well.
    const int64_t cache = int64_t(target_.l2_bytes) * (p.whole_x ? 3 : 4) / 4;
    if (all_columns && x_bytes + y_bytes > cache) return false;
    // Nor is anything copied that is read once.
    return !(p.stage_x && double(row_tiles) * other_tiles(p, 1).second < 2) &&
           !(p.stage_y && columns < 2);
  }

  // How long all groups take on all cores.
  double makespan(const Plan& p, int64_t part) const {
    const auto [column_groups, columns] = groups_along(p.column, p.width, p.column_groups, part);
    const auto [row_groups, row_tiles] = groups_along(p.row, p.rows, p.row_groups, part);
    const auto [others, inside] = other_tiles(p, part);
    const double tile = step_cost(p, p.stage_x, p.stage_y) * double(reduced_) +
                        store_cost(p.column, p.row, p.width, p.rows);
    double group = double(columns) * double(row_tiles) * inside * tile + kGroupCost;
    if (p.stage_x) group += double(columns) * copy_x_cost(p);
    if (!p.stage_y) group += read_y_cost(p, p.whole_x ? 1 : columns, row_tiles) * inside;
    if (p.stage_y) group += copy_y_cost(p, row_tiles) * inside;
    const double groups = double(column_groups * row_groups) * others;
    const double cores = double(std::max(target_.cores, 1u));
    const double alone = groups * group;
    if (cores < 2 || groups < 2 || alone < 2 * kShareCost) return alone;
    // Threads take groups as they become free; the last ones leave some of them idle.
    const double rounds = std::ceil(groups / cores);
    const double last = group > kCyclesPerGroup ? group * 0.15 : 0;
    return std::min(alone, rounds * group + last + kShareCost);
  }

  // The launch groups along an axis of the tile, and the tiles of each.
  std::pair<int64_t, int64_t> groups_along(int a, int64_t outputs, int64_t groups,
                                           int64_t part) const {
    const int64_t tiles = ceil_div(extent(a, part), outputs);
    if (axis(a).symbolic && groups > 1) return {tiles, 1};
    return {groups, ceil_div(tiles, groups)};
  }

  // The axes beside the tile's: their launch groups, and the iterations inside each.
  std::pair<double, double> other_tiles(const Plan& p, int64_t part) const {
    double all = 1, inside = 1;
    for (int a = 0; a < count(); a++) {
      if (axis(a).reduced || a == p.column || a == p.row) continue;
      if (p.inner_groups == 0 || !may_be_inner(p, a)) {
        all *= double(extent(a, part));
      } else if (a == p.inner) {
        all *= double(p.inner_groups);
        inside *= double(ceil_div(left(a), p.inner_groups));
      } else {
        inside *= double(left(a));
      }
    }
    return {all, inside};
  }

  bool apply(const Plan& p) {
    bool ok = try_apply(t_, {OptKind::Vector, p.column, p.width});
    if (p.rows > 1) ok = ok && try_apply(t_, {OptKind::Upcast, p.row, p.rows});
    const auto groups = [&](int a, int64_t n) {
      return n < 2 || launch_along(a, n);
    };
    for (int a = 0; ok && a < count(); a++) {
      if (!is_other(p, a)) continue;
      if (p.inner_groups == 0 || !may_be_inner(p, a)) {
        ok = try_apply(t_, {OptKind::Group, a, 0});
      } else if (a == p.inner) {
        ok = groups(a, p.inner_groups);
      }
    }
    ok = ok && groups(p.column, p.column_groups) && groups(p.row, p.row_groups);
    return ok && (p.keeps_x() ? stage_in_inner_loops(p) : stage_around_columns(p));
  }

  bool has_loop(int a) const { return loop_left(a) && left(a) > 1; }

  // The columns are walked outside of all that x serves.
  bool stage_around_columns(const Plan& p) {
    bool ok = true;
    if (p.whole_x) {
      if (p.column < p.row) ok = try_apply(t_, {OptKind::Swap, p.column, p.row});
      return ok && try_apply(t_, {OptKind::Stage, p.x.factor, 0});
    }
    for (int a = 0; a < p.column; a++) {
      const bool inside = a == p.row || (p.inner_groups > 0 && may_be_inner(p, a));
      if (!inside) continue;
      ok = try_apply(t_, {OptKind::Swap, a, p.column});
      break;
    }
    if (p.stage_y) ok = ok && try_apply(t_, {OptKind::Stage, p.y.factor, 0});
    if (p.stage_x) ok = ok && try_apply(t_, {OptKind::Stage, p.x.factor, has_loop(p.column)});
    return ok;
  }

  // The loops inside a group go around those of the tile: x is copied before them, y in each of
  // their iterations.
  bool stage_in_inner_loops(const Plan& p) {
    std::vector<int> inner, now;
    for (int a = 0; a < count(); a++) {
      if (may_be_inner(p, a)) inner.push_back(a);
      if (may_be_inner(p, a) || a == p.column || a == p.row) now.push_back(a);
    }
    bool ok = true;
    for (size_t i = 0; i < inner.size(); i++) {
      if (now[i] == inner[i]) continue;
      ok = ok && try_apply(t_, {OptKind::Swap, now[i], inner[i]});
      std::iter_swap(now.begin() + int64_t(i), std::ranges::find(now, inner[i]));
    }
    const int64_t around = std::ranges::count_if(inner, [&](int a) { return has_loop(a); });
    return ok && try_apply(t_, {OptKind::Stage, p.y.factor, around}) &&
           try_apply(t_, {OptKind::Stage, p.x.factor, 0});
  }

  const int64_t lanes_;
  int first_ = -1;       // of the two factors
  int64_t reduced_ = 1;  // products per sum
  double batch_ = 1;     // outputs
};

}  // namespace

bool tile_packed_product(Tiling& t, const KernelShape& k, const Target& target) {
  return PackedProduct(t, k, target).run();
}

}  // namespace tuff::kernel
