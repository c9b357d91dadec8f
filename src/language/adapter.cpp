#include <tuff/adapter.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <tuff/io.h>

#include "base/check.h"
#include "base/os.h"
#include "language/model_state.h"

namespace tuff::language {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLargestRank = 4096;

// A linear map of each layer, by Hugging Face's name of it.
struct Target {
  const char* part;
  const char* name;
  Projection LayerWeights::* map;
};
constexpr Target kTargets[] = {
    {"self_attn", "q_proj", &LayerWeights::queries}, {"self_attn", "k_proj", &LayerWeights::keys},
    {"self_attn", "v_proj", &LayerWeights::values},  {"self_attn", "o_proj", &LayerWeights::output},
    {"mlp", "gate_proj", &LayerWeights::gate},       {"mlp", "up_proj", &LayerWeights::up},
    {"mlp", "down_proj", &LayerWeights::down},
};

const Target& target_of(const std::string& name) {
  const auto found = std::ranges::find(kTargets, name, [](const Target& t) { return t.name; });
  if (found != std::end(kTargets)) return *found;
  std::vector<std::string> known;
  for (const Target& t : kTargets) known.push_back(t.name);
  fail<InvalidArgument>("an adapter of '{}': linear maps are {}", name, fmt::join(known, ", "));
}

std::string name_of(int64_t layer, const Target& t, char matrix) {
  return fmt::format("base_model.model.model.layers.{}.{}.{}.lora_{}.weight", layer, t.part, t.name,
                     matrix);
}

struct Extents {
  int64_t out, in;
};
Extents extents_of(const LayerWeights& l, const Target& t) {
  const Tensor& w = (l.*t.map).weight;
  if (!w.defined())
    fail<Unsupported>("the model's layers have no map {}; adapters of experts are not known yet",
                      t.name);
  return {int64_t(w.size(0)), int64_t(w.size(1))};
}

// Every matrix with its name and extents, in the order of the layers.
template <class Function>
void for_each_matrix(const Weights& w, const LoraOptions& o, const Function& f) {
  for (size_t i = 0; i < w.layers.size(); i++) {
    for (const std::string& name : o.targets) {
      const Target& t = target_of(name);
      const Extents e = extents_of(w.layers[i], t);
      f(name_of(int64_t(i), t, 'A'), o.rank, e.in);
      f(name_of(int64_t(i), t, 'B'), e.out, o.rank);
    }
  }
}

void require_options(const LoraOptions& o, const Config& c) {
  if (o.rank < 1 || o.rank > kLargestRank)
    fail<InvalidArgument>("a rank of {}: 1 to {} are possible", o.rank, kLargestRank);
  if (!std::isfinite(o.alpha)) fail<InvalidArgument>("alpha is {}", o.alpha);
  if (o.targets.empty()) fail<InvalidArgument>("an adapter has at least one target");
  for (const std::string& t : o.targets) {
    target_of(t);
    if (std::ranges::count(o.targets, t) > 1)
      fail<InvalidArgument>("the target {} is given twice", t);
  }
  for (const char* other : {"phi3", "gpt2", "bert"})
    if (std::string_view(c.architecture.name) == other)
      fail<Unsupported>("adapters of {}, which has other maps than Llama, are not known yet", other);
}

Json adapter_config(const std::string& path) {
  const std::vector<uint8_t> text = os::read_file(path);
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) fail<InvalidArgument>("{} is no JSON object", path);
  return json;
}

// What PEFT has beside plain LoRA, by the value that means it is not used.
void require_plain(const Json& json, const std::string& path) {
  const auto kind = json.value("peft_type", Json());
  if (kind != "LORA") fail<Unsupported>("{}: peft_type is {}, tuff knows LORA", path, kind.dump());
  for (const char* key : {"use_dora", "use_rslora", "rank_pattern", "alpha_pattern",
                          "modules_to_save", "layers_to_transform", "lora_bias"}) {
    const Json value = json.value(key, Json());
    if (value.is_null() || value == false || (value.is_structured() && value.empty())) continue;
    fail<Unsupported>("{}: {} is {}, which tuff does not know", path, key, value.dump());
  }
  const Json bias = json.value("bias", Json("none"));
  if (bias != "none") fail<Unsupported>("{}: bias is {}, tuff knows none", path, bias.dump());
}

LoraOptions options_from(const Json& json, const std::string& path) {
  require_plain(json, path);
  LoraOptions o;
  const Json rank = json.value("r", Json()), alpha = json.value("lora_alpha", Json()),
             targets = json.value("target_modules", Json());
  if (!rank.is_number_integer() || !alpha.is_number() || !targets.is_array())
    fail<InvalidArgument>("{}: r, lora_alpha and a list of target_modules were wanted", path);
  o.rank = rank.get<int64_t>(), o.alpha = alpha.get<double>();
  o.targets.clear();
  for (const Json& t : targets) o.targets.push_back(t.is_string() ? t.get<std::string>() : t.dump());
  return o;
}

}  // namespace

Adapter Adapter::create(const Model& model, const LoraOptions& options) {
  const Model::State& s = *model.state_;
  require_options(options, s.config);
  const std::string device = s.weights.embedding.device();
  std::mt19937_64 random(options.seed);
  nn::StateDict parameters;
  for_each_matrix(s.weights, options, [&](const std::string& name, int64_t rows, int64_t columns) {
    std::vector<float> values(size_t(rows * columns));
    // As PEFT's: uniform within the root of 1 / in.
    const double bound = 1 / std::sqrt(double(columns));
    if (name.ends_with("A.weight"))
      for (float& v : values) v = float((double(random() >> 11) * 0x1p-52 - 1) * bound);
    parameters.push_back({name, Tensor::from(values, {rows, columns}, {DType::F32, device, true})});
  });
  return Adapter(options, std::move(parameters));
}

Adapter Adapter::open(const std::string& folder, const Model& model) {
  const Model::State& s = *model.state_;
  const std::string at = folder + "/adapter_config.json";
  LoraOptions options = options_from(adapter_config(at), at);
  try {
    require_options(options, s.config);
  } catch (const InvalidArgument& e) {
    fail<InvalidArgument>("{}: {}", at, e.what());
  }
  const std::string path = folder + "/adapter_model.safetensors";
  const TensorDict file = load(path, {.device = s.device});
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const TensorInfo& info : file.info()) shapes.emplace(info.name, info.shape);
  nn::StateDict parameters;
  for_each_matrix(s.weights, options, [&](const std::string& name, int64_t rows, int64_t columns) {
    const auto found = shapes.find(name);
    if (found == shapes.end()) fail<InvalidArgument>("{} lacks the tensor {}", path, name);
    if (found->second != std::vector{rows, columns})
      fail<InvalidArgument>("{}: the tensor {} is ({}), ({}, {}) was wanted", path, name,
                            fmt::join(found->second, ", "), rows, columns);
    Tensor t = file.at(name).detach().to(DType::F32).contiguous().realize();
    parameters.push_back({name, t.set_requires_grad()});
    shapes.erase(found);
  });
  if (!shapes.empty())
    fail<Unsupported>("{}: the tensor {} belongs to none of the adapter's targets", path,
                      shapes.begin()->first);
  return Adapter(std::move(options), std::move(parameters));
}

void Adapter::save(const std::string& folder, const std::string& base) const {
  os::make_directories(folder);
  TensorDict out;
  for (const auto& p : parameters_) out.set(p.name, p.tensor.detach());
  tuff::save(folder + "/adapter_model.safetensors", out);
  const Json json = {{"peft_type", "LORA"},          {"task_type", "CAUSAL_LM"},
                     {"base_model_name_or_path", base}, {"r", options_.rank},
                     {"lora_alpha", options_.alpha}, {"target_modules", options_.targets},
                     {"lora_dropout", 0.0},          {"bias", "none"},
                     {"inference_mode", true}};
  os::write_text(folder + "/adapter_config.json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Model Model::with_adapter(const Adapter& adapter) const {
  const State& s = *state_;
  auto state = std::make_shared<State>(
      State{s.config, s.description, s.tokenizer, s.weights, s.device});
  const Config& c = state->config;
  const LoraOptions& o = adapter.options_;
  std::map<std::string, Tensor> matrices;
  for (const auto& p : adapter.parameters_) matrices.emplace(p.name, p.tensor);
  for (size_t i = 0; i < state->weights.layers.size(); i++) {
    LayerWeights& l = state->weights.layers[i];
    for (const Target& t : kTargets) {
      Projection& p = l.*t.map;
      p.adapter = {};
      if (std::ranges::find(o.targets, t.name) == o.targets.end()) continue;
      const auto down = matrices.find(name_of(int64_t(i), t, 'A')),
                 up = matrices.find(name_of(int64_t(i), t, 'B'));
      const Extents e = extents_of(l, t);
      if (down == matrices.end() || up == matrices.end() || down->second.size(1) != e.in ||
          up->second.size(0) != e.out)
        fail<InvalidArgument>("the adapter is of another model: layer {}'s {} is ({}, {})", i,
                              t.name, e.out, e.in);
      // GGUF files have the rows of llama's queries and keys so that what is rotated together is
      // neighbours.
      const bool turned = c.architecture.pairs == RopePairs::Neighbours;
      const int64_t heads = t.map == &LayerWeights::queries ? c.heads
                            : t.map == &LayerWeights::keys  ? c.kv_heads
                                                            : 0;
      p.adapter = {down->second, up->second, o.alpha / double(o.rank), turned ? heads : 0};
    }
  }
  return Model(std::move(state));
}

}  // namespace tuff::language
