// Streams, events, modules, launches.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "devices/cuda/fake/call.h"

namespace tuff::devices::cuda {
namespace {

constexpr unsigned kMaxThreads = 1024, kMaxSharedBytes = 48 << 10;
using Sizes = std::array<uint32_t, 3>;
constexpr Sizes kMaxGrid = {INT32_MAX, 65535, 65535}, kMaxBlock = {1024, 1024, 64};

bool within(const Sizes& sizes, const Sizes& most) {
  for (size_t i = 0; i < 3; ++i)
    if (sizes[i] == 0 || sizes[i] > most[i]) return false;
  return true;
}

// An operation that named it is done.
void leave(CUevent_st* event) {
  if (--event->pending == 0 && event->destroyed) delete event;
}

}  // namespace

// Parameters are read while the call lasts. Nothing: a launch that CUDA refuses.
std::optional<Launch> launch_of(CUfunc_st* function, std::array<uint32_t, 3> grid,
                                std::array<uint32_t, 3> block, unsigned shared_bytes,
                                void** parameters) {
  if (!within(grid, kMaxGrid) || !within(block, kMaxBlock) || shared_bytes != 0) return {};
  const emu_api::PtxKernelInfo& info = function->info;
  if (block[0] * block[1] * block[2] > kMaxThreads) return {};
  if (info.shared_bytes > kMaxSharedBytes) return {};
  const bool any = info.required_block == Sizes{};
  if (!any && block != info.required_block) return {};
  Launch launch{function, grid, block, std::vector<uint8_t>(info.parameter_bytes)};
  for (size_t i = 0; i < info.parameters.size(); ++i)
    std::memcpy(&launch.parameters[info.parameters[i].offset], parameters[i],
                info.parameters[i].bytes);
  return launch;
}

// ---- streams

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  Call call;
  if (!call) return call.code;
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  *stream = call.add(std::make_unique<CUstream_st>(CUstream_st{current_context, {}}));
  call.m.streams.push_back(*stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  Call call;
  if (!call || !call.takes(stream)) return call.code;
  call.m.handles.erase(stream);
  std::erase(call.m.streams, stream);
  if (stream->queued.empty()) delete stream;
  else call.m.destroyed.push_back(stream);
  return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream) {
  Call call;
  if (!call || !call.takes(stream)) return call.code;
  return stream->queued.empty() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult cuStreamSynchronize(CUstream stream) {
  Call call;
  if (!call || !call.takes_stream(stream)) return call.code;
  const CUctx_st& context = *stream->context;
  while (!stream->queued.empty() && context.error == CUDA_SUCCESS) call.m.changed.wait(call.lock);
  return context.error;
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value,
                                unsigned flags) {
  Call call;
  if (!call || !call.takes_stream(stream)) return call.code;
  if (flags != CU_STREAM_WAIT_VALUE_GEQ || address % 8 != 0) return CUDA_ERROR_INVALID_VALUE;
  call.m.push(stream, [&m = call.m, c = stream->context, address, value] {
    uint8_t* word = m.bytes_of(c, address, 8, "a stream's wait");
    if (!word) return Progress::Done;
    const uint64_t now =
        std::atomic_ref(*reinterpret_cast<uint64_t*>(word)).load(std::memory_order_acquire);
    return int64_t(now - value) >= 0 ? Progress::Done : Progress::Blocked;
  });
  return CUDA_SUCCESS;
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, uint64_t value,
                                 unsigned flags) {
  Call call;
  if (!call || !call.takes_stream(stream)) return call.code;
  if (flags != CU_STREAM_WRITE_VALUE_DEFAULT || address % 8 != 0) return CUDA_ERROR_INVALID_VALUE;
  call.m.push(stream, [&m = call.m, c = stream->context, address, value] {
    if (uint8_t* word = m.bytes_of(c, address, 8, "a stream's write"))
      std::atomic_ref(*reinterpret_cast<uint64_t*>(word)).store(value, std::memory_order_release);
    return Progress::Done;
  });
  return CUDA_SUCCESS;
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  Call call;
  if (!call || !call.takes_stream(stream)) return call.code;
  call.m.push(stream, [&m = call.m, c = stream->context, copy = Copy{dst, src, bytes}] {
    m.run(c, copy);
    return Progress::Done;
  });
  return CUDA_SUCCESS;
}

// What it calls may call the driver from another thread, and so may not be held up.
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn fn, void* data) {
  Call call;
  if (!call || !call.takes_stream(stream)) return call.code;
  call.m.push(stream, [&m = call.m, fn, data] {
    m.mutex.unlock();
    fn(data);
    m.mutex.lock();
    return Progress::Done;
  });
  return CUDA_SUCCESS;
}

// ---- events

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  Call call;
  if (!call) return call.code;
  if (flags != CU_EVENT_DEFAULT) return CUDA_ERROR_INVALID_VALUE;
  *event = call.add(std::make_unique<CUevent_st>(CUevent_st{current_context}));
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event) {
  Call call;
  if (!call || !call.takes(event)) return call.code;
  call.m.handles.erase(event);
  event->destroyed = true;
  if (event->pending == 0) delete event;  // else it stays: streams reach it yet
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
  Call call;
  if (!call || !call.takes_stream(stream) || !call.takes(event)) return call.code;
  event->recorded = true;
  event->pending++;
  event->records++;
  call.m.push(stream, [event] {
    event->reached++;
    event->ns = now_ns();
    leave(event);
    return Progress::Done;
  });
  return CUDA_SUCCESS;
}

// For the record that was the last when it was called.
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  Call call;
  if (!call || !call.takes_stream(stream) || !call.takes(event)) return call.code;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (event->pending == 0) return CUDA_SUCCESS;
  event->pending++;
  call.m.push(stream, [event, wanted = event->records] {
    if (event->reached < wanted) return Progress::Blocked;
    leave(event);
    return Progress::Done;
  });
  return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event) {
  Call call;
  if (!call || !call.takes(event)) return call.code;
  const CUctx_st& context = *event->context;
  while (event->pending > 0 && context.error == CUDA_SUCCESS) call.m.changed.wait(call.lock);
  return context.error;
}

CUresult cuEventElapsedTime(float* ms, CUevent begin, CUevent end) {
  Call call;
  if (!call || !call.takes(begin) || !call.takes(end)) return call.code;
  if (!begin->recorded || !end->recorded) return CUDA_ERROR_INVALID_HANDLE;
  if (begin->pending > 0 || end->pending > 0) return CUDA_ERROR_NOT_READY;
  *ms = float((double(end->ns) - double(begin->ns)) / 1e6);
  return CUDA_SUCCESS;
}

// ---- launches

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared_bytes, CUstream stream,
                        void** parameters, void** extra) {
  Call call;
  if (!call || !call.takes(stream)) return call.code;
  if (!call.m.is(function) || function->module->context != current_context)
    return CUDA_ERROR_INVALID_HANDLE;
  auto launch = launch_of(function, {gx, gy, gz}, {bx, by, bz}, shared_bytes, parameters);
  if (!launch || extra) return CUDA_ERROR_INVALID_VALUE;
  call.m.push(stream, [&m = call.m, c = stream->context, l = *std::move(launch)] {
    m.run(c, l);
    return Progress::Done;
  });
  return CUDA_SUCCESS;
}

}  // namespace tuff::devices::cuda
