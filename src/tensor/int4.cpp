// Bytes of two numbers each as bit operations, which fuse into whatever reads them.
#include <tuff/int4.h>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff {

using detail::text;

namespace {

constexpr int64_t kMiddle = 8;  // the zero point of symmetric weights

void require_bytes(const char* what, const Tensor& packed) {
  if (packed.dtype() != DType::U8)
    fail<InvalidArgument>("{}: packed is {}, not uint8: pack_int4() gives that", what,
                          name(packed.dtype()));
}

// 0..15, as whole numbers of 32 bits: the low and the high half of each byte along a new axis.
Tensor halves(const Tensor& packed, int64_t axis) {
  Sizes sizes(size_t(packed.dim()) + 1, 1);
  sizes[size_t(axis)] = 2;
  const TensorOptions whole{.dtype = DType::I32, .device = packed.device()};
  const Tensor shifts = Tensor::arange(0, 8, 4, whole).reshape(sizes);
  return (packed.cast(DType::I32).unsqueeze(axis) >> shifts) & 15;
}

// A number per group, for each of its elements.
Tensor by_group(const Tensor& each, const Tensor& grouped) {
  return each.unsqueeze(-1).expand(grouped.sizes());
}

void require_group(const char* what, int64_t group_size, const Size& in) {
  if (group_size < 2 || group_size % 2)
    fail<InvalidArgument>("{}: group_size is {}: give an even number", what, group_size);
  if (!in.is_number() || int64_t(in) % group_size)
    fail<InvalidArgument>("{}: groups of {} do not divide rows of {}: give a group_size that does",
                          what, group_size, in);
}

void require_per_group(const char* what, const char* noun, const Tensor& t, const Tensor& packed,
                       int64_t group_size) {
  const Sizes wanted{packed.size(0), int64_t(packed.size(1)) * 2 / group_size};
  if (!detail::same(t.sizes(), wanted))
    fail<ShapeError>("{}: {} are {}, for packed {} in groups of {} they are {}", what, noun,
                     text(t.sizes()), text(packed.sizes()), group_size, text(wanted));
  detail::require_same_device(what, packed, t);
}

// The order of a row's numbers: as they were, or all low halves of bytes before all high ones. Then
// neighbours are bytes beside each other, which vectors load as they are.
enum class Order : uint8_t { Given, HalvesApart };

// (out, in), computed in a float dtype of 32 bits or more.
Tensor decoded(const char* what, const Int4Weight& w, int64_t group_size, DType t,
               Order order = Order::Given) {
  require_bytes(what, w.packed);
  if (w.packed.dim() != 2)
    fail<ShapeError>("{}: packed is {}, not (out, in / 2)", what, text(w.packed.sizes()));
  require_group(what, group_size, w.packed.size(1) * 2);
  require_per_group(what, "scales", w.scales, w.packed, group_size);
  if (!is_float(w.scales.dtype()))
    fail<InvalidArgument>("{}: scales are {}: cast them to floats", what, name(w.scales.dtype()));
  const bool apart = order == Order::HalvesApart;
  const Size out = w.packed.size(0), groups = w.scales.size(1);
  const Tensor flat = halves(w.packed, apart ? 1 : 2).reshape({out, w.packed.size(1) * 2});
  const Tensor q = flat.reshape(apart ? Sizes{out, 2, groups, group_size / 2}
                                      : Sizes{out, groups, group_size});
  const auto each = [&](const Tensor& x) {
    return x.reshape(apart ? Sizes{out, 1, groups, 1} : Sizes{out, groups, 1}).expand(q.sizes());
  };
  Tensor steps;
  if (!w.zeros.defined()) {
    steps = (q - kMiddle).cast(t);
  } else {
    require_per_group(what, "zeros", w.zeros, w.packed, group_size);
    const bool floats = is_float(w.zeros.dtype());
    steps = floats ? q.cast(t) - each(w.zeros.cast(t))
                   : (q - each(w.zeros.cast(DType::I32))).cast(t);
  }
  return (steps * each(w.scales.cast(t))).reshape(flat.sizes());
}

// Whether a product has so few rows that its weight is what takes the time.
bool has_few_rows(const Tensor& x) {
  constexpr int64_t kFew = 8;
  Size rows = 1;
  for (int64_t d = 0; d + 1 < x.dim(); d++) rows *= x.size(d);
  return rows.is_number() && int64_t(rows) <= kFew;
}

// A row's numbers in the order of HalvesApart.
Tensor with_halves_apart(const Tensor& x) {
  const int64_t d = x.dim() - 1;
  return detail::unflatten(x, d, int64_t(x.size(d)) / 2, 2).transpose(-2, -1).reshape(x.sizes());
}

}  // namespace

Tensor pack_int4(const Tensor& x, int64_t dim) {
  if (!is_int(x.dtype()))
    fail<InvalidArgument>("pack_int4: the tensor is {}: cast it to integers of -8..7 or 0..15",
                          name(x.dtype()));
  const int64_t d = detail::wrap_dim("pack_int4", dim, x.dim());
  if (!x.size(d).is_number() || int64_t(x.size(d)) % 2)
    fail<ShapeError>("pack_int4: axis {} of {} has no even number of elements: pad it by one", d,
                     text(x.sizes()));
  const Tensor pairs = detail::unflatten(x.cast(DType::U8), d, int64_t(x.size(d)) / 2, 2);
  const Tensor low = pairs.narrow(d + 1, 0, 1), high = pairs.narrow(d + 1, 1, 1);
  return ((low & 15) | (high << 4)).squeeze(d + 1);
}

Tensor unpack_int4(const Tensor& packed, bool is_signed, int64_t dim) {
  require_bytes("unpack_int4", packed);
  const int64_t d = detail::wrap_dim("unpack_int4", dim, packed.dim());
  const Tensor q = halves(packed, d + 1).flatten(d, d + 1);
  return is_signed ? ((q ^ 8) - 8).cast(DType::I8) : q.cast(DType::U8);
}

Int4Weight quantize_int4(const Tensor& weight, int64_t group_size, bool symmetric) {
  if (weight.dim() != 2)
    fail<ShapeError>("quantize_int4: {} is no weight (out, in)", text(weight.sizes()));
  if (!is_float(weight.dtype()))
    fail<InvalidArgument>("quantize_int4: the weight is {}: cast it to floats",
                          name(weight.dtype()));
  require_group("quantize_int4", group_size, weight.size(1));
  const DType wide = detail::compute_dtype(weight.dtype()),
              kept = is_float8(weight.dtype()) ? DType::F32 : weight.dtype();
  const Tensor w = weight.cast(wide).reshape(
      {weight.size(0), int64_t(weight.size(1)) / group_size, group_size});
  const Tensor most = w.max({-1}).clamp(0), least = w.min({-1}).clamp({}, 0);
  const Tensor range = symmetric ? most.maximum(-least) * 2 : most - least;
  const Tensor scales = (range / 15).cast(kept), used = scales.cast(wide);
  // A group of zeros, or of numbers too small for a scale of its dtype.
  const Tensor step = Tensor::where(used == 0, 1.0, used);
  const Tensor zeros =
      symmetric ? Tensor::full({}, kMiddle, {wide, weight.device()}).expand(step.sizes())
                : (-least / step).round().clamp(0, 15);
  const Tensor q = ((w / by_group(step, w)).round() + by_group(zeros, w)).clamp(0, 15);
  const Tensor packed = pack_int4(q.cast(DType::U8).reshape(weight.sizes()));
  return {packed, scales, symmetric ? Tensor{} : zeros.cast(DType::U8)};
}

Tensor dequantize_int4(const Tensor& packed, const Tensor& scales, const Tensor& zeros,
                       int64_t group_size) {
  const DType wide = detail::compute_dtype(scales.dtype());
  return decoded("dequantize_int4", {packed, scales, zeros}, group_size, wide).cast(scales.dtype());
}

Tensor linear_int4(const Tensor& x, const Tensor& packed, const Tensor& scales,
                   const Tensor& zeros, int64_t group_size, const Tensor& bias) {
  const DType own = detail::real_dtype(x.dtype());
  const Order order = x.dim() > 0 && has_few_rows(x) ? Order::HalvesApart : Order::Given;
  const Tensor weight = decoded("linear_int4", {packed, scales, zeros}, group_size,
                                detail::compute_dtype(own), order)
                            .cast(is_float8(own) ? DType::F32 : own);
  if (x.dim() < 1 || !detail::same(x.size(-1), weight.size(1)))
    fail<ShapeError>("linear_int4: input {} does not fit packed {} (out, in / 2)", text(x.sizes()),
                     text(packed.sizes()));
  return (order == Order::Given ? x : with_halves_apart(x)).linear(weight, bias);
}

}  // namespace tuff
