// Sharing with an application that uses CUDA itself: tensors over its device memory, the memory
// beneath tensors, streams that wait for each other. tuff's device CUDA:n works in the primary
// context of GPU n, which CUDA's runtime library and PyTorch use too. Needs no header of CUDA's.
//
// The rules: only one side at a time writes memory that both use. Streams say whose turn it is, and
// the host never blocks. Whoever frees memory has seen that nobody uses it any more.
#pragma once

#include <cstdint>

#include <tuff/tensor.h>

namespace tuff::interop {

/// Device memory of an application: a CUdeviceptr, as cuMemAlloc and cudaMalloc give it.
struct CudaMemory {
  uint64_t pointer = 0;
};

/// A CUstream or cudaStream_t as a number; 1 is the legacy default stream, 2 that of the calling
/// thread (cuda.h, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD).
struct CudaStream {
  uint64_t handle = 1;
};

/// A tensor over the application's memory, without a copy, on options.device, "CUDA:0" say, whose
/// memory it has to be. blob.deleter is called, with the pointer that was given, as
/// Tensor::from_blob() says. InvalidArgument for memory that is too short, that CUDA does not know,
/// the host's or another GPU's, or whose lowest element is not 16-byte aligned.
Tensor from_blob(const CudaMemory& memory, const Sizes& sizes, BlobOptions blob = {},
                 const TensorOptions& options = {});

/// Where the tensor lies: realizes it, does not wait for it. Valid until the tensor and all that
/// shares its memory has gone, or was assigned to. InvalidArgument for tensors elsewhere.
CudaMemory cuda_memory(const Tensor& tensor);

/// What the application enqueues in the stream from now on begins when all has finished that tuff
/// does with the tensor. Realizes it, does not wait. InvalidArgument for tensors elsewhere.
void cuda_stream_waits(const Tensor& tensor, CudaStream stream);

/// What tuff does on the tensor's device from now on, and what the host reads of the tensor, begins
/// when all has finished that was enqueued in the stream. It has to do so within TUFF_TIMEOUT_MS
/// once the host waits for tuff's results. InvalidArgument for tensors elsewhere.
void wait_for(const Tensor& tensor, CudaStream stream);

}  // namespace tuff::interop
