// Memory and streams of others in the process.
#include <bit>

#include "devices/cuda/cuda_device.h"
#include "devices/cuda_interop.h"

namespace tuff::devices {
namespace cuda {
namespace {

// An event that lasts until the work behind it has.
class Mark {
 public:
  Mark(const Context& context, CUstream stream) : c_(context) {
    c_.check(c_.api.EventCreate(&event_, CU_EVENT_DEFAULT), "cuEventCreate");
    const CUresult code = c_.api.EventRecord(event_, stream);
    if (code != CUDA_SUCCESS) c_.release(c_.api.EventDestroy(event_), "cuEventDestroy");
    c_.check(code, "cuEventRecord");
  }
  ~Mark() { c_.release(c_.api.EventDestroy(event_), "cuEventDestroy"); }
  Mark(const Mark&) = delete;
  void before(CUstream stream) const {
    c_.check(c_.api.StreamWaitEvent(stream, event_, 0), "cuStreamWaitEvent");
  }

 private:
  const Context& c_;
  CUevent event_ = nullptr;
};

CUstream stream_of(uint64_t number) { return std::bit_cast<CUstream>(number); }

template <class T>
T attribute(const Context& c, CUpointer_attribute which, CUdeviceptr address) {
  T value{};
  const CUresult code = c.api.PointerGetAttribute(&value, which, address);
  if (code == CUDA_ERROR_INVALID_VALUE)
    fail<InvalidArgument>("{}: {:#x} is no memory that CUDA knows", c.name, address);
  c.check(code, "cuPointerGetAttribute");
  return value;
}

CudaDevice& cuda_device(hcq::Device& device) {
  auto* own = dynamic_cast<CudaDevice*>(&device);
  if (!own) fail<InvalidArgument>("{}: no CUDA device", device.name());
  return *own;
}

}  // namespace

// The address itself: who takes it need not know where a block begins.
hcq::Adoption::NativePart CudaDevice::native_part(const hcq::Span& span) {
  return {span.address(), 0};
}

// From there to the end of the allocation that holds it. Memory of the process that CUDA knows may
// be reached by other addresses, and is over_host()'s.
std::optional<hcq::Adoption::NativeMemory> CudaDevice::over_native(uint64_t address) {
  fail_if_lost();
  const Context& c = *context_;
  const Current current(c);
  const auto type = attribute<unsigned>(c, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  const auto gpu = attribute<int>(c, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address);
  if (type != CU_MEMORYTYPE_DEVICE || gpu != c.facts.device)
    fail<InvalidArgument>("{}: {:#x} is not its memory, but {}", c.name, address,
                          type == CU_MEMORYTYPE_DEVICE ? fmt::format("CUDA:{}'s", gpu)
                                                       : "the host's");
  if (address % kBufferAlignment != 0)
    fail<InvalidArgument>("{}: memory at {:#x} is not aligned to {} bytes, as kernels want it",
                          c.name, address, kBufferAlignment);
  const auto begin = attribute<CUdeviceptr>(c, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address);
  const auto bytes = attribute<size_t>(c, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address);
  NativeMemory out;
  out.block = {.address = address, .size_bytes = begin + bytes - address};
  return out;
}

}  // namespace cuda

using namespace cuda;

uint64_t cuda_stream(hcq::Device& device) {
  return std::bit_cast<uint64_t>(cuda_device(device).streams()[0]);
}

void cuda_stream_waits(hcq::Device& device, uint64_t stream) {
  CudaDevice& own = cuda_device(device);
  const Current current(*own.context());
  for (CUstream s : own.streams()) Mark(*own.context(), s).before(stream_of(stream));
}

void cuda_wait_for_stream(hcq::Device& device, uint64_t stream) {
  CudaDevice& own = cuda_device(device);
  const Current current(*own.context());
  const Mark mark(*own.context(), stream_of(stream));
  for (CUstream s : own.streams())
    if (s != stream_of(stream)) mark.before(s);
}

}  // namespace tuff::devices
