// Tensors on several devices: shard() and its family, and their memory.
#include "tensor/shards.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "engine/device.h"
#include "engine/realize/capture.h"
#include "ir/device_group.h"
#include "tensor/positions.h"

namespace tuff {

using detail::self;
using detail::uop;
using ir::Op;
using ir::UOp;
using sched::Laid;

namespace {

int axis_of(const Tensor& t) {
  if (!ir::is_group(t.device())) return Laid::kCopies;
  sched::ShardResolver resolver;
  const detail::BuildGuard section;
  return resolver.laid_on(uop(t), t.device()).axis;
}

std::string group_on(const std::vector<std::string>& devices) {
  if (devices.empty()) fail<InvalidArgument>("shard: no devices given");
  std::vector<std::string> names;
  for (const std::string& d : devices) {
    const std::string name = engine::canonical_device(d);
    for (std::string& member : ir::group_members(name)) names.push_back(std::move(member));
  }
  return ir::group_name(names);
}

int cut_axis(const Tensor& t, const std::optional<int64_t>& axis, const std::string& group) {
  if (!axis) return Laid::kCopies;
  const int64_t d = detail::wrap_dim("shard", *axis, t.dim());
  const size_t count = ir::group_members(group).size();
  const ir::Dim n = uop(t)->shape[size_t(d)];
  if (!n.is_const())
    fail<ShapeError>("shard: axis {} of {} varies: shard along another axis", d,
                     detail::text(t.sizes()));
  if (n.value() % int64_t(count) != 0)
    fail<ShapeError>(
        "shard: axis {} of {} has {} elements, which {} devices do not divide: pad() or narrow() "
        "it to {} or {}, or shard along another axis",
        d, detail::text(t.sizes()), n.value(), count,
        (n.value() / int64_t(count) + 1) * int64_t(count),
        n.value() / int64_t(count) * int64_t(count));
  return int(d);
}

Tensor sharded(const Tensor& t, const std::string& group, int axis) {
  if (!ir::is_group(group)) return t.to(group);
  if (t.device() == group && axis_of(t) == axis) return t;
  const detail::BuildGuard section;
  const auto node = uop(t);
  if (!node->device && axis == Laid::kCopies) return detail::wrap(node, group);
  const Op op = node->device ? Op::Copy : Op::Contiguous;
  return detail::wrap(ir::make(op, t.dtype(), {node}, ir::Placement{{group}, axis}), group);
}

Tensor combined(std::string_view op, const Tensor& a, const Tensor& b) {
  if (op == "sum" || op == "mean") return a + b;
  if (op == "prod") return a * b;
  if (op == "max") return a.maximum(b);
  return a.minimum(b);
}

void require_combination(std::string_view op) {
  constexpr std::string_view kOps[] = {"sum", "mean", "max", "min", "prod"};
  if (std::ranges::find(kOps, op) == std::end(kOps))
    fail<InvalidArgument>("all_reduce: op \"{}\" is none of sum, mean, max, min, prod", op);
}

}  // namespace

Tensor TensorShards::shard(const std::vector<std::string>& devices,
                           std::optional<int64_t> axis) const {
  const Tensor& t = self(this);
  uop(t);
  const std::string group = group_on(devices);
  return sharded(t, group, cut_axis(t, axis, group));
}

Tensor& TensorShards::shard_(const std::vector<std::string>& devices,
                             std::optional<int64_t> axis) {
  Tensor& t = self(this);
  uop(t);
  if (engine::Capture::current())
    fail<InvalidArgument>("shard_: a tensor inside a captured function cannot move: use shard()");
  const std::string group = group_on(devices);
  const int cut = cut_axis(t, axis, group);
  Tensor value = sharded(t.detach(), group, cut);
  if (uop(value) == uop(t)) return t;
  const bool is_leaf = t.requires_grad() || t.grad().defined();
  if (!is_leaf) {
    detail::take_place(t, sharded(t, group, cut));
    return t;
  }
  value.realize();
  Tensor grad = t.grad();
  if (grad.defined()) grad = sharded(grad, group, cut).realize();
  detail::take_place(t, value);
  t.set_grad(grad);
  return t;
}

Tensor TensorShards::shard_like(const Tensor& other) const {
  const Tensor& t = self(this);
  uop(t), uop(other);
  if (!ir::is_group(other.device())) return t.to(other.device());
  const std::optional<int64_t> axis = other.shard_axis();
  if (axis && *axis >= t.dim())
    fail<ShapeError>(
        "shard_like: the other tensor {} is in parts of axis {}, which {} does not have: "
        "shard(devices, axis) names one that it has",
        detail::text(other.sizes()), *axis, detail::text(t.sizes()));
  const std::string group = other.device();
  return sharded(t, group, cut_axis(t, axis, group));
}

std::optional<int64_t> TensorShards::shard_axis() const {
  const int axis = axis_of(self(this));
  return axis == Laid::kCopies ? std::optional<int64_t>() : axis;
}

Tensor TensorShards::all_reduce(std::string_view op) const {
  require_combination(op);
  const Tensor& t = self(this);
  const auto count = int64_t(ir::group_members(t.device()).size());
  if (count == 1) return t;
  const std::optional<int64_t> axis = t.shard_axis();
  Tensor each = t;
  if (axis) {
    Sizes split = t.sizes();
    split[size_t(*axis)] = split[size_t(*axis)] / count;
    split.insert(split.begin() + *axis, Size(count));
    each = t.reshape(split);
  }
  Tensor out = t;
  if (!axis)
    for (int64_t i = 1; i < count; i++) out = combined(op, out, t);
  else if (op == "max" || op == "min")
    out = op == "max" ? each.amax({*axis}) : each.amin({*axis});
  else
    out = detail::own_reduction("all_reduce", op == "prod" ? Op::Mul : Op::Add, each, {*axis});
  return op == "mean" ? out / double(count) : out;
}

std::vector<Tensor> all_reduce(const std::vector<Tensor>& tensors, std::string_view op) {
  require_combination(op);
  if (tensors.empty()) fail<InvalidArgument>("all_reduce: no tensors given");
  const Tensor& first = tensors[0];
  for (const Tensor& t : tensors) {
    if (!detail::same(t.sizes(), first.sizes()))
      fail<ShapeError>("all_reduce: tensors of {} and {}", detail::text(first.sizes()),
                       detail::text(t.sizes()));
    if (t.dtype() != first.dtype())
      fail<InvalidArgument>("all_reduce: tensors of {} and {}: cast() them", name(first.dtype()),
                            name(t.dtype()));
  }
  std::vector<Tensor> out;
  for (const Tensor& at : tensors) {
    Tensor all;
    for (const Tensor& t : tensors) {
      const Tensor here = t.to(at.device());
      all = all.defined() ? combined(op, all, here) : here;
    }
    out.push_back(op == "mean" ? all / double(tensors.size()) : all);
  }
  return out;
}

namespace detail {

std::string first_device(const std::string& device) { return ir::group_members(device)[0]; }

const ir::Node* shards_of(const UOp& u) {
  const ir::Node* n = u.get();
  while (n->op == Op::Detach) n = n->src(0).get();
  return n->op == Op::Shards ? n : nullptr;
}

std::vector<Ref<engine::Buffer>> buffers_of_shards(const UOp& u) {
  std::vector<Ref<engine::Buffer>> out;
  const ir::Node* shards = shards_of(u);
  if (!shards) return out;
  for (const UOp& p : shards->src()) {
    Ref<engine::Buffer> b = buffer_of(p);
    if (!b) return {};
    out.push_back(std::move(b));
  }
  return out;
}

Tensor readable(const Tensor& t) {
  if (!ir::is_group(t.device())) return t;
  Tensor whole(t);
  whole.realize();
  {
    const BuildGuard section;
    const auto node = uop(whole);
    const ir::Node* shards = shards_of(node);
    if (shards && shards->arg.index() == 0)
      return wrap(shards->src(0), *shards->src(0)->device);
  }
  return whole.to(first_device(t.device()));
}

namespace {

// The bytes of the i-th part of a row-major tensor.
std::vector<std::byte> bytes_of_part(const ir::Shape& shape, size_t axis, size_t i, size_t count,
                                     size_t element, const std::byte* all) {
  size_t outer = 1, row = element;
  for (size_t d = 0; d < shape.size(); d++)
    (d < axis ? outer : row) *= size_t(shape[d].value());
  const size_t each = row / count;
  std::vector<std::byte> out(outer * each);
  for (size_t o = 0; o < outer; o++)
    std::memcpy(out.data() + o * each, all + o * row + i * each, each);
  return out;
}

}  // namespace

void write_shards(const Tensor& t, const void* src) {
  const auto buffers = buffers_of_shards(uop(t));
  TUFF_CHECK(!buffers.empty(), "a tensor on a group is not realized");
  const auto node = uop(t);
  const ir::Node* shards = shards_of(node);
  const auto* all = static_cast<const std::byte*>(src);
  for (size_t i = 0; i < buffers.size(); i++) {
    if (shards->arg.index() == 0) {
      buffers[i]->copyin(src);
      note_host_values(*buffers[i], src);
      continue;
    }
    const auto axis = size_t(shards->get<int64_t>());
    const auto bytes =
        bytes_of_part(shards->shape, axis, i, buffers.size(), size_bytes(t.dtype()), all);
    buffers[i]->copyin(bytes.data());
    note_host_values(*buffers[i], bytes.data());
  }
}

UOp fresh_shards(const Sizes& sizes, DType t, const std::string& group, const void* data) {
  const ir::Shape shape = shape_of(sizes);
  std::vector<UOp> parts;
  for (const std::string& device : ir::group_members(group)) {
    const Ref<engine::Buffer> b =
        engine::Buffer::make(engine::Device::get(device), t, ir::element_count(shape));
    if (data) b->copyin(data), note_host_values(*b, data);
    parts.push_back(ir::reshape(ir::buffer(b), shape));
  }
  return ir::make(Op::Shards, t, parts);
}

Tensor on_devices_of(const Tensor& t, const Tensor& other) {
  const bool fits = detail::same(t.sizes(), other.sizes());
  return fits ? t.shard_like(other) : t.to(other.device());
}

UOp PartRoots::wanted_of(const UOp& part, const std::string& device) {
  const UOp there = placed(part, device);
  if (!part->device || !ir::is_movement(part->op)) return there;
  return ir::make(Op::Contiguous, part->dtype, {part});
}

void PartRoots::add(const UOp& root, const std::string& device) {
  Wanted w;
  w.shape = root->shape;
  const bool on_group = ir::is_group(device);
  if (on_group || sched::reads_group(root))
    w.laid = resolver_.laid_on(root, device);
  else
    w.laid.parts = {root};
  const auto members = ir::group_members(device);
  for (size_t i = 0; i < w.laid.parts.size(); i++) {
    const bool is_memory = on_group && buffer_of(w.laid.parts[i]);
    w.root.push_back(is_memory ? -1 : int64_t(roots_.size()));
    if (!is_memory) roots_.push_back(wanted_of(w.laid.parts[i], members[i]));
  }
  wanted_.push_back(std::move(w));
}

UOp PartRoots::memory(size_t n, const std::vector<Ref<engine::Buffer>>& buffers) const {
  const Wanted& w = wanted_[n];
  if (w.laid.group.empty())
    return ir::reshape(ir::buffer(buffers[size_t(w.root[0])]), w.shape);
  std::vector<UOp> parts;
  for (size_t i = 0; i < w.root.size(); i++)
    parts.push_back(w.root[i] < 0 ? w.laid.parts[i]
                                  : ir::reshape(ir::buffer(buffers[size_t(w.root[i])]),
                                                w.laid.parts[i]->shape));
  ir::Arg axis;
  if (w.laid.axis != Laid::kCopies) axis = int64_t(w.laid.axis);
  return ir::make(Op::Shards, parts[0]->dtype, parts, std::move(axis));
}

}  // namespace detail

}  // namespace tuff
