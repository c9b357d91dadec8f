// Row buffers: what is expensive to compute and needed more than once for each element of a row, as
// the exponentials of a softmax are for their sum and for the quotients, is computed once, into a
// row in fast memory: the row of the output where each element is overwritten by what becomes of
// it, else scratch memory. On devices whose groups are one thread: a row is then in a part of a
// cache that no other thread needs. Elsewhere such values are computed again.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "kernel/analysis/loop_tree.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

constexpr int kMaxBuffers = 4;
constexpr int kExpensiveCost = 5;
constexpr int64_t kUnknownCacheBytes = 64 << 10;

bool is_expensive(const Node* n) { return row(n->op).cost >= kExpensiveCost && is_float(n->dtype); }
bool is_reduce_range(const UOp& r) {
  const AxisKind k = kind_of(r.get());
  return k == AxisKind::Reduce || k == AxisKind::ReduceLane;
}
bool is_output_range(const UOp& r) {
  const AxisKind k = kind_of(r.get());
  return k == AxisKind::Loop || k == AxisKind::Lane || k == AxisKind::Vector;
}

// One value at each element of a row, and the same one that a reduction computes with ranges of its
// own.
struct RowValue {
  UOp value, again;
  std::vector<UOp> own, others;  // the ranges that differ, outermost first, lanes last
  UOp output;                    // an Index of the memory that may hold it; none: scratch memory
};

// Lanes that nests share may have lower numbers than the loops around them.
std::vector<UOp> lanes_last(std::vector<UOp> ranges) {
  std::stable_partition(ranges.begin(), ranges.end(),
                        [](const UOp& r) { return is_loop(kind_of(r.get())); });
  return ranges;
}

class RowBuffers {
 public:
  RowBuffers(const UOp& ast, const Target& target) : ast_(ast), target_(target), deps_(ast) {
    for (const Node* n : toposort(ast)) {
      if (is_expensive(n)) expensive_.push_back(UOp(n));
      if (const Node* memory = accessed_memory(n); memory && memory->op == Op::Param)
        accesses_[memory->get<ParamArg>().slot].push_back(n);
      if (n->op != Op::Shared) continue;
      const SharedArg& s = n->get<SharedArg>();
      number_ = std::max(number_, s.number + 1);
      used_bytes_ += s.count * int64_t(size_bytes(n->dtype)) + kRoom;
    }
  }

  // The AST with one more buffer; empty where none is worth it.
  UOp run() {
    for (size_t a = expensive_.size(); a-- > 0;) {
      for (const UOp& b : expensive_) {
        if (const std::optional<RowValue> v = same_value(expensive_[a], b)) return buffered(*v);
      }
    }
    return {};
  }

 private:
  static constexpr int64_t kRoom = 128;  // what alignment may take

  std::optional<RowValue> same_value(const UOp& value, const UOp& again) {
    const RangeMask a = deps_.of(value), b = deps_.of(again);
    if (value == again || value->op != again->op || !(value->dtype == again->dtype)) return {};
    RowValue v{value, again, lanes_last(deps_.list(a & ~b)), lanes_last(deps_.list(b & ~a))};
    if (v.own.empty() || v.own.size() != v.others.size()) return {};
    // Lanes of both are rows that one group has at once.
    if (a & b & deps_.kinds(is_lane)) return {};
    UOpMap<UOp> map;
    for (size_t i = 0; i < v.own.size(); i++) {
      const UOp &r = v.own[i], &s = v.others[i];
      // Of a symbolic row there is room for the longest.
      const bool sized = r->src(0)->is_const() || (i == 0 && is_loop(kind_of(r.get())));
      if (!is_output_range(r) || !is_reduce_range(s) || !sized || !(r->src(0) == s->src(0)))
        return {};
      map.emplace(s, r);
    }
    const int64_t bytes = extent(v.own) * int64_t(size_bytes(value->dtype));
    const int64_t cache = target_.l2_bytes ? int64_t(target_.l2_bytes) / 2 : kUnknownCacheBytes;
    const int64_t room = int64_t(target_.shared_bytes) - used_bytes_ - kRoom;
    if (bytes > cache || !(simplify(substitute(again, map)) == simplify(value))) return {};
    v.output = output_of(v);
    return v.output || bytes <= room ? std::optional(v) : std::nullopt;
  }

  // The element of an output that may hold the value until its own is stored there: nothing else is
  // read from or stored to that memory, and the reduction has read what it wants by then.
  UOp output_of(const RowValue& v) {
    for (const auto& [slot, list] : accesses_) {
      const Node* store = list[0];
      if (list.size() != 1 || store->op != Op::Store || store->src_count != 2) continue;
      const UOp& index = store->src(0);
      if (index->src_count == 2 && index->dtype == v.value->dtype &&
          deps_.of(index) == deps_.of(v.value) && is_innermost(v, index) &&
          follows_reductions(store, v.again))
        return index;
    }
    return {};
  }
  // Else the row would be filled again for each of its elements.
  bool is_innermost(const RowValue& v, const UOp& index) {
    const LoopTree tree(ast_, deps_);
    int loop = tree.deepest(deps_.of(index));
    for (const UOp& r : v.own) {
      if (!is_loop(kind_of(r.get()))) continue;
      const UOp& inner = deps_.ranges()[size_t(loop)];
      if (!contains(v.own, inner)) return false;
      loop = tree.parent(loop);
    }
    return true;
  }
  bool follows_reductions(const Node* store, const UOp& value) const {
    const std::vector<const Node*> before = toposort(UOp(store));
    const std::set<const Node*> known(before.begin(), before.end());
    for (const Node* n : toposort(ast_)) {
      if (n->op != Op::Reduce || known.contains(n)) continue;
      if (contains(toposort(UOp(n)), value.get())) return false;
    }
    return true;
  }

  // The row is computed in a nest of loops of its own; vector lanes stay the lanes they are.
  UOp buffered(const RowValue& v) {
    UOpMap<UOp> fresh, there;
    std::vector<UOp> ranges;
    int32_t next = deps_.free_id();
    for (const UOp& r : v.own) {
      if (is_loop(kind_of(r.get()))) fresh.emplace(r, range(r->src(0), next++, AxisKind::Loop));
      ranges.push_back(fresh.count(r) ? fresh.at(r) : r);
    }
    for (size_t i = 0; i < v.own.size(); i++) there.emplace(v.own[i], v.others[i]);
    const DType t = v.value->dtype;
    const UOp memory =
        v.output ? v.output->src(0) : make(Op::Shared, t, {}, SharedArg{number_, extent(v.own)});
    const UOp offset = v.output ? v.output->src(1) : flat_index(v.own);
    const UOp place = make_index(memory, substitute(offset, fresh));
    const UOp filled = make_after(
        memory, {make_end(make_store(place, substitute(v.value, fresh)), ranges)});
    const auto element = [&](const UOp& at) { return make_load(make_index(filled, at)); };
    return substitute(ast_,
                      {{v.value, element(offset)}, {v.again, element(substitute(offset, there))}});
  }

  const UOp ast_;
  const Target& target_;
  RangeDeps deps_;
  std::vector<UOp> expensive_;
  std::map<int32_t, std::vector<const Node*>> accesses_;  // Loads and Stores by slot
  int32_t number_ = 0;
  int64_t used_bytes_ = 0;
};

}  // namespace

void pass_row_buffers(Lowering& l) {
  if (l.target.has_local) return;
  for (int i = 0; i < kMaxBuffers; i++) {
    const UOp buffered = RowBuffers(l.ast, l.target).run();
    if (!buffered) return;
    l.ast = buffered;
  }
}

}  // namespace tuff::kernel
