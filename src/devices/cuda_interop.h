// The CUDA device as others in the process see it who use CUDA themselves (PyTorch, say): which
// streams wait for whose. Called by tensor (interop_cuda.cpp) and by the Python binding's DLPack.
// Must never know of tensors.
//
// Streams are CUstream handles as numbers: 1 is the legacy default stream, 2 the one of the calling
// thread (CU_STREAM_LEGACY, CU_STREAM_PER_THREAD), as in DLPack's protocol. All throw
// InvalidArgument for another kind of device.
#pragma once

#include <cstdint>

#include "hcq/device.h"

namespace tuff::devices {

inline constexpr uint64_t kCudaLegacyStream = 1;

// The stream of the device's compute queue, for others who order their work before tuff's.
uint64_t cuda_stream(hcq::Device& device);
// What is enqueued there from now on begins once all has ended that the device's queues were given.
void cuda_stream_waits(hcq::Device& device, uint64_t stream);
// What the device's queues are given from now on begins once all has ended that was enqueued there.
void cuda_wait_for_stream(hcq::Device& device, uint64_t stream);

}  // namespace tuff::devices
