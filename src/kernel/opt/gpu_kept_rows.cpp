#include "kernel/opt/schedules.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "base/check.h"
#include "ir/kernel_floor.h"
#include "kernel/analysis/subgroup.h"
#include "kernel/opt/row_matrices.h"

namespace tuff::kernel {

using namespace ir;
using namespace cost::gpu;

namespace {

constexpr int64_t kVector = 4;  // components of one access; more lie apart, in the same banks
constexpr int64_t kPartialSums = 16;  // of an invocation: see lower/reduce.cpp
constexpr int64_t kSlab = 16,
                  kMostLanes = 8;  // of a copy: steps; of a register tile, along an axis
constexpr int64_t kMostSlab = 128;

class GpuKeptRows : Chooser {
 public:
  GpuKeptRows(Tiling& t, const UOp& ast, const KernelShape& k, const Target& target)
      : Chooser(t, k, target), ast_(ast) {}

  bool apply() {
    if (std::ranges::none_of(t_.axes, [](const Axis& a) { return a.kept; })) return false;
    row_ = row_axis();
    find_nests();
    if (multiply_matrices()) return true;
    const std::optional<Tile> tile = apply_cheapest();
    for (int a = 0; a < count(); a++) {
      if (axis(a).shared && loop_left(a)) try_apply(t_, {OptKind::Group, a, 0});
    }
    if (tile) stage(*tile);
    return true;
  }

 private:
  // A sum of products: what it reduces, and the axis that invocations and lanes are taken of.
  struct Product {
    size_t factors;  // the first of two
    int column = -1, step = -1;
    int64_t length = 1;
    bool becomes_more = false;  // in the row that it fills: with several values for each element
  };
  struct Tile {
    int64_t columns = 1, groups = 1;  // invocations along rows, of rows
    int64_t rows = 1, lanes = 1;      // of an invocation
    int64_t steps = 1;                // of a reduction at once
    int64_t slab = 0;                 // elements of a kept row at once; 0: all
    int64_t all_rows() const { return groups * rows; }
    int64_t invocations() const { return columns * groups; }
  };

  bool walks_rows(int a) const { return contains(t_.slab_axes, a); }
  // Slabs make numbers of symbolic lengths.
  bool is_column_left(int a) const {
    return t_.axes[size_t(a)].column && (splits(a) || walks_rows(a));
  }
  // What is stored: it is summed slab by slab, where others fill a slab.
  bool is_last(const Product& p) const { return walks_rows(p.step); }
  int64_t columns_of(const Product& p, const Tile& tile) const {
    return tile.slab && walks_rows(p.column) ? tile.slab : left(p.column);
  }
  // Products by column, reductions of rows, and columns that are filled without a product.
  void find_nests() {
    std::vector<bool> of_product(size_t(count()), false);
    for (size_t pair = 0; pair + 1 < t_.factors.size(); pair += 2) {
      Product p{pair};
      for (const int a : t_.factors[pair].around) {
        if (is_column_left(a) && (p.column < 0 || left(a) > left(p.column))) p.column = a;
      }
      if (p.column < 0) continue;
      for (const int side : {0, 1}) {
        for (const int a : t_.factors[pair + size_t(side)].axes) {
          if (!axis(a).reduced || of_product[size_t(a)]) continue;
          of_product[size_t(a)] = true;
          p.length *= std::max<int64_t>(left(a), 1);
          if (p.step < 0 || left(a) > left(p.step)) p.step = a;
        }
      }
      if (p.step < 0) continue;
      of_product[size_t(p.column)] = true;
      p.becomes_more = becomes_more(t_.factors[pair].product);
      products_.push_back(p);
    }
    for (int a = 0; a < count(); a++) {
      if (of_product[size_t(a)] || left(a) < 2) continue;
      if (axis(a).reduced) sums_.push_back(a);
      if (is_column_left(a)) fills_.push_back(a);
    }
    for (const UOp& r : k_.reduces) {
      row_sums_ += std::ranges::any_of(closed_ranges(r.get()), [&](const UOp& own) {
        return contains(sums_, axis_of(t_, own.get()));
      });
    }
  }

  // ---- by cooperative matrices ----
  struct MatrixTile {
    int64_t slab = 0, shares = 2, lanes = 1, subgroups = 1;
    int64_t shape = 0;  // of the Target's
    int64_t rows = 0;   // of a subgroup
    double cost = 0;
    int64_t all_rows() const { return rows * subgroups; }
  };
  // Both products, if all of them can be.
  bool multiply_matrices() {
    if (t_.slab_axes.empty() || products_.size() != 2 || row_ < 0 ||
        !allows(target_, OptKind::Matrix))
      return false;
    const Tiling before = t_;
    std::optional<Tiling> best;
    double cost = 0;
    for (const MatrixTile& tile : matrix_tiles()) {
      if (best && tile.cost >= cost) break;
      t_ = before;
      if (!split(tile)) continue;
      const Tiling made = std::exchange(t_, before);
      const double own = cost_of(tile, least_bytes(tile) + more_bytes(made, tile));
      if (own > 0 && (!best || own < cost)) best = made, cost = own;
    }
    t_ = best ? *best : before;
    return best.has_value();
  }
  // By rising cost, at the least workgroup memory.
  std::vector<MatrixTile> matrix_tiles() const {
    std::vector<MatrixTile> out;
    const int64_t lanes = target_.subgroup_size;
    for (int64_t shape = 0; shape < int64_t(target_.matrix_shapes.size()); shape++) {
      for (int64_t slab = 32; slab <= kMostSlab; slab *= 2) {
        for (int64_t shares = 2; shares <= 8; shares *= 2) {
          for (int64_t own = 1; own <= 8; own *= 2) {
            for (int64_t subgroups = 1; subgroups <= 8; subgroups *= 2) {
              MatrixTile tile{slab, shares, own, subgroups, shape};
              tile.rows = lanes / shares * own;
              if (left(row_) < tile.all_rows() || slab > left(t_.slab_axes[0])) continue;
              tile.cost = cost_of(tile, least_bytes(tile));
              if (tile.cost > 0) out.push_back(tile);
            }
          }
        }
      }
    }
    std::ranges::stable_sort(out, {}, &MatrixTile::cost);
    return out;
  }
  int64_t least_bytes(const MatrixTile& tile) const {
    const MatrixShape& s = target_.matrix_shapes[size_t(tile.shape)];
    int64_t summed = 0, width = 0;
    for (const Product& p : products_)
      (is_last(p) ? width : summed) += is_last(p) ? left(p.column) : p.length;
    return int64_t(size_bytes(s.a)) * (tile.all_rows() * tile.slab +
                                       (tile.all_rows() + tile.slab) * summed + width * tile.slab);
  }
  // Of scores that are not rounded, and of what is stored by elements.
  static int64_t more_bytes(const Tiling& made, const MatrixTile& tile) {
    int64_t each = 0;  // of a row
    for (const RowMatrices& m : made.row_matrices) {
      const auto narrow = int64_t(size_bytes(m.product.shape.a)),
                 held = int64_t(size_bytes(m.element->dtype));
      if (m.filled) each += (held - narrow) * tile.slab;
      if (m.kept && !m.product.stored)
        each += held * made.axes[size_t(m.product.n)].range->src(0)->max;
    }
    return tile.all_rows() * each;
  }
  // 0: it does not fit. Of an element of a row, in multiply-adds of a lane: factors that a subgroup
  // loads and the workgroup copies, scales of what is summed, waiting at barriers.
  double cost_of(const MatrixTile& tile, int64_t bytes) const {
    constexpr double kLoaded = 2, kScale = 4, kBarriers = 2000, kOther = 1;
    const MatrixShape& s = target_.matrix_shapes[size_t(tile.shape)];
    const int64_t lanes = target_.subgroup_size, rows = tile.rows, all = tile.all_rows(),
                  factors = s.k * (rows + 2 * s.n);
    int64_t held = factors / lanes + cost::kOtherRegisters, summed = 0, width = 0;
    for (const Product& p : products_) {
      const int64_t columns = is_last(p) ? left(p.column) : tile.slab;
      held += rows * columns / lanes;
      (is_last(p) ? width : summed) += is_last(p) ? columns : p.length;
    }
    if (held > cost::most_registers(target_) || bytes > int64_t(target_.shared_bytes)) return 0;
    const double loaded = kLoaded * double(summed + width) / double(rows) +
                          double(summed) / double(tile.slab) +
                          2 * double(summed + width) / double(all),
                 scaled = kScale * double(width) / double(tile.slab),
                 waited = kBarriers / double(tile.slab * all);
    const double tiles = double(ceil_div(left(row_), all)),
                 groups = double(k_.outputs) / double(left(row_)) * tiles,
                 again = tiles * double(all) / double(left(row_));
    return (loaded + scaled + waited + kOther) * again *
           idle(lanes * tile.subgroups, bytes, groups);
  }
  bool split(const MatrixTile& tile) {
    for (const Product& p : products_)
      if (is_last(p) && !try_apply(t_, {OptKind::Upcast, p.column, left(p.column)})) return false;
    if (!try_apply(t_, {OptKind::Slab, t_.slab_axes[0], tile.slab})) return false;
    constexpr int64_t kTogether = 4;
    for (const int a : fills_) {
      if (left(a) % (kTogether * tile.shares) == 0) try_apply(t_, {OptKind::Upcast, a, kTogether});
      if (!try_apply(t_, {OptKind::Local, a, tile.shares})) return false;
    }
    for (const int a : sums_) {
      if (left(a) % (kTogether * tile.shares) == 0) try_apply(t_, {OptKind::Unroll, a, kTogether});
      if (!try_apply(t_, {OptKind::GroupReduce, a, tile.shares})) return false;
    }
    if (tile.lanes > 1 && !try_apply(t_, {OptKind::Upcast, row_, tile.lanes})) return false;
    const int64_t local = int64_t(target_.subgroup_size) / tile.shares * tile.subgroups;
    if (!try_apply(t_, {OptKind::Local, row_, local})) return false;
    for (int a = 0; a < count(); a++)
      if (axis(a).shared && loop_left(a)) try_apply(t_, {OptKind::Group, a, 0});
    // Weights may lie where scores were once both are known: those of the result come first.
    for (const bool last : {true, false}) {
      for (int p = 0; p < int(products_.size()); p++)
        if (is_last(products_[size_t(p)]) == last &&
            !try_apply(t_, {OptKind::Matrix, int(products_[size_t(p)].factors) / 2, tile.shape}))
          return false;
    }
    return true;
  }

  bool becomes_more(const UOp& product) const {
    const auto enters = [](const Node* n) { return n->op != Op::End && n->op != Op::Reduce; };
    for (const Node* end : toposort(ast_)) {
      if (end->op != Op::End || without_after(end->src(0)->src(0)->src(0).get())->op != Op::Shared)
        continue;
      bool holds = false;
      int loads = 0;
      const std::vector<UOp> value{end->src(0)->src(1)};
      for (const Node* n : toposort_gated(value, enters)) {
        holds = holds || (n->op == Op::Reduce && through_casts(n->src(0).get()) == product.get());
        loads += n->op == Op::Load;
      }
      if (holds && loads > 1) return true;
    }
    return false;
  }

  // Of the tiles that fit the cheapest that can be; where slabs cannot, of those with whole rows.
  // None where not even one row of a workgroup fits.
  std::optional<Tile> apply_cheapest() {
    constexpr size_t kTries = 4;
    const Tiling before = t_;
    for (const bool slabs : {true, false}) {
      if (slabs ? t_.slab_axes.empty() : needs_slabs(t_)) continue;
      const std::vector<Tile> tiles = tiles_by_cost(slabs);
      for (const Tile& tile : std::span(tiles).first(std::min(kTries, tiles.size()))) {
        if (split(tile)) return tile;
        t_ = before;
      }
    }
    TUFF_CHECK(!needs_slabs(t_), "rows of a symbolic length have no slabs");
    return {};
  }
  std::vector<Tile> tiles_by_cost(bool slabs) const {
    const std::vector<Tile> tiles = tiles_by_cost(slabs, cost::most_registers(target_));
    return tiles.empty() && needs_slabs(t_) ? tiles_by_cost(slabs, INT64_MAX) : tiles;
  }
  std::vector<Tile> tiles_by_cost(bool slabs, int64_t most_registers) const {
    const int64_t rows = row_ < 0 ? 1 : left(row_);
    const int64_t most = std::min<int64_t>(256, target_.max_invocations);
    std::vector<std::pair<double, Tile>> found;
    for (int64_t n = 8; n <= std::min<int64_t>(most, target_.max_local[0]); n *= 2) {
      for (int64_t groups = 1; n * groups <= most && groups <= rows; groups *= 2) {
        for (const Tile& tile : tiles_of(n, groups, slabs)) {
          if (fits(tile, most_registers)) found.push_back({cost_of(tile), tile});
        }
      }
    }
    std::ranges::stable_sort(found, {}, [](const auto& f) { return f.first; });
    std::vector<Tile> out;
    for (const auto& [cost, tile] : found) out.push_back(tile);
    return out;
  }
  std::vector<Tile> tiles_of(int64_t columns, int64_t groups, bool slabs) const {
    std::vector<Tile> out;
    const std::vector<int64_t> slab_sizes = slabs ? slabs_of(columns) : std::vector<int64_t>{0};
    const int64_t rows = row_ < 0 ? 1 : left(row_);
    for (int64_t r = 1; r <= kMostLanes && (groups * r <= rows || r == 1); r *= 2) {
      for (int64_t lanes = 1; lanes <= kMostLanes; lanes *= 2) {
        for (const int64_t steps : {2, 4}) {
          for (const int64_t slab : slab_sizes)
            out.push_back({columns, groups, r, lanes, steps, slab});
        }
      }
    }
    return out;
  }
  // All of a row; and parts of it, if the invocations take all columns of what is stored at once.
  std::vector<int64_t> slabs_of(int64_t columns) const {
    std::vector<int64_t> out;
    if (!needs_slabs(t_)) out.push_back(0);
    for (const Product& p : products_) {
      const int64_t width = left(p.column), lanes = ceil_div(width, columns);
      if (is_last(p) && (lanes > kMostLanes || ceil_div(width, lanes) != columns)) return out;
    }
    const int64_t row = left(t_.slab_axes[0]);
    for (int64_t slab = columns; slab <= kMostSlab && slab < row; slab *= 2) {
      out.push_back(slab);
    }
    return out;
  }
  bool fits(const Tile& tile, int64_t most_registers) const {
    constexpr int64_t kRoom = 512;  // of alignment
    return workgroup_shape(tile.invocations(), target_) && registers_of(tile) <= most_registers &&
           bytes_of(tile) + kRoom <= int64_t(target_.shared_bytes);
  }
  // One nest after the other: accumulators, operands, addresses and counters.
  int64_t registers_of(const Tile& tile) const {
    constexpr int64_t kMoreOfSlabs = 8, kBecoming = 6;
    int64_t most = 0, throughout = tile.slab ? tile.rows * row_sums_ : 0;
    for (const Product& p : products_) {
      const int64_t lanes = lanes_of(p, tile);
      int64_t sums = tile.rows * lanes;
      sums *= sums * tile.steps <= kPartialSums ? tile.steps : 1;
      const bool stays = tile.slab && is_last(p);
      throughout += stays ? sums : 0;
      most = std::max(most, (stays ? 0 : sums) + (tile.rows + lanes) * tile.steps);
      if (p.becomes_more) most = std::max(most, kBecoming * tile.rows * lanes);
    }
    return throughout + most + cost::kOtherRegisters + (tile.slab ? kMoreOfSlabs : 0);
  }
  int64_t bytes_of(const Tile& tile) const {
    const int64_t partial = folds_in_subgroups(tile) ? 0 : 4 * tile.columns * row_sums_;
    int64_t slabs = 0;
    for (const Product& p : products_) {
      const int64_t along = tile.columns * lanes_of(p, tile);
      if (staged_factor(p) >= 0) slabs += 4 * (kSlab + 1) * (along + 4);
    }
    return tile.all_rows() * (kept_row_bytes(t_, tile.columns, tile.slab) + partial) + slabs;
  }
  // Neighbouring columns of an invocation: none is idle.
  int64_t lanes_of(const Product& p, const Tile& tile) const {
    if (tile.slab && is_last(p)) return ceil_div(left(p.column), tile.columns);
    int64_t lanes = tile.lanes;
    while (lanes > 1 && lanes * tile.columns > columns_of(p, tile)) lanes /= 2;
    return lanes;
  }

  double cost_of(const Tile& tile) const {
    const int64_t rows = row_ < 0 ? 1 : left(row_);
    const double groups = double(std::max<uint64_t>(k_.outputs, 1)) / double(rows) *
                          double(ceil_div(rows, tile.all_rows()));
    double work = 0;
    for (const Product& p : products_) {
      const int64_t lanes = lanes_of(p, tile);
      const double load = tile.steps >= 4 ? kLoad : kShortLoad;
      const int64_t read = staged_factor(p) >= 0 && lanes > kVector ? 2 * lanes : lanes;
      const double step = double(tile.rows * lanes) + load * double(tile.rows + read) +
                          kLine * double(tile.rows) * row_lines(p, tile) / double(tile.steps);
      const int64_t columns = columns_of(p, tile);
      work += double(ceil_div(columns, tile.columns * lanes)) *
              double(ceil_div(left(p.column), columns)) * double(p.length) * step;
      work += kFetch * double(left(p.column)) * double(p.length) / double(tile.invocations());
    }
    for (const int a : sums_)
      work += double(ceil_div(left(a), tile.columns) * tile.rows) * kRowStep +
              fold_cost(tile) * double(tile.slab ? ceil_div(left(a), tile.slab) : 1);
    for (const int a : fills_)
      work += double(ceil_div(left(a), tile.columns) * tile.rows) * kRowStep;
    if (tile.slab) {
      const auto is_fill = [&](const Product& p) { return walks_rows(p.column); };
      const auto fills = std::ranges::count_if(products_, is_fill) + ptrdiff_t(fills_.size());
      work += 2 * kBarrier * double(fills * ceil_div(left(t_.slab_axes[0]), tile.slab));
    }
    return work * groups * double(tile.invocations()) * idle(tile, groups);
  }
  // Of the factor that is walked row by row: lines of memory that a subgroup's rows lie in.
  double row_lines(const Product& p, const Tile& tile) const {
    for (const size_t f : {p.factors, p.factors + 1}) {
      const Tiling::Operand& x = t_.factors[f];
      if (row_ >= 0 && x.walks(row_) && !x.keeps)
        return std::max(1.0, double(target_.subgroup_size) / double(tile.columns));
    }
    return 0;
  }
  bool folds_in_subgroups(const Tile& tile) const {
    return kernel::folds_in_subgroups(target_, tile.columns, tile.invocations());
  }
  // Of what the invocations that share a row have of it.
  double fold_cost(const Tile& tile) const {
    const double steps = std::log2(double(tile.columns));
    return folds_in_subgroups(tile) ? kShuffle * steps * double(tile.rows) : kBarrier * (1 + steps);
  }
  // What is lost where a core has too few invocations to choose from.
  double idle(const Tile& tile, double groups) const {
    return idle(tile.invocations(), bytes_of(tile), groups);
  }
  double idle(int64_t invocations, int64_t bytes, double groups) const {
    constexpr double kEnough = 256;
    const double cores = double(std::max<uint32_t>(target_.cores, 1));
    const double fitting = std::floor(double(target_.shared_bytes) / double(bytes));
    const double resident =
        std::min(std::clamp(fitting, 1.0, 16.0), groups / cores) * double(invocations);
    const double waits = resident < kEnough ? 1 + 0.25 * (kEnough / resident - 1) : 1;
    const double rounds = std::ceil(groups / cores);
    return waits * rounds * cores / groups;
  }

  // False where a row cannot be taken slab by slab, or the workgroup cannot have so many.
  bool split(const Tile& tile) {
    for (const Product& p : products_) {
      if (tile.slab && is_last(p)) take_columns(p, tile);
    }
    if (tile.slab && !try_apply(t_, {OptKind::Slab, t_.slab_axes[0], tile.slab})) return false;
    for (const Product& p : products_) {
      if (!(tile.slab && is_last(p))) take_columns(p, tile);
      const int64_t steps = divisor_up_to(left(p.step), tile.steps, true);
      if (steps > 1) try_apply(t_, {OptKind::Unroll, p.step, steps});
    }
    return take_rows(tile);
  }
  void take_columns(const Product& p, const Tile& tile) {
    const int64_t lanes = lanes_of(p, tile);
    if (lanes > 1) try_apply(t_, {OptKind::Upcast, p.column, lanes});
    try_apply(t_, {OptKind::Local, p.column, tile.columns});
  }
  bool take_rows(const Tile& tile) {
    for (const int a : fills_) {
      if (left(a) % (tile.steps * tile.columns) == 0)
        try_apply(t_, {OptKind::Upcast, a, tile.steps});
      try_apply(t_, {OptKind::Local, a, tile.columns});
    }
    for (const int a : sums_) {
      if (left(a) % (tile.steps * tile.columns) == 0)
        try_apply(t_, {OptKind::Unroll, a, tile.steps});
      try_apply(t_, {OptKind::GroupReduce, a, tile.columns});
    }
    if (tile.rows > 1) try_apply(t_, {OptKind::Upcast, row_, tile.rows});
    return tile.groups == 1 || try_apply(t_, {OptKind::Local, row_, tile.groups});
  }

  // A factor that all rows share and whose neighbouring columns are not neighbours in memory, so
  // that reads are not coalesced: each invocation would read lines of its own. -1: none.
  int staged_factor(const Product& p) const {
    if (!target_.has_fast_shared || row_ < 0) return -1;
    if (axis(p.step).unit_loads == 0 || axis(p.column).unit_loads > 0) return -1;
    for (const size_t f : {p.factors, p.factors + 1}) {
      const Tiling::Operand& x = t_.factors[f];
      if (x.walks(p.column) && !x.walks(row_) && !x.keeps) return int(f);
    }
    return -1;
  }
  void stage(const Tile& tile) {
    for (const Product& p : products_) {
      const int f = staged_factor(p);
      if (f < 0) continue;
      const Tiling before = t_;
      int64_t around = 0;
      const int64_t slab = divisor_up_to(left(p.step), kSlab / tile.steps);
      const bool in_parts = slab > 1 && left(p.step) > slab;
      if (in_parts) try_apply(t_, {OptKind::Split, p.step, slab});
      for (const Axis& a : t_.axes) {
        for (const AxisPart& part : a.parts)
          around += !a.reduced && is_loop(part.kind) && !part.size->is_const_int(1);
      }
      around += in_parts;
      if (!try_apply(t_, {OptKind::Stage, f, around})) {
        t_ = before;
        continue;
      }
      const int64_t copied = ceil_div(*staged_count(t_, f, around), tile.invocations());
      if (registers_of(tile) + copied <= cost::most_registers(target_))
        load_ahead(t_, std::span(&f, 1));
    }
  }

  const UOp ast_;
  int row_ = -1;
  std::vector<Product> products_;
  std::vector<int> sums_, fills_;  // axes: reductions of rows, columns without a product
  int64_t row_sums_ = 0;           // reductions along sums_
};

}  // namespace

bool share_kept_rows(Tiling& t, const UOp& ast, const KernelShape& k, const Target& target) {
  return GpuKeptRows(t, ast, k, target).apply();
}

}  // namespace tuff::kernel
