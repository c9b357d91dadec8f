// Gradients of functions: vjp() by the gradients of the graph that a function builds of marked
// arguments, and what is made of it.
#include <tuff/autograd.h>

#include "base/check.h"
#include "ir/rule.h"
#include "tensor/impl.h"

namespace tuff::autograd {

using detail::uop;
using ir::Op;
using ir::UOp;

namespace {

// The same values, told apart from each other and from what the function uses besides.
Tensors marked(const char* what, const Tensors& inputs) {
  const detail::BuildGuard section;
  Tensors out;
  for (size_t k = 0; k < inputs.size(); k++) {
    const Tensor& x = inputs[k];
    if (!is_float(uop(x)->dtype))
      fail<InvalidArgument>("{}: input {} is {}, only floats have gradients: cast() it", what, k,
                            name(x.dtype()));
    const UOp mark = ir::make(Op::Mark, x.dtype(), {uop(x)}, int64_t(k));
    out.push_back(detail::wrap(mark, x.device()));
  }
  return out;
}

void require_like(const char* what, const char* of, const Tensors& like, const Tensors& v) {
  if (v.size() != like.size())
    fail<InvalidArgument>("{}: {} tensors for {} {}s", what, v.size(), like.size(), of);
  for (size_t i = 0; i < v.size(); i++)
    if (!detail::same(v[i].sizes(), like[i].sizes()))
      fail<ShapeError>("{}: {} for {} {} of {}", what, detail::text(v[i].sizes()), of, i,
                       detail::text(like[i].sizes()));
}

// Gradients of sum(outputs * v), zeros where there are none.
Tensors summed_gradients(const Tensors& outputs, const Tensors& v, const Tensors& by) {
  Tensors out(by.size());
  for (size_t i = 0; i < outputs.size(); i++) {
    if (!is_float(outputs[i].dtype())) continue;
    const Tensors own = outputs[i].gradient(by, v[i]);
    for (size_t k = 0; k < by.size(); k++) {
      if (own[k].defined()) out[k] = out[k].defined() ? out[k] + own[k] : own[k];
    }
  }
  for (size_t k = 0; k < by.size(); k++)
    if (!out[k].defined()) out[k] = by[k].zeros_like();
  return out;
}

Tensors called(const TensorsFunction& f, const Tensors& inputs) {
  const detail::GradGuard on;
  return f(detail::same_values(inputs));
}

// The gradients of each element of y by x, the elements first: those of one v, for all that have a
// single 1.
Tensors of_each_element(const Tensor& y, const Tensors& by) {
  detail::require_numbers("jacrev", y.sizes());
  const int64_t n = y.numel();
  const Tensor v = detail::stand_in(y.dtype(), y.sizes(), y.device());
  Sizes all = y.sizes();
  all.insert(all.begin(), n);
  const Tensor ones = Tensor::eye(n, {y.dtype(), y.device()}).reshape(all);
  Tensors out = detail::batched(summed_gradients({y}, {v}, by), n, {{v, ones}});
  for (size_t k = 0; k < by.size(); k++) {
    Sizes sizes = y.sizes(), own = by[k].sizes();
    sizes.insert(sizes.end(), own.begin(), own.end());
    out[k] = out[k].reshape(sizes);
  }
  return out;
}

}  // namespace

Derivatives vjp(const TensorsFunction& f, const Tensors& inputs, const Tensors& v) {
  const detail::GradGuard on;
  const Tensors by = marked("vjp", inputs);
  Derivatives out{called(f, by), {}};
  if (v.empty() && out.outputs.size() == 1 && detail::same(out.outputs[0].numel(), 1)) {
    out.derivatives = summed_gradients(out.outputs, {out.outputs[0].ones_like()}, by);
  } else {
    require_like("vjp", "output", out.outputs, v);
    out.derivatives = summed_gradients(out.outputs, v, by);
  }
  return out;
}

Derivatives jvp(const TensorsFunction& f, const Tensors& inputs, const Tensors& v) {
  const detail::GradGuard on;
  require_like("jvp", "input", inputs, v);
  const Tensors by = marked("jvp", inputs);
  Derivatives out{called(f, by), {}};
  // The gradients are linear in u, so which values u has does not matter.
  Tensors u;
  for (const Tensor& y : out.outputs) {
    const detail::BuildGuard section;
    u.push_back(detail::wrap(ir::place_like(uop(y)), y.device()));
  }
  const Tensors back = summed_gradients(out.outputs, u, by);
  out.derivatives = summed_gradients(back, v, u);
  return out;
}

Tensors jacrev(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs) {
  const detail::GradGuard on;
  const Tensors by = marked("jacrev", inputs);
  return of_each_element(f(detail::same_values(by)), by);
}

Tensor jacrev(const TensorFunction& f, const Tensor& x) {
  return jacrev([&f](const Tensors& in) { return f(in[0]); }, Tensors{x})[0];
}

// By input, as the others do not move then: a place for its v, and then all that have a single 1.
Tensors jacfwd(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs) {
  const detail::GradGuard on;
  const Tensors by = marked("jacfwd", inputs);
  const Tensor y = f(detail::same_values(by));
  detail::require_numbers("jacfwd", y.sizes());
  const Tensor u = detail::stand_in(y.dtype(), y.sizes(), y.device());
  const Tensors back = summed_gradients({y}, {u}, by);
  Tensors out;
  for (size_t k = 0; k < by.size(); k++) {
    const Tensor& x = by[k];
    detail::require_numbers("jacfwd", x.sizes());
    const int64_t n = x.numel();
    const Tensor v = detail::stand_in(x.dtype(), x.sizes(), x.device());
    Sizes all = x.sizes(), sizes = y.sizes();
    all.insert(all.begin(), n);
    const Tensor ones = Tensor::eye(n, {x.dtype(), x.device()}).reshape(all);
    const Tensor columns =
        detail::batched(summed_gradients({back[k]}, {v}, {u}), n, {{v, ones}})[0];
    for (const Size& s : x.sizes()) sizes.push_back(s);
    out.push_back(columns.flatten(1).transpose(0, 1).reshape(sizes));
  }
  return out;
}

Tensor jacfwd(const TensorFunction& f, const Tensor& x) {
  return jacfwd([&f](const Tensors& in) { return f(in[0]); }, Tensors{x})[0];
}

Tensor hessian(const TensorFunction& f, const Tensor& x) {
  return jacrev(
      [&f](const Tensor& in) {
        const Tensors by = marked("hessian", {in});
        const Tensor y = f(detail::same_values(by)[0]);
        if (!detail::same(y.numel(), 1))
          fail<ShapeError>("hessian: the function gives {}, not one element: jacrev(jacrev(...))",
                           detail::text(y.sizes()));
        return summed_gradients({y}, {y.ones_like()}, by)[0];
      },
      x);
}

}  // namespace tuff::autograd
