#include "render/c_body.h"

#include <algorithm>

#include "base/check.h"
#include "ir/walk.h"
#include "render/c_lookups.h"

namespace tuff::render {

using ir::Node;
using kernel::LaneMask;

CBody::CBody(const kernel::LinearKernel& k, const CDialect& d, bool wide_registers)
    : kernel(k),
      dialect(d),
      space(k),
      has_wide_registers(d.simd && wide_registers),
      values(k.ops.size()) {
  if (d.simd && c_has_width(space.vector_width())) {
    width = space.vector_width();
    vector_mask = space.vector_mask();
  }
  for (size_t i = 0; i < k.ops.size(); ++i) position_[k.ops[i].get()] = i;
}

void CBody::begin_op(size_t i) {
  current = i;
  text.begin_op(i);
}

size_t CBody::position(const Node* u) const {
  const auto it = position_.find(u);
  TUFF_CHECK(it != position_.end(), "kernel {}: a source of {} is not in the list", kernel.name,
             ir::name(kernel.ops[current]->op));
  return it->second;
}

std::vector<size_t> CBody::users(size_t i) const {
  std::vector<size_t> out;
  for (size_t at = i + 1; at < kernel.ops.size(); ++at)
    if (std::ranges::any_of(kernel.ops[at]->src(), [&](const ir::UOp& s) {
          return without_after(s.get()) == kernel.ops[i].get();
        }))
      out.push_back(at);
  return out;
}

const CValue& CBody::value(const Node* u, LaneMask mask, int instance) const {
  u = without_after(u);
  const size_t at = position(u);
  TUFF_CHECK(at < current && !values[at].empty(),
             "kernel {}: op {} ({}) is used before it has a value", kernel.name, at,
             ir::name(u->op));
  return values[at][space.project(scalar_mask(mask), instance, scalar_mask(kernel.lanes[at]))];
}

// ---- texts ----------------------------------------------------------------------------------

std::string CBody::scalar(const CValue& v, DType t) const {
  if (v.base.empty()) return c_int(dialect, t, v.constant);
  if (v.constant == 0) return v.base;
  return v.constant < 0 && v.constant != INT64_MIN
             ? fmt::format("({} - {})", v.base, c_int(dialect, t, -v.constant))
             : fmt::format("({} + {})", v.base, c_int(dialect, t, v.constant));
}

std::string CBody::vector(const CValue& v, DType t) {
  if (!v.table.empty()) return look_up(*this, v, t);
  if (v.vector) return v.base;
  const std::string type = type_of(t, width);
  const CValue first{v.base, v.constant};
  std::string splat = fmt::format("({})({})", type, scalar(first, t));
  // A Bool in a vector is 0 or -1 per lane.
  if (t == DType::Bool) splat = fmt::format("({})(-{})", type, scalar(first, t));
  if (v.step == 0) return splat;
  std::string steps = fmt::format("({}){{", type);
  for (int l = 0; l < width; ++l)
    steps += fmt::format("{}{}", l ? ", " : "", c_int(dialect, t, v.step * (l / v.every)));
  steps += "}";
  if (v.base.empty() && v.constant == 0) return define(type, steps);
  return define(type, fmt::format("{} + {}", splat, steps));
}

std::string CBody::lane(const CValue& v, DType t, int l) const {
  if (!v.table.empty()) return fmt::format("{}[{}[{}] & 15]", v.table, v.base, l);
  if (v.vector) return fmt::format("{}[{}]", v.base, l);
  return scalar({v.base, v.at_lane(l)}, t);
}

}  // namespace tuff::render
