#include "kernel/opt/schedules.h"

#include <algorithm>

#include "ir/walk.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// Fragments along both sides of a tile: four sums and two of each factor are all registers that
// there are, and each factor that is loaded serves two products.
constexpr int64_t kSide = 2;

class ThreadMatrices : Chooser {
 public:
  ThreadMatrices(Tiling& t, const KernelShape& k, const Target& target) : Chooser(t, k, target) {}

  bool run() {
    for (int64_t s = 0; s < int64_t(target_.matrix_shapes.size()); s++) {
      if (!try_apply(t_, {OptKind::Matrix, 0, s})) continue;
      const MatrixProduct& p = *t_.matrices;
      const int row = longest(p.a, p.b), column = longest(p.b, p.a);
      for (const int a : {row, column})
        if (a >= 0 && left(a) % kSide == 0) apply(t_, {OptKind::Upcast, a, kSide});
      const bool rows = row >= 0 && (column < 0 || bytes_along(row) >= bytes_along(column));
      launch(rows ? row : column);
      return true;
    }
    return false;
  }

 private:
  bool walks(const MatrixOperand& f, int a) const {
    return depends_on(f.value, t_.axes[size_t(a)].range);
  }
  // The output axis that one factor walks and the other does not.
  int longest(const MatrixOperand& walking, const MatrixOperand& staying) const {
    int best = -1;
    for (int a = 0; a < count(); a++) {
      const bool own = !axis(a).reduced && walks(walking, a) && !walks(staying, a);
      if (own && left(a) > 1 && (best < 0 || left(a) > left(best))) best = a;
    }
    return best;
  }
  // Of the factor that an output axis walks alone, without what both of them walk.
  int64_t bytes_along(int output) const {
    const MatrixProduct& p = *t_.matrices;
    const bool left_one = walks(p.a, output);
    const MatrixOperand &f = left_one ? p.a : p.b, &other = left_one ? p.b : p.a;
    int64_t bytes = int64_t(size_bytes(f.value->dtype));
    for (int a = 0; a < count(); a++)
      if (walks(f, a) && (axis(a).reduced || !walks(other, a))) bytes *= axis(a).size;
    return bytes;
  }
  // Groups whose part of the longer factor stays in half of the L2 cache, beside what passes of the
  // other.
  void launch(int a) {
    if (a < 0) return;
    const int64_t room = std::max<int64_t>(int64_t(target_.l2_bytes) / 2, 1);
    const int64_t wanted = std::max(ceil_div(bytes_along(a), room),
                                    cost::worthwhile_groups(k_.work, target_));
    for (int64_t groups = std::min(wanted, left(a)); groups <= left(a); groups++) {
      if (left(a) % groups != 0) continue;
      if (groups > 1) launch_along(a, groups);
      return;
    }
  }
};

}  // namespace

bool tile_thread_matrices(Tiling& t, const KernelShape& k, const Target& target) {
  return allows(target, OptKind::Matrix) && ThreadMatrices(t, k, target).run();
}

}  // namespace tuff::kernel
