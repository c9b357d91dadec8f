// What tuff.autograd, tuff.checkpoint and tuff.amp are made of. Functions of Python are called
// while a call of this module runs, and never kept.
#include <memory>

#include <tuff/autocast.h>
#include <tuff/autograd.h>
#include <tuff/scan.h>

#include "interpreter.h"
#include "module.h"

namespace tuff::python {
namespace {

using py::arg;
using MaybeTensors = std::vector<MaybeTensor>;

// The result of a function, called as Python's own are.
py::object result_of(const py::function& f, const py::tuple& arguments) {
  auto result = py::reinterpret_steal<py::object>(call_python(f.ptr(), arguments.ptr()));
  if (!result) throw py::error_already_set();
  return result;
}

TensorsFunction of_tensors(const py::function& f) {
  return [&f](const Tensors& x) { return result_of(f, py::make_tuple(x)).cast<Tensors>(); };
}

Tensors apply(const py::function& forward, const py::function& backward, const Tensors& arguments) {
  const autograd::Function function{
      [&](autograd::FunctionContext&, const Tensors& x) {
        return result_of(forward, py::make_tuple(x)).cast<Tensors>();
      },
      [&](autograd::FunctionContext&, const Tensors& g) {
        MaybeTensors shown_to;
        for (const Tensor& t : g) shown_to.push_back(shown(t));
        Tensors out;
        const py::object gradients = result_of(backward, py::make_tuple(shown_to));
        for (const MaybeTensor& t : gradients.cast<MaybeTensors>()) out.push_back(given(t));
        return out;
      }};
  return function(arguments);
}

py::tuple pair_of(const autograd::Derivatives& d) {
  return py::make_tuple(d.outputs, d.derivatives);
}

// A context of Python holds the C++ object from __enter__ to __exit__.
struct Scope {
  DType dtype;
  bool enabled;
  std::vector<std::unique_ptr<Autocast>> entered = {};
};

}  // namespace

void bind_autograd(py::module_& m) {
  m.def("function_of", &apply, arg("forward"), arg("backward"), arg("arguments"),
        "What tuff.autograd.Function.apply calls: forward(list) gives a list, backward(list) a "
        "list of as many gradients as there are arguments.");
  m.def(
      "checkpoint_of",
      [](const py::function& f, const Tensors& x) { return checkpoint(of_tensors(f), x); },
      arg("function"), arg("arguments"), "What tuff.checkpoint calls, with a function of a list.");
  m.def(
      "vjp_of",
      [](const py::function& f, const Tensors& x, const Tensors& v) {
        return pair_of(autograd::vjp(of_tensors(f), x, v));
      },
      arg("function"), arg("inputs"), arg("v"), "What tuff.autograd.vjp calls.");
  m.def(
      "jvp_of",
      [](const py::function& f, const Tensors& x, const Tensors& v) {
        return pair_of(autograd::jvp(of_tensors(f), x, v));
      },
      arg("function"), arg("inputs"), arg("v"), "What tuff.autograd.jvp calls.");
  m.def(
      "jacrev_of",
      [](const py::function& f, const Tensors& x) {
        return autograd::jacrev(
            [&f](const Tensors& in) { return result_of(f, py::make_tuple(in)).cast<Tensor>(); }, x);
      },
      arg("function"), arg("inputs"), "What tuff.autograd.jacrev calls.");
  m.def(
      "jacfwd_of",
      [](const py::function& f, const Tensors& x) {
        return autograd::jacfwd(
            [&f](const Tensors& in) { return result_of(f, py::make_tuple(in)).cast<Tensor>(); }, x);
      },
      arg("function"), arg("inputs"), "What tuff.autograd.jacfwd calls.");
  m.def(
      "hessian_of",
      [](const py::function& f, const Tensor& x) {
        return autograd::hessian(
            [&f](const Tensor& in) { return result_of(f, py::make_tuple(in)).cast<Tensor>(); }, x);
      },
      arg("function"), arg("x"), "What tuff.autograd.hessian calls.");
  m.def(
      "vmap_of",
      [](const py::function& f, const Tensors& x, std::vector<std::optional<int64_t>> in_dims,
         int64_t out_dim) { return vmap(of_tensors(f), std::move(in_dims), out_dim)(x); },
      arg("function"), arg("arguments"), arg("in_dims"), arg("out_dim"), "What tuff.vmap calls.");
  m.def(
      "scan_of",
      [](const py::function& f, const Tensors& initial, const Tensors& sequences, const Size& steps,
         bool reverse, bool ahead) {
        const auto step = [&f](const Tensors& states, const Tensors& rows) {
          const py::object pair = result_of(f, py::make_tuple(states, rows));
          auto [next, outputs] = pair.cast<std::pair<Tensors, Tensors>>();
          return Scanned{std::move(next), std::move(outputs)};
        };
        const Scanned all = scan(step, initial, sequences,
                                 {.steps = steps, .reverse = reverse, .ahead = ahead});
        return py::make_tuple(all.states, all.outputs);
      },
      arg("function"), arg("initial"), arg("sequences"), arg("steps"), arg("reverse"),
      arg("ahead"), "What tuff.scan calls, with a function of lists that gives a pair of lists.");
  m.def(
      "autocast_dtype",
      [] {
        const DType t = autocast_dtype();
        return t == DType::Void ? std::nullopt : std::optional(t);
      },
      "The dtype of this thread's autocast scope; None outside, and in one that is not enabled.");
  py::class_<Scope>(m, "AutocastScope", "What tuff.amp.autocast is made of.")
      .def(py::init([](DType t, bool enabled) {
             const Autocast checked(t, enabled);
             return new Scope{t, enabled};
           }),
           arg("dtype"), arg("enabled"))
      .def("enter",
           [](Scope& s) { s.entered.push_back(std::make_unique<Autocast>(s.dtype, s.enabled)); })
      .def("exit", [](Scope& s) {
        if (!s.entered.empty()) s.entered.pop_back();
      });
}

}  // namespace tuff::python
