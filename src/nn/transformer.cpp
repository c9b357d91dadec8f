#include <tuff/transformer.h>

#include <limits>

#include "base/check.h"

namespace tuff::nn {
namespace {

bool is_gelu(const std::string& activation) {
  if (activation != "relu" && activation != "gelu")
    fail<InvalidArgument>("Transformer: activation '{}' is neither relu nor gelu", activation);
  return activation == "gelu";
}

// x + f(norm(x)), or norm(x + f(x)).
template <class F>
Tensor residual(const Tensor& x, const LayerNorm& norm, bool norm_first, F&& f) {
  return norm_first ? x + f(norm(x)) : norm(x + f(x));
}

template <class Layer>
ModuleList<Layer> repeated(int64_t count, int64_t features, int64_t heads,
                           const TransformerOptions& options, const TensorOptions& tensors) {
  if (count < 1) fail<InvalidArgument>("Transformer: {} layers", count);
  ModuleList<Layer> layers;
  for (int64_t i = 0; i < count; i++) layers.append(Layer(features, heads, options, tensors));
  return layers;
}

std::optional<LayerNorm> last_norm(bool wanted, int64_t features, const TransformerOptions& o,
                                   const TensorOptions& tensors) {
  return wanted ? std::optional(LayerNorm(features, o.layer_norm_eps, tensors)) : std::nullopt;
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(int64_t n, int64_t heads,
                                                 const TransformerOptions& o,
                                                 const TensorOptions& t)
    : self_attn(n, heads, o.dropout, true, t),
      linear1(n, o.dim_feedforward, true, t),
      linear2(o.dim_feedforward, n, true, t),
      norm1(n, o.layer_norm_eps, t),
      norm2(n, o.layer_norm_eps, t),
      dropout(o.dropout),
      dropout1(o.dropout),
      dropout2(o.dropout),
      norm_first(o.norm_first),
      gelu(is_gelu(o.activation)) {}

void TransformerEncoderLayer::members(Members& m) const {
  m.module("self_attn", self_attn), m.module("linear1", linear1), m.module("dropout", dropout);
  m.module("linear2", linear2), m.module("norm1", norm1), m.module("norm2", norm2);
  m.module("dropout1", dropout1), m.module("dropout2", dropout2);
}

Tensor TransformerEncoderLayer::operator()(const Tensor& src, const Tensor& src_mask,
                                           bool is_causal,
                                           const Tensor& src_key_padding_mask) const {
  return run(src, [&](const Tensor& in) {
    const Tensor x = residual(in, norm1, norm_first, [&](const Tensor& y) {
      return dropout1(self_attn(y, y, y, src_mask, is_causal, src_key_padding_mask));
    });
    return residual(x, norm2, norm_first, [&](const Tensor& y) {
      const Tensor z = linear1(y);
      return dropout2(linear2(dropout(gelu ? z.gelu() : z.relu())));
    });
  });
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t n, int64_t heads,
                                                 const TransformerOptions& o,
                                                 const TensorOptions& t)
    : self_attn(n, heads, o.dropout, true, t),
      multihead_attn(n, heads, o.dropout, true, t),
      linear1(n, o.dim_feedforward, true, t),
      linear2(o.dim_feedforward, n, true, t),
      norm1(n, o.layer_norm_eps, t),
      norm2(n, o.layer_norm_eps, t),
      norm3(n, o.layer_norm_eps, t),
      dropout(o.dropout),
      dropout1(o.dropout),
      dropout2(o.dropout),
      dropout3(o.dropout),
      norm_first(o.norm_first),
      gelu(is_gelu(o.activation)) {}

void TransformerDecoderLayer::members(Members& m) const {
  m.module("self_attn", self_attn), m.module("multihead_attn", multihead_attn);
  m.module("linear1", linear1), m.module("dropout", dropout), m.module("linear2", linear2);
  m.module("norm1", norm1), m.module("norm2", norm2), m.module("norm3", norm3);
  m.module("dropout1", dropout1), m.module("dropout2", dropout2), m.module("dropout3", dropout3);
}

Tensor TransformerDecoderLayer::operator()(const Tensor& tgt, const Tensor& memory,
                                           const Tensor& tgt_mask, const Tensor& memory_mask,
                                           bool tgt_is_causal, const Tensor& tgt_key_padding_mask,
                                           const Tensor& memory_key_padding_mask) const {
  return run(tgt, [&](const Tensor& in) {
    Tensor x = residual(in, norm1, norm_first, [&](const Tensor& y) {
      return dropout1(self_attn(y, y, y, tgt_mask, tgt_is_causal, tgt_key_padding_mask));
    });
    x = residual(x, norm2, norm_first, [&](const Tensor& y) {
      return dropout2(
          multihead_attn(y, memory, memory, memory_mask, false, memory_key_padding_mask));
    });
    return residual(x, norm3, norm_first, [&](const Tensor& y) {
      const Tensor z = linear1(y);
      return dropout3(linear2(dropout(gelu ? z.gelu() : z.relu())));
    });
  });
}

TransformerEncoder::TransformerEncoder(int64_t n, int64_t heads, int64_t num_layers,
                                       const TransformerOptions& o, bool with_norm,
                                       const TensorOptions& t)
    : layers(repeated<TransformerEncoderLayer>(num_layers, n, heads, o, t)),
      norm(last_norm(with_norm, n, o, t)) {}

void TransformerEncoder::members(Members& m) const {
  m.module("layers", layers);
  if (norm) m.module("norm", *norm);
}

Tensor TransformerEncoder::operator()(const Tensor& src, const Tensor& src_mask, bool is_causal,
                                      const Tensor& src_key_padding_mask) const {
  return run(src, [&](const Tensor& in) {
    Tensor x = in;
    for (const TransformerEncoderLayer& layer : layers)
      x = layer(x, src_mask, is_causal, src_key_padding_mask);
    return norm ? (*norm)(x) : x;
  });
}

TransformerDecoder::TransformerDecoder(int64_t n, int64_t heads, int64_t num_layers,
                                       const TransformerOptions& o, bool with_norm,
                                       const TensorOptions& t)
    : layers(repeated<TransformerDecoderLayer>(num_layers, n, heads, o, t)),
      norm(last_norm(with_norm, n, o, t)) {}

void TransformerDecoder::members(Members& m) const {
  m.module("layers", layers);
  if (norm) m.module("norm", *norm);
}

Tensor TransformerDecoder::operator()(const Tensor& tgt, const Tensor& memory,
                                      const Tensor& tgt_mask, const Tensor& memory_mask,
                                      bool tgt_is_causal, const Tensor& tgt_key_padding_mask,
                                      const Tensor& memory_key_padding_mask) const {
  return run(tgt, [&](const Tensor& in) {
    Tensor x = in;
    for (const TransformerDecoderLayer& layer : layers)
      x = layer(x, memory, tgt_mask, memory_mask, tgt_is_causal, tgt_key_padding_mask,
                memory_key_padding_mask);
    return norm ? (*norm)(x) : x;
  });
}

Transformer::Transformer(int64_t n, int64_t heads, int64_t num_encoder_layers,
                         int64_t num_decoder_layers, const TransformerOptions& o,
                         const TensorOptions& t)
    : encoder(n, heads, num_encoder_layers, o, true, t),
      decoder(n, heads, num_decoder_layers, o, true, t) {
  const NoGradGuard written;
  std::vector<Tensor> matrices;
  for (Tensor p : parameters()) {
    if (p.dim() < 2) continue;
    p.assign(Tensor::glorot_uniform(p.sizes(), 1, {p.dtype(), p.device()}));
    matrices.push_back(p);
  }
  Tensor::realize(matrices);
}

void Transformer::members(Members& m) const {
  m.module("encoder", encoder), m.module("decoder", decoder);
}

Tensor Transformer::operator()(const Tensor& src, const Tensor& tgt, const Tensor& src_mask,
                               const Tensor& tgt_mask, const Tensor& memory_mask,
                               const Tensor& src_key_padding_mask,
                               const Tensor& tgt_key_padding_mask,
                               const Tensor& memory_key_padding_mask, bool src_is_causal,
                               bool tgt_is_causal) const {
  return run(src, [&](const Tensor& in) {
    const Tensor memory = encoder(in, src_mask, src_is_causal, src_key_padding_mask);
    return decoder(tgt, memory, tgt_mask, memory_mask, tgt_is_causal, tgt_key_padding_mask,
                   memory_key_padding_mask);
  });
}

Tensor Transformer::generate_square_subsequent_mask(int64_t size, const TensorOptions& options) {
  return Tensor::full({size, size}, -std::numeric_limits<double>::infinity(), options).triu(1);
}

}  // namespace tuff::nn
