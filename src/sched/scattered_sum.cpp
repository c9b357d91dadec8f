#include "sched/scattered_sum.h"

#include <optional>
#include <vector>

#include "base/contains.h"
#include "ir/walk.h"
#include "sched/index_map.h"
#include "sched/scatter_parts.h"

namespace tuff::sched {

using namespace ir;

namespace {

// Along fewer places than these the comparisons cost less: several are made at once.
constexpr int64_t kLeastPlaces = 64;
// And where fewer elements than these are looked at.
constexpr double kLeastCompared = 1 << 16;

// What a node shows of another one below movement: the element at a tuple of counters.
struct Shown {
  const Node* node;
  IndexTuple index;
  std::vector<const Node*> movement;  // passed on the way, outermost first
};
std::optional<Shown> below_movement(const Node* n, IndexTuple index) {
  Shown out{n, std::move(index), {}};
  while (is_movement(out.node->op)) {
    SourceIndex s = through_movement(*out.node, out.index);
    if (s.valid) return {};
    out.movement.push_back(out.node);
    out.index = std::move(s.index);
    out.node = out.node->src(0).get();
  }
  return out;
}

bool holds_positions(DType t, int64_t n) {
  if (!is_int(t)) return false;
  const int bits = row(t).storage_bits - (is_unsigned(t) ? 0 : 1);
  return bits >= 63 || n <= int64_t(1) << bits;
}

// Whether a node counts the axis: 0, 1, 2 ... as r does.
bool counts(const Node* n, const IndexTuple& index, const UOp& r) {
  std::optional<Shown> s = below_movement(n, index);
  while (s && s->node->op == Op::Cast && holds_positions(s->node->dtype, r->src(0)->const_int()))
    s = below_movement(s->node->src(0).get(), s->index);
  return s && s->node->op == Op::Iota && s->index[0] == r;
}
bool depends_on_any(const IndexTuple& index, const UOp& r) {
  return std::ranges::any_of(index, [&](const UOp& i) { return depends_on(i, r); });
}
bool is_zero(const Node* n) {
  while (is_movement(n->op)) n = n->src(0).get();
  return n->is_const() && n->get<Scalar>().as_double() == 0;
}

// The same movement of another node.
UOp moved(UOp u, const std::vector<const Node*>& movement) {
  for (size_t i = movement.size(); i-- > 0;) u = with_src(UOp(movement[i]), {&u, 1});
  return u;
}

struct Match {
  size_t axis;  // that is counted
  UOp index;    // in the shape of the sum's source
};

std::optional<Match> match(const Node& sum, const Node& chosen) {
  const IntVec& summed = sum.get<ReduceArg>().axes;
  IndexTuple own;
  for (size_t d = 0; d < chosen.shape.size(); d++)
    own.push_back(range(chosen.shape[d].uop(), int32_t(d), AxisKind::Loop));
  const std::optional<Shown> hit = below_movement(chosen.src(0).get(), own);
  if (!hit || hit->node->op != Op::CmpEq) return {};
  for (size_t side = 0; side < 2; side++) {
    const UOp &counter = hit->node->src(side), &other = hit->node->src(1 - side);
    if (counter->shape.empty() || other->shape.empty() || !is_int(other->dtype)) continue;
    for (size_t d = 0; d < own.size(); d++) {
      if (contains(summed, int64_t(d)) || !counts(counter.get(), hit->index, own[d])) continue;
      const std::optional<Shown> index = below_movement(other.get(), hit->index);
      const std::optional<Shown> value = below_movement(chosen.src(1).get(), own);
      if (!index || !value || chosen.src(1)->shape.empty()) return {};
      if (depends_on_any(index->index, own[d]) || depends_on_any(value->index, own[d])) return {};
      return Match{d, moved(other, hit->movement)};
    }
  }
  return {};
}

// What is summed, as one axis in the place of the counted one.
UOp side_by_side(const UOp& x, const Node& sum, size_t axis) {
  const IntVec& summed = sum.get<ReduceArg>().axes;
  Pairs first;
  for (size_t d = 0; d < x->shape.size(); d++)
    first.push_back({Dim(0), d == axis ? Dim(1) : x->shape[d]});
  IntVec order;
  Shape shape = sum.shape;
  shape[axis] = Dim(1);
  for (size_t d = 0; d < x->shape.size(); d++) {
    if (contains(summed, int64_t(d))) {
      shape[axis] = shape[axis] * x->shape[d];
      continue;
    }
    if (d == axis) order.insert(order.end(), summed.begin(), summed.end());
    order.push_back(int64_t(d));
  }
  return reshape(permute(shrink(x, first), order), shape);
}

bool is_worthwhile(const Node& sum, size_t axis, const Target& target, bool atomic) {
  const double places = double(element_count(sum.shape)),
               compared = double(element_count(sum.src(0)->shape));
  if (sum.shape[axis].max() < kLeastPlaces || compared < kLeastCompared) return false;
  // Each of a GPU's invocations goes through all that is summed, one for each place or for some.
  return !target.has_local || atomic || places >= 4 * double(walkers(target));
}

}  // namespace

UOp scattered_sum(const UOp& sum, const Target& target, bool any_order) {
  const Node& chosen = *sum->src(0);
  const bool is_sum = sum->get<ReduceArg>().op == Op::Add && chosen.op == Op::Where &&
                      !is_symbolic(chosen.shape) && !chosen.src(0)->shape.empty() &&
                      is_zero(chosen.src(2).get());
  if (!is_sum) return {};
  const std::optional<Match> m = match(*sum, chosen);
  if (!m) return {};
  const DType t = is_float(sum->dtype) ? accumulator(sum->dtype) : sum->dtype;
  ScatterArg arg{Op::Add, int64_t(m->axis)};
  if (any_order && is_combined_atomically(arg, t, element_count(sum->shape), target))
    arg.named = Named::Unordered;
  if (!is_worthwhile(*sum, m->axis, target, arg.named == Named::Unordered)) return {};
  const UOp value = cast(side_by_side(chosen.src(1), *sum, m->axis), t);
  const UOp zeros = expand(reshape(constant(Scalar::of_int(t, 0)), Shape(sum->shape.size(), Dim(1))),
                           sum->shape);
  const UOp index = side_by_side(m->index, *sum, m->axis);
  return cast(scatter(zeros, value, index, arg), sum->dtype);
}

}  // namespace tuff::sched
