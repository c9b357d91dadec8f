#include "sched/parts.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <numeric>
#include <span>

#include "base/arith.h"
#include "base/check.h"
#include "base/contains.h"
#include "base/cost.h"
#include "base/split_mix.h"
#include "ir/scalar_eval.h"
#include "ir/walk.h"
#include "sched/kept_cost.h"

namespace tuff::sched {

using namespace ir;

namespace {

bool all_const(const Shape& s) {
  return std::all_of(s.begin(), s.end(), [](const Dim& d) { return d.is_const(); });
}

int64_t reduced_count(const Node& reduce) {
  return element_count(reduce.src(0)->shape) / std::max<int64_t>(element_count(reduce.shape), 1);
}

void check_parts(const Node& reduce, const Parts& p) {
  auto refuse = [&](const std::string& why) { fail<InvalidArgument>("{}: {}", to_string(p), why); };
  if (reduce.op != Op::Reduce) refuse("it is no reduction");
  const Shape& shape = reduce.src(0)->shape;
  const IntVec& axes = reduce.get<ReduceArg>().axes;
  if (p.axis < 0 || p.axis >= int64_t(shape.size())) refuse("there is no such axis");
  if (!contains(axes, p.axis)) refuse("the axis is not reduced");
  if (!reduce.device) refuse("nothing says where the parts' results are stored");
  if (!all_const(shape)) refuse("an axis has a symbolic size");
  const int64_t extent = shape[size_t(p.axis)].value();
  // A part of one element of the axis has others to reduce.
  const int64_t least = reduced_count(reduce) > extent ? 1 : 2;
  if (p.length < least || p.length >= extent)
    refuse(extent <= least ? "the axis is too short"
                           : fmt::format("a part has {} to {} elements", least, extent - 1));
}

// What is stored between the kernels is not rounded to half a word.
DType stored_type(DType t) { return is_float(t) && size_bytes(t) < 4 ? DType::F32 : t; }

UOp longer(const UOp& x, int64_t axis, int64_t by) {
  Pairs pairs(x->shape.size(), {Dim(0), Dim(0)});
  pairs[size_t(axis)].b = Dim(by);
  return pad(x, pairs);
}
// Elements past the end, which change nothing: what is added is 0, and of a product each factor, so
// that it stays one.
UOp with_neutral(const UOp& x, int64_t axis, int64_t by, Op op) {
  if (op == Op::Add) {
    if (x->op == Op::Cast) return cast(with_neutral(x->src(0), axis, by, op), x->dtype);
    const bool factors = x->op == Op::Mul && std::ranges::all_of(x->src(), [&](const UOp& s) {
                           return s->shape == x->shape;
                         });
    if (!factors) return longer(x, axis, by);
    return alu(Op::Mul, {longer(x->src(0), axis, by), longer(x->src(1), axis, by)});
  }
  const UOp always = expand(
      reshape(constant(Scalar::of_int(DType::Bool, 1)), Shape(x->shape.size(), Dim(1))), x->shape);
  return where(longer(always, axis, by), longer(x, axis, by),
               constant(reduce_identity(op, x->dtype)));
}

// How the parts' results lie in memory. Tiles of a panel have long axes in their vectors' lanes:
// they are stored whole if these are innermost. Planes are read beside each other by what follows.
IntVec stored_order(const Shape& results, const Parts& p, int64_t part_axis) {
  constexpr int64_t kShort = 16;
  IntVec order(results.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rank = [&](int64_t a) {
    const bool is_last = p.order == PartOrder::Planes || results[size_t(a)].max() >= kShort;
    return a == part_axis ? 0 : is_last ? 2 : 1;
  };
  if (p.order == PartOrder::Panels || p.order == PartOrder::Planes)
    std::ranges::stable_sort(order, {}, rank);
  return order;
}

}  // namespace

std::string to_string(const Parts& p) {
  static constexpr const char* orders[] = {"", ",turns", ",panels", ",planes"};
  return fmt::format("parts({},{}{})", p.axis, p.length, orders[size_t(p.order)]);
}

UOp in_parts(const UOp& n, const Parts& p) {
  check_parts(*n, p);
  const ReduceArg& arg = n->get<ReduceArg>();
  const DType stored_as = stored_type(n->dtype);
  const int64_t extent = n->src(0)->shape[size_t(p.axis)].value();
  const int64_t count = ceil_div(extent, p.length), past = count * p.length - extent;
  UOp x = past ? with_neutral(n->src(0), p.axis, past, arg.op) : n->src(0);
  if (stored_as != n->dtype) x = cast(x, stored_as);
  const bool turns = p.order == PartOrder::Turns;
  Shape wide = x->shape;
  wide[size_t(p.axis)] = Dim(turns ? p.length : count);
  wide.insert(wide.begin() + p.axis + 1, Dim(turns ? count : p.length));
  const int64_t part_axis = turns ? p.axis + 1 : p.axis;
  IntVec first{turns ? p.axis : p.axis + 1};
  for (int64_t a : arg.axes) {
    if (a != p.axis) first.push_back(a > p.axis ? a + 1 : a);
  }
  UOp partial = reduce(arg.op, reshape(x, wide), first);
  const IntVec order = stored_order(partial->shape, p, part_axis);
  partial = make(Op::Contiguous, stored_as, {permute(partial, order)});
  IntVec inverse(order.size());
  for (size_t i = 0; i < order.size(); i++) inverse[size_t(order[i])] = int64_t(i);
  const UOp sum = permute(reduce(arg.op, partial, {inverse[size_t(part_axis)]}), inverse);
  return reshape(stored_as == n->dtype ? sum : cast(sum, n->dtype), n->shape);
}

namespace {

// How many outputs an element of a factor is used for.
int64_t reuse(const Node& factor, std::span<const int64_t> reduced) {
  int64_t n = 1;
  for (size_t a = 0; factor.op == Op::Expand && a < factor.shape.size(); a++) {
    const bool shared = factor.src(0)->shape[a] == 1 && !(factor.shape[a] == 1);
    if (shared && !contains(reduced, int64_t(a))) n *= factor.shape[a].max();
  }
  return n;
}
}  // namespace

bool is_matrix_product(const Node& reduce, int64_t least_reuse) {
  const ReduceArg& arg = reduce.get<ReduceArg>();
  const Node* product = through_casts(reduce.src(0).get());
  if (arg.op != Op::Add || product->op != Op::Mul) return false;
  return std::all_of(product->src().begin(), product->src().end(), [&](const UOp& s) {
    return reuse(*through_casts(s.get()), arg.axes) >= least_reuse;
  });
}

namespace {

// A row kernel between two products may keep its rows in fast memory (sched/keep.h): the second
// product, which sums over such a row, stays whole. Rows that are too long for that, as those of a
// vocabulary, are not kept.
bool follows_kept_rows(const Target& target, const Node& reduce) {
  const int64_t row = reduced_count(reduce);
  const double kept_bytes = double(row) * double(kRowsTogether) * double(sizeof(float));
  if (kept_bytes > double(target.l2_bytes) * kCacheShare) return false;
  const auto is_product = [](const Node* n) {
    return n->op == Op::Reduce && is_matrix_product(*n);
  };
  bool rows = false, product = false;
  for (const UOp& factor : reduce.src()) {
    for (const Node* n : toposort_gated(std::span(&factor, 1), [&](const Node* n) {
           return n->op != Op::Contiguous && !is_product(n);
         })) {
      product = product || is_product(n);
      rows = rows || (n->op == Op::Reduce && !is_product(n) && reduced_count(*n) == row);
    }
  }
  return rows && product;
}

int64_t largest_divisor(int64_t n, int64_t least, int64_t most) {
  for (int64_t d = std::min(n / 2, most); d >= least; d--) {
    if (n % d == 0) return d;
  }
  return 0;
}
int64_t smallest_divisor(int64_t n, int64_t least, int64_t most) {
  for (int64_t d = least; d <= most; d++) {
    if (n % d == 0) return d;
  }
  return 0;
}

// Whether elements beside each other along the axis are neighbours in memory, as far as the shape
// tells.
bool is_innermost(const Node& x, int64_t axis) {
  return std::all_of(x.shape.begin() + axis + 1, x.shape.end(),
                     [](const Dim& d) { return d == 1; });
}

// A product of numbers that a CPU's matrix instructions take, summed over pairs of neighbours last,
// as these want it.
bool multiplies_matrices(const Target& target, const Node& reduce) {
  const Node* product = through_casts(reduce.src(0).get());
  if (target.has_local || target.matrix_shapes.empty() || product->op != Op::Mul ||
      product->shape.empty())
    return false;
  const Node* stored = product->src(0).get();
  while (stored->op == Op::Cast || stored->op == Op::Expand || stored->op == Op::Reshape)
    stored = stored->src(0).get();
  const DType factor = stored->dtype;
  const int64_t pair = int64_t(sizeof(uint32_t) / size_bytes(factor));
  return size_bytes(factor) < 4 && product->shape.back() == Dim(pair) &&
         contains(reduce.get<ReduceArg>().axes, int64_t(product->shape.size()) - 1) &&
         std::ranges::any_of(target.matrix_shapes,
                             [&](const MatrixShape& s) { return s.a == factor; });
}

// Into how many parts a product's sum is cut so that its panels stay in the L2 cache; 0: it is not.
int64_t panel_parts(const Target& target, const Node& reduce, int64_t extent) {
  const int64_t outputs = element_count(reduce.shape), cache = int64_t(target.l2_bytes);
  const bool matrices = multiplies_matrices(target, reduce);
  const int64_t panel_bytes =
      reduced_count(reduce) * (matrices ? kSplitMatrixBytes : kSplitPanelBytes);
  const bool is_long = !target.has_local && cache > 0 && 4 * panel_bytes > 3 * cache;
  if (!is_long || outputs < kSplitMaxOutputs || !is_matrix_product(reduce, kSplitLeastReuse) ||
      follows_kept_rows(target, reduce))
    return 0;
  const int64_t least = matrices ? ceil_div(2 * panel_bytes, cache)
                                 : ceil_div(8 * panel_bytes, 3 * cache);
  // The longest axis may have fewer elements: then these are the parts, if their panels fit.
  if (extent < least) return 2 * extent >= least ? extent : 0;
  return smallest_divisor(extent, least, 2 * least);
}

// Whether the outputs of a GPU's product share what they load.
bool shares_loads(const Node& reduce) { return is_matrix_product(reduce, kThinProduct + 1); }

// How many parts a reduction of so many elements to each output is worth; 1: none. `runs`: its
// elements lie beside each other.
int64_t worthwhile_parts(const Target& target, const Node& reduce, bool runs) {
  const int64_t outputs = element_count(reduce.shape), reduced = reduced_count(reduce);
  constexpr int64_t kMostParts = 256;
  if (target.cores <= 1 && !target.has_local) return 1;
  const bool across = target.has_local && !runs;
  if (outputs < kSplitMaxOutputs && reduced > kSplitMinReduced) return kMostParts;
  if (outputs < kSplitMaxOutputs && !(across && outputs * reduced >= kSplitLeastAcross)) return 1;
  if (!target.has_local) return 1;
  const int64_t lanes = cost::gpu_cores(target) * int64_t(target.subgroup_size);
  int64_t wanted = 1, gain = kSplitLeastGain;
  if (shares_loads(reduce)) {
    gain = kSplitProductGain;
    wanted = lanes * kSplitOutputsPerLane / outputs;
  } else if (across) {
    wanted = 2 * lanes / outputs;  // a subgroup of neighbours is a workgroup, two to each core
  }
  return wanted < gain ? 1 : std::min({kMostParts, wanted, reduced / kSplitLeastPart});
}

// Parts are of one length where a number of them that divides the axis leaves no core idle; else
// the last one is shorter, and the others have a length that the device's tiles divide. 0: none.
int64_t part_length(int64_t extent, int64_t most, int64_t cores) {
  constexpr int64_t kMostStep = 1024, kStepsOfPart = 16, kFewest = 8;
  const int64_t fewest = std::clamp(most / 2, kSplitProductGain, kFewest);
  const int64_t parts = largest_divisor(extent, fewest, most);
  if (parts && (2 * parts >= most || parts >= 2 * cores)) return extent / parts;
  const int64_t least = ceil_div(extent, most);
  if (most < fewest || least < kSplitLeastPart) return parts ? extent / parts : 0;
  const auto step = int64_t(std::bit_floor(uint64_t(std::min(kMostStep, least / kStepsOfPart))));
  return ceil_div(least, step) * step;
}

}  // namespace

std::optional<Parts> choose_parts(const Node& n, const Target& target) {
  const Shape& shape = n.src(0)->shape;
  if (!n.device || !all_const(shape)) return {};
  const IntVec& axes = n.get<ReduceArg>().axes;
  const int64_t axis =
      *std::ranges::max_element(axes, {}, [&](int64_t a) { return shape[size_t(a)].value(); });
  const int64_t extent = shape[size_t(axis)].value();
  if (const int64_t parts = panel_parts(target, n, extent))
    return Parts{axis, extent / parts, PartOrder::Panels};
  const bool runs = is_innermost(*n.src(0), axis);
  const int64_t most = worthwhile_parts(target, n, runs);
  const int64_t length = most > 1 ? part_length(extent, most, cost::gpu_cores(target)) : 0;
  if (!length) return {};
  // A part is a run of memory, which a core or a workgroup walks. Across memory the invocations
  // of a GPU are parts beside each other: neighbours read neighbouring elements. Those of a product
  // are neighbours among the outputs.
  if (!target.has_local) return Parts{axis, length, PartOrder::Runs};
  if (shares_loads(n)) return Parts{axis, length, PartOrder::Planes};
  return Parts{axis, length, runs ? PartOrder::Runs : PartOrder::Turns};
}

namespace {

struct {
  std::atomic<uint64_t> tried{0}, applied{0};
} drawn;

}  // namespace

std::optional<Parts> random_parts(const UOp& n, uint64_t seed) {
  SplitMix64 random(seed ^ n->key);
  const auto below = [&](int64_t limit) { return random.below(limit); };
  constexpr int64_t kMostParts = 64;  // of an output: what is stored in between stays small
  const Shape& shape = n->src(0)->shape;
  if (below(4) == 0) return {};
  const IntVec& axes = n->get<ReduceArg>().axes;
  Parts p{};
  p.axis = below(4) ? axes[size_t(below(int64_t(axes.size())))] : below(int64_t(shape.size()));
  const Dim& extent = shape[size_t(p.axis)];
  p.length = ceil_div(extent.max(), 2 + below(std::min(extent.max() + 1, kMostParts - 1)));
  p.order = PartOrder(below(4));
  drawn.tried++;
  try {
    check_parts(*n, p);
  } catch (const InvalidArgument&) {
    return {};
  }
  drawn.applied++;
  return p;
}

PartsCounts random_parts_counts() { return {drawn.tried, drawn.applied}; }

}  // namespace tuff::sched
