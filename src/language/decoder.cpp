#include "language/decoder.h"

#include <cmath>

#include "language/feed_forward.h"

namespace tuff::language {
namespace {

constexpr double kMasked = -1e30;

// As it is where there is no norm.
Tensor normed(const Config& c, const Norm& n, const Tensor& x) {
  if (!n.weight.defined()) return x;
  if (c.architecture.layer_norms)
    return x.layernorm({x.size(-1)}, n.weight, n.bias, c.norm_epsilon);
  return x.rms_norm({x.size(-1)}, n.weight, c.norm_epsilon);
}

// What the rows of a call share in all layers of one kind.
struct Shared {
  Tensor cosines, sines;  // of the rows
  Tensor visible;         // (rows, length); undefined: all of it
};

class Decoder {
 public:
  Decoder(const Config& c, const Weights& w, const RopeTables& rope, const Tensor& tokens,
          const Place& place)
      : c_(c), w_(w), place_(place), rows_(tokens.size(0)), device_(tokens.device()) {
    all_ = shared(rope.cosines, rope.sines, 0);
    const bool own_base = rope.window_cosines.defined();
    if (c.window > 0)
      windowed_ = shared(own_base ? rope.window_cosines : rope.cosines,
                         own_base ? rope.window_sines : rope.sines, c.window);
    x_ = embedded(tokens);
  }

  Tensor run() {
    for (int64_t i = 0; i < c_.layers; i++) {
      const LayerWeights& l = w_.layers[size_t(i)];
      Tensor y = attention(l, norm(x_, l.attention_norm), i);
      x_ = norm(x_ + norm(y, l.after_attention_norm), l.attention_sum_norm);
      y = feed_forward(c_, l, norm(x_, l.hidden_norm));
      x_ = norm(x_ + norm(y, l.after_hidden_norm), l.hidden_sum_norm);
    }
    return x_;
  }

 private:
  Shared shared(const Tensor& cosines, const Tensor& sines, int64_t window) const {
    Shared s;
    if (cosines.defined())
      s = {cosines.narrow(0, place_.first, rows_), sines.narrow(0, place_.first, rows_), {}};
    if (c_.architecture.encodes) {
      if (place_.present.defined())
        s.visible = place_.present.unsqueeze(0).expand({rows_, place_.length});
      return s;
    }
    // One row sees all that was read before it, but for a window.
    const bool single = rows_.is_number() && int64_t(rows_) == 1;
    if (single && window == 0) return s;
    const TensorOptions integers{DType::I32, device_};
    const Tensor row = Tensor::arange(0, rows_, 1, integers).unsqueeze(1) + place_.first;
    const Tensor key = Tensor::arange(0, place_.length, 1, integers);
    s.visible = key <= row;
    if (window > 0) s.visible = s.visible & (key > row - window);
    return s;
  }

  Tensor embedded(const Tensor& tokens) const {
    Tensor x = Tensor::embedding(w_.embedding, tokens);
    if (c_.architecture.scales_embedding) x = x * std::sqrt(double(c_.width));
    if (w_.token_types.defined()) x = x + w_.token_types.select(0, 0);
    if (w_.positions.defined()) x = x + w_.positions.narrow(0, place_.first, rows_);
    return norm(x, w_.embedding_norm);
  }

  Tensor norm(const Tensor& x, const Norm& n) const { return normed(c_, n, x); }

  Tensor attention(const LayerWeights& l, const Tensor& x, int64_t layer) {
    const Shared& s = c_.has_window(layer) ? windowed_ : all_;
    const auto heads = [&](const Projection& p, int64_t count, int64_t size, const Norm& n) {
      return norm(p(x).reshape({rows_, count, size}), n);
    };
    const auto turned = [&](const Tensor& y) {
      const RopePairs pairs = c_.architecture.pairs;
      return pairs == RopePairs::None ? y : rotate(y, s.cosines, s.sines, pairs);
    };
    const Tensor q = turned(heads(l.queries, c_.heads, c_.key_size, l.query_norm));
    const Tensor k = turned(heads(l.keys, c_.kv_heads, c_.key_size, l.key_norm));
    const Tensor v = heads(l.values, c_.kv_heads, c_.value_size, {});
    LayerCache* cache = place_.cache ? &(*place_.cache)[size_t(layer)] : nullptr;
    const Tensor keys = remembered(k, cache ? &cache->keys : nullptr);
    const Tensor values = remembered(v, cache ? &cache->values : nullptr);
    return l.output(mixed(q, keys, values, s.visible));
  }

  // (rows, heads, size) -> (heads, length, size), with what was read before.
  Tensor remembered(const Tensor& rows, Tensor* cache) const {
    const Tensor by_head = rows.transpose(0, 1);
    if (!cache) return by_head;
    cache->index_put_({indexing::Slice{}, indexing::Slice{place_.first, place_.length}},
                      by_head.to(cache->dtype()));
    return cache->narrow(1, 0, place_.length).to(DType::F32);
  }

  // The queries that read the same keys are rows of one product.
  Tensor mixed(const Tensor& q, const Tensor& keys, const Tensor& values, Tensor visible) const {
    const int64_t group = c_.heads / c_.kv_heads;
    const Size together = rows_ * Size(group);
    const Tensor by_key = q.reshape({rows_, c_.kv_heads, group, c_.key_size})
                              .permute({1, 2, 0, 3})
                              .reshape({c_.kv_heads, together, c_.key_size});
    if (visible.defined() && group > 1)
      visible = visible.unsqueeze(0)
                    .expand({group, rows_, place_.length})
                    .reshape({together, place_.length});
    Tensor y;
    if (c_.score_cap > 0) {
      Tensor scores = by_key.matmul(keys.transpose(1, 2)) * c_.score_scale;
      scores = (scores / c_.score_cap).tanh() * c_.score_cap;
      if (visible.defined()) scores = Tensor::where(visible, scores, kMasked);
      y = scores.softmax(-1).matmul(values);
    } else {
      y = Tensor::scaled_dot_product_attention(by_key, keys, values, visible, 0, false,
                                               c_.score_scale);
    }
    return y.reshape({c_.kv_heads, group, rows_, c_.value_size})
        .permute({2, 0, 1, 3})
        .reshape({rows_, c_.heads * c_.value_size});
  }

  const Config& c_;
  const Weights& w_;
  const Place& place_;
  const Size rows_;
  const std::string device_;
  Shared all_, windowed_;
  Tensor x_;
};

}  // namespace

Tensor decode(const Config& c, const Weights& w, const RopeTables& rope, const Tensor& tokens,
              const Place& place) {
  return Decoder(c, w, rope, tokens, place).run();
}

Tensor last_norm(const Config& c, const Weights& w, const Tensor& x) {
  return normed(c, w.output_norm, x);
}

Tensor logits(const Config& c, const Weights& w, const Tensor& x) {
  const Tensor y = last_norm(c, w, x).linear(w.output);
  return c.logit_cap > 0 ? (y / c.logit_cap).tanh() * c.logit_cap : y;
}

}  // namespace tuff::language
