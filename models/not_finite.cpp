#include "models/not_finite.h"

#include <vector>

#include <fmt/format.h>

namespace tuff::models {

std::string not_finite_text(const nn::StateDict& state) {
  std::vector<Tensor> nan, inf;
  for (const nn::NamedTensor& t : state) {
    nan.push_back(t.tensor.detach().isnan().any());
    inf.push_back(t.tensor.detach().isinf().any());
  }
  std::vector<Tensor> all = nan;
  all.insert(all.end(), inf.begin(), inf.end());
  Tensor::realize(all);
  size_t found = 0;
  std::string first;
  for (size_t i = 0; i < state.size(); ++i) {
    const bool is_nan = nan[i].item() != 0;
    if (!is_nan && inf[i].item() == 0) continue;
    if (found++ == 0) first = fmt::format("{} in {}", is_nan ? "nan" : "inf", state[i].name);
  }
  if (found == 0) return fmt::format("no nan or inf in its {} tensors", state.size());
  if (found == 1) return first;
  return fmt::format("{} and {} more of {} tensors", first, found - 1, state.size());
}

}  // namespace tuff::models
