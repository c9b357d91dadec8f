// Attention and rotary embeddings.
#include <cmath>

#include "base/check.h"
#include "onnx/attention.h"
#include "onnx/operators.h"

namespace tuff::onnx {

Tensor split_heads(const Tensor& x, int64_t heads) {
  if (heads < 1) fail<InvalidArgument>("{} heads", heads);
  return x.reshape({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

Tensor join_heads(const Tensor& x) {
  return x.transpose(1, 2).reshape({x.size(0), x.size(2), x.size(1) * x.size(3)});
}

Tensor repeat_heads(const Tensor& x, int64_t times) {
  if (times == 1) return x;
  const Sizes s = x.sizes();
  if (s.size() != 4) fail<ShapeError>("(n, heads, t, d) is wanted, not {}", shape_text(s));
  return x.unsqueeze(2)
      .expand({s[0], s[1], times, s[2], s[3]})
      .reshape({s[0], s[1] * times, s[2], s[3]});
}

Tensor rotated(const Tensor& x, const Tensor& cos, const Tensor& sin, int64_t dims,
               bool interleaved) {
  const int64_t half = dims / 2;
  const Tensor turned = x.narrow(-1, 0, dims);
  Tensor a, b;
  if (interleaved) {
    const Tensor pairs = turned.unflatten(-1, {half, 2});
    a = pairs.select(-1, 0), b = pairs.select(-1, 1);
  } else {
    a = turned.narrow(-1, 0, half), b = turned.narrow(-1, half, half);
  }
  const Tensor c = cos.unsqueeze(1), s = sin.unsqueeze(1);
  const Tensor real = c * a - s * b, imaginary = s * a + c * b;
  const Tensor out = interleaved ? Tensor::stack({real, imaginary}, -1).flatten(-2)
                                 : Tensor::cat({real, imaginary}, -1);
  const Size rest = x.size(-1) - dims;
  if (rest == 0) return out.cast(x.dtype());
  return Tensor::cat({out.cast(x.dtype()), x.narrow(-1, dims, rest)}, -1);
}

namespace {

Outputs rotary_embedding(const Node& node) {
  Tensor x = node.tensor(0), cos = node.tensor(1), sin = node.tensor(2);
  const bool flat = x.dim() == 3;
  if (flat) x = split_heads(x, node.integer("num_heads"));
  if (node.has(3)) {
    const Tensor at = node.tensor(3);
    const auto rows = [&](const Tensor& cache) {
      return cache.index_select(0, at.flatten()).reshape({at.size(0), at.size(1), cache.size(1)});
    };
    cos = rows(cos), sin = rows(sin);
  }
  int64_t dims = node.integer("rotary_embedding_dim", 0);
  if (dims == 0) dims = x.size(-1);
  const Tensor out = rotated(x, cos, sin, dims, node.integer("interleaved", 0) != 0);
  return {flat ? join_heads(out) : out};
}

constexpr double kNothing = -std::numeric_limits<double>::infinity();

// What is added to the scores (n, heads, queries, keys), 0 or -inf where a mask of bools says so;
// undefined: nothing.
class Bias {
 public:
  explicit Bias(const Node& node) : node_(node) {}

  Tensor of(const Tensor& scores, const Size& past) {
    queries_ = scores.size(2), keys_ = scores.size(3);
    Tensor bias;
    if (node_.has(3)) bias = given(scores.dtype());
    if (node_.has(6)) bias = without(bias, counter(keys_, 3) >= lengths());
    Tensor place = counter(queries_, 2) + Number(past);
    if (node_.has(6)) place = counter(queries_, 2) + lengths() - Number(queries_);
    const int64_t left = node_.integer("left_window_size", -1),
                  right = node_.integer("right_window_size", -1);
    if (node_.integer("is_causal", 0)) bias = without(bias, counter(keys_, 3) > place);
    if (left >= 0) bias = without(bias, counter(keys_, 3) < place - left);
    if (right >= 0) bias = without(bias, counter(keys_, 3) > place + right);
    return bias.defined() ? bias.cast(scores.dtype()) : bias;
  }

 private:
  Tensor counter(const Size& n, size_t axis) const {
    Sizes sizes(4, 1);
    sizes[axis] = n;
    return Tensor::arange(0, Number(n), 1, node_.options(DType::I32)).reshape(sizes);
  }
  Tensor lengths() const { return node_.tensor(6).cast(DType::I32).reshape({-1, 1, 1, 1}); }
  // A mask that is shorter than the keys hides those behind it.
  Tensor given(DType dtype) const {
    const Tensor mask = node_.tensor(3);
    Tensor bias = mask.dtype() == DType::Bool
                      ? Tensor::where(mask, mask.cast(DType::F32) * 0.0, kNothing).cast(dtype)
                      : mask;
    const Size behind = keys_ - bias.size(-1);
    if (behind != 0) bias = bias.pad({0, int64_t(behind)}, kNothing);
    return bias;
  }
  static Tensor without(const Tensor& bias, const Tensor& hidden) {
    if (!bias.defined())
      return Tensor::where(hidden, kNothing, hidden.cast(DType::F32) * 0.0);
    return Tensor::where(hidden, kNothing, bias);
  }

  const Node& node_;
  Size queries_, keys_;
};

// A row without a key that it may see is 0.
Tensor probabilities(const Tensor& scores, const Tensor& bias, DType precision) {
  const Tensor wide = scores.cast(precision), p = wide.softmax(-1);
  if (!bias.defined()) return p.cast(scores.dtype());
  const Tensor blind = wide.max({-1}, true) == kNothing;
  return Tensor::where(blind, p.zeros_like(), p).cast(scores.dtype());
}

Outputs attention(const Node& node) {
  Tensor q = node.tensor(0), k = node.tensor(1), v = node.tensor(2);
  const bool flat = q.dim() == 3;
  if (flat) {
    q = split_heads(q, node.integer("q_num_heads"));
    k = split_heads(k, node.integer("kv_num_heads"));
    v = split_heads(v, node.integer("kv_num_heads"));
  }
  Size past = 0;
  if (node.has(4)) {
    past = node.tensor(4).size(2);
    k = Tensor::cat({node.tensor(4), k}, 2), v = Tensor::cat({node.tensor(5), v}, 2);
  }
  const double scale =
      node.number("scale", 1 / std::sqrt(double(int64_t(q.size(-1)))));
  if (int64_t(k.size(1)) == 0) fail<ShapeError>("keys {} have no heads", shape_text(k.sizes()));
  const int64_t times = int64_t(q.size(1)) / int64_t(k.size(1)),
                mode = node.integer("qk_matmul_output_mode", 0);
  const double softcap = node.number("softcap", 0), root = std::sqrt(scale);
  Tensor scores = (q * root).matmul((repeat_heads(k, times) * root).T()), shown = scores;
  if (softcap > 0) scores = (scores / softcap).tanh() * softcap;
  if (mode == 1) shown = scores;
  const Tensor bias = Bias(node).of(scores, past);
  if (bias.defined()) scores = scores + bias;
  if (mode == 2) shown = scores;
  const DType precision = node.dtype("softmax_precision").value_or(scores.dtype());
  const Tensor p = probabilities(scores, bias, precision);
  if (mode == 3) shown = p;
  const Tensor y = p.matmul(repeat_heads(v, times));
  return {flat ? join_heads(y) : y, k, v, shown};
}

// By the graph that the attribute is, where there is one.
Tensor modified(const Node& node, const char* attribute, const Tensor& x) {
  if (!node.has(attribute)) return x;
  const std::vector<Value> out = node.run(node.graph(attribute), {x});
  if (out.size() != 1) fail<InvalidArgument>("{} gives {} values, not one", attribute, out.size());
  return out[0].tensor(node.device()).cast(x.dtype());
}

// Scores and probabilities go through graphs of the model's own.
Outputs flex_attention(const Node& node) {
  const Tensor q = node.tensor(0), k = node.tensor(1), v = node.tensor(2);
  if (q.dim() != 4 || k.dim() != 4 || v.dim() != 4)
    fail<ShapeError>("queries, keys and values have 4 axes");
  const int64_t heads = q.size(1), kv_heads = k.size(1);
  if (kv_heads == 0 || heads % kv_heads != 0)
    fail<ShapeError>("{} heads of queries for {} of keys", heads, kv_heads);
  const double root = std::sqrt(node.number("scale", 1 / std::sqrt(double(int64_t(q.size(-1))))));
  const DType precision = node.dtype("softmax_precision").value_or(accumulator(q.dtype()));
  const auto repeated = [&](const Tensor& t) { return repeat_heads(t, heads / kv_heads); };
  const Tensor scores = (q * root).matmul((repeated(k) * root).T()).cast(precision);
  const Tensor p = modified(node, "prob_mod", modified(node, "score_mod", scores).softmax(-1));
  return {p.matmul(repeated(v).cast(precision)).cast(v.dtype())};
}

constexpr Operator kRows[] = {
    {kPreview, "FlexAttention", 1, kNewest, flex_attention},
    {"", "Attention", 23, kNewest, attention},
    {"", "RotaryEmbedding", 23, kNewest, rotary_embedding},
};

}  // namespace

std::span<const Operator> attention_operators() { return kRows; }

}  // namespace tuff::onnx
