#include "kernel/opt/stage_local.h"

#include <algorithm>
#include <optional>

#include "base/arith.h"
#include "base/contains.h"
#include "base/cost.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/access.h"
#include "kernel/analysis/lane_lines.h"

namespace tuff::kernel {

using namespace ir;

namespace {

// Against bank conflicts, rows that are written across begin in different banks, so far apart
// that 4 elements stay one vector.
constexpr int64_t kPadBytes = 16;
constexpr int64_t kMostTogether = 64;  // bytes of an invocation that it copies without a loop

// In a tile that is read across, what lies `length` apart is in another bank each time, and so is
// what lies a power of two apart in a row of short ones.
struct PaddedRow {
  int64_t length, pitch;
};
PaddedRow padded_row(int64_t row, int64_t per_word) {
  const int64_t length = cost::gpu::kBanks % row == 0 ? cost::gpu::kBanks : row;
  return {length, (ceil_div(length, per_word) | 1) * per_word};
}

int64_t padding(int64_t element_bytes) { return std::max<int64_t>(kPadBytes / element_bytes, 1); }

UOp flat(std::span<const UOp> ranges, const UOpMap<UOp>& digits) {
  UOp offset = index_const(0);
  for (const UOp& r : ranges) {
    const auto it = digits.find(r);
    offset = offset * r->src(0) + (it == digits.end() ? r : it->second);
  }
  return offset;
}

// Which of so many places an iteration takes: the next one always takes another.
UOp iteration_of(std::span<const UOp> loops, int64_t places) {
  const UOp& size = loops.back()->src(0);
  const bool alone = size->is_const() && size->max % places == 0;
  return floormod(alone ? loops.back() : flat(loops, {}), index_const(places));
}

// Lanes outermost, first those that are innermost in their axes: of neighbours that one invocation
// takes at once.
void lanes_first(std::vector<UOp>& ranges) {
  const auto others = std::ranges::stable_partition(
      ranges, [](const UOp& r) { return is_lane(kind_of(r.get())); });
  std::reverse(ranges.begin(), others.begin());
}

// One value's copy: how its elements are shared out, and where they lie.
class Copy {
 public:
  Copy(const UOp& value, const LocalTile& tile, size_t index, int64_t places, int32_t number,
       int32_t& next_id)
      : value_(value),
        tile_(tile),
        element_bytes_(tile.element_bytes[index]),
        per_word_(tile.read_across ? std::max<int64_t>(4 / element_bytes_, 1) : 0),
        deps_(value),
        loads_(accesses(value, deps_)) {
    std::vector<UOp> steps, rows;  // ranges of the reduction, of outputs
    for (const UOp& r : tile.inside) {
      if (!(deps_.of(value) & deps_.bit(r))) continue;
      const AxisKind k = kind_of(r.get());
      (k == AxisKind::Reduce || k == AxisKind::ReduceLane ? steps : rows).push_back(r);
    }
    if (tile.read_across) lanes_first(rows);
    const bool is_matrix = !tile.matrices.empty();
    const bool along_steps = is_matrix && contains(steps, tile.matrices[index].along);
    outer_ = along_steps ? rows : steps;
    inner_ = along_steps ? steps : rows;
    if (is_matrix) {
      move_last(outer_, tile.matrices[index].across);
      move_last(inner_, tile.matrices[index].along);
    }
    walk_ = outer_;
    walk_.insert(walk_.end(), inner_.begin(), inner_.end());
    count_ = extent(walk_);
    // Neighbouring invocations read neighbours in memory: coalesced.
    std::ranges::stable_sort(walk_, [&](const UOp& a, const UOp& b) {
      return typical_step(loads_, deps_, a) > typical_step(loads_, deps_, b);
    });
    const bool padded = is_matrix || written_across();
    pitch_ = extent(inner_) + (padded ? padding(element_bytes_) : 0);
    if (is_matrix && written_across()) together_ = tile.matrices[index].together;
    const int64_t size = tile.read_across      ? transposed_copy_count(count_, row(), per_word_)
                         : outer_.empty() ? count_
                                          : extent(outer_) * pitch_ + gaps(extent(outer_));
    first_ = places > 1 ? iteration_of(tile.around, places) * size : index_const(0);
    memory_ = make(Op::Shared, value->dtype, {}, SharedArg{number, size * places});
    share_out(next_id);
  }

  // What this iteration of the loops around copies.
  UOp original() const { return substitute(value_, digits_); }
  const std::vector<UOp>& lanes() const { return lanes_; }
  const UOp& memory() const { return memory_; }

  // The End of a loop that stores `value` where its elements belong, after `before`.
  UOp fill(const UOp& value, const UOp& before) const {
    const UOp memory = before ? make_after(memory_, {before}) : memory_;
    return make_end(make_store(make_index(memory, place(digits_), valid_), value), loops_, lanes_);
  }
  UOp read(const UOp& filled) const { return make_load(make_index(filled, place({}))); }

 private:
  static void move_last(std::vector<UOp>& ranges, const UOp& last) {
    std::ranges::stable_partition(ranges, [&](const UOp& r) { return r != last; });
  }
  bool written_across() const {
    return !inner_.empty() && !outer_.empty() && !(walk_.back() == inner_.back());
  }
  int64_t row() const { return inner_.empty() ? 1 : inner_.back()->src(0)->max; }
  UOp place(const UOpMap<UOp>& digits) const {
    if (per_word_ > 0) {
      const UOp element = flat(inner_, digits);
      const auto [length, pitch] = padded_row(row(), per_word_);
      return first_ + element + floordiv(element, index_const(length)) * (pitch - length);
    }
    const UOp line = flat(outer_, digits), at = line * pitch_ + flat(inner_, digits);
    return first_ + (together_ ? at + floordiv(line, index_const(together_)) * gap() : at);
  }
  int64_t gap() const { return padding(element_bytes_); }
  int64_t gaps(int64_t lines) const { return together_ ? ceil_div(lines, together_) * gap() : 0; }

  // As many neighbours as one access reads, or a word of packed numbers holds.
  int64_t read_together() {
    if (walk_.empty() || loads_.empty()) return 1;
    const int64_t packed = words_of(loads_, deps_, walk_.back()).steps;
    if (packed > 1) return packed;
    const size_t bytes = size_bytes(loads_[0].index->dtype);
    const bool alike = std::ranges::all_of(
        loads_, [&](const Access& a) { return size_bytes(a.index->dtype) == bytes; });
    return alike && longest_step(loads_, deps_, walk_.back()) == 1 ? tile_.together(bytes) : 1;
  }
  // Fewer where invocations would have none left.
  int64_t neighbours() {
    const int64_t workers = extent(tile_.invocations);
    int64_t n = read_together();
    while (n > 1 && (walk_.back()->src(0)->max % n != 0 || count_ / n < workers)) n /= 2;
    return n > 2 && count_ / n % workers != 0 && 2 * count_ / n % workers == 0 ? n / 2 : n;
  }

  // Neighbours in memory of a tile that is read across are one invocation's where its lanes are,
  // and else a whole line for invocations beside each other.
  int64_t together() {
    const bool apart = walk_.empty() || !is_lane(kind_of(walk_.back().get()));
    return per_word_ > 0 && apart ? 1 : neighbours();
  }

  void share_out(int32_t& next_id) {
    const int64_t workers = extent(tile_.invocations), wide = together();
    const int64_t pieces = count_ / wide, turns = ceil_div(pieces, workers);
    UOp piece = flat(tile_.invocations, {});
    if (turns > 1) {
      const bool together = copied_together(count_, element_bytes_, workers);
      const UOp turn =
          range(index_const(turns), next_id++, together ? AxisKind::Lane : AxisKind::Loop);
      (together ? lanes_ : loops_).push_back(turn);
      piece = turn * workers + piece;
    }
    if (turns * workers != pieces) {
      valid_ = lt(piece, index_const(pieces));
      piece = where(valid_, piece, index_const(pieces - 1));
    }
    UOp neighbour;
    if (wide > 1)
      neighbour = lanes_.emplace_back(range(index_const(wide), next_id++, AxisKind::Lane));
    for (size_t i = walk_.size(); i-- > 0;) {
      const bool fastest = i + 1 == walk_.size() && wide > 1;
      const UOp size = index_const(walk_[i]->src(0)->max / (fastest ? wide : 1));
      const UOp digit = i == 0 ? piece : floormod(piece, size);
      digits_.emplace(walk_[i], fastest ? digit * wide + neighbour : digit);
      piece = floordiv(piece, size);
    }
  }

  const UOp value_;
  const LocalTile& tile_;
  const int64_t element_bytes_;
  const int64_t per_word_;  // 0: it is read as it was copied
  RangeDeps deps_;
  std::vector<Access> loads_;
  std::vector<UOp> outer_, inner_;  // as the copy lies in workgroup memory, in rows of `inner_`
  std::vector<UOp> walk_;           // all of them, as they lie in the value's memory
  int64_t count_ = 1, pitch_ = 1;
  int64_t together_ = 0;  // lines after which the next ones lie a gap further
  UOp first_;  // element of the place that this iteration fills
  UOp memory_, valid_;
  std::vector<UOp> loops_, lanes_;
  UOpMap<UOp> digits_;  // range -> what an invocation copies
};

UOp in_iteration(const UOp& value, const UOp& loop, const UOp& iteration) {
  return substitute(value, {{loop, iteration}});
}

// Registers that hold what a copy takes in the next iteration of the innermost loop around it.
class AheadOfLoop {
 public:
  AheadOfLoop(const Copy& copy, std::span<const UOp> around, int64_t number)
      : copy_(copy), loop_(around.back()), original_(copy.original()) {
    register_ = make(Op::Register, original_->dtype, copy.lanes(), number);
    first_ = make_store(make_after(register_, around.first(around.size() - 1)),
                        in_iteration(original_, loop_, index_const(0)));
  }
  UOp current() const { return make_load(make_after(register_, {first_, loop_})); }
  // Once `copied` has taken what is there.
  UOp load_next(const UOp& copied, std::span<const UOp> invocations) const {
    const int64_t last = loop_->src(0)->max - 1;
    const UOp next = where(lt(loop_, index_const(last)), loop_ + 1, index_const(last));
    const UOp store =
        make_store(make_after(register_, {copied}), in_iteration(original_, loop_, next));
    return make_end(store, copy_.lanes(), invocations);
  }

 private:
  const Copy& copy_;
  const UOp loop_, original_;
  UOp register_, first_;
};

}  // namespace

int64_t transposed_copy_count(int64_t count, int64_t row, int64_t per_word) {
  const auto [length, pitch] = padded_row(row, per_word);
  return count + (count - 1) / length * (pitch - length);
}

int64_t local_copy_bytes(int64_t count, int64_t row, int64_t element_bytes) {
  return (count + count / std::max<int64_t>(row, 1) * padding(element_bytes)) * element_bytes;
}

bool copied_together(int64_t count, int64_t element_bytes, int64_t invocations) {
  return ceil_div(count, invocations) * element_bytes <= kMostTogether;
}

std::vector<UOp> stage_local(std::span<const UOp> values, std::span<const int64_t> ahead,
                             const LocalTile& tile, int32_t number, int32_t& next_id) {
  std::vector<Copy> copies;
  copies.reserve(values.size());
  for (size_t i = 0; i < values.size(); i++) {
    const int64_t places = std::max<int64_t>(ahead[i], 1);
    copies.emplace_back(values[i], tile, i, places, number + int32_t(i), next_id);
  }
  // No invocation reads the last iteration's copies any more. Of two places, the one that is filled
  // was read before the last iteration's barrier.
  const bool in_turn = std::ranges::all_of(ahead, [](int64_t places) { return places > 1; });
  const UOp free = tile.around.empty() || in_turn ? UOp() : make_barrier(tile.around);
  std::vector<std::optional<AheadOfLoop>> registers(values.size());
  std::vector<UOp> filling;
  for (size_t i = 0; i < values.size(); i++) {
    if (ahead[i]) registers[i].emplace(copies[i], tile.around, number + int64_t(i));
    filling.push_back(
        copies[i].fill(registers[i] ? registers[i]->current() : copies[i].original(), free));
  }
  const UOp filled = make_barrier(filling);
  std::vector<UOp> out;
  for (size_t i = 0; i < values.size(); i++) {
    std::vector<UOp> before{filled};
    if (registers[i]) before.push_back(registers[i]->load_next(filled, tile.invocations));
    out.push_back(copies[i].read(make_after(copies[i].memory(), before)));
  }
  return out;
}

}  // namespace tuff::kernel
