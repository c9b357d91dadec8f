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
    state.add_file(std::move(source), std::move(index));
  }
  state.number();
  return dict;
}

}  // namespace tuff
