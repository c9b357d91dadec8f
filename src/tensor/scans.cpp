// Running values along an axis. Short axes in one piece, by a comparison instead of a matrix; of
// longer ones the blocks, then the same of the blocks' last values, which stand before the blocks.
#include "tensor/scans.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/arith.h"
#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::computed_wide;
using detail::counter;
using detail::self;
using ir::Op;

namespace {

constexpr int64_t kScanWhole = 256;  // axes up to here are scanned in one piece
constexpr int64_t kScanBlock = 64;   // longer ones in blocks: n * 64 operations, then the blocks'

// What does not change any element.
Number neutral(Op op, DType t) {
  if (op == Op::Add) return 0;
  if (op == Op::Mul) return 1;
  if (is_float(t)) return has_infinity(t) ? -INFINITY : -largest_value(t);
  if (t == DType::Bool || is_unsigned(t)) return 0;
  return std::numeric_limits<int64_t>::min() >> (64 - 8 * size_bytes(t));
}

// (..., n) -> (..., n, n): x[j] at (i, j) for all j <= i, else the value.
Tensor up_to_each(const Tensor& x, Number beyond) {
  const Size n = x.size(-1);
  const int64_t rank = x.dim() + 1;
  const Tensor i = counter(n, rank - 2, rank, x.device()),
               j = counter(n, rank - 1, rank, x.device());
  return Tensor::where(j <= i, x.unsqueeze(-2), x.full_like(beyond).unsqueeze(-2));
}

// A scan of the last axis: `whole` scans what is short, `join` puts what stands before a block to
// what it holds, and nothing does not change that.
template <class Whole, class Join>
Tensor in_blocks(const Tensor& x, Number nothing, const Whole& whole, const Join& join) {
  if (x.size(-1).max() <= kScanWhole) return whole(x);
  const int64_t n = x.size(-1);
  const int64_t blocks = ceil_div(n, kScanBlock);
  const Tensor padded = x.pad({0, blocks * kScanBlock - n}, nothing);
  const Tensor inner = whole(detail::unflatten(padded, x.dim() - 1, blocks, kScanBlock));
  const Tensor totals = inner.select(-1, kScanBlock - 1);
  const Tensor before = in_blocks(totals, nothing, whole, join).pad({1, -1}, nothing).unsqueeze(-1);
  return join(before, inner).flatten(-2, -1).narrow(-1, 0, n);
}

Tensor joined(Op op, const Tensor& a, const Tensor& b) {
  return op == Op::Add ? a + b : op == Op::Mul ? a * b : a.maximum(b);
}

// {the extreme so far, its last position} of the largest.
std::pair<Tensor, Tensor> running_largest(const char* what, const Tensor& x, const Tensor& keys,
                                          int64_t given) {
  const int64_t d = detail::wrap_dim(what, given, std::max<int64_t>(1, x.dim()));
  if (x.dim() == 0) return {x, Tensor::zeros({}, {DType::I32, x.device()})};
  const Tensor here = counter(x.size(d), d, x.dim(), x.device());
  const Tensor renewed = (keys == detail::running(Op::Max, keys, d)) | keys.isnan();
  const Tensor at = detail::running(Op::Max, Tensor::where(renewed, here, 0), d).contiguous();
  return {x.gather(d, at), at};
}

// Along the last axis. What is beyond an element is cut off before it is an exponential that could
// be infinite.
Tensor log_sums_whole(const Tensor& x) {
  const Tensor parts = up_to_each(x, -INFINITY);
  const Tensor largest = detail::own_reduction("logcumsumexp", Op::Max, parts, {-1}).detach();
  const Tensor m = Tensor::where(largest.isinf(), 0.0, largest);
  return detail::quick_exp(parts - m.unsqueeze(-1)).sum({-1}).log() + m;
}

}  // namespace

Tensor detail::running(Op op, const Tensor& x, int64_t d) {
  if (x.dim() == 0 || x.numel() == 0) return detail::no_view(x);
  const Number nothing = neutral(op, x.dtype());
  const auto whole = [&](const Tensor& part) {
    return own_reduction("running", op, up_to_each(part, nothing), {-1});
  };
  const auto join = [&](const Tensor& before, const Tensor& inner) {
    return joined(op, before, inner);
  };
  return in_blocks(x.transpose(d, -1), nothing, whole, join).transpose(d, -1);
}

std::pair<Tensor, Tensor> TensorSorting::cummax(int64_t d) const {
  return running_largest("cummax", self(this), self(this).detach(), d);
}
std::pair<Tensor, Tensor> TensorSorting::cummin(int64_t d) const {
  const Tensor& x = self(this);
  // ~x reverses the order of integers without the overflow that -x has.
  return running_largest("cummin", x, is_float(x.dtype()) ? x.detach().neg() : ~x, d);
}

Tensor TensorSorting::logcumsumexp(int64_t given) const {
  const int64_t d = detail::wrap_dim("logcumsumexp", given, std::max<int64_t>(1, self(this).dim()));
  return computed_wide(self(this), [&](const Tensor& x) {
    if (x.dim() == 0 || x.numel() == 0) return detail::no_view(x);
    const auto join = [](const Tensor& a, const Tensor& b) { return a.logaddexp(b); };
    return in_blocks(x.transpose(d, -1), -INFINITY, log_sums_whole, join).transpose(d, -1);
  });
}

}  // namespace tuff
