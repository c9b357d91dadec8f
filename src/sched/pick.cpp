#include "sched/pick.h"

#include <algorithm>
#include <iterator>

#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "ir/walk.h"

namespace tuff::sched {

using namespace ir;

namespace {

bool is_zero(const UOp& u) { return u->is_const() && !u->get<Scalar>().as_bool(); }

// Below casts of a bool and comparisons of it with 0.
UOp plain_condition(UOp c) {
  while (true) {
    if (c->op == Op::Cast && c->src(0)->dtype == DType::Bool) {
      c = c->src(0);
    } else if (c->op == Op::CmpNe && is_zero(c->src(1)) &&
               (c->src(0)->dtype == DType::Bool || c->src(0)->op == Op::Cast)) {
      const UOp& x = c->src(0);
      if (x->op == Op::Cast && x->src(0)->dtype != DType::Bool) return c;
      c = x;
    } else {
      return c;
    }
  }
}

struct Pick {
  UOp range, element;  // element == range
};

// A counter of at most 31 bits in a dtype that holds all its values.
bool counts(const UOp& side, const UOp& r) {
  return side->op == Op::Cast && side->src(0) == r && is_int(side->dtype) && side->min >= 0 &&
         side->max == r->max;
}

Pick match(const UOp& condition, const std::vector<UOp>& ranges) {
  const UOp c = plain_condition(condition);
  if (c->op != Op::CmpEq) return {};
  for (const UOp& r : ranges) {
    if (!r->src(0)->is_const()) continue;
    for (int k = 0; k < 2; k++) {
      if (counts(c->src(k), r) && !depends_on(c->src(1 - k), r)) return {r, c->src(1 - k)};
    }
  }
  return {};
}

}  // namespace

UOp pick_elements(UOp value, std::vector<UOp>& ranges) {
  if (value->op != Op::Where || !is_zero(value->src(2))) return value;
  const UOp& chosen = value->src(1);
  const Pick p = match(value->src(0), ranges);
  if (!p.range || !depends_on(chosen, p.range)) return value;
  const std::vector<const Node*> nodes = toposort(chosen);
  if (std::ranges::any_of(nodes, [](const Node* n) { return n->op == Op::Reduce; })) return value;
  // The remainder keeps the offset's bounds those of the buffer, so that it needs no wider
  // integers; the gate excludes what it would have wrapped.
  const UOp element = cast(p.element, DType::Index);
  const int64_t size = p.range->src(0)->const_int();
  const UOpMap<UOp> map{{p.range, floormod(element, size)}};
  UOp gate = logical_and(ge(element, index_const(0)), lt(element, index_const(size)));
  std::erase(ranges, p.range);
  if (chosen->op != Op::Load) return where(gate, substitute(chosen, map), value->src(2));
  const UOp& at = chosen->src(0);
  if (at->src_count > 2) gate = logical_and(substitute(at->src(2), map), gate);
  return make_load(make_index(at->src(0), substitute(at->src(1), map), gate));
}

namespace {

const Node* below_movement(const Node* n, std::vector<const Node*>* passed = nullptr) {
  while (is_movement(n->op)) {
    if (passed) passed->push_back(n);
    n = n->src(0).get();
  }
  return n;
}

bool is_counter(const Node* n) {
  n = below_movement(n);
  if (n->op == Op::Cast) n = below_movement(n->src(0).get());
  return n->op == Op::Iota;
}

// Apart from axes of one element.
bool same_elements(const Shape& a, const Shape& b) {
  const auto extents = [](const Shape& s) {
    Shape out;
    std::copy_if(s.begin(), s.end(), std::back_inserter(out), [](const Dim& d) { return d != 1; });
    return out;
  };
  return extents(a) == extents(b);
}

bool is_zero_everywhere(const Node* n) {
  n = below_movement(n);
  return n->is_const() && !n->get<Scalar>().as_bool();
}

// Whatever is picked, and however many elements by one of the index.
std::optional<ElementPick> any_picks(const Node& sum) {
  if (sum.op != Op::Reduce || sum.get<ReduceArg>().op != Op::Add || sum.dtype == DType::Bool ||
      sum.get<ReduceArg>().axes.size() != 1)
    return {};
  const Node* chosen = sum.src(0).get();
  if (chosen->op != Op::Where || !is_zero_everywhere(chosen->src(2).get())) return {};
  ElementPick p{nullptr, {chosen}};
  const Node* hit = below_movement(chosen->src(0).get(), &p.inner);
  if (hit->op != Op::CmpEq) return {};
  p.inner.push_back(hit);
  const int counter = is_counter(hit->src(0).get()) ? 0 : 1;
  if (!is_counter(hit->src(size_t(counter)).get())) return {};
  p.index = below_movement(hit->src(size_t(1 - counter)).get(), &p.inner);
  return p;
}

std::optional<ElementPick> any_pick(const Node& sum) {
  std::optional<ElementPick> p = any_picks(sum);
  return p && same_elements(p->index->shape, sum.shape) ? p : std::nullopt;
}

}  // namespace

bool picks_elements(const Node& sum) { return any_pick(sum).has_value(); }

namespace {

constexpr int64_t kLeastRow = 16;  // elements

bool is_memory(const Node* n) {
  n = below_movement(n);
  return n->op == Op::Buffer || n->op == Op::Contiguous || n->op == Op::Assign;
}

}  // namespace

std::optional<ElementPick> row_pick(const Node& sum) {
  std::optional<ElementPick> p = any_picks(sum);
  if (!p || !is_memory(p->inner[0]->src(1).get())) return {};
  const Node& hit = *p->inner[0]->src(0);
  const bool is_row = hit.op == Op::Expand && hit.src(0)->shape.back() == 1 &&
                      sum.get<ReduceArg>().axes[0] != int64_t(hit.shape.size()) - 1;
  return is_row && hit.shape.back().is_const() && hit.shape.back().value() >= kLeastRow ? p : std::nullopt;
}

const Node* picks_of(const Node& sum) {
  const std::optional<ElementPick> p = any_picks(sum);
  if (!p) return nullptr;
  const Shape& all = below_movement(p->inner[0]->src(1).get())->shape;
  if (is_symbolic(sum.shape) || is_symbolic(all)) return nullptr;
  return element_count(sum.shape) <= element_count(all) ? p->inner[0] : nullptr;
}

std::optional<ElementPick> element_pick(const Node& sum) {
  std::optional<ElementPick> p = any_pick(sum);
  if (!p) return {};
  const Node* memory = below_movement(p->inner[0]->src(1).get());
  return memory->op == Op::Buffer || memory->op == Op::Contiguous ? p : std::nullopt;
}

}  // namespace tuff::sched
