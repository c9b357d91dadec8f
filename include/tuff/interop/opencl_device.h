// What tuff and an application tell each other about an OpenCL context, its queue and its memory:
// plain data, in OpenCL's own types. Called by users through interop/opencl.h. Must never know of
// tensors.
#pragma once

#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300
#endif
#include <CL/cl.h>

#include <array>
#include <cstddef>

namespace tuff::interop {

/// An application's context, one device of it, and a queue, lent to tuff, which retains them.
struct OpenclApplication {
  cl_context context = nullptr;
  cl_device_id device = nullptr;
  /// In order: tuff's work runs between what the application enqueues there. Null: a queue of
  /// tuff's own, and the application orders the two with opencl_ready() and wait_for(). Traces have
  /// no device times on one without CL_QUEUE_PROFILING_ENABLE.
  cl_command_queue queue = nullptr;
};

/// A part of an application's memory object that becomes a tensor: a buffer, a sub-buffer, or an
/// image that was created over a buffer, whose bytes then are meant.
struct OpenclBuffer {
  /// A buffer of the context that tuff was given; retained. With CL_MEM_READ_ONLY the tensor is
  /// read only. Not with CL_MEM_WRITE_ONLY, nor without access by the host (CL_MEM_HOST_NO_ACCESS,
  /// CL_MEM_HOST_WRITE_ONLY, CL_MEM_HOST_READ_ONLY).
  cl_mem buffer = nullptr;
  /// Where the tensor begins: at a whole element.
  size_t offset = 0;
};

/// A part of an application's image. Along each axis as OpenCL counts: x, y, z, the number of an
/// image in an array behind its own axes.
struct OpenclImage {
  /// An image of the context that tuff was given, of any type, with one sample per texel and
  /// without mip levels.
  cl_mem image = nullptr;
  /// The first texel.
  std::array<size_t, 3> origin{};
  /// How many texels; 0: all up to the image's end.
  std::array<size_t, 3> region{};
};

/// Shared virtual memory of an application, from clSVMAlloc() with the context that tuff was given.
struct OpenclSvm {
  void* pointer = nullptr;
  size_t size_bytes = 0;
  /// Allocated with CL_MEM_SVM_FINE_GRAIN_BUFFER: reading a tensor takes no copy by the device.
  bool fine_grained = false;
};

/// Where the elements of a tensor lie, row-major: in a memory object, or in shared virtual memory.
struct OpenclRegion {
  cl_context context = nullptr;
  /// That tuff's work on the tensor is enqueued to.
  cl_command_queue queue = nullptr;
  /// Null where the tensor lies in shared virtual memory.
  cl_mem buffer = nullptr;
  /// From byte 0 of the buffer; 0 of shared virtual memory.
  size_t offset = 0;
  /// The first element, for clSetKernelArgSVMPointer(); null where there is a buffer.
  void* svm = nullptr;
  size_t size_bytes = 0;
  /// Whether the host may use `svm` without mapping it.
  bool fine_grained = false;
};

}  // namespace tuff::interop
