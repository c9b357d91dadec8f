// Recurrent layers: cells of one step, and RNN, LSTM and GRU over a sequence, which are loops
// (scan.h): one step is compiled. Inside a Jit the number of steps and the batch may vary.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <tuff/module.h>
#include <tuff/tensor.h>

namespace tuff::nn {

/// What the cells have: weight_ih (gates * hidden, in) and weight_hh (gates * hidden, hidden),
/// uniform in +-1/sqrt(hidden) as the biases.
struct RecurrentCell : Module {
  void members(Members& m) const override {
    m.parameter("weight_ih", weight_ih), m.parameter("weight_hh", weight_hh);
    m.parameter("bias_ih", bias_ih), m.parameter("bias_hh", bias_hh);
  }
  Tensor weight_ih, weight_hh, bias_ih, bias_hh;
  int64_t hidden;

 protected:
  RecurrentCell(int64_t gates, int64_t in, int64_t hidden, bool bias, const TensorOptions& options);
};

/// h' = tanh(W x + b + V h + c) of x (batch, in) and h (batch, hidden), zeros if not given;
/// nonlinearity "tanh" or "relu", InvalidArgument for another.
struct RNNCell : RecurrentCell {
  RNNCell(int64_t in, int64_t hidden, bool bias = true, std::string nonlinearity = "tanh",
          const TensorOptions& options = {});
  Tensor operator()(const Tensor& x, const Tensor& h = {}) const;
  std::string nonlinearity;
};

/// (h', c') with c' = f*c + i*g, h' = o*tanh(c') (Hochreiter and Schmidhuber, 1997; Gers et al.,
/// 2000); gates in the order i, f, g, o.
struct LSTMCell : RecurrentCell {
  LSTMCell(int64_t in, int64_t hidden, bool bias = true, const TensorOptions& options = {})
      : RecurrentCell(4, in, hidden, bias, options) {}
  /// x (N, in), h and c (N, hidden), zeros if not given. Gives h' and c'.
  std::pair<Tensor, Tensor> operator()(const Tensor& x, const Tensor& h = {},
                                       const Tensor& c = {}) const;
};

/// h' = (1 - z)*n + z*h with n = tanh(W x + b + r*(V h + c)) (Cho et al., 2014, as cuDNN and
/// PyTorch have it); gates in the order r, z, n.
struct GRUCell : RecurrentCell {
  GRUCell(int64_t in, int64_t hidden, bool bias = true, const TensorOptions& options = {})
      : RecurrentCell(3, in, hidden, bias, options) {}
  Tensor operator()(const Tensor& x, const Tensor& h = {}) const;
};

/// How RNN, LSTM and GRU are made. `dropout` is between layers, in training mode.
struct RecurrentOptions {
  int64_t num_layers = 1;
  bool bias = true, batch_first = false;
  double dropout = 0;
  bool bidirectional = false;
};

/// What the layers over a sequence have: sequences are (time, batch, features), (batch, time,
/// features) if batch_first; states (layers * directions, batch, hidden), zeros if not given. Names
/// are PyTorch's: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, with _reverse behind for the
/// way back.
///
/// `lengths`, integers (batch), say how many steps each sequence has, as pack_padded_sequence()
/// does in PyTorch, in any order: what is behind them is not read and has no gradient, outputs
/// there are 0, last states are those after the last step, and ways back begin at it. A length of 0
/// keeps the first states; more than `time` is `time`. InvalidArgument for floats, ShapeError for
/// another shape.
class Recurrent : public Module {
 public:
  void members(Members& m) const override;
  const RecurrentOptions& options() const { return options_; }

 protected:
  Recurrent(int64_t gates, int64_t in, int64_t hidden, const RecurrentOptions& options,
            const TensorOptions& tensors);
  // One step: the gates of the input, the states before and the weights of the way; the states
  // after, the first of which is the output.
  using State = std::vector<Tensor>;
  struct Weights {
    Tensor ih, hh, bias_ih, bias_hh;
  };
  virtual State step(const Tensor& gates, const State& before, const Weights& w) const = 0;
  // The output, and the last states of all layers and directions; `states` may be undefined.
  std::pair<Tensor, State> sequence(const Tensor& x, const State& states,
                                    const Tensor& lengths) const;

 private:
  std::pair<Tensor, State> way(const Tensor& x, size_t k, State state, const Tensor& there) const;
  std::vector<Weights> weights_;  // by layer, in either direction
  RecurrentOptions options_;
  int64_t hidden_;
};

/// Returns the outputs of the last layer and the last states of all.
class RNN : public Recurrent {
 public:
  RNN(int64_t in, int64_t hidden, const RecurrentOptions& options = {},
      std::string nonlinearity = "tanh", const TensorOptions& tensors = {});
  /// x and lengths as Recurrent has them; h (layers * directions, N, hidden), zeros if not given.
  std::pair<Tensor, Tensor> operator()(const Tensor& x, const Tensor& h = {},
                                       const Tensor& lengths = {}) const;

 protected:
  State step(const Tensor& gates, const State& before, const Weights& w) const override;

 private:
  std::string nonlinearity_;
};

/// Returns the outputs, and the last h and c of all layers.
class LSTM : public Recurrent {
 public:
  LSTM(int64_t in, int64_t hidden, const RecurrentOptions& options = {},
       const TensorOptions& tensors = {})
      : Recurrent(4, in, hidden, options, tensors) {}
  /// x as Recurrent has it; h and c (layers * directions, N, hidden), zeros if not given.
  std::tuple<Tensor, Tensor, Tensor> operator()(const Tensor& x, const Tensor& h = {},
                                                const Tensor& c = {},
                                                const Tensor& lengths = {}) const;

 protected:
  State step(const Tensor& gates, const State& before, const Weights& w) const override;
};

/// GRUCell's steps (Cho et al., 2014). Returns the outputs, and the last h of all layers.
class GRU : public Recurrent {
 public:
  GRU(int64_t in, int64_t hidden, const RecurrentOptions& options = {},
      const TensorOptions& tensors = {})
      : Recurrent(3, in, hidden, options, tensors) {}
  /// x and lengths as Recurrent has them; h (layers * directions, N, hidden), zeros if not given.
  std::pair<Tensor, Tensor> operator()(const Tensor& x, const Tensor& h = {},
                                       const Tensor& lengths = {}) const;

 protected:
  State step(const Tensor& gates, const State& before, const Weights& w) const override;
};

}  // namespace tuff::nn
