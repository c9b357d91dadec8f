// Averages of parameters: updates are lazy sums, the host only exchanges.
#include <algorithm>

#include <tuff/optim.h>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff::optim {
namespace {

Tensor copy_of(const Tensor& t) {
  Tensor copy = t.empty_like().realize();
  detail::store(copy, t.detach());
  return copy;
}

}  // namespace

AveragedParameters::AveragedParameters(std::vector<Tensor> parameters, std::optional<double> decay)
    : parameters_(std::move(parameters)), decay_(decay) {
  if (parameters_.empty()) fail<InvalidArgument>("AveragedParameters: no parameters given");
  if (decay_ && !(*decay_ >= 0 && *decay_ <= 1))
    fail<InvalidArgument>("AveragedParameters: decay {} is not in 0..1", *decay_);
  for (const Tensor& p : parameters_) {
    averages_.push_back(copy_of(p));
    const auto same = [&](const Tensor& t) { return t.device() == p.device(); };
    if (std::ranges::none_of(counts_, same))
      counts_.push_back(Tensor::from({0}, {}, {.device = p.device()}));
  }
  Tensor::realize(averages_);
}

void AveragedParameters::update() {
  for (size_t i = 0; i < parameters_.size(); i++) {
    const Tensor p = parameters_[i].detach();
    const Tensor& count = *std::ranges::find(counts_, p.device(), &Tensor::device);
    Tensor& average = averages_[i];
    const Tensor share =
        decay_ ? Tensor::where(count < 0.5, 1.0, 1 - *decay_) : 1.0 / (count + 1.0);
    detail::store(average, (average + (p - average) * share).cast(p.dtype()));
  }
  for (Tensor& count : counts_) detail::store(count, count + 1.0);
  std::vector<Tensor> all = averages_;
  all.insert(all.end(), counts_.begin(), counts_.end());
  Tensor::realize(all);
}

void AveragedParameters::swap() {
  std::vector<Tensor> kept;
  for (const Tensor& p : parameters_) kept.push_back(copy_of(p));
  Tensor::realize(kept);
  for (size_t i = 0; i < kept.size(); i++) detail::store(parameters_[i], averages_[i]);
  Tensor::realize(parameters_);
  for (size_t i = 0; i < kept.size(); i++) detail::store(averages_[i], kept[i]);
  Tensor::realize(averages_);
}

nn::StateDict AveragedParameters::state_dict() const {
  nn::StateDict out{{"n_averaged", counts_[0], false}};
  for (size_t i = 0; i < averages_.size(); i++)
    out.push_back({std::to_string(i), averages_[i], false});
  return out;
}

void AveragedParameters::load_state_dict(const nn::StateDict& from) {
  nn::load_state_dict(state_dict(), from);
  const auto taken = float(counts_[0].item());
  for (Tensor& count : counts_) count.copy_from(&taken, sizeof taken);
}

}  // namespace tuff::optim
