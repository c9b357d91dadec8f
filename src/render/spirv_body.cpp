#include "render/spirv_body.h"

#include <spirv/unified1/spirv.hpp>

#include "base/check.h"
#include "ir/walk.h"
#include "render/spirv_matrices.h"

namespace tuff::render {

using ir::Node;
using ir::Op;
using kernel::LaneMask;

SpirvBody::SpirvBody(const kernel::LinearKernel& k, const Target& on, SpirvModule& module)
    : kernel(k),
      target(on),
      m(module),
      t(module, on.features),
      ops(module, t),
      space(k),
      has_matrices(uses_matrices(k)),
      values(k.ops.size()) {
  for (size_t i = 0; i < k.ops.size(); ++i) position_[k.ops[i].get()] = i;
}

size_t SpirvBody::position(const Node* u) const {
  const auto it = position_.find(u);
  TUFF_CHECK(it != position_.end(), "kernel {}: a source of {} is not in the list", kernel.name,
             ir::name(kernel.ops[current]->op));
  return it->second;
}

SpirvValue SpirvBody::value(const Node* u, LaneMask mask, int instance) {
  u = without_after(u);
  const size_t at = position(u);
  TUFF_CHECK(!values[at].empty(), "kernel {}: op {} ({}) is used before it has a value",
             kernel.name, at, ir::name(u->op));
  return values[at][static_cast<size_t>(space.project(mask, instance, kernel.lanes[at]))];
}

SpirvValue SpirvBody::chosen(const Node* u, LaneMask mask, int instance) {
  const bool constant_float = u->op == Op::Const && is_float(u->dtype);
  return constant_float ? SpirvValue{t.opaque(u->get<Scalar>())} : value(u, mask, instance);
}

Id SpirvBody::id(const SpirvValue& v, DType t) {
  if (!v.base) return this->t.integer(t, v.constant);
  if (!v.constant) return v.base;
  return m.pure(spv::OpIAdd, this->t.reg(t), {v.base, this->t.integer(t, v.constant)});
}

}  // namespace tuff::render
