// ClApi: the table of OpenCL functions, from the loader as it is found at run time.
// Every call of this device goes through one; tests exchange entries to fail them.
// Must never link against the loader, and holds no state but pointers.
#pragma once

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace tuff::devices {

struct ClApi {
#define TUFF_CL(name) decltype(&::name) name = nullptr;
#define TUFF_CL_OPTIONAL(name) decltype(&::name) name = nullptr;
#define TUFF_CL_EXTENSION(name) name##_fn name = nullptr;
#include "devices/opencl/functions.def"
};

namespace opencl {

// Throws Unsupported with the remedy where there is no loader.
ClApi load_api();
// The extensions' functions of the device's platform; null where it has none.
void load_extensions(ClApi& api, cl_device_id device);
std::string error_name(cl_int code);  // "CL_OUT_OF_RESOURCES (-5)"

// What one of the clGet...Info functions says of an object; nothing where it knows no answer.
template <class T, class Get, class Object>
std::optional<T> info(Get get, Object object, cl_uint what) {
  T value{};
  if (get(object, what, sizeof value, &value, nullptr) != CL_SUCCESS) return std::nullopt;
  return value;
}
// Likewise a list, and a text without the 0 at its end.
template <class T, class Get, class Object>
std::optional<std::vector<T>> info_list(Get get, Object object, cl_uint what) {
  size_t size = 0;
  if (get(object, what, 0, nullptr, &size) != CL_SUCCESS) return std::nullopt;
  std::vector<T> all(size / sizeof(T));
  if (size > 0 && get(object, what, size, all.data(), nullptr) != CL_SUCCESS) return std::nullopt;
  return all;
}
template <class Get, class Object>
std::optional<std::string> info_text(Get get, Object object, cl_uint what) {
  const auto all = info_list<char>(get, object, what);
  if (!all) return std::nullopt;
  return std::string(all->begin(), std::ranges::find(*all, '\0'));
}

}  // namespace opencl
}  // namespace tuff::devices
