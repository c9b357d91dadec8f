// load(): dictionaries of tensors from files.
#include <algorithm>
#include <filesystem>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <tuff/io.h>
#include "base/check.h"
#include "base/os.h"
#include "io/dequantize.h"
#include "io/formats/format.h"
#include "io/formats/idx_array.h"
#include "io/formats/npy.h"
#include "io/formats/safetensors.h"
#include "io/formats/zip.h"
#include "io/gzip.h"
#include "io/tensor_bytes.h"

namespace tuff {

using io::FileIndex;
using io::TensorEntry;

// One tensor: in memory, or to be read.
struct Slot {
  std::string name;
  std::optional<TensorEntry> entry;
  std::string file;
  Tensor tensor;
};

struct TensorDict::State {
  mutable std::mutex mutex;
  std::vector<Slot> slots;
  std::unordered_map<std::string, size_t> ids;
  std::vector<std::shared_ptr<io::TensorBytes>> files;
  std::string format, device;
  bool mmap = false;
  Metadata metadata;
  std::unordered_map<std::string, size_t> metadata_ids;  // the first item of each key

  void add_metadata(std::string key, MetadataValue value) {
    metadata_ids.emplace(key, metadata.size());
    metadata.emplace_back(std::move(key), std::move(value));
  }
  void number() {
    ids.clear();
    for (size_t i = 0; i < slots.size(); i++) ids.emplace(slots[i].name, i);
  }
  void add_file(std::unique_ptr<io::ByteSource> source, FileIndex index) {
    for (TensorEntry& t : index.tensors) {
      t.file = uint32_t(files.size());
      std::string file = source->name();
      if (t.member) file += "[" + index.members[*t.member].name + "]";
      slots.push_back({t.name, std::move(t), std::move(file), {}});
    }
    for (auto& [key, value] : index.metadata) add_metadata(std::move(key), std::move(value));
    files.push_back(
        std::make_shared<io::TensorBytes>(std::move(source), std::move(index.members), mmap));
  }
};

namespace {

constexpr uint64_t kMaxInflated = uint64_t{4} << 30;
// An archive is read from its end on: all of it is in memory then.
constexpr uint64_t kMaxInflatedArchive = uint64_t{1} << 30;
// Headers of .npy and IDX files are shorter.
constexpr uint64_t kHeadBytes = io::kMaxNpyHeader + 4096;

// What the header declares, where it does. IoError where so few bytes cannot inflate to so many.
std::optional<uint64_t> declared_bytes(const io::ByteSource& head, uint64_t compressed_bytes) {
  std::optional<uint64_t> size;
  if (io::is_npy(head)) size = io::npy_file_bytes(head);
  if (io::is_idx(head)) size = io::idx_file_bytes(head);
  if (size && *size > io::most_inflated_bytes(compressed_bytes))
    io::fail_at(head, 0, "its header declares {} bytes, more than {} compressed ones can hold",
                *size, compressed_bytes);
  return size;
}

// Nothing but the head is inflated here where a header declares the size. Else it is counted first.
std::unique_ptr<io::ByteSource> open_compressed(std::shared_ptr<const io::FileBytes> file) {
  std::vector<uint8_t> head(kHeadBytes);
  head.resize(io::GzipReader(*file).read(head));
  if (const uint64_t all = head.size(); all < kHeadBytes)
    return std::make_unique<io::GzipBytes>(std::move(file), all);
  const io::MemoryBytes beginning(file->name(), head);
  const std::optional<uint64_t> declared = declared_bytes(beginning, file->size_bytes());
  if (declared && *declared < head.size())
    io::fail_at(beginning, *declared, "too long: its header declares no more bytes");
  const uint64_t limit = io::is_zip(beginning) ? kMaxInflatedArchive : kMaxInflated;
  const uint64_t size = declared ? *declared : io::inflated_bytes(*file, limit);
  return std::make_unique<io::GzipBytes>(std::move(file), size);
}

std::unique_ptr<io::ByteSource> open_source(const std::string& path) {
  auto file = std::make_unique<io::FileBytes>(path);
  if (!io::is_gzip(*file)) return file;
  return open_compressed(std::move(file));
}

std::string stem_of(const std::string& path) {
  std::filesystem::path name = std::filesystem::path(path).filename();
  if (name.extension() == ".gz") name = name.stem();
  return name.stem().string();
}

std::string beside(const std::string& path, const std::string& name) {
  return (std::filesystem::path(path).parent_path() / name).string();
}

TensorInfo info_of(const Slot& slot) {
  if (slot.entry) {
    const TensorEntry& t = *slot.entry;
    const bool decoded = t.block && io::can_dequantize(t.type);
    return {t.name,   t.type,   decoded ? DType::F32 : t.dtype, t.shape, t.size_bytes,
            t.offset, slot.file};
  }
  TensorInfo info{
      .name = slot.name, .type = name(slot.tensor.dtype()), .dtype = slot.tensor.dtype()};
  uint64_t count = 1;
  for (const Size& s : slot.tensor.sizes()) {
    info.shape.push_back(int64_t(s));
    count *= uint64_t(info.shape.back());
  }
  info.size_bytes = count * size_bytes(info.dtype);
  return info;
}

}  // namespace

TensorDict::TensorDict() : state_(std::make_shared<State>()) {}
size_t TensorDict::size() const {
  const std::lock_guard lock(state_->mutex);
  return state_->slots.size();
}
const std::string& TensorDict::format() const { return state_->format; }
const Metadata& TensorDict::metadata() const { return state_->metadata; }

std::vector<std::string> TensorDict::names() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<std::string> out;
  for (const Slot& s : state_->slots) out.push_back(s.name);
  return out;
}

bool TensorDict::contains(std::string_view name) const {
  const std::lock_guard lock(state_->mutex);
  return state_->ids.contains(std::string(name));
}

Tensor TensorDict::at(std::string_view name) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->ids.find(std::string(name));
  if (found == state_->ids.end())
    fail<InvalidArgument>("no tensor is named '{}'; there are {}, names() lists them", name,
                          state_->slots.size());
  Slot& slot = state_->slots[found->second];
  if (!slot.tensor.defined())
    slot.tensor = state_->files[slot.entry->file]->tensor(*slot.entry, state_->device);
  return slot.tensor;
}

Tensor io::packed_blocks(const TensorDict& tensors, std::string_view name) {
  const TensorDict::State& s = *tensors.state_;
  const std::lock_guard lock(s.mutex);
  const auto found = s.ids.find(std::string(name));
  if (found == s.ids.end()) return {};
  const std::optional<TensorEntry>& entry = s.slots[found->second].entry;
  if (!entry || !entry->block || !can_dequantize(entry->type)) return {};
  return s.files[entry->file]->blocks(*entry, s.device);
}

void TensorDict::set(const std::string& name, const Tensor& tensor) {
  if (!tensor.defined()) fail<InvalidArgument>("'{}': an undefined tensor", name);
  const std::lock_guard lock(state_->mutex);
  const auto [at, added] = state_->ids.emplace(name, state_->slots.size());
  if (added) state_->slots.emplace_back();
  state_->slots[at->second] = {name, std::nullopt, {}, tensor};
}

void TensorDict::erase(std::string_view name) {
  const std::lock_guard lock(state_->mutex);
  std::erase_if(state_->slots, [&](const Slot& s) { return s.name == name; });
  state_->number();
}

void TensorDict::set_state(std::string_view prefix, const nn::StateDict& state) {
  for (const nn::NamedTensor& t : state) set(fmt::format("{}.{}", prefix, t.name), t.tensor);
}

nn::StateDict TensorDict::state(std::string_view prefix) const {
  nn::StateDict out;
  const std::string begin = std::string(prefix) + ".";
  for (const std::string& name : names())
    if (name.starts_with(begin)) out.push_back({name.substr(begin.size()), at(name)});
  return out;
}

std::vector<TensorInfo> TensorDict::info() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<TensorInfo> out;
  for (const Slot& s : state_->slots) out.push_back(info_of(s));
  return out;
}

const MetadataValue* TensorDict::metadata(std::string_view key) const {
  const auto found = state_->metadata_ids.find(std::string(key));
  return found == state_->metadata_ids.end() ? nullptr : &state_->metadata[found->second].second;
}

void TensorDict::set_metadata(const std::string& key, MetadataValue value) {
  const auto found = state_->metadata_ids.find(key);
  if (found == state_->metadata_ids.end())
    state_->add_metadata(key, std::move(value));
  else
    state_->metadata[found->second].second = std::move(value);
}

namespace {

// Every tensor of the index is in the file that it names; what else the files hold is left out.
template <class State>
void load_shards(const std::string& path, State& state) {
  const io::FileBytes source(path);
  const io::ShardIndex index = io::read_shard_index(source);
  std::vector<std::unordered_map<std::string, TensorEntry>> shards;
  for (const std::string& name : index.files) {
    auto file = std::make_unique<io::FileBytes>(beside(path, name));
    FileIndex shard = io::read_safetensors(*file);
    shards.emplace_back();
    for (TensorEntry& t : shard.tensors) shards.back().emplace(t.name, std::move(t));
    for (auto& [key, value] : shard.metadata)
      if (!state.metadata_ids.contains(key)) state.add_metadata(std::move(key), std::move(value));
    shard.tensors.clear();
    shard.metadata.clear();
    state.add_file(std::move(file), std::move(shard));
  }
  for (const auto& [name, file] : index.tensors) {
    const auto found = shards[file].find(name);
    if (found == shards[file].end())
      io::fail_at(source, 0, "'{}' is to be in {}, which has no such tensor", io::shown(name),
                  io::shown(index.files[file]));
    TensorEntry entry = std::move(found->second);
    entry.file = file;
    state.slots.push_back({name, std::move(entry), beside(path, index.files[file]), {}});
  }
}

constexpr uint64_t kMaxSplits = 10'000;

std::optional<uint64_t> whole_number(const Metadata& metadata, std::string_view key) {
  for (const auto& [name, value] : metadata) {
    if (name != key) continue;
    if (const auto* u = std::get_if<uint64_t>(&value.value)) return *u;
    if (const auto* i = std::get_if<int64_t>(&value.value); i && *i >= 0) return uint64_t(*i);
  }
  return {};
}

// A GGUF model in several files, whose names end in -00001-of-00005.gguf (split.no, from 0 on, and
// split.count): the first, which has the metadata, opens all.
template <class State>
void load_splits(const std::string& path, const FileIndex& opened, uint64_t count, State& state) {
  const auto ending = [&](uint64_t i) { return fmt::format("-{:05}-of-{:05}.gguf", i + 1, count); };
  const auto number = whole_number(opened.metadata, "split.no");
  if (!number || *number >= count || count > kMaxSplits || !path.ends_with(ending(*number)))
    fail<IoError>("{}: split.no {} of split.count {}: a name that ends in {} was wanted", path,
                  number.value_or(0), count, ending(number.value_or(0)));
  const std::string stem = path.substr(0, path.size() - ending(*number).size());
  if (*number > 0)
    fail<IoError>("{}: it is one of {} files; {}{} opens them", path, count, stem, ending(0));
  for (uint64_t i = 0; i < count; i++) {
    const std::string name = stem + ending(i);
    if (!std::filesystem::exists(name))
      fail<IoError>("{}: the model is in {} files, of which {} is missing", path, count, name);
    auto file = std::make_unique<io::FileBytes>(name);
    FileIndex part = io::read_index(*file, stem_of(name));
    if (whole_number(part.metadata, "split.no") != i ||
        whole_number(part.metadata, "split.count") != count)
      fail<IoError>("{}: by what it says it is not the one of {} that its name has", name, count);
    if (i > 0) part.metadata.clear();
    state.add_file(std::move(file), std::move(part));
  }
  state.number();
  const uint64_t total = whole_number(state.metadata, "split.tensors.count")
                             .value_or(state.slots.size());
  if (total != state.slots.size() || state.ids.size() != state.slots.size())
    fail<IoError>("{}: split.tensors.count is {}, but the {} files have {} of {} names", path,
                  total, count, state.slots.size(), state.ids.size());
}

}  // namespace

TensorDict load(const std::string& path, const LoadOptions& options) {
  TensorDict dict;
  TensorDict::State& state = *dict.state_;
  state.device = options.device;
  state.mmap = options.mmap;
  if (path.ends_with(".index.json")) {
    state.format = "safetensors";
    load_shards(path, state);
  } else {
    auto source = open_source(path);
    FileIndex index = io::read_index(*source, stem_of(path));
    state.format = index.format;
    const uint64_t splits = state.format == "gguf"
                                ? whole_number(index.metadata, "split.count").value_or(0)
                                : 0;
    if (splits > 1)
      load_splits(path, index, splits, state);
    else
      state.add_file(std::move(source), std::move(index));
  }
  state.number();
  return dict;
}

}  // namespace tuff
