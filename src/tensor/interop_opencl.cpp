// Sharing with an application that uses OpenCL: devices by name, tensors over its memory, memory of
// tensors for it, and waiting for each other.
#include <tuff/interop/opencl.h>

#include "base/check.h"
#include "devices/opencl_interop.h"
#include "engine/device.h"
#include "tensor/impl.h"
#include "tensor/lent_device.h"

namespace tuff::interop {
namespace {

constinit detail::LentDevices opencl_devices("CL", "open_opencl", "close_opencl");

detail::Realized realized_on_opencl(const char* what, const Tensor& tensor) {
  return detail::realized_on("CL", what, tensor);
}

void require_room(size_t begin, size_t bytes, size_t given) {
  if (begin > given || bytes > given - begin)
    fail<InvalidArgument>("from_blob: a tensor of {} bytes at byte {} of memory of {} bytes", bytes,
                          begin, given);
}

// What an element's first byte in memory is, `lead` bytes in front of the one that was named.
size_t begin_of(size_t offset, size_t lead) {
  if (lead > offset)
    fail<InvalidArgument>("from_blob: elements {} bytes in front of byte {} of the memory", lead,
                          offset);
  return offset - lead;
}

}  // namespace

std::string open_opencl(const OpenclApplication& application) {
  const std::string name = opencl_devices.next_name();
  engine::Device::add(devices::opencl_open_lent(application, name));
  return name;
}

void close_opencl(const std::string& device) {
  opencl_devices.close(device, "let go of them first");
}

Tensor from_blob(const OpenclBuffer& memory, const Sizes& sizes, BlobOptions blob,
                 const TensorOptions& options) {
  const std::shared_ptr<engine::Device> device = engine::Device::get(options.device);
  hcq::Device& on = device->hcq();
  const auto make = [&](int64_t count, size_t lead) {
    const size_t begin = begin_of(memory.offset, lead), element = size_bytes(options.dtype);
    const devices::OpenclBlock over = devices::opencl_block_over(on, memory, element);
    const hcq::MemoryBlock& block = over.block;
    try {
      require_room(begin_of(begin, over.at), size_t(count) * element, block.size_bytes);
    } catch (...) {
      on.unmap_block(block);
      throw;
    }
    hcq::ForeignMemory lent{.block = block, .offset = begin - over.at};
    lent.read_only = blob.read_only || over.read_only;
    lent.release = [&on, block = block, deleter = blob.deleter, given = memory.buffer] {
      on.unmap_block(block);
      if (deleter) deleter(given);
    };
    return engine::Buffer::adopted(device, options.dtype, count, std::move(lent));
  };
  return detail::finish(detail::tensor_over({sizes, blob, options}, make), options);
}

Tensor from_blob(const OpenclSvm& memory, const Sizes& sizes, BlobOptions blob,
                 const TensorOptions& options) {
  const std::shared_ptr<engine::Device> device = engine::Device::get(options.device);
  const auto make = [&](int64_t count, size_t lead) {
    const size_t element = size_bytes(options.dtype);
    OpenclSvm part = memory;
    part.pointer = static_cast<std::byte*>(memory.pointer) - lead;
    require_room(0, size_t(count) * element - lead, memory.size_bytes);
    part.size_bytes = memory.size_bytes + lead;
    hcq::ForeignMemory lent{.block = devices::opencl_block_over(device->hcq(), part, element)};
    lent.read_only = blob.read_only;
    if (blob.deleter)
      lent.release = [deleter = blob.deleter, given = memory.pointer] { deleter(given); };
    return engine::Buffer::adopted(device, options.dtype, count, std::move(lent));
  };
  return detail::finish(detail::tensor_over({sizes, blob, options}, make), options);
}

OpenclRegion opencl_memory(const Tensor& tensor) {
  const detail::Realized r = realized_on_opencl("opencl_memory", tensor);
  return devices::opencl_region(r.device->hcq(), r.buffer->span().sub(0, r.buffer->size_bytes()));
}

cl_event opencl_ready(const Tensor& tensor) {
  return devices::opencl_marker(realized_on_opencl("opencl_ready", tensor).device->hcq());
}

void wait_for(const Tensor& tensor, cl_event event) {
  const std::shared_ptr<engine::Device> device = engine::Device::get(tensor.device());
  detail::host_waits(tensor, devices::opencl_wait(device->hcq(), event));
}

}  // namespace tuff::interop
