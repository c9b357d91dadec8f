#include "language/weight_types.h"

#include <algorithm>
#include <ranges>

#include <fmt/ranges.h>

#include "base/check.h"
#include "io/formats/gguf.h"

namespace tuff::language {

// What --type names: the type of most weights, and the number that general.file_type has for it
// (docs/gguf.md, and enum llama_ftype for those that mix types).
struct Mix {
  std::string_view name, type;
  uint32_t file_type;
};

namespace {

constexpr Mix kMixes[] = {
    {"f32", "F32", 0},     {"f16", "F16", 1},     {"bf16", "BF16", 32},  {"q8_0", "Q8_0", 7},
    {"q4_0", "Q4_0", 2},   {"q4_1", "Q4_1", 3},   {"q5_0", "Q5_0", 8},   {"q5_1", "Q5_1", 9},
    {"q2_k", "Q2_K", 10},  {"q3_k", "Q3_K", 12},  {"q4_k", "Q4_K", 15},  {"q4_k_s", "Q4_K", 14},
    {"q5_k", "Q5_K", 17},  {"q5_k_s", "Q5_K", 16}, {"q6_k", "Q6_K", 18},
};

const Mix& mix_of(const std::string& name) {
  const auto* found = std::ranges::find(kMixes, name, &Mix::name);
  if (found == std::end(kMixes))
    fail<InvalidArgument>("'{}' is none of the types that weights are written in: {}", name,
                          fmt::join(kMixes | std::views::transform(&Mix::name), ", "));
  return *found;
}

// Weights that matter more have more bits, in the layers that matter most: as llama.cpp mixes
// types.
enum class Layers : uint8_t { All, FirstTwo, FirstFour, FirstEighth, FirstSixteenth, Ends };
struct MixRule {
  std::string_view mix, part;  // of a tensor's name
  Layers layers;
  std::string_view type;
};
constexpr MixRule kRules[] = {
    {"q2_k", "attn_v.", Layers::All, "Q3_K"},
    {"q2_k", "attn_qkv.", Layers::All, "Q3_K"},
    {"q2_k", "ffn_down", Layers::All, "Q3_K"},
    {"q2_k", "attn_output.", Layers::All, "Q3_K"},
    {"q3_k", "attn_v.", Layers::FirstTwo, "Q5_K"},
    {"q3_k", "attn_v.", Layers::All, "Q4_K"},
    {"q3_k", "attn_qkv.", Layers::FirstTwo, "Q5_K"},
    {"q3_k", "attn_qkv.", Layers::All, "Q4_K"},
    {"q3_k", "ffn_down", Layers::FirstSixteenth, "Q5_K"},
    {"q3_k", "ffn_down", Layers::All, "Q4_K"},
    {"q3_k", "attn_output.", Layers::All, "Q4_K"},
    {"q4_k", "attn_v.", Layers::Ends, "Q6_K"},
    {"q4_k", "attn_qkv.", Layers::Ends, "Q6_K"},
    {"q4_k", "ffn_down", Layers::Ends, "Q6_K"},
    {"q4_k_s", "attn_v.", Layers::FirstFour, "Q5_K"},
    {"q4_k_s", "attn_qkv.", Layers::FirstFour, "Q5_K"},
    {"q4_k_s", "ffn_down", Layers::FirstEighth, "Q5_K"},
    {"q5_k", "attn_v.", Layers::Ends, "Q6_K"},
    {"q5_k", "attn_qkv.", Layers::Ends, "Q6_K"},
    {"q5_k", "ffn_down", Layers::Ends, "Q6_K"},
};
// What stays as it is although it has two axes: small, and much depends on it.
constexpr std::string_view kKept[] = {"_norm.weight", "ffn_gate_inp.weight", "position_embd.weight",
                                      "token_types.weight"};

bool has(std::string_view name, std::string_view part) { return name.find(part) != name.npos; }

bool is_among(Layers which, int64_t layer, int64_t count) {
  switch (which) {
    case Layers::All: return true;
    case Layers::FirstTwo: return layer < 2;
    case Layers::FirstFour: return layer < 4;
    case Layers::FirstEighth: return layer < count / 8;
    case Layers::FirstSixteenth: return layer < count / 16;
    case Layers::Ends:  // and every third between them
      return layer < count / 8 || layer >= 7 * count / 8 || (layer - count / 8) % 3 == 2;
  }
  return false;
}

// -1: of none.
int64_t layer_of(std::string_view name) {
  int64_t layer = 0;
  if (!name.starts_with("blk.")) return -1;
  for (const char c : name.substr(4)) {
    if (c == '.') return layer;
    if (c < '0' || c > '9' || layer > 1 << 20) return -1;
    layer = layer * 10 + (c - '0');
  }
  return -1;
}

// Rows that are no whole blocks of 256 are in blocks of 32, or not in blocks.
std::string_view type_that_fits(std::string_view type, int64_t row) {
  constexpr std::pair<std::string_view, std::string_view> kSmaller[] = {
      {"Q2_K", "Q4_0"}, {"Q3_K", "Q4_0"}, {"Q4_K", "Q5_0"}, {"Q5_K", "Q5_1"}, {"Q6_K", "Q8_0"}};
  const auto fits = [&] { return row % io::gguf_block(type)->elements == 0; };
  for (const auto& [large, small] : kSmaller)
    if (type == large && !fits()) type = small;
  return fits() ? type : "F16";
}

}  // namespace

WeightTypes::WeightTypes(const std::string& name, const std::vector<TensorInfo>& tensors)
    : mix_(mix_of(name)) {
  for (const TensorInfo& t : tensors) {
    layers_ = std::max(layers_, layer_of(t.name) + 1);
    tied_ = tied_ && t.name != "output.weight";
  }
}

uint32_t WeightTypes::file_type() const { return mix_.file_type; }

std::string_view WeightTypes::of(const TensorInfo& t) const {
  const std::string_view name = t.name;
  const bool kept =
      t.shape.size() < 2 || !name.ends_with("weight") || is_int(t.dtype) ||
      std::ranges::any_of(kKept, [&](std::string_view part) { return has(name, part); });
  if (kept) return t.type;
  if (io::gguf_block(mix_.type)->elements == 1) return mix_.type;
  return type_that_fits(wanted(name), t.shape.back());
}

std::string_view WeightTypes::wanted(std::string_view name) const {
  const bool last = name == "output.weight" || (tied_ && name == "token_embd.weight");
  if (last) return mix_.type == "Q8_0" ? "Q8_0" : "Q6_K";
  for (const MixRule& r : kRules)
    if (r.mix == mix_.name && has(name, r.part) && is_among(r.layers, layer_of(name), layers_))
      return r.type;
  return mix_.type;
}

}  // namespace tuff::language
