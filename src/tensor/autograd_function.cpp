// Functions with gradients of their own, and those that are computed again: nodes of the graph that
// only gradients look at (ir/rule.h, ir/gradient_walk.cpp).
#include <tuff/autograd.h>

#include <algorithm>

#include "base/check.h"
#include "ir/rule.h"
#include "tensor/impl.h"

namespace tuff {

using detail::uop;
using ir::Op;
using ir::UOp;

namespace {

std::string device_of(const Tensors& arguments, const Tensors& results) {
  for (const Tensors* list : {&arguments, &results})
    for (const Tensor& t : *list)
      if (t.defined()) return t.device();
  return {};
}

void require_one_device(const char* what, const Tensors& arguments, const Tensors& results) {
  const std::string device = device_of(arguments, results);
  for (const Tensors* list : {&arguments, &results})
    for (const Tensor& t : *list)
      if (uop(t).get() && t.device() != device)
        fail<InvalidArgument>("{}: an argument or result is on {}, another one on {}", what,
                              t.device(), device);
}

// What backward() said of an argument, as its gradient.
UOp gradient_for(const Tensor& argument, const Tensor& given, size_t number) {
  if (!given.defined()) return {};
  if (!is_float(argument.dtype()))
    fail<InvalidArgument>("Function: backward() gave a gradient for argument {}, which is {}: only "
                          "floats have gradients",
                          number, name(argument.dtype()));
  if (!detail::same(given.sizes(), argument.sizes()))
    fail<ShapeError>("Function: backward() gave a gradient {} for argument {} of {}",
                     detail::text(given.sizes()), number, detail::text(argument.sizes()));
  detail::require_same_device("Function: backward()", argument, given);
  return uop(given.cast(argument.dtype()));
}

// Stand-ins for the gradients of the results that have one.
Tensors stand_ins(const Tensors& results) {
  Tensors out;
  for (const Tensor& y : results) {
    const detail::BuildGuard section;
    out.push_back(is_float(y.dtype()) ? detail::wrap(ir::place_like(uop(y)), y.device())
                                      : Tensor());
  }
  return out;
}

// Results with the rule that is made of the given gradients. All nodes are loaded at once, after
// both functions have run, which may have realized some.
Tensors with_rule(const Tensors& arguments, const Tensors& results, const Tensors& places,
                  const Tensors& gradients) {
  const detail::BuildGuard section;
  ir::RuleParts parts;
  for (size_t i = 0; i < results.size(); i++) {
    if (!places[i].defined()) continue;
    parts.values.push_back(uop(results[i]));
    parts.places.push_back(uop(places[i]));
  }
  for (size_t k = 0; k < arguments.size(); k++) {
    parts.arguments.push_back(uop(arguments[k]));
    parts.gradients.push_back(gradient_for(arguments[k], gradients[k], k));
  }
  const std::vector<UOp> nodes = ir::ruled(parts);
  Tensors out;
  size_t next = 0;
  for (size_t i = 0; i < results.size(); i++)
    out.push_back(places[i].defined() ? detail::wrap(nodes[next++], results[i].device())
                                      : results[i]);
  return out;
}

}  // namespace

Tensors detail::same_values(Tensors tensors) {
  const BuildGuard section;
  for (Tensor& t : tensors)
    if (t.defined()) t = derive(t, uop(t));
  return tensors;
}

Tensors autograd::Function::operator()(const Tensors& arguments) const {
  FunctionContext context;
  const Tensors results = forward(context, arguments);
  require_one_device("Function", arguments, results);
  if (!is_grad_enabled()) return detail::same_values(results);
  const Tensors places = stand_ins(results);
  const Tensors gradients = backward(context, detail::same_values(places));
  if (gradients.size() != arguments.size())
    fail<InvalidArgument>("Function: backward() gave {} gradients for {} arguments: give an "
                          "undefined tensor where there is none",
                          gradients.size(), arguments.size());
  return with_rule(arguments, results, places, gradients);
}

Tensors checkpoint(const TensorsFunction& f, const Tensors& arguments) {
  Tensors results = f(arguments);
  require_one_device("checkpoint", arguments, results);
  const detail::BuildGuard section;
  std::vector<UOp> nodes;
  for (const Tensor& x : arguments) nodes.push_back(uop(x));
  const UOp given = ir::sink(nodes);
  for (Tensor& y : results)
    if (is_float(y.dtype()))
      y = detail::derive(y, ir::make(Op::Checkpoint, y.dtype(), {uop(y), given}));
  return results;
}

Tensor checkpoint(const TensorFunction& f, const Tensor& argument) {
  return checkpoint([&f](const Tensors& x) { return Tensors{f(x[0])}; }, Tensors{argument})[0];
}

}  // namespace tuff
