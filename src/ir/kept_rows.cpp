#include "ir/kept_rows.h"

#include <algorithm>

#include "ir/walk.h"

namespace tuff::ir {

const Node* fill_read_by(const Node* load) {
  if (load->op != Op::Load || load->src(0)->op != Op::Index) return nullptr;
  const Node* memory = load->src(0)->src(0).get();
  if (memory->op != Op::After || memory->src(0)->op != Op::Shared) return nullptr;
  return memory->src(1)->op == Op::End ? memory->src(1).get() : nullptr;
}

UOp without_kept_rows(const UOp& ast) {
  const std::vector<const Node*> order = toposort(ast);
  const auto is_kept = [](const Node* n) { return n->op == Op::Shared; };
  if (std::none_of(order.begin(), order.end(), is_kept)) return ast;
  std::unordered_map<const Node*, UOp> mapped;
  std::vector<UOp> src;
  for (const Node* n : order) {
    src.clear();
    for (const UOp& s : n->src()) src.push_back(mapped.at(s.get()));
    if (const Node* end = fill_read_by(n)) {
      TUFF_CHECK(end->src_count == 2 && end->src(0)->src(0)->src(1) == end->src(1),
                 "a kept row is filled along its one column");
      const UOp value = mapped.at(end->src(0)->src(1).get());
      mapped.emplace(n, substitute(value, {{mapped.at(end->src(1).get()), src[0]->src(1)}}));
    } else {
      mapped.emplace(n, with_src(UOp(n), src));
    }
  }
  return mapped.at(ast.get());
}

}  // namespace tuff::ir
