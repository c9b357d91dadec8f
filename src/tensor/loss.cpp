// Losses.
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/loss.h"
#include "tensor/polynomials.h"
#include "tensor/positions.h"
#include "tensor/view_link.h"

namespace tuff {

using detail::at;
using detail::totalled;
using detail::text;

namespace {

Tensor reduced(const Tensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::None: return losses;
    case Reduction::Sum: return losses.sum();
    case Reduction::Mean: return losses.mean();
    case Reduction::BatchMean:
      return losses.dim() == 0 ? losses : losses.sum() / Number(losses.size(0));
  }
  return losses;
}

struct CrossEntropy {
  Tensor log_p;   // (N, C, ...) with classes on `axis`
  Tensor weight;  // of the classes, shaped to broadcast; undefined: 1
  int64_t axis, classes;
  Reduction reduction;
  double smoothing;

  Tensor weighted(const Tensor& x) const { return weight.defined() ? x * weight : x; }

  Tensor of_probabilities(const Tensor& given) const {
    Tensor target = given.cast(log_p.dtype());
    if (smoothing > 0) target = target * (1 - smoothing) + smoothing / double(classes);
    const Tensor losses = -(weighted(log_p) * target).sum({axis});
    if (reduction != Reduction::Mean) return reduced(losses, reduction);
    return losses.mean();
  }

  Tensor of_classes(const Tensor& target, int64_t ignore_index) const {
    const DType t = log_p.dtype();
    const Tensor counts = target != ignore_index;
    const Tensor at = size_bytes(target.dtype()) < 4 ? target.cast(DType::I32) : target;
    const Tensor hit =
        at.unsqueeze(axis) ==
        detail::counter(classes, axis, log_p.dim(), target.device()).cast(at.dtype());
    auto chosen = [&](const Tensor& x) {
      return Tensor::where(counts, -detail::pick(hit, x.expand(log_p.sizes()), {axis}), 0);
    };
    Tensor losses = chosen(weighted(log_p));
    if (smoothing > 0) {
      const Tensor all = Tensor::where(counts, -weighted(log_p).sum({axis}), 0);
      losses = losses * (1 - smoothing) + all * (smoothing / double(classes));
    }
    if (reduction != Reduction::Mean) return reduced(losses, reduction);
    const Tensor weights = weight.defined() ? -chosen(weight) : counts.cast(t);
    return losses.sum() / weights.sum();
  }
};

// What classes are compared with, checked: the axis that they stand on, how many there are, and
// whether targets are probabilities.
struct Classes {
  int64_t axis, count;
  bool soft;
};
Classes classes_of(const char* what, const Tensor& x, const Tensor& target, bool may_be_soft) {
  detail::require_same_device(what, x, target);
  if (x.dim() == 0) fail<ShapeError>("{}: logits {} have no classes", what, text(x.sizes()));
  const int64_t axis = x.dim() == 1 ? 0 : 1, count = x.size(axis);
  const bool soft =
      may_be_soft && is_float(target.dtype()) && detail::same(target.sizes(), x.sizes());
  Sizes wanted = x.sizes();
  wanted.erase(wanted.begin() + axis);
  if (!soft && !detail::same(target.sizes(), wanted)) {
    fail<ShapeError>("{}: logits {} need (N, C, ...) and target {} (N, ...)", what,
                     text(x.sizes()), text(target.sizes()));
  }
  if (!soft && !is_int(target.dtype()))
    fail<InvalidArgument>("{}: target is {}, not integer", what, name(target.dtype()));
  if (count == 0) fail<ShapeError>("{}: logits {} have no classes", what, text(x.sizes()));
  return {axis, count, soft};
}

// The weight of every class, shaped to broadcast; undefined if none is given.
Tensor class_weight(const char* what, const Tensor& weight, const Tensor& x, const Classes& c) {
  if (!weight.defined()) return {};
  detail::require_same_device(what, x, weight);
  if (weight.sizes() != Sizes{c.count})
    fail<ShapeError>("{}: weight {} for {} classes", what, text(weight.sizes()), c.count);
  Sizes along(size_t(x.dim()), 1);
  along[size_t(c.axis)] = c.count;
  return weight.cast(detail::compute_dtype(x.dtype())).reshape(along);
}

// The losses f(x, y) of two tensors that broadcast, computed as both need it.
template <class F>
Tensor pairwise(const char* what, const Tensor& a, const Tensor& b, Reduction reduction, F&& f) {
  const auto [first, second] = detail::unify(what, a, b);
  const Tensor y = second.cast(detail::compute_dtype(second.dtype()));
  return totalled(first, [&](const Tensor& x) { return reduced(f(x, y), reduction); });
}

// log(x), but -100 where that is less.
Tensor bounded_log(const Tensor& x) {
  const Tensor some = x != 0;
  return Tensor::where(some, at(some, x).log(), -100.0).clamp(-100);
}

// Of targets 1 and -1 the losses for each; others have both, as in PyTorch.
Tensor by_sign(const Tensor& target, const Tensor& of_one, const Tensor& of_minus_one) {
  return Tensor::where(target == -1, 0.0, of_one) + Tensor::where(target == 1, 0.0, of_minus_one);
}

}  // namespace

Tensor Tensor::cross_entropy(const Tensor& target, const Tensor& weight, int64_t ignore_index,
                             Reduction reduction, double label_smoothing) const {
  const Classes c = classes_of("cross_entropy", *this, target, true);
  if (!c.soft) detail::require_inside({"cross_entropy", 0, c.count, "class", ignore_index}, target);
  return detail::unchecked_cross_entropy(*this, target, weight, ignore_index, reduction,
                                         label_smoothing);
}

Tensor detail::unchecked_cross_entropy(const Tensor& logits, const Tensor& target,
                                       const Tensor& weight, int64_t ignore_index,
                                       Reduction reduction, double label_smoothing) {
  if (!(label_smoothing >= 0 && label_smoothing <= 1))
    fail<InvalidArgument>("cross_entropy: label_smoothing {} is not in 0..1", label_smoothing);
  const Classes c = classes_of("cross_entropy", logits, target, true);
  const Tensor w = class_weight("cross_entropy", weight, logits, c);
  const NoViews computing;
  return totalled(logits, [&](const Tensor& x) {
    const CrossEntropy loss{x.log_softmax(c.axis), w, c.axis, c.count, reduction, label_smoothing};
    return c.soft ? loss.of_probabilities(target) : loss.of_classes(target, ignore_index);
  });
}

Tensor detail::cross_entropy_count(const Tensor& target, int64_t classes, const Tensor& weight,
                                   int64_t ignore_index) {
  const Tensor counts = target != ignore_index;
  if (!weight.defined()) return counts.cast(DType::F32).sum();
  const Tensor known = Tensor::where(counts, target, 0).clamp(0, classes - 1);
  return Tensor::where(counts, weight.cast(DType::F32).index_select(0, known), 0).sum();
}

void detail::require_classes(const char* what, const Tensor& target, int64_t classes,
                             int64_t ignore_index) {
  require_inside({what, 0, classes, "class", ignore_index}, target);
}

Tensor Tensor::nll_loss(const Tensor& target, const Tensor& weight, int64_t ignore_index,
                        Reduction reduction) const {
  const Classes c = classes_of("nll_loss", *this, target, false);
  const Tensor w = class_weight("nll_loss", weight, *this, c);
  detail::require_inside({"nll_loss", 0, c.count, "class", ignore_index}, target);
  return totalled(*this, [&](const Tensor& x) {
    return CrossEntropy{x, w, c.axis, c.count, reduction, 0}.of_classes(target, ignore_index);
  });
}

Tensor Tensor::mse_loss(const Tensor& target, Reduction reduction) const {
  auto [x, y] = detail::unify("mse_loss", *this, target);
  const Tensor wide = y.cast(detail::compute_dtype(y.dtype()));
  return totalled(x, [&](const Tensor& v) { return reduced((v - wide).square(), reduction); });
}

// With l = log(1 + exp(-|x|)): softplus(x) = max(x, 0) + l and softplus(-x) = softplus(x) - x.
Tensor Tensor::binary_cross_entropy_with_logits(const Tensor& target, const Tensor& weight,
                                                Reduction reduction,
                                                const Tensor& pos_weight) const {
  if (!detail::same(target.sizes(), sizes()))
    fail<ShapeError>("binary_cross_entropy_with_logits: logits {} and target {} differ",
                     text(sizes()), text(target.sizes()));
  detail::require_same_device("binary_cross_entropy_with_logits", *this, target);
  return totalled(*this, [&](const Tensor& x) {
    const Tensor y = target.cast(x.dtype()), flipped = (-x).softplus(1, INFINITY);
    Tensor losses = (1 - y) * x;
    losses = losses + (pos_weight.defined() ? ((pos_weight - 1) * y + 1) * flipped : flipped);
    if (weight.defined()) losses = losses * weight;
    if (!detail::same(losses.sizes(), sizes()))
      fail<ShapeError>("binary_cross_entropy_with_logits: a weight broadcasts {} to {}",
                       text(sizes()), text(losses.sizes()));
    return reduced(losses, reduction);
  });
}

Tensor Tensor::binary_cross_entropy(const Tensor& target, const Tensor& weight,
                                    Reduction reduction) const {
  if (!detail::same(target.sizes(), sizes()))
    fail<ShapeError>("binary_cross_entropy: probabilities {} and target {} differ", text(sizes()),
                     text(target.sizes()));
  return pairwise("binary_cross_entropy", *this, target, reduction,
                  [&](const Tensor& x, const Tensor& y) {
    const Tensor losses = -(y * bounded_log(x) + (1 - y) * bounded_log(1 - x));
    if (!weight.defined()) return losses;
    const Tensor weighted = losses * weight.cast(x.dtype());
    if (!detail::same(weighted.sizes(), sizes()))
      fail<ShapeError>("binary_cross_entropy: the weight broadcasts {} to {}", text(sizes()),
                       text(weighted.sizes()));
    return weighted;
  });
}

Tensor Tensor::l1_loss(const Tensor& target, Reduction reduction) const {
  return pairwise("l1_loss", *this, target, reduction,
                  [](const Tensor& x, const Tensor& y) { return (x - y).abs(); });
}
Tensor Tensor::smooth_l1_loss(const Tensor& target, Reduction reduction, double beta) const {
  if (!(beta >= 0)) fail<InvalidArgument>("smooth_l1_loss: beta is {}", beta);
  if (beta == 0) return l1_loss(target, reduction);
  return pairwise("smooth_l1_loss", *this, target, reduction,
                  [&](const Tensor& x, const Tensor& y) {
    const Tensor d = (x - y).abs();
    return where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta);
  });
}
Tensor Tensor::huber_loss(const Tensor& target, Reduction reduction, double delta) const {
  if (!(delta > 0)) fail<InvalidArgument>("huber_loss: delta is {}", delta);
  return pairwise("huber_loss", *this, target, reduction, [&](const Tensor& x, const Tensor& y) {
    const Tensor d = (x - y).abs();
    return where(d <= delta, d * d * 0.5, (d - 0.5 * delta) * delta);
  });
}

Tensor Tensor::kl_div(const Tensor& target, Reduction reduction, bool log_target) const {
  return pairwise("kl_div", *this, target, reduction, [&](const Tensor& x, const Tensor& y) {
    return log_target ? y.exp() * (y - x) : y.xlogy(y) - y * x;
  });
}
Tensor Tensor::poisson_nll_loss(const Tensor& target, bool log_input, bool full, double eps,
                                Reduction reduction) const {
  return pairwise("poisson_nll_loss", *this, target, reduction,
                  [&](const Tensor& x, const Tensor& y) {
    const Tensor losses = log_input ? x.exp() - y * x : x - y * (x + eps).log();
    if (!full) return losses;
    const Tensor many = y > 1, t = at(many, y);
    const Tensor stirling = t * t.log() - t + (t * (2 * std::numbers::pi)).log() * 0.5;
    return losses + where(many, stirling, 0.0);
  });
}
Tensor Tensor::gaussian_nll_loss(const Tensor& target, const Tensor& variance, bool full,
                                 double eps, Reduction reduction) const {
  detail::require_same_device("gaussian_nll_loss", *this, variance);
  Sizes without = sizes();
  if (!without.empty()) without.pop_back();
  const bool lacks_axis = dim() > 0 && detail::same(variance.sizes(), without);
  const Tensor given = lacks_axis ? variance.unsqueeze(-1) : variance;
  if (!detail::same(detail::broadcast_sizes("gaussian_nll_loss", given.sizes(), sizes()), sizes()))
    fail<ShapeError>("gaussian_nll_loss: variance {} for {}", text(variance.sizes()),
                     text(sizes()));
  return pairwise("gaussian_nll_loss", *this, target, reduction,
                  [&](const Tensor& x, const Tensor& y) {
    const Tensor v = given.cast(x.dtype()).clamp(eps);
    const Tensor losses = (v.log() + (x - y).square() / v) * 0.5;
    return full ? losses + 0.5 * std::log(2 * std::numbers::pi) : losses;
  });
}

Tensor Tensor::hinge_embedding_loss(const Tensor& target, double margin,
                                    Reduction reduction) const {
  return pairwise("hinge_embedding_loss", *this, target, reduction,
                  [&](const Tensor& x, const Tensor& y) {
    return by_sign(y, x, (margin - x).clamp(0));
  });
}
Tensor Tensor::soft_margin_loss(const Tensor& target, Reduction reduction) const {
  return pairwise("soft_margin_loss", *this, target, reduction,
                  [](const Tensor& x, const Tensor& y) { return -((y * x).logsigmoid()); });
}
Tensor Tensor::margin_ranking_loss(const Tensor& other, const Tensor& target, double margin,
                                   Reduction reduction) const {
  const auto [a, b] = detail::unify("margin_ranking_loss", *this, other);
  const DType t = detail::compute_dtype(a.dtype());
  return pairwise("margin_ranking_loss", a.cast(t) - b.cast(t), target, reduction,
                  [&](const Tensor& gap, const Tensor& y) { return (margin - y * gap).clamp(0); })
      .cast(detail::real_dtype(promote(a.dtype(), target.dtype())));
}
Tensor Tensor::cosine_embedding_loss(const Tensor& other, const Tensor& target, double margin,
                                     Reduction reduction) const {
  const Tensor cosine = cosine_similarity(other, -1);
  return pairwise("cosine_embedding_loss", cosine, target, reduction,
                  [&](const Tensor& c, const Tensor& y) {
    return where(y == 1, 1 - c, 0.0) + where(y == -1, (c - margin).clamp(0), 0.0);
  });
}
Tensor Tensor::triplet_margin_loss(const Tensor& positive, const Tensor& negative, double margin,
                                   double p, double eps, bool swap, Reduction reduction) const {
  const auto [a, b] = detail::unify("triplet_margin_loss", *this, positive);
  const auto [x, c] = detail::unify("triplet_margin_loss", a, negative);
  if (x.dim() == 0) fail<ShapeError>("triplet_margin_loss: scalars have no last axis");
  const DType t = detail::compute_dtype(x.dtype());
  const Tensor near = b.cast(t), far = c.cast(t);
  return totalled(x, [&](const Tensor& anchor) {
    const auto distance = [&](const Tensor& u, const Tensor& v) {
      return (u - v + eps).norm(p, {-1});
    };
    Tensor away = distance(anchor, far);
    if (swap) away = away.minimum(distance(near, far));
    return reduced((distance(anchor, near) - away + margin).clamp(0), reduction);
  });
}

}  // namespace tuff
