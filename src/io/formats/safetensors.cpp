#include "io/formats/safetensors.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <ranges>
#include <unordered_map>
#include <unordered_set>

#include "base/arith.h"
#include "base/utf8.h"
#include "io/formats/json_events.h"

namespace tuff::io {
namespace {

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxShardIndex = 100'000'000;  // bytes
constexpr uint64_t kSafetensorsAlignment = 8;     // of the contents in the file

struct SafetensorsType {
  const char* name;
  DType dtype;  // Void: listed, but tuff does not compute with it
  uint64_t size_bytes;
};
constexpr SafetensorsType kSafetensorsTypes[] = {
    {"BOOL", DType::Bool, 1},    {"U8", DType::U8, 1},        {"I8", DType::I8, 1},
    {"U16", DType::U16, 2},      {"I16", DType::I16, 2},      {"U32", DType::U32, 4},
    {"I32", DType::I32, 4},      {"U64", DType::U64, 8},      {"I64", DType::I64, 8},
    {"F16", DType::F16, 2},      {"BF16", DType::BF16, 2},    {"F32", DType::F32, 4},
    {"F64", DType::F64, 8},
    {"F8_E4M3", DType::F8E4M3FN, 1}, {"F8_E5M2", DType::F8E5M2, 1},
    {"F8_E8M0", DType::Void, 1}, {"C64", DType::Void, 8},
};

const SafetensorsType* type_named(std::string_view name) {
  const auto* row = std::ranges::find(kSafetensorsTypes, name, &SafetensorsType::name);
  return row == std::end(kSafetensorsTypes) ? nullptr : row;
}

std::string known_safetensors_types() {
  const auto names = kSafetensorsTypes | std::views::transform(&SafetensorsType::name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// The header's grammar: {"name": {"dtype": text, "shape": [...], "data_offsets": [begin, end]},
// "__metadata__": {text: text}}.
class HeaderEvents : public JsonEvents {
 public:
  HeaderEvents(const ByteSource& source, FileIndex& index)
      : JsonEvents(source, kLengthBytes, 3), index_(index) {}

 private:
  void on_key(const std::string& key) override {
    if (depth() == 1) {
      name_ = key;
      in_metadata_ = key == "__metadata__";
      entry_ = {};
      entry_.name = key;
      seen_.clear();
      offsets_.clear();
      if (key.size() > kMaxNameBytes) refuse("a name of {} bytes", key.size());
    } else {
      field_ = key;
      if (!in_metadata_) seen_.push_back(key);
    }
  }
  void on_open(bool object) override {
    const bool right =
        depth() == 3 ? !object && !in_metadata_ && (field_ == "shape" || field_ == "data_offsets")
                     : object;
    if (!right) refuse("'{}' holds a {} where none belongs", here(), object ? "object" : "list");
  }
  void on_close(bool object) override {
    if (object && depth() == 2 && !in_metadata_) finish();
  }
  void on_text(const std::string& text) override {
    if (depth() == 2 && in_metadata_) {
      index_.metadata.emplace_back(field_, MetadataValue{text});
      return;
    }
    if (depth() != 2 || field_ != "dtype") refuse("'{}' is a text where none belongs", here());
    const SafetensorsType* row = type_named(text);
    if (!row)
      refuse("'{}' has the dtype '{}', which is none of {}", shown(name_), shown(text),
             known_safetensors_types());
    entry_.type = row->name;
    entry_.dtype = row->dtype;
    element_bytes_ = row->size_bytes;
  }
  void on_unsigned(uint64_t n) override {
    if (depth() != 3 || in_metadata_) refuse("'{}' is a number where none belongs", here());
    if (n > uint64_t(INT64_MAX)) refuse("'{}' is {}, more than 2^63 - 1", here(), n);
    if (field_ == "shape") {
      if (entry_.shape.size() == kMaxAxes)
        refuse("'{}' has more than {} axes", shown(name_), kMaxAxes);
      entry_.shape.push_back(int64_t(n));
    } else {
      offsets_.push_back(n);
      if (offsets_.size() > 2) refuse("'{}' has more than two data_offsets", shown(name_));
    }
  }

  std::string here() const {
    return depth() > 1 ? shown(name_) + "." + shown(field_) : shown(name_);
  }
  void finish() {
    std::ranges::sort(seen_);
    if (seen_ != std::vector<std::string>{"data_offsets", "dtype", "shape"})
      refuse("'{}' has not dtype, shape and data_offsets, but {}", shown(name_),
             shown(fmt::format("{}", fmt::join(seen_, ", "))));
    if (offsets_.size() != 2 || offsets_[0] > offsets_[1])
      refuse("'{}' has data_offsets [{}]; a begin and an end not below it belong there",
             shown(name_), fmt::join(offsets_, ", "));
    const int64_t count = element_count(source(), kLengthBytes, entry_.shape);
    entry_.offset = offsets_[0];
    entry_.size_bytes = checked_bytes(source(), kLengthBytes, count, element_bytes_);
    if (entry_.size_bytes != offsets_[1] - offsets_[0])
      refuse("'{}' of {} ({}) takes {} bytes, but its data_offsets {}..{} are {} apart",
             shown(name_), entry_.type, fmt::join(entry_.shape, ", "), entry_.size_bytes,
             offsets_[0], offsets_[1], offsets_[1] - offsets_[0]);
    index_.tensors.push_back(std::move(entry_));
  }

  FileIndex& index_;
  TensorEntry entry_;
  std::string name_, field_;
  std::vector<std::string> seen_;
  std::vector<uint64_t> offsets_;
  uint64_t element_bytes_ = 0;
  bool in_metadata_ = false;
};

// The contents follow each other from the first byte to the last, in any order of names.
void place(const ByteSource& source, FileIndex& index, uint64_t begin) {
  const uint64_t data_bytes = source.size_bytes() - begin;
  uint64_t end = 0;
  for (const size_t i : by_offset(index.tensors)) {
    TensorEntry& t = index.tensors[i];
    if (t.offset != end)
      fail_at(source, begin, "'{}' begins at {} of the contents where {} {}", shown(t.name),
              t.offset, end, t.offset < end ? "is taken: tensors overlap" : "must be: a hole");
    end = t.offset + t.size_bytes;
    if (end > data_bytes)
      fail_at(source, begin, "'{}' ends at {} of the contents, which have {} bytes: truncated",
              shown(t.name), end, data_bytes);
    t.offset += begin;
  }
  if (end != data_bytes)
    fail_at(source, begin + end, "{} bytes follow the last tensor", data_bytes - end);
}

class ShardEvents : public JsonEvents {
 public:
  ShardEvents(const ByteSource& source, ShardIndex& out) : JsonEvents(source, 0, 16), out_(out) {}
  bool found() const { return found_; }

 private:
  void on_key(const std::string& key) override {
    if (depth() == 1) {
      in_map_ = key == "weight_map";
      found_ |= in_map_;
    } else if (in_map_) {
      name_ = key;
    }
  }
  void on_open(bool object) override {
    if (in_map_ && (!object || depth() > 2)) refuse("weight_map holds more than names of files");
  }
  void on_close(bool) override {
    if (depth() == 2) in_map_ = false;
  }
  void on_unsigned(uint64_t n) override {
    if (in_map_) refuse("'{}' stands in {}, which is no file's name", shown(name_), n);
  }
  void on_text(const std::string& file) override {
    if (!in_map_) return;
    if (depth() != 2) refuse("weight_map is no object of names");
    if (file.empty() || file[0] == '.' ||
        file.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
      refuse("'{}' stands in '{}', which is no plain name of a file beside", shown(name_),
             shown(file));
    const auto [at, added] = ids_.emplace(file, uint32_t(out_.files.size()));
    if (added) out_.files.push_back(file);
    out_.tensors.emplace_back(name_, at->second);
  }
  void on_other() override {
    if (in_map_) refuse("'{}' stands in no file's name", shown(name_));
  }

  ShardIndex& out_;
  std::unordered_map<std::string, uint32_t> ids_;
  std::string name_;
  bool in_map_ = false, found_ = false;
};

}  // namespace

std::vector<size_t> by_offset(const std::vector<TensorEntry>& tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) {
    return tensors[a].offset != tensors[b].offset ? tensors[a].offset < tensors[b].offset
                                                  : tensors[a].size_bytes < tensors[b].size_bytes;
  });
  return order;
}

bool is_safetensors(const ByteSource& source) {
  if (source.size_bytes() <= kLengthBytes) return false;
  return source.bytes(kLengthBytes, 1)[0] == '{';
}

FileIndex read_safetensors(const ByteSource& source) {
  ByteReader reader(source);
  const auto length = reader.little<uint64_t>();
  if (length > kMaxSafetensorsHeader)
    fail_at(source, 0,
            "a header of {} bytes, the format allows {}: damaged, or no safetensors file", length,
            kMaxSafetensorsHeader);
  const std::string header = reader.text(length);
  if (!header.starts_with('{')) fail_at(source, kLengthBytes, "the header begins with no '{{'");
  FileIndex index;
  index.format = "safetensors";
  HeaderEvents events(source, index);
  events.parse(header);
  place(source, index, kLengthBytes + length);
  return index;
}

namespace {

// Objects are put together as text, in their keys' order.
void append_key(std::string& object, const std::string& key) {
  if (!is_utf8(key))
    fail<InvalidArgument>("safetensors: the name '{}' is no UTF-8; rename it", shown(key));
  object += (object.ends_with('{') ? "" : ",") + json_string(key) + ":";
}

// Several items of one key: the first one, as TensorDict::metadata() gives it.
void append_metadata(std::string& object, const Metadata& metadata) {
  std::unordered_set<std::string_view> keys;
  std::string all = "{";
  for (const auto& [key, value] : metadata) {
    if (!keys.insert(key).second) continue;
    append_key(all, key);
    const auto* plain = std::get_if<std::string>(&value.value);
    const std::string text = plain ? *plain : value.str(std::numeric_limits<size_t>::max());
    all += json_string(text);
  }
  object += all + "}";
}

}  // namespace

std::vector<uint8_t> encode_safetensors_header(std::vector<TensorEntry>& tensors,
                                               const Metadata& metadata) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](size_t i) { return size_bytes(tensors[i].dtype); });
  uint64_t end = 0;
  for (const size_t i : order) {
    tensors[i].offset = end;
    end += tensors[i].size_bytes;
  }
  std::string text = "{";
  if (!metadata.empty()) {
    append_key(text, "__metadata__");
    append_metadata(text, metadata);
  }
  for (const TensorEntry& t : tensors) {
    if (t.name == "__metadata__")
      fail<InvalidArgument>("safetensors: a tensor cannot be named __metadata__; rename it");
    const auto* row = std::ranges::find(kSafetensorsTypes, t.dtype, &SafetensorsType::dtype);
    append_key(text, t.name);
    text += fmt::format(R"({{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", row->name,
                        fmt::join(t.shape, ","), t.offset, t.offset + t.size_bytes);
  }
  text += "}";
  text.resize(align_up(text.size(), kSafetensorsAlignment), ' ');
  if (text.size() > kMaxSafetensorsHeader)
    fail<InvalidArgument>("safetensors: a header of {} bytes; the format allows {}", text.size(),
                          kMaxSafetensorsHeader);
  std::vector<uint8_t> out;
  for (size_t i = 0; i < kLengthBytes; i++) out.push_back(uint8_t(text.size() >> (8 * i)));
  out.insert(out.end(), text.begin(), text.end());
  return out;
}

ShardIndex read_shard_index(const ByteSource& source) {
  if (source.size_bytes() > kMaxShardIndex)
    fail_at(source, 0, "an index of {} bytes; more than {} are none", source.size_bytes(),
            kMaxShardIndex);
  ShardIndex out;
  ShardEvents events(source, out);
  ByteReader reader(source);
  events.parse(reader.text(source.size_bytes()));
  if (!events.found()) fail_at(source, 0, "the index has no weight_map");
  return out;
}

}  // namespace tuff::io
