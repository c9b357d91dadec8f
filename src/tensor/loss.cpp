// Losses.
#include <cmath>

#include "base/check.h"
#include "tensor/impl.h"
#include "tensor/positions.h"

namespace tuff {

using detail::computed_wide;
using detail::text;

namespace {

Tensor reduced(const Tensor& losses, Reduction reduction) {
  switch (reduction) {
    case Reduction::None: return losses;
    case Reduction::Sum: return losses.sum();
    case Reduction::Mean: return losses.mean();
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

void require_class_weight(const Tensor& weight, const Tensor& logits, int64_t classes) {
  if (!weight.defined()) return;
  detail::require_same_device("cross_entropy", logits, weight);
  if (weight.sizes() != Sizes{classes})
    fail<ShapeError>("cross_entropy: weight {} for {} classes", text(weight.sizes()), classes);
}

}  // namespace

Tensor Tensor::cross_entropy(const Tensor& target, const Tensor& weight, int64_t ignore_index,
                             Reduction reduction, double label_smoothing) const {
  detail::require_same_device("cross_entropy", *this, target);
  if (dim() == 0) fail<ShapeError>("cross_entropy: logits {} have no classes", text(sizes()));
  if (!(label_smoothing >= 0 && label_smoothing <= 1))
    fail<InvalidArgument>("cross_entropy: label_smoothing {} is not in 0..1", label_smoothing);
  const int64_t axis = dim() == 1 ? 0 : 1, classes = size(axis);
  const bool soft = is_float(target.dtype()) && detail::same(target.sizes(), sizes());
  Sizes wanted = sizes();
  wanted.erase(wanted.begin() + axis);
  if (!soft && !detail::same(target.sizes(), wanted)) {
    fail<ShapeError>("cross_entropy: logits {} need (N, C, ...) and target {} (N, ...)",
                     text(sizes()), text(target.sizes()));
  }
  if (!soft && !is_int(target.dtype()))
    fail<InvalidArgument>("cross_entropy: target is {}, not integer", name(target.dtype()));
  if (classes == 0) fail<ShapeError>("cross_entropy: logits {} have no classes", text(sizes()));
  require_class_weight(weight, *this, classes);
  if (!soft) detail::require_inside({"cross_entropy", 0, classes, "class", ignore_index}, target);
  return computed_wide(*this, [&](const Tensor& x) {
    Sizes along(size_t(dim()), 1);
    along[size_t(axis)] = classes;
    const Tensor w = weight.defined() ? weight.cast(x.dtype()).reshape(along) : Tensor();
    const CrossEntropy loss{x.log_softmax(axis), w, axis, classes, reduction, label_smoothing};
    return soft ? loss.of_probabilities(target) : loss.of_classes(target, ignore_index);
  });
}

Tensor Tensor::mse_loss(const Tensor& target, Reduction reduction) const {
  auto [x, y] = detail::unify("mse_loss", *this, target);
  const Tensor wide = y.cast(detail::compute_dtype(y.dtype()));
  return computed_wide(x, [&](const Tensor& v) { return reduced((v - wide).square(), reduction); });
}

// With l = log(1 + exp(-|x|)): softplus(x) = max(x, 0) + l and softplus(-x) = softplus(x) - x.
Tensor Tensor::binary_cross_entropy_with_logits(const Tensor& target, const Tensor& weight,
                                                Reduction reduction,
                                                const Tensor& pos_weight) const {
  if (!detail::same(target.sizes(), sizes()))
    fail<ShapeError>("binary_cross_entropy_with_logits: logits {} and target {} differ",
                     text(sizes()), text(target.sizes()));
  detail::require_same_device("binary_cross_entropy_with_logits", *this, target);
  return computed_wide(*this, [&](const Tensor& x) {
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

}  // namespace tuff
