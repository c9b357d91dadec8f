#include "kernel/opt/schedules.h"

#include <algorithm>

namespace tuff::kernel {

using namespace ir;

namespace {

// How many of something along the rows and the columns of the sums.
struct Grid {
  int64_t rows = 1, columns = 1;
  int64_t count() const { return rows * columns; }
};
struct Plan {
  int64_t shape = -1;  // of the Target's
  Grid fragments, subgroups;
  double cost = 0;
};

class Cooperative {
 public:
  Cooperative(Tiling& t, const Target& target) : t_(t), target_(target) {}

  bool run() {
    Plan best;
    for (int64_t shape = 0; shape < int64_t(target_.matrix_shapes.size()); shape++) {
      Tiling trial = t_;
      if (!trial.try_apply({OptKind::Matrix, 0, shape})) continue;
      product_ = *trial.matrices();
      rows_ = trial.axes()[size_t(product_.m)].main_size();
      columns_ = trial.axes()[size_t(product_.n)].main_size();
      others_ = 1;
      for (int a = 0; a < int(trial.axes().size()); a++) {
        const Axis& x = trial.axes()[size_t(a)];
        if (!x.reduced && a != product_.m && a != product_.n) others_ *= x.main_size();
      }
      each_plan(shape, best);
    }
    return best.shape >= 0 && apply(best);
  }

 private:
  static constexpr int64_t kMostInvocations = 256, kUnknownCores = 16;
  static constexpr int64_t kOtherRegisters = 24;  // addresses, counters, what the epilogue loads

  void each_plan(int64_t shape, Plan& best) const {
    for (int64_t rows = 1; rows <= 8; rows++) {
      for (int64_t columns = 1; columns <= 8; columns++) {
        for (int64_t down = 1; down <= 8; down *= 2) {
          for (int64_t across = 1; across <= 8; across *= 2) {
            const Plan p{shape, {rows, columns}, {down, across}, 0};
            if (rows_ % (rows * down) == 0 && columns_ % (columns * across) == 0) take(p, best);
          }
        }
      }
    }
  }
  void take(Plan p, Plan& best) const {
    if (!fits(p)) return;
    p.cost = cost(p);
    if (best.shape < 0 || p.cost < best.cost) best = p;
  }
  bool fits(const Plan& p) const {
    const MatrixShape& s = product_.shape;
    const int64_t lanes = target_.subgroup_size;
    const int64_t sum_bytes = int64_t(s.m) * s.n * int64_t(size_bytes(s.sum));
    const int64_t factor_bytes = int64_t(s.k) * int64_t(size_bytes(s.a));
    const int64_t bytes = p.fragments.count() * sum_bytes +
                          (p.fragments.rows * s.m + p.fragments.columns * s.n) * factor_bytes;
    const int64_t most =
        std::min<int64_t>({kMostInvocations, target_.max_invocations, target_.max_local[0]});
    return bytes / (4 * lanes) + kOtherRegisters <= int64_t(target_.vector_registers) &&
           p.subgroups.count() * lanes <= most &&
           p.fragments.count() * p.subgroups.count() * sum_bytes <= shared_room();
  }
  // Occupancy: half of workgroup memory, so that a core has room for a second workgroup, or as much
  // as leaves that room on most devices.
  int64_t shared_room() const {
    constexpr int64_t kLeast = 32 << 10;
    const int64_t all = target_.shared_bytes;
    return std::min(std::max(all / 2, kLeast), all);
  }
  // What is read per multiply-add, from memory by a workgroup and from the cache by a subgroup,
  // where every core has a workgroup; where some have none, as much more as they idle. Between
  // equal plans larger matrices and fewer subgroups win.
  double cost(const Plan& p) const {
    const MatrixShape& s = product_.shape;
    const double down = double(p.fragments.rows * s.m), across = double(p.fragments.columns * s.n);
    const double reads = (1 / down + 1 / across) + (1 / (down * double(p.subgroups.rows)) +
                                                    1 / (across * double(p.subgroups.columns)));
    const int64_t groups = others_ * rows_ * columns_ / (p.fragments.count() * p.subgroups.count());
    const int64_t cores = target_.cores > 1 ? int64_t(target_.cores) : kUnknownCores;
    const double idle = std::max(1.0, double(cores) / double(groups));
    const double size = double(s.m) * s.n * s.k;
    return reads * idle + 1e-9 * double(p.subgroups.count()) + 1e-6 / size;
  }

  bool apply(const Plan& p) {
    t_.apply({OptKind::Matrix, 0, p.shape});
    const MatrixProduct& m = *t_.matrices();
    const auto split = [&](OptKind kind, int axis, int64_t amount) {
      if (amount > 1) t_.apply({kind, axis, amount});
    };
    split(OptKind::Upcast, m.m, p.fragments.rows);
    split(OptKind::Upcast, m.n, p.fragments.columns);
    split(OptKind::Local, m.m, p.subgroups.rows);
    split(OptKind::Local, m.n, p.subgroups.columns);
    return true;
  }

  Tiling& t_;
  const Target& target_;
  MatrixProduct product_;
  int64_t rows_ = 1, columns_ = 1, others_ = 1;  // of matrices, along the axes of the sums
};

}  // namespace

bool tile_matrices(Tiling& t, const Target& target) {
  return allows(target, OptKind::Matrix) && Cooperative(t, target).run();
}

}  // namespace tuff::kernel
