#include "language/feed_forward.h"

#include "language/experts.h"

namespace tuff::language {

Tensor activated(const Config& c, const Tensor& x) {
  switch (c.architecture.activation) {
    case Activation::Silu: return x.silu();
    case Activation::GeluTanh: return x.gelu("tanh");
    case Activation::Gelu: return x.gelu();
  }
  return x;
}

Tensor gated(const Config& c, const Projection& gate, const Projection& up, const Projection& down,
             const Tensor& x) {
  return down(activated(c, gate(x)) * up(x));
}

Tensor feed_forward(const Config& c, const LayerWeights& l, const Tensor& x) {
  if (l.experts.router.defined()) return mixture(c, l.experts, x);
  if (!l.gate.weight.defined()) return l.down(activated(c, l.up(x)));
  return gated(c, l.gate, l.up, l.down, x);
}

}  // namespace tuff::language
