// Images of an application: what their texels are as elements, and copies of them. Images have no
// address and no order of elements: the driver copies them from and to memory objects.
#include "devices/opencl/opencl_device.h"
// Behind the functions' table, which declares those that OpenCL 2.0 deprecates.
#include "devices/opencl_interop.h"

#include "base/check.h"

namespace tuff::devices {
namespace opencl {
namespace {

template <class T>
T of_image(const Context& c, cl_mem image, cl_image_info what) {
  const auto value = info<T>(c.api.clGetImageInfo, image, what);
  if (!value) fail<InvalidArgument>("{}: the memory object is no image", c.name);
  return *value;
}

constexpr const char* kImage = "the image";
constexpr std::pair<cl_channel_type, DType> kChannels[] = {
    {CL_SNORM_INT8, DType::I8},      {CL_SIGNED_INT8, DType::I8},     {CL_UNORM_INT8, DType::U8},
    {CL_UNSIGNED_INT8, DType::U8},   {CL_SNORM_INT16, DType::I16},    {CL_SIGNED_INT16, DType::I16},
    {CL_UNORM_INT16, DType::U16},    {CL_UNSIGNED_INT16, DType::U16}, {CL_SIGNED_INT32, DType::I32},
    {CL_UNSIGNED_INT32, DType::U32}, {CL_HALF_FLOAT, DType::F16},     {CL_FLOAT, DType::F32},
};

std::string name_of(cl_channel_type type) {
  switch (type) {
    case CL_UNORM_SHORT_565: return "CL_UNORM_SHORT_565";
    case CL_UNORM_SHORT_555: return "CL_UNORM_SHORT_555";
    case CL_UNORM_INT_101010: return "CL_UNORM_INT_101010";
    case CL_UNORM_INT_101010_2: return "CL_UNORM_INT_101010_2";
    case CL_UNORM_INT24: return "CL_UNORM_INT24";
    default: return fmt::format("{:#x}", type);
  }
}

DType dtype_of(const Context& c, cl_channel_type type) {
  for (const auto& [known, dtype] : kChannels)
    if (known == type) return dtype;
  fail<Unsupported>("{}: an image of channel type {}, whose channels are no elements of a dtype",
                    c.name, name_of(type));
}

void require_image(const Context& c, cl_mem image) {
  if (!image) fail<InvalidArgument>("{}: the image is null", c.name);
  const auto type = c.memory_info<cl_mem_object_type>(kImage, image, CL_MEM_TYPE);
  if (type == CL_MEM_OBJECT_BUFFER || type == CL_MEM_OBJECT_PIPE)
    fail<InvalidArgument>("{}: the memory object is no image: a buffer goes to from_blob()",
                          c.name);
  if (c.memory_info<cl_context>(kImage, image, CL_MEM_CONTEXT) != c.handle)
    fail<InvalidArgument>("{}: the image is of another context", c.name);
  if (const auto levels = of_image<cl_uint>(c, image, CL_IMAGE_NUM_MIP_LEVELS); levels > 1)
    fail<Unsupported>("{}: an image of {} mip levels", c.name, levels);
  if (const auto samples = of_image<cl_uint>(c, image, CL_IMAGE_NUM_SAMPLES); samples > 1)
    fail<Unsupported>("{}: an image of {} samples a texel", c.name, samples);
}

// Extents along x, y, z as copies count them.
struct Extents {
  std::array<size_t, 3> texels{1, 1, 1};
  size_t axes = 1;
};

Extents extents_of(const Context& c, cl_mem image) {
  const auto get = [&](cl_image_info what) { return of_image<size_t>(c, image, what); };
  const size_t width = get(CL_IMAGE_WIDTH);
  switch (c.memory_info<cl_mem_object_type>(kImage, image, CL_MEM_TYPE)) {
    case CL_MEM_OBJECT_IMAGE1D_ARRAY: return {{width, get(CL_IMAGE_ARRAY_SIZE), 1}, 2};
    case CL_MEM_OBJECT_IMAGE2D: return {{width, get(CL_IMAGE_HEIGHT), 1}, 2};
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
      return {{width, get(CL_IMAGE_HEIGHT), get(CL_IMAGE_ARRAY_SIZE)}, 3};
    case CL_MEM_OBJECT_IMAGE3D: return {{width, get(CL_IMAGE_HEIGHT), get(CL_IMAGE_DEPTH)}, 3};
    default: return {{width, 1, 1}, 1};
  }
}

// What the driver cannot do leaves the queue as it was.
void check_copy(const Context& c, cl_int code, const char* call) {
  if (code == CL_MEM_COPY_OVERLAP)
    fail<InvalidArgument>("{}: the image and the tensor share memory: nothing is to be copied",
                          c.name);
  if (code == CL_INVALID_OPERATION || code == CL_IMAGE_FORMAT_NOT_SUPPORTED ||
      code == CL_INVALID_IMAGE_SIZE || code == CL_MISALIGNED_SUB_BUFFER_OFFSET)
    fail<Unsupported>("{}: {} returned {}: the driver does not copy such an image", c.name, call,
                      error_name(code));
  c.check(code, call);
}

}  // namespace
}  // namespace opencl

OpenclTexels opencl_texels(hcq::Device& device, const interop::OpenclImage& i) {
  using namespace opencl;
  const Context& c = native(device).context();
  require_image(c, i.image);
  OpenclTexels out;
  out.dtype =
      dtype_of(c, of_image<cl_image_format>(c, i.image, CL_IMAGE_FORMAT).image_channel_data_type);
  const Extents all = extents_of(c, i.image);
  out.origin = i.origin;
  for (size_t axis = 0; axis < 3; ++axis) {
    const size_t extent = all.texels[axis], begin = i.origin[axis];
    const size_t rest = begin <= extent ? extent - begin : 0;
    out.region[axis] = i.region[axis] > 0 ? i.region[axis] : rest;
    if (rest == 0 || out.region[axis] > rest)
      fail<InvalidArgument>("{}: {} texels from {} on along axis {} of an image of {} x {} x {}",
                            c.name, out.region[axis], begin, "xyz"[axis], all.texels[0],
                            all.texels[1], all.texels[2]);
  }
  for (size_t axis = all.axes; axis-- > 0;) out.sizes.push_back(int64_t(out.region[axis]));
  out.sizes.push_back(
      int64_t(of_image<size_t>(c, i.image, CL_IMAGE_ELEMENT_SIZE) / size_bytes(out.dtype)));
  return out;
}

OpenclRows opencl_rows(hcq::Device& device, const interop::OpenclImage& i,
                       const OpenclTexels& texels) {
  using namespace opencl;
  const Context& c = native(device).context();
  OpenclRows out;
  out.buffer = c.buffer_beneath(kImage, i.image);
  if (!out.buffer)
    fail<InvalidArgument>(
        "{}: from_blob: the image was not created over a buffer: from_image() copies it", c.name);
  const size_t element = size_bytes(texels.dtype), channels = size_t(texels.sizes.back()),
               pitch = of_image<size_t>(c, i.image, CL_IMAGE_ROW_PITCH);
  out.strides = {int64_t(channels), 1};
  if (texels.sizes.size() == 3) out.strides.insert(out.strides.begin(), int64_t(pitch / element));
  out.offset = texels.origin[1] * pitch + texels.origin[0] * channels * element;
  out.read_only = c.memory_info<cl_mem_flags>(kImage, i.image, CL_MEM_FLAGS) & CL_MEM_READ_ONLY;
  return out;
}

uint64_t opencl_copy_texels(hcq::Device& device, const interop::OpenclImage& i,
                            const OpenclTexels& texels, const hcq::Span& span, OpenclCopy to) {
  using namespace opencl;
  ClDevice& d = native(device);
  const Context& c = d.context();
  ClQueue& queue = d.compute_queue();
  const Memory::Part part = d.memory().object_of(span);
  TUFF_CHECK(part.object, "{}: a copy of an image from memory that the device does not know",
             c.name);
  cl_event before = queue.marker(), copied = nullptr;
  const size_t *origin = texels.origin.data(), *region = texels.region.data();
  const bool to_image = to == OpenclCopy::ToImage;
  const cl_int code =
      to_image
          ? c.api.clEnqueueCopyBufferToImage(queue.handle(), part.object, i.image, part.offset,
                                             origin, region, 1, &before, &copied)
          : c.api.clEnqueueCopyImageToBuffer(queue.handle(), i.image, part.object, origin, region,
                                             part.offset, 1, &before, &copied);
  c.api.clReleaseEvent(before);
  check_copy(c, code, to_image ? "clEnqueueCopyBufferToImage" : "clEnqueueCopyImageToBuffer");
  const uint64_t value = queue.submit_wait(copied);
  c.api.clReleaseEvent(copied);
  return value;
}

}  // namespace tuff::devices
