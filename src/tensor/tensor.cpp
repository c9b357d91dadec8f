// Handles, facts, and the checks that every function shares.
#include <algorithm>
#include <mutex>
#include <unordered_set>

#include "base/check.h"
#include "ir/device_group.h"
#include "tensor/impl.h"
#include "tensor/shards.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::derive;
using detail::uop;
using detail::wrap;
using ir::Op;
using ir::UOp;

namespace {

struct LiveImpls {
  std::mutex mutex;
  std::unordered_set<TensorImpl*> set;
  uint64_t made = 0;
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
  number = ++live_impls().made;
}
TensorImpl::~TensorImpl() {
  std::lock_guard lock(live_impls().mutex);
  live_impls().set.erase(this);
}

bool TensorImpl::retain_if_live() const noexcept {
  uint32_t count = refs_.load(std::memory_order_relaxed);
  while (count > 0) {
    if (refs_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) return true;
  }
  return false;
}
bool TensorImpl::release_unless_last() const noexcept {
  uint32_t count = refs_.load(std::memory_order_relaxed);
  while (count > 1) {
    if (refs_.compare_exchange_weak(count, count - 1, std::memory_order_acq_rel)) return true;
  }
  return false;
}

namespace detail {

void for_each_live(const std::function<void(TensorImpl&)>& fn) {
  const BuildGuard section;
  std::vector<TensorImpl*> last;  // whose other owners went meanwhile: destroying takes the lock
  {
    std::lock_guard lock(live_impls().mutex);
    for (TensorImpl* t : live_impls().set) {
      if (!t->retain_if_live()) continue;
      fn(*t);
      if (!t->release_unless_last()) last.push_back(t);
    }
  }
  for (TensorImpl* t : last) t->release();
}

std::vector<Tensor> those_alive(std::span<const Weak> tensors) {
  std::vector<Tensor> out;
  out.reserve(tensors.size());
  std::lock_guard lock(live_impls().mutex);
  for (const Weak& t : tensors) {
    const bool there = live_impls().set.count(t.at) > 0 && t.at->number == t.number;
    if (!there || !t.at->retain_if_live()) {
      out.emplace_back();
      continue;
    }
    out.emplace_back(t.at);
    t.at->release();  // never the last
  }
  return out;
}

Tensor wrap(UOp u, const std::string& device) {
  return Tensor(make_ref<TensorImpl>(std::move(u), device).get());
}
Tensor derive(const Tensor& from, UOp u) {
  if (!is_grad_enabled() && is_float(u->dtype) && u->op != Op::Detach)
    u = ir::make(Op::Detach, u->dtype, {u});
  return wrap(std::move(u), from.impl()->device);
}

ir::Shape shape_of(const Sizes& sizes) {
  ir::Shape s;
  for (const Size& d : sizes) {
    if (d.min() < 0) fail<ShapeError>("shape {} has a negative extent", text(sizes));
    s.push_back(dim_of(d));
  }
  ir::element_count(s);
  return s;
}

std::string text(const Sizes& sizes) {
  return sizes.size() == 1 ? fmt::format("({},)", sizes[0])
                           : fmt::format("({})", fmt::join(sizes.begin(), sizes.end(), ", "));
}
std::string text(const Axes& axes) { return text(Sizes(axes)); }

void require_element_type(const char* what, DType t) {
  if (t == DType::Void || t == DType::Index || is_weak(t))
    fail<InvalidArgument>("{}: {} is no element type of a tensor", what, name(t));
}

Tensor finish(Tensor t, const TensorOptions& o) {
  if (o.requires_grad) t.set_requires_grad();
  return t;
}

UOp placed(const UOp& u, const std::string& device) {
  return u->device ? u : ir::make(Op::Contiguous, u->dtype, {u}, ir::Placement{{device}});
}

int64_t wrap_dim(const char* what, int64_t dim, int64_t rank) {
  const int64_t d = dim < 0 ? dim + rank : dim;
  if (d < 0 || d >= rank)
    fail<IndexError>("{}: axis {} is outside a tensor of {} axes", what, dim, rank);
  return d;
}

Axes wrap_dims(const char* what, const Axes& dims, int64_t rank) {
  Axes out;
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
  while (base->op == Op::Reshape || base->op == Op::Detach) base = base->src(0);
  if (base->op != Op::Buffer) return {};
  // Every Storage of a tensor is a Buffer; a dynamic_cast would read type tables at each replay.
  return Ref<engine::Buffer>(static_cast<engine::Buffer*>(base->get<Ref<ir::Storage>>().get()));
}
Ref<engine::Buffer> buffer_of(const Tensor& t) { return buffer_of(uop(t)); }

Sizes broadcast_sizes(const char* what, const Sizes& a, const Sizes& b) {
  Sizes out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); i++) {
    const Size x = i < a.size() ? a[a.size() - 1 - i] : Size(1),
               y = i < b.size() ? b[b.size() - 1 - i] : Size(1);
    if (!same(x, y) && !same(x, 1) && !same(y, 1))
      fail<ShapeError>("{}: shapes {} and {} do not broadcast: {} against {}", what, text(a),
                       text(b), x, y);
    out[out.size() - 1 - i] = same(x, 1) ? y : x;
  }
  return out;
}

void require_same_device(const char* what, const Tensor& a, const Tensor& b) {
  uop(a), uop(b);
  if (a.device() != b.device()) {
    const bool groups = ir::is_group(a.device()) || ir::is_group(b.device());
    fail<InvalidArgument>("{}: tensors are on {} and {}: move one with {}", what, a.device(),
                          b.device(), groups ? "shard_like(the other)" : "to(device)");
  }
}

std::pair<Tensor, Tensor> unify(const char* what, const Tensor& a, const Tensor& b,
                                bool keep_dtypes) {
  require_same_device(what, a, b);
  const Sizes sizes = broadcast_sizes(what, a.sizes(), b.sizes());
  const DType t = promote(a.dtype(), b.dtype());
  Tensor x = keep_dtypes ? a : a.cast(t), y = keep_dtypes ? b : b.cast(t);
  const NoViews computing;
  return {x.expand(sizes), y.expand(sizes)};
}

DType real_dtype(DType t) { return is_float(t) ? t : DType::F32; }
DType compute_dtype(DType t) {
  return is_float(t) && size_bytes(t) < 4 ? DType::F32 : real_dtype(t);
}

Size product(std::span<const Size> extents) {
  Size out = 1;
  for (const Size& s : extents) out *= s;
  return out;
}

Tensor number_like(const Tensor& t, Number v) {
  const DType d = strengthen(promote(t.dtype(), v.dtype()));
  if (v.varies()) return derive(t, ir::cast(dim_of(v.extent()).uop(), d));
  return derive(t, ir::constant(scalar_of(d, v)));
}
Scalar scalar_of(DType t, Number v) {
  if (t == DType::Bool) return Scalar::of_int(t, v.value() != 0);
  return is_float(t) ? Scalar::of_double(t, v.value()) : Scalar::of_int(t, v.int_value());
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

Sizes Tensor::sizes() const { return detail::sizes_of(uop(*this)->shape); }
Size Tensor::size(int64_t d) const {
  return detail::size_of(uop(*this)->shape[size_t(detail::wrap_dim("size", d, dim()))]);
}
int64_t Tensor::dim() const { return int64_t(uop(*this)->shape.size()); }
Size Tensor::numel() const {
  const auto own = uop(*this);
  const ir::Shape& shape = own->shape;
  return ir::is_symbolic(shape) ? detail::product(sizes()) : Size(ir::element_count(shape));
}
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
  if (g.defined() && !detail::same(g.sizes(), sizes()))
    fail<ShapeError>("set_grad: gradient {} for a tensor of {}", detail::text(g.sizes()),
                     detail::text(sizes()));
  if (g.defined() && g.device() != device())
    fail<InvalidArgument>("set_grad: gradient on {} for a tensor on {}", g.device(), device());
  impl_->grad = g.impl_ ? Ref<TensorImpl>(g.impl_) : Ref<TensorImpl>();
}
bool Tensor::is_realized() const {
  if (const Ref<engine::Buffer> b = detail::buffer_of(*this)) return !b->deferred();
  return !detail::buffers_of_shards(uop(*this)).empty();
}

void Tensor::check_count(size_t given, const Sizes& sizes) {
  detail::require_numbers("from", sizes);
  const int64_t wanted = ir::element_count(detail::shape_of(sizes));
  if (int64_t(given) != wanted)
    fail<ShapeError>("from: {} values given for shape {} of {}", given, detail::text(sizes),
                     wanted);
}
void Tensor::check_dtype(DType wanted) const {
  if (dtype() != wanted)
    fail<InvalidArgument>("to_vector: the tensor is {}, not {}: cast() it first", name(dtype()),
                          name(wanted));
}

}  // namespace tuff
