// An application's OpenCL images: texels as tensors, tensors as texels, tensors over images that
// lie in buffers, and what is refused. In both tiers of memory; also on Oclgrind.
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <tuff/interop/opencl.h>

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include <tuff/error.h>
#include "base/env.h"
#include "base/error_of.h"
#include "devices/opencl/api.h"
#include "devices/opencl/opencl.h"
#include "engine/device.h"

namespace tuff::test {
namespace {

using interop::copy_to_image;
using interop::from_blob;
using interop::from_image;
using interop::OpenclBuffer;
using interop::OpenclImage;
using Bytes = std::vector<uint8_t>;

void check(cl_int code) { ASSERT_EQ(code, CL_SUCCESS); }

template <class E, class F>
void expect_error(const std::string& part, F&& f) {
  const std::string text = error_of<E>(f);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

template <class T>
std::vector<T> counting(size_t count) {
  std::vector<T> out(count);
  std::iota(out.begin(), out.end(), T(1));
  return out;
}

struct Shape {
  cl_mem_object_type type;
  size_t width, height, depth, count;  // 0: no such axis
  Sizes sizes;                         // without channels
  std::array<size_t, 3> region;
};
const Shape kShapes[] = {
    {CL_MEM_OBJECT_IMAGE1D, 5, 0, 0, 0, {5}, {5, 1, 1}},
    {CL_MEM_OBJECT_IMAGE1D_ARRAY, 5, 0, 0, 3, {3, 5}, {5, 3, 1}},
    {CL_MEM_OBJECT_IMAGE2D, 5, 4, 0, 0, {4, 5}, {5, 4, 1}},
    {CL_MEM_OBJECT_IMAGE2D_ARRAY, 5, 4, 0, 3, {3, 4, 5}, {5, 4, 3}},
    {CL_MEM_OBJECT_IMAGE3D, 5, 4, 2, 0, {2, 4, 5}, {5, 4, 2}},
};

// By TUFF_CL_DISABLE; on a queue that the application shares.
class OpenclImages : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cl_platform_id platform = nullptr;
    check(clGetPlatformIDs(1, &platform, nullptr));
    check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, nullptr));
    context = new_context();
    cl_int code = CL_SUCCESS;
    queue = clCreateCommandQueue(context, id, 0, &code);
    check(code);
    device = interop::open_opencl({.context = context, .device = id, .queue = queue});
  }
  void TearDown() override {
    interop::close_opencl(device);
    for (cl_mem m : memory) clReleaseMemObject(m);
    clReleaseCommandQueue(queue);
    clReleaseContext(context);
  }
  cl_context new_context() const {
    cl_int code = CL_SUCCESS;
    cl_context c = clCreateContext(nullptr, 1, &id, nullptr, nullptr, &code);
    check(code);
    return c;
  }
  cl_mem image(const Shape& s, cl_image_format format, cl_mem over = nullptr,
               cl_mem_flags flags = CL_MEM_READ_WRITE) {
    cl_image_desc desc{};
    desc.image_type = s.type;
    desc.image_width = s.width;
    desc.image_height = s.height;
    desc.image_depth = s.depth;
    desc.image_array_size = s.count;
    desc.buffer = over;
    cl_int code = CL_SUCCESS;
    cl_mem m = clCreateImage(context, flags, &format, &desc, nullptr, &code);
    check(code);
    return memory.emplace_back(m);
  }
  cl_mem buffer(const std::vector<float>& values, cl_mem_flags flags = CL_MEM_READ_WRITE) {
    cl_int code = CL_SUCCESS;
    cl_mem m = clCreateBuffer(context, flags | CL_MEM_COPY_HOST_PTR, values.size() * 4,
                              const_cast<float*>(values.data()), &code);
    check(code);
    return memory.emplace_back(m);
  }
  void write(cl_mem m, const Shape& s, const void* texels) const {
    const size_t origin[3]{};
    check(clEnqueueWriteImage(queue, m, CL_TRUE, origin, s.region.data(), 0, 0, texels, 0, nullptr,
                              nullptr));
  }
  template <class T>
  std::vector<T> read(cl_mem m, const Shape& s, size_t count) const {
    std::vector<T> out(count);
    const size_t origin[3]{};
    check(clEnqueueReadImage(queue, m, CL_TRUE, origin, s.region.data(), 0, 0, out.data(), 0,
                             nullptr, nullptr));
    return out;
  }
  TensorOptions on(DType t = DType::F32) const { return {.dtype = t, .device = device}; }

  const EnvOverride tier_{Env::TUFF_CL_DISABLE, GetParam()};
  cl_device_id id = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  std::string device;
  std::vector<cl_mem> memory;
};

TEST_P(OpenclImages, TexelsOfEveryTypeOfImageBothWays) {
  for (const Shape& s : kShapes) {
    const size_t count = 4 * s.region[0] * s.region[1] * s.region[2];
    const std::vector<float> texels = counting<float>(count);
    cl_mem m = image(s, {CL_RGBA, CL_FLOAT});
    write(m, s, texels.data());
    Sizes sizes = s.sizes;
    sizes.push_back(4);
    const Tensor t = from_image({m}, device);
    EXPECT_EQ(t.sizes(), sizes);
    EXPECT_EQ(t.device(), device);
    EXPECT_EQ(t.to_vector<float>(), texels) << s.type;
    copy_to_image(t.flip({-1}) * 2, {m});
    const std::vector<float> after = read<float>(m, s, count);
    for (size_t i = 0; i < count; i++) EXPECT_EQ(after[i], 2 * texels[i / 4 * 4 + 3 - i % 4]) << i;
  }
}

// What the channels hold, integers undivided, in the order of memory.
TEST_P(OpenclImages, ChannelTypesAreDtypes) {
  const Shape& s = kShapes[2];
  struct Row {
    cl_image_format format;
    DType dtype;
    int64_t channels;
  };
  const Row rows[] = {
      {{CL_R, CL_FLOAT}, DType::F32, 1},
      {{CL_RGBA, CL_FLOAT}, DType::F32, 4},
      {{CL_RGBA, CL_HALF_FLOAT}, DType::F16, 4},
      {{CL_RGBA, CL_UNORM_INT8}, DType::U8, 4},
      {{CL_BGRA, CL_UNORM_INT8}, DType::U8, 4},
      {{CL_RGBA, CL_SNORM_INT8}, DType::I8, 4},
      {{CL_R, CL_UNSIGNED_INT8}, DType::U8, 1},
      {{CL_RGBA, CL_SIGNED_INT8}, DType::I8, 4},
      {{CL_RGBA, CL_UNORM_INT16}, DType::U16, 4},
      {{CL_RGBA, CL_SNORM_INT16}, DType::I16, 4},
      {{CL_R, CL_UNSIGNED_INT16}, DType::U16, 1},
      {{CL_RGBA, CL_SIGNED_INT16}, DType::I16, 4},
      {{CL_RGBA, CL_UNSIGNED_INT32}, DType::U32, 4},
      {{CL_R, CL_SIGNED_INT32}, DType::I32, 1},
  };
  for (const Row& row : rows) {
    const size_t bytes = 20 * size_t(row.channels) * size_bytes(row.dtype);
    Bytes texels = counting<uint8_t>(bytes);
    for (uint8_t& b : texels) b &= 0x3f;  // no f16 that is NaN
    cl_mem m = image(s, row.format), other = image(s, row.format);
    write(m, s, texels.data());
    const Tensor t = from_image({m}, device);
    EXPECT_EQ(t.dtype(), row.dtype);
    EXPECT_EQ(t.sizes(), (Sizes{4, 5, row.channels}));
    Bytes seen(bytes);
    t.copy_to(seen.data(), bytes);
    EXPECT_EQ(seen, texels) << name(row.dtype);
    copy_to_image(t, {other});
    EXPECT_EQ(read<uint8_t>(other, s, bytes), texels) << name(row.dtype);
  }
}

TEST_P(OpenclImages, PartsOfAnImage) {
  const Shape& s = kShapes[2];  // 5 x 4
  cl_mem m = image(s, {CL_R, CL_FLOAT});
  const std::vector<float> texels = counting<float>(20);
  write(m, s, texels.data());
  const Tensor middle = from_image({.image = m, .origin = {1, 2, 0}, .region = {3, 1, 0}}, device);
  EXPECT_EQ(middle.sizes(), (Sizes{1, 3, 1}));
  EXPECT_EQ(middle.to_vector<float>(), (std::vector<float>{12, 13, 14}));
  const Tensor end = from_image({.image = m, .origin = {3, 2, 0}}, device);
  EXPECT_EQ(end.to_vector<float>(), (std::vector<float>{14, 15, 19, 20}));
  // A part of a tensor's memory into a part of the image.
  const Tensor rows = Tensor::from({1, 2, 3, 4, 5, 6, 7, 8}, {4, 2, 1}, on()).realize();
  copy_to_image(rows.slice(0, 1, 3), {.image = m, .origin = {0, 0, 0}, .region = {2, 2, 1}});
  std::vector<float> want = texels;
  want[0] = 3, want[1] = 4, want[5] = 5, want[6] = 6;
  EXPECT_EQ(read<float>(m, s, 20), want);
}

// The copy takes its place in the order of calls, and the host's reads wait for it.
TEST_P(OpenclImages, CopiesFollowTheOrderOfCalls) {
  const Shape& s = kShapes[2];
  cl_mem m = image(s, {CL_R, CL_FLOAT});
  std::vector<float> texels(20);
  for (int round = 0; round < 20; round++) {
    std::fill(texels.begin(), texels.end(), float(round));
    const size_t origin[3]{};
    check(clEnqueueWriteImage(queue, m, CL_FALSE, origin, s.region.data(), 0, 0, texels.data(), 0,
                              nullptr, nullptr));
    copy_to_image(from_image({m}, device) * 2 + 1, {m});
    const Tensor t = from_image({m}, device);
    copy_to_image(Tensor::zeros({4, 5, 1}, on()), {m});
    EXPECT_EQ(t.to_vector<float>(), std::vector<float>(20, float(2 * round + 1)));
    EXPECT_EQ(read<float>(m, s, 20), std::vector<float>(20, 0));
  }
}

TEST_P(OpenclImages, AnImageOverABufferIsSharedWithoutACopy) {
  cl_mem b = buffer(counting<float>(12));
  const Shape line{CL_MEM_OBJECT_IMAGE1D_BUFFER, 3, 0, 0, 0, {3}, {3, 1, 1}};
  cl_mem m = image(line, {CL_RGBA, CL_FLOAT}, b);
  int returned = 0;
  {
    Tensor t = from_blob(OpenclImage{.image = m, .origin = {1, 0, 0}}, device,
                         {.deleter = [&](void* given) {
                           EXPECT_EQ(given, m);
                           returned++;
                         }});
    EXPECT_EQ(t.sizes(), (Sizes{2, 4}));
    EXPECT_EQ(t.to_vector<float>(), (std::vector<float>{5, 6, 7, 8, 9, 10, 11, 12}));
    t.assign(t + 100).realize();
    std::vector<float> seen(12);
    check(clEnqueueReadBuffer(queue, b, CL_TRUE, 0, 48, seen.data(), 0, nullptr, nullptr));
    EXPECT_EQ(seen[3], 4);
    EXPECT_EQ(seen[4], 105);
    EXPECT_EQ(seen[11], 112);
    expect_error<InvalidArgument>("strides",
                                  [&] { from_blob(OpenclImage{m}, device, {.strides = {4, 1}}); });
  }
  Tensor::ones({1}, on()).realize().item();
  EXPECT_EQ(returned, 1);
  cl_mem constant = image(line, {CL_RGBA, CL_FLOAT}, b, CL_MEM_READ_ONLY);
  cl_mem_flags flags = 0;
  check(clGetMemObjectInfo(constant, CL_MEM_FLAGS, sizeof flags, &flags, nullptr));
  Tensor fixed = from_blob(OpenclImage{constant}, device);
  if (flags & CL_MEM_READ_ONLY)  // Oclgrind 21.10 gives the buffer's
    expect_error<InvalidArgument>("read-only", [&] { fixed.assign(fixed + 1); });
  cl_mem plain = image(kShapes[2], {CL_R, CL_FLOAT});
  expect_error<InvalidArgument>("from_image()", [&] { from_blob(OpenclImage{plain}, device); });
  expect_error<InvalidArgument>("from_image()",
                                [&] { from_blob(OpenclBuffer{plain}, {4}, {}, on()); });
}

// No software driver has cl_khr_image2d_from_buffer: these answers are a driver's that has.
cl_mem fake_image = nullptr, fake_buffer = nullptr;
constexpr size_t kPitch = 48;
decltype(&clGetImageInfo) real_image_info = nullptr;
decltype(&clGetMemObjectInfo) real_memory_info = nullptr;

cl_int CL_API_CALL image_info(cl_mem m, cl_image_info what, size_t size, void* value,
                              size_t* size_ret) {
  if (m != fake_image || what != CL_IMAGE_ROW_PITCH)
    return real_image_info(m, what, size, value, size_ret);
  *static_cast<size_t*>(value) = kPitch;
  return CL_SUCCESS;
}
cl_int CL_API_CALL memory_info(cl_mem m, cl_mem_info what, size_t size, void* value,
                               size_t* size_ret) {
  if (m != fake_image || what != CL_MEM_ASSOCIATED_MEMOBJECT)
    return real_memory_info(m, what, size, value, size_ret);
  *static_cast<cl_mem*>(value) = fake_buffer;
  return CL_SUCCESS;
}

TEST_P(OpenclImages, RowsOfA2dImageOverABufferHaveItsPitch) {
  devices::ClApi& api = devices::opencl_api(engine::Device::get(device)->hcq());
  real_image_info = api.clGetImageInfo;
  real_memory_info = api.clGetMemObjectInfo;
  api.clGetImageInfo = image_info;
  api.clGetMemObjectInfo = memory_info;
  std::vector<uint16_t> memory_words = counting<uint16_t>(4 * kPitch / 2);
  std::vector<float> as_floats(memory_words.size() / 2);
  std::memcpy(as_floats.data(), memory_words.data(), 4 * kPitch);
  fake_buffer = buffer(as_floats);
  fake_image = image(kShapes[2], {CL_RGBA, CL_UNSIGNED_INT16});  // rows of 40 bytes
  {
    const Tensor t = from_blob(OpenclImage{.image = fake_image, .origin = {3, 1, 0}}, device);
    EXPECT_EQ(t.sizes(), (Sizes{3, 2, 4}));
    EXPECT_EQ(t.to_vector<uint16_t>(),
              (std::vector<uint16_t>{37, 38, 39, 40, 41, 42, 43, 44, 61, 62, 63, 64,
                                     65, 66, 67, 68, 85, 86, 87, 88, 89, 90, 91, 92}));
  }
  api.clGetImageInfo = real_image_info;
  api.clGetMemObjectInfo = real_memory_info;
}

TEST_P(OpenclImages, WhatDoesNotFitIsRefused) {
  cl_mem m = image(kShapes[2], {CL_RGBA, CL_UNORM_INT8}), b = buffer({1, 2});
  const auto refused = [&](const char* part, const OpenclImage& i) {
    expect_error<InvalidArgument>(part, [&] { from_image(i, device); });
  };
  refused("null", {});
  refused("no image", {b});
  refused("axis x", {.image = m, .origin = {5, 0, 0}});
  refused("3 texels from 2 on along axis y of an image of 5 x 4 x 1",
          {.image = m, .origin = {0, 2, 0}, .region = {0, 3, 0}});
  refused("axis z", {.image = m, .region = {0, 0, 2}});
  expect_error<InvalidArgument>("cast()",
                                [&] { copy_to_image(Tensor::ones({4, 5, 4}, on()), {m}); });
  expect_error<ShapeError>("(4, 5, 4)",
                           [&] { copy_to_image(Tensor::ones({4, 5}, on(DType::U8)), {m}); });
  expect_error<InvalidArgument>("undefined", [&] { copy_to_image(Tensor(), {m}); });
  expect_error<InvalidArgument>("not an OpenCL device", [&] { from_image({m}, "CPU"); });
  expect_error<InvalidArgument>("to(\"CL\")", [&] {
    copy_to_image(Tensor::ones({4, 5, 4}, {.dtype = DType::U8, .device = "CPU"}), {m});
  });
  cl_context other = new_context();
  cl_int code = CL_SUCCESS;
  const cl_image_format format{CL_RGBA, CL_UNORM_INT8};
  cl_image_desc desc{};
  desc.image_type = CL_MEM_OBJECT_IMAGE2D;
  desc.image_width = desc.image_height = 2;
  cl_mem foreign = clCreateImage(other, CL_MEM_READ_WRITE, &format, &desc, nullptr, &code);
  check(code);
  refused("another context", {foreign});
  clReleaseMemObject(foreign);
  clReleaseContext(other);
}

// Formats that few drivers have, as one that has them answers.
cl_image_format fake_format{};
cl_uint fake_levels = 0, fake_samples = 0;
cl_int CL_API_CALL format_info(cl_mem m, cl_image_info what, size_t size, void* value,
                               size_t* size_ret) {
  if (what == CL_IMAGE_FORMAT)
    *static_cast<cl_image_format*>(value) = fake_format;
  else if (what == CL_IMAGE_NUM_MIP_LEVELS)
    *static_cast<cl_uint*>(value) = fake_levels;
  else if (what == CL_IMAGE_NUM_SAMPLES)
    *static_cast<cl_uint*>(value) = fake_samples;
  else
    return real_image_info(m, what, size, value, size_ret);
  return CL_SUCCESS;
}

TEST_P(OpenclImages, FormatsWithoutADtypeAreNamed) {
  devices::ClApi& api = devices::opencl_api(engine::Device::get(device)->hcq());
  real_image_info = api.clGetImageInfo;
  api.clGetImageInfo = format_info;
  cl_mem m = image(kShapes[2], {CL_RGBA, CL_UNORM_INT8});
  const auto refused = [&](const char* part) {
    expect_error<Unsupported>(part, [&] { from_image({m}, device); });
  };
  fake_format = {CL_RGB, CL_UNORM_SHORT_565};
  refused("CL_UNORM_SHORT_565");
  fake_format = {CL_RGBA, CL_UNORM_INT_101010_2};
  refused("CL_UNORM_INT_101010_2");
  fake_format = {CL_RGBA, 0x7777};
  refused("0x7777");
  fake_format = {CL_RGBA, CL_UNORM_INT8};
  fake_levels = 3;
  refused("3 mip levels");
  fake_levels = 1, fake_samples = 4;
  refused("4 samples");
  fake_samples = 0;
  api.clGetImageInfo = real_image_info;
}

// What the driver refuses is an error of the call: the device goes on.
cl_int CL_API_CALL no_copy(cl_command_queue, cl_mem, cl_mem, const size_t*, const size_t*, size_t,
                           cl_uint, const cl_event*, cl_event*) {
  return CL_IMAGE_FORMAT_NOT_SUPPORTED;
}

TEST_P(OpenclImages, ARefusedCopyLeavesTheDeviceAsItWas) {
  devices::ClApi& api = devices::opencl_api(engine::Device::get(device)->hcq());
  cl_mem m = image(kShapes[2], {CL_R, CL_FLOAT});
  const auto real = api.clEnqueueCopyImageToBuffer;
  api.clEnqueueCopyImageToBuffer = no_copy;
  expect_error<Unsupported>("CL_IMAGE_FORMAT_NOT_SUPPORTED", [&] { from_image({m}, device); });
  api.clEnqueueCopyImageToBuffer = real;
  EXPECT_EQ(from_image({m}, device).sizes(), (Sizes{4, 5, 1}));
  EXPECT_EQ((Tensor::ones({2}, on()) + 1).to_vector<float>(), (std::vector<float>{2, 2}));
}

// Memory of tensors that is shared virtual memory gets an object when one is first wanted.
cl_mem CL_API_CALL no_buffer(cl_context, cl_mem_flags, size_t, void*, cl_int* code) {
  *code = CL_INVALID_HOST_PTR;
  return nullptr;
}

class OpenclSvmImages : public OpenclImages {};

TEST_P(OpenclSvmImages, ADriverThatMakesNoObjectOverIt) {
  devices::ClApi& api = devices::opencl_api(engine::Device::get(device)->hcq());
  const Shape& s = kShapes[2];
  cl_mem m = image(s, {CL_R, CL_FLOAT});
  const Tensor t = (Tensor::ones({4, 5, 1}, on()) * 3).realize();
  const auto real = api.clCreateBuffer;
  api.clCreateBuffer = no_buffer;
  expect_error<Unsupported>("TUFF_CL_DISABLE=svm", [&] { copy_to_image(t, {m}); });
  api.clCreateBuffer = real;
  copy_to_image(t, {m});
  EXPECT_EQ(read<float>(m, s, 20), std::vector<float>(20, 3));
}

std::string tier_name(const testing::TestParamInfo<const char*>& info) {
  const std::string disabled = info.param;
  return disabled.empty() ? "Addresses" : disabled == "svm" ? "Buffers" : "Coarse";
}
INSTANTIATE_TEST_SUITE_P(Tiers, OpenclImages, testing::Values("", "svm", "fine-svm"), tier_name);
INSTANTIATE_TEST_SUITE_P(Tiers, OpenclSvmImages, testing::Values("", "fine-svm"), tier_name);

// Shared virtual memory of the application lies in no memory object.
TEST(OpenclImageSources, SharedVirtualMemoryOfTheApplication) {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  check(clGetPlatformIDs(1, &platform, nullptr));
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &id, nullptr));
  cl_device_svm_capabilities svm = 0;
  clGetDeviceInfo(id, CL_DEVICE_SVM_CAPABILITIES, sizeof svm, &svm, nullptr);
  if (!svm) GTEST_SKIP() << "the driver has no shared virtual memory";
  cl_int code = CL_SUCCESS;
  cl_context context = clCreateContext(nullptr, 1, &id, nullptr, nullptr, &code);
  check(code);
  cl_command_queue queue = clCreateCommandQueue(context, id, 0, &code);
  check(code);
  const std::string device =
      interop::open_opencl({.context = context, .device = id, .queue = queue});
  const cl_image_format format{CL_R, CL_FLOAT};
  cl_image_desc desc{};
  desc.image_type = CL_MEM_OBJECT_IMAGE1D;
  desc.image_width = 4;
  cl_mem m = clCreateImage(context, CL_MEM_READ_WRITE, &format, &desc, nullptr, &code);
  check(code);
  void* p = clSVMAlloc(context, CL_MEM_READ_WRITE, 64, 0);
  const std::vector<float> values{4, 3, 2, 1};
  check(clEnqueueSVMMemcpy(queue, CL_TRUE, p, values.data(), 16, 0, nullptr, nullptr));
  copy_to_image(from_blob(interop::OpenclSvm{p, 64}, {4, 1}, {}, {.device = device}), {m});
  EXPECT_EQ(from_image({m}, device).to_vector<float>(), values);
  clFinish(queue);
  interop::close_opencl(device);
  clSVMFree(context, p);
  clReleaseMemObject(m);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
}

}  // namespace
}  // namespace tuff::test
