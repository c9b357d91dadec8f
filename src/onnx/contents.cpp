#include "onnx/contents.h"

#include <filesystem>
#include <numeric>

#include <tuff/int4.h>
#include "base/check.h"
#include "onnx/elements.h"

namespace tuff::onnx {

using io::onnx::ElementType;
using io::onnx::SparseTensorData;
using io::onnx::TensorData;

namespace {

// Constants of so few elements are read where numbers are asked for again and again.
constexpr int64_t kMostIntegers = 4096, kMostFloats = 64;

int64_t element_count(const TensorData& data) {
  return std::accumulate(data.dims.begin(), data.dims.end(), int64_t{1}, std::multiplies<>());
}

uint64_t stored_bytes(const TensorData& data) {
  const auto count = uint64_t(element_count(data));
  const uint64_t bits = io::onnx::size_bits(data.type);
  return bits < 8 ? (count + 8 / bits - 1) / (8 / bits) : count * (bits / 8);
}

// A model is not to reach beyond its own folder.
void check_location(const std::string& location) {
  const std::filesystem::path path(location);
  bool outside = path.is_absolute();
  for (const auto& part : path) outside |= part == "..";
  if (outside)
    fail<IoError>("external contents in '{}', outside of the model's folder",
                  io::shown(location));
}

}  // namespace

Contents::Contents(std::unique_ptr<io::ByteSource> source, std::string folder, std::string device)
    : folder_(std::move(folder)), device_(std::move(device)) {
  if (source)
    files_.emplace("", std::make_shared<io::TensorBytes>(std::move(source),
                                                         std::vector<io::ZipMember>(), false));
}

io::TensorBytes& Contents::file(const std::string& location) const {
  std::shared_ptr<io::TensorBytes>& slot = files_[location];
  if (!slot) {
    if (location.empty()) fail<IoError>("a range of a file, of a model that lies in none");
    check_location(location);
    const std::string path = (std::filesystem::path(folder_) / location).string();
    slot = std::make_shared<io::TensorBytes>(std::make_unique<io::FileBytes>(path),
                                             std::vector<io::ZipMember>(), false);
  }
  return *slot;
}

std::vector<uint8_t> Contents::bytes(const TensorData& data) const {
  if (data.range)
    return file(data.range->location).source().bytes(data.range->offset, data.range->size_bytes);
  return data.bytes;
}

// Integers of 4 bits, of which there may be many, on the device.
Tensor Contents::unpacked(const TensorData& data) const {
  const int64_t count = element_count(data);
  const std::vector<uint8_t> packed = bytes(data);
  if (data.type != ElementType::Int4 && data.type != ElementType::Uint4) {
    const std::vector<uint8_t> wide = onnx::unpacked(data.type, packed, count);
    return Tensor::from_bytes(wide.data(), Sizes(data.dims),
                              {.dtype = dtype_of(data.type), .device = device_});
  }
  const Tensor both = unpack_int4(
      Tensor::from_bytes(packed.data(), {int64_t(packed.size())},
                         {.dtype = DType::U8, .device = device_}),
      data.type == ElementType::Int4);
  return both.narrow(0, 0, count).reshape(Sizes(data.dims));
}

Tensor Contents::made(const TensorData& data) const {
  const DType dtype = dtype_of(data.type);
  if (dtype == DType::Void)
    fail<Unsupported>("'{}' holds elements of type {}, which are not supported", data.name,
                      io::onnx::name(data.type));
  const uint64_t size = data.range ? data.range->size_bytes : data.bytes.size();
  if (size != stored_bytes(data))
    fail<IoError>("'{}' has {} bytes of contents, {} elements of {} take {}", data.name, size,
                  element_count(data), io::onnx::name(data.type), stored_bytes(data));
  if (is_narrow(data.type) && size) return unpacked(data);
  const TensorOptions options{.dtype = dtype, .device = device_};
  if (!size) return Tensor::empty(Sizes(data.dims), options);
  if (!data.range) return Tensor::from_bytes(data.bytes.data(), Sizes(data.dims), options);
  io::TensorEntry entry;
  entry.name = data.name;
  entry.type = io::onnx::name(data.type);
  entry.dtype = dtype;
  entry.shape = data.dims;
  entry.offset = data.range->offset;
  entry.size_bytes = size;
  return file(data.range->location).tensor(entry, device_);
}

Value Contents::with_numbers(const TensorData& data, Tensor tensor) const {
  const DType dtype = tensor.dtype();
  const int64_t count = element_count(data);
  if (is_narrow(data.type)) return Value(std::move(tensor)).of(data.type);
  if (count > (tuff::is_float(dtype) ? kMostFloats : kMostIntegers))
    return tensor;
  const std::vector<uint8_t> raw = bytes(data);
  HostNumbers out{.dtype = dtype, .shape = data.dims, .ints = {}, .floats = {}};
  for (size_t i = 0; i < size_t(count); i++) {
    const Scalar s = load_scalar(dtype, raw.data() + i * size_bytes(dtype));
    if (out.is_float())
      out.floats.push_back(s.as_double());
    else
      out.ints.emplace_back(s.as_int());
  }
  return {std::move(tensor), std::move(out)};
}

Value Contents::value(const TensorData& data) const {
  const std::lock_guard lock(mutex_);
  const auto found = values_.find(&data);
  if (found != values_.end()) return found->second;
  Value out = with_numbers(data, made(data));
  return values_.emplace(&data, std::move(out)).first->second;
}

Tensor Contents::tensor(const TensorData& data) const { return value(data).tensor(device_); }

// Positions are of the flattened tensor, or coordinates, one row for each value.
Value Contents::dense(const SparseTensorData& data) const {
  const Tensor values = tensor(data.values).flatten();
  Tensor places = tensor(data.indices);
  if (places.dim() == 2) {
    std::vector<int64_t> strides(data.dims.size(), 1);
    for (size_t i = strides.size(); i-- > 1;) strides[i - 1] = strides[i] * data.dims[i];
    const Tensor step = Tensor::from(strides, {int64_t(strides.size())}, {.device = device_});
    places = (places * step).sum({1});
  }
  const int64_t count = std::accumulate(data.dims.begin(), data.dims.end(), int64_t{1},
                                        std::multiplies<>());
  const Tensor zeros = Tensor::zeros({count}, {.dtype = values.dtype(), .device = device_});
  return zeros.put(places, values).reshape(Sizes(data.dims));
}

}  // namespace tuff::onnx
