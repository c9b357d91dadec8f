// How layers of C++ are bound: python/tuff/_layer.py makes modules of them.
#pragma once

#include <tuff/nn.h>

#include "module.h"

namespace tuff::python {

#define TUFF_LAYER_OPTIONS py::kw_only(), py::arg("dtype") = DType::F32, py::arg("device") = ""

template <class Layer>
using LayerClass = py::class_<Layer, nn::Module>;

// Of one tensor.
template <class Layer>
LayerClass<Layer> layer(py::module_& m, const char* name, const char* doc) {
  LayerClass<Layer> c(m, name, doc);
  c.def("__call__", [](const Layer& l, const Tensor& x) { return l(x); }, py::arg("x"));
  return c;
}

// Those of include/tuff/recurrent.h.
void bind_recurrent(py::module_& m);
// Those of include/tuff/window_layers.h.
void bind_window_layers(py::module_& m);

}  // namespace tuff::python
