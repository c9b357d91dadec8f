#include "kernel/analysis/kept_rows.h"

#include <algorithm>
#include <set>

#include "base/contains.h"
#include "ir/kernel_floor.h"

namespace tuff::kernel {

using namespace ir;

namespace {

int32_t number_of(const Node* memory) { return memory->get<SharedArg>().number; }

// Loads of kept rows that a fill makes by itself, not below reductions.
std::vector<const Node*> own_loads(const UOp& end) {
  std::vector<const Node*> out;
  const auto enters = [](const Node* n) { return n->op != Op::End && n->op != Op::Reduce; };
  const std::vector<UOp> value{end->src(0)->src(1)};
  for (const Node* n : toposort_gated(value, enters)) {
    const Node* memory = n->op == Op::Load ? accessed_memory(n) : nullptr;
    if (memory && memory->op == Op::Shared) out.push_back(n);
  }
  return out;
}
bool is_of_row(const Node* n, const Node* row) {
  return n->op == Op::Load && accessed_memory(n) == row;
}
// What walks the elements of a row.
RangeMask columns_of(const UOp& end, RangeDeps& deps) {
  RangeMask own = 0;
  for (const UOp& r : closed_ranges(end.get())) own |= deps.bit(r);
  return own;
}

}  // namespace

const Node* filled_memory(const Node* end) {
  return without_after(end->src(0)->src(0)->src(0).get());
}
bool fills_row(const Node* n) {
  if (n->op != Op::End || n->src(0)->src(0)->op != Op::Index) return false;
  return filled_memory(n)->op == Op::Shared;
}

std::vector<const Node*> nodes_of(const UOp& value) {
  std::vector<const Node*> out, stack{value.get()};
  std::set<const Node*> seen;
  while (!stack.empty()) {
    const Node* n = stack.back();
    stack.pop_back();
    if (n->op == Op::End || !seen.insert(n).second) continue;
    out.push_back(n);
    for (const UOp& s : n->src()) stack.push_back(s.get());
  }
  return out;
}

UOp fill_of(const UOp& ast, int32_t number) {
  for (const Node* n : toposort(ast)) {
    if (fills_row(n) && number_of(filled_memory(n)) == number) return UOp(n);
  }
  return {};
}

std::vector<UOp> complete_before(const UOp& ast, const UOp& end, const Node* row, RangeDeps& deps) {
  const UOp before = fill_of(ast, number_of(row));
  // Lanes that fills walk beside their columns are rows.
  const RangeMask rows =
      deps.of(before) | (columns_of(before, deps) & columns_of(end, deps) & deps.kinds(is_lane));
  std::vector<UOp> out;
  for (const Node* n : toposort(ast)) {
    const bool fills = fills_row(n);
    if ((!fills && n->op != Op::Reduce) || n == end.get() || deps.of(UOp(n)) & ~rows) continue;
    const std::vector<const Node*> own = nodes_of(fills ? n->src(0)->src(1) : UOp(n));
    if (std::ranges::none_of(own, [&](const Node* x) { return is_of_row(x, row); })) continue;
    // A sum over slabs is complete after all of them have been filled.
    if (columns_of(UOp(n), deps) & deps.of(end)) continue;
    if (!contains(toposort(UOp(n)), end.get())) out.emplace_back(n);
  }
  return out;
}

namespace {

// Whether `end` may be stored to the memory of `row`, which it reads.
bool may_overwrite(const UOp& ast, const UOp& end, const Node* row, RangeDeps& deps) {
  const UOp& place = end->src(0)->src(0);
  const Node* filled = filled_memory(end.get());
  if (!(row->dtype == filled->dtype) ||
      row->get<SharedArg>().count != filled->get<SharedArg>().count)
    return false;
  const std::vector<const Node*> loads = own_loads(end);
  std::set<const Node*> known(loads.begin(), loads.end());
  for (const Node* load : loads) {
    const UOp& index = load->src(0);
    if (is_of_row(load, row) && (index->src_count > 2 || !(index->src(1) == place->src(1))))
      return false;
  }
  for (const UOp& x : complete_before(ast, end, row, deps)) {
    for (const Node* n : nodes_of(x->op == Op::End ? x->src(0)->src(1) : x)) known.insert(n);
  }
  return std::ranges::all_of(
      toposort(ast), [&](const Node* n) { return !is_of_row(n, row) || known.contains(n); });
}

// The row that `end` may be stored to, of several the first that is not `named`; null: none.
const Node* overwritten(const UOp& ast, const UOp& end, const std::set<int32_t>& named,
                        RangeDeps& deps) {
  if (end->src(0)->src(0)->src_count > 2) return nullptr;
  std::set<const Node*> tried;
  for (const Node* load : own_loads(end)) {
    const Node* row = without_after(load->src(0)->src(0).get());
    if (named.contains(number_of(row)) || !tried.insert(row).second) continue;
    if (may_overwrite(ast, end, row, deps)) return row;
  }
  return nullptr;
}

}  // namespace

std::map<int32_t, int32_t> overwritten_rows(const UOp& ast) {
  std::map<int32_t, int32_t> out;
  std::set<int32_t> named;
  RangeDeps deps(ast);
  for (const Node* n : toposort(ast)) {
    if (!fills_row(n)) continue;
    const int32_t filled = number_of(filled_memory(n));
    const Node* row = named.contains(filled) ? nullptr : overwritten(ast, UOp(n), named, deps);
    if (!row) continue;
    named.insert({filled, number_of(row)});
    out.emplace(filled, number_of(row));
  }
  return out;
}

int64_t row_pitch(const UOp& memory) {
  constexpr int64_t kPadBytes = 16;
  return memory->get<SharedArg>().count + kPadBytes / int64_t(size_bytes(memory->dtype));
}

}  // namespace tuff::kernel
