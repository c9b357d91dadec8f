#include "language/feed_forward.h"

namespace tuff::language {
namespace {

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

// The experts of each row and how much each of them counts, (rows, used).
std::pair<Tensor, Tensor> chosen(const Config& c, const Experts& e, const Tensor& x) {
  const auto [weights, experts] = x.linear(e.router).softmax(-1).topk(c.experts_used);
  if (!c.normalizes_experts) return {weights, experts};
  return {weights / weights.sum({-1}, true), experts};
}

// Of one row: of the packed weights those of the chosen experts are read.
Tensor by_choice(const Config& c, const Experts& e, const Tensor& x, const Tensor& weights,
                 const Tensor& experts) {
  Tensor sum;
  for (int64_t i = 0; i < c.experts_used; i++) {
    const Tensor expert = experts.select(1, i);  // (1)
    const auto product = [&](const Tensor& in, const ExpertMaps& maps) {
      return in.linear(maps.one(expert));
    };
    const Tensor hidden = activated(c, product(x, e.gate)) * product(x, e.up);
    const Tensor y = product(hidden, e.down) * weights.narrow(1, i, 1);
    sum = sum.defined() ? sum + y : y;
  }
  return sum;
}

// Every expert computes every row; those that were not chosen count nothing.
Tensor by_all(const Config& c, const Experts& e, const Tensor& x, const Tensor& weights,
              const Tensor& experts) {
  const auto product = [&](const Tensor& in, const ExpertMaps& maps) {
    return in.matmul(maps.every().transpose(1, 2));
  };
  const Tensor in = x.unsqueeze(0);
  const Tensor hidden = activated(c, product(in, e.gate)) * product(in, e.up);
  const Tensor counts =
      (experts.one_hot(c.experts).to(DType::F32) * weights.unsqueeze(-1)).sum({1});
  return (product(hidden, e.down) * counts.transpose(0, 1).unsqueeze(-1)).sum({0});
}

Tensor experts(const Config& c, const Experts& e, const Tensor& x) {
  const auto [weights, chosen_experts] = chosen(c, e, x);
  const bool single = x.size(0).is_number() && int64_t(x.size(0)) == 1;
  const Tensor y = single ? by_choice(c, e, x, weights, chosen_experts)
                       : by_all(c, e, x, weights, chosen_experts);
  if (!e.shared_gate.weight.defined()) return y;
  const Tensor shared = gated(c, e.shared_gate, e.shared_up, e.shared_down, x);
  return y + shared * x.linear(e.shared_router.unsqueeze(0)).sigmoid();
}

}  // namespace

Tensor feed_forward(const Config& c, const LayerWeights& l, const Tensor& x) {
  if (l.experts.router.defined()) return experts(c, l.experts, x);
  if (!l.gate.weight.defined()) return l.down(activated(c, l.up(x)));
  return gated(c, l.gate, l.up, l.down, x);
}

}  // namespace tuff::language
