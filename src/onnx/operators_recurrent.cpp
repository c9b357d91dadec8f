// RNN, GRU and LSTM: loops (tuff/scan.h), one per direction.
#include <functional>

#include <tuff/scan.h>
#include "base/check.h"
#include "onnx/operators.h"

namespace tuff::onnx {
namespace {

using Activation = std::function<Tensor(const Tensor&)>;

// docs/Operators.md, RNN: activation functions and what alpha and beta are without a value.
Activation activation(const std::string& name, std::optional<double> alpha,
                      std::optional<double> beta) {
  const double a = alpha.value_or(name == "LeakyRelu"     ? 0.01
                                  : name == "HardSigmoid" ? 0.2
                                                          : 1),
               b = beta.value_or(name == "HardSigmoid" ? 0.5 : name == "Affine" ? 0 : 1);
  if (name == "Tanh") return [](const Tensor& x) { return x.tanh(); };
  if (name == "Sigmoid") return [](const Tensor& x) { return x.sigmoid(); };
  if (name == "Relu") return [](const Tensor& x) { return x.relu(); };
  if (name == "Affine") return [=](const Tensor& x) { return x * a + b; };
  if (name == "LeakyRelu") return [=](const Tensor& x) { return x.leaky_relu(a); };
  if (name == "ThresholdedRelu") return [=](const Tensor& x) { return x.threshold(a, 0); };
  if (name == "ScaledTanh") return [=](const Tensor& x) { return (x * b).tanh() * a; };
  if (name == "HardSigmoid") return [=](const Tensor& x) { return (x * a + b).clamp(0.0, 1.0); };
  if (name == "Elu") return [=](const Tensor& x) { return x.elu(a); };
  if (name == "Softsign") return [](const Tensor& x) { return x.softsign(); };
  if (name == "Softplus") return [](const Tensor& x) { return x.softplus(); };
  fail<InvalidArgument>("the activation '{}'", name);
}

// One direction of a layer. Gates stand in ONNX's order: i o f c of an LSTM, z r h of a GRU.
struct Direction {
  Tensor x, w, r, bias_w, bias_r, peepholes, there;  // there: (time, batch, 1), or undefined
  std::vector<Activation> f;
  double clip = 0;
  bool reverse = false, input_forget = false, linear_before_reset = false;
  Tensor clipped(const Tensor& t) const { return clip > 0 ? t.clamp(-clip, clip) : t; }
};

using States = std::vector<Tensor>;
using Step = States (*)(const Direction&, const Tensor& gates, const States&);

std::vector<Tensor> parts(const Tensor& t, int64_t count) { return t.chunk(count, -1); }

States rnn_step(const Direction& d, const Tensor& gates, const States& s) {
  return {d.f[0](d.clipped(gates + s[0].matmul(d.r.T()) + d.bias_r))};
}

States gru_step(const Direction& d, const Tensor& gates, const States& s) {
  const Tensor& h = s[0];
  const auto x = parts(gates, 3), bias = parts(d.bias_r, 3), r = d.r.chunk(3, 0);
  const Tensor z = d.f[0](d.clipped(x[0] + h.matmul(r[0].T()) + bias[0])),
               reset = d.f[0](d.clipped(x[1] + h.matmul(r[1].T()) + bias[1]));
  const Tensor inner = d.linear_before_reset ? reset * (h.matmul(r[2].T()) + bias[2])
                                             : (reset * h).matmul(r[2].T()) + bias[2];
  const Tensor next = d.f[1](d.clipped(x[2] + inner));
  return {(1 - z) * next + z * h};
}

States lstm_step(const Direction& d, const Tensor& gates, const States& s) {
  const Tensor &h = s[0], &c = s[1];
  const auto g = parts(gates + h.matmul(d.r.T()) + d.bias_r, 4);
  States peep(3);
  if (d.peepholes.defined()) peep = parts(d.peepholes, 3);
  const auto seen = [&](const Tensor& t, const Tensor& cell, size_t k) {
    return d.clipped(peep[k].defined() ? t + peep[k] * cell : t);
  };
  const Tensor i = d.f[0](seen(g[0], c, 0));
  const Tensor f = d.input_forget ? 1 - i : d.f[0](seen(g[2], c, 2));
  const Tensor cell = f * c + i * d.f[1](d.clipped(g[3]));
  const Tensor o = d.f[0](seen(g[1], cell, 1));
  return {o * d.f[2](cell), cell};
}

// Outputs (time, batch, hidden), and the last states.
std::pair<Tensor, States> run_direction(const Direction& d, Step step, const States& initial) {
  const Tensor gates = d.x.matmul(d.w.T()) + d.bias_w;
  Tensors sequences{gates};
  if (d.there.defined()) sequences.push_back(d.there);
  const Scanned out = scan(
      [&](const Tensors& states, const Tensors& rows) {
        States next = step(d, rows[0], states);
        if (rows.size() == 1) return Scanned{next, {next[0]}};
        for (size_t k = 0; k < next.size(); k++)
          next[k] = Tensor::where(rows[1], next[k], states[k]);
        return Scanned{next, {Tensor::where(rows[1], next[0], next[0] * 0)}};
      },
      initial, sequences, {.reverse = d.reverse});
  return {out.outputs[0], out.states};
}

// What a layer's attributes and inputs say, all directions together.
struct Layer {
  const Node& node;
  int64_t gates, states, functions;
  Step step;
  std::vector<std::string> defaults;

  // x (time, batch, in), weights (directions, gates x hidden, in) and (..., hidden).
  void require_shapes(const Tensor& x) const {
    const Tensor w = node.tensor(1), r = node.tensor(2);
    const bool fits = x.dim() == 3 && w.dim() == 3 && r.dim() == 3 && int64_t(r.size(2)) > 0 &&
                      w.size(1) == r.size(1) && r.size(1) == r.size(2) * gates;
    if (!fits)
      fail<ShapeError>("weights {} and {} of {} gates over {}", shape_text(w.sizes()),
                       shape_text(r.sizes()), gates, shape_text(x.sizes()));
    if (node.has(7) && node.tensor(7).size(-1) != r.size(2) * 3)
      fail<ShapeError>("peepholes {}", shape_text(node.tensor(7).sizes()));
  }

  std::vector<Activation> activations(int64_t direction) const {
    std::vector<std::string> names = node.texts("activations");
    const auto alpha = node.numbers("activation_alpha"), beta = node.numbers("activation_beta");
    std::vector<Activation> out;
    for (int64_t k = 0; k < functions; k++) {
      const auto at = size_t(direction * functions + k);
      const auto of = [&](const std::vector<double>& v) {
        return at < v.size() ? std::optional(v[at]) : std::nullopt;
      };
      out.push_back(activation(names.empty() ? defaults[size_t(k)] : names.at(at), of(alpha),
                               of(beta)));
    }
    return out;
  }

  Direction direction(const Tensor& x, int64_t k, bool reverse) const {
    Direction d{.x = x, .w = node.tensor(1)[k], .r = node.tensor(2)[k]};
    const Size rows = d.w.size(0);
    const Tensor bias = node.has(3) ? node.tensor(3)[k]
                                    : Tensor::zeros({rows * 2}, node.options(x.dtype()));
    d.bias_w = bias.narrow(0, 0, rows), d.bias_r = bias.narrow(0, rows, rows);
    if (node.has(7)) d.peepholes = node.tensor(7)[k];
    if (node.has(4)) {
      const Tensor times = Tensor::arange(0, Number(x.size(0)), 1, node.options(DType::I32));
      d.there = (times.unsqueeze(1) < node.tensor(4).unsqueeze(0)).unsqueeze(2);
    }
    d.f = activations(k);
    d.clip = node.number("clip", 0);
    d.reverse = reverse;
    d.input_forget = node.integer("input_forget", 0) != 0;
    d.linear_before_reset = node.integer("linear_before_reset", 0) != 0;
    return d;
  }

  States initial(const Tensor& x, int64_t k, bool batch_first) const {
    States out;
    for (int64_t s = 0; s < states; s++) {
      const auto input = size_t(5 + s);
      const Size hidden = node.tensor(2).size(2);
      if (!node.has(input))
        out.push_back(Tensor::zeros({x.size(1), hidden}, node.options(x.dtype())));
      else
        out.push_back(node.tensor(input).select(batch_first ? 1 : 0, k));
    }
    return out;
  }

  Outputs run() const {
    const bool batch_first = node.integer("layout", 0) != 0;
    const Tensor x = batch_first ? node.tensor(0).transpose(0, 1) : node.tensor(0);
    require_shapes(x);
    const std::string way = node.text("direction", "forward");
    const int64_t count = way == "bidirectional" ? 2 : 1;
    std::vector<Tensor> outputs;
    std::vector<std::vector<Tensor>> last(static_cast<size_t>(states));
    for (int64_t k = 0; k < count; k++) {
      const auto [all, ends] = run_direction(direction(x, k, k == 1 || way == "reverse"), step,
                                             initial(x, k, batch_first));
      outputs.push_back(all);
      for (size_t s = 0; s < last.size(); s++) last[s].push_back(ends[s]);
    }
    Tensor y = Tensor::stack(outputs, 1);  // (time, directions, batch, hidden)
    Outputs out{batch_first ? y.permute({2, 0, 1, 3}) : y};
    for (const std::vector<Tensor>& each : last)
      out.emplace_back(Tensor::stack(each, batch_first ? 1 : 0));
    return out;
  }
};

Outputs rnn(const Node& node) {
  return Layer{node, 1, 1, 1, rnn_step, {"Tanh"}}.run();
}
Outputs gru(const Node& node) {
  return Layer{node, 3, 1, 2, gru_step, {"Sigmoid", "Tanh"}}.run();
}
Outputs lstm(const Node& node) {
  return Layer{node, 4, 2, 3, lstm_step, {"Sigmoid", "Tanh", "Tanh"}}.run();
}

constexpr Operator kRows[] = {
    {"", "GRU", 7, kNewest, gru},
    {"", "LSTM", 7, kNewest, lstm},
    {"", "RNN", 7, kNewest, rnn},
};

}  // namespace

std::span<const Operator> recurrent_operators() { return kRows; }

}  // namespace tuff::onnx
