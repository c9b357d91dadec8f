// Floats that a Target combines by compare-exchange alone lie in memory as words: renderers need no
// pointer of another type, which drivers without addresses do not have.
#include <unordered_set>

#include "ir/kernel_floor.h"
#include "kernel/analysis/ranges.h"
#include "kernel/pipeline.h"

namespace tuff::kernel {

using namespace ir;

namespace {

std::unordered_set<const Node*> exchanged_memory(const UOp& ast, const TargetFeatures& f) {
  std::unordered_set<const Node*> out;
  for (const Node* n : toposort(ast)) {
    const auto* combined = n->op == Op::Store ? std::get_if<ReduceArg>(&n->arg) : nullptr;
    if (!combined || n->src(1)->dtype != DType::F32) continue;
    if (combined->op != Op::Add || !f.atomic_f32_add) out.insert(accessed_memory(n));
  }
  return out;
}

}  // namespace

void pass_atomic_words(Lowering& l) {
  const auto exchanged = exchanged_memory(l.ast, l.target.features);
  if (exchanged.empty()) return;
  const auto is_exchanged = [&](const UOp& place) {
    return place->op == Op::Index && exchanged.contains(without_after(place->src(0).get()));
  };
  l.ast = rebuild(l.ast, [&](const UOp& old, std::span<const UOp> src) -> UOp {
    if (exchanged.contains(old.get()))
      return make(Op::Param, DType::U32, {}, old->get<ParamArg>());
    if (is_exchanged(old)) return make(Op::Index, DType::U32, src);
    if (old->op == Op::Load && is_exchanged(old->src(0)))
      return bitcast(make_load(src[0]), old->dtype);
    return {};
  });
}

}  // namespace tuff::kernel
