// Handles, facts, creation, and the checks that every function shares.
#include <algorithm>
#include <cmath>
#include <mutex>
#include <unordered_set>

#include "base/check.h"
#include "engine/device.h"
#include "tensor/impl.h"

namespace tuff {

using detail::derive;
using detail::uop;
using detail::wrap;
using graph::Op;
using graph::UOp;

namespace {

struct LiveImpls {
  std::mutex mutex;
  std::unordered_set<TensorImpl*> set;
};
LiveImpls& live_impls() {
  static LiveImpls& l = *std::make_unique<LiveImpls>().release();
  return l;
}

}  // namespace

TensorImpl::TensorImpl(UOp u, std::string on_device)
    : uop(std::move(u)), device(std::move(on_device)) {
  std::lock_guard lock(live_impls().mutex);
  live_impls().set.insert(this);
}
TensorImpl::~TensorImpl() {
  std::lock_guard lock(live_impls().mutex);
  live_impls().set.erase(this);
}

namespace detail {

void for_each_live(const std::function<void(TensorImpl&)>& fn) {
  std::lock_guard lock(live_impls().mutex);
  for (TensorImpl* t : live_impls().set) fn(*t);
}

Tensor wrap(UOp u, const std::string& device) {
  return Tensor(make_ref<TensorImpl>(std::move(u), device).get());
}
Tensor derive(const Tensor& from, UOp u) { return wrap(std::move(u), from.impl()->device); }

graph::Shape shape_of(const Sizes& sizes) {
  graph::Shape s;
  for (int64_t d : sizes) {
    if (d < 0) fail<ShapeError>("shape {} has a negative extent", text(sizes));
    s.push_back(graph::Dim(d));
  }
  graph::element_count(s);
  return s;
}

std::string text(const Sizes& sizes) {
  return sizes.size() == 1 ? fmt::format("({},)", sizes[0])
                           : fmt::format("({})", fmt::join(sizes, ", "));
}

int64_t wrap_dim(const char* what, int64_t dim, int64_t rank) {
  const int64_t d = dim < 0 ? dim + rank : dim;
  if (d < 0 || d >= rank)
    fail<ShapeError>("{}: axis {} is outside a tensor of {} axes", what, dim, rank);
  return d;
}

Sizes wrap_dims(const char* what, const Sizes& dims, int64_t rank) {
  Sizes out;
  if (dims.empty()) {
    for (int64_t i = 0; i < rank; i++) out.push_back(i);
    return out;
  }
  for (int64_t d : dims) out.push_back(wrap_dim(what, d, rank));
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end())
    fail<ShapeError>("{}: an axis occurs twice in {}", what, text(dims));
  return out;
}

Ref<engine::Buffer> buffer_of(const UOp& u) {
  UOp base = u;
  while (base->op == Op::Reshape) base = base->src(0);
  if (base->op != Op::Buffer) return {};
  return Ref<engine::Buffer>(dynamic_cast<engine::Buffer*>(base->get<Ref<graph::Storage>>().get()));
}
Ref<engine::Buffer> buffer_of(const Tensor& t) { return buffer_of(uop(t)); }

Sizes broadcast_sizes(const char* what, const Sizes& a, const Sizes& b) {
  Sizes out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); i++) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1,
                  y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      fail<ShapeError>("{}: shapes {} and {} do not broadcast: {} against {}", what, text(a),
                       text(b), x, y);
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

std::pair<Tensor, Tensor> unify(const char* what, const Tensor& a, const Tensor& b,
                                bool keep_dtypes) {
  uop(a), uop(b);
  if (a.device() != b.device()) {
    fail<InvalidArgument>("{}: tensors are on {} and {}: move one with to(device)", what,
                          a.device(), b.device());
  }
  const Sizes sizes = broadcast_sizes(what, a.sizes(), b.sizes());
  const DType t = promote(a.dtype(), b.dtype());
  Tensor x = keep_dtypes ? a : a.cast(t), y = keep_dtypes ? b : b.cast(t);
  return {x.expand(sizes), y.expand(sizes)};
}

Tensor number_like(const Tensor& t, Number v) {
  const DType d = strengthen(promote(t.dtype(), v.dtype()));
  const Scalar s = is_float(d) ? Scalar::of_double(d, v.value()) : Scalar::of_int(d, v.int_value());
  return derive(t, graph::constant(s));
}

}  // namespace detail

Tensor::Tensor() = default;
Tensor::Tensor(TensorImpl* impl) : impl_(impl) {
  if (impl_) impl_->retain();
}
Tensor::Tensor(const Tensor& o) : Tensor(o.impl_) {}
Tensor::Tensor(Tensor&& o) noexcept : impl_(std::exchange(o.impl_, nullptr)) {}
Tensor& Tensor::operator=(const Tensor& o) {
  Tensor copy(o);
  std::swap(impl_, copy.impl_);
  return *this;
}
Tensor& Tensor::operator=(Tensor&& o) noexcept {
  std::swap(impl_, o.impl_);
  return *this;
}
Tensor::~Tensor() {
  if (impl_) impl_->release();
}

Sizes Tensor::sizes() const { return graph::max_extents(uop(*this)->shape); }
int64_t Tensor::size(int64_t d) const {
  return sizes()[size_t(detail::wrap_dim("size", d, dim()))];
}
int64_t Tensor::dim() const { return int64_t(uop(*this)->shape.size()); }
int64_t Tensor::numel() const { return graph::element_count(uop(*this)->shape); }
DType Tensor::dtype() const { return uop(*this)->dtype; }
std::string Tensor::device() const {
  uop(*this);
  return impl_->device;
}
bool Tensor::requires_grad() const {
  uop(*this);
  return impl_->requires_grad;
}
Tensor& Tensor::set_requires_grad(bool on) {
  if (on && !is_float(dtype()))
    fail<InvalidArgument>("requires_grad: {} has no gradient, only floats do", name(dtype()));
  impl_->requires_grad = on;
  return *this;
}
Tensor Tensor::grad() const {
  uop(*this);
  return impl_->grad ? Tensor(impl_->grad.get()) : Tensor();
}
void Tensor::set_grad(const Tensor& g) {
  uop(*this);
  impl_->grad = g.impl_ ? Ref<TensorImpl>(g.impl_) : Ref<TensorImpl>();
}
bool Tensor::is_realized() const { return bool(detail::buffer_of(*this)); }

void Tensor::check_count(size_t given, const Sizes& sizes) {
  const int64_t wanted = graph::element_count(detail::shape_of(sizes));
  if (int64_t(given) != wanted)
    fail<ShapeError>("from: {} values given for shape {} of {}", given, detail::text(sizes),
                     wanted);
}
void Tensor::check_dtype(DType wanted) const {
  if (dtype() != wanted)
    fail<InvalidArgument>("to_vector: the tensor is {}, not {}: cast() it first", name(dtype()),
                          name(wanted));
}

namespace {

Tensor finish(UOp u, const TensorOptions& o) {
  Tensor t = wrap(std::move(u), engine::canonical_device(o.device));
  if (o.requires_grad) t.set_requires_grad();
  return t;
}

UOp filled(const Sizes& sizes, const Scalar& v) {
  const UOp c = graph::constant(v);
  const graph::Shape shape = detail::shape_of(sizes);
  if (shape.empty()) return c;
  return graph::expand(graph::reshape(c, graph::Shape(shape.size(), graph::Dim(1))), shape);
}

Ref<engine::Buffer> fresh_buffer(const Sizes& sizes, const TensorOptions& o) {
  return make_ref<engine::Buffer>(engine::Device::get(o.device), o.dtype,
                                  graph::element_count(detail::shape_of(sizes)));
}

}  // namespace

Tensor Tensor::empty(const Sizes& sizes, const TensorOptions& o) {
  Ref<engine::Buffer> b = fresh_buffer(sizes, o);
  return finish(graph::reshape(graph::buffer(b), detail::shape_of(sizes)), o);
}
Tensor Tensor::full(const Sizes& sizes, Number v, const TensorOptions& o) {
  const Scalar s = is_float(o.dtype) ? Scalar::of_double(o.dtype, v.value())
                                     : Scalar::of_int(o.dtype, v.int_value());
  return finish(filled(sizes, s), o);
}
Tensor Tensor::zeros(const Sizes& sizes, const TensorOptions& o) { return full(sizes, 0, o); }
Tensor Tensor::ones(const Sizes& sizes, const TensorOptions& o) { return full(sizes, 1, o); }

Tensor Tensor::from_bytes(const void* data, const Sizes& sizes, const TensorOptions& o) {
  Ref<engine::Buffer> b = fresh_buffer(sizes, o);
  b->copyin(data);
  return finish(graph::reshape(graph::buffer(b), detail::shape_of(sizes)), o);
}

Tensor Tensor::arange(Number start, Number end, Number step, const TensorOptions& given) {
  TensorOptions o = given;
  const bool whole = start.dtype() != DType::WeakFloat && end.dtype() != DType::WeakFloat &&
                     step.dtype() != DType::WeakFloat;
  if (o.dtype == DType::Void) o.dtype = whole ? DType::I32 : DType::F32;
  if (step.value() == 0) fail<InvalidArgument>("arange: step is 0");
  const int64_t n =
      std::max<int64_t>(0, int64_t(std::ceil((end.value() - start.value()) / step.value())));
  const UOp index = graph::iota(n, o.dtype == DType::Bool ? DType::I32 : o.dtype);
  Tensor t = finish(index, {o.dtype, o.device, false});
  t = (t * step + start).cast(o.dtype);
  if (o.requires_grad) t.set_requires_grad();
  return t;
}
Tensor Tensor::arange(Number end) { return arange(0, end, 1); }

Tensor Tensor::eye(int64_t n, const TensorOptions& o) {
  const TensorOptions index{DType::I32, o.device, false};
  const Tensor i = arange(0, n, 1, index);
  Tensor t = (i.unsqueeze(1) == i.unsqueeze(0)).cast(o.dtype);
  if (o.requires_grad) t.set_requires_grad();
  return t;
}

}  // namespace tuff
