// Tensors out of nothing: memory, constants, counters, host data.
#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "engine/device.h"
#include "ir/device_group.h"
#include "tensor/impl.h"
#include "tensor/positions.h"
#include "tensor/shards.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::finish;
using detail::require_element_type;
using detail::scalar_of;
using detail::wrap;
using ir::UOp;

namespace {

Tensor made_of(UOp u, const TensorOptions& o) {
  return detail::finish(wrap(std::move(u), engine::canonical_device(o.device)), o);
}

UOp filled(const Sizes& sizes, const Scalar& v) {
  const UOp c = ir::constant(v);
  const ir::Shape shape = detail::shape_of(sizes);
  if (shape.empty()) return c;
  return ir::expand(ir::reshape(c, ir::Shape(shape.size(), ir::Dim(1))), shape);
}

// Memory on a device, or on each of a group: with these bytes, or whatever it holds.
UOp fresh_memory(const char* what, const Sizes& sizes, const TensorOptions& o, const void* data) {
  detail::require_numbers(what, sizes);
  require_element_type(what, o.dtype);
  const std::string device = o.device.empty() ? o.device : engine::canonical_device(o.device);
  if (ir::is_group(device)) return detail::fresh_shards(sizes, o.dtype, device, data);
  const ir::Shape shape = detail::shape_of(sizes);
  const Ref<engine::Buffer> b =
      engine::Buffer::make(engine::Device::get(o.device), o.dtype, ir::element_count(shape));
  if (data) b->copyin(data), detail::note_host_values(*b, data);
  return ir::reshape(ir::buffer(b), shape);
}

bool is_whole(const Number& v) { return v.dtype() != DType::WeakFloat; }

// How many of start, start+step, ... stand before end.
Size count_of(const Number& start, const Number& end, const Number& step) {
  if (start.varies() || end.varies()) {
    if (!is_whole(start) || !is_whole(end) || step.varies() || step.value() != 1)
      fail<Unsupported>("arange: ends that vary are whole and one apart");
    const auto extent = [](const Number& n) {
      return n.varies() ? n.extent() : Size(n.int_value());
    };
    return extent(end) - extent(start);
  }
  if (step.value() == 0) fail<InvalidArgument>("arange: step is 0");
  if (is_whole(start) && is_whole(end) && is_whole(step)) {
    const __int128 span = __int128(end.int_value()) - start.int_value(), by = step.int_value();
    const __int128 count = std::max<__int128>(0, (span + by + (by > 0 ? -1 : 1)) / by);
    if (count <= INT64_MAX) return int64_t(count);
  }
  const double n = std::ceil((end.value() - start.value()) / step.value());
  if (!(n < 0x1p63))
    fail<InvalidArgument>("arange: from {} to {} by {} has no number of elements", start.value(),
                          end.value(), step.value());
  return n > 0 ? int64_t(n) : 0;
}

// The dtype of n whole numbers from `start` on.
DType whole_dtype(const Number& start, const Number& step, const Size& n) {
  const auto fits = [](__int128 v) { return v >= INT32_MIN && v <= INT32_MAX; };
  const int64_t low = start.varies() ? start.extent().min() : start.int_value(),
                high = start.varies() ? start.extent().max() : low;
  const __int128 steps = std::max<int64_t>(0, n.max() - 1), span = steps * step.int_value();
  return fits(low) && fits(high) && fits(low + span) && fits(high + span) ? DType::I32 : DType::I64;
}

// Counters are exact in integers and in floats of at least 24 bits.
Tensor counter_of(const Size& n, DType t, const std::string& device) {
  const DType exact = is_float(t) && size_bytes(t) < 4 ? DType::F32
                      : t == DType::Bool               ? DType::I32
                                                       : t;
  return wrap(ir::iota(detail::dim_of(n), exact), engine::canonical_device(device));
}

}  // namespace

DType detail::position_dtype(const Size& n) {
  return n.max() > INT32_MAX ? DType::I64 : DType::I32;
}
Tensor detail::counter(const Size& n, int64_t d, int64_t rank, const std::string& device) {
  Sizes along(size_t(rank), 1);
  along[size_t(d)] = n;
  const NoViews computing;
  return counter_of(n, position_dtype(n), device).reshape(along);
}

Tensor Tensor::empty(const Sizes& sizes, const TensorOptions& o) {
  return made_of(fresh_memory("empty", sizes, o, nullptr), o);
}
Tensor Tensor::full(const Sizes& sizes, Number v, const TensorOptions& o) {
  require_element_type("full", o.dtype);
  return made_of(filled(sizes, scalar_of(o.dtype, v)), o);
}
Tensor Tensor::zeros(const Sizes& sizes, const TensorOptions& o) { return full(sizes, 0, o); }
Tensor Tensor::ones(const Sizes& sizes, const TensorOptions& o) { return full(sizes, 1, o); }
Tensor Tensor::empty_like() const { return empty(sizes(), {dtype(), device()}); }
Tensor Tensor::full_like(Number v) const { return full(sizes(), v, {dtype(), device()}); }

Tensor Tensor::from_bytes(const void* data, const Sizes& sizes, const TensorOptions& o) {
  return made_of(fresh_memory("from", sizes, o, data), o);
}

Tensor Tensor::arange(Number start, Number end, Number step, const TensorOptions& given) {
  TensorOptions o = given;
  const bool whole = is_whole(start) && is_whole(end) && is_whole(step);
  const Size n = count_of(start, end, step);
  if (o.dtype == DType::Void) o.dtype = whole ? whole_dtype(start, step, n) : DType::F32;
  require_element_type("arange", o.dtype);
  const Tensor t = counter_of(n, o.dtype, o.device);
  return finish((t * step + start).cast(o.dtype), o);
}
Tensor Tensor::arange(Number end) { return arange(0, end, 1); }

// Counted from the nearer end, so that both ends are exact.
Tensor Tensor::linspace(Number start, Number end, int64_t steps, const TensorOptions& o) {
  if (steps < 0) fail<InvalidArgument>("linspace: {} steps", steps);
  require_element_type("linspace", o.dtype);
  const Tensor i = detail::counter(steps, 0, 1, o.device);
  const double by = steps > 1 ? (end.value() - start.value()) / double(steps - 1) : 0;
  const DType t = o.dtype == DType::F64 ? DType::F64 : DType::F32;
  const Tensor up = i.cast(t) * by + start.value(),
               down = end.value() - (steps - 1 - i).cast(t) * by;
  return finish(where(i < (steps + 1) / 2, up, down).cast(o.dtype), o);
}

Tensor Tensor::logspace(double start, double end, int64_t steps, double base,
                        const TensorOptions& o) {
  if (steps < 0) fail<InvalidArgument>("logspace: {} steps", steps);
  require_element_type("logspace", o.dtype);
  const DType t = o.dtype == DType::F64 ? DType::F64 : DType::F32;
  const Tensor exponents = linspace(start, end, steps, {t, o.device});
  return finish(pow(base, exponents).cast(o.dtype), o);
}

Tensor Tensor::eye(const Size& n, const TensorOptions& o) { return eye(n, n, o); }
Tensor Tensor::eye(const Size& n, const Size& m, const TensorOptions& o) {
  require_element_type("eye", o.dtype);
  detail::shape_of({n, m});
  const Tensor row = detail::counter(n, 0, 2, o.device),
               column = detail::counter(m, 1, 2, o.device);
  return finish((row == column).cast(o.dtype), o);
}

}  // namespace tuff
