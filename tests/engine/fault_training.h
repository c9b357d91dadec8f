// What the fault walks run: a small training that is eager, captured and replayed.
#pragma once

#include <string>
#include <vector>

#include <tuff/jit.h>
#include <tuff/optim.h>

namespace tuff::test {

// Six steps: eager, captured, replayed. Nothing of it outlives the call. No random numbers: their
// state would keep the device open.
inline std::vector<float> train(const std::string& device) {
  const TensorOptions here{.device = device};
  std::vector<float> x(8 * 6), y(8 * 3), w(6 * 3);
  for (size_t i = 0; i < x.size(); i++) x[i] = float(i * 7 % 11) / 8 - 0.5f;
  for (size_t i = 0; i < y.size(); i++) y[i] = float(i * 5 % 7) / 4;
  for (size_t i = 0; i < w.size(); i++) w[i] = float(i * 3 % 5) / 8 - 0.25f;
  const Tensor input = Tensor::from(x, {8, 6}, here), target = Tensor::from(y, {8, 3}, here);
  Tensor weight = Tensor::from(w, {6, 3}, here).set_requires_grad();
  optim::SGD optimizer({weight}, {.lr = 0.1});
  Jit step([&](const std::vector<Tensor>& in) {
    const Tensor loss = (in[0].matmul(weight) - in[1]).square().mean();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step({loss});
    return std::vector<Tensor>{loss};
  });
  std::vector<float> losses;
  for (int i = 0; i < 6; i++) losses.push_back(float(step({input, target})[0].item()));
  return losses;
}

}  // namespace tuff::test
