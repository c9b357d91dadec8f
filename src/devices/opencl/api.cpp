#include "devices/opencl/api.h"

#include <utility>

#include "base/check.h"
#include "base/os.h"

namespace tuff::devices::opencl {
namespace {

template <class Fn>
void load_one(const os::Library& library, Fn& slot, const char* name, bool required) {
  slot = reinterpret_cast<Fn>(library.symbol(name));
  if (!slot && required)
    fail<Unsupported>("the OpenCL loader lacks {}: OpenCL 1.2 or later is needed", name);
}

}  // namespace

ClApi load_api() {
  const std::string names[] = {"libOpenCL.so.1", "libOpenCL.so"};
  std::string why;
  const auto library = os::Library::open(names, &why);
  if (!library) {
    fail<Unsupported>(
        "no OpenCL loader: install ocl-icd-libopencl1 (Debian, Ubuntu) or ocl-icd, and the "
        "device's driver ({})",
        why);
  }
  ClApi api;
#define TUFF_CL(name) load_one(*library, api.name, #name, true);
#define TUFF_CL_OPTIONAL(name) load_one(*library, api.name, #name, false);
#define TUFF_CL_EXTENSION(name)
#include "devices/opencl/functions.def"
  return api;
}

void load_extensions(ClApi& api, cl_device_id device) {
  const auto platform = info<cl_platform_id>(api.clGetDeviceInfo, device, CL_DEVICE_PLATFORM);
  if (!platform) return;
#define TUFF_CL(name)
#define TUFF_CL_OPTIONAL(name)
#define TUFF_CL_EXTENSION(name) \
  api.name =                    \
      reinterpret_cast<name##_fn>(api.clGetExtensionFunctionAddressForPlatform(*platform, #name));
#include "devices/opencl/functions.def"
}

std::string error_name(cl_int code) {
#define TUFF_CL_ERROR(name) {name, #name}
  static constexpr std::pair<cl_int, const char*> kNames[] = {
      TUFF_CL_ERROR(CL_DEVICE_NOT_FOUND), TUFF_CL_ERROR(CL_DEVICE_NOT_AVAILABLE),
      TUFF_CL_ERROR(CL_COMPILER_NOT_AVAILABLE), TUFF_CL_ERROR(CL_MEM_OBJECT_ALLOCATION_FAILURE),
      TUFF_CL_ERROR(CL_OUT_OF_RESOURCES), TUFF_CL_ERROR(CL_OUT_OF_HOST_MEMORY),
      TUFF_CL_ERROR(CL_PROFILING_INFO_NOT_AVAILABLE), TUFF_CL_ERROR(CL_MEM_COPY_OVERLAP),
      TUFF_CL_ERROR(CL_IMAGE_FORMAT_NOT_SUPPORTED), TUFF_CL_ERROR(CL_MISALIGNED_SUB_BUFFER_OFFSET),
      TUFF_CL_ERROR(CL_BUILD_PROGRAM_FAILURE),
      TUFF_CL_ERROR(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST), TUFF_CL_ERROR(CL_INVALID_VALUE),
      TUFF_CL_ERROR(CL_INVALID_BINARY), TUFF_CL_ERROR(CL_INVALID_BUILD_OPTIONS),
      TUFF_CL_ERROR(CL_INVALID_KERNEL_NAME), TUFF_CL_ERROR(CL_INVALID_ARG_INDEX),
      TUFF_CL_ERROR(CL_INVALID_ARG_VALUE), TUFF_CL_ERROR(CL_INVALID_ARG_SIZE),
      TUFF_CL_ERROR(CL_INVALID_KERNEL_ARGS), TUFF_CL_ERROR(CL_INVALID_WORK_GROUP_SIZE),
      TUFF_CL_ERROR(CL_INVALID_WORK_ITEM_SIZE), TUFF_CL_ERROR(CL_INVALID_EVENT),
      TUFF_CL_ERROR(CL_INVALID_IMAGE_SIZE), TUFF_CL_ERROR(CL_INVALID_OPERATION),
      TUFF_CL_ERROR(CL_INVALID_BUFFER_SIZE), TUFF_CL_ERROR(CL_PLATFORM_NOT_FOUND_KHR),
      TUFF_CL_ERROR(CL_INVALID_COMMAND_QUEUE), TUFF_CL_ERROR(CL_INVALID_CONTEXT),
      TUFF_CL_ERROR(CL_INVALID_KERNEL), TUFF_CL_ERROR(CL_INVALID_EVENT_WAIT_LIST),
      TUFF_CL_ERROR(CL_INVALID_QUEUE_PROPERTIES), TUFF_CL_ERROR(CL_INVALID_COMMAND_BUFFER_KHR),
      TUFF_CL_ERROR(CL_INVALID_SYNC_POINT_WAIT_LIST_KHR),
      TUFF_CL_ERROR(CL_INCOMPATIBLE_COMMAND_QUEUE_KHR)};
#undef TUFF_CL_ERROR
  for (const auto& [known, name] : kNames)
    if (known == code) return fmt::format("{} ({})", name, code);
  return fmt::format("OpenCL error {}", code);
}

}  // namespace tuff::devices::opencl
