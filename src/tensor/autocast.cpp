// The scope's dtype, and what functions make of it.
#include <tuff/autocast.h>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff {
namespace {

thread_local DType scope = DType::Void;

}  // namespace

Autocast::Autocast(DType dtype, bool enabled) : before_(scope) {
  if (dtype != DType::F16 && dtype != DType::BF16)
    fail<InvalidArgument>("Autocast: {} is neither float16 nor bfloat16", name(dtype));
  scope = enabled ? dtype : DType::Void;
}
Autocast::~Autocast() { scope = before_; }

DType autocast_dtype() { return scope; }

Tensor detail::factor(const Tensor& x) {
  const bool narrows = scope != DType::Void && x.defined() && is_float(x.dtype()) &&
                       x.dtype() != DType::F64 && !is_float8(x.dtype());
  return narrows ? x.cast(scope) : x;
}

DType detail::total_dtype(DType t) {
  return scope == DType::Void || !is_float(t) || is_float8(t) ? t : compute_dtype(t);
}

}  // namespace tuff
