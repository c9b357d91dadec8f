#include "sched/sum_of_sums.h"

#include <algorithm>
#include <vector>

#include "base/contains.h"
#include "ir/variants.h"
#include "ir/walk.h"
#include "sched/parts.h"

namespace tuff::sched {

using namespace ir;

namespace {

constexpr int64_t kMostTerms = 64, kFewTerms = 16;
// A sum of products may take so many times as many of them as one sum, along one axis of windows
// and along both: what is stored between the two would be read once. Borders of images stay below,
// but for small ones; the taps of a stride do not. One axis alone in one sum was slower than both
// or none.
constexpr double kMostMoreProducts = 1.36, kMostMoreOfBoth = 1.85;

bool all_const(const Shape& s) {
  return std::all_of(s.begin(), s.end(), [](const Dim& d) { return d.is_const(); });
}
bool is_sum(const Node& n) { return n.op == Op::Reduce && n.get<ReduceArg>().op == Op::Add; }
bool moves_each_once(const Node& n) {
  return n.op == Op::Reshape || n.op == Op::Permute || n.op == Op::Pad || n.op == Op::Shrink;
}
const Node* below_movement(const Node* n) {
  while (moves_each_once(*n)) n = n->src(0).get();
  return n;
}
// The axes that a sum adds up, in front; behind them its result's.
UOp terms_in_front(const Node& sum) {
  const IntVec& axes = sum.get<ReduceArg>().axes;
  const UOp& x = sum.src(0);
  IntVec order(axes.begin(), axes.end());
  Shape shape;
  for (int64_t a : axes) shape.push_back(x->shape[a]);
  for (int64_t a = 0; a < int64_t(x->shape.size()); a++) {
    if (!contains(axes, a)) order.push_back(a);
    shape.push_back(sum.shape[a]);
  }
  return reshape(permute(x, order), shape);
}

// What `n` does to its source done to x, which has axes of its own in front.
UOp moved(const Node& n, const UOp& x, int64_t front) {
  Shape shape(x->shape.begin(), x->shape.begin() + front);
  switch (n.op) {
    case Op::Reshape:
      shape.insert(shape.end(), n.shape.begin(), n.shape.end());
      return reshape(x, shape);
    case Op::Permute: {
      IntVec order;
      for (int64_t a = 0; a < front; a++) order.push_back(a);
      for (int64_t a : n.get<IntVec>()) order.push_back(a + front);
      return permute(x, order);
    }
    default: {
      Pairs pairs;
      for (const Dim& d : shape) pairs.push_back({Dim(0), n.op == Op::Pad ? Dim(0) : d});
      for (const DimPair& p : n.get<Pairs>()) pairs.push_back(p);
      return n.op == Op::Pad ? pad(x, pairs) : shrink(x, pairs);
    }
  }
}

}  // namespace

const Node* inner_sum(const Node& sum) {
  if (!is_sum(sum) || !all_const(sum.src(0)->shape)) return nullptr;
  const Node* n = below_movement(sum.src(0).get());
  if (!is_sum(*n) || n->dtype != sum.dtype || !all_const(n->src(0)->shape)) return nullptr;
  const Node* summand = through_casts(below_movement(n->src(0).get()));
  const auto terms = [](const Node& s) {
    return element_count(s.src(0)->shape) / std::max<int64_t>(element_count(s.shape), 1);
  };
  const int64_t all = terms(*n) * terms(sum);
  if (is_finite_product(*summand)) {
    const double products = double(element_count(summand->shape));
    const bool again = double(element_count(n->src(0)->shape)) > products;
    const double more = double(element_count(sum.src(0)->shape)) * double(terms(*n)) / products;
    return all <= kFewTerms || more <= (again ? kMostMoreOfBoth : kMostMoreProducts) ? n : nullptr;
  }
  return all <= kMostTerms && through_casts(n->src(0).get())->op != Op::Mul ? n : nullptr;
}

UOp one_sum(const UOp& sum) {
  const Node* inner = inner_sum(*sum);
  if (!inner) return {};
  std::vector<const Node*> path;  // from the outer sum to the inner one
  for (const Node* n = sum->src(0).get(); n != inner; n = n->src(0).get()) path.push_back(n);
  const int64_t front = int64_t(inner->get<ReduceArg>().axes.size());
  UOp x = terms_in_front(*inner);
  for (size_t i = path.size(); i-- > 0;) x = moved(*path[i], x, front);
  IntVec axes;
  for (int64_t a = 0; a < front; a++) axes.push_back(a);
  for (int64_t a : sum->get<ReduceArg>().axes) axes.push_back(a + front);
  return reshape(reduce(Op::Add, x, axes), sum->shape);
}

std::vector<UOp> products_of_sum(const UOp& sum) {
  if (!is_sum(*sum) || sum->src(0)->op != Op::Add) return {};
  std::vector<UOp> terms{sum->src(0)}, out;
  for (size_t i = 0; i < terms.size();) {
    if (terms[i]->op != Op::Add) {
      i++;
      continue;
    }
    const UOp both = terms[i];
    if (!(both->src(0)->shape == both->shape && both->src(1)->shape == both->shape)) return {};
    terms[i] = both->src(0);
    terms.push_back(both->src(1));
  }
  const bool narrow = is_float(sum->dtype) && size_bytes(sum->dtype) < 4;
  for (const UOp& t : terms) {
    out.push_back(reduce(Op::Add, narrow ? cast(t, DType::F32) : t, sum->get<ReduceArg>().axes));
    if (!is_matrix_product(*out.back(), kThinProduct + 1)) return {};
  }
  return out;
}

}  // namespace tuff::sched
