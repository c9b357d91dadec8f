// Prefetches: asks for lines of memory before they are read or written, where a kernel walks more
// of it than a core's own cache holds. What a core does so by itself ends at pages, does not see
// what is about to be written, and stands still while a row is computed that has been read.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/arith.h"
#include "ir/kernel_floor.h"
#include "kernel/analysis/ranges.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

constexpr int64_t kLineBytes = 64;  // longer lines are asked for twice
constexpr int64_t kLeastRecord = 16, kMostRecord = 1024;  // bytes of one iteration
constexpr int64_t kForeseenWalks = 16;

// A serial loop of the list.
struct Loop {
  UOp range;
  size_t begin = 0, end = 0;  // positions of its Range and its End
  int parent = -1;
  std::vector<int> inner;
  int64_t trips = 0;
  int64_t work = 0;  // what its body does besides counting, times its trips
};
bool is_work(const UOp& u) {
  const bool access = u->op == Op::Load || u->op == Op::Store;  // of memory, not of a register
  return access ? u->src(0)->op == Op::Index : is_alu(u->op) && !is_int(u->dtype);
}

// An access of an innermost loop that walks memory without gaps.
struct Stream {
  size_t at = 0;  // position of its Load or Store
  int loop = -1;
  UOp memory, offset;  // of the first lane
  bool write = false;
  int64_t step = 0;  // elements of one iteration
  int64_t lanes = 1;
  int64_t rows = 1;  // that lanes walk beside each other, for records
  int64_t element_bytes() const { return int64_t(size_bytes(memory->dtype)); }
  int64_t memory_bytes() const { return memory->get<ParamArg>().count * element_bytes(); }
  int32_t slot() const { return memory->get<ParamArg>().slot; }
};

class Prefetches {
 public:
  Prefetches(LinearKernel& k, const Target& target) : k_(k), target_(target) {
    for (size_t i = 0; i < k.ops.size(); i++) position_[k.ops[i].get()] = i;
    find_loops();
    find_streams();
  }

  void run() {
    if (streams_.empty() && records_.empty()) return;
    for (size_t l = 0; l < loops_.size(); l++) row(int(l));
    for (size_t l = 0; l < loops_.size(); l++) walk(int(l));
    if (!inserted_.empty()) rebuild_list();
  }

 private:
  void find_loops() {
    std::vector<int> open;
    for (size_t i = 0; i < k_.ops.size(); i++) {
      const UOp& u = k_.ops[i];
      if (u->op == Op::Range && is_loop(kind_of(u.get()))) {
        const int parent = open.empty() ? -1 : open.back();
        if (parent >= 0) loops_[size_t(parent)].inner.push_back(int(loops_.size()));
        open.push_back(int(loops_.size()));
        loops_.push_back({u, i, i, parent, {}, u->src(0)->is_const() ? u->src(0)->const_int() : 0});
      } else if (u->op == Op::End) {
        Loop& l = loops_[size_t(open.back())];
        l.end = i;
        l.work *= l.trips;
        open.pop_back();
      } else if (is_work(u) && !open.empty()) {
        loops_[size_t(open.back())].work++;
      }
    }
  }
  bool innermost(int l) const { return loops_[size_t(l)].inner.empty(); }

  void find_streams() {
    for (size_t l = 0; l < loops_.size(); l++) {
      if (!innermost(int(l)) || loops_[l].trips == 0) continue;
      for (size_t i = loops_[l].begin; i < loops_[l].end; i++) add_stream(int(l), i);
      find_records(int(l));
    }
  }
  // Memory that each iteration reads a record of, by several loads, as blocks of packed weights.
  void find_records(int l) {
    struct Record {
      std::vector<Stream> loads;
      int64_t bytes = 0;  // that they load of it
    };
    std::map<std::pair<int32_t, int64_t>, Record> records;  // by slot and length
    for (size_t at = loops_[size_t(l)].begin; at < loops_[size_t(l)].end; at++) {
      const UOp& u = k_.ops[at];
      const Node* memory = u->op == Op::Load ? accessed_memory(u.get()) : nullptr;
      if (!memory || memory->op != Op::Param || u->src(0)->src_count > 2) continue;
      Stream s{at, l, UOp(memory), u->src(0)->src(1)};
      const std::optional<int64_t> step = lane_stride(s.offset, loops_[size_t(l)].range);
      if (!step || *step <= 0 || s.memory_bytes() <= int64_t(target_.l2_bytes)) continue;
      s.step = *step;
      Record& r = records[{s.slot(), s.step}];
      r.bytes += lanes_within(s) * s.element_bytes();
      r.loads.push_back(std::move(s));
    }
    for (auto& [key, r] : records) {
      Stream& s = r.loads[0];
      const int64_t bytes = s.step * s.element_bytes();
      const bool known = std::ranges::any_of(
          streams_, [&](const Stream& t) { return t.loop == l && t.slot() == s.slot(); });
      if (known || bytes < kLeastRecord || bytes > kMostRecord || 2 * r.bytes < bytes) continue;
      if (!first_record(s)) continue;
      // One load of all of it is a walk, as a core foresees a few beside each other.
      const bool walks = r.loads.size() == 1 && r.bytes >= bytes;
      if (!walks || s.rows > kForeseenWalks) records_.push_back(s);
    }
  }
  // How many lanes an access has inside its record.
  int64_t lanes_within(const Stream& s) const {
    int64_t n = 1;
    for (const Node* lane : toposort(s.offset)) {
      if (lane->op != Op::Range || !is_lane(kind_of(lane))) continue;
      const std::optional<int64_t> stride = lane_stride(s.offset, UOp(lane));
      if (stride && *stride < s.step) n *= lane->src(0)->const_int();
    }
    return n;
  }
  // The offset of the first lane, beside which others have rows of their own. False: those are not
  // next to each other.
  bool first_record(Stream& s) const {
    UOpMap<UOp> none;
    const int64_t row = s.step * loops_[size_t(s.loop)].trips;
    for (const Node* n : toposort(s.offset)) {
      if (n->op != Op::Range || !is_lane(kind_of(n))) continue;
      const UOp lane(n);
      const std::optional<int64_t> stride = lane_stride(s.offset, lane);
      none.emplace(lane, int_const(lane->dtype, 0));
      if (!stride || *stride < s.step) continue;
      if (*stride != row || s.rows > 1) return false;
      s.rows = lane->src(0)->const_int();
    }
    s.offset = substitute(s.offset, none);
    return true;
  }
  void add_stream(int l, size_t at) {
    const UOp& u = k_.ops[at];
    if (u->src_count > 2) return;
    const Node* memory = accessed_memory(u.get());
    if (!memory || memory->op != Op::Param || u->src(0)->src_count > 2) return;
    Stream s{at, l, UOp(memory), u->src(0)->src(1), u->op == Op::Store};
    const std::optional<int64_t> step = lane_stride(s.offset, loops_[size_t(l)].range);
    if (!step || !first_lane(s)) return;
    s.step = *step;
    const bool long_enough = s.memory_bytes() > int64_t(target_.l2_bytes);
    if (s.step != s.lanes || s.step * s.element_bytes() < kLineBytes / 2 || !long_enough) return;
    streams_.push_back(s);
  }
  // The lanes of an offset stand side by side: its first one, and how many. False: they do not.
  bool first_lane(Stream& s) const {
    std::vector<std::pair<int64_t, UOp>> lanes;
    UOpMap<UOp> none;
    for (const Node* n : toposort(s.offset)) {
      if (n->op != Op::Range || !is_lane(kind_of(n))) continue;
      const UOp lane(n);
      const std::optional<int64_t> stride = lane_stride(s.offset, lane);
      if (!stride) return false;
      lanes.push_back({*stride, lane});
      none.emplace(lane, int_const(lane->dtype, 0));
    }
    std::ranges::sort(lanes, {}, [](const auto& lane) { return lane.first; });
    for (const auto& [stride, lane] : lanes) {
      if (stride != s.lanes) return false;
      s.lanes *= lane->src(0)->const_int();
    }
    s.offset = substitute(s.offset, none);
    return true;
  }

  // ---- rows: several loops over the same row, one after another -------------------------------
  // While a row is computed, what comes next is fetched: the next row where it is read first, this
  // one where a later loop reads or writes it.
  void row(int l) {
    std::vector<int> parts;
    for (int i : loops_[size_t(l)].inner) {
      if (innermost(i) && loops_[size_t(i)].trips > 0) parts.push_back(i);
    }
    if (parts.size() < 2) return;
    std::map<int32_t, bool> seen;  // by slot: whether it is to be written
    for (const Stream& s : streams_) {
      const auto part = std::find(parts.begin(), parts.end(), s.loop);
      if (part == parts.end()) continue;
      in_rows_.insert(s.at);
      const auto [known, first] = seen.try_emplace(s.slot(), s.write);
      if (!first && (known->second || !s.write)) continue;
      known->second = s.write;
      const std::span<const int> all(parts);
      const size_t n = size_t(part - parts.begin());
      fetch_row(s, l, n == 0 ? all : all.first(n + 1), n == 0);
    }
  }
  // Memory should never stand still: each loop asks for a part of the row, that with most work for
  // half of it and what the others leave.
  void fetch_row(const Stream& s, int around, std::span<const int> parts, bool next) {
    const std::optional<int64_t> pitch = lane_stride(s.offset, loops_[size_t(around)].range);
    const int64_t line = kLineBytes / s.element_bytes();
    const int64_t lines = ceil_div(s.step * loops_[size_t(s.loop)].trips, line);
    const int64_t row_bytes = lines * kLineBytes, ahead = target_.prefetch_bytes;
    if (!pitch || *pitch == 0 || row_bytes > int64_t(target_.l2_bytes) / 4) return;
    const int64_t rows = next || row_bytes < ahead ? ceil_div(ahead, row_bytes) : 0;
    int64_t from = 0;
    for (const auto& [loop, count] : shares(lines, parts)) {
      const int64_t trips = loops_[size_t(loop)].trips;
      fetch_part(s, loop, from * line, ceil_div(count * line, trips), rows * *pitch);
      from += count;
    }
  }
  // How many of a row's lines each loop asks for, in the order of the loops.
  std::vector<std::pair<int, int64_t>> shares(int64_t lines, std::span<const int> parts) const {
    std::vector<int> by_work(parts.begin(), parts.end());
    std::stable_sort(by_work.begin(), by_work.end(),
                     [&](int a, int b) { return loops_[size_t(a)].work > loops_[size_t(b)].work; });
    std::map<int, int64_t> count;
    int64_t left = lines;
    for (const int l : std::span(by_work).subspan(1)) {
      const int64_t trips = loops_[size_t(l)].trips, spare = (left - (lines + 1) / 2) / trips;
      const int64_t asked = std::min(std::max<int64_t>(lines / trips / 4, 1), spare) * trips;
      if (asked > 0) count[l] = asked, left -= asked;
    }
    if (left > 0) count[by_work[0]] = left;
    return {count.begin(), count.end()};
  }
  // `each` elements per iteration, beginning with `from` of the row.
  void fetch_part(const Stream& s, int loop, int64_t from, int64_t each, int64_t ahead) {
    const UOp& inner = loops_[size_t(s.loop)].range;
    const UOp& range = loops_[size_t(loop)].range;
    const DType t = s.offset->dtype;
    const UOp counter = range->dtype == t ? range : cast(range, t);
    const UOp start = substitute(s.offset, {{inner, int_const(inner->dtype, 0)}});
    const UOp place = make(Op::Add, t, {start, make(Op::Mul, t, {counter, int_const(t, each)})});
    fetch(s, loop, place, ahead + from, each);
  }

  // ---- one loop over long memory --------------------------------------------------------------
  void walk(int l) {
    std::map<int32_t, const Stream*> first;  // by slot; a store rather than a load
    for (const Stream& s : streams_) {
      if (s.loop != l || in_rows_.contains(s.at) || !walked_once(s)) continue;
      const Stream*& known = first[s.slot()];
      if (!known || (s.write && !known->write)) known = &s;
    }
    for (const auto& [slot, s] : first)
      fetch(*s, l, s->offset, target_.prefetch_bytes / s->element_bytes(), s->step);
    for (const Stream& s : records_)
      if (s.loop == l && walked_once(s)) fetch_records(s);
  }
  // Of each row; where several of them are short, the next ones'.
  void fetch_records(const Stream& s) {
    const int64_t row = s.step * loops_[size_t(s.loop)].trips;
    const int64_t far = target_.prefetch_bytes / s.element_bytes();
    const int64_t ahead = s.rows > 1 && row < 2 * far ? s.rows * row : far;
    for (int64_t r = 0; r < s.rows; r++) fetch(s, s.loop, s.offset, ahead + r * row, s.step);
  }
  // No element twice, and what lies ahead is what the loop, or its next run, comes to.
  bool walked_once(const Stream& s) const {
    const Loop& l = loops_[size_t(s.loop)];
    int64_t elements = s.step * l.trips;
    const bool is_long = elements * s.element_bytes() >= 4 * int64_t(target_.prefetch_bytes);
    const bool goes_on = l.parent >= 0 && lane_stride(s.offset, loops_[size_t(l.parent)].range) ==
                                              std::optional<int64_t>(elements * s.rows);
    if (!is_long && !goes_on) return false;
    elements *= s.rows;
    for (int p = l.parent; p >= 0; p = loops_[size_t(p)].parent)
      elements *= std::max<int64_t>(loops_[size_t(p)].range->src(0)->max, 1);
    for (const Dim& d : k_.groups) elements *= d.max();
    return elements <= s.memory->get<ParamArg>().count;
  }

  // ---- the list -------------------------------------------------------------------------------
  void fetch(const Stream& s, int loop, const UOp& offset, int64_t ahead, int64_t elements) {
    const int64_t line = kLineBytes / s.element_bytes();
    const DType t = offset->dtype;
    for (int64_t e = 0; e < elements; e += line) {
      const UOp line_at = make_index(s.memory, make(Op::Add, t, {offset, int_const(t, ahead + e)}));
      insert(make(Op::Prefetch, DType::Void, {line_at}, int64_t(s.write)), loop);
    }
  }
  // At the head of the loop's body; what does not change there, before the loop.
  void insert(const UOp& u, int loop) {
    const UOp& range = loops_[size_t(loop)].range;
    const size_t begin = loops_[size_t(loop)].begin;
    std::set<const Node*> inside;
    for (const Node* n : toposort(u)) {
      if (n == range.get()) continue;  // the loop opens where it does
      for (const UOp& x : n->src()) {
        if (x == range || inside.contains(x.get())) inside.insert(n);
      }
      const size_t wanted = inside.contains(n) ? begin : begin - 1;
      const auto at = position_.find(n);
      if (at != position_.end() && at->second <= wanted) continue;
      if (at != position_.end()) std::erase(inserted_[at->second], UOp(n));
      moved_.insert(n);
      position_[n] = wanted;
      inserted_[wanted].push_back(UOp(n));
    }
  }
  void rebuild_list() {
    std::vector<UOp> ops;
    for (size_t i = 0; i < k_.ops.size(); i++) {
      if (!moved_.contains(k_.ops[i].get())) ops.push_back(k_.ops[i]);
      if (const auto more = inserted_.find(i); more != inserted_.end())
        ops.insert(ops.end(), more->second.begin(), more->second.end());
    }
    k_.ops = std::move(ops);
  }

  LinearKernel& k_;
  const Target& target_;
  std::vector<Loop> loops_;
  std::vector<Stream> streams_, records_;
  std::set<size_t> in_rows_;                          // streams that rows have taken, by position
  std::unordered_map<const Node*, size_t> position_;  // in the list, or after what it is inserted
  std::map<size_t, std::vector<UOp>> inserted_;       // after a position of the list
  std::set<const Node*> moved_;                       // stand where they are inserted
};

}  // namespace

void pass_prefetch(Lowering& l) {
  if (l.target.prefetch_bytes == 0 || l.options.check_bounds) return;
  Prefetches(l.out, l.target).run();
}

}  // namespace tuff::kernel
