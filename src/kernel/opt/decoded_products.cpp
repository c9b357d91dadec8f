#include "kernel/opt/schedules.h"

#include <algorithm>

#include "ir/walk.h"
#include "sched/parts.h"

namespace tuff::kernel {

using namespace ir;

namespace {

constexpr int64_t kNumbers = 256;  // of a step: a block of the types that have the longest
constexpr int64_t kRows = 4;       // of the weight that are computed beside each other

class DecodedProduct : Chooser {
 public:
  DecodedProduct(Tiling& t, const KernelShape& k, const Target& target) : Chooser(t, k, target) {}

  bool run() {
    const int f = decoded(), r = contiguous_reduction();
    if (f < 0 || r < 0) return false;
    const std::vector<int> tile = reused_axes();
    int row = -1;
    int64_t vectors = 1;
    for (const int a : tile) {
      if (axis(a).symbolic) return false;
      if (!t_.factors[size_t(f)].walks(a))
        vectors *= left(a);
      else if (row < 0 || left(a) > left(row))
        row = a;
    }
    // Half of the registers have sums. Those of one vector are fewer than numbers: scales leave
    // them; those of several add up what a block gives.
    const int64_t sums = cost::cpu::registers(target_) / 2 * cpu_lanes();
    const int64_t n = numbers(r, std::min(kNumbers, 4 * sums));
    if (row < 0 || n < cpu_lanes() || vectors > sched::kThinProduct) return false;
    apply(t_, {OptKind::Unroll, r, n});
    for (const int a : tile)
      if (!t_.factors[size_t(f)].walks(a) && left(a) > 1) apply(t_, {OptKind::Upcast, a, left(a)});
    const int64_t each = vectors == 1 ? n : std::min(n, cpu_lanes()) * vectors;
    const int64_t rows = std::clamp<int64_t>(sums / each, 1, kRows);
    const int64_t together = divisor_up_to(left(row), rows);
    if (together > 1) apply(t_, {OptKind::Upcast, row, together});
    return true;
  }

 private:
  // The factor of the main sum that is made of bytes; -1: none.
  int decoded() const {
    for (const int f : main_factors()) {
      const bool bytes = std::ranges::any_of(
          toposort(t_.factors[size_t(f)].value),
          [](const Node* n) { return n->op == Op::Load && n->dtype == DType::U8; });
      if (bytes) return f;
    }
    return -1;
  }
  // Whole vectors of neighbours that share bytes and scales, so many at most; 0: none.
  int64_t numbers(int r, int64_t most) const {
    if (axis(r).piece == 0 || axis(r).symbolic) return 0;
    int64_t n = 0;
    for (const int64_t cut :
         digit_cuts(t_.axes[size_t(r)].range, toposort(UOp(k_.main_reduce))))
      if (cut <= most && cut % cpu_lanes() == 0 && left(r) % cut == 0) n = cut;
    return n;
  }
};

}  // namespace

bool tile_decoded_product(Tiling& t, const KernelShape& k, const Target& target) {
  return DecodedProduct(t, k, target).run();
}

}  // namespace tuff::kernel
