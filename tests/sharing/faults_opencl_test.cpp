// The same in memory of OpenCL: handles that are kept show in their context's reference count,
// which the tests of sharing compare.
#include <memory>
#include <tuff/interop/opencl.h>

#include "faults.h"

namespace tuff::test {
namespace {

using interop::from_blob;

class OpenclFaults : public Faults {};

struct Opened {
  Opened() {
    cl_platform_id platform = nullptr;
    clGetPlatformIDs(1, &platform, nullptr);
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &handle, nullptr);
    context = clCreateContext(nullptr, 1, &handle, nullptr, nullptr, nullptr);
    before = references();
    device = interop::open_opencl({.context = context, .device = handle});
    on = {.device = device};
  }
  cl_uint references() const {
    cl_uint count = 0;
    clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, nullptr);
    return count;
  }
  cl_mem buffer(cl_mem_flags flags, void* host) const {
    return clCreateBuffer(context, CL_MEM_READ_WRITE | flags, 4000, host, nullptr);
  }
  cl_device_id handle = nullptr;
  cl_context context = nullptr;
  cl_uint before = 0;
  std::string device;
  TensorOptions on;
};

TEST_F(OpenclFaults, SharedVirtualMemoryThatWasFreedTooSoonIsFound) {
  const auto fault = [] {
    const Opened o;
    const cl_svm_mem_flags flags = CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER;
    void* memory = clSVMAlloc(o.context, flags, 4000, 0);
    const Tensor t =
        from_blob(interop::OpenclSvm{memory, 4000, /*fine_grained=*/true}, {1000}, {}, o.on);
    clSVMFree(o.context, memory);
    (void)t.to_vector<float>();
  };
  EXPECT_DEATH(fault(), "AddressSanitizer: heap-use-after-free");
}

TEST_F(OpenclFaults, HostMemoryBeneathABufferThatWasFreedTooSoonIsFound) {
  const auto fault = [] {
    const Opened o;
    auto values = std::make_unique<std::array<float, 1000>>();
    const cl_mem m = o.buffer(CL_MEM_USE_HOST_PTR, values.get());
    const Tensor t = from_blob(interop::OpenclBuffer{m}, {1000}, {}, o.on);
    values.reset();
    (void)t.to_vector<float>();
  };
  EXPECT_DEATH(fault(), "AddressSanitizer: heap-use-after-free");
}

TEST_F(OpenclFaults, ADeleterThatIsCalledTwiceIsFound) {
  const auto fault = [] {
    const Opened o;
    auto* values = new std::array<float, 1000>;
    const cl_mem m = o.buffer(CL_MEM_USE_HOST_PTR, values);
    const BlobOptions blob{.deleter = [values](void*) { delete values; }};
    (void)from_blob(interop::OpenclBuffer{m}, {1000}, blob, o.on);
    settle(o.on);
    blob.deleter(m);
  };
  EXPECT_DEATH(fault(), "AddressSanitizer: (heap-use-after-free|attempting double-free)");
}

TEST_F(OpenclFaults, AHandleThatIsKeptIsFound) {
  for (const bool kept : {false, true}) {
    const Opened o;
    const cl_mem m = o.buffer(0, nullptr);
    (void)from_blob(interop::OpenclBuffer{m}, {1000}, {}, o.on);
    if (kept) clRetainMemObject(m);
    interop::close_opencl(o.device);
    clReleaseMemObject(m);
    EXPECT_EQ(o.references() - o.before, kept ? 1u : 0u);
    if (kept) clReleaseMemObject(m);
    clReleaseContext(o.context);
  }
}

TEST_F(OpenclFaults, ATensorThatIsNeverReleasedIsFound) {
  const auto fault = [] {
    const Opened o;
    forget(from_blob(interop::OpenclBuffer{o.buffer(0, nullptr)}, {1000}, {}, o.on));
    settle(o.on);
    look_for_leaks();
  };
  EXPECT_DEATH(fault(), kForgotten);
}

}  // namespace
}  // namespace tuff::test
