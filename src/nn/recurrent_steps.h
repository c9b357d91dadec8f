// One step of recurrent layers: the gates of the input (x.linear()), the states before, the weight
// and bias of the states. Called by the layers, and by the exporter (onnx/), which tells them by
// building them again.
#pragma once

#include <string>
#include <utility>

#include <tuff/tensor.h>

namespace tuff::nn {

Tensor rnn_step(const Tensor& gates, const Tensor& h, const Tensor& hh, const Tensor& bias,
                const std::string& nonlinearity);
std::pair<Tensor, Tensor> lstm_step(const Tensor& gates, const Tensor& h, const Tensor& c,
                                    const Tensor& hh, const Tensor& bias);
Tensor gru_step(const Tensor& gates, const Tensor& h, const Tensor& hh, const Tensor& bias);

}  // namespace tuff::nn
