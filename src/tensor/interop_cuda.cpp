// Sharing with an application that uses CUDA: tensors over its memory, memory of tensors for it, and
// streams that wait for each other.
#include <tuff/interop/cuda.h>

#include "base/check.h"
#include "devices/cuda_interop.h"
#include "engine/device.h"
#include "tensor/impl.h"
#include "tensor/lent_device.h"

namespace tuff::interop {
namespace {

detail::Realized realized_on_cuda(const char* what, const Tensor& tensor) {
  return detail::realized_on("CUDA", what, tensor);
}

}  // namespace

Tensor from_blob(const CudaMemory& memory, const Sizes& sizes, BlobOptions blob,
                 const TensorOptions& options) {
  const std::shared_ptr<engine::Device> device = engine::Device::get(options.device);
  devices::cuda_stream(device->hcq());  // of that kind
  const auto make = [&](int64_t count, size_t lead) {
    hcq::ForeignMemory lent = *device->hcq().adoption()->over_native(memory.pointer - lead);
    const size_t bytes = size_t(count) * size_bytes(options.dtype);
    if (bytes > lent.block.size_bytes)
      fail<InvalidArgument>("from_blob: a tensor of {} bytes in memory of {} bytes", bytes,
                            lent.block.size_bytes);
    lent.read_only = blob.read_only;
    if (blob.deleter)
      lent.release = [deleter = blob.deleter, given = memory.pointer] {
        deleter(reinterpret_cast<void*>(given));
      };
    return engine::Buffer::adopted(device, options.dtype, count, std::move(lent));
  };
  return detail::finish(detail::tensor_over({sizes, blob, options}, make), options);
}

CudaMemory cuda_memory(const Tensor& tensor) {
  return {realized_on_cuda("cuda_memory", tensor).buffer->span().address()};
}

void cuda_stream_waits(const Tensor& tensor, CudaStream stream) {
  const detail::Realized r = realized_on_cuda("cuda_stream_waits", tensor);
  devices::cuda_stream_waits(r.device->hcq(), stream.handle);
}

// The queues' own streams wait, and the host reads by them.
void wait_for(const Tensor& tensor, CudaStream stream) {
  const std::shared_ptr<engine::Device> device = engine::Device::get(tensor.device());
  devices::cuda_wait_for_stream(device->hcq(), stream.handle);
}

}  // namespace tuff::interop
