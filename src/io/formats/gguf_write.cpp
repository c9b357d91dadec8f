#include "io/formats/gguf_write.h"

#include <ranges>

#include "io/formats/gguf.h"

namespace tuff::io {
namespace {

constexpr std::string_view kGgufMark = "GGUF";
constexpr uint32_t kGgufVersion = 3, kU32 = 4;

class GgufBytes {
 public:
  template <std::integral T>
  void put(T value) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
  }
  void put(std::string_view text) {
    put(uint64_t(text.size()));
    append(text);
  }
  void append(const auto& bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  std::vector<uint8_t> take(uint64_t alignment) {
    bytes_.resize(aligned(bytes_.size(), alignment));
    return std::move(bytes_);
  }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace

static_assert(std::endian::native == std::endian::little, "GGUF files are little-endian");

uint64_t aligned(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

GgufField gguf_field(std::string key, uint32_t value) {
  GgufBytes out;
  out.put(kU32), out.put(value);
  return {std::move(key), out.take(1)};
}

std::vector<uint8_t> encode_gguf_header(std::span<const GgufField> fields,
                                        std::span<const TensorEntry> tensors, uint64_t alignment) {
  GgufBytes out;
  out.append(kGgufMark);
  out.put(kGgufVersion);
  out.put(uint64_t(tensors.size())), out.put(uint64_t(fields.size()));
  for (const GgufField& f : fields) out.put(std::string_view(f.key)), out.append(f.bytes);
  uint64_t offset = 0;
  for (const TensorEntry& t : tensors) {
    out.put(std::string_view(t.name));
    out.put(uint32_t(t.shape.size()));
    for (const int64_t extent : t.shape | std::views::reverse) out.put(uint64_t(extent));
    out.put(gguf_type_id(t.type)), out.put(offset);
    offset += aligned(t.size_bytes, alignment);
  }
  return out.take(alignment);
}

}  // namespace tuff::io
