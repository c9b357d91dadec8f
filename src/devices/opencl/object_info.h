// What OpenCL says of a memory object. Called by interop.cpp and images.cpp.
#pragma once

#include "base/check.h"
#include "devices/opencl/context.h"

namespace tuff::devices::opencl {

// InvalidArgument, "`what` is no memory object", where it is none.
template <class T>
T of_memory(const Context& c, const char* what, cl_mem object, cl_mem_info info) {
  T value{};
  if (c.api.clGetMemObjectInfo(object, info, sizeof value, &value, nullptr) != CL_SUCCESS)
    fail<InvalidArgument>("{}: {} is no memory object", c.name, what);
  return value;
}

}  // namespace tuff::devices::opencl
