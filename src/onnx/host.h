// Arithmetic and movement of numbers on the host: what shapes are reckoned with. Called by
// operators, where the host knows all inputs.
#pragma once

#include <functional>

#include "onnx/value.h"

namespace tuff::onnx {

using IntegerFunction = Size (*)(const Size&, const Size&);
using FloatFunction = double (*)(double, double);

// Element by element, broadcast; rounded to, or wrapped in, the dtype.
HostNumbers host_binary(const HostNumbers& a, const HostNumbers& b, DType dtype,
                        IntegerFunction of_integers, FloatFunction of_floats);
HostNumbers host_cast(const HostNumbers& x, DType dtype);
HostNumbers host_map(const HostNumbers& x, Size (*of_integers)(const Size&),
                     double (*of_floats)(double));
HostNumbers host_where(const HostNumbers& condition, const HostNumbers& x, const HostNumbers& y);

// The shape that both broadcast to; ShapeError where they do not.
Sizes broadcast_sizes(const Sizes& a, const Sizes& b);
HostNumbers host_expand(const HostNumbers& x, const std::vector<int64_t>& shape);
// x[..., places, ...] along an axis; places are inside.
HostNumbers host_take(const HostNumbers& x, int64_t axis, const std::vector<int64_t>& places);
HostNumbers host_transpose(const HostNumbers& x, const std::vector<int64_t>& axes);
HostNumbers host_concat(const std::vector<HostNumbers>& parts, int64_t axis);

}  // namespace tuff::onnx
