#include "devices/opencl/context.h"

namespace tuff::devices::opencl {

Context::Context(const ClApi& functions, Facts f, std::string n, cl_context lent)
    : api(functions), facts(std::move(f)), name(std::move(n)), handle(lent) {
  if (facts.queues.command_buffers) load_extensions(api, facts.id);
  if (lent) {
    check(api.clRetainContext(lent), "clRetainContext");
    return;
  }
  cl_int code = CL_SUCCESS;
  handle = api.clCreateContext(nullptr, 1, &facts.id, nullptr, nullptr, &code);
  check(code, "clCreateContext");
}

Context::~Context() { api.clReleaseContext(handle); }

void Context::check(cl_int code, const char* call) const {
  if (code == CL_SUCCESS) return;
  const std::string text = fmt::format("{}: {} returned {}", name, call, error_name(code));
  if (code == CL_MEM_OBJECT_ALLOCATION_FAILURE || code == CL_OUT_OF_HOST_MEMORY)
    throw OutOfMemory(text);
  throw DeviceLost(text);
}

cl_mem Context::buffer_beneath(const char* what, cl_mem object) const {
  while (object &&
         memory_info<cl_mem_object_type>(what, object, CL_MEM_TYPE) != CL_MEM_OBJECT_BUFFER)
    object = memory_info<cl_mem>(what, object, CL_MEM_ASSOCIATED_MEMOBJECT);
  return object;
}

}  // namespace tuff::devices::opencl
