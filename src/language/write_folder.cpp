#include "language/write_folder.h"

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "base/json.h"
#include "base/os.h"
#include "io/formats/gguf.h"
#include "io/formats/safetensors.h"
#include "language/hugging_face.h"
#include "language/tensor_writer.h"

namespace tuff::language {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndex = "model.safetensors.index.json", kConfig = "config.json";

std::string name_in(const std::string& folder, std::string_view name) {
  return (fs::path(folder) / name).string();
}

// In whatever format: other ones than those that are written would be of the model as it was.
bool is_weights(const std::string& name) {
  constexpr std::string_view kEndings[] = {".safetensors", ".safetensors.index.json", ".bin",
                                           ".bin.index.json", ".pt", ".pth", ".gguf", ".onnx"};
  return std::ranges::any_of(kEndings, [&](std::string_view end) { return name.ends_with(end); });
}

// A tensor of a folder's file: as it is there, and as it will be.
struct Planned {
  TensorInfo from;
  FolderTensor place;
  io::TensorEntry entry;
};

DType dtype_of(const TensorInfo& from, const std::string& type) {
  if (type == from.type) return from.dtype;
  return type == "F32" ? DType::F32 : type == "BF16" ? DType::BF16 : DType::F16;
}

class FolderWriter {
 public:
  FolderWriter(std::string from, const TensorDict& file, std::string to,
               const FolderLayout& layout, const WeightChanges& changes,
               const FolderOptions& options)
      : from_(std::move(from)),
        to_(std::move(to)),
        file_(file),
        layout_(layout),
        changes_(changes),
        options_(options),
        progress_(options.progress) {
    for (const TensorInfo& t : file_.info()) plan(t);
  }

  void write() {
    for (auto& [path, tensors] : shards_) write_shard(fs::path(path).filename().string(), tensors);
    for (const std::string& name : folder_files(from_)) {
      const bool is_shard = std::ranges::any_of(
          shards_, [&](const auto& shard) { return fs::path(shard.first).filename() == name; });
      if (!is_shard) write_text(name);
    }
  }
  Quantized commit() {
    for (const auto& f : weights_) f->commit();
    for (const auto& f : texts_) f->commit();
    return done_;
  }

 private:
  void plan(const TensorInfo& from) {
    Planned p{from, layout_.place(from.name), {}};
    TensorInfo known = from;
    known.name = p.place.name;
    const bool changes = changes_.has_values(known.name);
    const std::string type = changes ? changes_.type(known) : from.type;
    p.entry = {.name = from.name, .type = type, .dtype = dtype_of(from, type), .shape = from.shape};
    p.entry.size_bytes = from.size_bytes;
    if (type != from.type)
      p.entry.size_bytes = from.size_bytes / size_bytes(from.dtype) * size_bytes(p.entry.dtype);
    progress_.expect(p.entry.size_bytes);
    done_.bytes_before += from.size_bytes, done_.bytes += p.entry.size_bytes;
    done_.tensors[type]++;
    shards_[from.file].push_back(std::move(p));
  }

  void write_shard(const std::string& name, const std::vector<Planned>& tensors) {
    std::vector<io::TensorEntry> entries;
    for (const Planned& p : tensors) entries.push_back(p.entry);
    TensorWriter& out =
        *weights_.emplace_back(std::make_unique<TensorWriter>(name_in(to_, name), progress_));
    out.header(io::encode_safetensors_header(entries, file_.metadata()));
    for (const size_t i : io::by_offset(entries)) {
      const Planned& p = tensors[i];
      if (changes_.has_values(p.place.name))
        out.encode(p.from.name, values(p), p.entry.type);
      else
        out.copy(p.from);
    }
  }
  Tensor values(const Planned& p) const {
    const std::string& name = p.place.name;
    const Tensor before = layout_.read(name, file_.at(p.from.name));
    const Tensor all = changes_.values(name, before);
    const Tensor own = p.place.expert ? all.select(0, int64_t(*p.place.expert)) : all;
    return layout_.written(name, own).contiguous();
  }

  void write_text(const std::string& name) {
    std::vector<uint8_t> bytes = os::read_file(name_in(from_, name));
    const Json json = name == kIndex || name == kConfig
                                 ? Json::parse(bytes, nullptr, false)
                                 : Json();
    const Json changed = name == kIndex ? with_size(json) : with_type(json);
    if (changed != json) {
      const std::string text = changed.dump(2) + "\n";
      bytes.assign(text.begin(), text.end());
    }
    os::OutputFile& out =
        *texts_.emplace_back(std::make_unique<os::OutputFile>(name_in(to_, name)));
    out.write(bytes);
  }
  Json with_size(Json index) const {
    if (index.contains("metadata") && index["metadata"].contains("total_size"))
      index["metadata"]["total_size"] = done_.bytes;
    return index;
  }
  Json with_type(Json config) const {
    const std::string name = options_.type == "F32"    ? "float32"
                             : options_.type == "BF16" ? "bfloat16"
                                                       : "float16";
    for (const char* key : {"dtype", "torch_dtype"})
      if (!options_.type.empty() && config.contains(key)) config[key] = name;
    return config;
  }

  const std::string from_, to_;
  const TensorDict& file_;
  const FolderLayout& layout_;
  const WeightChanges& changes_;
  const FolderOptions& options_;
  WriteProgress progress_;
  std::map<std::string, std::vector<Planned>> shards_;  // by their paths
  Quantized done_;
  std::vector<std::unique_ptr<TensorWriter>> weights_;
  std::vector<std::unique_ptr<os::OutputFile>> texts_;
};

}  // namespace

// config.json is the last one: a folder that lacks it is of no model.
std::vector<std::string> folder_files(const std::string& from) {
  const std::string path = hugging_face_weights(from);
  std::vector<std::string> out{fs::path(path).filename().string()};
  if (out[0] == kIndex) {
    const io::ShardIndex index = io::read_shard_index(io::FileBytes(path));
    out.insert(out.end(), index.files.begin(), index.files.end());
  }
  for (const std::string& name : os::list_directory(from))
    if (!name.starts_with('.') && !is_weights(name) && name != kConfig &&
        !os::is_directory(name_in(from, name)))
      out.push_back(name);
  out.emplace_back(kConfig);
  return out;
}

Quantized write_folder(const std::string& from, const TensorDict& file, const std::string& to,
                       const FolderLayout& layout, const WeightChanges& changes,
                       const FolderOptions& options) {
  const bool makes_folder = !os::exists(to);
  os::make_directories(to);
  try {
    FolderWriter writer(from, file, to, layout, changes, options);
    writer.write();
    return writer.commit();
  } catch (...) {
    std::error_code ignored;
    if (makes_folder) fs::remove(to, ignored);  // unless something is in it
    throw;
  }
}

}  // namespace tuff::language
