// Sorting as a composition of kernels. Short axes by counting how many elements come before each.
// Longer ones in blocks that are counted, which are then merged in pairs: an element of the result
// finds by binary search how many elements of either run stand before it (merge path: Odeh, Green,
// Mwassi, Shmueli and Birk, 2012), so that each pass reads and writes in order and has as many
// independent parts as there are elements. The longest ones by digits (LSD radix sort, as Satish,
// Harris and Garland, 2009, split it into blocks).
#include "tensor/order.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/arith.h"
#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/scans.h"
#include "tensor/scatter.h"

namespace tuff {

using detail::counter;
using detail::taken;

namespace {

constexpr int64_t kCounted = 128;  // axes up to here, and the blocks of longer ones; a power of two
constexpr int64_t kGroup = 64;     // neighbours that search together in long runs; divides kCounted
constexpr int64_t kSearched = 1024;  // the longest runs that each element searches all of
constexpr int64_t kRadix = int64_t(1) << 17;  // axes from here on are sorted by digits of 32 bits
constexpr int kDigitBits = 4;

Tensor number_of(const Tensor& condition) {
  return detail::own_sum("sort", condition.cast(DType::I32), {-1});
}

// Of the last axis: the place of each element by n * n comparisons.
Tensor order_by_counting(const Tensor& keys) {
  const Size n = keys.size(-1);
  const int64_t rank = keys.dim() + 1;
  const Tensor i = counter(n, rank - 2, rank, keys.device()),
               j = counter(n, rank - 1, rank, keys.device());
  const Tensor own = keys.unsqueeze(-1), other = keys.unsqueeze(-2);
  return detail::inverse_order(number_of((other < own) | ((other == own) & (j < i))).contiguous());
}

// Sorted runs of `length` elements, a power of two, along the last axis of (rows, total); the last
// one may be shorter.
struct Runs {
  Tensor keys, order;
  int64_t length = 0, total = 0;
};

// What positions of the result are to the pair of runs that is merged there.
struct InPair {
  Tensor at;             // from the pair's begin on
  Tensor first, second;  // where the runs begin
  Tensor low, high;      // how many elements of the first run can stand before the position
  Tensor first_size, second_size;
};
InPair in_pair(const Runs& r, const Tensor& position) {
  InPair p;
  p.at = position & (2 * r.length - 1);
  p.first = position - p.at;
  p.second = p.first + r.length;
  p.first_size = (r.total - p.first).clamp({}, r.length);
  p.second_size = (r.total - p.second).clamp(0, r.length);
  p.low = (p.at - p.second_size).clamp(0);
  p.high = Tensor::where(p.at < p.first_size, p.at, p.first_size);
  return p;
}

// How many elements of the first run stand before the position, between `low` and `high`, which are
// at most `apart` apart: an element of it does if it is not above the one of the second run
// that would stand in its place.
Tensor split(const Runs& r, const InPair& p, const Tensor& low, const Tensor& high, int64_t apart) {
  Tensor count = low;
  for (int64_t step = int64_t(std::bit_floor(uint64_t(apart))); step > 0; step /= 2) {
    const Tensor more = count + step;
    const Tensor last = taken(r.keys, p.first + more - 1),
                 displaced = taken(r.keys, p.second + p.at - more);
    count = Tensor::where((more <= high) & (last <= displaced), more, count);
  }
  return count;
}

// Where the elements at these positions come from when each pair of runs is merged; of equal ones
// the first run's first. The positions are whole groups of neighbours: in long runs the first of
// each group searches all of them, and the others from there on.
Tensor merged(const Runs& r, const Tensor& position) {
  const int64_t rows = r.keys.size(0), m = position.size(1);
  const InPair p = in_pair(r, position);
  Tensor count;
  if (r.length <= kSearched) {
    count = split(r, p, p.low.expand({rows, m}), p.high, r.length);
  } else {
    const int64_t groups = m / kGroup;
    const InPair f = in_pair(r, position.reshape({1, groups, kGroup}).select(2, 0));
    const Tensor found = split(r, f, f.low.expand({rows, groups}), f.high, r.length).contiguous();
    const Tensor least = found.unsqueeze(-1).expand({rows, groups, kGroup}).reshape({rows, m});
    const Tensor most = least + (position & (kGroup - 1));
    count = split(r, p, p.low.maximum(least), p.high.minimum(most), kGroup - 1);
  }
  const Tensor of_first = p.first + count, of_second = p.second + p.at - count;
  const Tensor first_is_due = taken(r.keys, of_first) <= taken(r.keys, of_second),
               second_is_over = p.at - count >= p.second_size;
  const Tensor from_first = (count < p.first_size) & (second_is_over | first_is_due);
  return Tensor::where(from_first, of_first, of_second);
}

// (rows, n): sorted blocks, padded with what stays behind everything.
Runs blocks_of(const Tensor& keys) {
  const int64_t rows = keys.size(0), n = keys.size(1), blocks = ceil_div(n, kCounted);
  Runs r{.length = kCounted, .total = blocks * kCounted};
  const Tensor padded = keys.pad({0, r.total - n}, uint64_t(-1)).reshape({rows, blocks, kCounted});
  const Tensor order = order_by_counting(padded).contiguous();
  const Tensor begin = counter(blocks, 1, 3, keys.device()) * kCounted;
  r.keys = taken(padded, order).reshape({rows, r.total}).contiguous();
  r.order = (order + begin).reshape({rows, r.total}).contiguous();
  return r;
}

// Runs twice as long; of runs that hold `count` elements already only the first half of that.
void merge_pairs(Runs& r, int64_t count) {
  const bool drops = r.length >= count;
  const int64_t pair = 2 * r.length;
  const int64_t kept =
      drops ? r.total / pair * r.length + std::min(r.length, r.total % pair) : r.total;
  const Tensor k = counter(kept, 1, 2, r.keys.device());
  const Tensor from = merged(r, drops ? k * 2 - (k & (r.length - 1)) : k).contiguous();
  r.keys = taken(r.keys, from).contiguous();
  r.order = taken(r.order, from).contiguous();
  r.total = kept;
  if (!drops) r.length = pair;
}

Tensor order_by_merging(const Tensor& keys, int64_t count) {
  Runs r = blocks_of(keys);
  while (r.length < r.total) merge_pairs(r, count);
  return r.order;
}

// Where blocks of digits (rows, blocks, kCounted) go when all of a row is sorted by them, equal
// ones as they stand: behind what is lower, the same in earlier blocks, the same before them.
Tensor places_by_digit(const Tensor& digit) {
  const int64_t rows = digit.size(0), blocks = digit.size(1), digits = int64_t(1) << kDigitBits;
  const std::string device = digit.device();
  const Tensor each = counter(digits, 2, 4, device), block = counter(blocks, 1, 3, device),
               i = counter(kCounted, 2, 4, device), j = counter(kCounted, 3, 4, device);
  const Tensor counts = number_of(digit.unsqueeze(-2) == each).transpose(1, 2);
  const Tensor in_line = counts.reshape({rows, digits * blocks}).contiguous();
  const Tensor before = (detail::running(ir::Op::Add, in_line, 1) - in_line).contiguous();
  const Tensor in_block = number_of((digit.unsqueeze(-1) == digit.unsqueeze(-2)) & (j < i));
  const Sizes flat{rows, blocks * kCounted};
  const Tensor first = taken(before, (digit * blocks + block).reshape(flat));
  return (first + in_block.reshape(flat)).contiguous();
}

// From the lowest digit on, each of which keeps the order of the ones before it.
Tensor order_by_digits(const Tensor& given, int bits) {
  const int64_t rows = given.size(0), n = given.size(1), blocks = ceil_div(n, kCounted);
  const Sizes flat{rows, blocks * kCounted};
  Tensor keys = given.pad({0, blocks * kCounted - n}, uint64_t(-1)).contiguous();
  Tensor order = counter(blocks * kCounted, 1, 2, given.device()).expand(flat);
  const auto put = [](const Tensor& x, const Tensor& places) {
    return detail::scattered(x.full_like(0), x, places, 1, ir::Op::Assign, ir::Named::All);
  };
  for (int shift = 0; shift < bits; shift += kDigitBits) {
    const Tensor digit = ((keys >> shift) & ((1 << kDigitBits) - 1)).cast(DType::I32);
    const Tensor places =
        places_by_digit(digit.reshape({rows, blocks, kCounted}).contiguous());
    keys = put(keys, places);
    order = put(order, places);
  }
  return order;
}

}  // namespace

Tensor detail::taken(const Tensor& x, const Tensor& at) {
  const Tensor hit = at.unsqueeze(-1) == counter(x.size(-1), at.dim(), at.dim() + 1, x.device());
  return pick(hit, x.unsqueeze(-2), {-1});
}

namespace {

// The bits of what no number is above: infinity where there is one.
uint64_t largest_bits(DType t) {
  uint64_t bits = 0;
  store_scalar(Scalar::of_double(t, has_infinity(t) ? INFINITY : largest_value(t)), &bits);
  return bits;
}

// Sign and magnitude as one number, in which both zeros are the same. By the bits alone: devices
// may flush subnormals where they compute.
Tensor keys_of_floats(const Tensor& x) {
  const int64_t bytes = size_bytes(x.dtype());
  const DType bits_of = bytes == 8   ? DType::U64
                        : bytes == 4 ? DType::U32
                        : bytes == 2 ? DType::U16
                                     : DType::U8;
  const Tensor bits = x.bitcast(bits_of).cast(bytes == 8 ? DType::U64 : DType::U32);
  const uint64_t sign = uint64_t(1) << (8 * bytes - 1);
  const uint64_t largest = largest_bits(x.dtype());
  const Tensor magnitude = bits & (sign - 1);
  const Tensor ordered = Tensor::where((bits & sign) != 0, sign - magnitude, magnitude + sign);
  return Tensor::where(magnitude > largest, bits.full_like(uint64_t(-1)), ordered);
}

Tensor keys_of_integers(const Tensor& x) {
  const bool wide = size_bytes(x.dtype()) == 8;
  const DType key = wide ? DType::U64 : DType::U32;
  if (x.dtype() == DType::Bool || is_unsigned(x.dtype())) return x.cast(key);
  const Tensor bits = x.cast(wide ? DType::I64 : DType::I32).bitcast(key);
  return bits ^ (uint64_t(1) << (wide ? 63 : 31));
}

}  // namespace

Tensor detail::order_keys(const Tensor& x, bool descending) {
  const Tensor keys = is_float(x.dtype()) ? keys_of_floats(x) : keys_of_integers(x);
  return descending ? ~keys : keys;
}

namespace {

Tensor ordered(const Tensor& keys, int64_t count, int bits) {
  detail::require_numbers("sort", keys.sizes());
  Sizes sizes = keys.sizes();
  const int64_t n = std::exchange(sizes.back(), count);
  if (keys.numel() == 0 || count == 0 || n == 1)
    return Tensor::zeros(sizes, {detail::position_dtype(n), keys.device()});
  if (n <= kCounted) return order_by_counting(keys).narrow(-1, 0, count);
  const Tensor rows = keys.reshape({-1, n});
  const bool by_digits = n >= kRadix && count > n / 4 && size_bytes(keys.dtype()) == 4;
  const Tensor order =
      by_digits ? order_by_digits(rows, std::min(bits, 32)) : order_by_merging(rows, count);
  return order.narrow(1, 0, count).reshape(sizes);
}

}  // namespace

Tensor detail::stable_order(const Tensor& keys, int bits) {
  return ordered(keys, keys.size(-1), bits);
}
Tensor detail::first_in_order(const Tensor& keys, int64_t count) { return ordered(keys, count, 64); }

Tensor detail::count_before(const Tensor& sorted, const Tensor& values, bool right) {
  const int64_t n = sorted.size(-1);
  Sizes one = sorted.sizes();
  one.back() = 1;
  const Sizes sizes = broadcast_sizes("searchsorted", one, values.sizes());
  Tensor count = Tensor::zeros(sizes, {position_dtype(n), values.device()});
  for (int64_t step = int64_t(std::bit_floor(uint64_t(n))); step > 0; step /= 2) {
    const Tensor more = count + step, last = taken(sorted, more - 1);
    const Tensor beyond = right ? last > values : last >= values;
    count = Tensor::where((more <= n) & ~beyond, more, count);
  }
  return count;
}

Tensor detail::inverse_order(const Tensor& order) {
  const Tensor here = counter(order.size(-1), order.dim() - 1, order.dim(), order.device());
  const Tensor target = Tensor::zeros(order.sizes(), {here.dtype(), order.device()});
  return scattered(target, here.expand(order.sizes()), order, order.dim() - 1, ir::Op::Assign,
                   ir::Named::All);
}

}  // namespace tuff
