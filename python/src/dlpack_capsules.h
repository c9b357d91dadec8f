// DLPack: tensors to and from capsules, without copies. Called by sharing.cpp.
#pragma once

#include "module.h"

namespace tuff::python {

// Shares the memory of an object with __dlpack__, or of a capsule. Unsupported for memory that is
// neither the CPU's nor CUDA's nor a VkBuffer that tuff knows nor a cl_mem of its context; InvalidArgument for
// dtypes that tuff lacks.
Tensor from_dlpack(const py::object& object);
void bind_dlpack(py::module_& m, TensorClass& c);

}  // namespace tuff::python
