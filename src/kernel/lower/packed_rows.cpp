// Rows of packed numbers, copied into workgroup memory before they are taken apart. Blocks have odd
// lengths, so that the words which the lanes of a subgroup read of them at once lie across lines of
// memory, and each line is touched many times. A workgroup that shares sums of them copies its rows
// as they lie, whole lines at once, and so the vectors that its lanes walk in pieces.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include "base/arith.h"
#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/coalescing.h"
#include "kernel/analysis/lane_lines.h"
#include "kernel/analysis/ranges.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

constexpr int64_t kCopiedBytes = 256;   // for each invocation: several workgroups share a core
constexpr int64_t kUnrolledBytes = 80;  // of an invocation that are on the way together

int64_t bytes_of_load(const UOp& load) { return int64_t(size_bytes(load->dtype)); }

// Sums in one loop whose steps a workgroup shares, and the part of the loop that copies are made
// in, if not before.
struct SharedSums {
  std::vector<UOp> reduces;
  UOp around;
};

// Offsets of one buffer, in bytes: what the launch and loops around a copy say, rows that the
// workgroup has at once, and the stretch of each row that is read.
struct Window {
  std::vector<UOp> loads;
  UOp base;
  std::vector<std::pair<UOp, int64_t>> rows;  // ranges, how far they are apart; the nearest first
  int64_t begin = 0, end = 0;
  int64_t element = 1;           // of the copy: the largest that is read
  int64_t count = 1, apart = 0;  // of rows
  bool joined = false;           // rows follow each other: they are one stretch
  int64_t known = 1;             // the power of two that stretches are known to begin at
  int64_t pitch = 0;             // of stretches in the copy

  const UOp& widest() const { return *std::ranges::max_element(loads, {}, bytes_of_load); }
  const UOp& memory() const { return widest()->src(0)->src(0); }
  int64_t piece() const { return element == 4 ? 16 : 4; }  // that an invocation copies at once
  int64_t stretches() const { return joined ? 1 : count; }
  int64_t bytes() const { return stretches() * pitch; }
  // Some compilers read a word for what lies in it, and in the one after it.
  int64_t elements() const { return bytes() / element + (element < 4 ? 16 / element : 0); }
  // Where a stretch begins, in elements of so many bytes.
  UOp first(const UOp& stretch, int64_t unit) const {
    LinearForm f = linear_form(base);
    for (auto& term : f.terms) term.second /= unit;
    return from_linear_form(f) + begin / unit + stretch * (apart / unit);
  }
  // ... and how far from the line that is copied first.
  UOp skipped(const UOp& stretch, int64_t unit) const {
    return simplify(floormod(first(stretch, unit), int64_t(kMemoryLineBytes) / unit));
  }
  UOp row() const {
    UOp at = index_const(0);
    for (const auto& [range, step] : rows) at = at + range * (step / apart);
    return at;
  }
};

class Windows {
 public:
  Windows(const SharedSums& sums, const UOp& ast, const Target& target)
      : sums_(sums), target_(target), deps_(ast) {
    shared_ = deps_.kinds(AxisKind::GroupReduce);
    const RangeMask around = sums.around ? deps_.bit(sums.around) : 0;
    around_ = deps_.kinds(AxisKind::Group) | around;
    walked_ = deps_.kinds(AxisKind::Reduce) | deps_.kinds(AxisKind::ReduceLane) | shared_;
    walked_ &= ~around;
    rows_ = deps_.kinds(AxisKind::Lane) | deps_.kinds(AxisKind::Local);
  }

  // Of packed numbers, and of the vector whose lines lanes or rows would touch more than once;
  // empty if there are none of the former.
  std::vector<Window> find() {
    std::vector<Window> out;
    std::set<int32_t> packed;
    std::map<int32_t, std::vector<UOp>> others;
    for (const UOp& reduce : sums_.reduces) {
      for (const auto& [slot, loads] : loads_of(reduce)) {
        if (!is_packed(loads)) {
          for (const UOp& l : loads) add_once(others[slot], l);
          continue;
        }
        packed.insert(slot);
        std::optional<Window> w = window_of(loads);
        if (w && is_worthwhile(*w)) out.push_back(std::move(*w));
      }
    }
    std::erase_if(others, [&](const auto& o) { return packed.contains(o.first); });
    if (out.empty()) return out;
    const bool repeats = !std::ranges::all_of(out, has_lanes);
    for (const auto& [slot, loads] : others) {
      std::optional<Window> w = window_of(loads);
      if (w && w->count > kMostVectors) return {};
      if (w && (repeats || is_walked_in_pieces(loads))) out.push_back(std::move(*w));
    }
    return out;
  }

 private:
  static constexpr int64_t kMostVectors = 2;  // more are limited by arithmetic

  // By slot.
  static std::map<int32_t, std::vector<UOp>> loads_of(const UOp& reduce) {
    std::map<int32_t, std::vector<UOp>> out;
    for (const Node* n : toposort(reduce->src(0))) {
      const Node* memory = n->op == Op::Load ? accessed_memory(n) : nullptr;
      if (memory && memory->op == Op::Param)
        out[memory->get<ParamArg>().slot].push_back(UOp(n));
    }
    return out;
  }
  static bool is_packed(const std::vector<UOp>& loads) {
    const auto is_narrow = [](const UOp& l) { return is_int(l->dtype) && bytes_of_load(l) < 4; };
    const auto is_word = [&](const UOp& l) { return is_narrow(l) || l->dtype == DType::I32; };
    return loads.size() > 1 && std::ranges::all_of(loads, is_word) &&
           std::ranges::any_of(loads, is_narrow);
  }
  // Short stretches would be copied with more of what stands around them than is saved. Words touch
  // fewer lines as they lie than halves and bytes.
  static bool is_worthwhile(const Window& w) {
    const double most = w.element < 4 ? 2 : 1.7;
    return double(w.pitch) <= most * double(w.joined ? w.count * w.apart : w.end - w.begin);
  }
  // Several rows of an invocation read a vector once.
  static bool has_lanes(const Window& w) {
    return std::ranges::any_of(w.rows, [](auto& r) { return is_lane(kind_of(r.first.get())); });
  }
  bool is_walked_in_pieces(const std::vector<UOp>& loads) {
    constexpr double kMore = 1.1;
    const std::vector<UOp> lanes = deps_.list(shared_);
    for (const Access& a : accesses(sink(sums_.reduces), deps_)) {
      if (std::ranges::none_of(loads, [&](const UOp& l) { return l->src(0) == a.index; })) continue;
      const RangeMask all = deps_.of(a.index);
      const std::vector<UOp> whole = deps_.list(all & deps_.kinds(AxisKind::ReduceLane));
      const double touched =
          lines_touched({a}, deps_,
                        {.ranges = lanes,
                         .lanes = std::min<int64_t>(extent(lanes), target_.subgroup_size),
                         .whole = whole,
                         .vector_bytes = target_.vector_bytes});
      const double bytes = double(extent(deps_.list(all))) * double(size_bytes(a.index->dtype));
      if (touched > kMore * bytes / kMemoryLineBytes) return true;
    }
    return false;
  }

  std::optional<Window> window_of(const std::vector<UOp>& loads) {
    Window w;
    for (const UOp& l : loads) {
      if (l->src(0)->src_count != 2 || !add(w, l)) return {};
    }
    w.begin = floor_div(w.begin, w.element) * w.element;
    if (!set_rows(w)) return {};
    const int64_t row = w.end - w.begin, length = w.joined ? w.count * w.apart : row;
    const int64_t rounded = w.known == kMemoryLineBytes ? w.piece() : kMemoryLineBytes;
    w.pitch = ceil_div(length + kMemoryLineBytes - w.known, rounded) * rounded;
    return w.known % w.element == 0 && ends_with_piece(w) ? std::optional(w) : std::nullopt;
  }

  // One more load: its offset has the same parts as those before.
  bool add(Window& w, const UOp& load) {
    const int64_t bytes = bytes_of_load(load);
    LinearForm base;
    std::vector<std::pair<UOp, int64_t>> rows;
    const LinearForm all = linear_form(simplify(load->src(0)->src(1)));
    int64_t begin = all.constant * bytes, end = begin + bytes;
    for (const auto& [term, step] : all.terms) {
      const RangeMask of = deps_.of(term);
      const int64_t by = step * bytes;
      if (of && !(of & ~walked_)) {
        begin += std::min(term->min * by, term->max * by);
        end += std::max(term->min * by, term->max * by);
      } else if (!(of & ~around_)) {
        base.terms.emplace_back(term, by);
      } else if (term->op == Op::Range && !(of & ~rows_)) {
        rows.emplace_back(term, by);
      } else {
        return false;
      }
    }
    std::ranges::sort(rows, {}, &std::pair<UOp, int64_t>::second);
    const UOp from = simplify(from_linear_form(base));
    if (w.loads.empty()) {
      w.base = from, w.rows = rows, w.begin = begin, w.end = end;
    } else if (!(w.base == from) || w.rows != rows) {
      return false;
    }
    w.begin = std::min(w.begin, begin);
    w.end = std::max(w.end, end);
    w.element = std::max(w.element, bytes);
    w.loads.push_back(load);
    return true;
  }
  // Rows are equally far apart, and none overlaps the next.
  static bool set_rows(Window& w) {
    for (const auto& [range, step] : w.rows) {
      if (!w.apart) w.apart = step;
      if (step != w.apart * w.count) return false;
      w.count *= range->src(0)->max;
    }
    w.joined = w.count > 1 && w.apart == w.end - w.begin;
    w.known = std::gcd(int64_t(kMemoryLineBytes), std::gcd(w.begin, w.joined ? 0 : w.apart));
    for (const auto& term : linear_form(w.base).terms) w.known = std::gcd(w.known, term.second);
    return w.begin >= 0 && w.apart % w.element == 0 && (!w.apart || w.apart >= w.end - w.begin);
  }
  // Pieces end where the buffer does, if not before.
  static bool ends_with_piece(const Window& w) {
    return std::ranges::all_of(w.loads, [&](const UOp& l) {
      return l->src(0)->src(0)->get<ParamArg>().count * bytes_of_load(l) % w.piece() == 0;
    });
  }

  const SharedSums sums_;
  const Target& target_;
  RangeDeps deps_;
  RangeMask shared_ = 0, around_ = 0, walked_ = 0, rows_ = 0;
};

// Of a workgroup: its outputs', and those that share the sums' steps. What outputs beside a sum are
// shared out to are these once more.
std::vector<UOp> invocations_of(const SharedSums& sums, const RangeDeps& deps) {
  std::vector<UOp> out;
  for (const UOp& r : deps.list(deps.kinds(AxisKind::Local))) out.push_back(r);
  const std::span<const UOp> steps = closed_ranges(sums.reduces[0].get());
  for (const UOp& r : deps.list(deps.kinds(AxisKind::GroupReduce)))
    if (std::ranges::find(steps, r) != steps.end()) out.push_back(r);
  return out;
}

// The copies of a sum's windows.
class Copies {
 public:
  Copies(const SharedSums& sums, const UOp& ast)
      : sums_(sums),
        deps_(ast),
        next_id_(deps_.free_id()),
        invocations_(invocations_of(sums, deps_)) {}

  // Loads, and what takes their places.
  UOpMap<UOp> of(const std::vector<Window>& windows) {
    const UOp free = sums_.around ? make_barrier({sums_.around}) : UOp();
    std::vector<UOp> memories, filling;
    for (const Window& w : windows) {
      const SharedArg arg{int32_t(memories.size()), w.elements()};
      const UOp& memory = memories.emplace_back(make(Op::Shared, w.memory()->dtype, {}, arg));
      filling.push_back(fill(w, free ? make_after(memory, {free}) : memory));
    }
    const UOp filled = make_barrier(filling);
    UOpMap<UOp> out;
    for (size_t i = 0; i < windows.size(); i++) {
      for (const UOp& load : windows[i].loads)
        out.emplace(load, read(windows[i], load, make_after(memories[i], {filled})));
    }
    return out;
  }

 private:
  // At most, and at least half as many where a loop then masks none.
  static int64_t turns_together(int64_t turns, int64_t most) {
    for (int64_t n = std::min(turns, most); 2 * n > most; n--)
      if (turns % n == 0) return n;
    return std::min(turns, most);
  }
  // Neighbouring invocations copy neighbours in memory.
  UOp fill(const Window& w, const UOp& memory) {
    const int64_t workers = extent(invocations_), piece = w.piece(), wide = piece / w.element;
    const int64_t pieces = w.bytes() / piece, turns = ceil_div(pieces, workers);
    const int64_t together = turns_together(turns, kUnrolledBytes / piece);
    const int64_t loops = ceil_div(turns, together);
    const auto own = [&](int64_t n, AxisKind kind) {
      return range(index_const(n), next_id_++, kind);
    };
    std::vector<UOp> ranges;
    if (loops > 1) ranges.push_back(own(loops, AxisKind::Loop));
    if (together > 1) ranges.push_back(own(together, AxisKind::Lane));
    UOp at = flat_index(invocations_, flat_index(ranges)), valid;
    if (loops * together * workers != pieces) {
      valid = lt(at, index_const(pieces));
      at = where(valid, at, index_const(pieces - 1));
    }
    const UOp lane = ranges.emplace_back(own(wide, AxisKind::Lane));
    const int64_t of_stretch = w.pitch / piece;
    const UOp stretch = w.joined || w.count == 1 ? index_const(0) : floordiv(at, of_stretch);
    UOp from = w.first(stretch, w.element) - w.skipped(stretch, w.element);
    from = from + (at - stretch * of_stretch) * wide;
    const UOp inside = simplify(lt(from, index_const(w.memory()->get<ParamArg>().count)));
    const UOp place =
        make_index(w.memory(), simplify(from + lane), inside->is_const() ? UOp() : inside);
    return make_end(make_store(make_index(memory, at * wide + lane, valid), make_load(place)),
                    ranges);
  }

  // An element of the copy, or some bytes of one.
  static UOp read(const Window& w, const UOp& load, const UOp& memory) {
    const int64_t bytes = bytes_of_load(load), of_element = w.element / bytes;
    const UOp row = w.apart ? w.row() : index_const(0);
    const UOp stretch = w.joined ? index_const(0) : row;
    const UOp offset = simplify(load->src(0)->src(1) - w.first(row, bytes));
    const int64_t pitch = w.joined ? w.apart : w.pitch;
    const UOp at = simplify(row * (pitch / bytes) + w.skipped(stretch, bytes) + offset);
    if (of_element == 1) return make_load(make_index(memory, at));
    const UOp element = make_load(make_index(memory, simplify(floordiv(at, of_element))));
    const UOp part = simplify(floormod(at, of_element) * (8 * bytes));
    const UOp bits = alu(Op::Shr, {cast(element, DType::U32), cast(part, DType::U32)});
    return cast(bits, load->dtype);
  }

  const SharedSums sums_;
  RangeDeps deps_;
  int32_t next_id_ = 0;
  const std::vector<UOp> invocations_;
};

// The sums whose steps a workgroup shares, all in one loop, where nothing else is in workgroup
// memory.
std::optional<SharedSums> shared_sums(const UOp& ast) {
  SharedSums out;
  std::vector<UOp> folded;  // by the loop and the invocations
  for (const Node* n : toposort(ast)) {
    if (n->op == Op::Shared || n->op == Op::Barrier) return {};
    if (n->op == Op::Range && kind_of(n) == AxisKind::Vector) return {};
    if (n->op != Op::Reduce) continue;
    const auto is_unrolled = [](const UOp& r) { return is_lane(kind_of(r.get())); };
    const auto is_shared = [](const UOp& r) { return kind_of(r.get()) == AxisKind::GroupReduce; };
    if (std::ranges::all_of(closed_ranges(n), is_unrolled)) continue;
    if (!std::ranges::any_of(closed_ranges(n), is_shared)) return {};
    std::vector<UOp> own;
    for (const UOp& r : closed_ranges(n))
      if (!is_unrolled(r)) own.push_back(r);
    if (!out.reduces.empty() && own != folded) return {};
    folded = std::move(own);
    out.reduces.emplace_back(n);
  }
  return out.reduces.empty() ? std::nullopt : std::optional(std::move(out));
}

// The longest loop of a sum.
UOp longest_loop(const UOp& reduce) {
  UOp longest;
  for (const UOp& r : closed_ranges(reduce.get())) {
    if (kind_of(r.get()) != AxisKind::Reduce || !r->src(0)->is_const()) continue;
    if (!longest || r->src(0)->max > longest->src(0)->max) longest = r;
  }
  return longest;
}

// Some devices end loops silently; a part has the loops that copy its windows too.
bool exceeds_loop_limit(const UOp& ast, const Target& t) {
  constexpr int64_t kLoops = 16;
  RangeDeps deps(ast);
  return t.max_loop_trips &&
         kLoops * extent(deps.list(deps.kinds(is_loop))) > int64_t(t.max_loop_trips);
}

// A loop in so many parts; the one over these.
struct Parts {
  UOp ast, loop;
};
Parts in_parts(const UOp& ast, const UOp& loop, int64_t parts) {
  const int64_t n = loop->src(0)->max / parts;
  const int32_t id = loop->get<RangeArg>().id, next = RangeDeps(ast).free_id();
  const UOp outer = range(index_const(parts), id, AxisKind::Reduce);
  if (n == 1) return {substitute(ast, {{loop, outer}}), outer};
  const UOp inner = range(index_const(n), next, AxisKind::Reduce);
  const UOp made = rebuild(ast, [&](const UOp& old, std::span<const UOp> src) -> UOp {
    if (old == loop) return outer * n + inner;
    if (old->op != Op::Reduce) return {};
    std::vector<UOp> closed{src[0]};
    for (const UOp& r : closed_ranges(old.get())) {
      closed.push_back(r == loop ? outer : r);
      if (r == loop) closed.push_back(inner);
    }
    return with_src(old, closed);
  });
  return {simplify(made), outer};
}

int64_t bytes_of(const std::vector<Window>& windows, const Target& target) {
  int64_t bytes = 0;
  for (const Window& w : windows)
    bytes += w.elements() * target.held_bytes(w.memory()->dtype);
  return bytes;
}

}  // namespace

void pass_packed_rows(Lowering& l) {
  const Target& t = l.target;
  if (!t.has_local || t.elements_together(1) == 1 || l.shares_outermost) return;
  std::optional<SharedSums> sums = shared_sums(l.ast);
  if (!sums || exceeds_loop_limit(l.ast, t)) return;
  RangeDeps deps(l.ast);
  const int64_t invocations = extent(invocations_of(*sums, deps));
  const int64_t room = std::min<int64_t>(kCopiedBytes * invocations, t.shared_bytes);
  const UOp loop = longest_loop(sums->reduces[0]);
  const int64_t steps = loop ? loop->src(0)->max : 1;
  for (int64_t parts = 1; parts <= steps; parts++) {
    if (steps % parts != 0) continue;
    UOp ast = l.ast;
    if (parts > 1) {
      Parts made = in_parts(l.ast, loop, parts);
      ast = made.ast;
      sums = shared_sums(ast);
      sums->around = made.loop;
    }
    const std::vector<Window> windows = Windows(*sums, ast, t).find();
    if (windows.empty()) return;
    if (bytes_of(windows, t) > room) continue;
    l.ast = substitute(ast, Copies(*sums, ast).of(windows));
    return;
  }
}

}  // namespace tuff::kernel
