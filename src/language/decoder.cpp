#include "language/decoder.h"

#include <cmath>

namespace tuff::language {
namespace {

constexpr double kMasked = -1e30;

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
    x_ = Tensor::embedding(w.embedding, tokens);
    if (c.architecture.scales_embedding) x_ = x_ * std::sqrt(double(c.width));
  }

  Tensor run() {
    for (int64_t i = 0; i < c_.layers; i++) {
      const LayerWeights& l = w_.layers[size_t(i)];
      Tensor y = attention(l, norm(x_, l.attention_norm), i);
      x_ = x_ + after(y, l.after_attention_norm);
      y = hidden(l, norm(x_, l.hidden_norm));
      x_ = x_ + after(y, l.after_hidden_norm);
    }
    return x_;
  }

 private:
  Shared shared(const Tensor& cosines, const Tensor& sines, int64_t window) const {
    Shared s{cosines.narrow(0, place_.first, rows_), sines.narrow(0, place_.first, rows_), {}};
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

  Tensor norm(const Tensor& x, const Tensor& weight) const {
    return x.rms_norm({x.size(-1)}, weight, c_.norm_epsilon);
  }
  Tensor after(const Tensor& y, const Tensor& weight) const {
    return weight.defined() ? norm(y, weight) : y;
  }

  Tensor attention(const LayerWeights& l, const Tensor& x, int64_t layer) {
    const Shared& s = c_.has_window(layer) ? windowed_ : all_;
    const auto heads = [&](const Projection& p, int64_t count, int64_t size, const Tensor& weight) {
      const Tensor y = p(x).reshape({rows_, count, size});
      return weight.defined() ? norm(y, weight) : y;
    };
    const auto turned = [&](const Tensor& y) {
      return rotate(y, s.cosines, s.sines, c_.architecture.pairs);
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

  Tensor hidden(const LayerWeights& l, const Tensor& x) const {
    const Tensor gate = l.gate(x);
    const bool silu = c_.architecture.activation == Activation::Silu;
    return l.down((silu ? gate.silu() : gate.gelu("tanh")) * l.up(x));
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
  return x.rms_norm({c.width}, w.output_norm, c.norm_epsilon);
}

Tensor logits(const Config& c, const Weights& w, const Tensor& x) {
  const Tensor y = last_norm(c, w, x).linear(w.output);
  return c.logit_cap > 0 ? (y / c.logit_cap).tanh() * c.logit_cap : y;
}

}  // namespace tuff::language
