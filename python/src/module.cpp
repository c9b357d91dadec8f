// The extension module tuff._tuff: the C++ API, class by class. The package tuff around it adds
// what is better said in Python.
#include "module.h"

#include "engine/device.h"
#include "interpreter.h"
#include "waiting.h"

namespace tuff::python {
namespace {

// Objects of Python that tuff still holds are nobody's from then on, and so is their memory, which
// work in flight may read until the process ends.
void at_exit() {
  wait_for_calls();
  release_waiting();
  stop_releasing();
}

void bind_devices(py::module_& m) {
  m.def(
      "default_device", [] { return engine::canonical_device(""); },
      "Where tensors are made if nothing else is said.");
  m.def("canonical_device", &engine::canonical_device, py::arg("name"),
        "The name a device has once opened: \"vulkan\" -> \"VULKAN:0\".");
  m.def(
      "devices",
      [] {
        std::vector<std::string> names;
        for (const devices::Candidate& c : engine::list_devices()) {
          if (c.usable) names.push_back(c.name);
        }
        return names;
      },
      py::call_guard<Unlocked>(), "The devices of this machine that can be used.");
  m.def(
      "synchronize",
      [](const std::string& device) {
        const auto opened = engine::Device::get(device);
        engine::wait_for_reads();
        wait_in_slices(opened->queue(), opened->queue().last_submitted());
        opened->hcq().allocator().collect();
      },
      py::arg("device") = "", py::call_guard<Unlocked>(),
      "Waits until a device has done what it was given, and files are read.");
}

void bind_determinism(py::module_& m) {
  m.def("use_deterministic_algorithms", &use_deterministic_algorithms, py::arg("mode"),
        "Whether every result has the same bits on every run, the default; else GPUs combine what "
        "comes to one place in any order, by atomic operations where that is faster.");
  m.def("are_deterministic_algorithms_enabled", &are_deterministic_algorithms_enabled,
        "As use_deterministic_algorithms() was told.");
}

}  // namespace
}  // namespace tuff::python

PYBIND11_MODULE(_tuff, m) {
  using namespace tuff::python;
  m.doc() = "A tensor engine: lazy tensors, autograd, fused kernels, captured and replayed graphs.";
  m.attr("__version__") = TUFF_VERSION;
  bind_errors(m);
  bind_dtypes(m);
  bind_sizes(m);
  TensorClass tensor(m, "Tensor", "A lazy n-dimensional array on one device, with autograd.");
  bind_creation(tensor);
  bind_facts(tensor);
  bind_movement(tensor);
  bind_elementwise(tensor);
  bind_reductions(tensor);
  bind_networks(tensor);
  bind_losses(tensor);
  bind_math(tensor);
  bind_views(tensor);
  bind_products(tensor);
  bind_statistics(tensor);
  bind_sorting(tensor);
  bind_scatter(tensor);
  bind_windows(tensor);
  bind_writes(tensor);
  bind_shards(tensor);
  bind_operators(tensor);
  bind_indexing(tensor);
  bind_state(tensor);
  bind_sharing(m, tensor);
  bind_linalg(m, tensor);
  bind_special(m);
  bind_functions(m);
  bind_int4(m);
  bind_all_reduce(m);
  bind_autograd(m);
  bind_kernel(m);
  bind_jit(m);
  bind_nn(m);
  bind_optim(m);
  bind_fft(m);
  bind_digits(m);
  bind_files(m);
  bind_onnx(m);
  bind_text(m);
  bind_language(m);
  bind_devices(m);
  bind_determinism(m);
  explain_arguments(m);
  py::module_::import("atexit").attr("register")(py::cpp_function(&at_exit));
}
