// split_phases: see ranges.h.
#include <optional>

#include "ir/symbolic.h"
#include "ir/walk.h"
#include "kernel/analysis/ranges.h"

namespace tuff::kernel {

using namespace ir;

namespace {

constexpr int64_t kMostPhases = 4;  // strides of convolutions; more would leave short loops

// How indices divide a range.
struct Divided {
  int64_t by = 0;        // 0: not yet
  bool possible = true;  // by one number alone, as they stand
  bool remainder = false;
};

void note(const Node* n, RangeDeps& deps, UOpMap<Divided>& found) {
  const UOp& dividend = n->src(0);
  for (const UOp& r : deps.list(deps.of(dividend))) {
    Divided& d = found[r];
    const std::optional<int64_t> step = coefficient(dividend, r);
    const bool plain = step && (*step == 1 || *step == -1) && n->src(1)->is_const();
    const int64_t by = plain ? n->src(1)->const_int() : 0;
    d.possible = d.possible && plain && (d.by == 0 || d.by == by);
    d.by = by;
    d.remainder = d.remainder || n->op == Op::FloorMod;
  }
}

bool splits(const UOp& r, const Divided& d) {
  const UOp& size = r->src(0);
  return kind_of(r.get()) == AxisKind::Loop && size->is_const() && d.possible && d.remainder &&
         d.by > 1 && d.by <= kMostPhases && size->const_int() % d.by == 0 &&
         size->const_int() > d.by;
}

}  // namespace

UOp split_phases(const UOp& ast) {
  RangeDeps deps(ast);
  UOpMap<Divided> found;
  bool reduces = false;
  for (const Node* n : toposort(ast)) {
    reduces = reduces || n->op == Op::Reduce;
    if ((n->op == Op::FloorDiv || n->op == Op::FloorMod) && n->dtype == DType::Index)
      note(n, deps, found);
  }
  if (!reduces) return ast;
  int32_t next = deps.free_id();
  UOpMap<UOp> map;
  UOpMap<std::pair<UOp, UOp>> parts;
  for (const UOp& r : deps.ranges()) {
    const auto d = found.find(r);
    if (d == found.end() || !splits(r, d->second)) continue;
    const int64_t by = d->second.by;
    const UOp outer =
        range(index_const(r->src(0)->const_int() / by), r->get<RangeArg>().id, AxisKind::Loop);
    const UOp phase = range(index_const(by), next++, AxisKind::Loop);
    parts[r] = {outer, phase};
    map[r] = outer * by + phase;
  }
  if (map.empty()) return ast;
  return rebuild(ast, [&](const UOp& old, std::span<const UOp> src) -> UOp {
    if (const auto it = map.find(old); it != map.end()) return it->second;
    if (old->op != Op::End) return {};
    std::vector<UOp> loops{src[0]};
    for (const UOp& s : old->src().subspan(1)) {
      const auto it = parts.find(s);
      if (it == parts.end()) {
        loops.push_back(s);
      } else {
        loops.insert(loops.end(), {it->second.first, it->second.second});
      }
    }
    return with_src(old, loops);
  });
}

}  // namespace tuff::kernel
