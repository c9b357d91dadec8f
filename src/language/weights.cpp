#include "language/weights.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "io/dequantize.h"
#include "io/formats/gguf.h"
#include "language/split_product.h"

namespace tuff::language {
namespace {

class Reader {
 public:
  explicit Reader(const TensorDict& file) : file_(file), infos_(file.info()) {
    for (const TensorInfo& info : infos_) shapes_.emplace(info.name, info.shape);
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
    const Tensor t = file_.at(name);
    return (t.requires_grad() ? t : t.detach()).to(DType::F32);  // in the kernel that reads it
  }
  ExpertMaps experts(const std::string& name, int64_t count, int64_t out, int64_t in) {
    at(name, {count, out, in});
    const Tensor numbers = file_.at(name);  // as they are stored: picked before they are widened
    ExpertMaps maps{count, out, in, numbers.requires_grad() ? numbers : numbers.detach(), ""};
    const Tensor blocks = io::packed_blocks(file_, name);
    if (!blocks.defined()) return maps;
    const auto found = std::ranges::find(infos_, name, &TensorInfo::name);
    maps.all = blocks.detach().reshape({count, -1}), maps.type = found->type;
    return maps;
  }
  bool has(const std::string& name) const { return shapes_.contains(name); }
  Projection projection(const std::string& name, int64_t out, int64_t in) {
    return {at(name + ".weight", {out, in}), find(name + ".bias", {out})};
  }
  Norm norm(const std::string& name, int64_t size) {
    return {at(name + ".weight", {size}), find(name + ".bias", {size})};
  }
  Norm find_norm(const std::string& name, int64_t size) {
    return {find(name + ".weight", {size}), find(name + ".bias", {size})};
  }
  void require_all_used() const {
    for (const auto& [name, shape] : shapes_)
      if (!used_.contains(name))
        fail<Unsupported>("the tensor {} is none that tuff knows in such a model", name);
  }

 private:
  const TensorDict& file_;
  const std::vector<TensorInfo> infos_;
  std::map<std::string, std::vector<int64_t>> shapes_;
  std::set<std::string> used_;
};

Projection part(const Projection& whole, int64_t begin, int64_t rows) {
  return {whole.weight, whole.bias, {}, {begin, rows}};
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
  l.query_norm = from.find_norm(prefix + "attn_q_norm", c.key_size);
  l.key_norm = from.find_norm(prefix + "attn_k_norm", c.key_size);
  l.after_attention_norm = from.find_norm(prefix + "post_attention_norm", c.width);
  if (c.architecture.encodes)
    l.attention_sum_norm = from.norm(prefix + "attn_output_norm", c.width);
  else
    l.attention_norm = from.norm(prefix + "attn_norm", c.width);
}

void read_experts(Experts& e, Reader& from, const std::string& prefix, const Config& c) {
  const int64_t n = c.experts, hidden = c.expert_hidden;
  e.router = from.at(prefix + "ffn_gate_inp.weight", {n, c.width});
  e.gate = from.experts(prefix + "ffn_gate_exps.weight", n, hidden, c.width);
  e.up = from.experts(prefix + "ffn_up_exps.weight", n, hidden, c.width);
  e.down = from.experts(prefix + "ffn_down_exps.weight", n, c.width, hidden);
  if (!from.has(prefix + "ffn_gate_shexp.weight")) return;
  e.shared_router = from.at(prefix + "ffn_gate_inp_shexp.weight", {c.width});
  e.shared_gate = from.projection(prefix + "ffn_gate_shexp", c.shared_hidden, c.width);
  e.shared_up = from.projection(prefix + "ffn_up_shexp", c.shared_hidden, c.width);
  e.shared_down = from.projection(prefix + "ffn_down_shexp", c.width, c.shared_hidden);
}

void read_gated(LayerWeights& l, Reader& from, const std::string& prefix, const Config& c) {
  if (from.has(prefix + "ffn_gate.weight")) {
    l.gate = from.projection(prefix + "ffn_gate", c.hidden, c.width);
    l.up = from.projection(prefix + "ffn_up", c.hidden, c.width);
  } else {
    const Projection joined = from.projection(prefix + "ffn_up", 2 * c.hidden, c.width);
    l.gate = part(joined, 0, c.hidden), l.up = part(joined, c.hidden, c.hidden);
  }
}

void read_hidden(LayerWeights& l, Reader& from, const std::string& prefix, const Config& c) {
  if (c.experts > 0 && from.has(prefix + "ffn_gate_inp.weight")) {
    read_experts(l.experts, from, prefix, c);
  } else {
    if (c.architecture.gated)
      read_gated(l, from, prefix, c);
    else
      l.up = from.projection(prefix + "ffn_up", c.hidden, c.width);
    l.down = from.projection(prefix + "ffn_down", c.width, c.hidden);
  }
  l.after_hidden_norm = from.find_norm(prefix + "post_ffw_norm", c.width);
  if (c.architecture.encodes)
    l.hidden_sum_norm = from.norm(prefix + "layer_output_norm", c.width);
  else
    l.hidden_norm = from.norm(prefix + "ffn_norm", c.width);
}

// Added to tokens' embeddings: of where they stand, and of which of two texts they are.
void read_embeddings(Weights& w, Reader& from, const Config& c) {
  constexpr int64_t kTokenTypes = 2;
  w.embedding = from.at("token_embd.weight", {c.vocabulary, c.width});
  if (c.architecture.pairs == RopePairs::None)
    w.positions = from.at("position_embd.weight", {c.context, c.width});
  if (c.architecture.encodes) {
    w.token_types = from.find("token_types.weight", {kTokenTypes, c.width});
    w.embedding_norm = from.norm("token_embd_norm", c.width);
  } else {
    w.output_norm = from.norm("output_norm", c.width);
  }
  w.output = from.has("output.weight") ? from.at("output.weight", {c.vocabulary, c.width})
                                       : w.embedding;
}

}  // namespace

// The matrices may be trained: whatever is made of them is made anew in each call.
Tensor LowRank::rows() const {
  if (heads_in_turns == 0) return part.of(up);
  const int64_t rows = int64_t(up.size(0)), rank = int64_t(up.size(1));
  return up.reshape({heads_in_turns, 2, rows / heads_in_turns / 2, rank})
      .transpose(1, 2)
      .reshape({rows, rank});
}
Tensor LowRank::operator()(const Tensor& x) const { return x.linear(down).linear(rows()) * scale; }
Tensor Projection::operator()(const Tensor& x) const {
  const Tensor rows = part.of(weight), added = part.of(bias);
  Tensor y = split_product(x, rows);
  if (!y.defined())
    y = x.linear(rows, added);
  else if (added.defined())
    y = y + added;
  return adapter.down.defined() ? y + adapter(x) : y;
}
Tensor LowRank::product() const { return rows().matmul(down) * scale; }

Tensor ExpertMaps::every() const {
  if (type.empty()) return all.to(DType::F32);
  const int64_t bytes = io::gguf_block(type)->size_bytes;
  return io::dequantize(type, all.reshape({-1, bytes})).reshape({count, out, in});
}

// What is decoded of a copy is decoded in the kernel that multiplies.
Tensor ExpertMaps::picked(const Tensor& experts, bool copied) const {
  const Tensor some = all.index_select(0, experts);
  if (type.empty()) return some.to(DType::F32);
  const int64_t bytes = io::gguf_block(type)->size_bytes;
  const Tensor blocks = (copied ? some.contiguous() : some).reshape({-1, bytes});
  return io::dequantize(type, blocks).reshape({experts.size(0), out, in});
}

namespace {
Tensor with(const Tensor& y, const Tensor& x, const Tensor& down, const Tensor& up, double scale) {
  return y + x.matmul(down.transpose(1, 2)).matmul(up.transpose(1, 2)) * scale;
}
}  // namespace

Tensor ExpertMaps::of_one(const Tensor& x, const Tensor& expert) const {
  const Tensor y = x.linear(picked(expert, false).squeeze(0));
  if (!adapter.down.defined()) return y;
  const auto one = [&](const Tensor& t) { return t.index_select(0, expert).squeeze(0); };
  return y + x.linear(one(adapter.down)).linear(one(adapter.up)) * adapter.scale;
}

Tensor ExpertMaps::of_some(const Tensor& x, const Tensor& experts, bool decoded) const {
  const Tensor weights =
      decoded ? every().contiguous().index_select(0, experts) : picked(experts, true);
  const Tensor y = x.matmul(weights.transpose(1, 2));
  if (!adapter.down.defined()) return y;
  return with(y, x, adapter.down.index_select(0, experts), adapter.up.index_select(0, experts),
              adapter.scale);
}

Tensor ExpertMaps::of_all(const Tensor& x) const {
  const Tensor y = x.matmul(every().transpose(1, 2));
  return adapter.down.defined() ? with(y, x, adapter.down, adapter.up, adapter.scale) : y;
}

Weights weights_of(const TensorDict& file, const Config& c) {
  Reader from(file);
  Weights w;
  read_embeddings(w, from, c);
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
