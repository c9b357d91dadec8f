// Keys are sorted; equal neighbours are a segment. In blocks of 64 each element combines those of its
// segment up to itself, by a mask. A segment that lies inside of a block is stored; the first and
// the last one of each block may go on in others, and are the elements of the next, shorter level.
#include "tensor/scatter_segments.h"

#include <algorithm>
#include <bit>

#include "base/arith.h"
#include "engine/device.h"
#include "engine/program/compile_options.h"
#include "ir/gradient_rows.h"
#include "ir/scalar_eval.h"
#include "sched/scatter_parts.h"
#include "sched/scattered_sum.h"
#include "tensor/closed_form.h"
#include "tensor/indexed.h"
#include "tensor/order.h"
#include "tensor/scatter.h"
#include "tensor/shards.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::counter;
using ir::Op;
using ir::UOp;

namespace {

constexpr int64_t kBlock = 64;

// In the order of their keys, which are places; `nowhere` is above all of them.
struct Segments {
  Tensor keys;    // (blocks, kBlock)
  Tensor values;  // (blocks, kBlock, beside)
  Op op;
  uint32_t nowhere;

  int64_t blocks() const { return keys.size(0); }
  int64_t beside() const { return values.size(2); }
  // (blocks, k, kBlock) that say which elements of a block: what these are together.
  Tensor combined(const Tensor& hit) const {
    const Tensor nothing =
        detail::derive(values, ir::constant(ir::reduce_identity(op, values.dtype())));
    const Tensor of = Tensor::where(hit.unsqueeze(3), values.unsqueeze(1), nothing);
    return detail::own_reduction("scatter_reduce", op, of, {2});
  }
};

// (1, n) and (1, n, beside), padded to whole blocks.
Segments in_blocks(const Tensor& keys, const Tensor& values, Op op, uint32_t nowhere) {
  const int64_t n = keys.size(1), blocks = ceil_div(n, kBlock), more = blocks * kBlock - n;
  // What is nowhere may hold anything.
  return {keys.pad({0, more}, nowhere).reshape({blocks, kBlock}).contiguous(),
          values.pad({0, 0, 0, more}).reshape({blocks, kBlock, values.size(2)}).contiguous(), op,
          nowhere};
}

Tensor edge(const Tensor& keys, int64_t at) { return keys.narrow(1, at, 1); }

// What lies inside of blocks, stored into the target.
Tensor with_inner(const Tensor& target, const Segments& s) {
  const std::string device = s.keys.device();
  const Tensor i = counter(kBlock, 1, 3, device), j = counter(kBlock, 2, 3, device);
  const Tensor own = s.keys.unsqueeze(2), other = s.keys.unsqueeze(1);
  const Tensor totals = s.combined((own == other) & (j <= i));
  const Tensor next = s.keys.narrow(1, 1, kBlock - 1).pad({0, 1}, s.nowhere);
  const Tensor is_end = (counter(kBlock, 1, 2, device) == kBlock - 1) | (next != s.keys);
  Tensor is_stored = is_end & (s.keys != s.nowhere);
  if (s.blocks() > 1)
    is_stored = is_stored & (s.keys != edge(s.keys, 0)) & (s.keys != edge(s.keys, kBlock - 1));
  const int64_t n = s.blocks() * kBlock;
  const Tensor place = Tensor::where(is_stored, s.keys.cast(DType::I32), -1).reshape({1, n, 1});
  const Sizes sizes{1, n, s.beside()};
  return detail::scattered(target, totals.reshape(sizes), place.expand(sizes), 1, s.op,
                           ir::Named::Once);
}

// The first and the last segment of each block, as elements.
Segments across_blocks(const Segments& s) {
  const Tensor first = edge(s.keys, 0), last = edge(s.keys, kBlock - 1);
  const Tensor edges = Tensor::cat({first, last}, 1);  // (blocks, 2)
  // A block of one segment has no other.
  const Tensor is_first = counter(2, 1, 3, s.keys.device()) == 0;
  const Tensor hit = (edges.unsqueeze(2) == s.keys.unsqueeze(1)) &
                     (is_first | (last != first).unsqueeze(2));
  const int64_t n = 2 * s.blocks();
  return in_blocks(edges.reshape({1, n}), s.combined(hit).reshape({1, n, s.beside()}), s.op,
                   s.nowhere);
}

// Rows of (1, n, beside) in that order.
Tensor rows_in_order(const Tensor& x, const Tensor& order) {
  if (x.size(2) == 1) return detail::taken(x.squeeze(2), order).unsqueeze(2);
  return detail::rows_at(x.squeeze(0), 0, order.squeeze(0)).unsqueeze(0);
}

Tensor in_order(const Tensor& target, const Tensor& value, const Tensor& index, Op op) {
  const int64_t places = target.size(1);
  const Tensor inside = (index >= 0) & (index < places);
  const Tensor keys =
      Tensor::where(inside, index.cast(DType::U32), uint64_t(places)).contiguous();
  const int bits = std::bit_width(uint64_t(places));
  const Tensor order = detail::stable_order(keys, bits).contiguous();
  Segments s = in_blocks(detail::taken(keys, order), rows_in_order(value, order), op,
                         uint32_t(places));
  Tensor out = with_inner(target, s);
  while (s.blocks() > 1) {
    s = across_blocks(s);
    out = with_inner(out, s);
  }
  return out;
}

// As of a Scatter of the same sources.
template <Op op>
std::vector<UOp> row_of(const UOp& u, const UOp& gradient) {
  const UOp same = ir::scatter(u->src(1), u->src(2), u->src(3), {op, 1, ir::Named::Any});
  std::vector<UOp> out = ir::gradients_of_sources(same, gradient);
  out.insert(out.begin(), UOp());
  return out;
}
constexpr ir::GradientRule kSums{"scatter_add", row_of<Op::Add>},
    kProducts{"scatter_mul", row_of<Op::Mul>}, kLargest{"scatter_max", row_of<Op::Max>};

}  // namespace

// On an H200 each step of an owner takes 160 ns (10 million elements into 1 million places, eight
// runs of the index beside each other); sorted, an element takes 1 ns, and the launches 200 us.
bool detail::is_faster_sorted(const Target& target, int64_t n, int64_t places, int64_t beside) {
  constexpr int64_t kLeast = int64_t(1) << 17, kStep = 160, kLaunches = 200'000;
  if (!target.has_local || n < kLeast || places >= INT32_MAX) return false;
  const int64_t runs =
      std::max<int64_t>(std::min(n / places, sched::walkers(target) / beside), 1);
  return n / runs * kStep > n + n * beside / kBlock + kLaunches;
}

bool detail::is_sorted_first(const Tensor& x, const Size& n) {
  const Size places = x.size(0), all = x.numel();
  if (!n.is_number() || !all.is_number() || all == 0) return false;
  const std::string device = x.device();
  if (first_device(device) != device) return false;
  const Target& target = engine::Device::get(device)->target();
  const DType t = is_float(x.dtype()) ? accumulator(x.dtype()) : x.dtype();
  if (!engine::is_deterministic() && sched::is_combined_atomically({Op::Add, 0}, t, all, target))
    return false;
  return is_faster_sorted(target, n, places, int64_t(all) / int64_t(places));
}

namespace {

// Sources (picked, x, index).
std::vector<UOp> row_of_picked(const UOp& u, const UOp& gradient) {
  const Tensor x = detail::tensor_of(u->src(1), u), index = detail::tensor_of(u->src(2), u),
               g = detail::tensor_of(gradient, u);
  const Size n = index.size(0), places = x.size(0);
  const Tensor into = x.full_like(0).reshape({1, places, -1});
  return detail::gradients_of_sources(
      {detail::scattered_sorted(into, g.reshape({1, n, into.size(2)}), index.reshape({1, n}), Op::Add)
           .reshape(x.sizes())});
}
constexpr ir::GradientRule kPickedRows{"picked_rows", row_of_picked};

}  // namespace

Tensor detail::picked_rows(const Tensor& picked, const Tensor& x, const Tensor& index) {
  if (!is_float(x.dtype()) || !is_sorted_first(x, index.size(0))) return picked;
  return ruled(picked, {x, index}, kPickedRows);
}

Tensor detail::scattered_sorted(const Tensor& target, const Tensor& value, const Tensor& index,
                                Op op) {
  const NoViews none;
  const DType t = target.dtype();
  const bool rounds = is_float(t) && (op == Op::Add || op == Op::Mul);
  const DType wide = rounds ? accumulator(t) : t;
  const Tensor into = target.cast(wide), given = value.cast(wide);
  const Tensor out = in_order(into.detach(), given.detach(), index, op);
  const ir::GradientRule& rule = op == Op::Add ? kSums : op == Op::Mul ? kProducts : kLargest;
  const Tensor at = index.unsqueeze(2).expand(given.sizes());
  return ruled(out, {into, given, at}, rule).cast(t);
}

}  // namespace tuff
