#include "tensor/reference.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "ir/walk.h"
#include "tensor/impl.h"

namespace tuff::test {

using ir::HostArray;
using ir::Op;
using ir::UOp;

std::vector<HostArray> interpret(const std::vector<Tensor>& tensors) {
  std::vector<UOp> roots;
  for (const Tensor& t : tensors) roots.push_back(detail::uop(t));
  ir::Bindings bindings;
  std::deque<std::vector<std::byte>> memory;
  for (const ir::Node* n : ir::toposort(roots)) {
    if (n->op != Op::Buffer) continue;
    const Ref<engine::Buffer> b = detail::buffer_of(UOp(n));
    std::vector<std::byte>& bytes = memory.emplace_back(b->size_bytes());
    if (!bytes.empty()) b->copyout(bytes.data());
    bindings.storages[b->id] = bytes;
  }
  return ir::interpret(roots, bindings);
}

HostArray contents(const Tensor& t) {
  HostArray a{t.dtype(), t.sizes(), {}};
  a.bytes.resize(size_t(t.numel()) * size_bytes(t.dtype()));
  t.copy_to(a.bytes.data(), a.bytes.size());
  return a;
}

namespace {

double largest_magnitude(const HostArray& a) {
  double largest = 0;
  for (int64_t i = 0; i < a.count(); i++) {
    const double v = std::abs(a.at(i).as_double());
    if (std::isfinite(v)) largest = std::max(largest, v);
  }
  return largest;
}

bool agree(const Scalar& got, const Scalar& want, double allowed) {
  if (got == want) return true;
  if (!is_float(want.dtype)) return false;
  const double a = got.as_double(), b = want.as_double();
  if (std::isnan(b)) return std::isnan(a);
  return a == b || std::abs(a - b) <= allowed;  // a == b: zeros of either sign
}

}  // namespace

std::string difference(const HostArray& got, const HostArray& want, double relative) {
  if (got.dtype != want.dtype)
    return fmt::format("dtype {} where {} was expected", name(got.dtype), name(want.dtype));
  if (got.shape != want.shape)
    return fmt::format("shape ({}) where ({}) was expected", fmt::join(got.shape, ", "),
                       fmt::join(want.shape, ", "));
  const double allowed = is_float(want.dtype) ? relative * largest_magnitude(want) : 0;
  for (int64_t i = 0; i < want.count(); i++) {
    if (agree(got.at(i), want.at(i), allowed)) continue;
    return fmt::format("element {}: {:.9g} where {:.9g} was expected (allowed difference {:.3g})",
                       i, got.at(i).as_double(), want.at(i).as_double(), allowed);
  }
  return {};
}

}  // namespace tuff::test
