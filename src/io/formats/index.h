// What a reader of a format gives: where each tensor's bytes stand, of which type and shape, and
// the file's metadata. Called by the readers and by tensor_bytes. Must never hold a tensor's
// contents.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tuff/dtype.h>
#include <tuff/metadata.h>
#include "io/formats/bytes.h"

namespace tuff::io {

inline constexpr size_t kMaxAxes = 64;  // NumPy's limit, PyTorch's as well
inline constexpr size_t kMaxNameBytes = 64 << 10;

// Elements that are packed in blocks: rows of the innermost axis are whole blocks.
struct BlockType {
  const char* name;
  uint32_t elements, size_bytes;
};

// A member of a zip archive, which other offsets may be relative to.
struct ZipMember {
  std::string name;
  uint64_t offset = 0;  // of the contents as they are stored
  uint64_t stored_bytes = 0, size_bytes = 0;
  uint32_t crc32 = 0;
  bool deflated = false;
  uint64_t header_offset = 0;
};

struct TensorEntry {
  std::string name;
  std::string type;           // as the format spells it: "F32", "<f4", "Q4_0"
  DType dtype = DType::Void;  // Void: blocks, or a type that tuff does not have
  const BlockType* block = nullptr;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements; empty: row-major
  uint64_t offset = 0;           // in the file, or in the contents of the member
  uint64_t size_bytes = 0;
  std::optional<uint32_t> member;
  uint32_t file = 0;  // of those of a sharded model
  bool big_endian = false;
};

struct FileIndex {
  std::string format;
  std::vector<TensorEntry> tensors;
  Metadata metadata;
  std::vector<ZipMember> members;
};

// Product of the extents. IoError at `offset` for a negative one, for more axes than kMaxAxes and
// where the product, leaving out zeros, is above 2^62.
int64_t element_count(const ByteSource& source, uint64_t offset, std::span<const int64_t> shape);
// a * b; IoError at `offset` above 2^63 - 1.
uint64_t checked_bytes(const ByteSource& source, uint64_t offset, int64_t count, uint64_t size);
// In quotes; bytes that are no UTF-8 are replaced.
std::string json_string(const std::string& text);

// IoError where two ranges share bytes or a range is not inside [begin, end).
struct ByteRange {
  uint64_t begin, size_bytes;
  const std::string* name;
};
void require_disjoint(const ByteSource& source, std::vector<ByteRange> ranges, uint64_t begin,
                      uint64_t end);
// IoError where two tensors have one name.
void require_distinct_names(const ByteSource& source, uint64_t offset, const FileIndex& index);

}  // namespace tuff::io
