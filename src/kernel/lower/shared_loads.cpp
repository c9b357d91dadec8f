// Loads that all invocations of a workgroup would do alike, divided among them: where the workgroup
// is one subgroup and a register tile is as wide as that, lane i loads what the tile's lane i needs
// and hands it round. One load takes the place of as many as the subgroup has lanes.
#include <array>

#include "ir/walk.h"
#include "kernel/analysis/ranges.h"
#include "kernel/analysis/subgroup.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

bool differs_between_invocations(const UOp& u) {
  for (const Node* n : toposort(u)) {
    if (n->op == Op::Special && n->get<SpecialArg>().space != 'g') return true;
    if (n->op == Op::Load) return true;  // an offset that is read: it may differ
  }
  return false;
}

}  // namespace

void pass_shared_loads(Lowering& l) {
  const int64_t width = l.target.subgroup_size;
  const std::array<uint32_t, 3> one_subgroup{l.target.subgroup_size, 1, 1};
  if (!shares_loads(l.target, DType::F32) || l.out.local != one_subgroup) return;
  RangeDeps deps(l.ast);
  const RangeMask tiles = deps.kinds(AxisKind::Lane);
  const UOp lane = make(Op::Special, DType::Index, {index_const(width)}, SpecialArg{'s', 0});
  l.ast = rebuild(l.ast, [&](const UOp& old, std::span<const UOp> src) -> UOp {
    if (old->op != Op::Load || old->src(0)->op != Op::Index) return {};
    const UOp& index = old->src(0);
    if (index->src(0)->op != Op::Param || !shares_loads(l.target, old->dtype)) return {};
    for (const UOp& r : deps.list(deps.of(old) & tiles)) {
      if (!r->src(0)->is_const_int(width) || differs_between_invocations(index)) continue;
      const UOp own = rebuild(
          src[0], [&](const UOp& x, std::span<const UOp>) -> UOp { return x == r ? lane : UOp(); });
      return make(Op::Shuffle, old->dtype, {with_src(old, std::array{own}), r});
    }
    return {};
  });
}

}  // namespace tuff::kernel
