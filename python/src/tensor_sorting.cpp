// TensorSorting: order, selection, search, counts, draws and running values.
#include "module.h"

namespace tuff::python {
namespace {

using py::arg;

// With one axis or all: {value, position} or the value alone.
py::object middle(const Tensor& x, std::optional<int64_t> dim, bool keepdim, bool without_nan) {
  if (!dim) return py::cast(without_nan ? x.nanmedian() : x.median());
  return py::cast(without_nan ? x.nanmedian(*dim, keepdim) : x.median(*dim, keepdim));
}

// What was asked for of it: a tensor, or a tuple of several.
py::object asked_for(const UniqueElements& u, bool inverse, bool counts) {
  py::list out;
  out.append(u.values);
  if (inverse) out.append(u.inverse);
  if (counts) out.append(u.counts);
  if (out.size() == 1) return out[0];
  return py::tuple(out);
}

void bind_order(TensorClass& c) {
  // They are always stable.
  c.def(
      "sort",
      [](const Tensor& x, int64_t dim, bool descending, bool) { return x.sort(dim, descending); },
      arg("dim") = -1, arg("descending") = false, arg("stable") = true,
      "The elements of an axis in order, and where they were; always stable, NaN above all.");
  c.def(
      "argsort",
      [](const Tensor& x, int64_t dim, bool descending, bool) {
        return x.argsort(dim, descending);
      },
      arg("dim") = -1, arg("descending") = false, arg("stable") = true,
      "Where the elements of sort() were.");
  c.def("msort", &Tensor::msort, "sort() along axis 0, without positions.");
  c.def(
      "topk",
      [](const Tensor& x, int64_t k, int64_t dim, bool largest, bool) {
        return x.topk(k, dim, largest);
      },
      arg("k"), arg("dim") = -1, arg("largest") = true, arg("sorted") = true,
      "The k largest (smallest) and where they were; always in order.");
}

void bind_selection(TensorClass& c) {
  c.def("kthvalue", &Tensor::kthvalue, arg("k"), arg("dim") = -1, arg("keepdim") = false,
        "The k-th smallest, counted from 1, and where it was.");
  c.def(
      "median",
      [](const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
        return middle(x, dim, keepdim, false);
      },
      arg("dim") = py::none(), arg("keepdim") = false,
      "The middle one of all elements, of two the smaller; of an axis also where it was.");
  c.def(
      "nanmedian",
      [](const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
        return middle(x, dim, keepdim, true);
      },
      arg("dim") = py::none(), arg("keepdim") = false, "median() of what is not NaN.");
  c.def("mode", &Tensor::mode, arg("dim") = -1, arg("keepdim") = false,
        "The most frequent element, the smallest of several, and its last position.");
  const auto quantiles = [&](const char* name, auto function_of_number, auto function_of_tensor,
                             const char* doc) {
    c.def(name, function_of_number, arg("q"), arg("dim") = py::none(), arg("keepdim") = false,
          arg("interpolation") = Interpolation::Linear, doc);
    c.def(name, function_of_tensor, arg("q"), arg("dim") = py::none(), arg("keepdim") = false,
          arg("interpolation") = Interpolation::Linear, doc);
  };
  using Of = std::optional<int64_t>;
  quantiles(
      "quantile", py::overload_cast<double, Of, bool, Interpolation>(&Tensor::quantile, py::const_),
      py::overload_cast<const Tensor&, Of, bool, Interpolation>(&Tensor::quantile, py::const_),
      "The value at q (n - 1) of the sorted elements; of several q along a new first axis.");
  quantiles("nanquantile",
            py::overload_cast<double, Of, bool, Interpolation>(&Tensor::nanquantile, py::const_),
            py::overload_cast<const Tensor&, Of, bool, Interpolation>(&Tensor::nanquantile,
                                                                      py::const_),
            "quantile() of what is not NaN.");
}

void bind_counts(TensorClass& c) {
  c.def("searchsorted", &Tensor::searchsorted, arg("values"), arg("right") = false,
        "Where values can be put into this sorted tensor, in front of equal ones or behind them.");
  c.def("bucketize", &Tensor::bucketize, arg("boundaries"), arg("right") = false,
        "Where these values can be put among sorted boundaries.");
  c.def("isin", &Tensor::isin, arg("test_elements"), arg("invert") = false,
        "Bool: is each element one of these?");
  c.def(
      "bincount",
      [](const Tensor& x, const std::optional<Tensor>& weights, int64_t minlength) {
        wait_for(x);
        return weights ? x.bincount(*weights, minlength) : x.bincount(minlength);
      },
      arg("weights") = py::none(), arg("minlength") = 0,
      "How often 0, 1, ... stand in a vector of integers, or the sums of their weights. Waits.");
  c.def("histc", &Tensor::histc, arg("bins") = 100, arg("min") = 0.0, arg("max") = 0.0,
        "How many elements lie in each of so many equal parts of a range.");
  c.def(
      "unique",
      [](const Tensor& x, bool, bool inverse, bool counts, std::optional<int64_t> dim) {
        wait_for(x);
        return asked_for(dim ? x.unique(*dim) : x.unique(), inverse, counts);
      },
      arg("sorted") = true, arg("return_inverse") = false, arg("return_counts") = false,
      arg("dim") = py::none(),
      "The different elements, or slices of an axis, always in order. Waits for the number of "
      "them.");
  c.def(
      "unique_consecutive",
      [](const Tensor& x, bool inverse, bool counts) {
        wait_for(x);
        return asked_for(x.unique_consecutive(), inverse, counts);
      },
      arg("return_inverse") = false, arg("return_counts") = false,
      "Each run of equal elements as one. Waits for the number of them.");
  c.def("multinomial", &Tensor::multinomial, arg("num_samples"), arg("replacement") = false,
        "Positions of the last axis, drawn with these weights.");
}

}  // namespace

void bind_sorting(TensorClass& c) {
  bind_order(c);
  bind_selection(c);
  bind_counts(c);
  c.def("cumprod", &Tensor::cumprod, arg("dim"), "Running products along an axis.");
  c.def("cummax", &Tensor::cummax, arg("dim"),
        "The largest element so far along an axis, and its last position.");
  c.def("cummin", &Tensor::cummin, arg("dim"),
        "The smallest element so far along an axis, and its last position.");
  c.def("logcumsumexp", &Tensor::logcumsumexp, arg("dim"),
        "The logarithm of the running sum of exponentials.");
}

}  // namespace tuff::python
