// Tensors over memory of the caller: which elements strides mean, as movement of a flat buffer.
#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/os_data_file.h"
#include "engine/device.h"
#include "engine/mapped_file.h"
#include "tensor/impl.h"

namespace tuff {
namespace {

struct StridedAxis {
  int64_t axis = 0, extent = 0, stride = 0;  // stride > 0, in elements
};

// A layout as it lies: axes by falling stride; those that repeat or run backwards apart.
struct Layout {
  std::vector<StridedAxis> axes;
  Axes reversed, repeated;
  int64_t before = 0;  // elements in front of the one that the pointer names
  int64_t count = 1;   // from the first element in memory to the last
};

int64_t row_major_count(const std::vector<int64_t>& extents) {
  return std::accumulate(extents.begin(), extents.end(), int64_t(1), std::multiplies<>());
}

// Strides of axes of one element do not count.
bool is_row_major(const std::vector<int64_t>& extents, const std::vector<int64_t>& strides) {
  int64_t inside = 1;
  for (size_t i = strides.size(); i-- > 0;) {
    if (extents[i] != 1 && strides[i] != inside) return false;
    inside *= extents[i];
  }
  return true;
}

// How far an axis reaches; ShapeError beyond all memory.
int64_t reach(const StridedAxis& a, int64_t element_bytes, const Sizes& sizes) {
  const __int128 elements = __int128(a.extent - 1) * a.stride;
  if (elements * element_bytes >= (__int128(1) << 62))
    fail<ShapeError>("from_blob: {} with a stride of {} is more memory than there is",
                     detail::text(sizes), a.stride);
  return int64_t(elements);
}

Layout layout_of(const Sizes& sizes, const std::vector<int64_t>& strides, DType t) {
  Layout out;
  for (size_t i = 0; i < strides.size(); i++) {
    const int64_t extent = sizes[i], axis = int64_t(i);
    if (extent == 1) continue;
    if (strides[i] == 0) {
      out.repeated.push_back(axis);
      continue;
    }
    if (strides[i] == INT64_MIN)
      fail<ShapeError>("from_blob: a stride of {} is more memory than there is", strides[i]);
    const StridedAxis a{axis, extent, std::abs(strides[i])};
    const int64_t span = reach(a, int64_t(size_bytes(t)), sizes);
    if (strides[i] < 0) {
      out.reversed.push_back(axis);
      out.before += span;
    }
    out.count += span;
    out.axes.push_back(a);
  }
  std::stable_sort(out.axes.begin(), out.axes.end(),
                   [](const auto& a, const auto& b) { return a.stride > b.stride; });
  int64_t inside = out.count;
  for (const StridedAxis& a : out.axes) {
    inside -= (a.extent - 1) * a.stride;
    if (inside > a.stride)
      fail<ShapeError>("from_blob: elements of {} with strides {} overlap", detail::text(sizes),
                       detail::text(Sizes(strides)));
  }
  return out;
}

// The elements of a layout out of the row of memory that holds them: axis by axis, the outermost
// first, rows of one stride's length are cut and what no element lies in is left out.
Tensor taken(const Tensor& row, const Layout& layout, const Sizes& sizes) {
  Tensor t = row;
  int64_t length = layout.count;
  for (const StridedAxis& a : layout.axes) {
    const int64_t d = t.dim() - 1, inside = length - (a.extent - 1) * a.stride;
    // The last row ends with its last element: the rest of it is never read.
    Sizes shape = t.sizes();
    shape[size_t(d)] = a.extent;
    shape.push_back(a.stride);
    t = t.pad({0, a.extent * a.stride - length}).reshape(shape).slice(d + 1, 0, inside);
    length = inside;
  }
  // Axes stand in the order of their strides, then one of a single element.
  Axes order(sizes.size());
  Sizes shape;
  for (const StridedAxis& a : layout.axes) shape.push_back(a.extent);
  size_t singles = layout.axes.size();
  for (size_t i = 0; i < sizes.size(); i++) {
    const auto at = std::ranges::find(layout.axes, int64_t(i), &StridedAxis::axis);
    if (at != layout.axes.end()) {
      order[i] = at - layout.axes.begin();
    } else {
      order[i] = int64_t(singles++);
      shape.push_back(1);
    }
  }
  t = t.reshape(shape).permute(order);
  if (!layout.repeated.empty()) t = t.expand(sizes);
  return layout.reversed.empty() ? t : t.flip(layout.reversed);
}

void check_layout(const Sizes& sizes, const BlobOptions& blob, const TensorOptions& options) {
  const DType t = options.dtype;
  detail::require_numbers("from_blob", sizes);
  detail::require_element_type("from_blob", t);
  ir::element_count(detail::shape_of(sizes));
  if (!blob.strides.empty() && blob.strides.size() != sizes.size())
    fail<ShapeError>("from_blob: {} strides for the {} axes of {}", blob.strides.size(),
                     sizes.size(), detail::text(sizes));
  if (options.requires_grad && !is_float(t))
    fail<InvalidArgument>("requires_grad: {} has no gradient, only floats do", name(t));
}

void check_pointer(const void* data, const Sizes& sizes, DType t) {
  const int64_t count = ir::element_count(detail::shape_of(sizes));
  if (data == nullptr && count > 0)
    fail<InvalidArgument>("from_blob: a null pointer for the {} elements of {}", count,
                          detail::text(sizes));
  if (count > 0 && reinterpret_cast<uintptr_t>(data) % size_bytes(t) != 0)
    fail<InvalidArgument>(
        "from_blob: memory at {} is not aligned to the {} bytes of {}: from_bytes() copies it",
        data, size_bytes(t), name(t));
}

}  // namespace

Tensor detail::tensor_over(const BlobLayout& of, const MakeBuffer& make) {
  check_layout(of.sizes, of.blob, of.options);
  const DType t = of.options.dtype;
  const bool empty = ir::element_count(shape_of(of.sizes)) == 0;
  const std::vector<int64_t> extents = of.sizes;
  const bool dense = empty || is_row_major(extents, of.blob.strides);
  Layout layout;
  if (!dense) layout = layout_of(of.sizes, of.blob.strides, t);
  const int64_t count = dense ? row_major_count(extents) : layout.count;
  const Ref<engine::Buffer> memory = make(count, size_t(layout.before) * size_bytes(t));
  const Tensor flat = wrap(ir::buffer(memory), memory->device);
  return dense ? flat.reshape(of.sizes) : taken(flat, layout, of.sizes);
}

Tensor Tensor::from_blob(void* data, const Sizes& sizes, BlobOptions blob,
                         const TensorOptions& options) {
  check_layout(sizes, blob, options);
  check_pointer(data, sizes, options.dtype);
  const bool empty = ir::element_count(detail::shape_of(sizes)) == 0;
  const std::shared_ptr<engine::Device> target = engine::Device::get(options.device),
                                        cpu = engine::Device::get("CPU");
  const bool direct = blob.in_place && (!empty || hcq::reaches_host(target->hcq()));
  const auto make = [&](int64_t count, size_t lead) {
    std::byte* begin = empty ? nullptr : static_cast<std::byte*>(data) - lead;
    const std::shared_ptr<engine::Device>& on = direct ? target : cpu;
    hcq::ForeignMemory memory =
        hcq::over_host(on->hcq(), begin, size_t(count) * size_bytes(options.dtype));
    if (blob.deleter) memory.after_release([deleter = blob.deleter, data] { deleter(data); });
    memory.read_only = blob.read_only;
    return engine::Buffer::adopted(on, options.dtype, count, std::move(memory));
  };
  const Tensor t = detail::tensor_over({sizes, blob, options}, make);
  return detail::finish(target->name() == t.device() ? t : t.to(target->name()), options);
}

Tensor Tensor::from_blob(const void* data, const Sizes& sizes, BlobOptions blob,
                         const TensorOptions& options) {
  blob.read_only = true;
  return from_blob(const_cast<void*>(data), sizes, std::move(blob), options);
}

Tensor Tensor::from_file(const std::string& path, const Sizes& sizes, DType dtype, uint64_t offset,
                         FileOptions options) {
  detail::require_numbers("from_file", sizes);
  detail::require_element_type("from_file", dtype);
  const ir::Shape shape = detail::shape_of(sizes);
  const int64_t count = ir::element_count(shape);
  const auto mode = options.mmap ? os::DataFile::Mode::Read : os::DataFile::Mode::ReadWrite;
  const auto file = std::make_shared<os::DataFile>(path, mode);
  Ref<engine::Buffer> memory;
  if (options.mmap)
    memory = engine::MappedFile(file, false).view(engine::Device::get("CPU"), dtype, count, offset);
  if (memory) return detail::wrap(ir::reshape(ir::buffer(memory), shape), "CPU");
  const std::shared_ptr<engine::Device> device = engine::Device::get("DISK:" + path);
  const size_t bytes = size_t(count) * size_bytes(dtype);
  memory = engine::Buffer::adopted(
      device, dtype, count,
      device->hcq().files()->over_file(file, offset, bytes, /*unchanged=*/false));
  const Tensor there = detail::wrap(ir::reshape(ir::buffer(memory), shape), device->name());
  return options.mmap ? there.to("CPU") : there;
}

}  // namespace tuff
