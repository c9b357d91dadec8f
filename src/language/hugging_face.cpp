#include "language/hugging_face.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <numbers>
#include <span>

#include <fmt/ranges.h>

#include "base/check.h"
#include "base/json.h"
#include "base/os.h"
#include "base/parse_number.h"

namespace tuff::language {
namespace {

// model_type of config.json, and the architecture of config.cpp that it is.
constexpr std::array<std::pair<std::string_view, std::string_view>, 13> kModelTypes{{
    {"llama", "llama"},
    {"mistral", "llama"},
    {"mixtral", "llama"},
    {"qwen2", "qwen2"},
    {"qwen3", "qwen3"},
    {"qwen2_moe", "qwen2moe"},
    {"qwen3_moe", "qwen3moe"},
    {"phi3", "phi3"},
    {"gemma", "gemma"},
    {"gemma2", "gemma2"},
    {"gemma3_text", "gemma3"},
    {"gpt2", "gpt2"},
    {"bert", "bert"},
}};

class Fields {
 public:
  Fields(const Json& json, std::string path) : json_(json), path_(std::move(path)) {
    if (!json.is_object()) fail<InvalidArgument>("{} is no JSON object", path_);
  }
  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  double number(const char* key, double otherwise) const {
    const Json* v = find(key);
    if (!v) return otherwise;
    if (!v->is_number()) fail<InvalidArgument>("{}: {} is {}, no number", path_, key, v->dump());
    return v->get<double>();
  }
  int64_t count(const char* key, std::optional<int64_t> otherwise = {}) const {
    constexpr double kMost = 1 << 30;
    if (!find(key) && !otherwise) fail<InvalidArgument>("{} lacks {}", path_, key);
    const double n = number(key, double(otherwise.value_or(0)));
    if (!(n >= (otherwise ? 0 : 1)) || n > kMost || n != std::floor(n))
      fail<InvalidArgument>("{}: {} is {}", path_, key, n);
    return int64_t(n);
  }
  std::string text(const char* key) const {
    const Json* v = find(key);
    return v && v->is_string() ? v->get<std::string>() : "";
  }
  bool flag(const char* key, bool otherwise) const {
    const Json* v = find(key);
    return v && v->is_boolean() ? v->get<bool>() : otherwise;
  }
  std::vector<float> numbers(const char* key, size_t count) const {
    const Json* v = find(key);
    std::vector<float> out;
    for (const Json& x : v && v->is_array() ? *v : Json::array())
      out.push_back(x.is_number() ? x.get<float>() : 0);
    if (out.size() != count || std::ranges::any_of(out, [](float f) { return !(f > 0); }))
      fail<InvalidArgument>("{}: {} is no list of {} numbers above 0", path_, key, count);
    return out;
  }

 private:
  const Json& json_;
  std::string path_;
};

std::string_view architecture_name(const Fields& fields) {
  const std::string type = fields.text("model_type");
  std::vector<std::string_view> known;
  for (const auto& [name, architecture] : kModelTypes) {
    if (name == type) return architecture;
    known.push_back(name);
  }
  fail<Unsupported>("config.json: model_type '{}' is none of those that tuff runs: {}", type,
                    fmt::join(known, ", "));
}

// Rope as config.json has it: one object since transformers 5, before it a base beside
// "rope_scaling"; by kind of layer where layers with a window have a base of their own.
Json rope_of(const Json& config) {
  const Json::const_iterator all = config.find("rope_parameters");
  if (all != config.end() && all->is_object())
    return all->contains("full_attention") ? (*all)["full_attention"] : *all;
  Json rope = Json::object();
  if (const auto s = config.find("rope_scaling"); s != config.end() && s->is_object()) rope = *s;
  if (const auto theta = config.find("rope_theta"); theta != config.end())
    rope["rope_theta"] = *theta;
  if (!rope.contains("rope_type") && rope.contains("type")) rope["rope_type"] = rope["type"];
  return rope;
}

double window_rope_base(const Json& config, const Config& c) {
  const double usual = c.architecture.window_rope_base;
  if (usual == 0) return 0;
  const Json all = config.value("rope_parameters", Json::object());
  if (all.is_object() && all.contains("sliding_attention")) {
    const Json& of_windows = all["sliding_attention"];
    return Fields(of_windows, "config.json: rope").number("rope_theta", usual);
  }
  return Fields(config, "config.json").number("rope_local_base_freq", usual);
}

// Which layers have a window is a matter of the architecture here; a file may say otherwise.
void require_windows(const Json& config, const Config& c) {
  const auto types = config.find("layer_types");
  if (types == config.end() || !types->is_array()) return;
  for (size_t i = 0; i < types->size(); i++) {
    const Json wanted = c.has_window(int64_t(i)) ? "sliding_attention" : "full_attention";
    if ((*types)[i] != wanted)
      fail<Unsupported>("config.json: layer {} has {}, where {} has {}", i, (*types)[i].dump(),
                        c.architecture.name, wanted.dump());
  }
}

RopeScaling scaling_of(const Fields& rope, const Fields& config, int64_t context) {
  RopeScaling s;
  const std::string kind = rope.text("rope_type");
  s.factor = rope.number("factor", 1);
  if (!(s.factor > 0)) fail<InvalidArgument>("config.json: factor of rope is {}", s.factor);
  s.original_context = rope.number(
      "original_max_position_embeddings",
      config.number("original_max_position_embeddings", double(context)));
  if (kind == "linear") {
    s.kind = RopeScaling::Kind::Linear;
  } else if (kind == "yarn") {
    s.kind = RopeScaling::Kind::Yarn;
    s.beta_fast = rope.number("beta_fast", 32), s.beta_slow = rope.number("beta_slow", 1);
    if (rope.find("mscale") || rope.find("attention_factor"))
      fail<Unsupported>("config.json: yarn with attention_factor or mscale is not run yet");
  } else if (kind == "longrope" || kind == "su") {
    const double longer = double(context) / s.original_context;
    s.attention_factor =
        longer <= 1 ? 1 : std::sqrt(1 + std::log(longer) / std::log(s.original_context));
  } else if (!kind.empty() && kind != "default" && kind != "llama3") {
    fail<Unsupported>("config.json: rope_type '{}' is none of default, linear, yarn, llama3, "
                      "longrope", kind);
  }
  return s;
}

// The divisors of frequencies that Llama 3.1 and its followers have: 1 for short wavelengths, the
// factor for long ones, and what lies between is blended.
std::vector<float> llama3_divisors(const Fields& rope, const Config& c) {
  const double factor = rope.number("factor", 8), low = rope.number("low_freq_factor", 1),
               high = rope.number("high_freq_factor", 4), original = c.scaling.original_context;
  std::vector<float> out;
  for (int64_t i = 0; i < c.rotated / 2; i++) {
    const double f = std::pow(c.rope_base, -2.0 * double(i) / double(c.rotated));
    const double turns = original * f / (2 * std::numbers::pi);
    const double part = std::clamp((turns - low) / (high - low), 0.0, 1.0);
    out.push_back(float(1 / (part + (1 - part) / factor)));
  }
  return out;
}

// What GPT-2 and BERT call otherwise than those after them.
Json with_usual_names(Json json) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"n_layer", "num_hidden_layers"},   {"n_embd", "hidden_size"},
      {"n_head", "num_attention_heads"},  {"n_positions", "max_position_embeddings"},
      {"n_inner", "intermediate_size"},   {"layer_norm_epsilon", "rms_norm_eps"},
      {"layer_norm_eps", "rms_norm_eps"}, {"activation_function", "hidden_act"},
      {"num_experts", "num_local_experts"}};
  if (!json.is_object()) return json;
  for (const auto& [from, to] : kNames)
    if (json.contains(from) && !json.contains(to)) json[to] = json[from];
  const bool gpt2 = json.value("model_type", Json()) == "gpt2";
  if (gpt2 && json.value("intermediate_size", Json()).is_null() &&
      json.value("hidden_size", Json()).is_number_integer())
    json["intermediate_size"] = 4 * json["hidden_size"].get<double>();
  return json;
}

void require_activation(const Fields& fields, const Config& c) {
  const std::string name = fields.text("hidden_act");
  const bool tanh = name == "gelu_new" || name == "gelu_pytorch_tanh";
  if (!c.architecture.gated && !name.empty() &&
      !(c.architecture.activation == Activation::GeluTanh ? tanh : name == "gelu"))
    fail<Unsupported>("config.json: {} with the activation '{}' is not run", c.architecture.name,
                      name);
}

void read_experts(Config& c, const Fields& fields) {
  c.experts = fields.count("num_local_experts", 0);
  if (c.experts == 0) return;
  c.experts_used = fields.count("num_experts_per_tok");
  c.expert_hidden = fields.count("moe_intermediate_size", c.hidden);
  c.shared_hidden = fields.count("shared_expert_intermediate_size", c.hidden);
  c.normalizes_experts = fields.flag("norm_topk_prob", c.architecture.normalizes_experts);
  require_experts(c);
}

Config config_from(const Json& as_written) {
  const Json json = with_usual_names(as_written);
  const Fields fields(json, "config.json");
  Config c;
  c.architecture = architecture_of(std::string(architecture_name(fields)));
  const bool rotates = c.architecture.pairs != RopePairs::None;
  if (rotates) c.architecture.pairs = RopePairs::Halves;
  c.layers = fields.count("num_hidden_layers");
  c.width = fields.count("hidden_size");
  c.hidden = fields.count("intermediate_size");
  c.heads = fields.count("num_attention_heads");
  c.kv_heads = fields.count("num_key_value_heads", c.heads);
  c.vocabulary = fields.count("vocab_size");
  c.context = fields.count("max_position_embeddings");
  c.key_size = c.value_size = fields.count("head_dim", c.width / std::max<int64_t>(c.heads, 1));
  const double rotated = rotates ? fields.number("partial_rotary_factor", 1) : 0;
  c.rotated = 2 * int64_t(double(c.key_size) * rotated / 2);
  c.norm_epsilon = fields.number("rms_norm_eps", 1e-6);
  c.score_cap = fields.number("attn_logit_softcapping", 0);
  c.logit_cap = fields.number("final_logit_softcapping", 0);
  const bool usual = !fields.text("model_type").starts_with("qwen");
  const bool windows = fields.flag("use_sliding_window", usual);
  c.window = windows ? fields.count("sliding_window", 0) : 0;
  const Json rope_json = rope_of(json);
  const Fields rope(rope_json, "config.json: rope");
  c.rope_base = rope.number("rope_theta", 10000);
  c.window_rope_base = window_rope_base(json, c);
  c.scaling = scaling_of(rope, fields, c.context);
  require_windows(json, c);
  require_activation(fields, c);
  read_experts(c, fields);
  require_heads(c);
  const size_t pairs = size_t(c.rotated / 2);
  const std::string kind = rope.text("rope_type");
  if (kind == "llama3") c.rope_divisors = llama3_divisors(rope, c);
  if (kind == "longrope" || kind == "su") {
    c.rope_divisors = rope.numbers("short_factor", pairs);
    c.long_rope_divisors = rope.numbers("long_factor", pairs);
  }
  const double scalar = fields.number("query_pre_attn_scalar", double(c.key_size));
  c.score_scale = 1 / std::sqrt(scalar);
  return c;
}

struct Rename {
  std::string_view from, to;
};
constexpr Rename kNames[] = {
    {"model.embed_tokens.", "token_embd."},
    {"model.norm.", "output_norm."},
    {"lm_head.", "output."},
    {"model.layers.", "blk."},
    {".self_attn.q_proj.", ".attn_q."},
    {".self_attn.k_proj.", ".attn_k."},
    {".self_attn.v_proj.", ".attn_v."},
    {".self_attn.o_proj.", ".attn_output."},
    {".self_attn.qkv_proj.", ".attn_qkv."},
    {".self_attn.q_norm.", ".attn_q_norm."},
    {".self_attn.k_norm.", ".attn_k_norm."},
    {".input_layernorm.", ".attn_norm."},
    {".pre_feedforward_layernorm.", ".ffn_norm."},
    {".post_feedforward_layernorm.", ".post_ffw_norm."},
    {".mlp.gate_proj.", ".ffn_gate."},
    {".mlp.up_proj.", ".ffn_up."},
    {".mlp.gate_up_proj.", ".ffn_up."},
    {".mlp.down_proj.", ".ffn_down."},
    {".mlp.gate.", ".ffn_gate_inp."},
    {".mlp.experts.", ".experts."},
    {".mlp.shared_expert_gate.", ".ffn_gate_inp_shexp."},
    {".mlp.shared_expert.gate_proj.", ".ffn_gate_shexp."},
    {".mlp.shared_expert.up_proj.", ".ffn_up_shexp."},
    {".mlp.shared_expert.down_proj.", ".ffn_down_shexp."},
    {".block_sparse_moe.gate.", ".ffn_gate_inp."},
    {".block_sparse_moe.experts.", ".experts."},
};

constexpr Rename kGpt2Names[] = {
    {"transformer.", ""},
    {"wte.", "token_embd."},
    {"wpe.", "position_embd."},
    {"ln_f.", "output_norm."},
    {"lm_head.", "output."},
    {"h.", "blk."},
    {".ln_1.", ".attn_norm."},
    {".attn.c_attn.", ".attn_qkv."},
    {".attn.c_proj.", ".attn_output."},
    {".ln_2.", ".ffn_norm."},
    {".mlp.c_fc.", ".ffn_up."},
    {".mlp.c_proj.", ".ffn_down."},
};
constexpr Rename kBertNames[] = {
    {"bert.", ""},
    {"embeddings.word_embeddings.", "token_embd."},
    {"embeddings.position_embeddings.", "position_embd."},
    {"embeddings.token_type_embeddings.", "token_types."},
    {"embeddings.LayerNorm.", "token_embd_norm."},
    {"encoder.layer.", "blk."},
    {".attention.self.query.", ".attn_q."},
    {".attention.self.key.", ".attn_k."},
    {".attention.self.value.", ".attn_v."},
    {".attention.output.dense.", ".attn_output."},
    {".attention.output.LayerNorm.", ".attn_output_norm."},
    {".intermediate.dense.", ".ffn_up."},
    {".output.dense.", ".ffn_down."},
    {".output.LayerNorm.", ".layer_output_norm."},
};

// Masks that older files hold, and heads for other tasks.
bool is_of_no_use(std::string_view name, std::string_view architecture) {
  if (architecture == "gpt2")
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
  if (architecture != "bert") return false;
  if (name.starts_with("bert.")) name.remove_prefix(5);
  return name.starts_with("pooler.") || name.starts_with("cls.") ||
         name == "embeddings.position_ids";
}

void rename(std::string& name, std::span<const Rename> names) {
  for (const Rename& r : names)
    if (const size_t at = name.find(r.from); at != std::string::npos)
      name.replace(at, r.from.size(), r.to);
}

std::string renamed(std::string name, std::string_view architecture, bool has_post_norms) {
  if (architecture == "gpt2") {
    rename(name, kGpt2Names);
  } else if (architecture == "bert") {
    rename(name, kBertNames);
  } else {
    rename(name, kNames);
    const Rename behind_attention{".post_attention_layernorm.",
                                  has_post_norms ? ".post_attention_norm." : ".ffn_norm."};
    rename(name, {&behind_attention, 1});
  }
  return name;
}

constexpr std::string_view kExpertMark = ".experts.";
constexpr size_t kMostExperts = 1 << 16;
constexpr Rename kExpertKinds[] = {
    {"w1.weight", "ffn_gate_exps.weight"},      {"gate_proj.weight", "ffn_gate_exps.weight"},
    {"w3.weight", "ffn_up_exps.weight"},        {"up_proj.weight", "ffn_up_exps.weight"},
    {"w2.weight", "ffn_down_exps.weight"},      {"down_proj.weight", "ffn_down_exps.weight"},
};

// Of "blk.0.experts.3.up_proj.weight": the third part of a tensor of all experts.
FolderTensor expert_of(const std::string& name, size_t mark) {
  const size_t number = mark + kExpertMark.size(), dot = name.find('.', number);
  const std::string_view text = name;
  const auto expert = parse_number<size_t>(text.substr(number, dot - number));
  const std::string_view rest = dot == text.npos ? "" : text.substr(dot + 1);
  const auto* kind = std::ranges::find(kExpertKinds, rest, &Rename::from);
  if (!expert || *expert >= kMostExperts || kind == std::end(kExpertKinds))
    fail<Unsupported>("the tensor {} is none that tuff knows of experts", name);
  return {name.substr(0, mark + 1) + std::string(kind->to), *expert};
}

// Experts that files have one by one, by the name of all of them.
class ExpertParts {
 public:
  void add(const FolderTensor& place, const Tensor& tensor) {
    std::vector<Tensor>& parts = all_[place.name];
    if (parts.size() <= *place.expert) parts.resize(*place.expert + 1);
    parts[*place.expert] = tensor;
  }
  // Copied side by side: a few of them are read at a time, by their numbers.
  void add_to(TensorDict& out) {
    for (auto& [name, parts] : all_) {
      for (size_t i = 0; i < parts.size(); i++)
        if (!parts[i].defined()) fail<InvalidArgument>("{} lacks expert {}", name, i);
      Tensor together = Tensor::stack(parts, 0);
      together.realize();
      parts.clear();
      out.set(name, together);
    }
  }

 private:
  std::map<std::string, std::vector<Tensor>> all_;
};

Json parsed(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) fail<InvalidArgument>("config.json is no JSON");
  return json;
}

}  // namespace

Config hugging_face_config(std::string_view text) { return config_from(parsed(text)); }

Config::Pooling hugging_face_pooling(std::string_view text) {
  const Json json = parsed(text);
  const Fields fields(json, "1_Pooling/config.json");
  if (fields.flag("pooling_mode_cls_token", false)) return Config::Pooling::First;
  if (fields.flag("pooling_mode_mean_tokens", true)) return Config::Pooling::Mean;
  fail<Unsupported>("1_Pooling/config.json: neither the mean nor the first token is taken");
}

FolderLayout::FolderLayout(const Config& config, const TensorDict& file)
    : architecture_(config.architecture.name),
      post_norms_(file.contains("model.layers.0.post_feedforward_layernorm.weight")) {}

FolderTensor FolderLayout::place(const std::string& name) const {
  if (is_of_no_use(name, architecture_)) return {};
  const std::string to = renamed(name, architecture_, post_norms_);
  const size_t mark = to.find(kExpertMark);
  return mark == std::string::npos ? FolderTensor{to, {}} : expert_of(to, mark);
}

bool FolderLayout::is_transposed(const std::string& name, const Tensor& numbers) const {
  return architecture_ == "gpt2" && name.starts_with("blk.") && numbers.dim() == 2;
}
bool FolderLayout::has_one_added(const std::string& name) const {
  return architecture_.starts_with("gemma") && name.ends_with("norm.weight");
}

Tensor FolderLayout::read(const std::string& name, const Tensor& numbers) const {
  if (has_one_added(name)) return numbers.to(DType::F32) + 1;
  if (is_transposed(name, numbers)) return numbers.transpose(0, 1);
  if (name.ends_with("ffn_gate_inp_shexp.weight")) return numbers.reshape({numbers.numel()});
  return numbers;
}

Tensor FolderLayout::written(const std::string& name, const Tensor& numbers) const {
  if (has_one_added(name)) return numbers - 1;
  if (is_transposed(name, numbers)) return numbers.transpose(0, 1);
  if (name.ends_with("ffn_gate_inp_shexp.weight")) return numbers.reshape({1, numbers.numel()});
  return numbers;
}

std::string hugging_face_weights(const std::string& folder) {
  const std::filesystem::path at(folder);
  const auto index = at / "model.safetensors.index.json";
  return (std::filesystem::exists(index) ? index : at / "model.safetensors").string();
}

TensorDict hugging_face_tensors(const std::string& folder, const Config& c,
                                const tuff::LoadOptions& options) {
  const TensorDict file = tuff::load(hugging_face_weights(folder), options);
  const FolderLayout layout(c, file);
  TensorDict out;
  ExpertParts experts;
  for (const std::string& name : file.names()) {
    const FolderTensor place = layout.place(name);
    if (place.name.empty()) continue;
    const Tensor t = file.at(name).detach();
    if (place.expert)
      experts.add(place, t);
    else
      out.set(place.name, layout.read(place.name, t));
  }
  experts.add_to(out);
  return out;
}

}  // namespace tuff::language
