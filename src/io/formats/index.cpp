#include "io/formats/index.h"

#include <algorithm>
#include <unordered_set>

#include <nlohmann/json.hpp>

namespace tuff {
namespace {

struct MetadataText {
  size_t shown_items;
  std::string operator()(std::monostate) const { return "null"; }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(int64_t v) const { return std::to_string(v); }
  std::string operator()(uint64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return fmt::format("{}", v); }
  std::string operator()(const std::string& v) const { return io::json_string(v); }
  std::string operator()(const MetadataValue::List& v) const {
    std::string out;
    for (size_t i = 0; i < std::min(v.size(), shown_items); i++)
      out += (i ? ", " : "") + v[i].str(shown_items);
    if (v.size() > shown_items) out += fmt::format(", ... {} in all", v.size());
    return "[" + out + "]";
  }
};

}  // namespace

std::string MetadataValue::str(size_t shown_items) const {
  return std::visit(MetadataText{shown_items}, value);
}

}  // namespace tuff

namespace tuff::io {

std::string json_string(const std::string& text) {
  using Json = nlohmann::json;
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

int64_t element_count(const ByteSource& source, uint64_t offset, std::span<const int64_t> shape) {
  constexpr int64_t kMaxElements = int64_t{1} << 62;
  if (shape.size() > kMaxAxes)
    fail_at(source, offset, "{} axes, more than {}", shape.size(), kMaxAxes);
  int64_t product = 1;
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0) fail_at(source, offset, "an extent of {}", extent);
    if (extent == 0) {
      empty = true;
      continue;
    }
    if (extent > kMaxElements / product)
      fail_at(source, offset, "the shape ({}) has more than 2^62 elements", fmt::join(shape, ", "));
    product *= extent;
  }
  return empty ? 0 : product;
}

uint64_t checked_bytes(const ByteSource& source, uint64_t offset, int64_t count, uint64_t size) {
  if (size != 0 && uint64_t(count) > uint64_t(INT64_MAX) / size)
    fail_at(source, offset, "{} elements of {} bytes are more than 2^63 bytes", count, size);
  return uint64_t(count) * size;
}

void require_disjoint(const ByteSource& source, std::vector<ByteRange> ranges, uint64_t begin,
                      uint64_t end) {
  std::ranges::sort(ranges, [](const ByteRange& a, const ByteRange& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.size_bytes < b.size_bytes;
  });
  const ByteRange* before = nullptr;
  for (const ByteRange& r : ranges) {
    if (r.begin < begin || r.begin > end || r.size_bytes > end - r.begin)
      fail_at(source, r.begin, "'{}' has {} bytes here, outside of {}..{}", shown(*r.name),
              r.size_bytes, begin, end);
    if (r.size_bytes == 0) continue;
    if (before && r.begin < before->begin + before->size_bytes)
      fail_at(source, r.begin, "'{}' overlaps '{}', which begins at byte {} and has {}",
              shown(*r.name), shown(*before->name), before->begin, before->size_bytes);
    before = &r;
  }
}

void require_distinct_names(const ByteSource& source, uint64_t offset, const FileIndex& index) {
  std::unordered_set<std::string_view> names;
  for (const TensorEntry& t : index.tensors)
    if (!names.insert(t.name).second)
      fail_at(source, offset, "two tensors are named '{}'", shown(t.name));
}

}  // namespace tuff::io
