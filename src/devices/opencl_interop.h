// The OpenCL device as an application sees it that uses OpenCL itself: its context lent to tuff,
// its memory as blocks, blocks and queues as handles. Called by tensor (interop_opencl.cpp) alone,
// and there only where OpenCL's headers were found. Must never know of tensors.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "hcq/device.h"
#include "tuff/dtype.h"
#include "tuff/interop/opencl_device.h"

namespace tuff::devices {

// Throws InvalidArgument for handles that are missing or do not fit, Unsupported for a device that
// cannot be used.
std::unique_ptr<hcq::Device> opencl_open_lent(const interop::OpenclApplication& application,
                                              const std::string& name);

// Blocks for Allocator::adopt(); the device's unmap_block() ends them. Throw InvalidArgument naming
// the rule that the memory breaks.
struct OpenclBlock {
  hcq::MemoryBlock block;
  size_t at = 0;  // byte of the memory object where the block begins
  bool read_only = false;
};
OpenclBlock opencl_block_over(hcq::Device& device, const interop::OpenclBuffer& memory,
                              size_t element_bytes);
hcq::MemoryBlock opencl_block_over(hcq::Device& device, const interop::OpenclSvm& memory,
                                   size_t element_bytes);

// What of an image tuff copies: texels as elements, the channels of each side by side.
struct OpenclTexels {
  DType dtype = DType::Void;
  std::vector<int64_t> sizes;  // channels last
  std::array<size_t, 3> origin{}, region{};
};
// Throws InvalidArgument for what is no image of the device's context or parts that it does not
// have, Unsupported naming the format or what else is not copied.
OpenclTexels opencl_texels(hcq::Device& device, const interop::OpenclImage& image);
// The buffer that an image was created over, where the texels begin in it and how their rows lie;
// InvalidArgument where there is none.
struct OpenclRows {
  cl_mem buffer = nullptr;
  size_t offset = 0;
  std::vector<int64_t> strides;  // in elements
  bool read_only = false;
};
OpenclRows opencl_rows(hcq::Device& device, const interop::OpenclImage& image,
                       const OpenclTexels& texels);
// A copy behind all that was submitted, and in front of all that will be; gives its place on the
// timeline. `to`: into the image. The span is of memory that the device has allocated or adopted.
enum class OpenclCopy : uint8_t { ToImage, FromImage };
uint64_t opencl_copy_texels(hcq::Device& device, const interop::OpenclImage& image,
                            const OpenclTexels& texels, const hcq::Span& span, OpenclCopy to);

// InvalidArgument for another kind of device.
interop::OpenclRegion opencl_region(hcq::Device& device, const hcq::Span& span);
// Completes behind all that was submitted; the caller's.
cl_event opencl_marker(hcq::Device& device);
// A submission that ends when the event has completed; what is submitted later begins then.
uint64_t opencl_wait(hcq::Device& device, cl_event event);

}  // namespace tuff::devices
