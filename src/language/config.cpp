#include "language/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/ranges.h>

#include "base/check.h"

namespace tuff::language {
namespace {

// Pairs of heads, activations and windows: the models' papers and configurations; which pairs a
// GGUF file has: the converter permutes the rows of llama's queries and keys alone.
constexpr std::array kArchitectures{
    Architecture{"llama", RopePairs::Neighbours, Activation::Silu, false, 0, 0},
    Architecture{"qwen2", RopePairs::Halves, Activation::Silu, false, 0, 0},
    Architecture{"qwen3", RopePairs::Halves, Activation::Silu, false, 0, 0},
    Architecture{.name = "qwen2moe", .pairs = RopePairs::Halves, .normalizes_experts = false},
    Architecture{"qwen3moe", RopePairs::Halves, Activation::Silu, false, 0, 0},
    Architecture{"phi3", RopePairs::Halves, Activation::Silu, false, 0, 0},
    Architecture{"gemma", RopePairs::Halves, Activation::GeluTanh, true, 0, 0},
    Architecture{"gemma2", RopePairs::Halves, Activation::GeluTanh, true, 2, 0},
    Architecture{"gemma3", RopePairs::Halves, Activation::GeluTanh, true, 6, 10000},
    Architecture{.name = "gpt2", .activation = Activation::GeluTanh, .layer_norms = true,
                 .gated = false},
    Architecture{.name = "bert", .activation = Activation::Gelu, .layer_norms = true,
                 .gated = false, .encodes = true},
};

class Keys {
 public:
  Keys(const Metadata& metadata, std::string prefix)
      : metadata_(metadata), prefix_(std::move(prefix)) {}

  std::optional<double> number(std::string_view key) const {
    const MetadataValue* v = find(key);
    if (!v) return {};
    if (const auto* i = std::get_if<int64_t>(&v->value)) return double(*i);
    if (const auto* u = std::get_if<uint64_t>(&v->value)) return double(*u);
    if (const auto* d = std::get_if<double>(&v->value)) return *d;
    fail<InvalidArgument>("{}{} is {}, a number was wanted", prefix_, key, v->str());
  }
  double number(std::string_view key, double otherwise) const {
    return number(key).value_or(otherwise);
  }
  // A count, from 1 on; 0 stands for one that is not there.
  int64_t count(std::string_view key, std::optional<int64_t> otherwise = {}) const {
    constexpr double kMost = 1 << 30;
    const std::optional<double> n = number(key);
    if (!n && otherwise) return *otherwise;
    if (!n) fail<InvalidArgument>("the file lacks {}{}", prefix_, key);
    if (!(*n >= 0) || *n > kMost || *n != std::floor(*n) || (*n == 0 && !otherwise))
      fail<InvalidArgument>("{}{} is {}", prefix_, key, *n);
    return int64_t(*n);
  }
  std::string text(std::string_view key) const {
    const MetadataValue* v = find(key);
    const auto* s = v ? std::get_if<std::string>(&v->value) : nullptr;
    return s ? *s : "";
  }
  const MetadataValue* find(std::string_view key) const {
    const auto same = [&](const auto& entry) {
      return std::string_view(entry.first).starts_with(prefix_) &&
             std::string_view(entry.first).substr(prefix_.size()) == key;
    };
    const auto found = std::ranges::find_if(metadata_, same);
    return found == metadata_.end() ? nullptr : &found->second;
  }

 private:
  const Metadata& metadata_;
  std::string prefix_;
};

RopeScaling scaling_of(const Keys& keys) {
  RopeScaling s;
  const std::string kind = keys.text("rope.scaling.type");
  s.factor = keys.number("rope.scaling.factor", keys.number("rope.scale_linear", 1));
  if (!(s.factor > 0)) fail<InvalidArgument>("rope.scaling.factor is {}", s.factor);
  s.original_context = double(keys.count("rope.scaling.original_context_length", 0));
  s.attention_factor = keys.number("rope.scaling.attn_factor", 1);
  if (kind == "yarn") {
    s.kind = RopeScaling::Kind::Yarn;
    if (s.original_context == 0)
      fail<InvalidArgument>("the file lacks rope.scaling.original_context_length");
    s.beta_fast = keys.number("rope.scaling.yarn_beta_fast", 32);
    s.beta_slow = keys.number("rope.scaling.yarn_beta_slow", 1);
  } else if (kind == "linear" || (kind.empty() && s.factor != 1)) {
    s.kind = RopeScaling::Kind::Linear;
  } else if (!kind.empty() && kind != "none" && kind != "longrope") {
    fail<Unsupported>("rope.scaling.type '{}' is none of none, linear, yarn, longrope", kind);
  }
  return s;
}

void read_heads(Config& c, const Keys& keys) {
  c.heads = keys.count("attention.head_count");
  c.kv_heads = keys.count("attention.head_count_kv", c.heads);
  c.key_size = keys.count("attention.key_length", c.width / c.heads);
  c.value_size = keys.count("attention.value_length", c.key_size);
  const bool rotates = c.architecture.pairs != RopePairs::None;
  c.rotated = rotates ? keys.count("rope.dimension_count", c.key_size) : 0;
  require_heads(c);
  c.score_scale = 1 / std::sqrt(double(c.key_size));
  // Gemma 2 and 3 of 27 billion parameters scale by the width of a head as the width has it
  // (query_pre_attn_scalar), which the file does not say.
  const bool wide = (c.architecture.name == std::string_view("gemma2") && c.layers == 46) ||
                    (c.architecture.name == std::string_view("gemma3") && c.layers == 62);
  if (wide) c.score_scale = 1 / std::sqrt(double(c.width) / double(c.heads));
}

// Of branches that all tokens take, and of experts. A model all of whose layers have experts need
// not say the former.
void read_hidden_sizes(Config& c, const Keys& keys) {
  c.experts = keys.count("expert_count", 0);
  c.hidden = c.experts > 0 ? keys.count("feed_forward_length", 0)
                           : keys.count("feed_forward_length");
  if (c.experts == 0) return;
  c.experts_used = keys.count("expert_used_count");
  c.expert_hidden = keys.count("expert_feed_forward_length", c.hidden);
  c.shared_hidden = keys.count("expert_shared_feed_forward_length", c.hidden);
  c.normalizes_experts = c.architecture.normalizes_experts;
  require_experts(c);
}

Config::Pooling pooling_of(const Keys& keys) {
  constexpr double kMean = 1, kFirst = 2;
  const double n = keys.number("pooling_type", kMean);
  if (n == kMean) return Config::Pooling::Mean;
  if (n == kFirst) return Config::Pooling::First;
  fail<Unsupported>("pooling_type {} is none of 1 (mean), 2 (the first token)", n);
}

}  // namespace

void require_experts(const Config& c) {
  if (c.experts > 0 && (c.experts_used < 1 || c.experts_used > c.experts || c.expert_hidden < 1))
    fail<InvalidArgument>("{} of {} experts, of {} elements", c.experts_used, c.experts,
                          c.expert_hidden);
}

const Architecture& architecture_of(const std::string& name) {
  const auto found = std::ranges::find(kArchitectures, name, &Architecture::name);
  if (found != kArchitectures.end()) return *found;
  std::vector<std::string_view> known;
  for (const Architecture& a : kArchitectures) known.push_back(a.name);
  fail<Unsupported>("the model's architecture '{}' is none of those that tuff runs: {}", name,
                    fmt::join(known, ", "));
}

void require_heads(const Config& c) {
  if (c.kv_heads == 0 || c.heads % c.kv_heads)
    fail<InvalidArgument>("{} heads of keys do not divide {} heads", c.kv_heads, c.heads);
  if (c.key_size == 0 || c.value_size == 0 || c.rotated > c.key_size || c.rotated % 2)
    fail<InvalidArgument>("heads of {} elements, {} of which are rotated", c.key_size, c.rotated);
}

Config config_of(const Metadata& metadata) {
  const Keys general(metadata, "");
  const std::string name = general.text("general.architecture");
  if (name.empty()) fail<InvalidArgument>("the file lacks general.architecture: no language model");
  Config c;
  c.architecture = architecture_of(name);
  c.name = general.text("general.name");
  const Keys keys(metadata, name + ".");
  c.layers = keys.count("block_count");
  c.width = keys.count("embedding_length");
  read_hidden_sizes(c, keys);
  c.context = keys.count("context_length");
  c.norm_epsilon = keys.number(c.architecture.layer_norms ? "attention.layer_norm_epsilon"
                                                          : "attention.layer_norm_rms_epsilon",
                               1e-5);
  c.rope_base = keys.number("rope.freq_base", 10000);
  c.window_rope_base = keys.number("rope.freq_base_swa", c.architecture.window_rope_base);
  c.score_cap = keys.number("attn_logit_softcapping", 0);
  c.logit_cap = keys.number("final_logit_softcapping", 0);
  c.window = keys.count("attention.sliding_window", 0);
  c.scaling = scaling_of(keys);
  read_heads(c, keys);
  if (c.architecture.encodes) c.pooling = pooling_of(keys);
  return c;
}

}  // namespace tuff::language
