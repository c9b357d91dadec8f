// Search in what is sorted, counts of values, and what is different.
#include <algorithm>
#include <cmath>

#include "base/arith.h"
#include "base/check.h"
#include "engine/realize/capture.h"
#include "tensor/impl.h"
#include "tensor/order.h"
#include "tensor/positions.h"
#include "tensor/scans.h"
#include "tensor/scatter.h"

namespace tuff {

using detail::counter;
using detail::self;
using detail::text;

namespace {

constexpr int64_t kLeastBlock = 256;  // of elements that are counted one after the other

void require_waiting(const char* what) {
  if (engine::Capture::current())
    fail<InvalidArgument>(
        "{}: how many elements it has depends on data, which a captured graph replays as it was: "
        "call it outside of the Jit",
        what);
}

// What stands beside each of 0..bins-1 in a vector of positions, added up; what is outside counts
// for nothing. In blocks of about as many elements as there are bins, which are added up at the
// same time.
Tensor sums_of_bins(const Tensor& bin, const Tensor& weights, int64_t bins) {
  const int64_t n = bin.size(0), length = std::max(bins, kLeastBlock), blocks = ceil_div(n, length);
  const Sizes cut{blocks, length};
  const std::vector<int64_t> rest{0, blocks * length - n};
  const Tensor none = Tensor::zeros({blocks, bins}, {weights.dtype(), weights.device()});
  const Tensor sums = detail::scattered(none, weights.pad(rest).reshape(cut),
                                        bin.pad(rest, -1).reshape(cut), 1, ir::Op::Add);
  return detail::own_sum("bincount", sums, {0});
}

// How many counts a vector asks for.
int64_t bins_of(const Tensor& x, int64_t minlength) {
  detail::require_integers("bincount", x);
  if (x.dim() != 1) fail<ShapeError>("bincount: {} is no vector", text(x.sizes()));
  if (minlength < 0) fail<InvalidArgument>("bincount: minlength {} is negative", minlength);
  require_waiting("bincount");
  if (x.numel() == 0) return minlength;
  detail::require_inside({"bincount", 0, INT32_MAX, "value"}, x);
  const Tensor wide = x.cast(DType::I64), least = wide.min(), most = wide.max();
  Tensor::realize({least, most});
  const int64_t low = least.to_vector<int64_t>()[0], high = most.to_vector<int64_t>()[0];
  if (low < 0 || high >= INT32_MAX)
    fail<IndexError>("bincount: value {} is outside 0..{}", low < 0 ? low : high, INT32_MAX - 1);
  return std::max(minlength, high + 1);
}

// The runs of equal neighbours of a vector with elements.
struct EqualRuns {
  Tensor number;  // of the run, for each element
  Tensor begin, length;
};
EqualRuns runs_of(const Tensor& row, const std::vector<Tensor>& also_wanted) {
  const int64_t n = row.numel();
  const Tensor here = counter(n, 0, 1, row.device());
  const Tensor begins = (row != row.roll({1}, {0})) | (here == 0);
  EqualRuns r;
  r.number = (detail::running(ir::Op::Add, begins.cast(here.dtype()), 0) - 1).contiguous();
  std::vector<Tensor> wanted = also_wanted;
  wanted.push_back(r.number);
  Tensor::realize(wanted);
  const auto count = int64_t(r.number[n - 1].item()) + 1;
  const Tensor each = counter(count, 0, 1, row.device());
  r.begin = detail::count_before(r.number, each, false).contiguous();
  r.length = detail::count_before(r.number, each, true) - r.begin;
  return r;
}

UniqueElements unique_of_none(const Tensor& x) {
  const TensorOptions places{DType::I32, x.device()};
  return {Tensor::zeros({0}, {x.dtype(), x.device()}), Tensor::zeros(x.sizes(), places),
          Tensor::zeros({0}, places)};
}

}  // namespace

Tensor TensorSorting::searchsorted(const Tensor& values, bool right) const {
  const Tensor& sorted = self(this);
  detail::require_same_device("searchsorted", sorted, values);
  detail::require_numbers("searchsorted", sorted.sizes());
  detail::require_numbers("searchsorted", values.sizes());
  if (sorted.dim() == 1) {
    const Tensor flat = values.reshape({values.numel()});
    return detail::count_before(sorted, flat, right).reshape(values.sizes());
  }
  Sizes own = sorted.sizes(), other = values.sizes();
  if (!own.empty()) own.pop_back();
  if (!other.empty()) other.pop_back();
  if (sorted.dim() != values.dim() || sorted.dim() == 0 || !detail::same(own, other))
    fail<ShapeError>("searchsorted: {} is neither a vector nor {} except for the last axis",
                     text(sorted.sizes()), text(values.sizes()));
  return detail::count_before(sorted, values, right);
}

Tensor TensorSorting::bucketize(const Tensor& boundaries, bool right) const {
  if (boundaries.dim() != 1)
    fail<ShapeError>("bucketize: boundaries {} are no vector", text(boundaries.sizes()));
  return boundaries.searchsorted(self(this), right);
}

// Few are compared one by one; among many each is looked for in order.
Tensor TensorSorting::isin(const Tensor& elements, bool invert) const {
  const Tensor& x = self(this);
  detail::require_same_device("isin", x, elements);
  detail::require_numbers("isin", elements.sizes());
  const DType t = promote(x.dtype(), elements.dtype());
  const Tensor value = x.cast(t), among = elements.reshape({elements.numel()}).cast(t);
  const int64_t n = among.numel();
  Tensor found;
  if (n <= 32) {
    found = (value.unsqueeze(-1) == among).any({-1});
  } else {
    const Tensor order = among.detach().sort().first;
    const Tensor place = order.searchsorted(value).clamp({}, n - 1);
    found = order.take(place) == value;
  }
  return invert ? ~found : found;
}

Tensor TensorSorting::bincount(int64_t minlength) const {
  const int64_t bins = bins_of(self(this), minlength);
  const Tensor bin = self(this).cast(DType::I32);
  return sums_of_bins(bin, bin.full_like(1), bins);
}
Tensor TensorSorting::bincount(const Tensor& weights, int64_t minlength) const {
  const Tensor& x = self(this);
  detail::require_same_device("bincount", x, weights);
  if (!detail::same(x.sizes(), weights.sizes()))
    fail<ShapeError>("bincount: weights {} for a vector {}", text(weights.sizes()),
                     text(x.sizes()));
  const int64_t bins = bins_of(x, minlength);
  return detail::computed_wide(weights, [&](const Tensor& w) {
    return sums_of_bins(x.cast(DType::I32), w, bins);
  });
}

Tensor TensorSorting::histc(int64_t bins, double min, double max) const {
  if (bins < 1) fail<InvalidArgument>("histc: {} bins", bins);
  if (!(std::isfinite(min) && std::isfinite(max) && min <= max))
    fail<InvalidArgument>("histc: {}..{} is no finite range", min, max);
  const Tensor& given = self(this);
  detail::require_numbers("histc", given.sizes());
  return detail::computed_wide(given.detach(), [&](const Tensor& all) {
    const Tensor x = all.reshape({all.numel()});
    Tensor low = Tensor::full({}, min, {x.dtype(), x.device()}), high = low.full_like(max);
    if (x.numel() == 0) return Tensor::zeros({bins}, {x.dtype(), x.device()});
    if (min == max) {
      const Tensor least = x.min(), most = x.max(), one_value = least == most;
      low = Tensor::where(one_value, least - 1, least);
      high = Tensor::where(one_value, most + 1, most);
    }
    // The ends of parts, without the first one; the last is exact.
    const Tensor k = Tensor::arange(1, bins + 1, 1, {x.dtype(), x.device()});
    const Tensor ends = Tensor::where(k == bins, high, low + (high - low) * k / double(bins));
    const Tensor part = detail::count_before(ends.contiguous(), x, true);
    const Tensor inside = (x >= low) & (x <= high);
    const Tensor bin = Tensor::where(inside, part.clamp({}, bins - 1), -1);
    return sums_of_bins(bin, bin.full_like(1), bins).cast(x.dtype());
  });
}

UniqueElements TensorSorting::unique() const {
  const Tensor x = self(this).detach();
  require_waiting("unique");
  detail::require_numbers("unique", x.sizes());
  if (x.numel() == 0) return unique_of_none(x);
  const Tensor row = x.reshape({x.numel()});
  const Tensor order = detail::stable_order(detail::order_keys(row)).contiguous();
  const Tensor sorted = detail::taken(row, order).contiguous();
  const EqualRuns r = runs_of(sorted, {order, sorted});
  const Tensor inverse = detail::taken(r.number, detail::inverse_order(order));
  return {detail::taken(sorted, r.begin), inverse.reshape(x.sizes()), r.length};
}

namespace {

// (..., n) of keys: for each how many different ones are below it.
Tensor dense_ranks(const Tensor& keys) {
  const Tensor order = detail::stable_order(keys).contiguous();
  const Tensor sorted = detail::taken(keys, order).contiguous();
  const Tensor here = counter(keys.size(-1), keys.dim() - 1, keys.dim(), keys.device());
  const Tensor begins = (sorted != sorted.roll({1}, {-1})) & (here > 0);
  const Tensor rank = detail::running(ir::Op::Add, begins.cast(here.dtype()), -1).contiguous();
  return detail::taken(rank, detail::inverse_order(order)).contiguous();
}

// (m, n) of ranks -> (n): those of columns, by the first row in which they differ. Pairs of rows
// become one, all of them at once.
Tensor ranks_of_columns(Tensor ranks) {
  for (int64_t m = ranks.size(0); m > 1; m = (m + 1) / 2) {
    const int64_t n = ranks.size(1);
    const Tensor pairs =
        detail::pad_axis(ranks, 0, 0, m % 2).cast(DType::U64).reshape({(m + 1) / 2, 2, n});
    ranks = dense_ranks((pairs.select(1, 0) * n + pairs.select(1, 1)).contiguous());
  }
  return ranks.select(0, 0);
}

}  // namespace

UniqueElements TensorSorting::unique(int64_t dim) const {
  const Tensor x = self(this).detach();
  const int64_t d = detail::wrap_dim("unique", dim, x.dim());
  require_waiting("unique");
  detail::require_numbers("unique", x.sizes());
  const int64_t n = x.size(d), m = n ? int64_t(x.numel()) / n : 0;
  if (n > 0 && m == 0)
    fail<ShapeError>("unique: slices of axis {} of {} have no elements", d, text(x.sizes()));
  const TensorOptions places{DType::I32, x.device()};
  if (n == 0) return {x, Tensor::zeros({0}, places), Tensor::zeros({0}, places)};
  const Tensor columns = x.movedim(d, 0).reshape({n, m}).T().contiguous();
  const Tensor rank = ranks_of_columns(dense_ranks(detail::order_keys(columns))).contiguous();
  const Tensor order = detail::stable_order(rank.cast(DType::U32)).contiguous();
  const EqualRuns r = runs_of(detail::taken(rank, order).contiguous(), {order, rank});
  return {x.index_select(d, detail::taken(order, r.begin)), rank, r.length};
}

UniqueElements TensorSorting::unique_consecutive() const {
  const Tensor x = self(this).detach();
  require_waiting("unique_consecutive");
  detail::require_numbers("unique_consecutive", x.sizes());
  if (x.numel() == 0) return unique_of_none(x);
  const Tensor row = x.reshape({x.numel()});
  const EqualRuns r = runs_of(row, {});
  return {detail::taken(row, r.begin), r.number.reshape(x.sizes()), r.length};
}

}  // namespace tuff
