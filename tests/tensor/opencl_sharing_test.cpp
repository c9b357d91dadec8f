// Tensors and an OpenCL program on one context: what each writes the other sees, who waits for
// whom, how long memory is held, what is refused. On both kinds of queue, in both tiers of memory.
#include <tuff/interop/opencl.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include <tuff/error.h>
#include <tuff/jit.h>
#include "base/env.h"
#include "base/error_of.h"

namespace tuff::test {
namespace {

using interop::from_blob;
using interop::OpenclBuffer;
using interop::OpenclSvm;
using Floats = std::vector<float>;

const char* const kSource = R"(
kernel void add(global float* at, float value) { at[get_global_id(0)] += value; })";

void check(cl_int code) { ASSERT_EQ(code, CL_SUCCESS); }

Floats counting(size_t count) {
  Floats out(count);
  std::iota(out.begin(), out.end(), 0.0f);
  return out;
}

void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

// A context and a queue of an application's own, with a kernel that adds to floats.
struct Application {
  Application() {
    cl_platform_id platform = nullptr;
    check(clGetPlatformIDs(1, &platform, nullptr));
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr));
    context = new_context();
    queue = new_queue(context);
    cl_int code = CL_SUCCESS;
    const char* text = kSource;
    program = clCreateProgramWithSource(context, 1, &text, nullptr, &code);
    check(clBuildProgram(program, 1, &device, "", nullptr, nullptr));
    add_kernel = clCreateKernel(program, "add", &code);
    check(code);
  }
  ~Application() {
    for (cl_mem m : memory) clReleaseMemObject(m);
    clReleaseKernel(add_kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
  }
  Application(const Application&) = delete;
  cl_context new_context() const {
    cl_int code = CL_SUCCESS;
    cl_context c = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
    check(code);
    return c;
  }
  cl_command_queue new_queue(cl_context c, cl_command_queue_properties properties = 0) const {
    const cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
    cl_int code = CL_SUCCESS;
    cl_command_queue q = clCreateCommandQueueWithProperties(c, device, list, &code);
    check(code);
    return q;
  }
  cl_mem buffer(const Floats& values, cl_mem_flags flags = CL_MEM_READ_WRITE) {
    cl_int code = CL_SUCCESS;
    cl_mem m = clCreateBuffer(context, flags | CL_MEM_COPY_HOST_PTR, values.size() * 4,
                              const_cast<float*>(values.data()), &code);
    check(code);
    return memory.emplace_back(m);
  }
  void add(cl_mem m, float value, size_t count) const {
    check(clSetKernelArg(add_kernel, 0, sizeof m, &m));
    check(clSetKernelArg(add_kernel, 1, sizeof value, &value));
    check(clEnqueueNDRangeKernel(queue, add_kernel, 1, nullptr, &count, nullptr, 0, nullptr,
                                 nullptr));
  }
  Floats read(cl_mem m, size_t count, size_t offset = 0, cl_event after = nullptr) const {
    Floats out(count);
    check(clEnqueueReadBuffer(queue, m, CL_TRUE, offset, count * 4, out.data(), after ? 1 : 0,
                              after ? &after : nullptr, nullptr));
    return out;
  }

  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;
  cl_kernel add_kernel = nullptr;
  std::vector<cl_mem> memory;
};

// By TUFF_CL_DISABLE; on the application's queue.
class OpenclSharing : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    device =
        interop::open_opencl({.context = app.context, .device = app.device, .queue = app.queue});
    on = {.device = device};
  }
  void TearDown() override {
    if (!device.empty()) interop::close_opencl(device);
  }
  static bool addressed() { return GetParam() != std::string("svm"); }
  static bool fine() { return !*GetParam(); }

  const EnvOverride tier_{Env::TUFF_CL_DISABLE, GetParam()};
  Application app;
  std::string device;
  TensorOptions on;
};

TEST_P(OpenclSharing, EachSeesWhatTheOtherWrites) {
  cl_mem m = app.buffer(counting(6));
  Tensor t = from_blob(OpenclBuffer{m}, {2, 3}, {}, on);
  EXPECT_EQ(t.device(), device);
  EXPECT_EQ((t * 2).to_vector<float>(), (Floats{0, 2, 4, 6, 8, 10}));
  app.add(m, 10, 6);
  EXPECT_EQ(t.to_vector<float>(), (Floats{10, 11, 12, 13, 14, 15}));
  t.assign(t.flip({1})).realize();
  app.add(m, 1, 6);
  EXPECT_EQ(app.read(m, 6), (Floats{13, 12, 11, 16, 15, 14}));
  const Floats sevens(6, 7);
  t.copy_from(sevens.data(), 24);
  EXPECT_EQ(app.read(m, 6), sevens);
}

TEST_P(OpenclSharing, PartsAndStridesOfABuffer) {
  cl_mem m = app.buffer(counting(12));
  Tensor rows = from_blob(OpenclBuffer{m, 8}, {2, 3}, {.strides = {5, 1}}, on);
  EXPECT_EQ(rows.to_vector<float>(), (Floats{2, 3, 4, 7, 8, 9}));
  const Tensor back = from_blob(OpenclBuffer{m, 44}, {3}, {.strides = {-1}}, on);
  EXPECT_EQ(back.to_vector<float>(), (Floats{11, 10, 9}));
  Tensor end = from_blob(OpenclBuffer{m, 40}, {2}, {}, on);
  end.assign(end + 100).realize();
  EXPECT_EQ(app.read(m, 3, 36), (Floats{9, 110, 111}));
  const cl_buffer_region region{0, 16};
  cl_int code = CL_SUCCESS;
  cl_mem part =
      clCreateSubBuffer(m, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  check(code);
  app.memory.push_back(part);
  EXPECT_EQ(from_blob(OpenclBuffer{part}, {4}, {}, on).to_vector<float>(), (Floats{0, 1, 2, 3}));
}

TEST_P(OpenclSharing, AnImageOverABufferAndNoOther) {
  cl_mem m = app.buffer(counting(8));
  const cl_image_format format{CL_R, CL_FLOAT};
  cl_image_desc desc{};
  desc.image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER;
  desc.image_width = 8;
  desc.buffer = m;
  cl_int code = CL_SUCCESS;
  cl_mem over = clCreateImage(app.context, CL_MEM_READ_WRITE, &format, &desc, nullptr, &code);
  check(code);
  app.memory.push_back(over);
  EXPECT_EQ(from_blob(OpenclBuffer{over}, {8}, {}, on).to_vector<float>(), counting(8));
  desc = {};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = desc.image_height = 4;
  cl_mem image = clCreateImage(app.context, CL_MEM_READ_WRITE, &format, &desc, nullptr, &code);
  check(code);
  app.memory.push_back(image);
  expect_in("from_image()",
            error_of<InvalidArgument>([&] { from_blob(OpenclBuffer{image}, {4}, {}, on); }));
}

TEST_P(OpenclSharing, SharedVirtualMemory) {
  for (const bool fine : {false, true}) {
    auto* p = static_cast<float*>(clSVMAlloc(
        app.context, CL_MEM_READ_WRITE | (fine ? CL_MEM_SVM_FINE_GRAIN_BUFFER : 0), 64, 0));
    ASSERT_NE(p, nullptr);
    const Floats values = counting(4);
    check(clEnqueueSVMMemcpy(app.queue, CL_TRUE, p, values.data(), 16, 0, nullptr, nullptr));
    if (!addressed()) {
      expect_in("TUFF_CL_DISABLE",
                error_of<Unsupported>([&] { from_blob(OpenclSvm{p, 64}, {4}, {}, on); }));
    } else {
      Tensor t = from_blob(OpenclSvm{p, 64, fine}, {4}, {}, on);
      EXPECT_EQ(interop::opencl_memory(t).svm, p);
      EXPECT_EQ(interop::opencl_memory(t).fine_grained, fine && OpenclSharing::fine());
      t.assign(t + 1).realize();
      EXPECT_EQ(t.to_vector<float>(), (Floats{1, 2, 3, 4}));
      Floats seen(4);
      check(clEnqueueSVMMemcpy(app.queue, CL_TRUE, seen.data(), p, 16, 0, nullptr, nullptr));
      EXPECT_EQ(seen, (Floats{1, 2, 3, 4}));
      expect_in("64 bytes",
                error_of<InvalidArgument>([&] { from_blob(OpenclSvm{p, 64}, {17}, {}, on); }));
    }
    clFinish(app.queue);
    clSVMFree(app.context, p);
  }
}

// Arguments of one graph that are an object, shared virtual memory, and an object again.
TEST_P(OpenclSharing, ReplaysTakeInputsFromAnywhere) {
  cl_mem a = app.buffer({1, 2, 3, 4}), b = app.buffer({0, 0, 10, 20, 30, 40});
  Jit jit([](const std::vector<Tensor>& in) { return std::vector{(in[0] * 3 + 1).contiguous()}; });
  const Tensor tensors[] = {
      from_blob(OpenclBuffer{a}, {4}, {}, on), from_blob(OpenclBuffer{b, 8}, {4}, {}, on),
      Tensor::from({5, 6, 7, 8}, {4}, on).realize(), from_blob(OpenclBuffer{b}, {4}, {}, on)};
  const Floats wanted[] = {{4, 7, 10, 13}, {31, 61, 91, 121}, {16, 19, 22, 25}, {1, 1, 31, 61}};
  for (int i = 0; i < 12; i++) {
    EXPECT_EQ(jit({tensors[i % 4]})[0].to_vector<float>(), wanted[i % 4]) << i;
  }
  app.add(a, 1, 4);
  EXPECT_EQ(jit({tensors[0]})[0].to_vector<float>(), (Floats{7, 10, 13, 16}));
}

TEST_P(OpenclSharing, TensorsAreExported) {
  const Tensor t = Tensor::from({1, 2, 3, 4}, {4}, on) + 1;
  const interop::OpenclRegion r = interop::opencl_memory(t);
  EXPECT_EQ(r.context, app.context);
  EXPECT_EQ(r.queue, app.queue);
  EXPECT_EQ(r.size_bytes, 16u);
  Floats seen(4);
  if (addressed()) {
    ASSERT_NE(r.svm, nullptr);
    check(clEnqueueSVMMemcpy(app.queue, CL_TRUE, seen.data(), r.svm, 16, 0, nullptr, nullptr));
  } else {
    ASSERT_NE(r.buffer, nullptr);
    seen = app.read(r.buffer, 4, r.offset);
  }
  EXPECT_EQ(seen, (Floats{2, 3, 4, 5}));
  cl_mem m = app.buffer(counting(4));
  const interop::OpenclRegion lent =
      interop::opencl_memory(from_blob(OpenclBuffer{m, 4}, {2}, {}, on));
  EXPECT_EQ(lent.buffer, m);
  EXPECT_EQ(lent.offset, 4u);
  expect_in("to(\"CL\")", error_of<InvalidArgument>([] {
              interop::opencl_memory(Tensor::ones({1}, {.device = "CPU"}));
            }));
}

// The deleter comes once, after the last use, with the handle; tuff's own reference keeps the
// object until then.
TEST_P(OpenclSharing, MemoryGoesBackOnceItIsUnused) {
  cl_mem m = app.buffer(counting(4));
  std::atomic<int> returned{0};
  const auto references = [&] {
    cl_uint count = 0;
    check(clGetMemObjectInfo(m, CL_MEM_REFERENCE_COUNT, sizeof count, &count, nullptr));
    return count;
  };
  const cl_uint before = references();
  cl_int code = CL_SUCCESS;
  cl_event gate = clCreateUserEvent(app.context, &code);
  check(code);
  Tensor sum;
  {
    const Tensor t = from_blob(OpenclBuffer{m}, {4},
                               {.deleter =
                                    [&](void* given) {
                                      EXPECT_EQ(given, m);
                                      returned++;
                                    }},
                               on);
    EXPECT_GT(references(), before);
    interop::wait_for(t, gate);
    sum = t.sum().realize();
  }
  Tensor::ones({1}, on).realize();
  EXPECT_EQ(returned, 0);
  check(clSetUserEventStatus(gate, CL_COMPLETE));
  EXPECT_EQ(sum.item(), 6);
  EXPECT_EQ((Tensor::ones({1}, on) + 1).item(), 2);
  EXPECT_EQ(returned, 1);
  EXPECT_EQ(references(), before);
  clReleaseEvent(gate);
}

TEST_P(OpenclSharing, ReadOnlyMemoryIsNotWritten) {
  cl_mem m = app.buffer(counting(4), CL_MEM_READ_ONLY);
  Tensor t = from_blob(OpenclBuffer{m}, {4}, {}, on);
  EXPECT_EQ((t + 1).to_vector<float>(), (Floats{1, 2, 3, 4}));
  error_of<InvalidArgument>([&] { t.assign(t + 1); });
  error_of<InvalidArgument>([&] { t.copy_from(counting(4).data(), 16); });
}

TEST_P(OpenclSharing, WhatDoesNotFitIsRefused) {
  cl_mem m = app.buffer(counting(4));
  const auto refused = [&](const char* part, const OpenclBuffer& memory, const Sizes& sizes) {
    expect_in(part, error_of<InvalidArgument>([&] { from_blob(memory, sizes, {}, on); }));
  };
  refused("null", {}, {1});
  refused("16 bytes", {m}, {5});
  refused("16 bytes", {m, 16}, {1});
  refused("aligned", {m, 2}, {1});
  refused("CL_MEM_WRITE_ONLY", {app.buffer(counting(4), CL_MEM_WRITE_ONLY)}, {1});
  refused("CL_MEM_HOST_NO_ACCESS", {app.buffer(counting(4), CL_MEM_HOST_NO_ACCESS)}, {1});
  error_of<InvalidArgument>([&] { from_blob(OpenclBuffer{m}, {2}, {.strides = {-1}}, on); });
  const Application other;
  cl_int code = CL_SUCCESS;
  cl_mem foreign = clCreateBuffer(other.context, CL_MEM_READ_WRITE, 16, nullptr, &code);
  check(code);
  refused("another context", {foreign}, {4});
  clReleaseMemObject(foreign);
  expect_in("not an OpenCL device", error_of<InvalidArgument>([&] {
              from_blob(OpenclBuffer{m}, {4}, {}, {.device = "CPU"});
            }));
}

// An application that computes on a queue of its own, and tuff on another.
TEST_P(OpenclSharing, TwoQueuesWaitForEachOther) {
  const std::string apart =
      interop::open_opencl({.context = app.context, .device = app.device, .queue = nullptr});
  cl_mem m = app.buffer(Floats(4, 0));
  {
    Tensor t = from_blob(OpenclBuffer{m}, {4}, {}, {.device = apart});
    EXPECT_NE(interop::opencl_memory(t).queue, app.queue);
    cl_int code = CL_SUCCESS;
    cl_event gate = clCreateUserEvent(app.context, &code), added = nullptr;
    check(clEnqueueBarrierWithWaitList(app.queue, 1, &gate, nullptr));
    app.add(m, 5, 4);
    check(clEnqueueMarkerWithWaitList(app.queue, 0, nullptr, &added));
    check(clFlush(app.queue));
    interop::wait_for(t, added);
    t.assign(t * 2).realize();
    cl_event ready = interop::opencl_ready(t);
    cl_int status = 0;
    check(
        clGetEventInfo(ready, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, nullptr));
    EXPECT_GT(status, CL_COMPLETE);
    check(clSetUserEventStatus(gate, CL_COMPLETE));
    EXPECT_EQ(app.read(m, 4, 0, ready), Floats(4, 10));
    // A read by the host waits for the application, too.
    app.add(m, 1, 4);
    cl_event again = nullptr;
    check(clEnqueueMarkerWithWaitList(app.queue, 0, nullptr, &again));
    check(clFlush(app.queue));
    interop::wait_for(t, again);
    EXPECT_EQ(t.to_vector<float>(), Floats(4, 11));
    for (cl_event e : {gate, added, ready, again}) clReleaseEvent(e);
    const Application other;
    cl_event foreign = clCreateUserEvent(other.context, &code);
    expect_in("another context", error_of<InvalidArgument>([&] { interop::wait_for(t, foreign); }));
    clReleaseEvent(foreign);
    error_of<InvalidArgument>([&] { interop::wait_for(t, nullptr); });
  }
  interop::close_opencl(apart);
}

TEST_P(OpenclSharing, ADeviceInUseStaysOpen) {
  cl_mem m = app.buffer(counting(4));
  {
    const Tensor t = from_blob(OpenclBuffer{m}, {4}, {}, on);
    expect_in(device + " is still in use",
              error_of<InvalidArgument>([&] { interop::close_opencl(device); }));
    EXPECT_EQ(t.sum().item(), 6);
  }
  interop::close_opencl(device);
  error_of<InvalidArgument>([&] { interop::close_opencl(device); });
  error_of<Error>([&] { Tensor::ones({1}, on).realize(); });
  device.clear();
  expect_in("open_opencl()", error_of<InvalidArgument>([] { interop::close_opencl("CL:0"); }));
}

// Whatever is made on a context refers to it: queues, events, programs, kernels, memory.
TEST_P(OpenclSharing, HandlesGoBackWhenTheDeviceIsClosed) {
  const auto references = [&] {
    cl_uint count = 0;
    check(clGetContextInfo(app.context, CL_CONTEXT_REFERENCE_COUNT, sizeof count, &count, nullptr));
    return count;
  };
  interop::close_opencl(device);
  cl_mem m = app.buffer(counting(8)), w = app.buffer(Floats(8, 2));
  clFinish(app.queue);
  const cl_uint before = references();
  // PoCL's threads let go of an event shortly after whoever waited for it goes on.
  const auto settled = [&](cl_uint most) {
    for (int i = 0; i < 1000 && references() > most; i++)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return references();
  };
  for (const bool own_queue : {false, false, true, true}) {
    device = interop::open_opencl(
        {.context = app.context, .device = app.device, .queue = own_queue ? nullptr : app.queue});
    on = {.device = device};
    EXPECT_GT(references(), before);
    {
      Tensor t = from_blob(OpenclBuffer{m}, {8}, {}, on);
      const Tensor weight = from_blob(OpenclBuffer{w, 4}, {4}, {}, on);
      t.assign((t + 1).flip({0})).realize();
      cl_event ready = interop::opencl_ready(t);
      interop::wait_for(t, ready);
      clReleaseEvent(ready);
      Jit jit([&](const std::vector<Tensor>& in) { return std::vector{in[0] * weight}; });
      for (int i = 0; i < 4; i++) jit({t.slice(0, 0, 4).contiguous().realize()});
      EXPECT_GT(interop::opencl_memory(t * 2).size_bytes, 0u);
      error_of<InvalidArgument>([&] { from_blob(OpenclBuffer{m}, {9}, {}, on); });
    }
    interop::close_opencl(device);
    // PoCL keeps one, of the last event of queues that are released.
    EXPECT_LE(settled(before + own_queue), before + own_queue);
    EXPECT_GE(references(), before);
  }
  device.clear();
}

// Threads that compute on the same lent queue as the application enqueues to.
TEST_P(OpenclSharing, AQueueOfSeveralThreads) {
  constexpr int kThreads = 3, kSteps = 40;
  std::vector<cl_mem> buffers;
  for (int i = 0; i <= kThreads; i++) buffers.push_back(app.buffer(Floats(64, float(i))));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; i++)
    threads.emplace_back([&, i] {
      Tensor t = from_blob(OpenclBuffer{buffers[size_t(i)]}, {64}, {}, on);
      for (int k = 0; k < kSteps; k++) t.assign(t + 1).realize();
    });
  for (int k = 0; k < kSteps; k++) app.add(buffers[kThreads], 1, 64);
  for (std::thread& t : threads) t.join();
  for (int i = 0; i <= kThreads; i++)
    EXPECT_EQ(app.read(buffers[size_t(i)], 64), Floats(64, float(i + kSteps)));
}

INSTANTIATE_TEST_SUITE_P(Tiers, OpenclSharing, testing::Values("", "svm", "fine-svm"),
                         [](const auto& info) {
                           const std::string disabled = info.param;
                           return disabled.empty()    ? "Addresses"
                                  : disabled == "svm" ? "Buffers"
                                                      : "Coarse";
                         });

TEST(OpenclLending, HandlesThatDoNotFitAreRefused) {
  Application app;
  const Application other;
  const auto refused = [](const char* part, const interop::OpenclApplication& a) {
    expect_in(part, error_of<InvalidArgument>([&] { interop::open_opencl(a); }));
  };
  refused("context is null", {});
  refused("device is null", {app.context, nullptr, app.queue});
  refused("another context", {app.context, app.device, other.queue});
}

// A queue without an order takes both sides' work, and each waits for the other's events.
TEST(OpenclLending, AQueueWithoutAnOrder) {
  Application app;
  clReleaseCommandQueue(app.queue);
  app.queue = app.new_queue(app.context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
  const std::string device =
      interop::open_opencl({.context = app.context, .device = app.device, .queue = app.queue});
  {
    cl_mem m = app.buffer(counting(6));
    Tensor t = from_blob(OpenclBuffer{m}, {6}, {}, {.device = device});
    for (int i = 1; i <= 20; ++i) {
      cl_int code = CL_SUCCESS;
      cl_event gate = clCreateUserEvent(app.context, &code), added = nullptr;
      const float ten = 10;
      const size_t count = 6;
      clSetKernelArg(app.add_kernel, 0, sizeof m, &m);
      clSetKernelArg(app.add_kernel, 1, sizeof ten, &ten);
      check(clEnqueueNDRangeKernel(app.queue, app.add_kernel, 1, nullptr, &count, nullptr, 1, &gate,
                                   &added));
      interop::wait_for(t, added);
      t.assign(t * 0.5f).realize();
      const cl_event ready = interop::opencl_ready(t);
      check(clSetUserEventStatus(gate, CL_COMPLETE));
      const float wanted = 10 - 10 / float(1 << i);  // of the element that was 0
      ASSERT_FLOAT_EQ(app.read(m, 6, 0, ready)[0], wanted) << i;
      for (cl_event e : {gate, added, ready}) clReleaseEvent(e);
    }
  }
  interop::close_opencl(device);
}

// The application's own references may go first.
TEST(OpenclLending, HandlesAreRetained) {
  auto app = std::make_unique<Application>();
  const std::string device =
      interop::open_opencl({.context = app->context, .device = app->device, .queue = app->queue});
  Tensor t = from_blob(OpenclBuffer{app->buffer(counting(4))}, {4}, {}, {.device = device});
  app.reset();
  EXPECT_EQ((t + 1).to_vector<float>(), (Floats{1, 2, 3, 4}));
  t = Tensor();
  interop::close_opencl(device);
}

}  // namespace
}  // namespace tuff::test
