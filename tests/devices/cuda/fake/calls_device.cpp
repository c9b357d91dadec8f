// Devices, contexts, memory.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "devices/cuda/fake/call.h"

namespace tuff::devices::cuda {
namespace {

bool is_device(const Machine& m, CUdevice d) { return d >= 0 && d < m.options.gpus; }

// Not zero: nothing may count on that.
constexpr uint8_t kFresh = 0xff;
constexpr size_t kPage = 4096, kGuard = 1 << 20;

}  // namespace

CUresult cuInit(unsigned flags) {
  Machine& m = machine();
  std::lock_guard lock(m.mutex);
  m.initialized = m.options.gpus > 0;
  return flags != 0 ? CUDA_ERROR_INVALID_VALUE
                    : m.initialized ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int* version) {
  *version = 12040;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult code, const char** name) {
  static const std::map<CUresult, const char*> kNames = {
#define FAKE_NAME(code) {code, #code}
      FAKE_NAME(CUDA_ERROR_INVALID_VALUE), FAKE_NAME(CUDA_ERROR_OUT_OF_MEMORY),
      FAKE_NAME(CUDA_ERROR_NOT_INITIALIZED), FAKE_NAME(CUDA_ERROR_NO_DEVICE),
      FAKE_NAME(CUDA_ERROR_INVALID_CONTEXT), FAKE_NAME(CUDA_ERROR_NO_BINARY_FOR_GPU),
      FAKE_NAME(CUDA_ERROR_INVALID_PTX), FAKE_NAME(CUDA_ERROR_INVALID_HANDLE),
      FAKE_NAME(CUDA_ERROR_NOT_FOUND), FAKE_NAME(CUDA_ERROR_ILLEGAL_ADDRESS),
      FAKE_NAME(CUDA_ERROR_LAUNCH_FAILED), FAKE_NAME(CUDA_ERROR_UNKNOWN)};
#undef FAKE_NAME
  const auto it = kNames.find(code);
  *name = it == kNames.end() ? nullptr : it->second;
  return it == kNames.end() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult code, const char** text) {
  *text = code == CUDA_ERROR_ILLEGAL_ADDRESS ? "an illegal memory access was encountered"
                                             : "as the test wants it";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  const Call call(Needs::Init);
  if (call) *count = call.m.options.gpus;
  return call.code;
}

CUresult cuDeviceGet(CUdevice* device, int index) {
  const Call call(Needs::Init);
  if (!call) return call.code;
  *device = index;
  return is_device(call.m, index) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char* name, int size, CUdevice device) {
  const Call call(Needs::Init);
  if (!call) return call.code;
  std::snprintf(name, size_t(size), "Emulated GPU %d", device);
  return is_device(call.m, device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  const Call call(Needs::Init);
  if (!call) return call.code;
  for (int i = 0; i < 16; ++i) uuid->bytes[i] = char(16 * i + device);
  return is_device(call.m, device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  const Call call(Needs::Init);
  if (!call) return call.code;
  *bytes = call.m.options.vram_mib << 20;
  return is_device(call.m, device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute which, CUdevice device) {
  const Call call(Needs::Init);
  if (!call) return call.code;
  if (!is_device(call.m, device)) return CUDA_ERROR_INVALID_DEVICE;
  const Options& o = call.m.options;
  switch (which) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = 1024; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 48 << 10; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 2; break;
    case CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_INTEGRATED: *value = o.integrated; break;
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY: *value = 1; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE: *value = 0; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 4 << 20; break;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: *value = 2; break;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING: *value = 1; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = o.capability / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = o.capability % 10; break;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: *value = 1; break;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS: *value = o.memory_operations; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  const Call call(Needs::Init);
  if (!call) return call.code;
  if (!is_device(call.m, device)) return CUDA_ERROR_INVALID_DEVICE;
  *context = &call.m.contexts[size_t(device)];
  (*context)->retained++;
  return CUDA_SUCCESS;
}

// With its last user all of a context goes, and the next has a new one.
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  Call call(Needs::Init);
  if (!call) return call.code;
  if (!is_device(call.m, device)) return CUDA_ERROR_INVALID_DEVICE;
  CUctx_st& context = call.m.contexts[size_t(device)];
  if (context.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--context.retained > 0) return CUDA_SUCCESS;
  call.m.drain(call.lock, &context);
  size_t left = 0;
  std::erase_if(call.m.memory, [&](const auto& m) { return m.second.owner == &context && ++left; });
  if (left > 0 && context.error == CUDA_SUCCESS)
    std::fprintf(stderr, "fake CUDA, GPU %d: %zu allocations were never freed\n", device, left);
  context.error = CUDA_SUCCESS;
  context.reaches.clear();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  const Call call(Needs::Init);
  if (call) *context = current_context;
  return call.code;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  const Call call(Needs::Init);
  if (call) current_context = context;
  return call.code;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  const Call call(Needs::Init);
  if (!call) return call.code;
  if (!is_device(call.m, device) || !is_device(call.m, peer)) return CUDA_ERROR_INVALID_DEVICE;
  *can = call.m.options.peers && device != peer;
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  const Call call;
  if (!call) return call.code;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (peer->retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (!call.m.options.peers || peer == current_context) return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  return current_context->reaches.insert(peer).second ? CUDA_SUCCESS
                                                      : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

// ---- memory

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  const Call call;
  if (!call) return call.code;
  Machine& m = call.m;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (m.used_bytes + bytes > m.options.vram_mib << 20) return CUDA_ERROR_OUT_OF_MEMORY;
  Allocation a{m.next_address, bytes, nullptr, std::make_unique<uint8_t[]>(bytes), current_context};
  a.bytes = a.own.get();
  std::memset(a.bytes, kFresh, std::min<size_t>(bytes, kGuard));
  m.next_address += (bytes + kGuard) / kPage * kPage + kGuard;
  m.used_bytes += bytes;
  *address = a.address;
  m.memory.emplace(a.address, std::move(a));
  return CUDA_SUCCESS;
}

// Waits for what runs, as the driver does.
CUresult cuMemFree_v2(CUdeviceptr address) {
  Call call;
  if (!call) return call.code;
  call.m.drain(call.lock, current_context);
  const auto it = call.m.memory.find(address);
  if (it == call.m.memory.end() || it->second.owner != current_context)
    return CUDA_ERROR_INVALID_VALUE;
  call.m.used_bytes -= it->second.size_bytes;
  call.m.freed.emplace(address, it->second.size_bytes);
  call.m.memory.erase(it);
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute which, CUdeviceptr address) {
  const Call call;
  if (!call) return call.code;
  const auto next = call.m.memory.upper_bound(address);
  if (next == call.m.memory.begin()) return CUDA_ERROR_INVALID_VALUE;
  const Allocation& a = std::prev(next)->second;
  if (address - a.address >= a.size_bytes) return CUDA_ERROR_INVALID_VALUE;
  switch (which) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) = unsigned(a.owner ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST);
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = a.owner ? a.owner->device : current_context->device;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(data) = a.address;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<size_t*>(data) = a.size_bytes;
      return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult cuMemHostAlloc(void** pages, size_t bytes, unsigned flags) {
  const Call call;
  if (!call) return call.code;
  const unsigned portable = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
  if (bytes == 0 || flags != portable) return CUDA_ERROR_INVALID_VALUE;
  Allocation a{0, bytes, nullptr, std::make_unique<uint8_t[]>(bytes + kPage)};
  const auto begin = reinterpret_cast<uint64_t>(a.own.get());
  a.address = (begin + kPage - 1) / kPage * kPage;
  a.bytes = a.own.get() + (a.address - begin);
  std::memset(a.bytes, kFresh, std::min<size_t>(bytes, kGuard));
  *pages = a.bytes;
  call.m.freed.erase(a.address);
  call.m.memory.emplace(a.address, std::move(a));
  return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void* pages) {
  Call call;
  if (!call) return call.code;
  call.m.drain(call.lock, current_context);
  const auto it = call.m.memory.find(reinterpret_cast<uint64_t>(pages));
  if (it == call.m.memory.end() || it->second.owner || it->second.registered)
    return CUDA_ERROR_INVALID_VALUE;
  call.m.freed.emplace(it->first, it->second.size_bytes);
  call.m.memory.erase(it);
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void* pages, size_t bytes, unsigned flags) {
  const Call call;
  if (!call) return call.code;
  const auto begin = reinterpret_cast<uint64_t>(pages);
  if (bytes == 0 || flags != (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP))
    return CUDA_ERROR_INVALID_VALUE;
  for (const auto& [address, a] : call.m.memory)
    if (address < begin + bytes && begin < address + a.size_bytes)
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  Allocation a{begin, bytes, static_cast<uint8_t*>(pages)};
  a.registered = true;
  call.m.freed.erase(begin);
  call.m.memory.emplace(begin, std::move(a));
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void* pages) {
  const Call call;
  if (!call) return call.code;
  const auto it = call.m.memory.find(reinterpret_cast<uint64_t>(pages));
  if (it == call.m.memory.end() || !it->second.registered)
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  call.m.freed.emplace(it->first, it->second.size_bytes);
  call.m.memory.erase(it);
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* pages, unsigned flags) {
  const Call call;
  if (!call) return call.code;
  const auto at = reinterpret_cast<uint64_t>(pages);
  if (flags != 0 || !call.m.memory.contains(at)) return CUDA_ERROR_INVALID_VALUE;
  *address = at;
  return CUDA_SUCCESS;
}

}  // namespace tuff::devices::cuda
