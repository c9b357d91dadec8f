#include "kernel/opt/schedules.h"

#include <algorithm>

#include "ir/walk.h"
#include "kernel/analysis/seen_columns.h"

namespace tuff::kernel {

using namespace ir;
using namespace cost::cpu;

namespace {

// Elements of rows that are taken part by part, and where a mask hides what is behind them: the work
// that is left there; elsewhere the part of the time that whole rows, in the L2 cache, do not wait.
constexpr int64_t kSlab = 256, kCausalSlab = 128;
constexpr double kSeen = 0.6, kNear = 0.95;
constexpr int64_t kSpareRegisters = 4;  // beside those of sums
constexpr int64_t kLeastTiles = 2;  // of rows in a group: they share the packed operands

// A sum of products: what it reduces, along which axis its vectors lie.
struct Product {
  int column = -1;
  int64_t length = 1;
};

struct RegisterTile {
  int64_t width = 1, rows = 1;
  double cost = 1e300;  // cycles of a matrix
};

class KeptTiles : Chooser {
 public:
  KeptTiles(Tiling& t, const KernelShape& k, const Target& target) : Chooser(t, k, target) {}

  bool apply() {
    if (std::ranges::none_of(t_.axes, [](const Axis& a) { return a.kept; })) return false;
    row_ = row_axis();
    if (row_ < 0) return false;
    find_products();
    choose_tile();
    // What walks no rows first: all of it has to be lanes where slabs are taken.
    for (const bool walks : {false, true}) {
      for (int a = count(); a-- > 0;) {
        if (!is_column(a) || contains(t_.slab_axes, a) != walks) continue;
        try_apply(t_, {OptKind::Vector, a, tile_.width});
        if (slab_ && !walks && left(a) > 1) try_apply(t_, {OptKind::Upcast, a, left(a)});
      }
      if (slab_ && !walks) try_apply(t_, {OptKind::Slab, t_.slab_axes[0], slab_});
    }
    if (tile_.rows > 1) try_apply(t_, {OptKind::Upcast, row_, tile_.rows});
    for (int a = 0; a < count(); a++) {
      if (axis(a).reduced && axis(a).unit_loads > 0 && !of_product(a))
        try_apply(t_, {OptKind::Unroll, a, tile_.width});
    }
    launch();
    stage();
    return true;
  }

 private:
  bool is_column(int a) const {
    return !axis(a).reduced && !axis(a).shared && !axis(a).symbolic &&
           (axis(a).unit_stores > 0 || t_.axes[size_t(a)].column);
  }
  // The factor that the rows have in common; -1: each row has its own.
  int same_factor(size_t pair) const {
    const bool x = t_.factors[pair].walks(row_), y = t_.factors[pair + 1].walks(row_);
    return x == y ? -1 : int(x ? pair + 1 : pair);
  }
  void find_products() {
    for (size_t pair = 0; pair + 1 < t_.factors.size(); pair += 2) {
      const int f = same_factor(pair);
      if (f < 0) continue;
      Product p;
      for (int a : t_.factors[size_t(f)].axes) {
        if (axis(a).reduced) p.length *= left(a);
        if (is_column(a)) p.column = a;
      }
      if (p.column >= 0) products_.push_back(p);
    }
  }
  bool of_product(int a) const {
    for (size_t pair = 0; pair + 1 < t_.factors.size(); pair += 2) {
      const int f = same_factor(pair);
      if (f >= 0 && t_.factors[size_t(f)].walks(a)) return true;
    }
    return false;
  }

  void choose_tile() {
    tile_ = best_tile(false);
    if (t_.slab_axes.empty()) return;
    std::vector<UOp> columns;
    int64_t bytes = 0;
    for (const int a : t_.slab_axes) columns.push_back(t_.axes[size_t(a)].range);
    for (const Tiling::Stored& s : t_.stored) bytes = std::max(bytes, s.kept_bytes);
    const bool causal = bool(seen_columns(t_.ast, columns));
    if (!causal && bytes * tile_.rows <= l1_bytes(target_)) return;
    const int64_t slab = causal ? kCausalSlab : kSlab;
    const RegisterTile tile = best_tile(true);
    if (left(t_.slab_axes[0]) < 2 * slab || tile.cost * (causal ? kSeen : kNear) >= tile_.cost)
      return;
    tile_ = tile;
    slab_ = slab;
  }
  // Rows times vectors of accumulators, a row of vectors and a broadcast fit the registers; what
  // is kept is a whole number of vectors.
  RegisterTile best_tile(bool by_slabs) const {
    RegisterTile best;
    each_register_tile(std::min<int64_t>(16, left(row_)), [&](int64_t width, int64_t rows) {
      if (!divides_kept(width) || (by_slabs && !holds_results(width, rows))) return;
      const int64_t vectors = width / cpu_lanes();
      double cost = 0;
      for (const Product& p : products_) {
        const double step = double(rows * vectors) + kLoadShare * double(vectors + rows);
        cost += double(ceil_div(left(p.column), width)) * (step * double(p.length) + kTileCost);
      }
      cost *= double(ceil_div(left(row_), rows));
      if (cost < best.cost) best = {width, rows, cost};
    });
    return best;
  }
  // Whether the sums of a whole row of the result stay in registers.
  bool holds_results(int64_t width, int64_t rows) const {
    return std::ranges::all_of(products_, [&](const Product& p) {
      const bool walks = contains(t_.slab_axes, p.column);
      const int64_t all = walks ? width : ceil_div(left(p.column), width) * width;
      return all / cpu_lanes() * rows <= registers(target_) - kSpareRegisters;
    });
  }
  bool divides_kept(int64_t width) const {
    for (int a = 0; a < count(); a++) {
      if (t_.axes[size_t(a)].kept && left(a) % width != 0) return false;
    }
    return true;
  }

  void launch() {
    int64_t others = 1;
    for (int a = 0; a < count(); a++) {
      if (!axis(a).shared || a == row_ || axis(a).size < 2) continue;
      if (try_apply(t_, {OptKind::Group, a, 0})) others *= axis(a).size;
    }
    const int64_t wanted = ceil_div(cost::worthwhile_groups(k_.work, target_), others);
    const int64_t groups = std::min(wanted, left(row_) / kLeastTiles);
    if (groups > 1) launch_along(row_, groups);
  }

  // What rows have in common is packed once for all rows of a group, unless vectors of it lie side
  // by side as they are.
  void stage() {
    for (size_t pair = 0; pair + 1 < t_.factors.size(); pair += 2) {
      const int f = same_factor(pair);
      if (f >= 0 && !lies_in_vectors(t_.factors[size_t(f)])) try_apply(t_, {OptKind::Stage, f, 0});
    }
  }
  bool lies_in_vectors(const Tiling::Operand& f) const {
    const UOp& value = f.product->src(size_t(f.source));
    if (value->op != Op::Load) return false;
    RangeDeps deps(value);
    for (const Access& a : accesses(value, deps)) {
      for (int x : f.axes) {
        const UOp& range = t_.axes[size_t(x)].range;
        if (is_column(x) && ((a.irregular & deps.bit(range)) || a.step(range) != 1)) return false;
      }
    }
    return true;
  }

  int row_ = -1;
  std::vector<Product> products_;
  RegisterTile tile_;
  int64_t slab_ = 0;  // elements of a row that are filled at a time; 0: all
};

}  // namespace

bool tile_kept_rows(Tiling& t, const KernelShape& k, const Target& target) {
  return KeptTiles(t, k, target).apply();
}

}  // namespace tuff::kernel
