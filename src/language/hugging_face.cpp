#include "language/hugging_face.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numbers>

#include <fmt/ranges.h>

#include "base/check.h"
#include "base/json.h"
#include "base/os.h"

namespace tuff::language {
namespace {

// model_type of config.json, and the architecture of config.cpp that it is.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kModelTypes{{
    {"llama", "llama"},
    {"mistral", "llama"},
    {"qwen2", "qwen2"},
    {"qwen3", "qwen3"},
    {"phi3", "phi3"},
    {"gemma", "gemma"},
    {"gemma2", "gemma2"},
    {"gemma3_text", "gemma3"},
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

Config config_from(const Json& json) {
  const Fields fields(json, "config.json");
  Config c;
  c.architecture = architecture_of(std::string(architecture_name(fields)));
  c.architecture.pairs = RopePairs::Halves;
  c.layers = fields.count("num_hidden_layers");
  c.width = fields.count("hidden_size");
  c.hidden = fields.count("intermediate_size");
  c.heads = fields.count("num_attention_heads");
  c.kv_heads = fields.count("num_key_value_heads", c.heads);
  c.vocabulary = fields.count("vocab_size");
  c.context = fields.count("max_position_embeddings");
  c.key_size = c.value_size = fields.count("head_dim", c.width / std::max<int64_t>(c.heads, 1));
  c.rotated = 2 * int64_t(double(c.key_size) * fields.number("partial_rotary_factor", 1) / 2);
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
};

std::string renamed(std::string name, bool has_post_norms) {
  const auto replace = [&](std::string_view from, std::string_view to) {
    if (const size_t at = name.find(from); at != std::string::npos)
      name.replace(at, from.size(), to);
  };
  for (const Rename& r : kNames) replace(r.from, r.to);
  replace(".post_attention_layernorm.", has_post_norms ? ".post_attention_norm." : ".ffn_norm.");
  return name;
}

Json parsed(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) fail<InvalidArgument>("config.json is no JSON");
  return json;
}

}  // namespace

Config hugging_face_config(std::string_view text) { return config_from(parsed(text)); }

TensorDict hugging_face_tensors(const std::string& folder, const Config& c,
                                const tuff::LoadOptions& options) {
  const std::filesystem::path at(folder);
  const auto index = at / "model.safetensors.index.json";
  const bool sharded = std::filesystem::exists(index);
  const TensorDict file =
      tuff::load((sharded ? index : at / "model.safetensors").string(), options);
  const bool post_norms = file.contains("model.layers.0.post_feedforward_layernorm.weight");
  const bool adds_one = std::string_view(c.architecture.name).starts_with("gemma");
  TensorDict out;
  for (const std::string& name : file.names()) {
    const std::string to = renamed(name, post_norms);
    const Tensor t = file.at(name).detach();
    out.set(to, adds_one && to.ends_with("norm.weight") ? t.to(DType::F32) + 1 : t);
  }
  return out;
}

}  // namespace tuff::language
