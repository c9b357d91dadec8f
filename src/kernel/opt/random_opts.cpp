#include "kernel/opt/random_opts.h"

#include <algorithm>
#include <mutex>

#include "base/split_mix.h"
#include "kernel/opt/rules.h"

namespace tuff::kernel {

namespace {

struct Process {
  std::mutex mutex;
  OptCounts counts;
};
Process& process() {
  static Process p;
  return p;
}

bool makes_lanes(OptKind k) {
  return k == OptKind::Upcast || k == OptKind::Vector || k == OptKind::Unroll;
}

class Draw {
 public:
  Draw(const ir::UOp& ast, const Target& target, uint64_t seed, int64_t most_lanes)
      : t_(ast, target), random_(seed), most_lanes_(most_lanes) {
    for (size_t a = 0; a < t_.axes.size(); a++)
      (t_.axes[a].reduced ? reduced_ : outputs_).push_back(int(a));
    // Shared reductions get their turn too, with outputs beside them or not.
    const bool sharing = !reduced_.empty() && random_.below(2);
    // So do tiles that a workgroup copies.
    ahead_ = allows(target, OptKind::Ahead);
    tiling_ = ahead_ && !sharing && !operands(t_).empty() && random_.below(4) > 0;
    for (const OptKind k : kOptKinds) {
      if (tiling_ && (k == OptKind::Spread || k == OptKind::GroupReduce)) continue;
      const bool drawn_elsewhere =
          k == OptKind::Stage || k == OptKind::Ahead || k == OptKind::Matrix || k == OptKind::Slab;
      if (drawn_elsewhere || !allows(target, k)) continue;
      const bool often = k == (sharing ? OptKind::GroupReduce : OptKind::Local);
      kinds_.insert(kinds_.end(), (sharing || tiling_) && often ? 3 : 1, k);
    }
    staging_ = allows(target, OptKind::Stage);
    takes_slabs_ = allows(target, OptKind::Slab);
  }

  std::vector<Opt> run() {
    const int products = allows(t_.target, OptKind::Matrix) ? int(t_.factors.size() / 2) : 0;
    const auto shapes = int64_t(t_.target.matrix_shapes.size());
    for (int p = 0; p < products; p++)
      if (random_.below(4)) attempt({OptKind::Matrix, p, random_.below(shapes)});
    if (takes_slabs_ && !t_.slab_axes.empty() && random_.below(4)) draw_slabs();
    const int64_t draws = t_.axes.empty() ? 0 : random_.below(12);
    for (int64_t i = 0; i < draws; i++) {
      const OptKind kind = kinds_[size_t(random_.below(int64_t(kinds_.size())))];
      const int axis = axis_for(kind);
      if (axis >= 0) attempt({kind, axis, amount(kind, axis)});
    }
    // Copies come after all others.
    const int copied = staging_ ? int(operands(t_).size()) : 0;
    for (int f = 0; f < copied; f++)
      if (tiling_ || random_.below(2)) attempt({OptKind::Stage, f, loops_around()});
    for (int f = 0; ahead_ && f < copied; f++)
      if (tiling_ || random_.below(2)) attempt({OptKind::Ahead, f, 1 + random_.below(2)});
    std::lock_guard lock(process().mutex);
    process().counts += counts_;
    return t_.applied;
  }

 private:
  // Before all others: they would split an axis of a slab. A loop over columns may not be left, as it
  // is around some of the reductions only.
  void draw_slabs() {
    for (const int a : outputs_) {
      const Axis& axis = t_.axes[size_t(a)];
      if (!axis.column || !axis.main_is_const()) continue;
      const OptKind beside = t_.target.has_local ? OptKind::Local : OptKind::Vector;
      attempt({random_.below(2) ? beside : OptKind::Upcast, a, axis.main_size()});
    }
    const std::vector<int>& axes = t_.slab_axes;
    const int axis = axes[size_t(random_.below(int64_t(axes.size())))];
    attempt({OptKind::Slab, axis, divisor(t_.axes[size_t(axis)])});
  }
  int axis_for(OptKind kind) {
    const bool folds = kind == OptKind::Unroll || kind == OptKind::GroupReduce;
    const bool either = kind == OptKind::Split || kind == OptKind::Swap;
    if (either) return int(random_.below(int64_t(t_.axes.size())));
    const std::vector<int>& axes = folds ? reduced_ : outputs_;
    return axes.empty() ? -1 : axes[size_t(random_.below(int64_t(axes.size())))];
  }
  int64_t amount(OptKind kind, int axis) {
    static constexpr int64_t any[] = {2, 3, 4, 5, 7, 8, 16}, powers[] = {2, 4, 8, 16},
                             groups[] = {0, 1, 2, 3, 4, 7};
    switch (kind) {
      case OptKind::Split: return divisor(t_.axes[size_t(axis)]);
      case OptKind::Swap: return random_.below(int64_t(t_.axes.size()));
      case OptKind::Vector:
      case OptKind::GroupReduce: return powers[random_.below(std::size(powers))];
      case OptKind::Group: return groups[random_.below(std::size(groups))];
      default: return any[random_.below(std::size(any))];
    }
  }
  // Loops around a copy: those of outputs are all around most tiles of a workgroup.
  int64_t loops_around() {
    int64_t outputs = 0;
    for (const int a : outputs_) {
      for (const AxisPart& p : t_.axes[size_t(a)].parts)
        outputs += p.kind == ir::AxisKind::Loop && !p.size->is_const_int(1);
    }
    return tiling_ ? outputs + random_.below(3) : random_.below(4);
  }
  // A divisor of what is left of the axis; 2 where there is none.
  int64_t divisor(const Axis& axis) {
    std::vector<int64_t> all;
    const int64_t size = axis.main_size();
    for (int64_t d = 2; d <= std::min<int64_t>(size, 64); d++)
      if (size % d == 0) all.push_back(d);
    return all.empty() ? 2 : all[size_t(random_.below(int64_t(all.size())))];
  }
  void attempt(const Opt& o) {
    if (makes_lanes(o.kind) && lane_count(t_) > most_lanes_ / o.amount) return;
    OptCounts::Row& row = counts_.of(o.kind);
    row.tried++;
    row.applied += try_apply(t_, o);
  }

  Tiling t_;
  SplitMix64 random_;
  const int64_t most_lanes_;
  std::vector<int> outputs_, reduced_;  // axes
  std::vector<OptKind> kinds_;
  bool staging_ = false, takes_slabs_ = false, ahead_ = false, tiling_ = false;
  OptCounts counts_;
};

}  // namespace

OptCounts::Row OptCounts::total() const {
  Row all;
  for (const Row& r : rows) all.tried += r.tried, all.applied += r.applied;
  return all;
}

OptCounts& OptCounts::operator+=(const OptCounts& other) {
  for (size_t i = 0; i < rows.size(); i++) {
    rows[i].tried += other.rows[i].tried;
    rows[i].applied += other.rows[i].applied;
  }
  return *this;
}

std::string to_string(const OptCounts& counts, const Target& target) {
  const OptCounts::Row all = counts.total();
  std::string kinds;
  for (const OptKind k : kOptKinds) {
    if (allows(target, k))
      kinds += fmt::format("{}{} {}", kinds.empty() ? "" : ", ", name(k), counts.of(k).applied);
  }
  return fmt::format("{} of {} draws were legal ({:.0f} %): {}", all.applied, all.tried,
                     100.0 * double(all.applied) / double(std::max<uint64_t>(all.tried, 1)), kinds);
}

std::vector<Opt> random_opts(const ir::UOp& ast, const Target& target, uint64_t seed,
                             int64_t most_lanes) {
  return Draw(ast, target, seed, most_lanes).run();
}

OptCounts random_opt_counts() {
  std::lock_guard lock(process().mutex);
  return process().counts;
}

}  // namespace tuff::kernel
