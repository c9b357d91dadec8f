#include "language/weights.h"

#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"

namespace tuff::language {
namespace {

class Reader {
 public:
  explicit Reader(const TensorDict& file) : file_(file) {
    for (const TensorInfo& info : file.info()) shapes_.emplace(info.name, info.shape);
  }

  Tensor at(const std::string& name, const std::vector<int64_t>& shape) {
    if (!shapes_.contains(name))
      fail<InvalidArgument>("the file lacks the tensor {} ({})", name, fmt::join(shape, ", "));
    return find(name, shape);
  }
  // Undefined if it is not there.
  Tensor find(const std::string& name, const std::vector<int64_t>& shape) {
    const auto found = shapes_.find(name);
    if (found == shapes_.end()) return {};
    if (found->second != shape)
      fail<InvalidArgument>("the tensor {} is ({}), ({}) was wanted", name,
                            fmt::join(found->second, ", "), fmt::join(shape, ", "));
    used_.insert(name);
    return file_.at(name).detach().to(DType::F32);  // in the kernel that reads it
  }
  bool has(const std::string& name) const { return shapes_.contains(name); }
  Projection projection(const std::string& name, int64_t out, int64_t in) {
    return {at(name + ".weight", {out, in}), find(name + ".bias", {out})};
  }
  void require_all_used() const {
    for (const auto& [name, shape] : shapes_)
      if (!used_.contains(name))
        fail<Unsupported>("the tensor {} is none that tuff knows in such a model", name);
  }

 private:
  const TensorDict& file_;
  std::map<std::string, std::vector<int64_t>> shapes_;
  std::set<std::string> used_;
};

Projection part(const Projection& whole, int64_t begin, int64_t rows) {
  return {whole.weight.narrow(0, begin, rows),
          whole.bias.defined() ? whole.bias.narrow(0, begin, rows) : Tensor()};
}

void read_attention(LayerWeights& l, Reader& from, const std::string& prefix, const Config& c) {
  const int64_t q = c.heads * c.key_size, k = c.kv_heads * c.key_size,
                v = c.kv_heads * c.value_size;
  if (from.has(prefix + "attn_qkv.weight")) {
    const Projection joined = from.projection(prefix + "attn_qkv", q + k + v, c.width);
    l.queries = part(joined, 0, q), l.keys = part(joined, q, k), l.values = part(joined, q + k, v);
  } else {
    l.queries = from.projection(prefix + "attn_q", q, c.width);
    l.keys = from.projection(prefix + "attn_k", k, c.width);
    l.values = from.projection(prefix + "attn_v", v, c.width);
  }
  l.output = from.projection(prefix + "attn_output", c.width, c.heads * c.value_size);
  l.attention_norm = from.at(prefix + "attn_norm.weight", {c.width});
  l.query_norm = from.find(prefix + "attn_q_norm.weight", {c.key_size});
  l.key_norm = from.find(prefix + "attn_k_norm.weight", {c.key_size});
  l.after_attention_norm = from.find(prefix + "post_attention_norm.weight", {c.width});
}

void read_hidden(LayerWeights& l, Reader& from, const std::string& prefix, const Config& c) {
  if (from.has(prefix + "ffn_gate.weight")) {
    l.gate = from.projection(prefix + "ffn_gate", c.hidden, c.width);
    l.up = from.projection(prefix + "ffn_up", c.hidden, c.width);
  } else {
    const Projection joined = from.projection(prefix + "ffn_up", 2 * c.hidden, c.width);
    l.gate = part(joined, 0, c.hidden), l.up = part(joined, c.hidden, c.hidden);
  }
  l.down = from.projection(prefix + "ffn_down", c.width, c.hidden);
  l.hidden_norm = from.at(prefix + "ffn_norm.weight", {c.width});
  l.after_hidden_norm = from.find(prefix + "post_ffw_norm.weight", {c.width});
}

}  // namespace

// The matrices may be trained: whatever is made of them is made anew in each call.
Tensor LowRank::operator()(const Tensor& x) const {
  Tensor second = up;
  if (heads_in_turns > 0) {
    const int64_t rows = int64_t(up.size(0)), rank = int64_t(up.size(1));
    second = up.reshape({heads_in_turns, 2, rows / heads_in_turns / 2, rank})
                 .transpose(1, 2)
                 .reshape({rows, rank});
  }
  return x.linear(down).linear(second) * scale;
}

Weights weights_of(const TensorDict& file, const Config& c) {
  Reader from(file);
  Weights w;
  w.embedding = from.at("token_embd.weight", {c.vocabulary, c.width});
  w.output_norm = from.at("output_norm.weight", {c.width});
  w.output = from.has("output.weight") ? from.at("output.weight", {c.vocabulary, c.width})
                                       : w.embedding;
  w.rope_factors = from.find("rope_freqs.weight", {c.rotated / 2});
  if (!w.rope_factors.defined())
    w.rope_factors = from.find("rope_factors_short.weight", {c.rotated / 2});
  w.rope_factors_long = from.find("rope_factors_long.weight", {c.rotated / 2});
  for (int64_t i = 0; i < c.layers; i++) {
    const std::string prefix = fmt::format("blk.{}.", i);
    LayerWeights& l = w.layers.emplace_back();
    read_attention(l, from, prefix, c);
    read_hidden(l, from, prefix, c);
  }
  from.require_all_used();
  return w;
}

}  // namespace tuff::language
