// tuff.nn: layers as they are in C++, their states as dicts of tensors by name.
#include <fmt/format.h>
#include <tuff/nn.h>

#include "layer_class.h"
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

// What python/tuff/_module.py builds its layers around.
void bind_module(py::module_& m) {
  py::class_<nn::Module>(m, "Module", "A layer as it is in C++.")
      .def(
          "tensors",
          [](const nn::Module& l) {
            py::list out;
            for (const nn::NamedTensor& t : l.tensors())
              out.append(py::make_tuple(t.name, shown(t.tensor), t.trained));
            return out;
          },
          "(name, tensor or None, whether it is a parameter) of its own ones.")
      .def(
          "set_tensor",
          [](nn::Module& l, const std::string& name, const MaybeTensor& t) {
            l.set_tensor(name, given(t));
          },
          arg("name"), arg("tensor"), "Puts a tensor in the place of its own one.")
      .def(
          "parts",
          [](const py::object& self) {
            py::list out;
            for (const auto& [name, part] : self.cast<nn::Module&>().named_children())
              out.append(py::make_tuple(
                  name, py::cast(part, py::return_value_policy::reference_internal, self)));
            return out;
          },
          "(name, layer) of the layers inside.");
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
  layer<nn::LinearInt4>(m, "LinearInt4", "A Linear whose weight is packed by quantize_int4().")
      .def(py::init([](int64_t in, int64_t out, bool bias, int64_t group_size, bool symmetric,
                       DType t, const std::string& device) {
             return nn::LinearInt4(in, out, bias, group_size, symmetric, {t, device});
           }),
           arg("in_features"), arg("out_features"), arg("bias") = true, arg("group_size") = 32,
           arg("symmetric") = false, TUFF_LAYER_OPTIONS)
      .def(py::init([](const Tensor& packed, const Tensor& scales, const MaybeTensor& zeros,
                       const MaybeTensor& bias, int64_t group_size) {
             return nn::LinearInt4(Int4Weight{packed, scales, given(zeros)}, given(bias),
                                   group_size);
           }),
           arg("packed"), arg("scales"), arg("zeros") = py::none(), arg("bias") = py::none(),
           arg("group_size") = 32)
      .def_readonly("group_size", &nn::LinearInt4::group_size);
}

void bind_part_norms(py::module_& m) {
  layer<nn::GroupNorm>(m, "GroupNorm", "Of (N, C, ...), per group of channels.")
      .def(py::init([](int64_t groups, int64_t channels, double eps, bool affine, DType t,
                       const std::string& device) {
             return nn::GroupNorm(groups, channels, eps, affine, {t, device});
           }),
           arg("num_groups"), arg("num_channels"), arg("eps") = 1e-5, arg("affine") = true,
           TUFF_LAYER_OPTIONS);
  layer<nn::InstanceNorm>(m, "InstanceNorm", "Of (N, C, ...), per sample and channel.")
      .def(py::init([](int64_t features, double eps, bool affine, DType t,
                       const std::string& device) {
             return nn::InstanceNorm(features, eps, affine, {t, device});
           }),
           arg("num_features"), arg("eps") = 1e-5, arg("affine") = false, TUFF_LAYER_OPTIONS);
  layer<nn::LayerNorm2d>(m, "LayerNorm2d", "Over the channels of (N, C, H, W) at every place.")
      .def(py::init([](int64_t channels, double eps, DType t, const std::string& device) {
             return nn::LayerNorm2d(channels, eps, {t, device});
           }),
           arg("channels"), arg("eps") = 1e-6, TUFF_LAYER_OPTIONS);
}

// Layers that normalize the last axis alone take its extent, or a sequence of it.
int64_t last_axis(const char* what, const PerAxis& shape) {
  if (shape.values().size() != 1)
    throw InvalidArgument(fmt::format("{}: one axis is normalized, the last: {} were given; use "
                                      "functional.layer_norm() for several",
                                      what, shape.values().size()));
  return shape.values()[0];
}

void bind_norms(py::module_& m) {
  auto batch = layer<nn::BatchNorm>(m, "BatchNorm", "Of (N, C, ...), per channel.");
  batch.def(py::init([](int64_t features, double eps, double momentum, bool affine, DType t,
                        const std::string& device) {
              return nn::BatchNorm(features, eps, momentum, affine, {t, device});
            }),
            arg("num_features"), arg("eps") = 1e-5, arg("momentum") = 0.1, arg("affine") = true,
            TUFF_LAYER_OPTIONS);

  auto layer_norm = layer<nn::LayerNorm>(m, "LayerNorm", "Over the last axis.");
  layer_norm.def(py::init([](const PerAxis& shape, double eps, DType t,
                             const std::string& device) {
                   return nn::LayerNorm(last_axis("LayerNorm", shape), eps, {t, device});
                 }),
                 arg("normalized_shape"), arg("eps") = 1e-5, TUFF_LAYER_OPTIONS);
  layer_norm.def(py::init<Tensor, Tensor, double>(), arg("weight"), arg("bias"), arg("eps") = 1e-5);

  auto rms = layer<nn::RMSNorm>(m, "RMSNorm", "x / sqrt(mean(x^2) + eps) over the last axis.");
  rms.def(
      py::init([](const PerAxis& shape, std::optional<double> eps, DType t,
                  const std::string& device) {
        return nn::RMSNorm(last_axis("RMSNorm", shape), eps, {t, device});
      }),
      arg("normalized_shape"), arg("eps") = py::none(), TUFF_LAYER_OPTIONS);
  rms.def(py::init<Tensor, std::optional<double>>(), arg("weight"), arg("eps") = py::none());
}

void bind_embedding(py::module_& m) {
  using Row = std::optional<int64_t>;
  auto c = layer<nn::Embedding>(m, "Embedding",
                                "weight (num_embeddings, embedding_dim), standard normal.");
  c.def(py::init([](int64_t count, int64_t features, Row padding_idx, DType t,
                    const std::string& device) {
          return nn::Embedding(count, features, {t, device}, padding_idx);
        }),
        arg("num_embeddings"), arg("embedding_dim"), arg("padding_idx") = py::none(),
        TUFF_LAYER_OPTIONS);
  c.def(py::init<Tensor, Row>(), arg("weight"), arg("padding_idx") = py::none());
  auto bag = layer<nn::EmbeddingBag>(m, "EmbeddingBag", "Rows of (bags, length) put together.");
  bag.def(py::init([](int64_t count, int64_t features, const std::string& mode, Row padding_idx,
                      DType t, const std::string& device) {
            return nn::EmbeddingBag(count, features, mode, {t, device}, padding_idx);
          }),
          arg("num_embeddings"), arg("embedding_dim"), arg("mode") = "mean",
          arg("padding_idx") = py::none(), TUFF_LAYER_OPTIONS);
  bag.def(py::init<Tensor, std::string, Row>(), arg("weight"), arg("mode") = "mean",
          arg("padding_idx") = py::none());
  layer<nn::Dropout>(m, "Dropout", "Zeroes with probability p; only in training mode.")
      .def(py::init<double>(), arg("p") = 0.5)
      .def_readonly("p", &nn::Dropout::p);
}

void bind_attention(py::module_& m) {
  using Attention = nn::MultiHeadAttention;
  LayerClass<Attention> c(m, "MultiHeadAttention",
                          "Queries, keys and values (batch, time, features) projected, attended "
                          "in `heads` parts and projected back.");
  using Features = std::optional<int64_t>;
  c.def(py::init([](int64_t features, int64_t heads, double dropout, bool bias, Features kdim,
                    Features vdim, DType t, const std::string& device) {
          return Attention(features, heads, dropout, bias, {t, device}, kdim, vdim);
        }),
        arg("features"), arg("heads"), arg("dropout") = 0.0, arg("bias") = true,
        arg("kdim") = py::none(), arg("vdim") = py::none(), TUFF_LAYER_OPTIONS);
  c.def(
      "__call__",
      [](const Attention& l, const Tensor& query, const MaybeTensor& key, const MaybeTensor& value,
         const MaybeTensor& mask, bool is_causal, const MaybeTensor& padding, bool need_weights,
         bool average) -> py::object {
        const Tensor k = key.value_or(query), v = value.value_or(query);
        if (!need_weights)
          return py::cast(l(query, k, v, given(mask), is_causal, given(padding)));
        return py::cast(
            l.with_weights(query, k, v, given(mask), is_causal, given(padding), average));
      },
      arg("query"), arg("key") = py::none(), arg("value") = py::none(),
      arg("attn_mask") = py::none(), arg("is_causal") = false,
      arg("key_padding_mask") = py::none(), arg("need_weights") = false,
      arg("average_attn_weights") = true);
}

void bind_shapes(py::module_& m) {
  layer<nn::Identity>(m, "Identity", "What it is given.").def(py::init<>());
  layer<nn::Flatten>(m, "Flatten", "The axes from start_dim to end_dim as one.")
      .def(py::init<int64_t, int64_t>(), arg("start_dim") = 1, arg("end_dim") = -1);
}

void bind_activations(py::module_& m) {
  layer<nn::ReLU>(m, "ReLU", "max(x, 0)").def(py::init<>());
  layer<nn::ReLU6>(m, "ReLU6", "min(max(x, 0), 6)").def(py::init<>());
  layer<nn::SELU>(m, "SELU", "elu() of fixed alpha and scale, which keep mean and variance.")
      .def(py::init<>());
  layer<nn::ELU>(m, "ELU", "x, or alpha (exp(x) - 1) below 0.")
      .def(py::init<double>(), arg("alpha") = 1.0);
  layer<nn::CELU>(m, "CELU", "x, or alpha (exp(x / alpha) - 1) below 0.")
      .def(py::init<double>(), arg("alpha") = 1.0);
  layer<nn::Hardtanh>(m, "Hardtanh", "x kept in min..max.")
      .def(py::init<double, double>(), arg("min_val") = -1.0, arg("max_val") = 1.0);
  auto prelu = layer<nn::PReLU>(m, "PReLU", "x, or a learned weight times x below 0.");
  prelu.def(py::init([](int64_t parameters, double init, DType t, const std::string& device) {
              return nn::PReLU(parameters, init, {t, device});
            }),
            arg("num_parameters") = 1, arg("init") = 0.25, TUFF_LAYER_OPTIONS);
  prelu.def(py::init<Tensor>(), arg("weight"));
  layer<nn::LeakyReLU>(m, "LeakyReLU", "x where it is above 0, else negative_slope * x.")
      .def(py::init<double>(), arg("negative_slope") = 0.01);
  layer<nn::GELU>(m, "GELU", "x * Phi(x); approximate \"none\" or \"tanh\".")
      .def(py::init<std::string>(), arg("approximate") = "none");
  layer<nn::SiLU>(m, "SiLU", "x * sigmoid(x)").def(py::init<>());
  layer<nn::Sigmoid>(m, "Sigmoid", "1 / (1 + exp(-x))").def(py::init<>());
  layer<nn::LogSigmoid>(m, "LogSigmoid", "log(sigmoid(x))").def(py::init<>());
  layer<nn::Hardsigmoid>(m, "Hardsigmoid", "x/6 + 1/2, kept in 0..1.").def(py::init<>());
  layer<nn::Hardswish>(m, "Hardswish", "x hardsigmoid(x)").def(py::init<>());
  layer<nn::Mish>(m, "Mish", "x tanh(softplus(x))").def(py::init<>());
  layer<nn::Softsign>(m, "Softsign", "x / (1 + |x|)").def(py::init<>());
  layer<nn::Tanhshrink>(m, "Tanhshrink", "x - tanh(x)").def(py::init<>());
  layer<nn::Tanh>(m, "Tanh", "The hyperbolic tangent.").def(py::init<>());
  layer<nn::Softplus>(m, "Softplus", "log(1 + exp(beta x)) / beta")
      .def(py::init<double, double>(), arg("beta") = 1.0, arg("threshold") = 20.0);
  layer<nn::GLU>(m, "GLU", "The first half of an axis times the sigmoid of the second.")
      .def(py::init<int64_t>(), arg("dim") = -1);
  layer<nn::Softmin>(m, "Softmin", "softmax(-x) along one axis.")
      .def(py::init<int64_t>(), arg("dim") = -1);
  layer<nn::Softmax>(m, "Softmax", "Along one axis.").def(py::init<int64_t>(), arg("dim") = -1);
  layer<nn::LogSoftmax>(m, "LogSoftmax", "Along one axis.")
      .def(py::init<int64_t>(), arg("dim") = -1);
}

}  // namespace

void bind_nn(py::module_& parent) {
  py::module_ m = parent.def_submodule("nn", "Layers: parameters with a call operator.");
  bind_module(m);
  bind_linear(m);
  bind_norms(m);
  bind_part_norms(m);
  bind_embedding(m);
  bind_attention(m);
  bind_shapes(m);
  bind_activations(m);
  bind_recurrent(m);
  bind_window_layers(m);
  m.def(
      "load_state_dict",
      [](const py::dict& into, const py::dict& values, bool strict) {
        const nn::StateDict to = state_from(into), from = state_from(values);
        const nn::LoadReport report = nn::load_state_dict(to, from, strict);
        return py::make_tuple(report.missing_keys, report.unexpected_keys);
      },
      arg("into"), arg("values"), arg("strict") = true,
      "Assigns values by name and realizes them. What is missing or too much is named: by an error "
      "if strict, else by the result.");
  m.def("convert_", &nn::convert_, arg("tensors"), arg("dtype") = DType::Void, arg("device") = "",
        "Gives tensors another dtype (floats alone) and another device, in place.");
}

}  // namespace tuff::python
