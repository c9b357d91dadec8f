// Facts of a tensor and its state: gradients, assignment, realization, waiting.
#include <chrono>

#include "engine/buffer.h"
#include "interpreter.h"
#include "module.h"
#include "waiting.h"
#include "tensor/impl.h"

namespace tuff::python {
namespace {

using py::arg;

constexpr uint64_t kSliceNs = 50'000'000;  // between two looks at what the user wants

void check_signals() {
  const Locked lock;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

double scalar(const Tensor& t) {
  wait_for(t);
  return t.item();
}

py::object number(const Tensor& t) {
  const double v = [&] { return scalar(t); }();
  if (t.dtype() == DType::Bool) return py::bool_(v != 0);
  if (!is_int(t.dtype())) return py::float_(v);
  std::byte memory[8] = {};
  t.copy_to(memory, size_bytes(t.dtype()));
  const Scalar exact = load_scalar(t.dtype(), memory);
  return is_unsigned(t.dtype()) ? py::int_(exact.bits) : py::int_(exact.as_int());
}

// PyTorch's and NumPy's way to print a loss; several elements have no number's format.
py::object formatted(const py::object& self, const py::object& spec) {
  const auto& t = self.cast<const Tensor&>();
  if (py::len(spec) == 0) return py::str(self);
  if (t.dim() != 0)
    throw py::type_error("a tensor of axes has no format of a number: format item() or tolist()");
  return py::module_::import("builtins").attr("format")(number(t), spec);
}

// Memory and gradients of its own.
Tensor duplicate(const Tensor& t) {
  Tensor own = copied(t.detach());
  if (t.requires_grad()) own.realize().set_requires_grad();
  return own;
}

// What pickle keeps: bytes, and where they belong.
py::tuple reduced(const Tensor& t) {
  wait_for(t);
  const auto data = py::reinterpret_steal<py::bytes>(
      PyBytes_FromStringAndSize(nullptr, Py_ssize_t(size_t(t.numel()) * size_bytes(t.dtype()))));
  t.copy_to(PyBytes_AS_STRING(data.ptr()), size_t(PyBytes_GET_SIZE(data.ptr())));
  return py::make_tuple(py::module_::import("tuff._copies").attr("tensor_of"),
                        py::make_tuple(data, t.sizes(), t.dtype(), t.device(), t.requires_grad()));
}

}  // namespace

// The device's own wait ends with DeviceLost where nothing moves: it is left to that in the end.
void wait_in_slices(hcq::Queue& queue, uint64_t value) {
  using Clock = std::chrono::steady_clock;
  queue.device().liveness().require_open();
  const auto patience = std::chrono::milliseconds(queue.device().liveness().timeout_ms());
  uint64_t seen = queue.timeline().value();
  auto since = Clock::now();
  while (!queue.passed(value)) {
    if (queue.timeline().wait(value, kSliceNs)) return;
    check_signals();
    const uint64_t now = queue.timeline().value();
    if (now != seen || queue.device().liveness().waits_for_disk()) {
      seen = now;
      since = Clock::now();
    } else if (Clock::now() - since > patience) {
      break;
    }
  }
  queue.wait(value);
}

void wait_for(const Tensor& t) {
  const Unlocked unlocked;
  const Ref<engine::Buffer> b = detail::memory_of(t);
  b->span();  // the queue comes after what is read into it
  wait_in_slices(b->on().queue(), b->uses().last());
}

Tensor copied(const Tensor& t) {
  return t.clone();
}

void bind_facts(TensorClass& c) {
  c.def_property_readonly("shape", &Tensor::sizes, "Extents, as a tuple.");
  c.def("sizes", &Tensor::sizes, "Extents, as a tuple; also .shape.");
  c.def("size", &Tensor::size, arg("dim"), "One extent.");
  c.def("size", &Tensor::sizes, "All of them, as .shape.");
  c.def("dim", &Tensor::dim, "The number of axes; also .ndim.");
  c.def_property_readonly("ndim", &Tensor::dim, "The number of axes.");
  c.def("numel", &Tensor::numel, "The number of elements.");
  c.def_property_readonly("dtype", &Tensor::dtype, "The element type.");
  c.def_property_readonly("device", &Tensor::device, "The name of the device: \"CPU\"; of several \"CPU,CPU:1\".");
  c.def_property_readonly(
      "itemsize", [](const Tensor& t) { return size_bytes(t.dtype()); }, "Bytes of one element.");
  c.def_property_readonly(
      "nbytes", [](const Tensor& t) { return t.numel() * size_bytes(t.dtype()); },
      "Bytes of all elements.");
  c.def_property(
      "requires_grad", &Tensor::requires_grad, [](Tensor& t, bool on) { t.set_requires_grad(on); },
      "Whether backward() gives it a gradient.");
  c.def(
      "set_requires_grad", [](Tensor& t, bool on) { return t.set_requires_grad(on); },
      arg("on") = true, "Sets requires_grad; returns the tensor.");
  c.def(
      "requires_grad_", [](Tensor& t, bool on) { return t.set_requires_grad(on); },
      arg("requires_grad") = true, "set_requires_grad() by PyTorch's name.");
  c.def_property(
      "grad", [](const Tensor& t) { return shown(t.grad()); },
      [](Tensor& t, const MaybeTensor& g) { t.set_grad(given(g)); },
      "What backward() has added up; None before.");
  c.def(
      "set_grad", [](Tensor& t, const MaybeTensor& g) { t.set_grad(given(g)); }, arg("g"),
      "Sets grad; None clears it.");
  c.def("is_realized", &Tensor::is_realized, "Whether it is memory, and not yet to be computed.");
  c.def("__repr__", [](const Tensor& t) {
    wait_for(t);
    return t.str();
  });
  c.def(
      "str",
      [](const Tensor& t) {
        wait_for(t);
        return t.str();
      },
      "Values, shape, dtype and device; also repr().");
}

void bind_state(TensorClass& c) {
  c.def(
      "assign", [](Tensor& t, const Tensor& value) { return t.assign(value); }, arg("value"),
      "A new version of this tensor's memory: reads asked for before see the old contents.");
  c.def(
      "backward", [](const Tensor& t, const MaybeTensor& gradient) { t.backward(given(gradient)); },
      arg("gradient") = py::none(),
      "Adds the gradients of this scalar to .grad of every tensor with requires_grad that it "
      "depends on. What was computed before is memory and has no history: go backward first.");
  c.def(
      "gradient",
      [](const Tensor& t, const std::vector<Tensor>& targets, const MaybeTensor& gradient) {
        std::vector<MaybeTensor> out;
        for (const Tensor& g : t.gradient(targets, given(gradient))) out.push_back(shown(g));
        return out;
      },
      arg("targets"), arg("gradient") = py::none(),
      "d(sum of this)/d(target) without touching .grad; None where there is no dependence.");
  c.def(
      "realize",
      [](Tensor& t) {
        const Unlocked unlocked;
        return t.realize();
      },
      "Computes it; does not wait for the device.");
  c.def("item", &number, "The value of a tensor of one element.");
  c.def("__float__", &scalar);
  c.def("__format__", &formatted);
  c.def("__copy__", &duplicate);
  c.def("__deepcopy__", [](const Tensor& t, const py::object&) { return duplicate(t); });
  c.def("__reduce__", &reduced);
  // A bool is an int, and yet none that __int__() may give.
  c.def("__int__", [](const Tensor& t) {
    const py::object n = number(t);
    return py::reinterpret_steal<py::object>(PyNumber_Long(n.ptr()));
  });
  c.def("__bool__", [](const Tensor& t) { return scalar(t) != 0; });
  c.def("__index__", [](const Tensor& t) {
    if (!is_int(t.dtype())) throw py::type_error("only integer tensors of one element are indices");
    return number(t);
  });
  c.def(
      "data_ptr",
      [](const Tensor& t) {
        wait_for(t);
        return reinterpret_cast<uintptr_t>(t.data_ptr());
      },
      "The address of its elements in host memory; InvalidArgument on other devices than the CPU.");
}

void bind_functions(py::module_& m) {
  m.def(
      "realize", [](const std::vector<Tensor>& tensors) { Tensor::realize(tensors); },
      py::call_guard<Unlocked>(), arg("tensors"),
      "Computes all of them in one schedule; does not wait.");
  m.def(
      "pow", [](Number base, const Tensor& exponent) { return Tensor::pow(base, exponent); },
      arg("base"), arg("exponent"), "A number to the power of a tensor.");
  m.def(
      "pow", [](const Tensor& base, const Tensor& exponent) { return base.pow(exponent); },
      arg("base"), arg("exponent"), "A tensor to the power of another.");
  m.def(
      "pow", [](const Tensor& base, Number exponent) { return base.pow(exponent); }, arg("base"),
      arg("exponent"), "A tensor to the power of a number.");
  m.def("training", &training, "Whether this thread is in training mode.");

  m.def("is_grad_enabled", &is_grad_enabled,
        "Whether what this thread computes has gradients: outside of no_grad().");

  // A context of Python holds the C++ object from __enter__ to __exit__.
  struct Mode {
    bool on;
    std::vector<std::unique_ptr<TrainingMode>> entered = {};
  };
  struct NoGrad {
    std::vector<std::unique_ptr<NoGradGuard>> entered = {};
  };
  py::class_<NoGrad>(m, "NoGradGuard", "What tuff.no_grad is made of.")
      .def(py::init<>())
      .def("enter", [](NoGrad& g) { g.entered.push_back(std::make_unique<NoGradGuard>()); })
      .def("exit", [](NoGrad& g) {
        if (!g.entered.empty()) g.entered.pop_back();
      });
  py::class_<Mode>(m, "TrainingMode",
                   "with TrainingMode(): dropout and batch statistics are active inside.")
      .def(py::init([](bool on) { return new Mode{on}; }), arg("on") = true)
      .def("__enter__",
           [](Mode& mode) { mode.entered.push_back(std::make_unique<TrainingMode>(mode.on)); })
      .def("__exit__", [](Mode& mode, const py::args&) {
        if (!mode.entered.empty()) mode.entered.pop_back();
      });
}

}  // namespace tuff::python
