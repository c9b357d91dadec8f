// An OpenCL program and tuff on one buffer, context and queue: the program's kernel moves
// particles, tuff takes their mean away, the program's next kernel starts from that. Nothing is
// copied, and nothing but the order of the calls says who comes first. Usage:
// example_opencl_sharing [STEPS].
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <tuff/interop/opencl.h>

using tuff::Tensor;

namespace {

constexpr int64_t kParticles = 1000;
constexpr float kStep = 0.25f;

const char* const kSource = R"(
kernel void move(global float2* at, float step) {
  const size_t i = get_global_id(0);
  at[i] += step * (float2)(1.0f + (i & 3), 2.0f);
})";

void check(cl_int code, const char* call) {
  if (code == CL_SUCCESS) return;
  std::fprintf(stderr, "%s returned %d\n", call, code);
  std::exit(1);
}

// What any OpenCL program has.
struct Program {
  Program() {
    cl_platform_id platform = nullptr;
    check(clGetPlatformIDs(1, &platform, nullptr), "clGetPlatformIDs");
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), "clGetDeviceIDs");
    cl_int code = CL_SUCCESS;
    context = clCreateContext(nullptr, 1, &device, nullptr, nullptr, &code);
    check(code, "clCreateContext");
    queue = clCreateCommandQueueWithProperties(context, device, nullptr, &code);
    check(code, "clCreateCommandQueueWithProperties");
    const char* text = kSource;
    program = clCreateProgramWithSource(context, 1, &text, nullptr, &code);
    check(code, "clCreateProgramWithSource");
    check(clBuildProgram(program, 1, &device, "", nullptr, nullptr), "clBuildProgram");
    kernel = clCreateKernel(program, "move", &code);
    check(code, "clCreateKernel");
    particles = clCreateBuffer(context, CL_MEM_READ_WRITE, kBytes, nullptr, &code);
    check(code, "clCreateBuffer");
    const float zero = 0;
    check(clEnqueueFillBuffer(queue, particles, &zero, sizeof zero, 0, kBytes, 0, nullptr, nullptr),
          "clEnqueueFillBuffer");
  }
  ~Program() {
    clReleaseMemObject(particles);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
  }
  Program(const Program&) = delete;
  void move() {
    const size_t count = kParticles;
    check(clSetKernelArg(kernel, 0, sizeof particles, &particles), "clSetKernelArg");
    check(clSetKernelArg(kernel, 1, sizeof kStep, &kStep), "clSetKernelArg");
    check(clEnqueueNDRangeKernel(queue, kernel, 1, nullptr, &count, nullptr, 0, nullptr, nullptr),
          "clEnqueueNDRangeKernel");
  }
  std::vector<float> read() const {
    std::vector<float> values(size_t(kParticles) * 2);
    check(clEnqueueReadBuffer(queue, particles, CL_TRUE, 0, kBytes, values.data(), 0, nullptr,
                              nullptr),
          "clEnqueueReadBuffer");
    return values;
  }

  static constexpr size_t kBytes = kParticles * 2 * sizeof(float);
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_program program = nullptr;
  cl_kernel kernel = nullptr;
  cl_mem particles = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 8;
  Program program;
  const std::string device = tuff::interop::open_opencl(
      {.context = program.context, .device = program.device, .queue = program.queue});
  float worst = 0;
  {
    Tensor particles = tuff::interop::from_blob(tuff::interop::OpenclBuffer{program.particles},
                                                {kParticles, 2}, {}, {.device = device});
    for (int i = 0; i < steps; i++) {
      program.move();
      particles.assign(particles - particles.mean({0}, true)).realize();
    }
    // Every fourth particle is as fast as the others of its kind: 1, 2, 3 or 4, 2.5 in the mean.
    const std::vector<float> at = program.read();
    for (int64_t i = 0; i < kParticles; i++) {
      const float x = float(steps) * kStep * (float(i % 4) - 1.5f);
      worst = std::max({worst, std::abs(at[size_t(i) * 2] - x), std::abs(at[size_t(i) * 2 + 1])});
    }
  }
  tuff::interop::close_opencl(device);
  std::printf("%d steps of %lld particles on %s: off by %g\n", steps, (long long)kParticles,
              device.c_str(), double(worst));
  return worst < 1e-3f ? 0 : 1;
}
