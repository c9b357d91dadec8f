// Operators of com.microsoft that exporters of transformers write:
// github.com/microsoft/onnxruntime, docs/ContribOperators.md.
#include <cmath>

#include <tuff/int4.h>
#include "base/check.h"
#include "onnx/attention.h"
#include "onnx/operators.h"

namespace tuff::onnx {
namespace {

// ---- normalization

struct Sums {
  Tensor all;  // x + skip + bias
  Tensor wide;
};
Sums added(const Node& node, size_t bias) {
  Tensor x = node.tensor(0) + node.tensor(1);
  if (node.has(bias)) x = x + node.tensor(bias);
  return {x, x.cast(accumulator(x.dtype()))};
}

Outputs skip_layernorm(const Node& node) {
  const Sums s = added(node, 4);
  const Tensor mean = s.wide.mean({-1}, true), centered = s.wide - mean,
               inverse =
                   (centered.square().mean({-1}, true) + node.number("epsilon", 1e-12)).rsqrt();
  Tensor y = (centered * inverse).cast(s.all.dtype()) * node.tensor(2);
  if (node.has(3)) y = y + node.tensor(3);
  return {y, mean, inverse, s.all};
}

Outputs skip_rmsnorm(const Node& node) {
  const Sums s = added(node, 3);
  const Tensor inverse =
      (s.wide.square().mean({-1}, true) + node.number("epsilon", 1e-6)).rsqrt();
  return {(s.wide * inverse).cast(s.all.dtype()) * node.tensor(2), Value(), inverse, s.all};
}

Outputs rmsnorm(const Node& node) {
  const Tensor x = node.tensor(0), wide = x.cast(accumulator(x.dtype()));
  Axes axes;
  for (int64_t a = axis_of(node.integer("axis", -1), x.dim()); a < x.dim(); a++) axes.push_back(a);
  const Tensor inverse = (wide.square().mean(axes, true) + node.number("epsilon", 1e-5)).rsqrt();
  return {(wide * inverse).cast(x.dtype()) * node.tensor(1), inverse};
}

// ---- activations, products

Tensor with_bias(const Node& node) {
  return node.has(1) ? node.tensor(0) + node.tensor(1) : node.tensor(0);
}
Outputs gelu(const Node& node) { return {node.tensor(0).gelu()}; }
Outputs bias_gelu(const Node& node) { return {with_bias(node).gelu()}; }
Outputs fast_gelu(const Node& node) { return {with_bias(node).gelu("tanh")}; }
Outputs quick_gelu(const Node& node) {
  const Tensor x = node.tensor(0);
  return {x * (x * node.number("alpha", 1.702)).sigmoid()};
}

Outputs fused_matmul(const Node& node) {
  if (node.integer("transBatchA", 0) || node.integer("transBatchB", 0))
    fail<Unsupported>("transBatchA and transBatchB");
  Tensor a = node.tensor(0), b = node.tensor(1);
  if (node.integer("transA", 0)) a = a.T();
  if (node.integer("transB", 0)) b = b.T();
  const double alpha = node.number("alpha", 1);
  const Tensor out = a.matmul(b);
  return {alpha == 1 ? out : (out * alpha).cast(out.dtype())};
}

// Numbers of 2, 4 or 8 bits along the last axis, the first of a byte in its low bits.
Tensor unpacked_numbers(const Tensor& bytes, int64_t bits) {
  if (bits == 8) return bytes;
  if (bits == 4) return unpack_int4(bytes, false);
  std::vector<Tensor> parts;
  for (int64_t shift = 0; shift < 8; shift += bits) parts.push_back((bytes >> shift) & 3);
  return Tensor::stack(parts, -1).flatten(-2);
}

// Zero points, packed as the numbers are or of the scales' type: (n, groups), or undefined.
Tensor zero_points(const Node& node, size_t input, int64_t n, int64_t groups, int64_t bits) {
  if (!node.has(input)) return {};
  const Tensor zeros = node.tensor(input);
  if (zeros.dtype() != DType::U8) return zeros.reshape({n, groups});
  return unpacked_numbers(zeros.reshape({n, -1}), bits).narrow(1, 0, groups);
}

// x by a weight (n, k) of 2, 4 or 8 bits, with a scale for each block of a row, or, where a group
// is named for each of k, for each group.
Outputs matmul_nbits(const Node& node) {
  const Tensor x = node.tensor(0);
  const int64_t k = node.positive("K"), n = node.positive("N"), bits = node.integer("bits", 4),
                block = node.positive("block_size"), groups = (k + block - 1) / block;
  if (bits != 2 && bits != 4 && bits != 8) fail<Unsupported>("weights of {} bits", bits);
  const Tensor packed = node.tensor(1).reshape({n, groups * block * bits / 8}),
               scales = node.tensor(2).reshape({n, groups}),
               zeros = zero_points(node, 3, n, groups, bits), bias = node.tensor_or_none(5);
  if (bits == 4 && !node.has(4))
    return {linear_int4(x.pad(std::vector<int64_t>{0, groups * block - k}), packed, scales, zeros,
                        block, bias)};
  const auto for_each = [&](const Tensor& t) {
    return node.has(4) ? t.index_select(1, node.tensor(4).narrow(0, 0, k))
                       : t.repeat_interleave(block, 1).narrow(1, 0, k);
  };
  const Tensor q = unpacked_numbers(packed, bits).narrow(1, 0, k).cast(scales.dtype());
  const Tensor centered = zeros.defined() ? q - for_each(zeros.cast(scales.dtype()))
                                          : q - double(int64_t{1} << (bits - 1));
  return {x.linear(centered * for_each(scales), bias)};
}

// Rows of a table of 4 bits, quantized in blocks along the last axis.
Outputs gather_block_quantized(const Node& node) {
  const Tensor table = node.tensor(0), index = node.tensor(1), scales = node.tensor(2);
  const int64_t rank = table.dim(), bits = node.integer("bits", 4),
                block = node.positive("block_size", 128);
  if (axis_of(node.integer("gather_axis", 0), rank) != 0 ||
      axis_of(node.integer("quantize_axis", 1), rank) != rank - 1)
    fail<Unsupported>("rows of axis 0, quantized along the last axis, are supported");
  const Tensor flat = index.flatten();
  const auto rows = [&](const Tensor& t) { return t.index_select(0, flat); };
  const bool packed = table.dtype() == DType::U8 && !node.value(0).is_narrow() && bits == 4;
  const auto whole = [&](const Tensor& t) {
    return packed ? unpack_int4(rows(t), false) : rows(t);
  };
  Tensor x = whole(table).cast(scales.dtype());
  const auto along = [&](const Tensor& t) {
    return t.repeat_interleave(block, -1).narrow(-1, 0, x.size(-1));
  };
  if (node.has(3)) {
    const Tensor zeros = whole(node.tensor(3)).narrow(-1, 0, scales.size(-1));
    x = x - along(zeros.cast(scales.dtype()));
  } else if (packed) {
    x = x - 8;
  }
  x = x * along(rows(scales));
  Sizes sizes = index.sizes();
  for (int64_t a = 1; a < x.dim(); a++) sizes.push_back(x.size(a));
  return {x.reshape(sizes)};
}

// ---- attention

// Positions of tokens pick the rows of caches (positions, d / 2).
Tensor rows_at(const Tensor& cache, const Tensor& positions) {
  return cache.index_select(0, positions.flatten())
      .reshape({positions.size(0), positions.size(1), cache.size(1)});
}

Outputs rotary_embedding(const Node& node) {
  Tensor x = node.tensor(0), positions = node.tensor(1);
  const bool flat = x.dim() == 3;
  const Tensor cos = node.tensor(2), sin = node.tensor(3);
  int64_t dims = node.integer("rotary_embedding_dim", 0), heads = node.integer("num_heads", 0);
  if (flat && heads == 0)
    heads = int64_t(x.size(2)) / std::max<int64_t>(2 * int64_t(cos.size(1)), 1);
  if (flat) x = split_heads(x, heads);
  if (dims == 0) dims = 2 * int64_t(cos.size(1));
  const Size count = x.size(2);
  if (positions.numel() == 1)  // of the first token
    positions = positions.reshape({1, 1}) +
                Tensor::arange(0, Number(count), 1, node.options(DType::I64)).reshape({1, count});
  const Tensor out = rotated(x, rows_at(cos, positions), rows_at(sin, positions), dims,
                             node.integer("interleaved", 0) != 0);
  return {flat ? join_heads(out) : out};
}

// bias is added to the scores, or undefined.
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias, double scale,
              double softcap) {
  if (softcap <= 0) return Tensor::scaled_dot_product_attention(q, k, v, bias, 0, false, scale);
  Tensor scores = ((q.matmul(k.T()) * scale) / softcap).tanh() * softcap;
  if (bias.defined()) scores = scores + bias;
  return scores.softmax(-1).matmul(v);
}

double scale_of(const Node& node, const Tensor& q) {
  const double given = node.number("scale", 0);
  return given != 0 ? given : 1 / std::sqrt(double(int64_t(q.size(-1))));
}

Tensor counter(const Node& node, const Size& n, Sizes sizes) {
  return Tensor::arange(0, Number(n), 1, node.options(DType::I32)).reshape(sizes);
}

// Which keys each query sees: those up to its own position, as many as the window has, none behind
// the end of its sequence. Added to the scores.
Tensor causal_bias(const Node& node, const Size& queries, const Size& keys, const Size& past,
                   DType dtype) {
  const Tensor at = counter(node, queries, {1, 1, queries, 1}) + Number(past),
               key = counter(node, keys, {1, 1, 1, keys});
  Tensor hidden = key > at;
  if (node.has(5)) hidden = hidden | (key > node.tensor(5).cast(DType::I32).reshape({-1, 1, 1, 1}));
  const int64_t window = node.integer("local_window_size", -1);
  if (window > 0) hidden = hidden | (key <= at - window);
  const Tensor bias = hidden.cast(dtype) * -10000.0;
  return node.has(10) ? bias + node.tensor(10) : bias;
}

// Keys and values that came before are put in front: the caches grow, none is written in place.
Outputs group_query_attention(const Node& node) {
  const int64_t heads = node.positive("num_heads"), kv_heads = node.positive("kv_num_heads");
  Tensor q, k, v;
  if (node.has(1)) {
    q = split_heads(node.tensor(0), heads);
    k = split_heads(node.tensor(1), kv_heads), v = split_heads(node.tensor(2), kv_heads);
  } else {
    const Tensor all = split_heads(node.tensor(0), heads + 2 * kv_heads);
    q = all.narrow(1, 0, heads), k = all.narrow(1, heads, kv_heads);
    v = all.narrow(1, heads + kv_heads, kv_heads);
  }
  const Size past = node.has(3) ? node.tensor(3).size(2) : Size(0), count = q.size(2);
  if (node.integer("do_rotary", 0)) {
    const Tensor positions =
        node.has(9) ? node.tensor(9) : counter(node, count, {1, count}) + Number(past);
    const Tensor cos = rows_at(node.tensor(7), positions), sin = rows_at(node.tensor(8), positions);
    const bool interleaved = node.integer("rotary_interleaved", 0) != 0;
    const int64_t dims = 2 * int64_t(cos.size(2));
    q = rotated(q, cos, sin, dims, interleaved), k = rotated(k, cos, sin, dims, interleaved);
  }
  if (node.has(3)) k = Tensor::cat({node.tensor(3), k}, 2), v = Tensor::cat({node.tensor(4), v}, 2);
  const Tensor bias = causal_bias(node, count, k.size(2), past, q.dtype());
  const Tensor y = attend(q, repeat_heads(k, heads / kv_heads), repeat_heads(v, heads / kv_heads),
                          bias, scale_of(node, q), node.number("softcap", 0));
  return {join_heads(y), k, v};
}

// A mask (batch, keys) of what is no padding.
Tensor padding_bias(const Node& node, const Tensor& mask, DType dtype) {
  if (mask.dim() != 2) fail<Unsupported>("a key_padding_mask {}", shape_text(mask.sizes()));
  return (mask == 0).cast(dtype).reshape({mask.size(0), 1, 1, mask.size(1)}) *
         node.number("mask_filter_value", -10000);
}

// Each (n, heads, t, d).
struct Heads {
  Tensor q, k, v;
};

// The i-th of what (n, t, heads, several, d) holds.
Tensor one_of(const Tensor& packed, int64_t i) { return packed.select(3, i).transpose(1, 2); }

// In three tensors, keys and values in one, or all in one.
Heads heads_of(const Node& node, int64_t heads) {
  Tensor q = node.tensor(0);
  const bool together = q.dim() == 5, pairs = node.has(1) && node.tensor(1).dim() == 5;
  if (node.has(3) && (together || pairs)) fail<Unsupported>("a bias beside packed keys and values");
  if (together) return {one_of(q, 0), one_of(q, 1), one_of(q, 2)};
  if (pairs)
    return {split_heads(q, heads), one_of(node.tensor(1), 0), one_of(node.tensor(1), 1)};
  if (q.dim() != 3 || !node.has(1) || !node.has(2))
    fail<Unsupported>("queries {} without keys or values", shape_text(q.sizes()));
  Tensor k = node.tensor(1), v = node.tensor(2);
  if (node.has(3)) {
    const Tensor bias = node.tensor(3);
    const Size n = q.size(2), kept = bias.size(0) - n * 2;
    q = q + bias.narrow(0, 0, n);
    if (k.dim() == 3) k = k + bias.narrow(0, n, n), v = v + bias.narrow(0, n * 2, kept);
  }
  const auto by_heads = [&](const Tensor& t) { return t.dim() == 3 ? split_heads(t, heads) : t; };
  return {by_heads(q), by_heads(k), by_heads(v)};
}

// Of the mask and the bias that two inputs give, and of what comes later: added to the scores, or
// undefined.
Tensor score_bias(const Node& node, size_t mask, size_t bias, const Heads& h) {
  Tensor out;
  const auto add = [&](const Tensor& more) { out = out.defined() ? out + more : more; };
  if (node.has(mask)) add(padding_bias(node, node.tensor(mask), h.q.dtype()));
  if (node.has(bias)) add(node.tensor(bias));
  if (node.integer("unidirectional", 0)) {
    const Size queries = h.q.size(2), keys = h.k.size(2);
    const Tensor hidden = counter(node, keys, {1, 1, 1, keys}) >
                          counter(node, queries, {1, 1, queries, 1}) + Number(keys - queries);
    add(hidden.cast(h.q.dtype()) * -10000.0);
  }
  return out;
}

Outputs multi_head_attention(const Node& node) {
  Heads h = heads_of(node, node.integer("num_heads"));
  if (node.has(6)) {
    h.k = Tensor::cat({node.tensor(6), h.k}, 2);
    h.v = Tensor::cat({node.tensor(7), h.v}, 2);
  }
  const Tensor bias = score_bias(node, 4, 5, h);
  return {join_heads(attend(h.q, h.k, h.v, bias, scale_of(node, h.q), 0)), h.k, h.v};
}

// Queries, keys and values are one product. What came before, and what is kept, is keys and values
// in one tensor (2, n, heads, t, d).
Outputs attention(const Node& node) {
  if (node.integer("do_rotary", 0)) fail<Unsupported>("do_rotary");
  const int64_t heads = node.integer("num_heads");
  Tensor all = node.tensor(0).matmul(node.tensor(1));
  if (node.has(2)) all = all + node.tensor(2);
  const int64_t third = int64_t(all.size(2)) / 3;
  const std::vector<int64_t> sizes = node.integers("qkv_hidden_sizes", {third, third, third});
  const auto part = [&](int64_t from, size_t i) {
    return split_heads(all.narrow(2, from, sizes.at(i)), heads);
  };
  Heads h{part(0, 0), part(sizes.at(0), 1), part(sizes.at(0) + sizes.at(1), 2)};
  if (node.has(4)) {
    h.k = Tensor::cat({node.tensor(4).select(0, 0), h.k}, 2);
    h.v = Tensor::cat({node.tensor(4).select(0, 1), h.v}, 2);
  }
  const Tensor y =
      join_heads(attend(h.q, h.k, h.v, score_bias(node, 3, 5, h), scale_of(node, h.q), 0));
  if (!node.wants(1)) return {y};
  return {y, Tensor::stack({h.k, h.v}, 0)};
}

constexpr Operator kRows[] = {
    {kMicrosoft, "Attention", 1, kNewest, attention},
    {kMicrosoft, "BiasGelu", 1, kNewest, bias_gelu},
    {kMicrosoft, "FastGelu", 1, kNewest, fast_gelu},
    {kMicrosoft, "FusedMatMul", 1, kNewest, fused_matmul},
    {kMicrosoft, "GatherBlockQuantized", 1, kNewest, gather_block_quantized},
    {kMicrosoft, "Gelu", 1, kNewest, gelu},
    {kMicrosoft, "GroupQueryAttention", 1, kNewest, group_query_attention},
    {kMicrosoft, "MatMulNBits", 1, kNewest, matmul_nbits},
    {kMicrosoft, "MultiHeadAttention", 1, kNewest, multi_head_attention},
    {kMicrosoft, "QuickGelu", 1, kNewest, quick_gelu},
    {kMicrosoft, "RotaryEmbedding", 1, kNewest, rotary_embedding},
    {kMicrosoft, "SkipLayerNormalization", 1, kNewest, skip_layernorm},
    {kMicrosoft, "SkipSimplifiedLayerNormalization", 1, kNewest, skip_rmsnorm},
    {"", "SimplifiedLayerNormalization", 1, kNewest, rmsnorm},  // onnxruntime's, in this domain
};

}  // namespace

std::span<const Operator> microsoft_operators() { return kRows; }

}  // namespace tuff::onnx
