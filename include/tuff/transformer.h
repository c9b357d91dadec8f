// Layers of the Transformer (Vaswani et al., 2017), with PyTorch's names; tensors are (batch, time,
// features). Masks are those of MultiHeadAttention.
#pragma once

#include <optional>
#include <string>

#include <tuff/layers.h>

namespace tuff::nn {

/// How the layers are made.
struct TransformerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";  // or "gelu"
  double layer_norm_eps = 1e-5;
  bool norm_first = false;  // norms before attention and feed-forward, not behind the sums
};

/// Self-attention and a feed-forward network. InvalidArgument for another activation.
struct TransformerEncoderLayer : Module {
  TransformerEncoderLayer(int64_t features, int64_t heads, const TransformerOptions& options = {},
                          const TensorOptions& tensors = {});
  /// src (N, T, features); masks as scaled_dot_product_attention() has them, key_padding_mask
  /// (N, T) true where a position is padding.
  Tensor operator()(const Tensor& src, const Tensor& src_mask = {}, bool is_causal = false,
                    const Tensor& src_key_padding_mask = {}) const;
  void members(Members& m) const override;
  MultiHeadAttention self_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2;
  Dropout dropout, dropout1, dropout2;
  bool norm_first, gelu;
};

/// Self-attention, attention to a memory and a feed-forward network.
struct TransformerDecoderLayer : Module {
  TransformerDecoderLayer(int64_t features, int64_t heads, const TransformerOptions& options = {},
                          const TensorOptions& tensors = {});
  /// tgt (N, T, features), memory (N, S, features); masks of tgt's own attention and of memory's,
  /// as in the encoder.
  Tensor operator()(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                    const Tensor& memory_mask = {}, bool tgt_is_causal = false,
                    const Tensor& tgt_key_padding_mask = {},
                    const Tensor& memory_key_padding_mask = {}) const;
  void members(Members& m) const override;
  MultiHeadAttention self_attn, multihead_attn;
  Linear linear1, linear2;
  LayerNorm norm1, norm2, norm3;
  Dropout dropout, dropout1, dropout2, dropout3;
  bool norm_first, gelu;
};

/// `num_layers` encoder layers, named "layers.0" and so on, and with `norm` a LayerNorm behind
/// them.
struct TransformerEncoder : Module {
  TransformerEncoder(int64_t features, int64_t heads, int64_t num_layers,
                     const TransformerOptions& options = {}, bool norm = false,
                     const TensorOptions& tensors = {});
  /// src (N, T, features); masks as scaled_dot_product_attention() has them, key_padding_mask
  /// (N, T) true where a position is padding.
  Tensor operator()(const Tensor& src, const Tensor& src_mask = {}, bool is_causal = false,
                    const Tensor& src_key_padding_mask = {}) const;
  void members(Members& m) const override;
  ModuleList<TransformerEncoderLayer> layers;
  std::optional<LayerNorm> norm;
};

/// The same of decoder layers.
struct TransformerDecoder : Module {
  TransformerDecoder(int64_t features, int64_t heads, int64_t num_layers,
                     const TransformerOptions& options = {}, bool norm = false,
                     const TensorOptions& tensors = {});
  /// tgt (N, T, features), memory (N, S, features); masks of tgt's own attention and of memory's,
  /// as in the encoder.
  Tensor operator()(const Tensor& tgt, const Tensor& memory, const Tensor& tgt_mask = {},
                    const Tensor& memory_mask = {}, bool tgt_is_causal = false,
                    const Tensor& tgt_key_padding_mask = {},
                    const Tensor& memory_key_padding_mask = {}) const;
  void members(Members& m) const override;
  ModuleList<TransformerDecoderLayer> layers;
  std::optional<LayerNorm> norm;
};

/// An encoder of src and a decoder of tgt that attends to it, each with a LayerNorm behind its
/// layers (PyTorch's Transformer with batch_first). Matrices are Glorot-uniform.
struct Transformer : Module {
  explicit Transformer(int64_t features = 512, int64_t heads = 8, int64_t num_encoder_layers = 6,
                       int64_t num_decoder_layers = 6, const TransformerOptions& options = {},
                       const TensorOptions& tensors = {});
  /// src (N, S, features), tgt (N, T, features); gives (N, T, features). Masks as in the encoder
  /// and the decoder; memory's are those of what the decoder attends to.
  Tensor operator()(const Tensor& src, const Tensor& tgt, const Tensor& src_mask = {},
                    const Tensor& tgt_mask = {}, const Tensor& memory_mask = {},
                    const Tensor& src_key_padding_mask = {},
                    const Tensor& tgt_key_padding_mask = {},
                    const Tensor& memory_key_padding_mask = {}, bool src_is_causal = false,
                    bool tgt_is_causal = false) const;
  /// (size, size), to be added: 0 on and below the diagonal, -infinity above it.
  static Tensor generate_square_subsequent_mask(int64_t size, const TensorOptions& options = {});
  void members(Members& m) const override;
  TransformerEncoder encoder;
  TransformerDecoder decoder;
};

}  // namespace tuff::nn
