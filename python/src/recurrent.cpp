// tuff.nn: recurrent cells and layers, their states as PyTorch's are given and returned.
#include <array>

#include <tuff/recurrent.h>

#include "layer_class.h"

namespace tuff::python {
namespace {

using py::arg;
// An array, not a pair: pybind11 lets go of a pair's items, which indexing a tensor has just made,
// before it takes them.
using MaybeTensors = std::optional<std::array<Tensor, 2>>;
// Lengths of sequences: a tensor, or numbers, which are looked at.
using Lengths = std::optional<std::variant<Tensor, std::vector<int64_t>>>;

Tensor lengths_of(const Lengths& lengths, const Tensor& x, const nn::Recurrent& layer) {
  if (!lengths) return {};
  if (const Tensor* given = std::get_if<Tensor>(&*lengths)) return *given;
  const auto& list = std::get<std::vector<int64_t>>(*lengths);
  const Size steps = x.dim() == 3 ? x.size(layer.options().batch_first) : Size(0);
  for (size_t i = 0; i < list.size() && steps.is_number(); i++) {
    if (list[i] < 0 || list[i] > int64_t(steps))
      throw InvalidArgument("lengths[" + std::to_string(i) + "] is " + std::to_string(list[i]) +
                            ", there are " + std::to_string(int64_t(steps)) + " steps");
  }
  return Tensor::from(list, {int64_t(list.size())}, {.dtype = DType::I64, .device = x.device()});
}

nn::RecurrentOptions options(int64_t num_layers, bool bias, bool batch_first, double dropout,
                             bool bidirectional) {
  return {num_layers, bias, batch_first, dropout, bidirectional};
}

#define TUFF_RECURRENT_OPTIONS                                                          \
  arg("num_layers") = 1, arg("bias") = true, arg("batch_first") = false,                \
      arg("dropout") = 0.0, arg("bidirectional") = false

void bind_cells(py::module_& m) {
  LayerClass<nn::RNNCell>(m, "RNNCell", "h' = tanh(W x + b + V h + c)")
      .def(py::init([](int64_t in, int64_t hidden, bool bias, const std::string& nonlinearity,
                       DType t, const std::string& device) {
             return nn::RNNCell(in, hidden, bias, nonlinearity, {t, device});
           }),
           arg("input_size"), arg("hidden_size"), arg("bias") = true,
           arg("nonlinearity") = "tanh", TUFF_LAYER_OPTIONS)
      .def(
          "__call__",
          [](const nn::RNNCell& l, const Tensor& x, const MaybeTensor& h) {
            return l(x, given(h));
          },
          arg("x"), arg("hx") = py::none());
  LayerClass<nn::LSTMCell>(m, "LSTMCell", "One step of an LSTM: (h', c').")
      .def(py::init([](int64_t in, int64_t hidden, bool bias, DType t, const std::string& device) {
             return nn::LSTMCell(in, hidden, bias, {t, device});
           }),
           arg("input_size"), arg("hidden_size"), arg("bias") = true, TUFF_LAYER_OPTIONS)
      .def(
          "__call__",
          [](const nn::LSTMCell& l, const Tensor& x, const MaybeTensors& hx) {
            return hx ? l(x, hx->at(0), hx->at(1)) : l(x);
          },
          arg("x"), arg("hx") = py::none());
  LayerClass<nn::GRUCell>(m, "GRUCell", "One step of a GRU.")
      .def(py::init([](int64_t in, int64_t hidden, bool bias, DType t, const std::string& device) {
             return nn::GRUCell(in, hidden, bias, {t, device});
           }),
           arg("input_size"), arg("hidden_size"), arg("bias") = true, TUFF_LAYER_OPTIONS)
      .def(
          "__call__",
          [](const nn::GRUCell& l, const Tensor& x, const MaybeTensor& h) {
            return l(x, given(h));
          },
          arg("x"), arg("hx") = py::none());
}

void bind_sequences(py::module_& m) {
  LayerClass<nn::RNN>(m, "RNN", "RNNCells over a sequence.")
      .def(py::init([](int64_t in, int64_t hidden, int64_t num_layers,
                       const std::string& nonlinearity, bool bias, bool batch_first,
                       double dropout, bool bidirectional, DType t, const std::string& device) {
             return nn::RNN(in, hidden,
                            options(num_layers, bias, batch_first, dropout, bidirectional),
                            nonlinearity, {t, device});
           }),
           arg("input_size"), arg("hidden_size"), arg("num_layers") = 1,
           arg("nonlinearity") = "tanh", arg("bias") = true, arg("batch_first") = false,
           arg("dropout") = 0.0, arg("bidirectional") = false, TUFF_LAYER_OPTIONS)
      .def(
          "__call__",
          [](const nn::RNN& l, const Tensor& x, const MaybeTensor& h, const Lengths& lengths) {
            return l(x, given(h), lengths_of(lengths, x, l));
          },
          arg("x"), arg("hx") = py::none(), arg("lengths") = py::none());
  LayerClass<nn::LSTM>(m, "LSTM", "LSTMCells over a sequence.")
      .def(py::init([](int64_t in, int64_t hidden, int64_t num_layers, bool bias,
                       bool batch_first, double dropout, bool bidirectional, DType t,
                       const std::string& device) {
             return nn::LSTM(in, hidden,
                             options(num_layers, bias, batch_first, dropout, bidirectional),
                             {t, device});
           }),
           arg("input_size"), arg("hidden_size"), TUFF_RECURRENT_OPTIONS, TUFF_LAYER_OPTIONS)
      .def(
          "__call__",
          [](const nn::LSTM& l, const Tensor& x, const MaybeTensors& hx, const Lengths& lengths) {
            const Tensor n = lengths_of(lengths, x, l);
            const auto [y, h, c] = hx ? l(x, hx->at(0), hx->at(1), n) : l(x, {}, {}, n);
            return std::pair(y, std::pair(h, c));
          },
          arg("x"), arg("hx") = py::none(), arg("lengths") = py::none());
  LayerClass<nn::GRU>(m, "GRU", "GRUCells over a sequence.")
      .def(py::init([](int64_t in, int64_t hidden, int64_t num_layers, bool bias,
                       bool batch_first, double dropout, bool bidirectional, DType t,
                       const std::string& device) {
             return nn::GRU(in, hidden,
                            options(num_layers, bias, batch_first, dropout, bidirectional),
                            {t, device});
           }),
           arg("input_size"), arg("hidden_size"), TUFF_RECURRENT_OPTIONS, TUFF_LAYER_OPTIONS)
      .def(
          "__call__",
          [](const nn::GRU& l, const Tensor& x, const MaybeTensor& h, const Lengths& lengths) {
            return l(x, given(h), lengths_of(lengths, x, l));
          },
          arg("x"), arg("hx") = py::none(), arg("lengths") = py::none());
}

}  // namespace

void bind_recurrent(py::module_& m) {
  bind_cells(m);
  bind_sequences(m);
}

}  // namespace tuff::python
