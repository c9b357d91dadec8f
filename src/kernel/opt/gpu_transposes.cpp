// The schedule of kernels that store along one axis and load along another: a workgroup takes a
// tile of whole lines both ways, copies what it loads into workgroup memory as that lies in memory,
// and stores from there. For coalescing: each element of the copy is read once.
#include <algorithm>
#include <bit>
#include <set>

#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/coalescing.h"
#include "kernel/opt/schedules.h"

namespace tuff::kernel {

using namespace ir;

namespace {

class GpuTranspose : Chooser {
 public:
  GpuTranspose(Tiling& t, const UOp& ast, const KernelShape& k, const Target& target)
      : Chooser(t, k, target), deps_(ast), parts_(size_t(count())) {
    for (Access& a : accesses(ast, deps_)) (a.store ? stores_ : loads_).push_back(std::move(a));
  }

  GpuTile run() {
    if (!target_.has_fast_shared) return {};
    stored_ = contiguous(stores_[0]);
    const GpuTile tile{.chosen = true, .copied = scattered_loads()};
    if (tile.copied.empty() || !choose_tile(load_of(tile.copied[0]))) return {};
    const Tiling before = t_;
    if (apply_tile() && fits(tile)) return tile;
    t_ = before;
    return {};
  }

 private:
  // A tile is as long as a line either way, in elements; of bytes, half as long.
  static constexpr int64_t kShortest = 32, kLongest = 64;
  static constexpr int64_t kLeastTile = 1024;  // elements
  static constexpr int64_t kWord = 4;          // bytes
  // Elements of an invocation: several loads are on the way at once, and registers hold them.
  static constexpr int64_t kEach = 8, kMostEach = 32;
  static constexpr int64_t kLeastInvocations = 64, kMostInvocations = 256;
  // Where lanes that store side by side load fewer lines than that, over the least, caches do as
  // well as a copy.
  static constexpr int64_t kScattered = 3;

  // How an axis is split, innermost first.
  struct Part {
    int64_t vector = 1, invocations = 1, rows = 1;
    int64_t size() const { return vector * invocations * rows; }
  };
  Part& part(int a) { return parts_[size_t(a)]; }
  int64_t step(const Access& a, int axis) const { return a.step(t_.axes[size_t(axis)].range); }
  static int64_t bytes_of(const Access& a) { return int64_t(size_bytes(a.index->dtype)); }
  const Access& load_of(int operand) const {
    const UOp index = operands(t_)[size_t(operand)].value->src(0);
    return *std::ranges::find(loads_, index, &Access::index);
  }

  // Axes that together walk memory element by element, the fastest first.
  std::vector<int> contiguous(const Access& access) const {
    std::vector<int> out;
    int64_t run = 1;
    for (bool found = true; found;) {
      found = false;
      for (int a = 0; a < count() && !found; a++) {
        if (!splits(a) || left(a) < 2 || step(access, a) != run) continue;
        out.push_back(a);
        run *= left(a);
        found = true;
      }
    }
    return out;
  }

  // Those that lanes beside each other in what is stored read from many lines, and that walk the
  // same axis.
  std::vector<int> scattered_loads() const {
    std::vector<int> out;
    for (int i = 0; i < int(operands(t_).size()); i++) {
      const std::vector<int> own = contiguous(load_of(i));
      const bool same = out.empty() || (!own.empty() && own == contiguous(load_of(out[0])));
      if (!own.empty() && same && is_scattered(load_of(i))) out.push_back(i);
    }
    return out;
  }
  bool is_scattered(const Access& load) const {
    std::set<int64_t> lines;
    int64_t lanes = 1;
    for (const int a : stored_) lanes = std::min(lanes * left(a), kShortest);
    for (int64_t lane = 0; lane < lanes; lane++) {
      int64_t rest = lane, offset = 0;
      for (const int a : stored_) {
        offset += rest % left(a) * step(load, a);
        rest /= left(a);
      }
      lines.insert(offset * bytes_of(load) / kMemoryLineBytes);
    }
    return int64_t(lines.size()) >= kScattered * ceil_div(lanes * bytes_of(load), kMemoryLineBytes);
  }

  static int64_t line_of(const Access& a) {
    return std::clamp(kMemoryLineBytes / bytes_of(a), kShortest, kLongest);
  }
  // About so many steps, few of them past the end.
  static int64_t steps_of(int64_t size, int64_t wanted) {
    if (size <= wanted) return size;
    const auto waste = [&](int64_t n) { return ceil_div(size, n) * n - size; };
    int64_t best = wanted;
    if (8 * waste(wanted) <= size) return wanted;
    for (int64_t n = wanted + 1; n < 2 * wanted; n++)
      if (waste(n) < waste(best)) best = n;
    return best;
  }
  // Elements that one invocation takes as one word, where that is aligned everywhere.
  int64_t word_of(const Access& access, int axis, int64_t steps) const {
    const int64_t n = std::max<int64_t>(kWord / bytes_of(access), 1);
    // Elements of bound buffers, and those that arithmetic is lacking for, are taken one by one.
    if (!target_.features.device_address ||
        target_.held_bytes(access.index->dtype) != bytes_of(access))
      return 1;
    const bool whole = left(axis) % steps == 0 && steps % n == 0 && access.irregular == 0;
    if (!whole || linear_form(access.index->src(1)).constant % n != 0) return 1;
    for (const auto& [range, s] : access.steps)
      if (s != 1 && s % n != 0) return 1;
    return n;
  }

  bool choose_tile(const Access& load) {
    const std::vector<int> loaded = contiguous(load);
    int64_t line = line_of(stores_[0]);
    for (const int a : stored_) {
      if (line < 2) break;
      const int64_t n = steps_of(left(a), line);
      if (a == stored_[0]) part(a).vector = word_of(stores_[0], a, n);
      part(a).invocations = n / part(a).vector;
      line = n < left(a) ? 1 : ceil_div(line, n);
    }
    std::vector<int64_t> steps;
    for (const Part& p : parts_) steps.push_back(p.size());
    line = line_of(load);
    for (const int a : loaded) {
      if (line < 2) break;
      int64_t& n = steps[size_t(a)];
      n = std::max(n, steps_of(left(a), line));
      if (a == loaded[0]) part(a).vector = word_of(load, a, n);
      line = n < left(a) ? 1 : ceil_div(line, n);
    }
    return share_out(loaded, steps);
  }

  // Invocations store side by side as far as lines go; those that are left share out the rest.
  bool share_out(const std::vector<int>& loaded, std::vector<int64_t>& steps) {
    std::vector<int> axes(loaded.rbegin(), loaded.rend());
    for (const int a : stored_)
      if (!contains(axes, a)) axes.push_back(a);
    int64_t elements = 1;
    for (const int64_t n : steps) elements *= n;
    for (const int a : axes) {
      int64_t& n = steps[size_t(a)];
      for (; elements < kLeastTile && 2 * n <= left(a); n *= 2) elements *= 2;
    }
    if (uint64_t(2 * elements) > k_.outputs) return false;
    const bool few = int64_t(k_.outputs) / elements < int64_t(target_.cores);
    int64_t invocations = std::clamp(int64_t(std::bit_floor(uint64_t(elements / kEach))),
                                     kLeastInvocations, kMostInvocations);
    if (few) invocations = kMostInvocations;
    invocations = std::min<int64_t>(invocations, target_.max_invocations);
    for (const Part& p : parts_) invocations /= p.invocations;
    std::ranges::reverse(axes);
    std::ranges::stable_partition(axes, [&](int a) { return contains(loaded, a); });
    for (const int a : axes) {
      Part& p = part(a);
      const int64_t rest = ceil_div(steps[size_t(a)], p.vector * p.invocations);
      const int64_t most = std::clamp<int64_t>(invocations, 1, rest);
      const int64_t whole = divisor_up_to(rest, most);
      const int64_t more = 2 * whole >= most ? whole : most;
      p.invocations *= more;
      p.rows = ceil_div(rest, more);
      invocations /= more;
    }
    return true;
  }

  bool apply_tile() {
    for (int a = 0; a < count(); a++) {
      const Part& p = part(a);
      if (p.vector > 1 && !try_apply(t_, {OptKind::Upcast, a, p.vector})) return false;
      if (p.invocations > 1 && !try_apply(t_, {OptKind::Local, a, p.invocations})) return false;
      if (p.rows > 1 && !try_apply(t_, {OptKind::Upcast, a, p.rows})) return false;
    }
    return true;
  }
  // Occupancy of two workgroups to a core, and registers for what each invocation has on the way.
  bool fits(const GpuTile& tile) const {
    Tiling t = t_;
    stage_tile(t, tile);
    int64_t bytes = 0;
    size_t copies = 0;
    for (const Opt& o : t.applied) {
      if (o.kind != OptKind::Stage) continue;
      const DType type = operands(t)[size_t(o.axis)].value->dtype;
      bytes += *staged_count(t, o.axis, o.amount) * target_.held_bytes(type);
      copies++;
    }
    return copies == tile.copied.size() && 2 * bytes <= int64_t(target_.shared_bytes) &&
           lane_count(t) <= kMostEach;
  }

  RangeDeps deps_;
  std::vector<Access> loads_, stores_;
  std::vector<int> stored_;  // axes
  std::vector<Part> parts_;  // by axis
};

}  // namespace

GpuTile tile_gpu_transpose(Tiling& t, const UOp& ast, const KernelShape& k, const Target& target) {
  if (operands(t).empty() || k.main_reduce) return {};
  return GpuTranspose(t, ast, k, target).run();
}

}  // namespace tuff::kernel
