#include "tensor/closed_form.h"

#include "engine/device.h"

namespace tuff::detail {

using ir::UOp;

Tensor ruled(const Tensor& value, std::initializer_list<Tensor> sources,
             const ir::GradientRule& rule) {
  const BuildGuard section;
  std::vector<UOp> src{uop(value)};
  if (!is_grad_enabled())
    return wrap(ir::make(ir::Op::Detach, value.dtype(), src), value.device());
  for (const Tensor& t : sources) src.push_back(uop(t));
  return wrap(ir::make(ir::Op::Detach, value.dtype(), src, &rule), value.device());
}

Tensor tensor_of(const UOp& u, const UOp& node) {
  return wrap(u, node->device ? *node->device : engine::canonical_device(""));
}

std::vector<UOp> gradients_of_sources(std::initializer_list<Tensor> of_sources) {
  std::vector<UOp> out{UOp()};
  for (const Tensor& t : of_sources) out.push_back(t.defined() ? UOp(uop(t)) : UOp());
  return out;
}

}  // namespace tuff::detail
