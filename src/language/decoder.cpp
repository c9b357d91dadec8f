#include "language/decoder.h"

#include <cmath>

#include <tuff/autograd.h>

namespace tuff::language {
namespace {

constexpr double kMasked = -1e30;

// What the rows of a call share in all layers of one kind.
struct Shared {
  Tensor cosines, sines;  // of the rows
  Tensor visible;         // (sequences, rows of one, length)
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
    x_ = Tensor::embedding(w.embedding, tokens);
    if (c.architecture.scales_embedding) x_ = x_ * std::sqrt(double(c.width));
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
    const Tensor mixed = x + after(y, l.after_attention_norm);
    const Tensor z = hidden(l, norm(mixed, l.hidden_norm));
    return mixed + after(z, l.after_hidden_norm);
  }

  Shared shared(const Tensor& cosines, const Tensor& sines, int64_t window) const {
    const int64_t n = place_.sequences;
    const Size each = rows_ / n;
    const TensorOptions integers{DType::I32, device_};
    const Tensor count = Tensor::arange(0, each, 1, integers);
    // Where a row stands among those that it may see; in its text for its rotation.
    const Tensor row = place_.pages ? place_.positions.reshape({n, each})
                                    : count.reshape({1, each}).expand({n, each});
    const auto of_rows = [&](const Tensor& table) {
      if (place_.positions.defined()) return table.index_select(0, place_.positions);
      return n == 1 ? table.narrow(0, 0, rows_) : table.index_select(0, row.reshape({rows_}));
    };
    const Tensor at = row.unsqueeze(-1), key = Tensor::arange(0, length_, 1, integers);
    Shared s{of_rows(cosines), of_rows(sines), key <= at};
    if (window > 0) s.visible = s.visible & (key > at - window);
    if (place_.texts.defined()) {
      const Tensor text = place_.texts.reshape({n, each});
      s.visible = s.visible & (text.unsqueeze(-1) == text.unsqueeze(1));
    }
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
    LayerPages* pages = place_.pages ? &(*place_.pages)[size_t(layer)] : nullptr;
    const Tensor keys = remembered(k, pages ? &pages->keys : nullptr);
    const Tensor values = remembered(v, pages ? &pages->values : nullptr);
    return l.output(mixed(q, keys, values, s.visible));
  }

  // (rows, heads, size) -> (sequences, heads, length, size), with what was read before.
  Tensor remembered(const Tensor& rows, Tensor* pages) const {
    if (!pages)
      return rows.reshape({place_.sequences, length_, rows.size(1), rows.size(2)}).transpose(1, 2);
    const int64_t heads = pages->size(1), size = pages->size(2);
    // A position that is not seen weighs nothing, but nothing times infinity is no number.
    pages->index_put_({place_.slots}, rows.to(pages->dtype()).nan_to_num());
    const Tensor by_page = pages->reshape(
        {pages->size(0) / kPagePositions, kPagePositions * heads * size});
    return Tensor::embedding(by_page, place_.table)
        .reshape({place_.sequences, place_.table.size(1), kPagePositions, heads, size})
        .permute({0, 3, 1, 2, 4})
        .reshape({place_.sequences, heads, length_, size})
        .to(DType::F32);
  }

  // The queries of a sequence that read the same keys are rows of one product.
  Tensor mixed(const Tensor& q, const Tensor& keys, const Tensor& values, Tensor visible) const {
    const int64_t group = c_.heads / c_.kv_heads, sequences = place_.sequences;
    const Size each = rows_ / sequences, together = each * Size(group);
    const Tensor by_key = q.reshape({sequences, each, c_.kv_heads, group, c_.key_size})
                              .permute({0, 2, 3, 1, 4})
                              .reshape({sequences, c_.kv_heads, together, c_.key_size});
    visible = visible.unsqueeze(1)
                  .expand({sequences, group, each, length_})
                  .reshape({sequences, 1, together, length_});
    Tensor y;
    if (c_.score_cap > 0) {
      Tensor scores = by_key.matmul(keys.transpose(2, 3)) * c_.score_scale;
      scores = (scores / c_.score_cap).tanh() * c_.score_cap;
      y = Tensor::where(visible, scores, kMasked).softmax(-1).matmul(values);
    } else {
      y = Tensor::scaled_dot_product_attention(by_key, keys, values, visible, 0, false,
                                               c_.score_scale);
    }
    return y.reshape({sequences, c_.kv_heads, group, each, c_.value_size})
        .permute({0, 3, 1, 2, 4})
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
  return x.rms_norm({c.width}, w.output_norm, c.norm_epsilon);
}

Tensor logits(const Config& c, const Weights& w, const Tensor& x) {
  const Tensor y = last_norm(c, w, x).linear(w.output);
  return c.logit_cap > 0 ? (y / c.logit_cap).tanh() * c.logit_cap : y;
}

}  // namespace tuff::language
