#include "io/tensor_bytes.h"

#include <algorithm>
#include <cstring>

#include "engine/buffer.h"
#include "io/dequantize.h"
#include "io/formats/zip.h"
#include "tensor/impl.h"

namespace tuff::io {
namespace {

constexpr uint64_t kPieceBytes = 16 << 20;  // a whole number of elements and of pages

void swap_bytes(std::span<uint8_t> bytes, size_t width) {
  for (size_t i = 0; i + width <= bytes.size(); i += width)
    std::reverse(bytes.begin() + ptrdiff_t(i), bytes.begin() + ptrdiff_t(i + width));
}

Sizes sizes_of(std::span<const int64_t> shape) { return Sizes(shape.begin(), shape.end()); }

// A tensor on `device` of what `read(offset, into)` gives, in pieces where memory is out of the
// host's reach.
template <class Read>
Tensor filled(DType dtype, const Sizes& sizes, const std::string& device, bool in_pieces,
              const Read& read) {
  const graph::Shape shape = detail::shape_of(sizes);
  auto buffer =
      make_ref<engine::Buffer>(engine::Device::get(device), dtype, graph::element_count(shape));
  const uint64_t size = buffer->size_bytes();
  if (size != 0) {
    const hcq::Span span = buffer->span();
    if (std::byte* host = span.host()) {
      read(0, std::span(reinterpret_cast<uint8_t*>(host), size));
    } else {
      std::vector<uint8_t> piece(in_pieces ? std::min(size, kPieceBytes) : size);
      for (uint64_t at = 0; at < size; at += piece.size()) {
        piece.resize(std::min<uint64_t>(piece.size(), size - at));
        read(at, std::span(piece));
        buffer->on().hcq().upload(span.sub(at, piece.size()), piece.data());
      }
    }
  }
  return detail::wrap(graph::reshape(graph::buffer(buffer), shape),
                      engine::canonical_device(device));
}

// One axis of a strided tensor.
struct Axis {
  size_t position;
  int64_t extent, stride;
};

// Axes that are walked, the longest stride first; repeated and single elements are left out.
std::vector<Axis> walked_axes(const TensorEntry& entry) {
  std::vector<Axis> axes;
  for (size_t i = 0; i < entry.shape.size(); i++)
    if (entry.strides[i] != 0 && entry.shape[i] > 1)
      axes.push_back({i, entry.shape[i], entry.strides[i]});
  std::ranges::stable_sort(axes, std::ranges::greater{}, &Axis::stride);
  return axes;
}

bool is_dense(const std::vector<Axis>& axes) {
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    if (axes[i].stride != stride) return false;
    stride *= axes[i].extent;
  }
  return true;
}

// Elements side by side in the order of the axes.
std::vector<uint8_t> gathered(const std::vector<uint8_t>& from, const std::vector<Axis>& axes,
                              int64_t count, size_t width) {
  std::vector<uint8_t> out(size_t(count) * width);
  std::vector<int64_t> index(axes.size());
  int64_t at = 0;
  for (int64_t i = 0; i < count; i++) {
    std::memcpy(&out[size_t(i) * width], &from[size_t(at) * width], width);
    for (size_t a = axes.size(); a-- > 0;) {
      at += axes[a].stride;
      if (++index[a] < axes[a].extent) break;
      at -= axes[a].stride * axes[a].extent;
      index[a] = 0;
    }
  }
  return out;
}

// From the walked axes back to the entry's: in its order, with those that were left out.
Tensor in_order(const Tensor& walked, const std::vector<Axis>& axes, const TensorEntry& entry) {
  std::vector<size_t> order(axes.size());
  for (size_t i = 0; i < order.size(); i++) order[i] = i;
  std::ranges::sort(order, {}, [&](size_t i) { return axes[i].position; });
  Sizes single(entry.shape.size(), 1);
  Axes dims;
  for (const size_t i : order) {
    dims.push_back(int64_t(i));
    single[axes[i].position] = axes[i].extent;
  }
  const Tensor ordered = dims.empty() ? walked : walked.permute(dims);
  return ordered.reshape(single).expand(sizes_of(entry.shape));
}

}  // namespace

bool TensorBytes::reads_in_pieces(const TensorEntry& entry) const {
  if (!entry.member) return true;
  const std::lock_guard lock(mutex_);
  return !members_[*entry.member].deflated && verified_.contains(*entry.member);
}

void TensorBytes::read(const TensorEntry& entry, uint64_t offset, std::span<uint8_t> into) const {
  offset += entry.offset;
  if (!entry.member) return source_->read(offset, into);
  const ZipMember& member = members_[*entry.member];
  if (reads_in_pieces(entry)) return source_->read(member.offset + offset, into);
  read_zip_member(*source_, member, offset, into);
  const std::lock_guard lock(mutex_);
  verified_.insert(*entry.member);
}

void TensorBytes::read_elements(const TensorEntry& entry, uint64_t offset,
                                std::span<uint8_t> into) const {
  read(entry, offset, into);
  if (entry.big_endian) swap_bytes(into, size_bytes(entry.dtype));
  if (entry.dtype != DType::Bool) return;
  const auto bad = std::ranges::find_if(into, [](uint8_t b) { return b > 1; });
  if (bad != into.end())
    fail_at(*source_, entry.offset + offset + uint64_t(bad - into.begin()),
            "'{}' has a bool of {}; 0 and 1 are bools", shown(entry.name), *bad);
}

Tensor TensorBytes::row_major(const TensorEntry& entry, DType dtype, const Sizes& sizes,
                              const std::string& device) const {
  return filled(
      dtype, sizes, device, reads_in_pieces(entry),
      [&](uint64_t offset, std::span<uint8_t> into) { read_elements(entry, offset, into); });
}

Tensor TensorBytes::strided(const TensorEntry& entry, const std::string& device) const {
  if (std::ranges::find(entry.shape, 0) != entry.shape.end())
    return Tensor::empty(sizes_of(entry.shape), {entry.dtype, device});
  const std::vector<Axis> axes = walked_axes(entry);
  Sizes sizes;
  int64_t count = 1;
  for (const Axis& a : axes) {
    sizes.push_back(a.extent);
    count *= a.extent;
  }
  if (is_dense(axes)) return in_order(row_major(entry, entry.dtype, sizes, device), axes, entry);
  const size_t width = size_bytes(entry.dtype);
  if (uint64_t(count) > entry.size_bytes / width)
    fail_at(*source_, entry.offset, "'{}' has overlapping elements: {} in a reach of {}",
            shown(entry.name), count, entry.size_bytes / width);
  std::vector<uint8_t> reach(entry.size_bytes);
  read_elements(entry, 0, reach);
  const std::vector<uint8_t> packed = gathered(reach, axes, count, width);
  const Tensor walked = Tensor::from_bytes(packed.data(), sizes, {entry.dtype, device});
  return in_order(walked, axes, entry);
}

Tensor TensorBytes::tensor(const TensorEntry& entry, const std::string& device) const {
  if (entry.block && can_dequantize(entry.type)) {
    const int64_t bytes = entry.block->size_bytes;
    const Tensor blocks =
        row_major(entry, DType::U8, {int64_t(entry.size_bytes) / bytes, bytes}, device);
    return dequantize(entry.type, blocks).reshape(sizes_of(entry.shape));
  }
  if (entry.dtype == DType::Void)
    fail<Unsupported>("{}: '{}' is of {}, which tuff does not compute with", source_->name(),
                      shown(entry.name), entry.type);
  if (!entry.strides.empty()) return strided(entry, device);
  return row_major(entry, entry.dtype, sizes_of(entry.shape), device);
}

}  // namespace tuff::io
