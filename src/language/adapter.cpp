#include <tuff/adapter.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <span>

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

using Map = Projection LayerWeights::*;
using ExpertMap = ExpertMaps Experts::*;
using SharedMap = Projection Experts::*;

// A linear map of each layer, by transformers' name of it and by GGUF's. Where files have several
// as one, these stand behind each other. Those of experts are one for each, of which files have
// matrices one by one.
struct Target {
  std::string_view part, name, tensor;
  std::array<Map, 3> maps = {};
  ExpertMap experts = nullptr;
  SharedMap shared = nullptr;
};
constexpr Target kUsual[] = {
    {"self_attn", "q_proj", "attn_q", {&LayerWeights::queries}},
    {"self_attn", "k_proj", "attn_k", {&LayerWeights::keys}},
    {"self_attn", "v_proj", "attn_v", {&LayerWeights::values}},
    {"self_attn", "o_proj", "attn_output", {&LayerWeights::output}},
    {"mlp", "gate_proj", "ffn_gate", {&LayerWeights::gate}},
    {"mlp", "up_proj", "ffn_up", {&LayerWeights::up}},
    {"mlp", "down_proj", "ffn_down", {&LayerWeights::down}},
};
constexpr Target kMixtral[] = {
    kUsual[0], kUsual[1], kUsual[2], kUsual[3],
    {"block_sparse_moe.experts", "w1", "ffn_gate_exps", {}, &Experts::gate},
    {"block_sparse_moe.experts", "w3", "ffn_up_exps", {}, &Experts::up},
    {"block_sparse_moe.experts", "w2", "ffn_down_exps", {}, &Experts::down},
};
constexpr Target kQwenExperts[] = {
    kUsual[0], kUsual[1], kUsual[2], kUsual[3], kUsual[4], kUsual[5], kUsual[6],
    {"mlp.experts", "gate_proj", "ffn_gate_exps", {}, &Experts::gate},
    {"mlp.experts", "up_proj", "ffn_up_exps", {}, &Experts::up},
    {"mlp.experts", "down_proj", "ffn_down_exps", {}, &Experts::down},
    {"mlp.shared_expert", "gate_proj", "ffn_gate_shexp", {}, nullptr, &Experts::shared_gate},
    {"mlp.shared_expert", "up_proj", "ffn_up_shexp", {}, nullptr, &Experts::shared_up},
    {"mlp.shared_expert", "down_proj", "ffn_down_shexp", {}, nullptr, &Experts::shared_down},
};
constexpr Target kPhi3[] = {
    {"self_attn", "qkv_proj", "attn_qkv",
     {&LayerWeights::queries, &LayerWeights::keys, &LayerWeights::values}},
    {"self_attn", "o_proj", "attn_output", {&LayerWeights::output}},
    {"mlp", "gate_up_proj", "ffn_up", {&LayerWeights::gate, &LayerWeights::up}},
    {"mlp", "down_proj", "ffn_down", {&LayerWeights::down}},
};
constexpr Target kGpt2[] = {
    {"attn", "c_attn", "attn_qkv",
     {&LayerWeights::queries, &LayerWeights::keys, &LayerWeights::values}},
    {"attn", "c_proj", "attn_output", {&LayerWeights::output}},
    {"mlp", "c_fc", "ffn_up", {&LayerWeights::up}},
    {"mlp", "c_proj", "ffn_down", {&LayerWeights::down}},
};

// What transformers calls the layers of an architecture, and their maps.
struct Family {
  std::string_view layers;
  std::span<const Target> targets;
  bool transposed;  // weights are (in, out)
};
Family family_of(const Config& c) {
  const std::string_view name = c.architecture.name;
  if (name == "bert")
    fail<Unsupported>("adapters of {}, which writes no texts, are not known", name);
  if (name == "gpt2") return {"transformer.h", kGpt2, true};
  if (name == "phi3") return {"model.layers", kPhi3, false};
  if (c.experts > 0 && name == "llama") return {"model.layers", kMixtral, false};
  if (c.experts > 0) return {"model.layers", kQwenExperts, false};
  return {"model.layers", kUsual, false};
}

// As PEFT does: by the name, or what it ends in.
bool is_meant(const Target& t, std::string_view wanted) {
  return fmt::format(".{}.{}", t.part, t.name).ends_with(fmt::format(".{}", wanted));
}

std::vector<std::string> names_of(const Family& family) {
  std::vector<std::string> out;
  for (const Target& t : family.targets)
    if (std::ranges::find(out, t.name) == out.end()) out.emplace_back(t.name);
  return out;
}

// In the order that the options have.
std::vector<const Target*> chosen(const Family& family, const LoraOptions& o) {
  std::vector<const Target*> out;
  for (const std::string& wanted : o.targets) {
    const size_t before = out.size();
    for (const Target& t : family.targets) {
      if (!is_meant(t, wanted)) continue;
      if (std::ranges::find(out, &t) != out.end())
        fail<InvalidArgument>("the target {} is given twice", wanted);
      out.push_back(&t);
    }
    if (out.size() == before)
      fail<InvalidArgument>("an adapter of '{}': linear maps are {}", wanted,
                            fmt::join(names_of(family), ", "));
  }
  return out;
}

// Of the matrices of one expert, where there is one.
std::string name_of(const Family& family, size_t layer, const Target& t, char matrix,
                    std::optional<int64_t> expert = {}) {
  const std::string part = expert ? fmt::format("{}.{}", t.part, *expert) : std::string(t.part);
  return fmt::format("base_model.model.{}.{}.{}.{}.lora_{}.weight", family.layers, layer, part,
                     t.name, matrix);
}

std::string tensor_of(size_t layer, const Target& t) {
  return fmt::format("blk.{}.{}.weight", layer, t.tensor);
}

// Those of a layer that has them: of a model with experts some layers may have none.
bool has(const LayerWeights& l, const Target& t) {
  if (t.experts) return l.experts.router.defined();
  if (t.shared) return (l.experts.*t.shared).weight.defined();
  return (l.*t.maps[0]).weight.defined();
}

struct Extents {
  int64_t out = 0, in = 0, experts = 0;  // 0: it is one map
};
Extents extents_of(const LayerWeights& l, const Target& t) {
  if (t.experts) {
    const ExpertMaps& maps = l.experts.*t.experts;
    return {maps.out, maps.in, maps.count};
  }
  Extents e;
  const auto add = [&](const Projection& p) { e.out += p.out(), e.in = int64_t(p.weight.size(1)); };
  if (t.shared) add(l.experts.*t.shared);
  for (const Map map : t.maps)
    if (map) add(l.*map);
  return e;
}

// A matrix of the adapter, and those of files that it is made of.
struct Matrix {
  std::string name;
  std::vector<int64_t> sizes;
  std::vector<std::string> parts;  // of each expert; empty: it is one itself
};
std::vector<Matrix> matrices_of(const Config& c, const Weights& w, const LoraOptions& o) {
  const Family family = family_of(c);
  std::vector<Matrix> out;
  std::set<const Target*> missing;
  for (const Target* t : chosen(family, o)) missing.insert(t);
  for (size_t i = 0; i < w.layers.size(); i++) {
    for (const Target* t : chosen(family, o)) {
      if (!has(w.layers[i], *t)) continue;
      missing.erase(t);
      const Extents e = extents_of(w.layers[i], *t);
      for (const bool first : {true, false}) {
        const char letter = first ? 'A' : 'B';
        Matrix m{name_of(family, i, *t, letter),
                 {first ? o.rank : e.out, first ? e.in : o.rank},
                 {}};
        for (int64_t expert = 0; expert < e.experts; expert++)
          m.parts.push_back(name_of(family, i, *t, letter, expert));
        if (e.experts > 0) m.sizes.insert(m.sizes.begin(), e.experts);
        out.push_back(std::move(m));
      }
    }
  }
  if (out.empty())
    fail<Unsupported>("the model's layers have no map {}", (*missing.begin())->name);
  return out;
}

void require_options(const LoraOptions& o, const Config& c) {
  if (o.rank < 1 || o.rank > kLargestRank)
    fail<InvalidArgument>("a rank of {}: 1 to {} are possible", o.rank, kLargestRank);
  if (!std::isfinite(o.alpha)) fail<InvalidArgument>("alpha is {}", o.alpha);
  if (o.targets.empty()) fail<InvalidArgument>("an adapter has at least one target");
  chosen(family_of(c), o);
}

// "...mlp.experts.gate_proj.lora_A.weight" -> "...mlp.experts.3.gate_proj.lora_A.weight".
std::string of_expert(std::string name, int64_t expert) {
  constexpr std::string_view kMark = ".experts.";
  return name.insert(name.find(kMark) + kMark.size(), fmt::format("{}.", expert));
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
                          "modules_to_save", "layers_to_transform", "lora_bias",
                          "target_parameters"}) {
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
  LoraOptions o = options;
  if (o.targets.empty()) o.targets = names_of(family_of(s.config));
  require_options(o, s.config);
  const std::string device = s.weights.embedding.device();
  std::mt19937_64 random(o.seed);
  nn::StateDict parameters;
  for (const Matrix& m : matrices_of(s.config, s.weights, o)) {
    int64_t count = 1;
    for (const int64_t n : m.sizes) count *= n;
    std::vector<float> values(static_cast<size_t>(count));
    // As PEFT's: uniform within the root of 1 / in.
    const double bound = 1 / std::sqrt(double(m.sizes.back()));
    if (m.name.ends_with("A.weight"))
      for (float& v : values) v = float((double(random() >> 11) * 0x1p-52 - 1) * bound);
    parameters.push_back({m.name, Tensor::from(values, m.sizes, {DType::F32, device, true})});
  }
  return Adapter(std::move(o), family_of(s.config).transposed, std::move(parameters));
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
  const auto take = [&](const std::string& name, const std::vector<int64_t>& wanted) {
    const auto found = shapes.find(name);
    if (found == shapes.end()) fail<InvalidArgument>("{} lacks the tensor {}", path, name);
    if (found->second != wanted)
      fail<InvalidArgument>("{}: the tensor {} is ({}), ({}) was wanted", path, name,
                            fmt::join(found->second, ", "), fmt::join(wanted, ", "));
    shapes.erase(found);
    return file.at(name).detach().to(DType::F32);
  };
  for (const Matrix& m : matrices_of(s.config, s.weights, options)) {
    std::vector<Tensor> parts;
    for (const std::string& name : m.parts)
      parts.push_back(take(name, {m.sizes.begin() + 1, m.sizes.end()}));
    Tensor t = parts.empty() ? take(m.name, m.sizes) : Tensor::stack(parts, 0);
    parameters.push_back({m.name, t.contiguous().realize().set_requires_grad()});
  }
  if (!shapes.empty())
    fail<Unsupported>("{}: the tensor {} belongs to none of the adapter's targets", path,
                      shapes.begin()->first);
  return Adapter(std::move(options), family_of(s.config).transposed, std::move(parameters));
}

void Adapter::save(const std::string& folder, const std::string& base) const {
  os::make_directories(folder);
  TensorDict out;
  for (const auto& p : parameters_) {
    if (p.tensor.dim() == 2) out.set(p.name, p.tensor.detach());
    for (int64_t e = 0; p.tensor.dim() == 3 && e < int64_t(p.tensor.size(0)); e++)
      out.set(of_expert(p.name, e), p.tensor.detach().select(0, e));
  }
  tuff::save(folder + "/adapter_model.safetensors", out);
  const Json json = {{"peft_type", "LORA"},          {"task_type", "CAUSAL_LM"},
                     {"base_model_name_or_path", base}, {"r", options_.rank},
                     {"lora_alpha", options_.alpha}, {"target_modules", options_.targets},
                     {"lora_dropout", 0.0},          {"bias", "none"},
                     {"fan_in_fan_out", transposed_}, {"inference_mode", true}};
  os::write_text(folder + "/adapter_config.json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Model Model::with_adapter(const Adapter& adapter) const {
  const State& s = *state_;
  auto state = std::make_shared<State>(State{s.config, s.description, s.tokenizer, s.weights,
                                             s.device, s.path, s.parameters,
                                             std::make_shared<Adapter>(adapter)});
  const std::map<std::string, LowRank> additions = state->additions();
  const Family family = family_of(s.config);
  for (size_t i = 0; i < state->weights.layers.size(); i++) {
    LayerWeights& l = state->weights.layers[i];
    for (const Target& t : family.targets) {
      const auto added = additions.find(tensor_of(i, t));
      const LowRank own = added == additions.end() ? LowRank() : added->second;
      if (t.experts) (l.experts.*t.experts).adapter = own;
      if (t.shared) (l.experts.*t.shared).adapter = own;
      int64_t begin = 0;
      for (const Map map : t.maps) {
        if (!map) continue;
        Projection& p = l.*map;
        p.adapter = own;
        if (t.maps[1] && p.weight.defined()) p.adapter.part = {begin, p.out()}, begin += p.out();
      }
    }
  }
  return Model(std::move(state));
}

std::map<std::string, LowRank> Model::State::additions() const {
  std::map<std::string, LowRank> out;
  if (!adapter) return out;
  const LoraOptions& o = adapter->options();
  const Family family = family_of(config);
  std::map<std::string, Tensor> matrices;
  for (const nn::NamedTensor& p : adapter->parameters()) matrices.emplace(p.name, p.tensor);
  for (size_t i = 0; i < weights.layers.size(); i++) {
    for (const Target* t : chosen(family, o)) {
      if (!has(weights.layers[i], *t)) continue;
      const auto down = matrices.find(name_of(family, i, *t, 'A')),
                 up = matrices.find(name_of(family, i, *t, 'B'));
      const Extents e = extents_of(weights.layers[i], *t);
      if (down == matrices.end() || up == matrices.end() || down->second.size(-1) != e.in ||
          up->second.size(-2) != e.out ||
          (e.experts > 0 && down->second.size(0) != e.experts))
        fail<InvalidArgument>("the adapter is of another model: layer {}'s {} is ({}, {})", i,
                              t->name, e.out, e.in);
      // GGUF files have the rows of llama's queries and keys so that what is rotated together is
      // neighbours.
      const bool turned = config.architecture.pairs == RopePairs::Neighbours;
      const int64_t heads = t->name == "q_proj"   ? config.heads
                            : t->name == "k_proj" ? config.kv_heads
                                                  : 0;
      out[tensor_of(i, *t)] = {down->second, up->second, o.alpha / double(o.rank),
                               turned ? heads : 0};
    }
  }
  return out;
}

}  // namespace tuff::language
