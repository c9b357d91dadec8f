// Optimizers. Learning rate and step count live in device tensors, so a captured step replays with
// whatever they hold. step() assigns all parameters and state in one schedule and realizes it.
#pragma once

#include <vector>

#include <tuff/tensor.h>

namespace tuff::optim {

class Optimizer {
 public:
  Optimizer(std::vector<Tensor> parameters, double lr);
  virtual ~Optimizer() = default;
  void zero_grad();
  // Realizes parameters, state and `also` (the loss, say) together.
  void step(const std::vector<Tensor>& also = {});
  void set_lr(double lr);  // writes the device tensor; no allocation
  const Tensor& lr() const { return lr_; }
  const std::vector<Tensor>& parameters() const { return parameters_; }

 protected:
  // Assigns new versions for parameter i and its state.
  virtual void update(size_t i, const Tensor& gradient) = 0;
  virtual void begin_step() {}
  std::vector<Tensor> parameters_;
  std::vector<Tensor> state_;  // realized together with the parameters
  Tensor lr_;
};

// v = momentum*v + g + weight_decay*p;  p -= lr*v (nesterov: lr*(g + momentum*v)).
class SGD : public Optimizer {
 public:
  struct Options {
    double lr = 1e-2, momentum = 0, weight_decay = 0;
    bool nesterov = false;
  };
  SGD(std::vector<Tensor> parameters, const Options& options);

 protected:
  void update(size_t i, const Tensor& gradient) override;

 private:
  Options options_;
};

// Decoupled weight decay (Loshchilov and Hutter, 2019), bias-corrected moments.
class AdamW : public Optimizer {
 public:
  struct Options {
    double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
    bool decay_matrices_only = false;  // no decay on parameters of fewer than two axes
  };
  AdamW(std::vector<Tensor> parameters, const Options& options);

 protected:
  void begin_step() override;
  void update(size_t i, const Tensor& gradient) override;

 private:
  Options options_;
  Tensor step_, correction1_, correction2_;
};

}  // namespace tuff::optim
