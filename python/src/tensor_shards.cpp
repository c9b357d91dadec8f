// Tensors on several devices.
#include <pybind11/stl.h>

#include "interpreter.h"
#include "module.h"

namespace tuff::python {
namespace {

using py::arg;
// Names, or a group's one: what .device gives.
using Devices = std::variant<std::string, std::vector<std::string>>;

std::vector<std::string> listed(const Devices& devices) {
  if (const auto* one = std::get_if<std::string>(&devices)) return {*one};
  return std::get<std::vector<std::string>>(devices);
}

}  // namespace

void bind_shards(TensorClass& c) {
  c.def(
      "shard",
      [](const Tensor& x, const Devices& devices, std::optional<int64_t> axis) {
        return x.shard(listed(devices), axis);
      },
      arg("devices"), arg("axis") = py::none(),
      "On several devices: in equal parts of an axis, or as copies.");
  c.def(
      "shard_",
      [](Tensor& x, const Devices& devices, std::optional<int64_t> axis) -> Tensor& {
        return x.shard_(listed(devices), axis);
      },
      arg("devices"), arg("axis") = py::none(),
      "On several devices from now on, with its gradient.");
  c.def("shard_like", &Tensor::shard_like, arg("other"),
        "On the other tensor's devices, in parts as it is.");
  c.def_property_readonly("shard_axis", &Tensor::shard_axis,
                          "The axis along which devices hold parts; None if each has all of it.");
  c.def(
      "all_reduce", [](const Tensor& x, const std::string& op) { return x.all_reduce(op); },
      arg("op") = "sum", "What devices hold, combined element by element, on each of them.");
}

void bind_all_reduce(py::module_& m) {
  m.def(
      "all_reduce",
      [](const std::vector<Tensor>& tensors, const std::string& op) {
        return all_reduce(tensors, op);
      },
      arg("tensors"), arg("op") = "sum",
      "All of them combined element by element, once on the device of each.");
}

}  // namespace tuff::python
