#include "io/tensor_bytes.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "io/dequantize.h"
#include "io/formats/zip.h"
#include "tensor/impl.h"

namespace tuff::io {
namespace {

void swap_bytes(std::span<uint8_t> bytes, size_t width) {
  for (size_t i = 0; i + width <= bytes.size(); i += width)
    std::reverse(bytes.begin() + ptrdiff_t(i), bytes.begin() + ptrdiff_t(i + width));
}

Sizes sizes_of(std::span<const int64_t> shape) { return Sizes(shape.begin(), shape.end()); }

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
void gather(std::span<const uint8_t> from, const std::vector<Axis>& axes, size_t width,
            std::span<uint8_t> into) {
  std::vector<int64_t> index(axes.size());
  int64_t at = 0;
  for (size_t out = 0; out < into.size(); out += width) {
    std::memcpy(&into[out], &from[size_t(at) * width], width);
    for (size_t a = axes.size(); a-- > 0;) {
      at += axes[a].stride;
      if (++index[a] < axes[a].extent) break;
      at -= axes[a].stride * axes[a].extent;
      index[a] = 0;
    }
  }
}

std::span<uint8_t> as_uint8(std::span<std::byte> bytes) {
  return {reinterpret_cast<uint8_t*>(bytes.data()), bytes.size()};
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

TensorBytes::TensorBytes(std::unique_ptr<ByteSource> source, std::vector<ZipMember> members,
                         bool mmap)
    : source_(std::move(source)), members_(std::move(members)) {
  if (const auto file = source_->file(); mmap && file) map_.emplace(file, true);
}

bool TensorBytes::is_verified(const TensorEntry& entry) const {
  const std::lock_guard lock(mutex_);
  return verified_.contains(*entry.member);
}

// The bytes of an entry from its first to its last, as elements of this machine. A member whose
// checksum was not compared yet is read to its end for that.
class TensorBytes::EntryReader {
 public:
  EntryReader(std::shared_ptr<const TensorBytes> file, const TensorEntry& entry)
      : file_(std::move(file)), entry_(entry), begin_(entry.offset) {
    if (!entry.member) return;
    const ZipMember& member = file_->members_[*entry.member];
    begin_ += member.offset;
    if (!member.deflated && file_->is_verified(entry)) return;
    member_.emplace(*file_->source_, member);
    member_->pass(entry.offset);
  }

  void fill(std::span<uint8_t> piece) {
    const ByteSource& source = *file_->source_;
    if (member_)
      member_->fill(piece);
    else
      source.read(begin_ + at_, piece);
    const uint64_t piece_at = entry_.offset + at_;
    at_ += piece.size();
    if (member_ && at_ == entry_.size_bytes) verify();
    if (const auto file = source.file()) file->require_unchanged();
    if (entry_.big_endian) swap_bytes(piece, size_bytes(entry_.dtype));
    if (entry_.dtype != DType::Bool) return;
    const auto bad = std::ranges::find_if(piece, [](uint8_t b) { return b > 1; });
    if (bad != piece.end())
      fail_at(source, piece_at + uint64_t(bad - piece.begin()),
              "'{}' has a bool of {}; 0 and 1 are bools", shown(entry_.name), *bad);
  }

 private:
  void verify() {
    member_->finish();
    const std::lock_guard lock(file_->mutex_);
    file_->verified_.insert(*entry_.member);
  }
  std::shared_ptr<const TensorBytes> file_;
  TensorEntry entry_;
  std::optional<ZipMemberReader> member_;
  uint64_t begin_, at_ = 0;
};

engine::Contents::Reader TensorBytes::open(const TensorEntry& entry) const {
  auto reader = std::make_shared<EntryReader>(shared_from_this(), entry);
  return
      [reader = std::move(reader)](std::span<std::byte> piece) { reader->fill(as_uint8(piece)); };
}

Tensor TensorBytes::deferred(engine::Contents contents, DType dtype, const Sizes& sizes,
                             const std::string& device) const {
  const ir::Shape shape = detail::shape_of(sizes);
  const auto buffer = engine::Buffer::filled_from(engine::Device::get(device), dtype,
                                                  ir::element_count(shape), std::move(contents));
  return detail::wrap(ir::reshape(ir::buffer(buffer), shape),
                      engine::canonical_device(device));
}

// Null where the contents have to be read.
Ref<engine::Buffer> TensorBytes::mapped(const TensorEntry& entry, DType dtype, int64_t count,
                                        const std::string& device) const {
  const ZipMember* member = entry.member ? &members_[*entry.member] : nullptr;
  if (!map_ || entry.big_endian || entry.dtype == DType::Bool || (member && member->deflated))
    return {};
  return map_->view(engine::Device::get(device), dtype, count,
                    entry.offset + (member ? member->offset : 0));
}

Tensor TensorBytes::row_major(const TensorEntry& entry, DType dtype, const Sizes& sizes,
                              const std::string& device) const {
  const ir::Shape shape = detail::shape_of(sizes);
  if (const auto memory = mapped(entry, dtype, ir::element_count(shape), device))
    return detail::wrap(ir::reshape(ir::buffer(memory), shape), memory->device);
  engine::Contents contents;
  const std::shared_ptr<const os::DataFile> file = source_->file();
  if (file && !entry.member && !entry.big_endian && entry.dtype != DType::Bool) {
    const std::shared_ptr<engine::Device> disk = engine::Device::get("DISK");
    contents.source = engine::Buffer::adopted(
        disk, DType::U8, int64_t(entry.size_bytes),
        disk->hcq().files()->over_file(file, entry.offset, entry.size_bytes, /*unchanged=*/true));
  } else {
    contents.open = [self = shared_from_this(), entry] { return self->open(entry); };
  }
  return deferred(std::move(contents), dtype, sizes, device);
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
  engine::Contents contents;
  contents.open = [self = shared_from_this(), entry, axes, width, count] {
    std::vector<std::byte> reach(entry.size_bytes);
    self->open(entry)(reach);
    auto elements = std::make_shared<std::vector<uint8_t>>(size_t(count) * width);
    gather(as_uint8(reach), axes, width, *elements);
    return [elements, at = size_t{0}](std::span<std::byte> piece) mutable {
      std::memcpy(piece.data(), elements->data() + at, piece.size());
      at += piece.size();
    };
  };
  return in_order(deferred(std::move(contents), entry.dtype, sizes, device), axes, entry);
}

Tensor TensorBytes::blocks(const TensorEntry& entry, const std::string& device) const {
  const int64_t bytes = entry.block->size_bytes;
  return row_major(entry, DType::U8, {int64_t(entry.size_bytes) / bytes, bytes}, device);
}

Tensor TensorBytes::tensor(const TensorEntry& entry, const std::string& device) const {
  if (entry.block && can_dequantize(entry.type))
    return dequantize(entry.type, blocks(entry, device)).reshape(sizes_of(entry.shape));
  if (entry.dtype == DType::Void)
    fail<Unsupported>("{}: '{}' is of {}, which tuff does not compute with; {}", source_->name(),
                      shown(entry.name), entry.type,
                      entry.block ? "blocks of " + decoded_types() + " are decoded"
                                  : "save it as one of tuff's dtypes, such as float32");
  if (!entry.strides.empty()) return strided(entry, device);
  return row_major(entry, entry.dtype, sizes_of(entry.shape), device);
}

}  // namespace tuff::io
