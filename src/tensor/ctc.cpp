// The loss of connectionist temporal classification (Graves et al., 2006): the sum over all
// alignments by dynamic programming, in logarithms, one kernel for each point of time.
#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "engine/realize/capture.h"
#include "tensor/impl.h"
#include "tensor/positions.h"

namespace tuff {

using detail::counter;
using detail::text;

namespace {

// The logarithm of what cannot be: finite, so that differences and gradients are numbers.
constexpr double kImpossible = -1e30;

// What is computed with: (T, N, C), (N, S), (N), (N).
struct Alignments {
  Tensor log_probs, targets, input_lengths, target_lengths;
  int64_t blank;

  int64_t time() const { return log_probs.size(0); }
  int64_t batch() const { return log_probs.size(1); }
  int64_t states() const { return 2 * int64_t(targets.size(1)) + 1; }
  const std::string& device() const { return log_probs.impl()->device; }
  // 0..states-1 as (1, states).
  Tensor state() const { return counter(states(), 1, 2, device()); }

  // Blanks and targets in turn, blanks at both ends: (N, states). What is behind a target's length
  // is a blank, and no state.
  Tensor classes() const {
    const Tensor place = counter(targets.size(1), 1, 2, device());
    const Tensor real = Tensor::where(place < target_lengths.unsqueeze(1), targets, blank);
    detail::require_inside({"ctc_loss", 0, log_probs.size(2), "class"}, real);
    const Tensor second = counter(2, 2, 3, device()) == 1;
    const Tensor both = Tensor::where(second, real.unsqueeze(-1), blank);
    return both.flatten(1, 2).pad({0, 1}, blank);
  }

  // (T, N, states): the log-probability of each state's class.
  Tensor emitted(const Tensor& classes) const {
    const Tensor index = classes.unsqueeze(0).expand({time(), batch(), states()});
    const Tensor real = state() <= target_lengths.unsqueeze(1) * 2;
    const Tensor at = log_probs.gather(2, index);
    return Tensor::where(real & (at > kImpossible), at, kImpossible);
  }
};

// The sum of exponentials of three logarithms. The largest one is taken out as a number.
Tensor joined(const Tensor& a, const Tensor& b, const Tensor& c) {
  const Tensor most = a.detach().maximum(b.detach()).maximum(c.detach());
  return ((a - most).exp() + (b - most).exp() + (c - most).exp()).log() + most;
}

// What stands so many states before.
Tensor before(const Tensor& x, int64_t states) {
  return x.pad({states, -states}, kImpossible);
}

// (N): minus the logarithm of the probability of all alignments.
Tensor losses_of(const Alignments& a) {
  const Tensor classes = a.classes(), state = a.state();
  const Tensor emitted = a.emitted(classes).contiguous();
  // From one target to the next without the blank between them, if they differ.
  const Tensor odd = (state % 2) == 1;
  const Tensor skips = (odd & (state > 1) & (classes != classes.roll({2}, {1}))).contiguous();
  Tensor sums = Tensor::where(state < 2, emitted[0], kImpossible);
  for (int64_t t = 1; t < a.time(); t++) {
    const Tensor from_before = Tensor::where(skips, before(sums, 2), kImpossible);
    const Tensor next = joined(sums, before(sums, 1), from_before) + emitted[t];
    sums = Tensor::where(a.input_lengths.unsqueeze(1) > t, next, sums).contiguous();
  }
  const Tensor last = (a.target_lengths * 2).unsqueeze(1);
  const Tensor ends_blank = sums.gather(1, last).squeeze(1);
  const Tensor ends_target = Tensor::where(
      a.target_lengths > 0, sums.gather(1, (last - 1).clamp(0)).squeeze(1), kImpossible);
  return -joined(ends_blank, ends_target, ends_target.full_like(kImpossible));
}

Tensor lengths(const char* noun, const Tensor& given, int64_t batch) {
  detail::require_integers("ctc_loss", given);
  if (given.dim() > 1 || int64_t(given.numel()) != batch)
    fail<ShapeError>("ctc_loss: {} {} for {} sequences", noun, text(given.sizes()), batch);
  return given.reshape({batch}).cast(DType::I32);
}

// Targets one behind the other as rows of the longest one's length. What is behind a target is not
// looked at.
Tensor as_rows(const Tensor& targets, const Tensor& target_lengths) {
  if (engine::Capture::current())
    fail<InvalidArgument>(
        "ctc_loss: where targets begin depends on their lengths, which a captured graph replays as "
        "they were: give targets (N, S) inside a Jit");
  const std::vector<int32_t> each = target_lengths.to_vector<int32_t>();
  int64_t longest = 0, all = 0;
  for (const int64_t n : each) {
    if (n < 0) fail<InvalidArgument>("ctc_loss: a target length of {}", n);
    longest = std::max(longest, n);
    all += n;
  }
  if (all != int64_t(targets.numel()))
    fail<ShapeError>("ctc_loss: target lengths add up to {} for {} targets", all,
                     int64_t(targets.numel()));
  std::vector<int32_t> at;
  int64_t begin = 0;
  for (const int64_t n : each) {
    for (int64_t s = 0; s < longest; s++)
      at.push_back(int32_t(std::min(begin + s, std::max<int64_t>(all - 1, 0))));
    begin += n;
  }
  const Sizes rows{int64_t(each.size()), longest};
  const TensorOptions there{DType::I32, targets.device()};
  return all == 0 ? Tensor::zeros(rows, there) : targets.take(Tensor::from(at, rows, there));
}

Alignments alignments_of(const Tensor& log_probs, const Tensor& targets,
                         const Tensor& input_lengths, const Tensor& target_lengths,
                         int64_t blank) {
  for (const Tensor* t : {&targets, &input_lengths, &target_lengths}) {
    detail::require_same_device("ctc_loss", log_probs, *t);
    detail::require_numbers("ctc_loss", t->sizes());
  }
  detail::require_numbers("ctc_loss", log_probs.sizes());
  const int64_t axes = log_probs.dim();
  if (axes < 2 || axes > 3 || targets.dim() < 1 || targets.dim() > axes - 1)
    fail<ShapeError>(
        "ctc_loss: log-probabilities {} and targets {} are neither (T, N, C) and (N, S) or (sum of "
        "lengths) nor (T, C) and (S)",
        text(log_probs.sizes()), text(targets.sizes()));
  detail::require_integers("ctc_loss", targets);
  const Tensor wide = axes == 2 ? log_probs.unsqueeze(1) : log_probs;
  const int64_t batch = wide.size(1), classes = wide.size(2);
  const Tensor of_targets = lengths("target lengths", target_lengths, batch);
  const Tensor rows = axes == 2            ? targets.unsqueeze(0)
                      : targets.dim() == 1 ? as_rows(targets, of_targets)
                                           : targets;
  if (int64_t(rows.size(0)) != batch)
    fail<ShapeError>("ctc_loss: targets {} for {} sequences", text(targets.sizes()), batch);
  if (int64_t(wide.size(0)) == 0 || classes == 0)
    fail<ShapeError>("ctc_loss: log-probabilities {} have no elements", text(log_probs.sizes()));
  if (blank < 0 || blank >= classes)
    fail<IndexError>("ctc_loss: blank {} is outside 0..{}", blank, classes - 1);
  return {wide, rows.cast(DType::I32), lengths("input lengths", input_lengths, batch),
          of_targets, blank};
}

}  // namespace

Tensor Tensor::ctc_loss(const Tensor& log_probs, const Tensor& targets,
                        const Tensor& input_lengths, const Tensor& target_lengths, int64_t blank,
                        Reduction reduction, bool zero_infinity) {
  return detail::computed_wide(log_probs, [&](const Tensor& x) {
    const Alignments a = alignments_of(x, targets, input_lengths, target_lengths, blank);
    const Tensor loss = losses_of(a);
    const Tensor each = where(loss < -kImpossible / 2, loss, zero_infinity ? 0.0 : INFINITY);
    if (reduction == Reduction::None) return log_probs.dim() == 2 ? each.squeeze(0) : each;
    if (reduction == Reduction::Sum) return each.sum();
    const Tensor count = a.target_lengths.clamp(1).cast(each.dtype());
    return (each / count).sum() / double(std::max<int64_t>(1, a.batch()));
  });
}

}  // namespace tuff
