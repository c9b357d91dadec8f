// Sharing with an application that uses OpenCL itself: tuff on the application's context and queue,
// tensors over its memory, the memory beneath tensors, events between its work and tuff's. For
// users who include OpenCL's headers; there only where tuff was built with them. Compiles without
// linking a loader; tuff opens libOpenCL.so.1, as the application should.
//
// The rules: tuff retains handles, so that the application may release its own. Only one side at a
// time writes memory that both use. On an in-order queue that both use the order is that of the
// calls: what realize() submits runs after what was enqueued before it. On different queues, and on
// one that was created out of order, an application waits for opencl_ready() before it touches the
// memory, and says with wait_for() what tuff has to wait for. What the host reads or writes
// (item(), copy_to(), fine-grained memory) takes a wait_for() on any queue.
#pragma once

#include <string>

#include <tuff/interop/opencl_device.h>
#include <tuff/tensor.h>

namespace tuff::interop {

/// Opens the application's device and gives its name, "CL:app0", for TensorOptions::device and
/// Tensor::to(). Each call is a device of its own. InvalidArgument for handles that are null or do
/// not belong together; Unsupported, with the reason, for a device that tuff cannot use.
std::string open_opencl(const OpenclApplication& application);

/// Waits for what was enqueued to the queue and lets go of the application's handles.
/// InvalidArgument, and the device stays open, while tensors or Jits still hold memory of it (the
/// text says how much) or no application's device has that name.
void close_opencl(const std::string& device);

/// A tensor over the application's memory, without a copy, on its device (options.device).
/// blob.deleter is called, with the handle that was given, as Tensor::from_blob() says.
/// InvalidArgument for memory that is too short, begins within an element, belongs to another
/// context or has flags that forbid it.
Tensor from_blob(const OpenclBuffer& memory, const Sizes& sizes, BlobOptions blob = {},
                 const TensorOptions& options = {});
/// The same of shared virtual memory. Unsupported on a device without, and with
/// TUFF_CL_DISABLE=svm.
Tensor from_blob(const OpenclSvm& memory, const Sizes& sizes, BlobOptions blob = {},
                 const TensorOptions& options = {});

/// The texels of an application's image, copied on the device's queue; does not wait. Channels are
/// the last axis, in the order that the image has in memory (CL_BGRA: blue first), also where there
/// is one: (W, C), (H, W, C), (D, H, W, C); of arrays (N, W, C), (N, H, W, C). Elements are what
/// the channels hold: f32, f16, i8, i16, i32, u8, u16 or u32; of normalized types the integers
/// (CL_UNORM_INT8 is u8, 0 to 255). InvalidArgument for what is no image of the device's context or
/// for parts that it does not have; Unsupported, naming it, for packed channel types
/// (CL_UNORM_SHORT_565), mip levels and several samples.
Tensor from_image(const OpenclImage& image, const std::string& device);
/// The reverse: the elements become the image's texels, behind what was enqueued before. Realizes
/// the tensor, does not wait; opencl_ready() tells when it is done. The tensor is on an OpenCL
/// device of the image's context, and has the dtype and the sizes that from_image() gives
/// (InvalidArgument, ShapeError).
void copy_to_image(const Tensor& tensor, const OpenclImage& image);
/// A tensor over the texels of an image that was created over a buffer (a 1D image buffer, or a 2D
/// image by cl_khr_image2d_from_buffer, whose rows lie CL_IMAGE_ROW_PITCH apart): without a copy,
/// with the sizes and dtype of from_image(). blob.deleter is called with the image, blob.strides
/// stay empty. InvalidArgument for other images, and as from_blob() of an OpenclBuffer.
Tensor from_blob(const OpenclImage& image, const std::string& device, BlobOptions blob = {});

/// Where the tensor lies; realizes it, does not wait for it. On any OpenCL device. Valid until the
/// tensor and all that shares its memory has gone, or was assigned to; nothing is retained for the
/// caller. InvalidArgument for tensors elsewhere.
OpenclRegion opencl_memory(const Tensor& tensor);

/// An event that completes when everything that tuff does with the tensor has finished. Realizes
/// the tensor, does not wait. The caller releases it.
cl_event opencl_ready(const Tensor& tensor);

/// What tuff does on the tensor's device from now on begins when the event has completed, and so
/// does what the host reads of the tensor. It has to complete within TUFF_TIMEOUT_MS once the host
/// waits for tuff's results: a device without progress counts as lost. InvalidArgument for an event
/// of another context.
void wait_for(const Tensor& tensor, cl_event event);

}  // namespace tuff::interop
