#include "io/formats/pytorch.h"

#include <algorithm>
#include <unordered_map>

#include "io/formats/pickle.h"

namespace tuff::io {
namespace {

constexpr std::string_view kPickle = "data.pkl";

bool is_pickle(const ZipMember& m) {
  return m.name == kPickle || m.name.ends_with("/" + std::string(kPickle));
}

// Walks the containers; what contains itself is as deep as one likes.
class Flattened {
 public:
  Flattened(const ByteSource& source, const Pickle& pickle, FileIndex& index)
      : source_(source), pickle_(pickle), index_(index) {}
  // Tensors that were found, in the order of index.tensors.
  std::vector<const PickleTensor*> tensors;

  void walk(uint32_t value, const std::string& path, size_t depth) {
    const PickleValue& v = pickle_.values[value];
    count(path.size() + v.text.size());
    if (depth > kMaxCheckpointDepth)
      fail_at(source_, 0, "'{}' is nested deeper than {}, or contains itself", shown(path),
              kMaxCheckpointDepth);
    switch (v.kind) {
      case PickleKind::Dict: walk_dict(v, path, depth); return;
      case PickleKind::List:
      case PickleKind::Tuple:
        for (size_t i = 0; i < v.items.size(); i++)
          walk(v.items[i], joined(path, std::to_string(i)), depth + 1);
        return;
      case PickleKind::Tensor: {
        const PickleTensor& t = pickle_.tensors[size_t(v.number)];
        TensorEntry entry;
        entry.name = path;
        entry.type = t.type;
        entry.dtype = t.dtype;
        index_.tensors.push_back(std::move(entry));
        tensors.push_back(&t);
        return;
      }
      default: index_.metadata.emplace_back(path, plain(v, path));
    }
  }

 private:
  void count(uint64_t text_bytes) {
    text_bytes_ += text_bytes;
    if (++items_ > kMaxCheckpointItems)
      fail_at(source_, 0, "more than {} items in a checkpoint", kMaxCheckpointItems);
    if (text_bytes_ > kMaxCheckpointText)
      fail_at(source_, 0, "names and texts of more than {} bytes", kMaxCheckpointText);
  }
  static std::string joined(const std::string& path, const std::string& key) {
    return path.empty() ? key : path + "." + key;
  }
  void walk_dict(const PickleValue& v, const std::string& path, size_t depth) {
    for (size_t i = 0; i < v.items.size(); i += 2) {
      const PickleValue& key = pickle_.values[v.items[i]];
      if (key.kind != PickleKind::Text && key.kind != PickleKind::Int)
        fail_at(source_, 0, "a key of {} is neither a text nor a number",
                path.empty() ? "the outermost dictionary" : "'" + shown(path) + "'");
      if (key.text.size() > kMaxNameBytes)
        fail_at(source_, 0, "a key of {} bytes", key.text.size());
      walk(v.items[i + 1],
           joined(path, key.kind == PickleKind::Text ? key.text : std::to_string(key.number)),
           depth + 1);
    }
  }
  MetadataValue plain(const PickleValue& v, const std::string& path) const {
    switch (v.kind) {
      case PickleKind::None: return {};
      case PickleKind::Bool: return {v.number != 0};
      case PickleKind::Int: return {v.number};
      case PickleKind::Float: return {v.real};
      case PickleKind::Text: return {v.text};
      default: fail_at(source_, 0, "'{}' is a bare storage or class, no tensor", shown(path));
    }
  }

  const ByteSource& source_;
  const Pickle& pickle_;
  FileIndex& index_;
  size_t items_ = 0;
  uint64_t text_bytes_ = 0;
};

// Sets the range of bytes that a tensor reaches within its storage.
void place(const ByteSource& source, const PickleTensor& t, uint64_t storage_at,
           TensorEntry& entry) {
  entry.shape = t.shape;
  const int64_t count = element_count(source, storage_at, t.shape);
  checked_bytes(source, storage_at, count, size_bytes(t.dtype));  // repeated elements count
  int64_t reach = count == 0 ? 0 : 1, dense = 1;
  bool row_major = true;
  for (size_t i = t.shape.size(); count != 0 && i-- > 0;) {
    const int64_t steps = t.shape[i] - 1;
    if (steps == 0) continue;
    if (t.strides[i] > (t.storage_elements - reach) / steps)
      fail_at(source, storage_at, "'{}' reaches beyond the {} elements of its storage",
              shown(entry.name), t.storage_elements);
    reach += t.strides[i] * steps;
    row_major &= t.strides[i] == dense;
    dense *= t.shape[i];
  }
  if (t.offset > t.storage_elements - reach || reach > t.storage_elements)
    fail_at(source, storage_at, "'{}' takes {} elements from {} of a storage of {}",
            shown(entry.name), reach, t.offset, t.storage_elements);
  if (!row_major) entry.strides = t.strides;
  entry.offset = uint64_t(t.offset) * size_bytes(t.dtype);
  entry.size_bytes = uint64_t(reach) * size_bytes(t.dtype);
}

bool is_big_endian(const ByteSource& source, const ZipMember* member) {
  if (!member) return false;
  const std::vector<uint8_t> bytes = zip_member_bytes(source, *member, 16);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text != "little" && text != "big")
    fail_at(source, member->offset, "the byte order '{}' is none", shown(text));
  return text == "big";
}

}  // namespace

bool is_pytorch(const std::vector<ZipMember>& members) {
  return std::ranges::any_of(members, is_pickle);
}

FileIndex read_pytorch(const ByteSource& source, std::vector<ZipMember> members,
                       const std::string& name) {
  const auto pickle_member = std::ranges::find_if(members, is_pickle);
  TUFF_CHECK(pickle_member != members.end());
  const std::string prefix =
      pickle_member->name.substr(0, pickle_member->name.size() - kPickle.size());
  const std::vector<uint8_t> text = zip_member_bytes(source, *pickle_member, kMaxPickleBytes);
  const MemoryBytes bytes(source.name() + "[" + shown(pickle_member->name) + "]", text);
  const Pickle pickle = read_pickle(bytes);
  FileIndex index;
  index.format = "pytorch";
  Flattened flat(bytes, pickle, index);
  flat.walk(pickle.root, "", 0);
  for (auto& [key, value] : index.metadata)
    if (key.empty()) key = name;
  std::unordered_map<std::string, uint32_t> ids;
  for (size_t i = 0; i < members.size(); i++) ids.emplace(members[i].name, uint32_t(i));
  const bool big_endian = is_big_endian(source, member_named(members, prefix + "byteorder"));
  for (size_t i = 0; i < index.tensors.size(); i++) {
    TensorEntry& entry = index.tensors[i];
    const PickleTensor& t = *flat.tensors[i];
    if (entry.name.empty()) entry.name = name;
    const std::string& key = pickle.values[t.key].text;
    const auto found = ids.find(prefix + "data/" + key);
    if (found == ids.end())
      fail_at(source, pickle_member->offset, "the storage '{}' of '{}' is not in the archive",
              shown(key), shown(entry.name));
    const ZipMember& storage = members[found->second];
    const uint64_t bytes_each = size_bytes(t.dtype);
    if (storage.size_bytes % bytes_each != 0 ||
        uint64_t(t.storage_elements) != storage.size_bytes / bytes_each)
      fail_at(source, storage.offset, "the storage '{}' has {} bytes, but {} elements of {}",
              shown(key), storage.size_bytes, t.storage_elements, t.type);
    place(source, t, storage.offset, entry);
    entry.member = found->second;
    entry.big_endian = big_endian && bytes_each > 1;
  }
  require_distinct_names(source, pickle_member->offset, index);
  index.members = std::move(members);
  return index;
}

}  // namespace tuff::io
