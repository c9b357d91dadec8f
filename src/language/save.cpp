#include "language/save.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/check.h"
#include "base/os.h"
#include "io/quantize.h"
#include "language/hugging_face.h"
#include "language/model_state.h"
#include "language/weight_types.h"
#include "language/write_folder.h"
#include "language/write_gguf.h"

namespace tuff::language {
namespace {

namespace fs = std::filesystem;

// Parameters in place of the file's weights, and what an adapter adds.
class TrainedWeights final : public WeightChanges {
 public:
  TrainedWeights(const nn::StateDict& parameters, std::map<std::string, LowRank> additions,
                 std::optional<WeightTypes> types)
      : additions_(std::move(additions)), types_(std::move(types)) {
    for (const nn::NamedTensor& p : parameters) parameters_.emplace(p.name, p.tensor);
  }
  bool has_values(const std::string& name) const override {
    return parameters_.contains(name) || additions_.contains(name);
  }
  std::string type(const TensorInfo& t) const override {
    if (!has_values(t.name)) return t.type;
    const std::string_view wanted = types_ ? types_->of(t) : t.type;
    return std::string(io::can_quantize(wanted) ? wanted : "F16");
  }
  Tensor values(const std::string& name, const Tensor& before) const override {
    const auto own = parameters_.find(name);
    const Tensor base = own == parameters_.end() ? before : own->second;
    const Tensor wide = base.detach().to(DType::F32);
    const auto added = additions_.find(name);
    return added == additions_.end() ? wide : wide + added->second.product().detach();
  }
  // Unsupported for one that has no place in a file: it would be lost.
  void require_places(const std::set<std::string>& tensors) const {
    const auto require = [&](const auto& changes) {
      for (const auto& [name, change] : changes)
        if (!tensors.contains(name)) fail<Unsupported>("the model's file has no tensor {}", name);
    };
    require(parameters_), require(additions_);
  }
  std::optional<uint32_t> file_type() const override {
    return types_ ? std::optional(types_->file_type()) : std::nullopt;
  }

 private:
  std::map<std::string, Tensor> parameters_;
  const std::map<std::string, LowRank> additions_;
  const std::optional<WeightTypes> types_;
};

std::string type_of_folder(const std::string& type) {
  if (type.empty()) return "";
  if (type == "f32") return "F32";
  if (type == "f16") return "F16";
  if (type == "bf16") return "BF16";
  fail<InvalidArgument>("'{}': weights of a folder are written as f32, f16 or bf16", type);
}

void require_new_folder(const std::string& from, const std::string& to, bool overwrite) {
  if (!os::exists(to)) return;
  if (!os::is_directory(to)) fail<InvalidArgument>("{} is no folder, as {} is", to, from);
  const std::vector<std::string> files = folder_files(from);
  for (const std::string& name : os::list_directory(to)) {
    const bool is_part = std::ranges::find(files, name) != files.end();
    if (is_part) require_new_file((fs::path(to) / name).string(), overwrite);
    if (!is_part && name.starts_with("model") && name.find(".safetensors") != name.npos)
      fail<InvalidArgument>("{} has {} of another model: name another folder", to, name);
  }
}

}  // namespace

void require_savable(const std::string& from, const std::string& to, const SaveOptions& options) {
  if (!options.type.empty()) WeightTypes(options.type, {});
  if (os::is_directory(from)) {
    type_of_folder(options.type);
    return require_new_folder(from, to, options.overwrite);
  }
  if (os::is_directory(to))
    fail<InvalidArgument>("{} is a folder: a file is written of {}", to, from);
  require_new_file(to, options.overwrite);
}

Quantized Model::save(const std::string& to, const SaveOptions& options) const {
  const State& s = *state_;
  require_savable(s.path, to, options);
  const std::string folder_type = s.is_folder() ? type_of_folder(options.type) : "";
  const std::string path = s.is_folder() ? hugging_face_weights(s.path) : s.path;
  const TensorDict file = tuff::load(path, {.device = s.device});
  std::optional<WeightTypes> types;
  if (!options.type.empty()) types.emplace(options.type, file.info());
  const TrainedWeights weights(s.parameters, s.additions(), types);
  if (!s.is_folder()) {
    const std::vector<std::string> names = file.names();
    weights.require_places({names.begin(), names.end()});
    return write_gguf(s.path, file, to, weights, options.progress);
  }
  const FolderLayout layout(s.config, file);
  std::set<std::string> places;
  for (const std::string& name : file.names()) places.insert(layout.place(name).name);
  weights.require_places(places);
  return write_folder(s.path, file, to, layout, weights,
                      {.type = folder_type, .progress = options.progress});
}

}  // namespace tuff::language
