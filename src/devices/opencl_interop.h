// The OpenCL device as an application sees it that uses OpenCL itself: its context lent to tuff,
// its memory as blocks, blocks and queues as handles. Called by tensor (interop_opencl.cpp) alone,
// and there only where OpenCL's headers were found. Must never know of tensors.
#pragma once

#include <memory>
#include <string>

#include "hcq/device.h"
#include "tuff/interop/opencl_device.h"

namespace tuff::devices {

// Throws InvalidArgument for handles that are missing or do not fit, Unsupported for a device that
// cannot be used.
std::unique_ptr<hcq::Device> opencl_open_lent(const interop::OpenclApplication& application,
                                              const std::string& name);

// Blocks for Allocator::adopt(); the device's unmap_block() ends them. Byte 0 of the block is byte
// 0 of the memory. Throw InvalidArgument naming the rule that the memory breaks.
struct OpenclBlock {
  hcq::MemoryBlock block;
  bool read_only = false;
};
OpenclBlock opencl_block_over(hcq::Device& device, const interop::OpenclBuffer& memory,
                              size_t element_bytes);
hcq::MemoryBlock opencl_block_over(hcq::Device& device, const interop::OpenclSvm& memory,
                                   size_t element_bytes);

// InvalidArgument for another kind of device.
interop::OpenclRegion opencl_region(hcq::Device& device, const hcq::Span& span);
// Completes behind all that was submitted; the caller's.
cl_event opencl_marker(hcq::Device& device);
// A submission that ends when the event has completed; what is submitted later begins then.
uint64_t opencl_wait(hcq::Device& device, cl_event event);

}  // namespace tuff::devices
