// The parts of the Python module, in the order in which module.cpp adds them.
#pragma once

#include <functional>

#include <tuff/nn.h>

#include "casters.h"

namespace tuff::python {

using TensorClass = pybind11::class_<Tensor>;

void bind_errors(py::module_& m);
void bind_dtypes(py::module_& m);
void bind_sizes(py::module_& m);
void bind_creation(TensorClass& c);
void bind_facts(TensorClass& c);
void bind_movement(TensorClass& c);
void bind_indexing(TensorClass& c);
void bind_elementwise(TensorClass& c);
void bind_operators(TensorClass& c);
void bind_reductions(TensorClass& c);
void bind_networks(TensorClass& c);
void bind_losses(TensorClass& c);
void bind_math(TensorClass& c);
void bind_views(TensorClass& c);
void bind_products(TensorClass& c);
void bind_statistics(TensorClass& c);
void bind_sorting(TensorClass& c);
void bind_scatter(TensorClass& c);
void bind_windows(TensorClass& c);
void bind_writes(TensorClass& c);
void bind_shards(TensorClass& c);
void bind_all_reduce(py::module_& m);
void bind_state(TensorClass& c);
void bind_sharing(py::module_& m, TensorClass& c);
void bind_functions(py::module_& m);
void bind_linalg(py::module_& m, TensorClass& c);
void bind_special(py::module_& m);
void bind_autograd(py::module_& m);
void bind_kernel(py::module_& m);
void bind_int4(py::module_& m);
void bind_jit(py::module_& m);
void bind_nn(py::module_& m);
void bind_optim(py::module_& m);
void bind_fft(py::module_& m);
void bind_schedules(py::module_& m);
void bind_digits(py::module_& m);
void bind_files(py::module_& m);
void bind_onnx(py::module_& m);
void bind_text(py::module_& m);
void bind_language(py::module_& m);
// Last: calls of what is bound that fit no signature get a TypeError that names the argument.
void explain_arguments(py::module_& m);

// Realizes and waits as Tensor::data_ptr() does, but lets other threads of Python run while it
// waits, and ends with KeyboardInterrupt where the user asks for it. Everything else keeps the
// interpreter's lock: realizing changes the graphs of other threads' tensors.
void wait_for(const Tensor& t);

// Tensors by name, as Python keeps them; in the order of the state.
py::dict dict_of(const nn::StateDict& state);
nn::StateDict state_from(const py::dict& given);

// What tuff.tensor() makes of numbers, lists and memory.
Tensor tensor_of(const py::handle& data);

// The same values in memory of its own, bit for bit.
Tensor copied(const Tensor& t);

// Hands `release` to the interpreter's main thread, which calls it soon. For objects of Python that
// tuff lets go of in any thread and under any lock, where the interpreter's lock must not be taken.
void release_later(std::function<void()> release);
// Calls what is waiting; with the interpreter's lock.
void release_waiting();
// From now on what is left belongs to nobody: the interpreter is gone.
void stop_releasing();

}  // namespace tuff::python
