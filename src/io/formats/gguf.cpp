#include "io/formats/gguf.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

namespace tuff::io {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kDefaultAlignment = 32, kMaxAlignment = 1 << 20;
constexpr size_t kMaxAxesHere = 4, kMaxDepth = 4;
constexpr uint64_t kMaxItems = 10'000'000;             // values of all metadata
constexpr uint64_t kLeastItemBytes = 8 + 4 + 1;        // a key, a type and a value
constexpr uint64_t kLeastTensorBytes = 8 + 4 + 4 + 8;  // a name, axes, a type and an offset

struct GgufType {
  uint32_t id;
  DType dtype;  // Void: packed in blocks
  BlockType block;
};
// Ids and sizes of ggml's enum ggml_type; those that tuff does not decode are listed all the same.
constexpr GgufType kGgufTypes[] = {
    {0, DType::F32, {"F32", 1, 4}},          {1, DType::F16, {"F16", 1, 2}},
    {2, DType::Void, {"Q4_0", 32, 18}},      {3, DType::Void, {"Q4_1", 32, 20}},
    {6, DType::Void, {"Q5_0", 32, 22}},      {7, DType::Void, {"Q5_1", 32, 24}},
    {8, DType::Void, {"Q8_0", 32, 34}},      {9, DType::Void, {"Q8_1", 32, 36}},
    {10, DType::Void, {"Q2_K", 256, 84}},    {11, DType::Void, {"Q3_K", 256, 110}},
    {12, DType::Void, {"Q4_K", 256, 144}},   {13, DType::Void, {"Q5_K", 256, 176}},
    {14, DType::Void, {"Q6_K", 256, 210}},   {15, DType::Void, {"Q8_K", 256, 292}},
    {16, DType::Void, {"IQ2_XXS", 256, 66}}, {17, DType::Void, {"IQ2_XS", 256, 74}},
    {18, DType::Void, {"IQ3_XXS", 256, 98}}, {19, DType::Void, {"IQ1_S", 256, 50}},
    {20, DType::Void, {"IQ4_NL", 32, 18}},   {21, DType::Void, {"IQ3_S", 256, 110}},
    {22, DType::Void, {"IQ2_S", 256, 82}},   {23, DType::Void, {"IQ4_XS", 256, 136}},
    {24, DType::I8, {"I8", 1, 1}},           {25, DType::I16, {"I16", 1, 2}},
    {26, DType::I32, {"I32", 1, 4}},         {27, DType::I64, {"I64", 1, 8}},
    {28, DType::F64, {"F64", 1, 8}},         {29, DType::Void, {"IQ1_M", 256, 56}},
    {30, DType::BF16, {"BF16", 1, 2}},       {34, DType::Void, {"TQ1_0", 256, 54}},
    {35, DType::Void, {"TQ2_0", 256, 66}},   {39, DType::Void, {"MXFP4", 32, 17}},
    {40, DType::Void, {"NVFP4", 64, 36}},    {41, DType::Void, {"Q1_0", 128, 18}},
    {42, DType::Void, {"Q2_0", 64, 18}},
};

// Ids that ggml has taken back: Q4_2, Q4_3, and layouts for single processors.
constexpr uint32_t kRemovedTypes[] = {4, 5, 31, 32, 33, 36, 37, 38};

std::string known_gguf_types() {
  std::string out;
  for (const GgufType& row : kGgufTypes)
    out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", row.block.name, row.id);
  return out;
}

enum class ValueType : uint32_t {
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  Text,
  List,
  U64,
  I64,
  F64
};
constexpr uint64_t kValueBytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};  // at least

class Reader {
 public:
  explicit Reader(const ByteSource& source) : source_(source), r_(source) {}

  FileIndex read() {
    if (r_.little<uint32_t>() != kMagic) fail_at(source_, 0, "no GGUF file: the magic is missing");
    const auto version = r_.little<uint32_t>();
    if (version != 2 && version != 3)
      fail_at(source_, 4, "version {} of GGUF{}; 2 and 3 are read", version,
              version != 0 && version % 65536 == 0 ? " or a big-endian file" : "");
    const auto tensors = count(kLeastTensorBytes, "tensors");
    const auto items = count(kLeastItemBytes, "metadata");
    index_.format = "gguf";
    for (uint64_t i = 0; i < items; i++) read_item();
    for (uint64_t i = 0; i < tensors; i++) read_tensor();
    place();
    return std::move(index_);
  }
  const std::vector<GgufItem>& items() const { return items_; }

 private:
  uint64_t count(uint64_t least_bytes, const char* what) {
    const uint64_t at = r_.offset();
    const auto n = r_.little<uint64_t>();
    if (n > r_.left() / least_bytes)
      fail_at(source_, at, "{} {}, but only {} bytes are left", n, what, r_.left());
    return n;
  }
  std::string text() {
    const auto size = r_.little<uint64_t>();
    return r_.text(size);
  }
  std::string name(const char* what) {
    const uint64_t at = r_.offset();
    const auto size = r_.little<uint64_t>();
    if (size > kMaxNameBytes) fail_at(source_, at, "{} of {} bytes", what, size);
    return r_.text(size);
  }
  ValueType type() {
    const uint64_t at = r_.offset();
    const auto id = r_.little<uint32_t>();
    if (id >= std::size(kValueBytes)) fail_at(source_, at, "{} is no type of metadata", id);
    return ValueType(id);
  }
  MetadataValue boolean() {
    const uint64_t at = r_.offset();
    const uint8_t value = r_.byte();
    if (value > 1) fail_at(source_, at, "a bool of {}", value);
    return {value == 1};
  }
  MetadataValue value(ValueType type, size_t depth) {
    if (++values_ > kMaxItems) r_.fail("more than {} values of metadata", kMaxItems);
    switch (type) {
      case ValueType::U8: return {uint64_t(r_.byte())};
      case ValueType::I8: return {int64_t(r_.little<int8_t>())};
      case ValueType::U16: return {uint64_t(r_.little<uint16_t>())};
      case ValueType::I16: return {int64_t(r_.little<int16_t>())};
      case ValueType::U32: return {uint64_t(r_.little<uint32_t>())};
      case ValueType::I32: return {int64_t(r_.little<int32_t>())};
      case ValueType::F32: return {double(r_.little<float>())};
      case ValueType::Bool: return boolean();
      case ValueType::Text: return {text()};
      case ValueType::List: return list(depth);
      case ValueType::U64: return {r_.little<uint64_t>()};
      case ValueType::I64: return {r_.little<int64_t>()};
      case ValueType::F64: return {r_.little<double>()};
    }
    r_.fail("no type of metadata");
  }
  MetadataValue list(size_t depth) {
    if (depth == kMaxDepth) r_.fail("lists nested deeper than {}", kMaxDepth);
    const ValueType of = type();
    const auto n = count(kValueBytes[size_t(of)], "values in a list");
    if (n > kMaxItems - values_) r_.fail("more than {} values of metadata", kMaxItems);
    MetadataValue::List out;
    out.reserve(n);
    for (uint64_t i = 0; i < n; i++) out.push_back(value(of, depth + 1));
    return {std::move(out)};
  }
  void read_item() {
    const uint64_t at = r_.offset();
    std::string key = name("a key");
    if (!names_.insert("k" + key).second)
      fail_at(source_, at, "the key '{}' stands there twice", shown(key));
    const uint64_t begin = r_.offset();
    MetadataValue v = value(type(), 0);
    items_.push_back({key, begin, r_.offset() - begin});
    if (key == "general.alignment") set_alignment(at, v);
    index_.metadata.emplace_back(std::move(key), std::move(v));
  }
  void set_alignment(uint64_t at, const MetadataValue& v) {
    const auto* n = std::get_if<uint64_t>(&v.value);
    if (!n || *n > kMaxAlignment || !std::has_single_bit(*n))
      fail_at(source_, at, "general.alignment is {}; a power of 2 up to {} belongs there", v.str(),
              kMaxAlignment);
    alignment_ = *n;
  }
  void read_tensor() {
    const uint64_t at = r_.offset();
    TensorEntry t;
    t.name = name("a tensor's name");
    if (!names_.insert("t" + t.name).second)
      fail_at(source_, at, "two tensors are named '{}'", shown(t.name));
    const auto axes = r_.little<uint32_t>();
    if (axes > kMaxAxesHere)
      fail_at(source_, at, "'{}' has {} axes, more than {}", shown(t.name), axes, kMaxAxesHere);
    for (uint32_t i = 0; i < axes; i++) {
      const auto extent = r_.little<uint64_t>();
      if (extent > uint64_t(INT64_MAX)) r_.fail("an extent of {}", extent);
      t.shape.insert(t.shape.begin(), int64_t(extent));  // the innermost comes first
    }
    set_type(t, at);
    t.offset = r_.little<uint64_t>();
    if (t.offset % alignment_ != 0)
      fail_at(source_, at, "'{}' begins at {} of the data, no multiple of the alignment {}",
              shown(t.name), t.offset, alignment_);
    index_.tensors.push_back(std::move(t));
  }
  void set_type(TensorEntry& t, uint64_t at) {
    const auto id = r_.little<uint32_t>();
    const auto* row = std::ranges::find(kGgufTypes, id, &GgufType::id);
    if (row == std::end(kGgufTypes))
      fail_at(
          source_, at, "'{}' has the {} type {}; known are {}", shown(t.name),
          std::ranges::find(kRemovedTypes, id) == std::end(kRemovedTypes) ? "unknown" : "removed",
          id, known_gguf_types());
    t.type = row->block.name;
    t.dtype = row->dtype;
    const int64_t n = element_count(source_, at, t.shape);
    if (row->block.elements > 1) {
      t.block = &row->block;
      if (t.shape.empty() || t.shape.back() % row->block.elements != 0)
        fail_at(source_, at, "'{}' of {} has rows of {} elements, no multiple of {}", shown(t.name),
                t.type, t.shape.empty() ? 1 : t.shape.back(), row->block.elements);
    }
    t.size_bytes = checked_bytes(source_, at, n / row->block.elements, row->block.size_bytes);
  }
  void place() {
    const uint64_t header_end = r_.offset();
    if (index_.tensors.empty()) return;
    const uint64_t begin = (header_end + alignment_ - 1) / alignment_ * alignment_;
    std::vector<ByteRange> ranges;
    for (TensorEntry& t : index_.tensors) {
      if (t.offset > source_.size_bytes())
        fail_at(source_, header_end, "'{}' begins at {} of the data, beyond the file's {} bytes",
                shown(t.name), t.offset, source_.size_bytes());
      t.offset += begin;
      // An empty tensor at the end of a file may stand in padding that was not written.
      if (t.size_bytes == 0) t.offset = std::min(t.offset, source_.size_bytes());
      ranges.push_back({t.offset, t.size_bytes, &t.name});
    }
    require_disjoint(source_, ranges, std::min(begin, source_.size_bytes()), source_.size_bytes());
  }

  const ByteSource& source_;
  ByteReader r_;
  FileIndex index_;
  std::vector<GgufItem> items_;
  std::unordered_set<std::string> names_;
  uint64_t alignment_ = kDefaultAlignment, values_ = 0;
};

}  // namespace

bool is_gguf(const ByteSource& source) {
  return source.size_bytes() >= 4 && ByteReader(source).little<uint32_t>() == kMagic;
}

FileIndex read_gguf(const ByteSource& source) { return Reader(source).read(); }

std::vector<GgufItem> gguf_items(const ByteSource& source) {
  Reader reader(source);
  reader.read();
  return reader.items();
}

uint32_t gguf_type_id(std::string_view name) {
  const auto* row =
      std::ranges::find(kGgufTypes, name, [](const GgufType& t) { return t.block.name; });
  TUFF_CHECK(row != std::end(kGgufTypes), "no type {}", name);
  return row->id;
}

const BlockType* gguf_block(std::string_view name) {
  const auto* row =
      std::ranges::find(kGgufTypes, name, [](const GgufType& t) { return t.block.name; });
  return row == std::end(kGgufTypes) ? nullptr : &row->block;
}

}  // namespace tuff::io
