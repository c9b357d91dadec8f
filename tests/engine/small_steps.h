// Training steps through the public API, of sizes at which kernels run in the interpreter and a
// thousand runs take seconds. Used by the tests of command lists.
#pragma once

#include <string>
#include <vector>

#include <tuff/nn.h>
#include <tuff/optim.h>

#include "engine/jit/captured_graph.h"
#include "engine/realize/capture.h"
#include "models/gpt_model.h"

namespace tuff::engine {

class GptStep {
 public:
  explicit GptStep(const std::string& device = "NULL")
      : device_(device), model_(recipe(), device), optimizer_(model_.parameters(), {.lr = 1e-3}) {
    model_.dropout = 0.1;
  }
  std::vector<Tensor> inputs() const {
    const TensorOptions o{DType::I32, device_};
    const std::vector<int32_t> tokens{1, 5, 0, 6, 3, 3, 2, 4}, next{5, 0, 6, 2, 3, 2, 4, 1};
    return {Tensor::from(tokens, {2, 4}, o), Tensor::from(next, {8}, o)};
  }
  std::vector<Tensor> operator()(const std::vector<Tensor>& in) {
    TrainingMode on;
    const Tensor loss = model_(in[0]).flatten(0, 1).cross_entropy(in[1]);
    optimizer_.zero_grad();
    loss.backward();
    optimizer_.step({loss});
    return {loss};
  }

 private:
  static models::GptRecipe recipe() {
    return {.vocabulary = 7, .layers = 2, .heads = 2, .embed = 8, .context = 4, .batch = 2};
  }
  std::string device_;
  models::Gpt model_;
  optim::AdamW optimizer_;
};

class ConvNetStep {
 public:
  explicit ConvNetStep(const std::string& device = "NULL")
      : device_(device),
        first_(1, 2, 3, 1, 1, true, options()),
        second_(2, 3, 3, 1, 1, true, options()),
        norm_(2, 1e-5, 0.1, true, options()),
        out_(12, 4, true, options()),
        optimizer_(parameters(), {.lr = 1e-2, .momentum = 0.9}) {}
  std::vector<Tensor> inputs() const {
    std::vector<float> images(2 * 8 * 8);
    for (size_t i = 0; i < images.size(); i++) images[i] = float((i * 37) % 64) / 64;
    return {Tensor::from(images, {2, 1, 8, 8}, options()),
            Tensor::from(std::vector<int32_t>{3, 1}, {2}, {DType::I32, device_})};
  }
  std::vector<Tensor> operator()(const std::vector<Tensor>& in) {
    TrainingMode on;
    Tensor x = norm_(first_(in[0])).relu().max_pool2d(2);
    x = second_(x).relu().max_pool2d(2).flatten(1);
    const Tensor loss = out_(x.dropout(0.2)).cross_entropy(in[1]);
    optimizer_.zero_grad();
    loss.backward();
    optimizer_.step({loss});
    return {loss};
  }

 private:
  TensorOptions options() const { return {.device = device_}; }
  nn::Parameters parameters() const {
    return {first_.weight, first_.bias, second_.weight, second_.bias,
            norm_.weight,  norm_.bias,  out_.weight,    out_.bias};
  }
  std::string device_;
  nn::Conv2d first_, second_;
  nn::BatchNorm norm_;
  nn::Linear out_;
  optim::SGD optimizer_;
};

// The calls of a step's second run, when all that it keeps has its memory.
template <class Step>
std::vector<BoundCall> calls_of_a_step(Step& step) {
  const std::vector<Tensor> in = step.inputs();
  step(in)[0].realize();
  Capture capture;
  step(in)[0].realize();
  return capture.take();
}

}  // namespace tuff::engine
