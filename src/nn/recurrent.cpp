// Cells, and sequences of them: the products of all inputs are one matrix product, those of the
// states one per step.
#include <tuff/recurrent.h>

#include <algorithm>
#include <cmath>

#include <tuff/scan.h>

#include "base/check.h"
#include "nn/recurrent_steps.h"
#include "tensor/impl.h"

namespace tuff::nn {
namespace {

Tensor uniform(const Sizes& sizes, int64_t hidden, TensorOptions o) {
  const double bound = 1.0 / std::sqrt(double(hidden));
  o.requires_grad = true;
  return Tensor::uniform(sizes, -bound, bound, o);
}

void require_hidden(const char* what, int64_t in, int64_t hidden) {
  if (in < 1 || hidden < 1)
    fail<InvalidArgument>("{}: {} inputs and {} hidden ones", what, in, hidden);
}

std::string checked_nonlinearity(std::string name) {
  if (name != "tanh" && name != "relu")
    fail<InvalidArgument>("RNN: nonlinearity '{}' is neither tanh nor relu", name);
  return name;
}

Tensor zeros(const Tensor& x, int64_t hidden) {
  return Tensor::zeros({x.size(0), hidden}, {x.dtype(), x.device()});
}

// A cell's input and states: (batch, in) and (batch, hidden).
void require_step(const char* what, const Tensor& x, const Tensor& weight_ih) {
  if (x.dim() != 2 || x.size(1) != weight_ih.size(1))
    fail<ShapeError>("{}: {} is not (batch, {})", what, detail::text(x.sizes()),
                     weight_ih.size(1));
}

}  // namespace

Tensor rnn_step(const Tensor& gates, const Tensor& h, const Tensor& hh, const Tensor& bias,
                const std::string& nonlinearity) {
  const Tensor y = gates + h.linear(hh, bias);
  return nonlinearity == "tanh" ? y.tanh() : y.relu();
}

std::pair<Tensor, Tensor> lstm_step(const Tensor& gates, const Tensor& h, const Tensor& c,
                                    const Tensor& hh, const Tensor& bias) {
  const std::vector<Tensor> g = (gates + h.linear(hh, bias)).chunk(4, -1);
  const Tensor next = g[1].sigmoid() * c + g[0].sigmoid() * g[2].tanh();
  return {g[3].sigmoid() * next.tanh(), next};
}

Tensor gru_step(const Tensor& gates, const Tensor& h, const Tensor& hh, const Tensor& bias) {
  const std::vector<Tensor> x = gates.chunk(3, -1), y = h.linear(hh, bias).chunk(3, -1);
  const Tensor r = (x[0] + y[0]).sigmoid(), z = (x[1] + y[1]).sigmoid();
  const Tensor n = (x[2] + r * y[2]).tanh();
  return n + z * (h - n);
}

RecurrentCell::RecurrentCell(int64_t gates, int64_t in, int64_t n, bool bias,
                             const TensorOptions& o)
    : hidden(n) {
  require_hidden("RecurrentCell", in, n);
  weight_ih = uniform({gates * n, in}, n, o);
  weight_hh = uniform({gates * n, n}, n, o);
  if (!bias) return;
  bias_ih = uniform({gates * n}, n, o);
  bias_hh = uniform({gates * n}, n, o);
}

RNNCell::RNNCell(int64_t in, int64_t n, bool bias, std::string how, const TensorOptions& o)
    : RecurrentCell(1, in, n, bias, o), nonlinearity(checked_nonlinearity(std::move(how))) {}
Tensor RNNCell::operator()(const Tensor& x, const Tensor& h) const {
  require_step("RNNCell", x, weight_ih);
  return rnn_step(x.linear(weight_ih, bias_ih), h.defined() ? h : zeros(x, hidden), weight_hh,
                  bias_hh, nonlinearity);
}

std::pair<Tensor, Tensor> LSTMCell::operator()(const Tensor& x, const Tensor& h,
                                               const Tensor& c) const {
  require_step("LSTMCell", x, weight_ih);
  return lstm_step(x.linear(weight_ih, bias_ih), h.defined() ? h : zeros(x, hidden),
                   c.defined() ? c : zeros(x, hidden), weight_hh, bias_hh);
}

Tensor GRUCell::operator()(const Tensor& x, const Tensor& h) const {
  require_step("GRUCell", x, weight_ih);
  return gru_step(x.linear(weight_ih, bias_ih), h.defined() ? h : zeros(x, hidden), weight_hh,
                  bias_hh);
}

Recurrent::Recurrent(int64_t gates, int64_t in, int64_t hidden, const RecurrentOptions& options,
                     const TensorOptions& tensors)
    : options_(options), hidden_(hidden) {
  require_hidden("Recurrent", in, hidden);
  if (options.num_layers < 1) fail<InvalidArgument>("Recurrent: {} layers", options.num_layers);
  if (!(options.dropout >= 0 && options.dropout <= 1))
    fail<InvalidArgument>("Recurrent: dropout {} is not in 0..1", options.dropout);
  const int64_t ways = options.bidirectional ? 2 : 1;
  for (int64_t k = 0; k < options.num_layers * ways; k++) {
    Weights w;
    w.ih = uniform({gates * hidden, k < ways ? in : hidden * ways}, hidden, tensors);
    w.hh = uniform({gates * hidden, hidden}, hidden, tensors);
    if (options.bias) {
      w.bias_ih = uniform({gates * hidden}, hidden, tensors);
      w.bias_hh = uniform({gates * hidden}, hidden, tensors);
    }
    weights_.push_back(std::move(w));
  }
}

void Recurrent::members(Members& m) const {
  const size_t ways = options_.bidirectional ? 2 : 1;
  for (size_t k = 0; k < weights_.size(); k++) {
    const std::string layer = fmt::format("_l{}{}", k / ways, k % ways ? "_reverse" : "");
    m.parameter("weight_ih" + layer, weights_[k].ih);
    m.parameter("weight_hh" + layer, weights_[k].hh);
    m.parameter("bias_ih" + layer, weights_[k].bias_ih);
    m.parameter("bias_hh" + layer, weights_[k].bias_hh);
  }
}

// One layer in one direction over (time, batch, features); what is beyond a length changes no
// state, so that a way back begins at each sequence's own end.
std::pair<Tensor, Recurrent::State> Recurrent::way(const Tensor& x, size_t k, State state,
                                                   const Tensor& there) const {
  const Weights& w = weights_[k];
  const bool back = options_.bidirectional && k % 2 == 1;
  const Tensor gates = x.linear(w.ih, w.bias_ih);
  const auto one = [&](const Tensors& before, const Tensors& rows) {
    State after = step(rows[0], before, w);
    for (size_t i = 0; i < after.size(); i++) after[i] = after[i].cast(before[i].dtype());
    if (!there.defined()) return Scanned{after, {after[0]}};
    for (size_t i = 0; i < after.size(); i++)
      after[i] = Tensor::where(rows[1], after[i], before[i]);
    return Scanned{after, {Tensor::where(rows[1], after[0], 0.0)}};
  };
  Tensors sequences{gates};
  if (there.defined()) sequences.push_back(there);
  if (state[0].numel().max() > 0) {  // a loop's states have elements
    Scanned all = scan(one, state, sequences, {.reverse = back});
    return {all.outputs[0], std::move(all.states)};
  }
  const int64_t time = x.size(0);
  Tensors out(static_cast<size_t>(time));
  for (int64_t t = 0; t < time; t++) {
    const int64_t at = back ? time - 1 - t : t;
    Tensors rows;
    for (const Tensor& s : sequences) rows.push_back(s[at]);
    Scanned step = one(state, rows);
    state = std::move(step.states);
    out[size_t(at)] = step.outputs[0];
  }
  return {Tensor::stack(out), std::move(state)};
}

namespace {

// (time, batch, 1): which steps the sequences have.
Tensor steps_there(const Tensor& lengths, const Tensor& x) {
  if (!is_int(lengths.dtype()))
    fail<InvalidArgument>("Recurrent: lengths are {}: cast them to integers",
                          name(lengths.dtype()));
  if (!detail::same(lengths.sizes(), Sizes{x.size(1)}))
    fail<ShapeError>("Recurrent: lengths are {} for a batch of {}",
                     detail::text(lengths.sizes()), x.size(1));
  detail::require_same_device("Recurrent", x, lengths);
  const Tensor step = detail::counter(x.size(0), 0, 2, x.device());
  return (step.cast(lengths.dtype()) < lengths).unsqueeze(-1);
}

}  // namespace

std::pair<Tensor, Recurrent::State> Recurrent::sequence(const Tensor& given, const State& states,
                                                        const Tensor& lengths) const {
  const Size features = weights_[0].ih.size(1);
  if (given.dim() != 3 || given.size(2) != features || given.size(options_.batch_first) < 1)
    fail<ShapeError>("Recurrent: {} is not {}, {}) of one step or more",
                     detail::text(given.sizes()),
                     options_.batch_first ? "(batch, time" : "(time, batch", features);
  Tensor x = options_.batch_first ? given.transpose(0, 1) : given;
  const Sizes wanted{int64_t(weights_.size()), x.size(1), hidden_};
  for (const Tensor& s : states) {
    if (s.defined() && !detail::same(s.sizes(), wanted))
      fail<ShapeError>("Recurrent: a state is {}, {} was wanted", detail::text(s.sizes()),
                       detail::text(wanted));
  }
  Tensor there;
  if (lengths.defined()) {
    there = steps_there(lengths, x);
    x = Tensor::where(there, x, 0.0);
  }
  const TrainingMode mode(training());
  const size_t ways = options_.bidirectional ? 2 : 1;
  std::vector<State> last(states.size());
  for (size_t layer = 0; layer < weights_.size() / ways; layer++) {
    std::vector<Tensor> out;
    if (layer > 0) x = x.dropout(options_.dropout);
    for (size_t k = layer * ways; k < (layer + 1) * ways; k++) {
      State first;
      for (const Tensor& s : states)
        first.push_back(s.defined() ? s[int64_t(k)] : zeros(x[0], hidden_));
      const auto [y, end] = way(x, k, std::move(first), there);
      out.push_back(y);
      for (size_t i = 0; i < end.size(); i++) last[i].push_back(end[i]);
    }
    x = ways == 1 ? out[0] : Tensor::cat(out, -1);
  }
  State ends;
  for (const State& s : last) ends.push_back(Tensor::stack(s));
  return {options_.batch_first ? x.transpose(0, 1) : x, std::move(ends)};
}

RNN::RNN(int64_t in, int64_t hidden, const RecurrentOptions& options, std::string nonlinearity,
         const TensorOptions& tensors)
    : Recurrent(1, in, hidden, options, tensors),
      nonlinearity_(checked_nonlinearity(std::move(nonlinearity))) {}
RNN::State RNN::step(const Tensor& gates, const State& before, const Weights& w) const {
  return {rnn_step(gates, before[0], w.hh, w.bias_hh, nonlinearity_)};
}
std::pair<Tensor, Tensor> RNN::operator()(const Tensor& x, const Tensor& h,
                                          const Tensor& lengths) const {
  const auto [y, ends] = sequence(x, {h}, lengths);
  return {y, ends[0]};
}

LSTM::State LSTM::step(const Tensor& gates, const State& before, const Weights& w) const {
  const auto [h, c] = lstm_step(gates, before[0], before[1], w.hh, w.bias_hh);
  return {h, c};
}
std::tuple<Tensor, Tensor, Tensor> LSTM::operator()(const Tensor& x, const Tensor& h,
                                                    const Tensor& c,
                                                    const Tensor& lengths) const {
  const auto [y, ends] = sequence(x, {h, c}, lengths);
  return {y, ends[0], ends[1]};
}

GRU::State GRU::step(const Tensor& gates, const State& before, const Weights& w) const {
  return {gru_step(gates, before[0], w.hh, w.bias_hh)};
}
std::pair<Tensor, Tensor> GRU::operator()(const Tensor& x, const Tensor& h,
                                          const Tensor& lengths) const {
  const auto [y, ends] = sequence(x, {h}, lengths);
  return {y, ends[0]};
}

}  // namespace tuff::nn
