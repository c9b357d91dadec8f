// Memory and streams shared with an application that uses CUDA, on the library that stands in for
// its driver.
#include <gtest/gtest.h>
#include <tuff/interop/cuda.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "base/check.h"
#include "base/env.h"
#include "base/error_of.h"
#include "base/os.h"
#include "devices/cuda/api.h"
#include "engine/device.h"

namespace tuff::interop {
namespace {

using namespace devices::cuda;
using Floats = std::vector<float>;

void ok(CUresult code) { ASSERT_EQ(code, CUDA_SUCCESS); }

// The application: a stream and memory of its own in the GPU's primary context.
class CudaSharing : public testing::Test {
 protected:
  CudaSharing() : api_(cuda_api()) {
    ok(api_.DevicePrimaryCtxRetain(&context_, 0));
    ok(api_.CtxSetCurrent(context_));
    ok(api_.StreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
    void* pages = nullptr;
    ok(api_.MemHostAlloc(&pages, 1 << 16, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
    host_ = static_cast<float*>(pages);
    gate_ = reinterpret_cast<uint64_t*>(host_ + 8192);
    *gate_ = 0;
  }
  CudaStream stream() const { return {reinterpret_cast<uint64_t>(stream_)}; }

  CudaMemory memory(uint32_t count, float first) {
    CUdeviceptr address = 0;
    ok(api_.MemAlloc(&address, count * sizeof(float)));
    std::iota(host_, host_ + count, first);
    ok(api_.MemcpyAsync(address, reinterpret_cast<CUdeviceptr>(host_), count * sizeof(float),
                        stream_));
    return {address};
  }
  Floats read(CudaMemory from, uint32_t count) {
    ok(api_.MemcpyAsync(reinterpret_cast<CUdeviceptr>(host_ + 4096), from.pointer,
                        count * sizeof(float), stream_));
    ok(api_.StreamSynchronize(stream_));
    return {host_ + 4096, host_ + 4096 + count};
  }
  // What comes later in the application's stream waits until open().
  void close() {
    ok(api_.StreamWaitValue64(stream_, reinterpret_cast<CUdeviceptr>(gate_), 1,
                              CU_STREAM_WAIT_VALUE_GEQ));
  }
  void open() { std::atomic_ref(*gate_).store(1); }

  const EnvOverride library_{Env::TUFF_CUDA_LIBRARY, TUFF_FAKE_CUDA};
  const TensorOptions on_{DType::F32, "CUDA:0"};
  const CudaApi& api_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  float* host_ = nullptr;
  uint64_t* gate_ = nullptr;
};

TEST_F(CudaSharing, TuffWorksOnTheApplicationsMemoryOnceItsStreamIsDone) {
  close();
  const CudaMemory own = memory(64, 0);
  int deleted = 0;
  {
    Tensor x = from_blob(own, {64}, {.deleter = [&](void* p) {
                           deleted += p == reinterpret_cast<void*>(own.pointer);
                         }}, on_);
    wait_for(x, stream());
    std::thread later([&] { open(); });
    x.assign(x * 2.0f);
    EXPECT_EQ(x.sum().item(), 2 * 64 * 63 / 2);
    later.join();
    EXPECT_EQ(cuda_memory(x).pointer, own.pointer);
    cuda_stream_waits(x, stream());
    EXPECT_EQ(read(own, 64)[63], 126.0f);
  }
  engine::Device::get("CUDA:0")->hcq().compute_queue().wait_idle();
  engine::Device::get("CUDA:0")->hcq().allocator().collect();
  EXPECT_EQ(deleted, 1);
}

TEST_F(CudaSharing, TheApplicationsStreamWaitsForTuff) {
  for (int round = 0; round < 10; ++round) {
    Tensor x = Tensor::full({256}, float(round), on_);
    for (int i = 0; i < 4; ++i) x = (x + 1.0f).contiguous();
    cuda_stream_waits(x, stream());
    EXPECT_EQ(read(cuda_memory(x), 256), Floats(256, float(round + 4)));
  }
}

TEST_F(CudaSharing, StridesAndWhatIsRefused) {
  const CudaMemory own = memory(12, 1);
  ok(api_.StreamSynchronize(stream_));
  const Tensor columns = from_blob(own, {4, 3}, {.strides = {1, 4}}, on_);
  EXPECT_EQ(columns.sum({0}).to_vector<float>(), (Floats{10, 26, 42}));
  const auto refused = [&](CudaMemory memory, int64_t count, const TensorOptions& options) {
    return error_of<InvalidArgument>([&] { from_blob(memory, {count}, {}, options); });
  };
  EXPECT_NE(refused(own, 13, on_).find("52 bytes in memory of 48"), std::string::npos);
  EXPECT_NE(refused({own.pointer + 4}, 4, on_).find("aligned to 16"), std::string::npos);
  EXPECT_NE(refused({reinterpret_cast<uint64_t>(host_)}, 4, on_).find("the host's"),
            std::string::npos);
  EXPECT_NE(refused(own, 4, {DType::F32, "CPU"}).find("no CUDA device"), std::string::npos);
  EXPECT_THROW(cuda_memory(Tensor::ones({2}, {DType::F32, "CPU"})), InvalidArgument);
}

}  // namespace
}  // namespace tuff::interop
