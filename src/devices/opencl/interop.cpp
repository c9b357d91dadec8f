#include "devices/opencl/opencl_device.h"
// Behind the functions' table, which declares those that OpenCL 2.0 deprecates.
#include "devices/opencl_interop.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace tuff::devices {
namespace opencl {
namespace {

using interop::OpenclApplication;
using interop::OpenclBuffer;
using interop::OpenclSvm;

constexpr const char* kBuffer = "from_blob: the buffer";

void require(const void* given, const char* member) {
  if (!given)
    fail<InvalidArgument>("open_opencl: {} is null: give the handle that the application created",
                          member);
}

void require_part_of_context(const ClApi& api, const OpenclApplication& a) {
  const auto devices = info_list<cl_device_id>(api.clGetContextInfo, a.context, CL_CONTEXT_DEVICES);
  if (!devices) fail<InvalidArgument>("open_opencl: the context is none");
  if (std::ranges::find(*devices, a.device) == devices->end())
    fail<InvalidArgument>(
        "open_opencl: the device is none of the {} of the context: give one that "
        "clCreateContext() was given",
        devices->size());
}

void require_queue_fits(const ClApi& api, const OpenclApplication& a) {
  if (!a.queue) return;
  const auto context = info<cl_context>(api.clGetCommandQueueInfo, a.queue, CL_QUEUE_CONTEXT);
  const auto device = info<cl_device_id>(api.clGetCommandQueueInfo, a.queue, CL_QUEUE_DEVICE);
  if (!context || !device) fail<InvalidArgument>("open_opencl: the queue is none");
  if (*context != a.context)
    fail<InvalidArgument>("open_opencl: the queue is of another context");
  if (*device != a.device)
    fail<InvalidArgument>("open_opencl: the queue is of another device of the context");
}

// What forbids kernels or copies to read and write it.
void require_access(const Context& c, cl_mem_flags flags) {
  constexpr std::pair<cl_mem_flags, const char*> kForbidding[] = {
      {CL_MEM_WRITE_ONLY, "CL_MEM_WRITE_ONLY"},
      {CL_MEM_HOST_NO_ACCESS, "CL_MEM_HOST_NO_ACCESS"},
      {CL_MEM_HOST_WRITE_ONLY, "CL_MEM_HOST_WRITE_ONLY"},
      {CL_MEM_HOST_READ_ONLY, "CL_MEM_HOST_READ_ONLY"}};
  for (const auto& [bit, name] : kForbidding)
    if (flags & bit)
      fail<InvalidArgument>("{}: from_blob: the buffer was created with {}: create it without",
                            c.name, name);
}

void require_whole_elements(const Context& c, uint64_t at, size_t element_bytes) {
  if (at % element_bytes != 0)
    fail<InvalidArgument>(
        "{}: from_blob: memory at byte {} is not aligned to the {} bytes of an element", c.name, at,
        element_bytes);
}

// Objects of drivers begin with the driver's table of functions (cl_khr_icd, 1.4). What does not
// may be a pointer to anything, and to ask a driver about it would end the process.
bool is_of_driver(const Context& c, uint64_t handle) {
  if (handle == 0 || handle % alignof(void*) != 0) return false;
  return *reinterpret_cast<void* const*>(handle) == *reinterpret_cast<void* const*>(c.handle);
}

}  // namespace

hcq::Adoption::NativePart ClDevice::native_part(const hcq::Span& span) {
  const Memory::Part part = memory_.object_of(span);
  return {reinterpret_cast<uint64_t>(part.object), part.offset};
}

std::optional<hcq::Adoption::NativeMemory> ClDevice::over_native(uint64_t handle) {
  if (!is_of_driver(*context_, handle)) return std::nullopt;
  const OpenclBlock over =
      opencl_block_over(*this, {.buffer = reinterpret_cast<cl_mem>(handle)}, 1);
  return NativeMemory{{.block = over.block,
                       .release = [this, block = over.block] { unmap_block(block); },
                       .read_only = over.read_only},
                      over.at};
}

}  // namespace opencl

std::unique_ptr<hcq::Device> opencl_open_lent(const interop::OpenclApplication& a,
                                              const std::string& name) {
  using namespace opencl;
  require(a.context, "context");
  require(a.device, "device");
  const ClApi api = load_api();
  require_part_of_context(api, a);
  require_queue_fits(api, a);
  const Facts facts = facts_of(api, a.device);
  if (!facts.usable())
    fail<Unsupported>("open_opencl: {} cannot be used: {}", facts.name, facts.missing);
  auto device = std::make_unique<ClDevice>(
      std::make_shared<Context>(api, facts, name, a.context), a.queue);
  hcq::close_in_children(*device);
  return device;
}

OpenclBlock opencl_block_over(hcq::Device& device, const interop::OpenclBuffer& m,
                              size_t element_bytes) {
  using namespace opencl;
  ClDevice& d = native(device);
  const Context& c = d.context();
  if (!m.buffer) fail<InvalidArgument>("{}: from_blob: the buffer is null", c.name);
  const cl_mem buffer = c.buffer_beneath(kBuffer, m.buffer);
  if (!buffer)
    fail<InvalidArgument>(
        "{}: from_blob: an image that was not created over a buffer has no order of elements: "
        "from_image() copies it",
        c.name);
  if (c.memory_info<cl_context>(kBuffer, buffer, CL_MEM_CONTEXT) != c.handle)
    fail<InvalidArgument>("{}: from_blob: the buffer is of another context", c.name);
  const auto flags = c.memory_info<cl_mem_flags>(kBuffer, buffer, CL_MEM_FLAGS);
  require_access(c, flags);
  require_whole_elements(c, m.offset, element_bytes);
  if (flags & CL_MEM_USE_HOST_PTR)
    require_whole_elements(
        c, reinterpret_cast<uint64_t>(c.memory_info<void*>(kBuffer, buffer, CL_MEM_HOST_PTR)),
        element_bytes);
  const Memory::Adopted adopted =
      d.memory().adopt(buffer, c.memory_info<size_t>(kBuffer, buffer, CL_MEM_SIZE));
  return {adopted.block, adopted.at, bool(flags & CL_MEM_READ_ONLY)};
}

hcq::MemoryBlock opencl_block_over(hcq::Device& device, const interop::OpenclSvm& m,
                                   size_t element_bytes) {
  using namespace opencl;
  const Context& c = native(device).context();
  if (!c.svm())
    fail<Unsupported>(
        "{}: from_blob: the device has no shared virtual memory, or TUFF_CL_DISABLE forbids it: "
        "share a buffer",
        c.name);
  if (!m.pointer) fail<InvalidArgument>("{}: from_blob: the pointer is null", c.name);
  require_whole_elements(c, reinterpret_cast<uint64_t>(m.pointer), element_bytes);
  const bool fine = m.fine_grained && c.facts.tier == MemoryTier::FineSvm;
  return {.address = reinterpret_cast<uint64_t>(m.pointer),
          .size_bytes = m.size_bytes,
          .host = fine ? static_cast<std::byte*>(m.pointer) : nullptr};
}

interop::OpenclRegion opencl_region(hcq::Device& device, const hcq::Span& span) {
  using namespace opencl;
  ClDevice& d = native(device);
  interop::OpenclRegion r;
  r.context = d.context().handle;
  r.queue = d.compute_queue().handle();
  r.size_bytes = span.size_bytes;
  r.buffer = buffer_of(span);
  if (r.buffer) {
    r.offset = span.offset;
  } else {
    r.svm = reinterpret_cast<void*>(span.address());
    r.fine_grained = span.host() != nullptr;
  }
  return r;
}

cl_event opencl_marker(hcq::Device& device) {
  return opencl::native(device).compute_queue().marker();
}

uint64_t opencl_wait(hcq::Device& device, cl_event event) {
  opencl::ClDevice& d = opencl::native(device);
  const opencl::Context& c = d.context();
  if (!event) fail<InvalidArgument>("{}: wait_for: the event is null", c.name);
  if (opencl::info<cl_context>(c.api.clGetEventInfo, event, CL_EVENT_CONTEXT) != c.handle)
    fail<InvalidArgument>("{}: wait_for: the event is of another context", c.name);
  return d.compute_queue().submit_wait(event);
}

}  // namespace tuff::devices
