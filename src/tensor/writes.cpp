// Functions in place: a new value, computed as without, that takes the tensor's place.
#include <utility>

#include "base/check.h"
#include "engine/realize/capture.h"
#include "tensor/guards.h"
#include "tensor/impl.h"
#include "tensor/shards.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::overwrite;
using detail::self;
using detail::uop;

namespace {

// What adds nothing (0 + other) may be the other tensor itself, whose memory is its own.
Tensor apart(const Tensor& result, const Tensor& other) {
  return uop(result) == uop(other) ? result.clone() : result;
}
Tensor apart(const Tensor& result, Number) { return result; }

// The operand of a function in place that is computed of `now` for x.
const Tensor& operand(const Tensor& x, const Tensor& now, const Tensor& other) {
  return other.impl() == x.impl() ? now : other;
}
Number operand(const Tensor&, const Tensor&, Number other) { return other; }

}  // namespace

#define TUFF_IN_PLACE(what, x, op, other)              \
  const Tensor now = detail::current(x);               \
  const auto& by = operand(x, now, other);             \
  return overwrite(what, x, apart(now op by, by))
#define TUFF_FUNCTION_IN_PLACE(function, op)                                                     \
  Tensor& TensorWrites::function(const Tensor& other) {                                          \
    TUFF_IN_PLACE(#function, self(this), op, other);                                             \
  }                                                                                              \
  Tensor& TensorWrites::function(Number other) { TUFF_IN_PLACE(#function, self(this), op, other); }
TUFF_FUNCTION_IN_PLACE(add_, +)
TUFF_FUNCTION_IN_PLACE(sub_, -)
TUFF_FUNCTION_IN_PLACE(mul_, *)
TUFF_FUNCTION_IN_PLACE(div_, /)
#undef TUFF_FUNCTION_IN_PLACE

#define TUFF_OPERATOR_IN_PLACE(assignment, op)                                               \
  Tensor& operator assignment(Tensor& a, const Tensor& b) {                                  \
    TUFF_IN_PLACE(#assignment, a, op, b);                                                    \
  }                                                                                          \
  Tensor& operator assignment(Tensor& a, Number b) { TUFF_IN_PLACE(#assignment, a, op, b); }
TUFF_OPERATOR_IN_PLACE(+=, +)
TUFF_OPERATOR_IN_PLACE(-=, -)
TUFF_OPERATOR_IN_PLACE(*=, *)
TUFF_OPERATOR_IN_PLACE(/=, /)
TUFF_OPERATOR_IN_PLACE(%=, %)
TUFF_OPERATOR_IN_PLACE(&=, &)
TUFF_OPERATOR_IN_PLACE(|=, |)
TUFF_OPERATOR_IN_PLACE(^=, ^)
TUFF_OPERATOR_IN_PLACE(<<=, <<)
TUFF_OPERATOR_IN_PLACE(>>=, >>)
#undef TUFF_OPERATOR_IN_PLACE
#undef TUFF_IN_PLACE

Tensor& TensorWrites::clamp_(std::optional<Number> min, std::optional<Number> max) {
  return overwrite("clamp_", self(this), detail::current(self(this)).clamp(min, max));
}
Tensor& TensorWrites::fill_(Number value) {
  return overwrite("fill_", self(this), self(this).full_like(value));
}
Tensor& TensorWrites::zero_() { return fill_(0); }
Tensor& TensorWrites::copy_(const Tensor& source) {
  const Tensor here = detail::on_devices_of(source, self(this)).cast(self(this).dtype());
  return overwrite("copy_", self(this), apart(here, source));
}
Tensor& TensorWrites::masked_fill_(const Tensor& mask, Number value) {
  return overwrite("masked_fill_", self(this),
                   detail::current(self(this)).masked_fill(mask, value));
}

// It is no view any more.
void detail::take_place(const Tensor& t, const Tensor& value) {
  ir::UOp before;  // goes when others may build
  const detail::ReplaceGuard alone;
  const ir::UOp after = uop(value);
  before = std::exchange(t.impl()->uop, after);
  t.impl()->device = value.impl()->device;
  t.impl()->viewed = {};
}

void detail::convert(const Tensor& t, DType to, const std::string& device) {
  Tensor value = t.detach().to(device).cast(to);
  if (value.device() == t.device() && to == t.dtype()) return;
  value.realize();
  Tensor grad = t.grad();
  if (grad.defined()) grad = grad.to(device).cast(to).realize();
  take_place(t, value);
  Tensor(t).set_grad(grad);
}

Tensor& TensorWrites::to_(const std::string& device) {
  Tensor& x = self(this);
  if (engine::Capture::current())
    fail<InvalidArgument>("to_: a tensor inside a captured function cannot move: use to()");
  if (x.requires_grad() || x.grad().defined())
    detail::convert(x, x.dtype(), device);
  else if (const Tensor there = x.to(device); there.device() != x.device())
    detail::take_place(x, there);
  return x;
}

}  // namespace tuff
