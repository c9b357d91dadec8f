// Context: an OpenCL device that is open: functions, facts, the cl_context. Shared by all parts of
// the device. Knows nothing of queues.
#pragma once

#include <memory>
#include <string>

#include "base/check.h"
#include "devices/opencl/facts.h"

namespace tuff::devices::opencl {

struct Context {
  // With a context of its own, or on one that an application lends, which it retains.
  Context(const ClApi& api, Facts facts, std::string name, cl_context lent = nullptr);
  ~Context();
  Context(const Context&) = delete;
  bool svm() const { return facts.tier != MemoryTier::Buffers; }
  // What a call returned. Throws OutOfMemory or DeviceLost, naming the call.
  void check(cl_int code, const char* call) const;
  // What OpenCL says of a memory object. InvalidArgument, "`what` is no memory object", for others.
  template <class T>
  T memory_info(const char* what, cl_mem object, cl_mem_info which) const {
    const auto value = info<T>(api.clGetMemObjectInfo, object, which);
    if (!value) fail<InvalidArgument>("{}: {} is no memory object", name, what);
    return *value;
  }
  // The buffer that an object is, or that it was created over as an image, perhaps by way of other
  // images; null where there is none.
  cl_mem buffer_beneath(const char* what, cl_mem object) const;

  ClApi api;
  const Facts facts;
  const std::string name;
  cl_context handle = nullptr;
};

}  // namespace tuff::devices::opencl
