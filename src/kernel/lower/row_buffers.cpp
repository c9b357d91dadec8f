// Row buffers: what is dear to compute and needed more than once for each element of a row, as the
// exponentials of a softmax are for their sum and for the quotients, is computed once, into a row
// in fast memory: the row of the output where each element is overwritten by what becomes of it,
// else scratch memory. On devices whose groups are one thread: a row is then in a piece of a cache
// that nobody else needs. Elsewhere such values are computed again.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/symbolic.h"
#include "ir/walk.h"
#include "kernel/analysis/loop_tree.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

constexpr int kMaxBuffers = 4;
constexpr int kDearCost = 5;
constexpr int64_t kUnknownCacheBytes = 64 << 10;

bool is_dear(const Node* n) { return row(n->op).cost >= kDearCost && is_float(n->dtype); }
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

UOp flat(std::span<const UOp> ranges) {
  UOp offset = index_const(0);
  for (const UOp& r : ranges) offset = offset * r->src(0) + r;
  return offset;
}

class RowBuffers {
 public:
  RowBuffers(const UOp& ast, const Target& target) : ast_(ast), target_(target), deps_(ast) {
    for (const Node* n : toposort(ast)) {
      if (is_dear(n)) dear_.push_back(UOp(n));
      if (n->op == Op::Range) next_id_ = std::max(next_id_, n->get<RangeArg>().id + 1);
      if (n->op == Op::Load || n->op == Op::Store) add_access(n);
      if (n->op != Op::Shared) continue;
      const SharedArg& s = n->get<SharedArg>();
      number_ = std::max(number_, s.number + 1);
      used_bytes_ += s.count * int64_t(size_bytes(n->dtype)) + kRoom;
    }
  }

  // The AST with one more buffer; empty where none is worth it.
  UOp run() {
    for (size_t a = dear_.size(); a-- > 0;) {
      for (const UOp& b : dear_) {
        if (const std::optional<RowValue> v = same_value(dear_[a], b)) return buffered(*v);
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
    int64_t count = 1;
    UOpMap<UOp> map;
    for (size_t i = 0; i < v.own.size(); i++) {
      const UOp &r = v.own[i], &s = v.others[i];
      if (!is_output_range(r) || !is_reduce_range(s) || !r->src(0)->is_const() ||
          !(r->src(0) == s->src(0)))
        return {};
      count *= r->src(0)->const_int();
      map.emplace(s, r);
    }
    const int64_t bytes = count * int64_t(size_bytes(value->dtype));
    const int64_t cache = target_.l2_bytes ? int64_t(target_.l2_bytes) / 2 : kUnknownCacheBytes;
    const int64_t room = int64_t(target_.shared_bytes) - used_bytes_ - kRoom;
    if (bytes > cache || !(simplify(substitute(again, map)) == simplify(value))) return {};
    v.output = output_of(v);
    return v.output || bytes <= room ? std::optional(v) : std::nullopt;
  }

  void add_access(const Node* n) {
    const Node* index = n->src(0).get();
    if (index->op != Op::Index) return;
    const Node* memory = without_after(index->src(0).get());
    if (memory->op == Op::Param) accesses_[memory->get<ParamArg>().slot].push_back(n);
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
      if (std::find(v.own.begin(), v.own.end(), inner) == v.own.end()) return false;
      loop = tree.parent(loop);
    }
    return true;
  }
  bool follows_reductions(const Node* store, const UOp& value) const {
    const std::vector<const Node*> before = toposort(UOp(store));
    const std::set<const Node*> known(before.begin(), before.end());
    for (const Node* n : toposort(ast_)) {
      if (n->op != Op::Reduce || known.contains(n)) continue;
      for (const Node* x : toposort(UOp(n))) {
        if (x == value.get()) return false;
      }
    }
    return true;
  }

  // The row is computed in a nest of loops of its own; vector lanes stay the lanes they are.
  UOp buffered(const RowValue& v) {
    UOpMap<UOp> fresh;
    std::vector<UOp> end{UOp()};
    int64_t count = 1;
    for (const UOp& r : v.own) {
      count *= r->src(0)->const_int();
      if (is_loop(kind_of(r.get()))) fresh.emplace(r, range(r->src(0), next_id_++, AxisKind::Loop));
      end.push_back(fresh.count(r) ? fresh.at(r) : r);
    }
    UOpMap<UOp> there;
    for (size_t i = 0; i < v.own.size(); i++) there.emplace(v.own[i], v.others[i]);
    const DType t = v.value->dtype;
    const UOp memory =
        v.output ? v.output->src(0) : make(Op::Shared, t, {}, SharedArg{number_, count});
    const UOp offset = v.output ? v.output->src(1) : flat(v.own);
    const UOp place = make(Op::Index, t, {memory, substitute(offset, fresh)});
    end[0] = make(Op::Store, DType::Void, {place, substitute(v.value, fresh)});
    const UOp filled = make(Op::After, t, {memory, make(Op::End, DType::Void, end)});
    const auto element = [&](const UOp& at) {
      return make(Op::Load, t, {make(Op::Index, t, {filled, at})});
    };
    return substitute(ast_,
                      {{v.value, element(offset)}, {v.again, element(substitute(offset, there))}});
  }

  const UOp ast_;
  const Target& target_;
  RangeDeps deps_;
  std::vector<UOp> dear_;
  std::map<int32_t, std::vector<const Node*>> accesses_;  // Loads and Stores by slot
  int32_t next_id_ = 0, number_ = 0;
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
