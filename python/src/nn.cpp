// tuff.nn: layers as they are in C++, their states as dicts of tensors by name.
#include <tuff/nn.h>

#include "module.h"

namespace tuff::python {
py::dict dict_of(const nn::StateDict& state) {
  py::dict out;
  for (const nn::NamedTensor& t : state) out[py::str(t.name)] = t.tensor;
  return out;
}

nn::StateDict state_from(const py::dict& given) {
  nn::StateDict out;
  for (const auto& [name, tensor] : given) {
    if (!py::isinstance<py::str>(name))
      throw py::type_error("names of tensors are str, not " + type_name(name));
    if (!py::isinstance<Tensor>(tensor))
      throw py::type_error("\"" + text_of(name) + "\" has to be a Tensor, not " +
                           type_name(tensor));
    out.push_back({text_of(name), tensor.cast<Tensor>()});
  }
  return out;
}

namespace {

using py::arg;

#define TUFF_LAYER_OPTIONS py::kw_only(), arg("dtype") = DType::F32, arg("device") = ""

template <class Layer>
py::class_<Layer> layer(py::module_& m, const char* name, const char* doc) {
  py::class_<Layer> c(m, name, doc);
  c.def("__call__", [](const Layer& l, const Tensor& x) { return l(x); }, arg("x"));
  c.def("parameters", &Layer::parameters, "What an optimizer trains, in order of declaration.");
  c.def(
      "state_dict", [](const Layer& l) { return dict_of(l.state_dict()); },
      "All that a checkpoint holds: tensors by name.");
  return c;
}

// A tensor of a layer, None if it has none; trained ones may be replaced.
template <class Layer>
void tensor_field(py::class_<Layer>& c, const char* name, Tensor Layer::* field) {
  c.def_property(
      name, [field](const Layer& l) { return shown(l.*field); },
      [field](Layer& l, const MaybeTensor& t) { l.*field = given(t); });
}

void bind_linear(py::module_& m) {
  auto c = layer<nn::Linear>(m, "Linear", "y = x @ weight.T + bias; weight (out, in).");
  c.def(py::init([](int64_t in, int64_t out, bool bias, DType t, const std::string& device) {
          return nn::Linear(in, out, bias, {t, device});
        }),
        arg("in_features"), arg("out_features"), arg("bias") = true, TUFF_LAYER_OPTIONS);
  c.def(py::init([](const Tensor& weight, const MaybeTensor& bias) {
          return nn::Linear(weight, given(bias));
        }),
        arg("weight"), arg("bias") = py::none());
  tensor_field(c, "weight", &nn::Linear::weight);
  tensor_field(c, "bias", &nn::Linear::bias);
}

void bind_conv2d(py::module_& m) {
  auto c = layer<nn::Conv2d>(m, "Conv2d", "weight (out, in/groups, KH, KW).");
  c.def(
      py::init([](int64_t in, int64_t out, IntPair kernel, IntPair stride, IntPair padding,
                  bool bias, IntPair dilation, int64_t groups, DType t, const std::string& device) {
        return nn::Conv2d(in, out, kernel, stride, padding, bias, {t, device}, dilation, groups);
      }),
      arg("in_channels"), arg("out_channels"), arg("kernel"), arg("stride") = IntPair(1),
      arg("padding") = IntPair(0), arg("bias") = true, arg("dilation") = IntPair(1),
      arg("groups") = 1, TUFF_LAYER_OPTIONS);
  c.def(py::init([](const Tensor& weight, const MaybeTensor& bias, IntPair stride, IntPair padding,
                    IntPair dilation, int64_t groups) {
          return nn::Conv2d(weight, given(bias), stride, padding, dilation, groups);
        }),
        arg("weight"), arg("bias") = py::none(), arg("stride") = IntPair(1),
        arg("padding") = IntPair(0), arg("dilation") = IntPair(1), arg("groups") = 1);
  tensor_field(c, "weight", &nn::Conv2d::weight);
  tensor_field(c, "bias", &nn::Conv2d::bias);
}

void bind_norms(py::module_& m) {
  auto batch = layer<nn::BatchNorm>(m, "BatchNorm", "Of (N, C, ...), per channel.");
  batch.def(py::init([](int64_t features, double eps, double momentum, bool affine, DType t,
                        const std::string& device) {
              return nn::BatchNorm(features, eps, momentum, affine, {t, device});
            }),
            arg("features"), arg("eps") = 1e-5, arg("momentum") = 0.1, arg("affine") = true,
            TUFF_LAYER_OPTIONS);
  tensor_field(batch, "weight", &nn::BatchNorm::weight);
  tensor_field(batch, "bias", &nn::BatchNorm::bias);
  tensor_field(batch, "running_mean", &nn::BatchNorm::running_mean);
  tensor_field(batch, "running_var", &nn::BatchNorm::running_var);

  auto layer_norm = layer<nn::LayerNorm>(m, "LayerNorm", "Over the last axis.");
  layer_norm.def(py::init([](int64_t features, double eps, DType t, const std::string& device) {
                   return nn::LayerNorm(features, eps, {t, device});
                 }),
                 arg("features"), arg("eps") = 1e-5, TUFF_LAYER_OPTIONS);
  layer_norm.def(py::init<Tensor, Tensor, double>(), arg("weight"), arg("bias"), arg("eps") = 1e-5);
  tensor_field(layer_norm, "weight", &nn::LayerNorm::weight);
  tensor_field(layer_norm, "bias", &nn::LayerNorm::bias);

  auto rms = layer<nn::RMSNorm>(m, "RMSNorm", "x / sqrt(mean(x^2) + eps) over the last axis.");
  rms.def(
      py::init([](int64_t features, std::optional<double> eps, DType t, const std::string& device) {
        return nn::RMSNorm(features, eps, {t, device});
      }),
      arg("features"), arg("eps") = py::none(), TUFF_LAYER_OPTIONS);
  rms.def(py::init<Tensor, std::optional<double>>(), arg("weight"), arg("eps") = py::none());
  tensor_field(rms, "weight", &nn::RMSNorm::weight);
}

void bind_embedding(py::module_& m) {
  auto c = layer<nn::Embedding>(m, "Embedding", "weight (count, features), standard normal.");
  c.def(py::init([](int64_t count, int64_t features, DType t, const std::string& device) {
          return nn::Embedding(count, features, {t, device});
        }),
        arg("count"), arg("features"), TUFF_LAYER_OPTIONS);
  c.def(py::init<Tensor>(), arg("weight"));
  tensor_field(c, "weight", &nn::Embedding::weight);
  layer<nn::Dropout>(m, "Dropout", "Zeroes with probability p; only in training mode.")
      .def(py::init<double>(), arg("p") = 0.5)
      .def_readonly("p", &nn::Dropout::p);
}

void bind_attention(py::module_& m) {
  using Attention = nn::MultiHeadAttention;
  py::class_<Attention> c(m, "MultiHeadAttention",
                          "Queries, keys and values (batch, time, features) projected, attended "
                          "in `heads` parts and projected back.");
  c.def(py::init([](int64_t features, int64_t heads, double dropout, bool bias, DType t,
                    const std::string& device) {
          return Attention(features, heads, dropout, bias, {t, device});
        }),
        arg("features"), arg("heads"), arg("dropout") = 0.0, arg("bias") = true,
        TUFF_LAYER_OPTIONS);
  c.def(
      "__call__",
      [](const Attention& l, const Tensor& query, const MaybeTensor& key, const MaybeTensor& value,
         const MaybeTensor& mask, bool is_causal) {
        return l(query, key.value_or(query), value.value_or(query), given(mask), is_causal);
      },
      arg("query"), arg("key") = py::none(), arg("value") = py::none(),
      arg("attn_mask") = py::none(), arg("is_causal") = false);
  c.def("parameters", &Attention::parameters);
  c.def("state_dict", [](const Attention& l) { return dict_of(l.state_dict()); });
  tensor_field(c, "in_proj_weight", &Attention::in_proj_weight);
  tensor_field(c, "in_proj_bias", &Attention::in_proj_bias);
  c.def_readonly("out_proj", &Attention::out_proj);
}

}  // namespace

void bind_nn(py::module_& parent) {
  py::module_ m = parent.def_submodule("nn", "Layers: parameters with a call operator.");
  bind_linear(m);
  bind_conv2d(m);
  bind_norms(m);
  bind_embedding(m);
  bind_attention(m);
  m.def(
      "load_state_dict",
      [](const py::dict& into, const py::dict& values) {
        const nn::StateDict to = state_from(into), from = state_from(values);
        nn::load_state_dict(to, from);
      },
      arg("into"), arg("values"),
      "Assigns values by name and realizes them; what is missing or too much is named.");
}

}  // namespace tuff::python
