// The ABI of DLPack, as far as tuff speaks it: the structs of dlpack.h, versions 0.x (legacy),
// 1.0 and 1.1, which has codes for floats of 8 bits. Source: the DLPack specification,
// https://dmlc.github.io/dlpack/latest/c_api.html, and its protocol for Python,
// https://dmlc.github.io/dlpack/latest/python_spec.html.
#pragma once

#include <cstdint>

namespace tuff::python::dlpack {

enum DeviceType : int32_t { kCpu = 1, kCuda = 2, kOpencl = 4, kVulkan = 7 };
struct Device {
  int32_t type;
  int32_t id;
};

enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kBool = 6,
  kFloat8E4m3fn = 10,
  kFloat8E5m2 = 12,
};
struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  // The address on the CPU and with CUDA; with OpenCL the cl_mem, says dlpack.h of DLTensor::data; on Vulkan
  // opaque to the specification: here the VkBuffer.
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};

// A capsule "dltensor", "used_dltensor" once it was taken.
struct ManagedTensor {
  Tensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(ManagedTensor*);
};
inline constexpr const char* kLegacyName = "dltensor";
inline constexpr const char* kUsedLegacyName = "used_dltensor";

struct Version {
  uint32_t major;
  uint32_t minor;
};
// What others are asked for; what needs no more is exported as 1.0.
inline constexpr Version kVersion{1, 1};
inline constexpr uint64_t kReadOnly = 1, kIsCopied = 2;

// A capsule "dltensor_versioned". What follows `flags` may differ in another major version.
struct ManagedTensorVersioned {
  Version version;
  void* manager_ctx;
  void (*deleter)(ManagedTensorVersioned*);
  uint64_t flags;
  Tensor dl_tensor;
};
inline constexpr const char* kVersionedName = "dltensor_versioned";
inline constexpr const char* kUsedVersionedName = "used_dltensor_versioned";

}  // namespace tuff::python::dlpack
