#include "language/decoder.h"

#include <cmath>

#include <tuff/autograd.h>
#include <tuff/losses.h>

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
  Tensor visible;         // (sequences, rows of one, length); undefined: all of it
};

class Decoder {
 public:
  Decoder(const Config& c, const Weights& w, const RopeTables& rope, const Tensor& tokens,
          const Place& place)
      : c_(c), w_(w), place_(place), rows_(tokens.size(0)), device_(tokens.device()) {
    length_ = place.pages ? place.table.size(1) * kPagePositions : rows_ / place.sequences;
    all_ = shared(rope.cosines, rope.sines, 0);
    const bool own_base = rope.window_cosines.defined();
    if (c.window > 0)
      windowed_ = shared(own_base ? rope.window_cosines : rope.cosines,
                         own_base ? rope.window_sines : rope.sines, c.window);
    x_ = embedded(tokens);
  }

  Tensor run() {
    for (int64_t i = 0; i < c_.layers; i++) {
      const auto one = [&](const Tensor& x) { return layer(i, x); };
      x_ = place_.checkpoints ? checkpoint(one, x_) : one(x_);
    }
    return x_;
  }

 private:
  Tensor layer(int64_t i, const Tensor& x) {
    const LayerWeights& l = w_.layers[size_t(i)];
    const Tensor y = attention(l, norm(x, l.attention_norm), i);
    const Tensor sum = norm(x + norm(y, l.after_attention_norm), l.attention_sum_norm);
    const Tensor z = feed_forward(c_, l, norm(sum, l.hidden_norm));
    return norm(sum + norm(z, l.after_hidden_norm), l.hidden_sum_norm);
  }

  Shared shared(const Tensor& cosines, const Tensor& sines, int64_t window) const {
    Shared s;
    if (cosines.defined()) s = {of_rows(cosines), of_rows(sines), {}};
    if (c_.architecture.encodes) {
      if (place_.present.defined())
        s.visible = place_.present.reshape({1, 1, rows_}).expand({1, rows_, rows_});
      return s;
    }
    const int64_t n = place_.sequences;
    const Size each = rows_ / n;
    // Where a row stands among those that it may see.
    const Tensor row = place_.pages ? place_.positions.reshape({n, each}) : counted();
    const Tensor at = row.unsqueeze(-1);
    const Tensor key = Tensor::arange(0, length_, 1, {DType::I32, device_});
    s.visible = key <= at;
    if (window > 0) s.visible = s.visible & (key > at - window);
    if (place_.texts.defined()) {
      const Tensor text = place_.texts.reshape({n, each});
      s.visible = s.visible & (text.unsqueeze(-1) == text.unsqueeze(1));
    }
    return s;
  }

  // (sequences, rows of one)
  Tensor counted() const {
    const Size each = rows_ / place_.sequences;
    return Tensor::arange(0, each, 1, {DType::I32, device_})
        .reshape({1, each})
        .expand({place_.sequences, each});
  }

  // Of a table by positions.
  Tensor of_rows(const Tensor& table) const {
    if (place_.positions.defined()) return table.index_select(0, place_.positions);
    if (place_.sequences == 1) return table.narrow(0, 0, rows_);
    return table.index_select(0, counted().reshape({rows_}));
  }

  Tensor embedded(const Tensor& tokens) const {
    Tensor x = Tensor::embedding(w_.embedding, tokens);
    if (c_.architecture.scales_embedding) x = x * std::sqrt(double(c_.width));
    if (w_.token_types.defined()) x = x + w_.token_types.select(0, 0);
    if (w_.positions.defined()) x = x + of_rows(w_.positions);
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
    LayerPages* pages = place_.pages ? &(*place_.pages)[size_t(layer)] : nullptr;
    const Tensor keys = remembered(k, pages ? &pages->keys : nullptr);
    const Tensor values = remembered(v, pages ? &pages->values : nullptr);
    return l.output(mixed(q, keys, values, s.visible));
  }

  // (rows, heads, size) -> (sequences, heads, length, size), with what was read before.
  Tensor remembered(const Tensor& rows, KvPages* pages) const {
    if (!pages)
      return rows.reshape({place_.sequences, length_, rows.size(1), rows.size(2)}).transpose(1, 2);
    pages->put(place_.slots, rows);
    return pages->of(place_.table);
  }

  // The queries of a sequence that read the same keys are rows of one product.
  Tensor mixed(const Tensor& q, const Tensor& keys, const Tensor& values, Tensor visible) const {
    const int64_t group = c_.heads / c_.kv_heads, sequences = place_.sequences;
    const Size each = rows_ / sequences, together = each * Size(group);
    const Tensor by_key = q.reshape({sequences, each, c_.kv_heads, group, c_.key_size})
                              .permute({0, 2, 3, 1, 4})
                              .reshape({sequences, c_.kv_heads, together, c_.key_size});
    if (visible.defined())
      visible = visible.unsqueeze(1)
                    .expand({sequences, group, each, length_})
                    .reshape({sequences, 1, together, length_});
    Tensor y;
    if (c_.score_cap > 0) {
      Tensor scores = by_key.matmul(keys.transpose(2, 3)) * c_.score_scale;
      scores = (scores / c_.score_cap).tanh() * c_.score_cap;
      if (visible.defined()) scores = Tensor::where(visible, scores, kMasked);
      y = scores.softmax(-1).matmul(values);
    } else {
      y = Tensor::scaled_dot_product_attention(by_key, keys, values, visible, 0, false,
                                               c_.score_scale);
    }
    return y.reshape({sequences, c_.kv_heads, group, each, c_.value_size})
        .permute({0, 3, 1, 2, 4})
        .reshape({rows_, c_.heads * c_.value_size});
  }

  const Config& c_;
  const Weights& w_;
  const Place& place_;
  const Size rows_;
  Size length_;  // positions that a sequence reads
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

Tensor loss(const Config& c, const Weights& w, const Tensor& x, const Tensor& targets,
            int64_t ignore_index, Reduction reduction) {
  if (c.logit_cap > 0)
    return logits(c, w, x).cross_entropy(targets, {}, ignore_index, reduction);
  return linear_cross_entropy(last_norm(c, w, x), w.output, targets, {}, {}, ignore_index, reduction);
}

}  // namespace tuff::language
