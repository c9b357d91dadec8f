// GradScaler: what is decided is decided on the device.
#include <tuff/optim.h>

#include "base/check.h"
#include "nn/amounts.h"
#include "tensor/impl.h"

namespace tuff::optim {

GradScaler::GradScaler(const Options& options)
    : options_(options),
      scale_(Tensor::from({float(options.init_scale)}, {}, {.device = options.device})),
      tracker_(Tensor::from({0}, {}, {.device = options.device})) {
  for (const auto& [name, v] : {std::pair("init_scale", options.init_scale),
                                std::pair("growth_factor", options.growth_factor),
                                std::pair("backoff_factor", options.backoff_factor)}) {
    require_amount("GradScaler", name, v);
    if (v == 0) fail<InvalidArgument>("GradScaler: {} is 0", name);
  }
  if (options.growth_interval < 1)
    fail<InvalidArgument>("GradScaler: growth_interval is {}", options.growth_interval);
}

void GradScaler::unscale_(Optimizer& optimizer) {
  if (finite_.defined())
    fail<InvalidArgument>("GradScaler: the gradients are unscaled since the last step");
  for (Tensor p : optimizer.parameters()) {
    const Tensor g = p.grad();
    if (!g.defined()) continue;
    if (p.device() != scale_.device())
      fail<InvalidArgument>("GradScaler: a parameter is on {}, the scale on {}", p.device(),
                            scale_.device());
    const Tensor finite = (g.isnan() | g.isinf()).any().logical_not();
    finite_ = finite_.defined() ? finite_ & finite : finite;
    p.set_grad((g.cast(DType::F32) / scale_).cast(g.dtype()));
  }
  if (!finite_.defined())
    fail<InvalidArgument>("GradScaler: no parameter has a gradient: call backward() before step()");
}

void GradScaler::step(Optimizer& optimizer, const std::vector<Tensor>& also) {
  if (!finite_.defined()) unscale_(optimizer);
  const Tensor finite = std::exchange(finite_, Tensor());
  optimizer.applies_ = finite;
  std::vector<Tensor> all;
  try {
    all = optimizer.advance();
  } catch (...) {
    optimizer.applies_ = Tensor();
    throw;
  }
  optimizer.applies_ = Tensor();
  const Tensor good = tracker_ + 1.0, grows = good >= double(options_.growth_interval);
  const Tensor scale = scale_;
  const Tensor grown = Tensor::where(grows, scale * options_.growth_factor, scale);
  const Tensor next = Tensor::where(finite, grown, scale * options_.backoff_factor);
  detail::store(tracker_, Tensor::where(finite & grows.logical_not(), good, 0.0));
  detail::store(scale_, next);
  all.insert(all.end(), {scale_, tracker_});
  all.insert(all.end(), also.begin(), also.end());
  for (const Tensor& t : detail::pending_assigns()) all.push_back(t);
  Tensor::realize(all);
}

nn::StateDict GradScaler::state_dict() const {
  return {{"scale", scale_, false}, {"_growth_tracker", tracker_, false}};
}

}  // namespace tuff::optim
