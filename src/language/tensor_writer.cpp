#include "language/tensor_writer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/os.h"
#include "base/parallel.h"
#include "io/formats/gguf.h"
#include "io/formats/gguf_write.h"
#include "io/quantize.h"
#include "io/tensor_pieces.h"

namespace tuff::language {
namespace {

constexpr size_t kTaskElements = 1 << 16;

// Floats of any width, as a tensor's bytes have them.
std::vector<float> widened(std::span<const uint8_t> bytes, DType dtype) {
  const size_t width = size_bytes(dtype);
  std::vector<float> out(bytes.size() / width);
  for (size_t i = 0; i < out.size(); i++) {
    uint16_t bits = 0;
    if (dtype == DType::F32) {
      std::memcpy(&out[i], &bytes[i * width], width);
      continue;
    }
    std::memcpy(&bits, &bytes[i * width], width);
    out[i] = dtype == DType::F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
  }
  return out;
}

void require_range(std::span<const float> values, std::string_view type, const std::string& name) {
  const bool wide = type == "F32" || type == "BF16";
  const auto bad = std::ranges::find_if(values, [&](float v) {
    return !std::isfinite(v) || (!wide && std::abs(v) > io::kLargestQuantized);
  });
  if (bad != values.end())
    fail<InvalidArgument>("the tensor {} has an element of {}, which {} does not hold", name, *bad,
                          type);
}

std::vector<uint8_t> encoded(std::span<const float> values, std::string_view type) {
  const io::BlockType block = *io::gguf_block(type);
  std::vector<uint8_t> out(values.size() / block.elements * block.size_bytes);
  const size_t tasks = (values.size() + kTaskElements - 1) / kTaskElements;
  parallel_for(tasks, os::core_count(), [&](size_t i) {
    const size_t begin = i * kTaskElements, count = std::min(kTaskElements, values.size() - begin);
    const auto bytes = [&](size_t elements) {
      return elements / block.elements * block.size_bytes;
    };
    io::quantize(type, values.subspan(begin, count),
                 std::span(out).subspan(bytes(begin), bytes(count)));
  });
  return out;
}

}  // namespace

void TensorWriter::copy(const TensorInfo& from) {
  auto& file = sources_[from.file];
  if (!file) file = std::make_unique<io::FileBytes>(from.file);
  std::vector<uint8_t> piece;
  for (uint64_t at = 0; at < from.size_bytes; at += piece.size()) {
    piece.resize(std::min(io::kTensorPieceBytes, from.size_bytes - at));
    file->read(from.offset + at, piece);
    put(piece);
  }
}

void TensorWriter::encode(const std::string& name, const Tensor& values, std::string_view type) {
  const DType dtype = values.dtype();
  const bool stored = dtype == DType::F32 || dtype == DType::F16 || dtype == DType::BF16;
  io::for_each_piece(stored ? values : values.to(DType::F32), [&](std::span<const uint8_t> piece) {
    const std::vector<float> numbers = widened(piece, stored ? dtype : DType::F32);
    require_range(numbers, type, name);
    put(encoded(numbers, type));
  });
}

void TensorWriter::align(uint64_t alignment) {
  const uint64_t at = out_.offset();
  out_.write(std::vector<uint8_t>(io::aligned(at, alignment) - at));
}

void TensorWriter::put(std::span<const uint8_t> bytes) {
  out_.write(bytes);
  progress_.add(bytes.size());
}

}  // namespace tuff::language
