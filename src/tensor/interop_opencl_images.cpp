// An application's OpenCL images as tensors: copies both ways, and tensors over images that lie in
// a buffer.
#include <tuff/interop/opencl.h>

#include "base/check.h"
#include "devices/opencl_interop.h"
#include "engine/device.h"
#include "tensor/impl.h"
#include "tensor/lent_device.h"

namespace tuff::interop {
namespace {

// An application's shared virtual memory is no memory object that images could be copied from.
Ref<engine::Buffer> in_object(const Tensor& t) {
  const Ref<engine::Buffer> memory = detail::memory_of(t);
  if (memory->on().hcq().adoption()->native_part(memory->span()).handle != 0) return memory;
  const Tensor copy =
      detail::derive(t, ir::make(ir::Op::Contiguous, t.dtype(), {detail::uop(t)}));
  return detail::memory_of(copy);
}

}  // namespace

Tensor from_image(const OpenclImage& image, const std::string& device) {
  const std::shared_ptr<engine::Device> on = engine::Device::get(device);
  const devices::OpenclTexels texels = devices::opencl_texels(on->hcq(), image);
  const ir::Shape shape = detail::shape_of(Sizes(texels.sizes.begin(), texels.sizes.end()));
  const auto memory = engine::Buffer::make(on, texels.dtype, ir::element_count(shape));
  memory->uses().until(devices::opencl_copy_texels(on->hcq(), image, texels, memory->span(),
                                                 devices::OpenclCopy::FromImage));
  return detail::wrap(ir::reshape(ir::buffer(memory), shape), on->name());
}

void copy_to_image(const Tensor& tensor, const OpenclImage& image) {
  const std::shared_ptr<engine::Device> on =
      detail::realized_on("CL", "copy_to_image", tensor).device;
  const devices::OpenclTexels texels = devices::opencl_texels(on->hcq(), image);
  if (tensor.dtype() != texels.dtype)
    fail<InvalidArgument>("copy_to_image: a tensor of {} into an image of {}: cast() it",
                          name(tensor.dtype()), name(texels.dtype));
  const Sizes sizes(texels.sizes.begin(), texels.sizes.end());
  if (!detail::same(tensor.sizes(), sizes))
    fail<ShapeError>("copy_to_image: a tensor of {} into texels of {}",
                     detail::text(tensor.sizes()), detail::text(sizes));
  const Ref<engine::Buffer> memory = in_object(tensor);
  memory->uses().until(devices::opencl_copy_texels(on->hcq(), image, texels, memory->span(),
                                                 devices::OpenclCopy::ToImage));
}

Tensor from_blob(const OpenclImage& image, const std::string& device, BlobOptions blob) {
  if (!blob.strides.empty())
    fail<InvalidArgument>("from_blob: an image has the strides of its rows: give none");
  hcq::Device& on = engine::Device::get(device)->hcq();
  const devices::OpenclTexels texels = devices::opencl_texels(on, image);
  const devices::OpenclRows rows = devices::opencl_rows(on, image, texels);
  blob.strides = rows.strides;
  blob.read_only = blob.read_only || rows.read_only;
  if (blob.deleter)
    blob.deleter = [deleter = blob.deleter, given = image.image](void*) { deleter(given); };
  const Sizes sizes(texels.sizes.begin(), texels.sizes.end());
  return from_blob(OpenclBuffer{rows.buffer, rows.offset}, sizes, std::move(blob),
                   {.dtype = texels.dtype, .device = device});
}

}  // namespace tuff::interop
