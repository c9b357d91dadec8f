#include "io/formats/idx_array.h"

#include <algorithm>

namespace tuff::io {
namespace {

struct IdxType {
  uint8_t code;
  DType dtype;
};
constexpr IdxType kIdxTypes[] = {{0x08, DType::U8},  {0x09, DType::I8},  {0x0b, DType::I16},
                                 {0x0c, DType::I32}, {0x0d, DType::F32}, {0x0e, DType::F64}};

const IdxType* type_of(uint8_t code) {
  const auto* row = std::ranges::find(kIdxTypes, code, &IdxType::code);
  return row == std::end(kIdxTypes) ? nullptr : row;
}

}  // namespace

bool is_idx(const ByteSource& source) {
  if (source.size_bytes() < 4) return false;
  const std::vector<uint8_t> magic = source.bytes(0, 4);
  return magic[0] == 0 && magic[1] == 0 && type_of(magic[2]) && magic[3] != 0;
}

namespace {

// The array as its header declares it; the reader stands behind the header then.
TensorEntry read_idx_header(ByteReader& r) {
  const ByteSource& source = r.source();
  if (r.little<uint16_t>() != 0) fail_at(source, 0, "no IDX array: its first two bytes are 0");
  const uint8_t code = r.byte();
  const IdxType* row = type_of(code);
  if (!row) fail_at(source, 2, "0x{:02x} is no type of an IDX array", code);
  TensorEntry t;
  t.type = tuff::name(row->dtype);
  t.dtype = row->dtype;
  const uint8_t axes = r.byte();
  if (axes > kMaxAxes) fail_at(source, 3, "{} axes, more than {}", axes, kMaxAxes);
  for (uint8_t i = 0; i < axes; i++) t.shape.push_back(r.big<uint32_t>());
  const uint64_t width = size_bytes(row->dtype);
  t.size_bytes = checked_bytes(source, 4, element_count(source, 4, t.shape), width);
  t.big_endian = width > 1;
  t.offset = r.offset();
  return t;
}

}  // namespace

uint64_t idx_file_bytes(const ByteSource& head) {
  ByteReader r(head);
  const TensorEntry t = read_idx_header(r);
  return t.offset + t.size_bytes;
}

FileIndex read_idx_array(const ByteSource& source, const std::string& name) {
  ByteReader r(source);
  TensorEntry t = read_idx_header(r);
  t.name = name;
  if (t.size_bytes != r.left())
    r.fail("{}: {} bytes are left, but the extents ({}) take {}",
           r.left() < t.size_bytes ? "truncated" : "too long", r.left(), fmt::join(t.shape, ", "),
           t.size_bytes);
  FileIndex index;
  index.format = "idx";
  index.tensors.push_back(std::move(t));
  return index;
}

}  // namespace tuff::io
