// backward() and gradient(): ir::gradients applied to tensors.
#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "ir/gradient.h"
#include "ir/history.h"
#include "ir/walk.h"
#include "tensor/impl.h"

namespace tuff {

using detail::uop;
using ir::UOp;

namespace {

UOp seed_of(const Tensor& t, const Tensor& given) {
  if (!is_float(t.dtype()))
    fail<InvalidArgument>("backward: the tensor is {}, only floats have gradients",
                          name(t.dtype()));
  if (given.defined()) {
    detail::require_same_device("backward", t, given);
    if (!detail::same(given.sizes(), t.sizes()))
      fail<ShapeError>("backward: gradient {} for a tensor of {}", detail::text(given.sizes()),
                       detail::text(t.sizes()));
    return uop(given.cast(t.dtype()));
  }
  return uop(Tensor::ones(t.sizes(), {t.dtype(), t.device()}));
}

// The node whose elements a tensor shows: reshapes of reshapes merge when graphs are built, so a
// target is looked for below its own.
UOp elements_of(const UOp& u) {
  UOp base = u;
  while (base->op == ir::Op::Reshape) base = base->src(0);
  return base;
}

// d(root)/d(target) in the targets' shapes.
std::vector<UOp> gradients_of(const UOp& root, const UOp& seed, const std::vector<UOp>& targets) {
  std::vector<UOp> bases;
  for (const UOp& t : targets) bases.push_back(elements_of(t));
  std::vector<UOp> grads = ir::gradients(root, seed, bases);
  for (size_t i = 0; i < grads.size(); i++) {
    if (grads[i]) grads[i] = ir::reshape(grads[i], targets[i]->shape);
  }
  return grads;
}

// Live leaves with requires_grad below the root, in order of creation.
std::vector<Ref<TensorImpl>> leaves_below(const UOp& root) {
  std::unordered_set<const ir::Node*> below;
  ir::any_below(root, [&](const ir::Node* n) { return below.insert(n), false; });
  std::vector<Ref<TensorImpl>> leaves;
  detail::for_each_live([&](TensorImpl& t) {
    if (t.requires_grad && below.count(elements_of(t.uop).get())) leaves.emplace_back(&t);
  });
  std::sort(leaves.begin(), leaves.end(),
            [](const auto& a, const auto& b) { return a->uop->serial < b->uop->serial; });
  return leaves;
}

thread_local bool grad_enabled = true;

}  // namespace

bool is_grad_enabled() { return grad_enabled; }
NoGradGuard::NoGradGuard() : before_(std::exchange(grad_enabled, false)) {}
NoGradGuard::~NoGradGuard() { grad_enabled = before_; }
detail::GradGuard::GradGuard() : before_(std::exchange(grad_enabled, true)) {}
detail::GradGuard::~GradGuard() { grad_enabled = before_; }

void Tensor::backward(const Tensor& given) const {
  if (!given.defined() && !detail::same(numel(), 1)) {
    fail<ShapeError>("backward: the tensor {} is no scalar: give the gradient to start from",
                     detail::text(sizes()));
  }
  const detail::BuildGuard section;
  const UOp seed = seed_of(*this, given);
  const std::vector<Ref<TensorImpl>> leaves = leaves_below(uop(*this));
  if (leaves.empty())
    fail<InvalidArgument>("backward: no tensor with requires_grad is below this one");
  std::vector<UOp> targets;
  for (const auto& l : leaves) targets.push_back(l->uop);
  const std::vector<UOp> grads = gradients_of(uop(*this), seed, targets);
  for (size_t i = 0; i < leaves.size(); i++) {
    if (!grads[i]) continue;
    const Tensor fresh = detail::wrap(grads[i], leaves[i]->device);
    Tensor leaf(leaves[i].get());
    leaf.set_grad(leaf.grad().defined() ? leaf.grad() + fresh : fresh);
  }
}

std::vector<Tensor> Tensor::gradient(const std::vector<Tensor>& targets,
                                     const Tensor& given) const {
  const detail::BuildGuard section;
  std::vector<UOp> nodes;
  for (const Tensor& t : targets) nodes.push_back(uop(t));
  std::vector<Tensor> out;
  const std::vector<UOp> grads = gradients_of(uop(*this), seed_of(*this, given), nodes);
  for (size_t i = 0; i < grads.size(); i++)
    out.push_back(grads[i] ? detail::wrap(grads[i], targets[i].impl()->device) : Tensor());
  return out;
}

// A place without a value stands for the tensor: no linear function's gradient depends on it, and no
// graph of a user has a Param in it.
Tensor detail::adjoint(const Sizes& sizes, const Tensor& gradient,
                       const std::function<Tensor(const Tensor&)>& linear) {
  const BuildGuard section;
  const DType t = gradient.dtype();
  const UOp one = ir::reshape(ir::param(0, t, 1), ir::Shape(sizes.size(), ir::Dim(1)));
  const UOp place = ir::make(ir::Op::Detach, t, {ir::expand(one, shape_of(sizes))});
  UOp root;
  {
    const GradGuard on;
    root = uop(linear(wrap(place, gradient.device())));
  }
  const UOp g = ir::gradients(root, uop(gradient), std::vector<UOp>{place})[0];
  return g ? derive(gradient, g) : Tensor::zeros(sizes, {t, gradient.device()});
}

}  // namespace tuff
