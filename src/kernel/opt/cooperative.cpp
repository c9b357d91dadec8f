#include "kernel/opt/schedules.h"

#include <algorithm>

#include "base/arith.h"
#include "kernel/lowered.h"
#include "kernel/opt/stage_local.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// Bytes along the reduction that are copied at once: of a cache line, which the copy's stores have
// without bank conflicts, the whole or half.
constexpr int64_t kCopiedLines[] = {128, 64};

// How many of something along the rows and the columns of the sums.
struct Grid {
  int64_t rows = 1, columns = 1;
  int64_t count() const { return rows * columns; }
};
struct Plan {
  int64_t shape = -1;  // of the Target's
  Grid fragments, subgroups;
  int64_t steps = 1;  // of matrices along the reduction, copied at once
  double cost = 0;
};

class Cooperative {
 public:
  Cooperative(Tiling& t, const Target& target)
      : t_(t), target_(target), staged_(target.has_fast_shared) {}

  GpuTile run() {
    Plan best;
    for (int64_t shape = 0; shape < int64_t(target_.matrix_shapes.size()); shape++) {
      Tiling trial = t_;
      if (!try_apply(trial, {OptKind::Matrix, 0, shape})) continue;
      product_ = *trial.matrices;
      if (!staged_ && (product_.a.computed || product_.b.computed)) continue;
      const Axis &m = trial.axes[size_t(product_.m)], &n = trial.axes[size_t(product_.n)];
      rows_ = m.main_size(), columns_ = n.main_size();
      pads_rows_ = m.padded, pads_columns_ = n.padded;
      others_ = 1;
      for (int a = 0; a < int(trial.axes.size()); a++) {
        const Axis& x = trial.axes[size_t(a)];
        if (!x.reduced && a != product_.m && a != product_.n) others_ *= x.main_size();
      }
      for (const int64_t line : kCopiedLines)
        each_plan({shape, {}, {}, copied_steps(trial.axes[size_t(product_.k)], line), 0}, best);
    }
    Tiling before = t_;
    if (best.shape >= 0)
      if (const GpuTile tile = tile_by(best); tile.chosen) return tile;
    t_ = std::move(before);
    return {};
  }

 private:
  static constexpr int64_t kMostInvocations = 256;

  void each_plan(Plan p, Plan& best) const {
    for (int64_t rows = 1; rows <= 8; rows++) {
      for (int64_t columns = 1; columns <= 8; columns++) {
        for (int64_t down = 1; down <= 8; down *= 2) {
          for (int64_t across = 1; across <= 8; across *= 2) {
            p.fragments = {rows, columns}, p.subgroups = {down, across};
            if (covers(rows_, pads_rows_, rows * down) &&
                covers(columns_, pads_columns_, columns * across))
              take(p, best);
          }
        }
      }
    }
  }
  static bool covers(int64_t matrices, bool pads, int64_t tile) {
    return matrices % tile == 0 || (pads && tile < matrices);
  }
  void take(Plan p, Plan& best) const {
    if (!fits(p)) return;
    p.cost = cost_of(p);
    if (best.shape < 0 || p.cost < best.cost) best = p;
  }
  bool fits(const Plan& p) const {
    const MatrixShape& s = product_.shape;
    const int64_t lanes = target_.subgroup_size;
    const int64_t sum_bytes = int64_t(s.m) * s.n * int64_t(size_bytes(s.sum));
    const int64_t factor_bytes = int64_t(s.k) * int64_t(size_bytes(s.a));
    const int64_t copied = copied_bytes(p);
    // A subgroup's registers hold sums, a step's factors, and what the next copy takes.
    const int64_t bytes = p.fragments.count() * sum_bytes +
                          (p.fragments.rows * s.m + p.fragments.columns * s.n) * factor_bytes +
                          copied / p.subgroups.count();
    const int64_t most =
        std::min<int64_t>({kMostInvocations, target_.max_invocations, target_.max_local[0]});
    const int64_t held = bytes / (4 * lanes) + cost::kOtherRegisters;
    // Two workgroups to a core: one multiplies while the other waits at its barrier.
    return held <= cost::most_registers(target_) && p.subgroups.count() * lanes <= most &&
           2 * held * p.subgroups.count() * lanes <= cost::kCoreRegisters &&
           shared_sums(p, sum_bytes) + copied + padding_bytes(p) <= shared_room() &&
           (!staged_ || copies_ahead(p));
  }
  // Sums that are stored as matrices do not go through workgroup memory.
  int64_t shared_sums(const Plan& p, int64_t sum_bytes) const {
    return product_.stored ? 0 : p.fragments.count() * p.subgroups.count() * sum_bytes;
  }
  // The workgroup's tile of both factors, without padding, which each of its lines has.
  int64_t copied_bytes(const Plan& p) const {
    return staged_ ? copied_lines(p) * p.steps * step_bytes() : 0;
  }
  int64_t copied_lines(const Plan& p) const {
    const MatrixShape& s = product_.shape;
    return p.fragments.rows * p.subgroups.rows * s.m +
           p.fragments.columns * p.subgroups.columns * s.n;
  }
  int64_t padding_bytes(const Plan& p) const {
    constexpr int64_t kLine = 16, kMemories = 3;  // the sums' and two copies'
    return staged_ ? copied_lines(p) * kLine + kMemories * kSharedAlignment : 0;
  }
  int64_t step_bytes() const { return product_.shape.k * int64_t(size_bytes(product_.shape.a)); }
  int64_t copied_steps(const Axis& k, int64_t line) const {
    const int64_t all = k.main_size(), most = std::max<int64_t>(line / step_bytes(), 1);
    return !staged_ ? 1 : k.padded ? std::min(all, most) : divisor_up_to(all, most);
  }
  // Software pipelining: the next copies of both factors are loaded while this one is multiplied.
  bool copies_ahead(const Plan& p) const {
    const MatrixShape& s = product_.shape;
    const int64_t invocations = p.subgroups.count() * target_.subgroup_size;
    const auto ahead = [&](int64_t lines) {
      return copied_together(lines * p.steps * s.k, int64_t(size_bytes(s.a)), invocations);
    };
    return ahead(p.fragments.rows * p.subgroups.rows * s.m) &&
           ahead(p.fragments.columns * p.subgroups.columns * s.n);
  }
  // Occupancy: half of workgroup memory, so that a core has room for a second workgroup, or as much
  // as leaves that room on most devices. Where factors are copied, all of it: AMD's RDNA, NVIDIA's
  // and Intel's cores have twice what one workgroup may take.
  int64_t shared_room() const {
    constexpr int64_t kLeast = 32 << 10;
    const int64_t all = target_.shared_bytes;
    return staged_ ? all : std::min(std::max(all / 2, kLeast), all);
  }
  // A multiply-add's: itself and what is read for it, from memory by a workgroup and from the cache
  // by a subgroup; and as much more as cores idle in the last of their rounds. Between equal plans
  // larger matrices and fewer subgroups win.
  double cost_of(const Plan& p) const {
    const MatrixShape& s = product_.shape;
    const double down = double(p.fragments.rows * s.m), across = double(p.fragments.columns * s.n);
    const double reads = (1 / down + 1 / across) + (1 / (down * double(p.subgroups.rows)) +
                                                    1 / (across * double(p.subgroups.columns)));
    const int64_t in_group = p.fragments.count() * p.subgroups.count();
    const int64_t groups = others_ * ceil_div(rows_, p.fragments.rows * p.subgroups.rows) *
                           ceil_div(columns_, p.fragments.columns * p.subgroups.columns);
    const int64_t cores = cost::gpu_cores(target_);
    // Cores in the last of their rounds, and matrices past the end of padded axes.
    const double idle = double(ceil_div(groups, cores) * cores * in_group) /
                        double(others_ * rows_ * columns_);
    const bool half_lines = staged_ && p.steps * step_bytes() < kCopiedLines[0];
    const double lines = half_lines ? cost::gpu::kHalfLine : 1, size = double(s.m) * s.n * s.k;
    return (cost::gpu::kMatrixMultiply + reads * lines) * idle +
           1e-9 * double(p.subgroups.count()) + 1e-6 / size;
  }

  GpuTile tile_by(const Plan& p) {
    apply(t_, {OptKind::Matrix, 0, p.shape});
    const MatrixProduct& m = *t_.matrices;
    bool fits = true;  // the copies of factors that are computed, however they lie
    const auto split = [&](OptKind kind, int axis, int64_t amount) {
      fits = fits && (amount <= 1 || try_apply(t_, {kind, axis, amount}));
    };
    split(OptKind::Upcast, m.m, p.fragments.rows);
    split(OptKind::Upcast, m.n, p.fragments.columns);
    split(OptKind::Local, m.m, p.subgroups.rows);
    split(OptKind::Local, m.n, p.subgroups.columns);
    split(OptKind::Split, m.k, p.steps);
    GpuTile tile{.chosen = fits, .loops_inside = p.steps > 1, .ahead = true,
                 .row = std::min(m.m, m.n)};
    if (staged_) tile.copied = {0, 1};
    return tile;
  }

  Tiling& t_;
  const Target& target_;
  // In copies lanes also find whole vectors of a matrix's lines, where some compilers load matrices
  // from memory element by element.
  const bool staged_;
  MatrixProduct product_;
  int64_t rows_ = 1, columns_ = 1, others_ = 1;  // of matrices, along the axes of the sums
  bool pads_rows_ = false, pads_columns_ = false;
};

}  // namespace

GpuTile tile_matrices(Tiling& t, const Target& target) {
  return allows(target, OptKind::Matrix) ? Cooperative(t, target).run() : GpuTile();
}

}  // namespace tuff::kernel
