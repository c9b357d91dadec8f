#include "kernel/opt/schedules.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "kernel/analysis/subgroup.h"

namespace tuff::kernel {

using namespace ir;

namespace {

class GpuReduction : Chooser {
 public:
  GpuReduction(Tiling& t, const KernelShape& k, const Target& target) : Chooser(t, k, target) {}

  // Few outputs and long reductions: the invocations of a workgroup share each reduction.
  int64_t run() {
    int64_t shortest = INT64_MAX, longest = 0;
    for (const UOp& r : k_.reduces) {
      const int64_t n = extent(r->src().subspan(1));
      shortest = std::min(shortest, n);
      longest = std::max(longest, n);
    }
    if (by_subgroups(shortest)) return shared_width_;
    if (k_.outputs < wanted_invocations() && shortest >= 64 && share_reductions(shortest))
      return shared_width_;
    if (longest <= kShort || k_.outputs >= wanted_invocations())
      take_neighbours(outputs_together(16, uint64_t(target_.cores) * target_.subgroup_size),
                      longest <= kShort ? 0 : 1);
    if (longest <= kShort && target_.loads_are_expensive()) {
      unroll_all();
    } else {
      unroll_main(4, false);
    }
    return 0;
  }

 private:
  static constexpr int64_t kShort = 16;  // a reduction that one body does

  // Windows side by side: what they read is whole runs of memory.
  void unroll_all() {
    for (int a = 0; a < count(); a++) {
      if (axis(a).reduced && fixed(a) && left(a) > 1) t_.try_apply({OptKind::Unroll, a, left(a)});
    }
  }
  // A subgroup for each reduction that walks memory step by step, several neighbours to a lane.
  bool by_subgroups(int64_t shortest) {
    const int64_t lanes = target_.subgroup_size;
    const bool usable = folds_by_shuffles(target_, lanes, DType::F32) &&
                        shares_loads(target_, DType::F32) && shortest >= 4 * lanes;
    const std::optional<std::vector<int>> axes = usable ? longest_axes() : std::nullopt;
    if (!axes) return false;
    for (int a : *axes) {
      if (axis(a).unit_loads == 0 || axis(a).strided > 0 || left(a) < 4 * lanes) return false;
    }
    return share(*axes, lanes, 4);
  }
  // Among so many invocations, with up to so many steps of each unrolled.
  bool share(const std::vector<int>& axes, int64_t width, int64_t most_together) {
    const Tiling before = t_;
    for (int a : axes) {
      const int64_t together = divisor_up_to(left(a), most_together, true);
      if (together > 1) t_.try_apply({OptKind::Unroll, a, together});
      if (t_.try_apply({OptKind::GroupReduce, a, width})) continue;
      t_ = before;
      return false;
    }
    share_outputs(width);
    return true;
  }
  // The longest axis of every reduction; none if one of them has no axis of constant size.
  std::optional<std::vector<int>> longest_axes() const {
    std::vector<int> axes;
    for (const UOp& r : k_.reduces) {
      int best = -1;
      for (const UOp& x : r->src().subspan(1)) {
        const int a = t_.axis_of(x.get());
        if (best < 0 || left(a) > left(best)) best = a;
      }
      if (best < 0 || !fixed(best)) return {};
      add_once(axes, best);
    }
    return axes;
  }
  bool share_reductions(int64_t shortest) {
    const std::optional<std::vector<int>> found = longest_axes();
    if (!found) return false;
    const std::vector<int>& axes = *found;
    int64_t width = std::min<int64_t>({256, target_.max_invocations, target_.max_local[0]});
    // 8 bytes hold a partial result of any dtype.
    width = std::min(width, int64_t(target_.shared_bytes / (8 * k_.reduces.size())));
    for (int a : axes) width = std::min(width, left(a));
    width = int64_t(std::bit_floor(uint64_t(std::min(width, shortest / 2))));
    return width >= 8 && share(axes, width, 1);
  }
  // What is stored for each element of a shared reduction is shared among the same invocations.
  void share_outputs(int64_t width) {
    shared_width_ = width;
    for (int a = count(); a-- > 0;) {
      const bool free_axis = !axis(a).reduced && !axis(a).shared && fixed(a) && left(a) >= width;
      if (!free_axis) continue;
      const int64_t together =
          shares_loads(target_, DType::F32) && left(a) % (4 * width) == 0 && vector_score(a) > 0
              ? 4
              : 1;
      if (together > 1) t_.try_apply({OptKind::Vector, a, together});
      if (t_.try_apply({OptKind::Local, a, width})) break;
    }
  }

  int64_t shared_width_ = 0;
};

}  // namespace

int64_t tile_gpu_reduction(Tiling& t, const KernelShape& k, const Target& target) {
  return GpuReduction(t, k, target).run();
}

}  // namespace tuff::kernel
