// Keys are sorted; equal neighbours are a segment. In blocks of 64 each element combines those of its
// segment up to itself, by a mask. A segment that lies inside of a block is stored; the first and
// the last one of each block may go on in others, and are the elements of the next, shorter level.
#include "tensor/scatter_segments.h"

#include <bit>

#include "base/arith.h"
#include "ir/gradient_rows.h"
#include "ir/scalar_eval.h"
#include "tensor/closed_form.h"
#include "tensor/order.h"
#include "tensor/scatter.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::counter;
using ir::Op;
using ir::UOp;

namespace {

constexpr int64_t kBlock = 64;

// In the order of their keys, which are places; `nowhere` is above all of them.
struct Segments {
  Tensor keys, values;  // (blocks, kBlock)
  Op op;
  uint32_t nowhere;

  Tensor combined(const Tensor& hit, const Tensor& of) const {
    const Tensor nothing =
        detail::derive(of, ir::constant(ir::reduce_identity(op, of.dtype())));
    return detail::own_reduction("scatter_reduce", op, Tensor::where(hit, of, nothing), {-1});
  }
};

// (1, n), padded to whole blocks.
Segments in_blocks(const Tensor& keys, const Tensor& values, Op op, uint32_t nowhere) {
  const int64_t n = keys.size(1), blocks = ceil_div(n, kBlock), more = blocks * kBlock - n;
  const Sizes sizes{blocks, kBlock};
  // What is nowhere may hold anything.
  return {keys.pad({0, more}, nowhere).reshape(sizes).contiguous(),
          values.pad({0, more}).reshape(sizes).contiguous(), op, nowhere};
}

Tensor edge(const Tensor& x, int64_t at) { return x.narrow(1, at, 1); }

// What lies inside of blocks, stored into the target.
Tensor with_inner(const Tensor& target, const Segments& s) {
  const std::string device = s.keys.device();
  const int64_t blocks = s.keys.size(0);
  const Tensor i = counter(kBlock, 1, 3, device), j = counter(kBlock, 2, 3, device);
  const Tensor own = s.keys.unsqueeze(2), other = s.keys.unsqueeze(1);
  const Tensor totals = s.combined((own == other) & (j <= i), s.values.unsqueeze(1));
  const Tensor next = s.keys.narrow(1, 1, kBlock - 1).pad({0, 1}, s.nowhere);
  const Tensor is_end = (counter(kBlock, 1, 2, device) == kBlock - 1) | (next != s.keys);
  Tensor is_stored = is_end & (s.keys != s.nowhere);
  if (blocks > 1)
    is_stored = is_stored & (s.keys != edge(s.keys, 0)) & (s.keys != edge(s.keys, kBlock - 1));
  const Tensor place = Tensor::where(is_stored, s.keys.cast(DType::I32), -1);
  const Sizes flat{1, blocks * kBlock};
  return detail::scattered(target, totals.reshape(flat), place.reshape(flat), 1, s.op,
                           ir::Named::Once);
}

// The first and the last segment of each block, as elements.
Segments across_blocks(const Segments& s) {
  const Tensor first = edge(s.keys, 0), last = edge(s.keys, kBlock - 1);
  const Tensor of_first = s.combined(s.keys == first, s.values),
               of_last = s.combined((s.keys == last) & (last != first), s.values);
  const Sizes flat{1, 2 * s.keys.size(0)};
  return in_blocks(Tensor::cat({first, last}, 1).reshape(flat),
                   Tensor::stack({of_first, of_last}, 1).reshape(flat), s.op, s.nowhere);
}

Tensor in_order(const Tensor& target, const Tensor& value, const Tensor& index, Op op) {
  const int64_t places = target.size(1);
  const Tensor inside = (index >= 0) & (index < places);
  const Tensor keys =
      Tensor::where(inside, index.cast(DType::U32), uint64_t(places)).contiguous();
  const int bits = std::bit_width(uint64_t(places));
  const Tensor order = detail::stable_order(keys, bits).contiguous();
  Segments s = in_blocks(detail::taken(keys, order), detail::taken(value, order), op,
                         uint32_t(places));
  Tensor out = with_inner(target, s);
  while (int64_t(s.keys.size(0)) > 1) {
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

// Of 10 million elements into 1 million places an owner takes 160 ns per element of a run as long
// as the places, sorting all of them 1 ns each and some 200 us (H200).
bool detail::is_faster_sorted(int64_t n, int64_t places) {
  constexpr int64_t kLeast = int64_t(1) << 17, kPerStep = 160, kLaunches = 1250;
  return n >= kLeast && places < INT32_MAX && std::min(n, places) > n / kPerStep + kLaunches;
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
  return ruled(out, {into, given, index}, rule).cast(t);
}

}  // namespace tuff
