#include "onnx/host.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "base/check.h"
#include "onnx/operators.h"

namespace tuff::onnx {
namespace {

using Shape = std::vector<int64_t>;

int64_t product(std::span<const int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

Shape strides_of(const Shape& shape) {
  Shape out(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) out[i - 1] = out[i] * shape[i];
  return out;
}

// Positions of all elements of `shape`, each axis of which moves by a stride.
std::vector<int64_t> walk(const Shape& shape, const Shape& strides) {
  std::vector<int64_t> out;
  const int64_t count = product(shape);
  for (int64_t i = 0; i < count; i++) {
    int64_t rest = i, at = 0;
    for (size_t a = shape.size(); a-- > 0; rest /= shape[a]) at += rest % shape[a] * strides[a];
    out.push_back(at);
  }
  return out;
}

Size wrapped(const Size& s, DType dtype) {
  return s.is_number() ? Size(Scalar::of_int(dtype, int64_t(s)).as_int()) : s;
}

void require_same_kind(const HostNumbers& a, const HostNumbers& b) {
  if (a.is_float() != b.is_float())
    fail<InvalidArgument>("{} and {} stand where one type is wanted", name(a.dtype), name(b.dtype));
}

}  // namespace

HostNumbers host_expand(const HostNumbers& x, const Shape& shape) {
  Shape strides(shape.size(), 0);
  const Shape own = strides_of(x.shape);
  const size_t lead = shape.size() - x.shape.size();
  for (size_t a = 0; a < x.shape.size(); a++)
    if (x.shape[a] != 1) strides[lead + a] = own[a];
  return picked(x, walk(shape, strides), shape);
}

HostNumbers host_transpose(const HostNumbers& x, const Shape& axes) {
  const Shape own = strides_of(x.shape);
  Shape shape, strides;
  for (const int64_t a : axes) {
    shape.push_back(x.shape.at(size_t(a)));
    strides.push_back(own[size_t(a)]);
  }
  return picked(x, walk(shape, strides), shape);
}

HostNumbers host_take(const HostNumbers& x, int64_t axis, const std::vector<int64_t>& places) {
  const auto a = size_t(axis);
  const std::span<const int64_t> extents(x.shape);
  const int64_t before = product(extents.first(a)), behind = product(extents.subspan(a + 1));
  std::vector<int64_t> positions;
  for (int64_t i = 0; i < before; i++)
    for (const int64_t place : places)
      for (int64_t k = 0; k < behind; k++)
        positions.push_back((i * x.shape[a] + place) * behind + k);
  Shape shape = x.shape;
  shape[a] = int64_t(places.size());
  return picked(x, positions, std::move(shape));
}

HostNumbers host_concat(const std::vector<HostNumbers>& parts, int64_t axis) {
  // Along the first axis they stand one behind the other; another axis is moved there and back.
  std::vector<int64_t> axes(parts.at(0).shape.size());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[0], axes[size_t(axis)]);
  HostNumbers out = host_transpose(parts[0], axes);
  for (size_t i = 1; i < parts.size(); i++) {
    require_same_kind(parts[0], parts[i]);
    if (parts[i].shape.size() != axes.size())
      fail<ShapeError>("{} axes beside {}", parts[i].shape.size(), axes.size());
    const HostNumbers next = host_transpose(parts[i], axes);
    if (!std::equal(next.shape.begin() + 1, next.shape.end(), out.shape.begin() + 1,
                    out.shape.end()))
      fail<ShapeError>("shapes differ beside axis {}", axis);
    out.ints.insert(out.ints.end(), next.ints.begin(), next.ints.end());
    out.floats.insert(out.floats.end(), next.floats.begin(), next.floats.end());
    out.shape[0] += next.shape[0];
  }
  return host_transpose(out, axes);
}

Sizes broadcast_sizes(const Sizes& a, const Sizes& b) {
  const auto is_one = [](const Size& s) { return s.is_number() && int64_t(s) == 1; };
  const size_t rank = std::max(a.size(), b.size());
  Sizes out(rank);
  for (size_t i = 0; i < rank; i++) {
    const Size x = i + a.size() < rank ? Size(1) : a[i + a.size() - rank];
    const Size y = i + b.size() < rank ? Size(1) : b[i + b.size() - rank];
    if (!is_one(x) && !is_one(y) && x != y)
      fail<ShapeError>("{} and {} do not broadcast", shape_text(a), shape_text(b));
    out[i] = is_one(x) ? y : x;
  }
  return out;
}

HostNumbers host_cast(const HostNumbers& x, DType dtype) {
  HostNumbers out{.dtype = dtype, .shape = x.shape, .ints = {}, .floats = {}};
  const auto put = [&](const Scalar& s) {
    const Scalar to = dtype == DType::Bool ? Scalar::of_int(dtype, s.as_bool()) : s.cast(dtype);
    if (out.is_float())
      out.floats.push_back(to.as_double());
    else
      out.ints.emplace_back(to.as_int());
  };
  for (const double f : x.floats) put(Scalar::of_double(x.dtype, f));
  for (const Size& s : x.ints) {
    if (!s.is_number() && is_int(dtype))
      out.ints.push_back(s);
    else
      put(Scalar::of_int(x.dtype, int64_t(s)));
  }
  return out;
}

HostNumbers host_binary(const HostNumbers& a, const HostNumbers& b, DType dtype,
                        IntegerFunction of_integers, FloatFunction of_floats) {
  require_same_kind(a, b);
  if (a.is_float() ? !of_floats : !of_integers)
    fail<InvalidArgument>("{} is no type of this operator", name(a.dtype));
  const Shape shape = broadcast_sizes(Sizes(a.shape), Sizes(b.shape));
  const HostNumbers x = host_expand(a, shape), y = host_expand(b, shape);
  HostNumbers out{.dtype = dtype, .shape = shape, .ints = {}, .floats = {}};
  for (size_t i = 0; i < size_t(x.count()); i++) {
    if (!x.is_float()) {
      out.ints.push_back(wrapped(of_integers(x.ints[i], y.ints[i]), dtype));
      continue;
    }
    const double value = of_floats(x.floats[i], y.floats[i]);
    if (out.is_float())
      out.floats.push_back(Scalar::of_double(dtype, value).as_double());
    else
      out.ints.emplace_back(whole(value));
  }
  return out;
}

HostNumbers host_map(const HostNumbers& x, Size (*of_integers)(const Size&),
                     double (*of_floats)(double)) {
  if (x.is_float() ? !of_floats : !of_integers)
    fail<InvalidArgument>("{} is no type of this operator", name(x.dtype));
  HostNumbers out = x;
  for (Size& s : out.ints) s = wrapped(of_integers(s), x.dtype);
  for (double& f : out.floats) f = Scalar::of_double(x.dtype, of_floats(f)).as_double();
  return out;
}

HostNumbers host_where(const HostNumbers& condition, const HostNumbers& x, const HostNumbers& y) {
  require_same_kind(x, y);
  if (condition.is_float())
    fail<InvalidArgument>("the condition is {}: bool is wanted", name(condition.dtype));
  const Shape shape = broadcast_sizes(broadcast_sizes(Sizes(condition.shape), Sizes(x.shape)),
                                      Sizes(y.shape));
  const HostNumbers c = host_expand(condition, shape), yes = host_expand(x, shape),
                    no = host_expand(y, shape);
  HostNumbers out = no;
  for (size_t i = 0; i < size_t(c.count()); i++) {
    if (int64_t(c.ints[i]) == 0) continue;
    if (out.is_float())
      out.floats[i] = yes.floats[i];
    else
      out.ints[i] = yes.ints[i];
  }
  return out;
}

}  // namespace tuff::onnx
