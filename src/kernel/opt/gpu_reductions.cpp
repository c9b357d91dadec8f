#include "kernel/opt/schedules.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "kernel/analysis/lane_lines.h"

namespace tuff::kernel {

using namespace ir;

namespace {

class GpuReduction : Chooser {
 public:
  GpuReduction(Tiling& t, const UOp& ast, const KernelShape& k, const Target& target)
      : Chooser(t, k, target), ast_(ast) {}

  // Few outputs and long reductions: the invocations of a workgroup share each reduction.
  void run() {
    if (by_lines()) return;
    int64_t longest = 0;
    for (const UOp& r : k_.reduces) longest = std::max(longest, extent(r->src().subspan(1)));
    if (longest <= kShort || k_.outputs >= cost::wanted_invocations(target_))
      vectorize_outputs(outputs_together());
    unroll_main(4, false);
  }

 private:
  static constexpr int64_t kShort = 16;  // a reduction that one body does

  // The axis that the lanes of a subgroup walk in the fewest lines of memory, if that is worth a
  // shared reduction: neighbours share what is contiguous along it, or neighbours are outputs and
  // shares of their reductions fill the device.
  bool by_lines() {
    RangeDeps deps(ast_);
    const std::vector<Access> all = accesses(ast_, deps);
    const auto lines = [&](const std::vector<int>& walked) {
      return lines_of(walked, {}, all, deps);
    };
    constexpr double kWorthwhile = 0.75;
    // Of two long axes of a reduction the one along memory.
    const std::optional<std::vector<int>> axes = best_axes([&](int a, int best) {
      return left(a) > kShort && lines({a}) < kWorthwhile * lines({best});
    });
    if (!axes) return false;
    std::vector<int> shared = *axes;
    for (int a = 0; a < count(); a++)
      if (is_beside(a)) shared.push_back(a);
    const PackedWords words = packed_words(*axes, all, deps);
    const Piece piece = piece_of(*axes, shared, words, all, deps);
    const auto with_whole = [&](const std::vector<int>& walked) {
      return lines_of(walked, {1, piece.whole}, all, deps);
    };
    int output = -1;
    double across = 1e30;
    for (int a = 0; a < count(); a++) {
      if (!axis(a).shared || !splits(a) || left(a) < 2 || !loop_left(a)) continue;
      if (const double n = with_whole({a}); n <= across) output = a, across = n;
    }
    if (with_whole(shared) < kWorthwhile * across) return share_rows(*axes, output, words, piece);
    return output >= 0 && share_columns(*axes, output);
  }

  // Those of one invocation are one.
  int64_t outputs_left() const {
    int64_t n = 1;
    for (int a = 0; a < count(); a++) n *= axis(a).shared ? left(a) : 1;
    return n;
  }
  // What is stored for each element of a row.
  bool is_beside(int a) const {
    return !axis(a).reduced && !axis(a).shared && splits(a) && left(a) > 1;
  }
  bool walks_beside() const {
    for (int a = 0; a < count(); a++)
      if (is_beside(a)) return true;
    return false;
  }
  static constexpr int64_t kPackedRows = 4;
  static constexpr int64_t kPackedLanes = 128;   // of one invocation: more than that spills
  static constexpr int64_t kUnrolledLanes = 64;  // that pieces are added up to
  static constexpr int64_t kTogether = 4;  // ... where neighbours would be one access otherwise

  // What an invocation takes at once of a row: so many neighbouring steps of the axis that is
  // shared, each with all of some short axes.
  struct Piece {
    int64_t together = 1;
    std::vector<int> whole;
  };
  double lines_of(const std::vector<int>& walked, const Piece& piece,
                  const std::vector<Access>& all, RangeDeps& deps) const {
    const auto ranges_of = [&](const std::vector<int>& some) {
      std::vector<UOp> ranges;
      for (int a : some) ranges.push_back(t_.axes[size_t(a)].range);
      return ranges;
    };
    const std::vector<UOp> ranges = ranges_of(walked);
    std::vector<UOp> whole = ranges_of(piece.whole);
    std::vector<std::pair<UOp, int64_t>> outputs;
    for (int a = 0; a < count(); a++) {
      if (!axis(a).shared || !splits(a)) continue;
      const UOp& range = t_.axes[size_t(a)].range;
      if (left(a) == 1 && axis(a).size > 1)
        whole.push_back(range);  // the lanes of a thin product
      else
        outputs.emplace_back(range, left(a));
    }
    const int64_t lanes =
        std::min<int64_t>(shortest_of(walked) / piece.together, target_.subgroup_size);
    return lines_touched(all, deps,
                         {.ranges = ranges,
                          .lanes = std::max<int64_t>(lanes, 1),
                          .each = piece.together,
                          .whole = whole,
                          .vector_bytes = target_.vector_bytes,
                          .sum = k_.main_reduce,
                          .outputs = outputs});
  }
  // As long as one access takes, unless a subgroup touches fewer lines in another way: of an axis
  // that no access walks element by element, neighbouring steps are apart by what is between them,
  // as the channels of a convolution by their windows, and whole windows beside each other are
  // whole lines.
  Piece piece_of(const std::vector<int>& axes, const std::vector<int>& walked,
                 const PackedWords& words, const std::vector<Access>& all, RangeDeps& deps) const {
    constexpr double kFewer = 0.9;
    Piece best{steps_together(axes, words), {}};
    if (words.steps > 1) return best;
    double fewest = lines_of(walked, best, all, deps);
    for (const std::vector<int>& whole : {std::vector<int>(), short_axes(axes)}) {
      for (int64_t together = best.together; together > 0; together /= 2) {
        const double lines = lines_of(walked, {together, whole}, all, deps);
        if (lines < kFewer * fewest) fewest = lines, best = {together, whole};
      }
    }
    return best;
  }
  // Those of the reductions beside the axes that are shared which one body does; none if they are
  // more together.
  std::vector<int> short_axes(const std::vector<int>& axes) const {
    std::vector<int> out;
    int64_t steps = 1;
    for (int a = 0; a < count(); a++) {
      if (!axis(a).reduced || contains(axes, a) || !splits(a) || left(a) < 2) continue;
      out.push_back(a);
      steps *= left(a);
    }
    return steps <= kShort ? out : std::vector<int>();
  }

  // Neighbouring steps of one invocation: packed numbers of two words, or of four bytes where
  // nothing is known to begin a word; other numbers as many as one access takes. With more words to
  // each, neighbours are so far from each other in the vector that its loads touch more lines.
  int64_t steps_together(const std::vector<int>& axes, const PackedWords& words) const {
    constexpr int64_t kMost = 32;
    if (words.steps == 1) return elements_together(axes);
    const int64_t loads = words.bytes == 1 ? 4 : 2;
    int64_t n = std::min(kMost, words.steps * loads);
    while (n > words.steps && n * lane_count(t_) * kPackedRows > kPackedLanes) n /= 2;
    return n;
  }
  // The vector of a product has many times the bytes of packed rows: several of these load it once.
  void share_vectors(int output, int64_t width, int64_t together) {
    const int64_t sums = sums_of(output);  // that load it together
    int64_t rows = std::max<int64_t>(kPackedRows / sums, 1);
    const auto fits = [&] {
      return left(output) % rows == 0 && sums * together * lane_count(t_) * rows <= kPackedLanes &&
             outputs_left() / rows * width >= int64_t(cost::wanted_invocations(target_));
    };
    while (rows > 1 && !fits()) rows /= 2;
    if (rows > 1) try_apply(t_, {OptKind::Upcast, output, rows});
  }
  // How many reductions depend on an output axis, at least one.
  int64_t sums_of(int output) const {
    if (output < 0) return 1;
    const int64_t n = std::ranges::count_if(
        k_.reduces, [&](const UOp& r) { return depends_on(r, t_.axes[size_t(output)].range); });
    return std::max<int64_t>(n, 1);
  }
  // Pieces of a row that an invocation has one after the other, a few at a time: their loads are on
  // the way together, and what is the same in all steps of the loop is done less often.
  void unroll_pieces(const std::vector<int>& axes, int64_t lanes) {
    for (int a : axes) {
      const int64_t most = lanes / lane_count(t_);
      const int64_t pieces = most > 1 ? divisor_up_to(left(a), most, true) : 1;
      if (pieces > 1) try_apply(t_, {OptKind::Unroll, a, pieces});
    }
  }
  // As many neighbours as one access takes of all that walks these axes.
  int64_t elements_together(const std::vector<int>& axes) const {
    int64_t n = std::max<int64_t>(target_.vector_bytes, 1);
    for (int a : axes) {
      const size_t bytes = std::max<size_t>(axis(a).unit_bytes, 1);
      n = std::min(n, divisor_up_to(left(a), target_.elements_together(bytes), true));
    }
    return n;
  }
  int64_t shortest_of(const std::vector<int>& axes) const {
    int64_t n = INT64_MAX;
    for (int a : axes) n = std::min(n, left(a));
    return n;
  }

  PackedWords packed_words(const std::vector<int>& axes, const std::vector<Access>& all,
                           RangeDeps& deps) const {
    PackedWords most;
    for (int a : axes) {
      const PackedWords words = words_of(all, deps, t_.axes[size_t(a)].range);
      if (words.steps > most.steps) most = words;
    }
    return most;
  }

  // A subgroup to each reduction, or more where outputs are few; short ones take a part of one.
  bool share_rows(const std::vector<int>& axes, int output, const PackedWords& words, Piece piece) {
    constexpr int64_t kLeast = 4, kMost = 256, kWorkgroup = 128;
    int64_t& together = piece.together;
    const bool shorter = together < steps_together(axes, words);
    // Rows of 11,008 numbers are no pieces of 16 for a subgroup, but of 8.
    const auto divides = [&](int a) { return left(a) % (together * target_.subgroup_size) == 0; };
    while (together > words.steps && words.steps > 1 && !std::ranges::all_of(axes, divides))
      together /= 2;
    const int64_t pieces = shortest_of(axes) / together;
    const int64_t most = std::min<int64_t>({kMost, target_.max_invocations, target_.max_local[0]});
    int64_t width = std::bit_floor(uint64_t(std::min<int64_t>(pieces, target_.subgroup_size)));
    if (width < kLeast || width > most) return false;
    // Rows that are walked again are few at a time, so that caches hold them.
    const bool again = axes.size() > 1 || walks_beside();
    while (2 * width <= most && 4 * width <= pieces &&
           (again || outputs_left() * width < int64_t(cost::wanted_invocations(target_))))
      width *= 2;
    if (words.steps > 1 && output >= 0) share_vectors(output, width, together);
    const Tiling unshared = t_;
    for (int a : piece.whole) try_apply(t_, {OptKind::Unroll, a, left(a)});
    const Tiling before = t_;
    if (output >= 0 && width < kWorkgroup) {
      const int64_t rows = divisor_up_to(left(output), kWorkgroup / width, true);
      if (rows > 1) try_apply(t_, {OptKind::Local, output, rows});
    }
    if (!share(axes, width, together)) {
      t_ = before;
      if (!share(axes, width, together)) {
        t_ = unshared;
        return false;
      }
    }
    if (words.steps > 1) unroll_pieces(axes, kUnrolledLanes / sums_of(output));
    if (shorter) unroll_pieces(axes, kTogether);
    return true;
  }

  // Outputs beside each other in memory, and so many shares of their reductions that the device is
  // filled; false: they fill it alone.
  bool share_columns(const std::vector<int>& axes, int output) {
    constexpr int64_t kMostShares = 32, kLeastSteps = 4, kWorkgroup = 1024;
    const int64_t wanted = cost::streaming_invocations(target_), outputs = outputs_left();
    const int64_t lanes = std::min<int64_t>(target_.subgroup_size, kWorkgroup / 2);
    // Outputs are the workgroup's first dimension, shares its second.
    const int64_t workgroup =
        std::min<int64_t>({kWorkgroup, target_.max_invocations, target_.max_local[1] * lanes});
    const int64_t shares = std::min(
        {kMostShares, workgroup / lanes,
         int64_t(std::bit_floor(uint64_t(std::max<int64_t>(shortest_of(axes) / kLeastSteps, 1))))});
    // What gates tell apart is no vector.
    const bool vectors = vector_score(output) > 0 && axis(output).gated == 0;
    int64_t together = vectors ? elements_together({output}) : 1;
    while (together > 1 && outputs / together * shares < wanted) together /= 2;
    if (outputs / together >= wanted || shares < 2) return false;
    int64_t width = 2;
    while (width < shares && outputs / together * width < wanted) width *= 2;
    // As many as workgroup memory holds the sums of.
    for (const Tiling before = t_; width > 1; width /= 2, t_ = before) {
      if (!share(axes, width, kLeastSteps)) continue;
      if (together > 1) try_apply(t_, {OptKind::Vector, output, together});
      const int64_t n = std::min(left(output), lanes);
      if (n > 1 && try_apply(t_, {OptKind::Local, output, n})) return true;
    }
    return false;
  }

  // Among so many invocations, with up to so many steps of each unrolled.
  bool share(const std::vector<int>& axes, int64_t width, int64_t most_together) {
    const Tiling before = t_;
    for (int a : axes) {
      const int64_t together = divisor_up_to(left(a), most_together, true);
      if (together > 1) try_apply(t_, {OptKind::Unroll, a, together});
      if (try_apply(t_, {OptKind::GroupReduce, a, width})) continue;
      t_ = before;
      return false;
    }
    share_outputs(width);
    return true;
  }
  // The longest axis of every reduction, or another that is better; none if one of them has no axis
  // of constant size.
  template <class Better>
  std::optional<std::vector<int>> best_axes(const Better& is_better) const {
    std::vector<int> axes;
    for (const UOp& r : k_.reduces) {
      int best = -1;
      for (const UOp& x : r->src().subspan(1)) {
        const int a = axis_of(t_, x.get());
        if (best < 0 || left(a) > left(best)) best = a;
      }
      if (best < 0 || !splits(best)) return {};
      for (const UOp& x : r->src().subspan(1)) {
        const int a = axis_of(t_, x.get());
        if (splits(a) && a != best && is_better(a, best)) best = a;
      }
      add_once(axes, best);
    }
    return axes;
  }
  // What is stored for each element of a shared reduction is shared among the same invocations.
  void share_outputs(int64_t width) {
    for (int a = count(); a-- > 0;) {
      const bool free_axis = !axis(a).reduced && !axis(a).shared && splits(a) && left(a) >= width;
      if (!free_axis) continue;
      const int64_t together = left(a) % (4 * width) == 0 && vector_score(a) > 0 ? 4 : 1;
      if (together > 1) try_apply(t_, {OptKind::Vector, a, together});
      if (try_apply(t_, {OptKind::Local, a, width})) break;
    }
  }

  const UOp ast_;
};

}  // namespace

void tile_gpu_reduction(Tiling& t, const UOp& ast, const KernelShape& k, const Target& target) {
  GpuReduction(t, ast, k, target).run();
}

}  // namespace tuff::kernel
