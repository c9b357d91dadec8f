// TensorScatter.
#include "module.h"

namespace tuff::python {
namespace {

using py::arg;
using Text = std::string_view;

// Both a function and the one in place, whose name ends in _.
template <class Function, class InPlace, class... Args>
void bind_pair(TensorClass& c, const std::string& name, Function function, InPlace in_place,
               const char* doc, const Args&... args) {
  c.def(name.c_str(), function, args..., doc);
  c.def((name + "_").c_str(), in_place, args..., (name + "() in place.").c_str());
}

void bind_elements(TensorClass& c) {
  bind_pair(
      c, "scatter",
      py::overload_cast<int64_t, const Tensor&, const Tensor&, Text>(&Tensor::scatter, py::const_),
      py::overload_cast<int64_t, const Tensor&, const Tensor&, Text>(&Tensor::scatter_),
      "out[index[i][j]][j] = src[i][j] for dim 0, and so on; reduce \"add\" or \"multiply\" "
      "combines.",
      arg("dim"), arg("index"), arg("src"), arg("reduce") = "");
  bind_pair(c, "scatter",
            py::overload_cast<int64_t, const Tensor&, Number, Text>(&Tensor::scatter, py::const_),
            py::overload_cast<int64_t, const Tensor&, Number, Text>(&Tensor::scatter_),
            "The same number everywhere.", arg("dim"), arg("index"), arg("value"),
            arg("reduce") = "");
  bind_pair(c, "scatter_add", &Tensor::scatter_add, &Tensor::scatter_add_,
            "out[index[i][j]][j] += src[i][j] for dim 0, and so on.", arg("dim"), arg("index"),
            arg("src"));
  bind_pair(c, "scatter_reduce", &Tensor::scatter_reduce, &Tensor::scatter_reduce_,
            "scatter() by \"sum\", \"prod\", \"mean\", \"amax\" or \"amin\", with what was there "
            "unless include_self is False.",
            arg("dim"), arg("index"), arg("src"), arg("reduce"), arg("include_self") = true);
  bind_pair(c, "put", &Tensor::put, &Tensor::put_,
            "Elements of the flattened tensor replaced, or added to.", arg("index"), arg("source"),
            arg("accumulate") = false);
  bind_pair(c, "masked_scatter", &Tensor::masked_scatter, &Tensor::masked_scatter_,
            "Where the mask holds, the next element of the flattened source.", arg("mask"),
            arg("source"));
  c.def(
      "masked_select",
      [](const Tensor& x, const Tensor& mask) {
        wait_for(mask);
        return x.masked_select(mask);
      },
      arg("mask"), "The elements where the mask holds, as a vector. Waits for how many there are.");
  c.def("take_along_dim", &Tensor::take_along_dim, arg("indices"), arg("dim") = py::none(),
        "gather() with broadcast shapes; of the flattened tensor without an axis.");
}

void bind_rows(TensorClass& c) {
  bind_pair(c, "index_add", &Tensor::index_add, &Tensor::index_add_,
            "out[index[i]] += alpha * source[i] for dim 0, and so on.", arg("dim"), arg("index"),
            arg("source"), arg("alpha") = 1);
  bind_pair(c, "index_copy", &Tensor::index_copy, &Tensor::index_copy_,
            "Rows replaced by those of the source.", arg("dim"), arg("index"), arg("source"));
  bind_pair(
      c, "index_fill",
      py::overload_cast<int64_t, const Tensor&, const Tensor&>(&Tensor::index_fill, py::const_),
      py::overload_cast<int64_t, const Tensor&, const Tensor&>(&Tensor::index_fill_),
      "Rows filled with a number.", arg("dim"), arg("index"), arg("value"));
  bind_pair(c, "index_fill",
            py::overload_cast<int64_t, const Tensor&, Number>(&Tensor::index_fill, py::const_),
            py::overload_cast<int64_t, const Tensor&, Number>(&Tensor::index_fill_),
            "Rows filled with a number.", arg("dim"), arg("index"), arg("value"));
  bind_pair(c, "index_reduce", &Tensor::index_reduce, &Tensor::index_reduce_,
            "Rows combined by \"prod\", \"mean\", \"amax\" or \"amin\".", arg("dim"), arg("index"),
            arg("source"), arg("reduce"), arg("include_self") = true);
}

}  // namespace

void bind_scatter(TensorClass& c) {
  bind_elements(c);
  bind_rows(c);
}

}  // namespace tuff::python
