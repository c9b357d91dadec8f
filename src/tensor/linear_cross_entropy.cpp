// linear_cross_entropy(): a loop over rows, whose steps take the gradients of what they compute.
#include <tuff/autograd.h>
#include <tuff/losses.h>
#include <tuff/scan.h>

#include <algorithm>

#include "base/arith.h"
#include "base/check.h"
#include "tensor/leaves.h"
#include "tensor/impl.h"
#include "tensor/loss.h"

namespace tuff {
namespace {

constexpr int64_t kLogitsBytes = int64_t{256} << 20;  // at once
constexpr int64_t kRowsTogether = 64;                 // of a product, so that its tiles are whole

struct Chunks {
  int64_t count, rows;
};
// At most `most` rows at once; 0: as many as fit.
Chunks chunks_of(int64_t rows, int64_t classes, int64_t most) {
  const int64_t unit = most ? 1 : kRowsTogether;
  if (most == 0) most = std::max(kLogitsBytes / (classes * 4) / unit, int64_t{1}) * unit;
  const int64_t each = ceil_div(ceil_div(rows, ceil_div(rows, most)), unit) * unit;
  return {ceil_div(rows, each), each};
}

// The sum of all rows' losses, and its gradients by some of input, weight and bias.
class Loop {
 public:
  Loop(const Tensor& target, const Tensor& weight, int64_t ignore_index, double smoothing,
       Chunks chunks)
      : weight_(weight), ignore_index_(ignore_index), smoothing_(smoothing), chunks_(chunks) {
    const int64_t padding = chunks.count * chunks.rows - int64_t(target.size(0));
    const Tensor wide = target.cast(size_bytes(target.dtype()) == 8 ? DType::I64 : DType::I32);
    target_ = wide.pad({0, padding}, ignore_index).reshape({chunks.count, chunks.rows});
  }

  // x: input, weight and maybe bias. wanted: of which there are to be gradients. First the sum.
  Tensors run(const Tensors& x, const std::vector<bool>& wanted) const {
    const int64_t rows = int64_t(x[0].size(0)), in = int64_t(x[0].size(1));
    const Tensor padded = x[0].pad({0, 0, 0, chunks_.count * chunks_.rows - rows});
    const TensorOptions like{.dtype = x[0].dtype(), .device = x[0].device()};
    const Tensor number = Tensor::arange(0, chunks_.count, 1, like);
    Tensors states{Tensor::zeros({}, like)};
    if (wanted[0]) states.push_back(Tensor::zeros({chunks_.count, chunks_.rows, in}, like));
    for (size_t i = 1; i < x.size(); i++)
      if (wanted[i]) states.push_back(Tensor::zeros(x[i].sizes(), like));
    const auto step = [&](const Tensors& before, const Tensors& row) {
      Tensors parts = x;
      parts[0] = row[0];
      const auto sum = [&](const Tensors& v) { return Tensors{sum_of(v, row[1])}; };
      if (before.size() == 1) return Scanned{{before[0] + sum(parts)[0]}, {}};
      const autograd::Derivatives d = autograd::vjp(sum, parts);
      Tensors after{before[0] + d.outputs[0]};
      // The chunk's own rows of the input's gradient; those of the others stay.
      if (wanted[0])
        after.push_back(Tensor::where(number.reshape({-1, 1, 1}) == row[2],
                                      d.derivatives[0].unsqueeze(0), before[1]));
      for (size_t i = 1; i < x.size(); i++)
        if (wanted[i]) after.push_back(before[after.size()] + d.derivatives[i]);
      return Scanned{after, {}};
    };
    const Tensor chunks = padded.reshape({chunks_.count, chunks_.rows, in});
    Tensors out = scan(step, states, {chunks, target_, number}, {.ahead = false}).states;
    if (wanted[0]) out[1] = out[1].flatten(0, 1).narrow(0, 0, rows);
    return out;
  }

 private:
  Tensor sum_of(const Tensors& x, const Tensor& target) const {
    const Tensor logits = x[0].linear(x[1], x.size() > 2 ? x[2] : Tensor());
    return detail::unchecked_cross_entropy(logits, target, weight_, ignore_index_, Reduction::Sum,
                                           smoothing_);
  }

  Tensor target_, weight_;
  int64_t ignore_index_;
  double smoothing_;
  Chunks chunks_;
};

// With the gradients that are likely to be asked for computed beside the sum; another one takes a
// loop of its own.
Tensor total(const Loop& loop, const Tensors& arguments) {
  std::vector<bool> wanted;
  const detail::Leaves leaves;
  for (const Tensor& x : arguments)
    wanted.push_back(is_grad_enabled() && bool(leaves.below(detail::uop(x))));
  const autograd::Function f{
      [&](autograd::FunctionContext& context, const Tensors& x) {
        const Tensors all = loop.run(x, wanted);
        Tensors saved = x;
        saved.insert(saved.end(), all.begin() + 1, all.end());
        context.save_for_backward(saved);
        return Tensors{all[0]};
      },
      [&](autograd::FunctionContext& context, const Tensors& g) {
        const Tensors& saved = context.saved_tensors();
        const Tensors x(saved.begin(), saved.begin() + ptrdiff_t(wanted.size()));
        Tensors out;
        size_t next = wanted.size();
        for (size_t i = 0; i < wanted.size(); i++) {
          std::vector<bool> alone(wanted.size());
          alone[i] = true;
          out.push_back(g[0] * (wanted[i] ? saved[next++] : loop.run(x, alone)[1]));
        }
        return out;
      }};
  return f(arguments)[0];
}

}  // namespace

Tensor linear_cross_entropy(const Tensor& input, const Tensor& linear_weight, const Tensor& target,
                            const Tensor& linear_bias, const Tensor& weight, int64_t ignore_index,
                            Reduction reduction, double label_smoothing, int64_t rows_at_once) {
  if (rows_at_once < 0)
    fail<InvalidArgument>("linear_cross_entropy: rows_at_once is {}", rows_at_once);
  const bool sums = reduction == Reduction::Mean || reduction == Reduction::Sum;
  const bool fits = input.dim() == 2 && linear_weight.dim() == 2 && target.dim() == 1 &&
                    input.dtype() == DType::F32 && linear_weight.dtype() == DType::F32 &&
                    is_int(target.dtype()) && ignore_index == int32_t(ignore_index) &&
                    input.size(0).is_number() && input.size(1).is_number() &&
                    detail::same(input.size(0), target.size(0));
  if (fits && sums) {
    const int64_t classes = int64_t(linear_weight.size(0));
    const int64_t rows = std::max<int64_t>(int64_t(input.size(0)), 1);
    const Chunks chunks = chunks_of(rows, std::max<int64_t>(classes, 1), rows_at_once);
    if (chunks.count > 1) {
      detail::require_classes("linear_cross_entropy", target, classes, ignore_index);
      const Loop loop(target, weight, ignore_index, label_smoothing, chunks);
      Tensors arguments{input, linear_weight};
      if (linear_bias.defined()) arguments.push_back(linear_bias);
      const Tensor sum = total(loop, arguments);
      if (reduction == Reduction::Sum) return sum;
      return sum / detail::cross_entropy_count(target, classes, weight, ignore_index);
    }
  }
  return input.linear(linear_weight, linear_bias)
      .cross_entropy(target, weight, ignore_index, reduction, label_smoothing);
}

}  // namespace tuff
