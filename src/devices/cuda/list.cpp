#include "devices/cuda/list.h"

#include "devices/cuda/queue.h"

namespace tuff::devices::cuda {

CudaList::CudaList(hcq::Queue& queue, hcq::EncodeUse use, const hcq::CommandList& list,
                   std::shared_ptr<Context> c)
    : DriverList(queue, use, list),
      context(std::move(c)),
      events(list.timestamp_count),
      kernels(kernel_names(list)) {}

CudaList::~CudaList() {
  static_cast<CudaQueue&>(queue).flights().forget(kernels);
  const Current current(*context, std::nothrow);
  if (!current) return;
  for (CUevent event : events)
    if (event) context->release(context->api.EventDestroy(event), "cuEventDestroy");
}

}  // namespace tuff::devices::cuda
