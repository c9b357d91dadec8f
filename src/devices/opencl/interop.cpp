#include "devices/opencl/opencl_device.h"
// Behind the functions' table, which declares those that OpenCL 2.0 deprecates.
#include "devices/opencl_interop.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "devices/opencl/object_info.h"
#include "hcq/left_behind.h"

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
  size_t size = 0;
  if (api.clGetContextInfo(a.context, CL_CONTEXT_DEVICES, 0, nullptr, &size) != CL_SUCCESS)
    fail<InvalidArgument>("open_opencl: the context is none");
  std::vector<cl_device_id> devices(size / sizeof(cl_device_id));
  api.clGetContextInfo(a.context, CL_CONTEXT_DEVICES, size, devices.data(), nullptr);
  if (std::find(devices.begin(), devices.end(), a.device) == devices.end())
    fail<InvalidArgument>(
        "open_opencl: the device is none of the {} of the context: give one that "
        "clCreateContext() was given",
        devices.size());
}

template <class T>
T of_queue(const ClApi& api, cl_command_queue queue, cl_command_queue_info what) {
  T value{};
  if (api.clGetCommandQueueInfo(queue, what, sizeof value, &value, nullptr) != CL_SUCCESS)
    fail<InvalidArgument>("open_opencl: the queue is none");
  return value;
}

void require_queue_fits(const ClApi& api, const OpenclApplication& a) {
  if (!a.queue) return;
  if (of_queue<cl_context>(api, a.queue, CL_QUEUE_CONTEXT) != a.context)
    fail<InvalidArgument>("open_opencl: the queue is of another context");
  if (of_queue<cl_device_id>(api, a.queue, CL_QUEUE_DEVICE) != a.device)
    fail<InvalidArgument>("open_opencl: the queue is of another device of the context");
}

// The buffer that kernels are given: an image's is the one that it was created over.
cl_mem buffer_beneath(const Context& c, cl_mem object) {
  if (!object) fail<InvalidArgument>("{}: from_blob: the buffer is null", c.name);
  if (of_memory<cl_mem_object_type>(c, kBuffer, object, CL_MEM_TYPE) == CL_MEM_OBJECT_BUFFER)
    return object;
  const auto beneath = of_memory<cl_mem>(c, kBuffer, object, CL_MEM_ASSOCIATED_MEMOBJECT);
  if (beneath &&
      of_memory<cl_mem_object_type>(c, kBuffer, beneath, CL_MEM_TYPE) == CL_MEM_OBJECT_BUFFER)
    return beneath;
  fail<InvalidArgument>(
      "{}: from_blob: an image that was not created over a buffer has no order of elements: "
      "from_image() copies it",
      c.name);
}

// What forbids kernels or copies to read and write it.
void require_access(const Context& c, cl_mem_flags flags) {
  struct Row {
    cl_mem_flags bit;
    const char* name;
  };
  constexpr Row kForbidding[] = {{CL_MEM_WRITE_ONLY, "CL_MEM_WRITE_ONLY"},
                                 {CL_MEM_HOST_NO_ACCESS, "CL_MEM_HOST_NO_ACCESS"},
                                 {CL_MEM_HOST_WRITE_ONLY, "CL_MEM_HOST_WRITE_ONLY"},
                                 {CL_MEM_HOST_READ_ONLY, "CL_MEM_HOST_READ_ONLY"}};
  for (const Row& r : kForbidding)
    if (flags & r.bit)
      fail<InvalidArgument>("{}: from_blob: the buffer was created with {}: create it without",
                            c.name, r.name);
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

hcq::Device::NativePart ClDevice::native_part(const hcq::Span& span) {
  const Memory::Part part = memory_.object_of(span);
  return {reinterpret_cast<uint64_t>(part.object), part.offset};
}

std::optional<hcq::Device::NativeBlock> ClDevice::block_over(uint64_t handle) {
  if (!is_of_driver(*context_, handle)) return std::nullopt;
  const OpenclBlock over =
      opencl_block_over(*this, {.buffer = reinterpret_cast<cl_mem>(handle)}, 1);
  return NativeBlock{.block = over.block,
                     .at = over.at,
                     .release = [this, block = over.block] { unmap_block(block); },
                     .read_only = over.read_only};
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
  const cl_mem buffer = buffer_beneath(c, m.buffer);
  if (of_memory<cl_context>(c, kBuffer, buffer, CL_MEM_CONTEXT) != c.handle)
    fail<InvalidArgument>("{}: from_blob: the buffer is of another context", c.name);
  const auto flags = of_memory<cl_mem_flags>(c, kBuffer, buffer, CL_MEM_FLAGS);
  require_access(c, flags);
  require_whole_elements(c, m.offset, element_bytes);
  if (flags & CL_MEM_USE_HOST_PTR)
    require_whole_elements(
        c, reinterpret_cast<uint64_t>(of_memory<void*>(c, kBuffer, buffer, CL_MEM_HOST_PTR)),
        element_bytes);
  const Memory::Adopted adopted =
      d.memory().adopt(buffer, of_memory<size_t>(c, kBuffer, buffer, CL_MEM_SIZE));
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
  cl_context of = nullptr;
  if (!event ||
      c.api.clGetEventInfo(event, CL_EVENT_CONTEXT, sizeof of, &of, nullptr) != CL_SUCCESS ||
      of != c.handle)
    fail<InvalidArgument>("{}: wait_for: {}", c.name,
                          event ? "the event is of another context" : "the event is null");
  return d.compute_queue().submit_wait(event);
}

}  // namespace tuff::devices
