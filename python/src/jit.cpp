// What tuff.Jit of Python is made of: a Jit whose function is handed over at every call, so that
// Python's collector sees all that refers to it.
#include <atomic>
#include <mutex>
#include <thread>

#include <tuff/jit.h>

#include "base/check.h"
#include "interpreter.h"
#include "module.h"

namespace tuff::python {
namespace {

using py::arg;

class JitCore {
 public:
  explicit JitCore(std::vector<DynamicAxis> dynamic)
      : jit_([this](const std::vector<Tensor>& inputs) { return run(inputs); },
             {.dynamic = std::move(dynamic)}) {}

  std::vector<Tensor> call(const py::function& function, const std::vector<Tensor>& inputs) {
    if (caller_ == std::this_thread::get_id())
      fail<InvalidArgument>("Jit: the function calls the Jit that runs it");
    std::unique_lock lock(mutex_, std::defer_lock);
    {
      // Who has it may be waiting for the interpreter's lock.
      const Unlocked unlocked;
      lock.lock();
    }
    caller_ = std::this_thread::get_id();
    const Calling calling{*this, function.ptr()};
    return jit_(inputs);
  }
  const Jit& jit() const { return jit_; }

 private:
  struct Calling {
    Calling(JitCore& c, PyObject* function) : core(c) { core.function_ = function; }
    ~Calling() {
      core.function_ = nullptr;
      core.caller_ = std::thread::id();
    }
    JitCore& core;
  };

  std::vector<Tensor> run(const std::vector<Tensor>& inputs) {
    const py::tuple arguments = py::make_tuple(inputs);
    const auto results =
        py::reinterpret_steal<py::object>(call_python(function_, arguments.ptr()));
    if (!results) throw py::error_already_set();
    return results.cast<std::vector<Tensor>>();
  }

  Jit jit_;
  std::mutex mutex_;  // one call at a time
  std::atomic<std::thread::id> caller_{};
  PyObject* function_ = nullptr;  // of the call that runs, which holds it
};

}  // namespace

void bind_jit(py::module_& m) {
  py::class_<JitStats>(m, "JitStats", "What one replay does, and how many there have been.")
      .def_readonly("kernels", &JitStats::kernels)
      .def_readonly("copies", &JitStats::copies)
      .def_readonly("barriers", &JitStats::barriers)
      .def_readonly("submits_per_replay", &JitStats::submits_per_replay)
      .def_readonly("rebind_copies", &JitStats::rebind_copies)
      .def_readonly("host_copies", &JitStats::host_copies)
      .def_readonly("flops", &JitStats::flops)
      .def_readonly("bytes", &JitStats::bytes)
      .def_readonly("replays", &JitStats::replays);
  py::class_<DynamicAxis>(
      m, "DynamicAxis",
      "An axis of an argument (the number of a tensor among the arguments) whose extent may be "
      "another at every call, from min to max. Axes of one name have the same extent in a call.")
      .def(py::init([](size_t argument, int64_t axis, const std::string& name, int64_t min,
                       int64_t max) { return DynamicAxis{argument, axis, name, min, max}; }),
           arg("argument"), arg("axis"), arg("name"), arg("min"), arg("max"))
      .def_readwrite("argument", &DynamicAxis::argument)
      .def_readwrite("axis", &DynamicAxis::axis)
      .def_readwrite("name", &DynamicAxis::name)
      .def_readwrite("min", &DynamicAxis::min)
      .def_readwrite("max", &DynamicAxis::max);
  py::class_<JitCore>(m, "JitCore", "What tuff.Jit calls.")
      .def(py::init<std::vector<DynamicAxis>>(), arg("dynamic"))
      .def("call", &JitCore::call, arg("function"), arg("inputs"))
      .def_property_readonly("captured", [](const JitCore& c) { return c.jit().captured(); })
      .def_property_readonly("stats", [](const JitCore& c) { return c.jit().stats(); });
}

}  // namespace tuff::python
