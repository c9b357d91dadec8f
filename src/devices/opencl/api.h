// ClApi: the table of OpenCL functions, from the loader as it is found at run time.
// Every call of this device goes through one; tests exchange entries to fail them.
// Must never link against the loader, and holds no state but pointers.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <string>

namespace tuff::devices {

struct ClApi {
#define TUFF_CL(name) decltype(&::name) name = nullptr;
#define TUFF_CL_OPTIONAL(name) decltype(&::name) name = nullptr;
#define TUFF_CL_EXTENSION(name) name##_fn name = nullptr;
#include "devices/opencl/functions.def"
#undef TUFF_CL
#undef TUFF_CL_OPTIONAL
#undef TUFF_CL_EXTENSION
};

namespace opencl {

// Throws Unsupported with the remedy where there is no loader.
ClApi load_api();
// The extensions' functions of the device's platform; null where it has none.
void load_extensions(ClApi& api, cl_device_id device);
std::string error_name(cl_int code);  // "CL_OUT_OF_RESOURCES (-5)"

}  // namespace opencl
}  // namespace tuff::devices
