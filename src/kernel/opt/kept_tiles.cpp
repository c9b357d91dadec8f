#include "kernel/opt/schedules.h"

#include <algorithm>

#include "ir/walk.h"

namespace tuff::kernel {

using namespace ir;
using namespace cost::cpu;

namespace {

constexpr int64_t kLeastTiles = 2;  // of rows in a group: they share the packed operands

// A sum of products: what it reduces, along which axis its vectors lie.
struct Product {
  int column = -1;
  int64_t length = 1;
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
    for (int a = count(); a-- > 0;) {
      if (is_column(a)) try_apply(t_, {OptKind::Vector, a, width_});
    }
    if (rows_ > 1) try_apply(t_, {OptKind::Upcast, row_, rows_});
    for (int a = 0; a < count(); a++) {
      if (axis(a).reduced && axis(a).unit_loads > 0 && !of_product(a))
        try_apply(t_, {OptKind::Unroll, a, width_});
    }
    launch();
    stage();
    return true;
  }

 private:
  bool is_column(int a) const {
    return !axis(a).reduced && !axis(a).shared && !axis(a).symbolic && axis(a).unit_stores > 0;
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

  // Rows times vectors of accumulators, a row of vectors and a broadcast fit the registers; what
  // is kept is a whole number of vectors.
  void choose_tile() {
    double best = 1e300;
    each_register_tile(std::min<int64_t>(16, left(row_)), [&](int64_t width, int64_t rows) {
      if (!divides_kept(width)) return;
      const int64_t vectors = width / cpu_lanes();
      double cost = 0;
      for (const Product& p : products_) {
        const double step = double(rows * vectors) + kLoadShare * double(vectors + rows);
        cost += double(ceil_div(left(p.column), width)) * (step * double(p.length) + kTileCost);
      }
      cost *= double(ceil_div(left(row_), rows));
      if (cost < best) best = cost, width_ = width, rows_ = rows;
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
  int64_t width_ = 1, rows_ = 1;
};

}  // namespace

bool tile_kept_rows(Tiling& t, const KernelShape& k, const Target& target) {
  return KeptTiles(t, k, target).apply();
}

}  // namespace tuff::kernel
