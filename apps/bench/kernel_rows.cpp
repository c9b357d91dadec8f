// The table behind `tuff bench`: what is computed, how much work that is, what is right.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <random>

#include "base/check.h"
#include "bench/kernel_bench.h"
#include "bench/random_blocks.h"
#include "io/dequantize.h"

namespace tuff::bench {
namespace {

constexpr double kEpsilon = 0x1p-24;  // f32 rounds by at most so much of the value

using Values = std::shared_ptr<const std::vector<float>>;
using Inputs = const std::vector<Tensor>&;

// A function of one result.
template <class Function>
Jit::Function one(Function f) {
  return [f](Inputs in) { return std::vector<Tensor>{f(in)}; };
}

int64_t product(const Extents& e) {
  int64_t n = 1;
  for (int64_t x : e) n *= x;
  return n;
}
Sizes sizes(const Extents& e) { return Sizes(e.begin(), e.end()); }

// An input and what it holds, rounded to its dtype.
struct Given {
  Tensor tensor;
  Values values;
  double at(int64_t i) const { return double((*values)[size_t(i)]); }
};

Given given(const Extents& extents, const KernelOptions& o, uint32_t seed, DType dtype) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> any(-1, 1);
  std::vector<float> v(size_t(product(extents)));
  for (float& x : v) x = any(random);
  Given g;
  g.tensor = Tensor::from(v, sizes(extents), {.device = o.device});
  if (dtype != DType::F32) {
    g.tensor = g.tensor.cast(dtype);
    v = g.tensor.cast(DType::F32).to_vector<float>();
  }
  g.tensor.realize();
  g.values = std::make_shared<const std::vector<float>>(std::move(v));
  return g;
}
Given given(const Extents& extents, const KernelOptions& o, uint32_t seed) {
  return given(extents, o, seed, o.dtype);
}

// Rows of weights, as the options say.
Given given_weights(int64_t rows, int64_t columns, const KernelOptions& o, uint32_t seed) {
  if (o.weights.empty()) return given({rows, columns}, o, seed);
  PackedWeights w = random_weights(o.weights, rows, columns, o.dtype, seed, o.device);
  return {w.blocks, std::make_shared<const std::vector<float>>(std::move(w.values))};
}
Tensor decoded(const Tensor& weights, int64_t rows, int64_t columns, const std::string& type,
               DType dtype) {
  if (type.empty()) return weights;
  return io::dequantize(type, weights).reshape({rows, columns}).cast(dtype);
}
double weight_bytes(const Given& weights) {
  double n = double(size_bytes(weights.tensor.dtype()));
  for (const Size& s : weights.tensor.sizes()) n *= double(int64_t(s));
  return n;
}

// Half a step of the result's dtype beside what the accumulation in f32 may lose: rounding errors
// of n additions add up like a random walk, four standard deviations of which are allowed.
double step_of(DType t) { return t == DType::F16 ? 0x1p-11 : t == DType::BF16 ? 0x1p-8 : kEpsilon; }
double tolerance(double value, double magnitude, double n, DType dtype) {
  // Numbers below the least normal one of f16, 2^-14, are 2^-24 apart.
  const double least = dtype == DType::F16 ? 0x1p-25 : 1e-30;
  return std::max(step_of(dtype) * std::abs(value), least) +
         4 * kEpsilon * std::sqrt(n) * magnitude;
}

double element_bytes(const KernelOptions& o) { return double(size_bytes(o.dtype)); }

// ---- extents

Extents as_given(const Extents& e, size_t count) { return e.size() == count ? e : Extents{}; }
template <size_t Count>
Extents exactly(const Extents& e) {
  return as_given(e, Count);
}
// N stands for a square.
Extents rows_and_columns(const Extents& e) {
  return e.size() == 1 ? Extents{e[0], e[0]} : as_given(e, 2);
}
Extents of_matmul(const Extents& e) {
  if (e.size() == 1) return {e[0], e[0], e[0]};
  return e.size() == 3 ? e : as_given(e, 4);
}

// ---- sums of products

struct Product {
  int64_t m, n, k;
  Given a, b;
  bool a_transposed, b_transposed;
  Expected at(int64_t i, DType dtype) const {
    const int64_t batch = i / (m * n), row = i / n % m, column = i % n;
    double sum = 0, magnitude = 0;
    for (int64_t j = 0; j < k; j++) {
      const double x = a.at(batch * m * k + (a_transposed ? j * m + row : row * k + j));
      const double y = b.at(batch * k * n + (b_transposed ? column * k + j : j * n + column));
      sum += x * y;
      magnitude += std::abs(x * y);
    }
    return {sum, tolerance(sum, magnitude, double(k), dtype)};
  }
};

KernelCase matmul(const Extents& e, const KernelOptions& o) {
  const size_t at = e.size() - 3;  // after a batch
  const int64_t batch = at ? e[0] : 1, m = e[at], n = e[at + 1], k = e[at + 2];
  const bool ta = o.transposed.find('a') != std::string::npos;
  const bool packed = !o.weights.empty();
  const bool tb = packed || o.transposed.find('b') != std::string::npos;
  if (packed && at)
    fail<InvalidArgument>("packed weights are those of one product, not of {}", batch);
  const auto shape = [batch, at](int64_t rows, int64_t columns, bool transposed) {
    Extents s = transposed ? Extents{columns, rows} : Extents{rows, columns};
    if (at) s.insert(s.begin(), batch);
    return s;
  };
  const Given right = packed ? given_weights(n, k, o, 2) : given(shape(k, n, tb), o, 2);
  const Product p{m, n, k, given(shape(m, k, ta), o, 1), right, ta, tb};
  KernelCase c;
  c.inputs = {p.a.tensor, p.b.tensor};
  c.function = one([ta, tb, n, k, type = o.weights, dtype = o.dtype](Inputs in) {
    const Tensor right = decoded(in[1], n, k, type, dtype);
    return (ta ? in[0].T() : in[0]).matmul(tb ? right.T() : right);
  });
  c.flops = 2.0 * double(batch * m * n * k);
  c.bytes = weight_bytes(right) + element_bytes(o) * double(batch * (m * k + m * n));
  c.expected = [p, dtype = o.dtype](int64_t i) { return p.at(i, dtype); };
  return c;
}

KernelCase gemv(const Extents& e, const KernelOptions& o) {
  const int64_t m = e[0], k = e[1];
  const Product p{m, 1, k, given_weights(m, k, o, 1), given({k}, o, 2), false, false};
  KernelCase c;
  c.inputs = {p.a.tensor, p.b.tensor};
  c.function = one([m, k, type = o.weights, dtype = o.dtype](Inputs in) {
    return decoded(in[0], m, k, type, dtype).matmul(in[1]);
  });
  c.flops = 2.0 * double(m * k);
  c.bytes = weight_bytes(p.a) + element_bytes(o) * double(k + m);
  c.expected = [p, dtype = o.dtype](int64_t i) { return p.at(i, dtype); };
  return c;
}

// Images (n, c, h, w), filters (o, c, k, k), so padded that the images keep their size.
KernelCase convolution(const Extents& e, const KernelOptions& o) {
  const int64_t n = e[0], channels = e[1], h = e[2], w = e[3], filters = e[4], k = e[5];
  const Given x = given({n, channels, h, w}, o, 1), f = given({filters, channels, k, k}, o, 2);
  const int64_t pad = k / 2;
  KernelCase c;
  c.inputs = {x.tensor, f.tensor};
  c.function = one([pad](Inputs in) { return in[0].conv2d(in[1], {}, 1, int(pad)); });
  const int64_t out_h = h + 2 * pad - k + 1, out_w = w + 2 * pad - k + 1;
  c.flops = 2.0 * double(n * filters * out_h * out_w * channels * k * k);
  c.bytes = element_bytes(o) * double(product({n, channels, h, w}) + filters * channels * k * k +
                                      n * filters * out_h * out_w);
  c.expected = [=, dtype = o.dtype](int64_t i) {
    const int64_t column = i % out_w, row = i / out_w % out_h,
                  filter = i / (out_w * out_h) % filters;
    const int64_t image = i / (out_w * out_h * filters);
    double sum = 0, magnitude = 0;
    for (int64_t ch = 0; ch < channels; ch++) {
      for (int64_t t = 0; t < k * k; t++) {
        const int64_t y = row + t / k - pad, z = column + t % k - pad;
        if (y < 0 || y >= h || z < 0 || z >= w) continue;
        const double v = x.at(((image * channels + ch) * h + y) * w + z) *
                         f.at((filter * channels + ch) * k * k + t);
        sum += v;
        magnitude += std::abs(v);
      }
    }
    return Expected{sum, tolerance(sum, magnitude, double(channels * k * k), dtype)};
  };
  return c;
}

// Heads that all see all positions: (batch, heads, positions, width of a head).
KernelCase attention(const Extents& e, const KernelOptions& o) {
  const int64_t t = e[2], d = e[3];
  const Given q = given(e, o, 1), k = given(e, o, 2), v = given(e, o, 3);
  KernelCase c;
  c.inputs = {q.tensor, k.tensor, v.tensor};
  c.function = one(
      [](Inputs in) { return Tensor::scaled_dot_product_attention(in[0], in[1], in[2]); });
  c.flops = 4.0 * double(product(e)) * double(t);
  c.bytes = 4.0 * element_bytes(o) * double(product(e));
  c.expected = [=, dtype = o.dtype](int64_t i) {
    const int64_t head = i / (t * d), row = i / d % t, column = i % d;
    double total = 0, sum = 0, magnitude = 0, largest = 0;
    for (int64_t j = 0; j < t; j++) {
      double score = 0;
      for (int64_t s = 0; s < d; s++)
        score += q.at((head * t + row) * d + s) * k.at((head * t + j) * d + s);
      const double weight = std::exp(score / std::sqrt(double(d)));
      const double x = v.at((head * t + j) * d + column);
      largest = std::max(largest, std::abs(score) / std::sqrt(double(d)));
      total += weight;
      sum += weight * x;
      magnitude += weight * std::abs(x);
    }
    // A score's own rounding is a relative error of its weight. Scores, scaled scores, their
    // distance from the largest (up to twice as much) and weights are rounded to the dtype.
    const double rounded = step_of(dtype) * (4 * largest + 2) * magnitude / total;
    return Expected{sum / total, rounded + tolerance(sum / total, 4 * magnitude / total,
                                                     double(t) + double(d), dtype)};
  };
  return c;
}

// One head in double precision: what the scores of its rows are reduced to.
class AttentionGradients {
 public:
  AttentionGradients(Given q, Given k, Given v, Given g, int64_t t, int64_t d)
      : q_(std::move(q)), k_(std::move(k)), v_(std::move(v)), g_(std::move(g)), t_(t), d_(d) {}

  // The result, then the gradients of q, k and v, element by element of all heads.
  Expected at(int64_t i, int64_t count, DType dtype) {
    const int64_t which = i / count, head = i % count / (t_ * d_), row = i / d_ % t_, c = i % d_;
    const std::vector<Row>& rows = of_head(head);
    double sum = 0, magnitude = 0;
    for (int64_t x = 0; x < t_; x++) {
      const int64_t r = which < 2 ? row : x, j = which < 2 ? x : row;
      const double p = std::exp(score(head, r, j)) / rows[size_t(r)].total;
      const double slope = p * (weighted(head, r, j) - rows[size_t(r)].mean) / root();
      const double y = which == 0   ? p * v_.at(place(head, x, c))
                       : which == 1 ? slope * k_.at(place(head, x, c))
                       : which == 2 ? slope * q_.at(place(head, x, c))
                                    : p * g_.at(place(head, x, c));
      sum += y, magnitude += std::abs(y) + (which == 1 || which == 2 ? p : 0);
    }
    const double n = double(t_) + double(d_);
    return {sum, step_of(dtype) * 8 * magnitude + tolerance(sum, 8 * magnitude, n, dtype)};
  }

 private:
  struct Row {
    double total = 0;  // of the exponentials
    double mean = 0;   // of the gradients of its probabilities, weighted by them
  };
  double root() const { return std::sqrt(double(d_)); }
  int64_t place(int64_t head, int64_t row, int64_t c) const { return (head * t_ + row) * d_ + c; }
  double dot(const Given& a, const Given& b, int64_t head, int64_t r, int64_t j) const {
    double y = 0;
    for (int64_t c = 0; c < d_; c++) y += a.at(place(head, r, c)) * b.at(place(head, j, c));
    return y;
  }
  double score(int64_t head, int64_t r, int64_t j) const {
    return dot(q_, k_, head, r, j) / root();
  }
  double weighted(int64_t head, int64_t r, int64_t j) const { return dot(g_, v_, head, r, j); }
  const std::vector<Row>& of_head(int64_t head) {
    std::vector<Row>& rows = heads_[head];
    if (!rows.empty()) return rows;
    rows.resize(size_t(t_));
    for (int64_t r = 0; r < t_; r++) {
      Row& row = rows[size_t(r)];
      for (int64_t j = 0; j < t_; j++) {
        const double e = std::exp(score(head, r, j));
        row.total += e, row.mean += e * weighted(head, r, j);
      }
      row.mean /= row.total;
    }
    return rows;
  }

  Given q_, k_, v_, g_;
  int64_t t_, d_;
  std::map<int64_t, std::vector<Row>> heads_;  // as far as they were asked for
};

// The result too, as a training step needs it.
KernelCase attention_backward(const Extents& e, const KernelOptions& o) {
  const Given q = given(e, o, 1), k = given(e, o, 2), v = given(e, o, 3), g = given(e, o, 4);
  KernelCase c;
  c.inputs = {q.tensor, k.tensor, v.tensor, g.tensor};
  c.function = [](Inputs in) {
    const Tensor y = Tensor::scaled_dot_product_attention(in[0], in[1], in[2]);
    std::vector<Tensor> out = y.gradient({in[0], in[1], in[2]}, in[3]);
    out.insert(out.begin(), y);
    return out;
  };
  c.flops = 12.0 * double(product(e)) * double(e[2]);
  c.bytes = 8.0 * element_bytes(o) * double(product(e));
  const auto right = std::make_shared<AttentionGradients>(q, k, v, g, e[2], e[3]);
  c.expected = [right, count = product(e), dtype = o.dtype](int64_t i) {
    return right->at(i, count, dtype);
  };
  return c;
}

// ---- memory

KernelCase elementwise(const Extents& e, const KernelOptions& o) {
  const Given x = given(e, o, 1);
  KernelCase c;
  c.inputs = {x.tensor};
  c.function = one([](Inputs in) { return in[0] * 2 + 1; });
  c.flops = 2.0 * double(e[0]);
  c.bytes = 2 * element_bytes(o) * double(e[0]);
  c.expected = [x, dtype = o.dtype](int64_t i) {
    const double y = 2 * x.at(i) + 1;
    return Expected{y, tolerance(y, 0, 0, dtype)};
  };
  return c;
}

KernelCase broadcast(const Extents& e, const KernelOptions& o) {
  const Given x = given(e, o, 1), row = given({e[1]}, o, 2);
  KernelCase c;
  c.inputs = {x.tensor, row.tensor};
  c.function = one([](Inputs in) { return in[0] + in[1]; });
  c.flops = double(product(e));
  c.bytes = element_bytes(o) * double(2 * product(e) + e[1]);
  c.expected = [x, row, columns = e[1], dtype = o.dtype](int64_t i) {
    const double y = x.at(i) + row.at(i % columns);
    return Expected{y, tolerance(y, 0, 0, dtype)};
  };
  return c;
}

KernelCase reduce(const Extents& e, const KernelOptions& o) {
  const Given x = given(e, o, 1);
  KernelCase c;
  c.inputs = {x.tensor};
  c.function = one([](Inputs in) { return in[0].sum(); });
  c.flops = double(e[0]);
  c.bytes = element_bytes(o) * double(e[0]);
  c.expected = [x, dtype = o.dtype](int64_t) {
    double sum = 0, magnitude = 0;
    for (const float v : *x.values) sum += double(v), magnitude += std::abs(double(v));
    return Expected{sum, tolerance(sum, magnitude, 1, dtype)};
  };
  return c;
}

KernelCase softmax(const Extents& e, const KernelOptions& o) {
  const Given x = given(e, o, 1);
  KernelCase c;
  c.inputs = {x.tensor};
  c.function = one([](Inputs in) { return in[0].softmax(); });
  c.flops = 5.0 * double(product(e));
  c.bytes = 2 * element_bytes(o) * double(product(e));
  c.expected = [x, n = e[1], dtype = o.dtype](int64_t i) {
    double total = 0;
    for (int64_t j = i / n * n; j < (i / n + 1) * n; j++) total += std::exp(x.at(j));
    const double y = std::exp(x.at(i)) / total;
    return Expected{y, tolerance(y, y, double(n), dtype)};
  };
  return c;
}

KernelCase layernorm(const Extents& e, const KernelOptions& o) {
  const int64_t n = e[1];
  const Given x = given(e, o, 1), w = given({n}, o, 2), b = given({n}, o, 3);
  KernelCase c;
  c.inputs = {x.tensor, w.tensor, b.tensor};
  c.function = one([n](Inputs in) { return in[0].layernorm({n}, in[1], in[2]); });
  c.flops = 8.0 * double(product(e));
  c.bytes = element_bytes(o) * double(2 * product(e) + 2 * n);
  c.expected = [=, dtype = o.dtype](int64_t i) {
    const int64_t row = i / n * n;
    double sum = 0, squares = 0;
    for (int64_t j = row; j < row + n; j++) sum += x.at(j);
    for (int64_t j = row; j < row + n; j++) squares += std::pow(x.at(j) - sum / double(n), 2);
    const double deviation = std::sqrt(squares / double(n) + 1e-5);
    const double scaled = (x.at(i) - sum / double(n)) / deviation * w.at(i - row);
    const double y = scaled + b.at(i - row);
    return Expected{y, tolerance(y, std::abs(scaled) + 1, 16, dtype)};
  };
  return c;
}

KernelCase rmsnorm(const Extents& e, const KernelOptions& o) {
  const int64_t n = e[1];
  const Given x = given(e, o, 1), w = given({n}, o, 2);
  KernelCase c;
  c.inputs = {x.tensor, w.tensor};
  c.function = one([n](Inputs in) { return in[0].rms_norm({n}, in[1]); });
  c.flops = 4.0 * double(product(e));
  c.bytes = element_bytes(o) * double(2 * product(e) + n);
  c.expected = [=, dtype = o.dtype](int64_t i) {
    const int64_t row = i / n * n;
    double squares = 0;
    for (int64_t j = row; j < row + n; j++) squares += std::pow(x.at(j), 2);
    // The smallest step of the dtype above 1 keeps a row of zeros finite.
    const double rms = std::sqrt(squares / double(n) + 2 * step_of(dtype));
    const double y = x.at(i) / rms * w.at(i - row);
    return Expected{y, tolerance(y, std::abs(y), 16, dtype)};
  };
  return c;
}

// Sums along one axis of a matrix.
KernelCase axis_sum(const Extents& e, const KernelOptions& o, int64_t axis) {
  const Given x = given(e, o, 1);
  KernelCase c;
  c.inputs = {x.tensor};
  c.function = one([axis](Inputs in) { return in[0].sum(Axes{axis}); });
  c.flops = double(product(e));
  c.bytes = element_bytes(o) * double(product(e) + e[size_t(1 - axis)]);
  c.expected = [x, axis, rows = e[0], columns = e[1], dtype = o.dtype](int64_t i) {
    double sum = 0, magnitude = 0;
    const int64_t count = axis == 0 ? rows : columns;
    for (int64_t j = 0; j < count; j++) {
      const double v = x.at(axis == 0 ? j * columns + i : i * columns + j);
      sum += v, magnitude += std::abs(v);
    }
    return Expected{sum, tolerance(sum, magnitude, double(count), dtype)};
  };
  return c;
}
KernelCase row_sum(const Extents& e, const KernelOptions& o) { return axis_sum(e, o, 1); }
KernelCase column_sum(const Extents& e, const KernelOptions& o) { return axis_sum(e, o, 0); }

// (a, b, c, d) stored as (a, c, d, b): heads or channels behind positions.
KernelCase permute(const Extents& e, const KernelOptions& o) {
  const Given x = given(e, o, 1);
  KernelCase c;
  c.inputs = {x.tensor};
  c.function = one([](Inputs in) { return in[0].permute({0, 2, 3, 1}).contiguous(); });
  c.bytes = 2 * element_bytes(o) * double(product(e));
  c.expected = [x, channels = e[1], pixels = e[2] * e[3]](int64_t i) {
    const int64_t image = i / (channels * pixels), pixel = i / channels % pixels;
    return Expected{x.at((image * channels + i % channels) * pixels + pixel), 0};
  };
  return c;
}

KernelCase transpose(const Extents& e, const KernelOptions& o) {
  const Given x = given(e, o, 1);
  KernelCase c;
  c.inputs = {x.tensor};
  c.function = one([](Inputs in) { return in[0].T().contiguous(); });
  c.bytes = 2 * element_bytes(o) * double(product(e));
  c.expected = [x, rows = e[0], columns = e[1]](int64_t i) {
    return Expected{x.at(i % rows * columns + i / rows), 0};
  };
  return c;
}

// Rows of a table by index, as an embedding takes them.
KernelCase gather(const Extents& e, const KernelOptions& o) {
  const int64_t rows = e[0], columns = e[1], count = e[2];
  const Given table = given({rows, columns}, o, 1);
  std::mt19937 random(2);
  std::uniform_int_distribution<int32_t> any(0, int32_t(rows - 1));
  const auto index = std::make_shared<std::vector<int32_t>>(size_t(count));
  for (int32_t& i : *index) i = any(random);
  KernelCase c;
  Tensor positions = Tensor::from(*index, {count}, {.device = o.device});
  c.inputs = {table.tensor, positions.realize()};
  c.function = one([](Inputs in) { return Tensor::embedding(in[0], in[1]); });
  c.bytes = 2 * element_bytes(o) * double(count * columns) + 4.0 * double(count);
  c.expected = [table, index, columns](int64_t i) {
    return Expected{table.at((*index)[size_t(i / columns)] * columns + i % columns), 0};
  };
  return c;
}

// ---- order: values, then where they were

KernelCase in_order(const Extents& e, const KernelOptions& o, int64_t taken, bool largest) {
  const Given x = given({e[0]}, o, 1);
  const auto order = std::make_shared<std::vector<int64_t>>(size_t(e[0]));
  std::iota(order->begin(), order->end(), 0);
  std::ranges::stable_sort(*order, [&](int64_t a, int64_t b) {
    return largest ? x.at(a) > x.at(b) : x.at(a) < x.at(b);
  });
  KernelCase c;
  c.inputs = {x.tensor};
  c.bytes = element_bytes(o) * double(e[0]) + (element_bytes(o) + 4) * double(taken);
  c.expected = [x, order, taken](int64_t i) {
    return Expected{i < taken ? x.at((*order)[size_t(i)]) : double((*order)[size_t(i - taken)]), 0};
  };
  return c;
}

KernelCase sort(const Extents& e, const KernelOptions& o) {
  KernelCase c = in_order(e, o, e[0], false);
  c.function = [](Inputs in) {
    const auto [sorted, places] = in[0].sort();
    return std::vector<Tensor>{sorted, places};
  };
  return c;
}

KernelCase topk(const Extents& e, const KernelOptions& o) {
  KernelCase c = in_order(e, o, e[1], true);
  c.function = [k = e[1]](Inputs in) {
    const auto [largest, places] = in[0].topk(k);
    return std::vector<Tensor>{largest, places};
  };
  return c;
}

// Rows added to a table by index, in place of a copy of it.
KernelCase scatter(const Extents& e, const KernelOptions& o) {
  const int64_t rows = e[0], columns = e[1], count = e[2];
  const Given table = given({rows, columns}, o, 1), source = given({count, columns}, o, 3);
  std::mt19937 random(2);
  std::uniform_int_distribution<int32_t> any(0, int32_t(rows - 1));
  std::vector<int32_t> index(static_cast<size_t>(count));
  for (int32_t& i : index) i = any(random);
  KernelCase c;
  Tensor positions = Tensor::from(index, {count}, {.device = o.device});
  c.inputs = {table.tensor, positions.realize(), source.tensor};
  c.function = one([](Inputs in) { return in[0].index_add(0, in[1], in[2]); });
  c.bytes = element_bytes(o) * double((2 * rows + 3 * count) * columns) + 4.0 * double(count);
  const auto of_row = std::make_shared<std::map<int64_t, std::vector<int64_t>>>();
  for (int64_t k = 0; k < count; k++) (*of_row)[index[size_t(k)]].push_back(k);
  c.expected = [table, source, of_row, columns, dtype = o.dtype](int64_t i) {
    double sum = table.at(i), magnitude = std::abs(sum), n = 1;
    if (const auto it = of_row->find(i / columns); it != of_row->end()) {
      for (const int64_t k : it->second) {
        const double term = source.at(k * columns + i % columns);
        sum += term;
        magnitude += std::abs(term);
        n++;
      }
    }
    return Expected{sum, tolerance(sum, magnitude, n, dtype)};
  };
  return c;
}

std::vector<KernelRow> arithmetic_rows() {
  return {
    {"matmul",
     "Matrix product",
     "N (NxNxN), MxNxK, or BxMxNxK for a batch",
     Unit::Gflops,
     {{256}, {512}, {1024}, {2048}, {509, 1021, 767}},
     of_matmul,
     matmul,
     true,
     true},
    {"gemv",
     "Matrix times vector",
     "N (NxN) or RxC",
     Unit::Gbps,
     {{4096}, {1000, 4099}},
     rows_and_columns,
     gemv,
     false,
     true},
    {"conv",
     "2-d convolution, padded to the images' size",
     "NxCxHxWxOxK: images NxCxHxW, O filters KxK",
     Unit::Gflops,
     {{128, 1, 28, 28, 32, 5}, {128, 32, 14, 14, 64, 3}, {8, 64, 56, 56, 64, 3}},
     exactly<6>,
     convolution},
    {"attention",
     "Scaled-dot-product attention",
     "BxHxTxD: batch, heads, positions, width",
     Unit::Gflops,
     {{16, 4, 64, 32}, {1, 8, 1024, 64}},
     exactly<4>,
     attention},
    {"attention_backward",
     "Scaled-dot-product attention and its gradients",
     "BxHxTxD: batch, heads, positions, width",
     Unit::Gflops,
     {{16, 4, 64, 32}, {1, 8, 1024, 64}},
     exactly<4>,
     attention_backward},
  };
}

std::vector<KernelRow> memory_rows() {
  return {
    {"elementwise", "x*2+1", "N", Unit::Gbps, {{1 << 20}, {64 << 20}}, exactly<1>, elementwise},
    {"broadcast",
     "A row added to every row",
     "N (NxN) or RxC",
     Unit::Gbps,
     {{4096}},
     rows_and_columns,
     broadcast},
    {"reduce", "Sum of everything", "N", Unit::Gbps, {{1 << 20}, {64 << 20}}, exactly<1>, reduce},
    {"softmax",
     "Softmax of rows",
     "N (NxN) or RxC",
     Unit::Gbps,
     {{4096}, {16384, 256}},
     rows_and_columns,
     softmax},
    {"layernorm",
     "Layer norm of rows, with weight and bias",
     "N (NxN) or RxC",
     Unit::Gbps,
     {{4096}, {16384, 256}},
     rows_and_columns,
     layernorm},
    {"rmsnorm",
     "RMS norm of rows, with weight",
     "N (NxN) or RxC",
     Unit::Gbps,
     {{4096}, {16384, 256}},
     rows_and_columns,
     rmsnorm},
    {"row_sum",
     "Sums of rows",
     "N (NxN) or RxC",
     Unit::Gbps,
     {{4096}, {16384, 256}},
     rows_and_columns,
     row_sum},
    {"column_sum",
     "Sums of columns",
     "N (NxN) or RxC",
     Unit::Gbps,
     {{4096}, {16384, 256}},
     rows_and_columns,
     column_sum},
    {"transpose",
     "A matrix stored transposed",
     "N (NxN) or RxC",
     Unit::Gbps,
     {{4096}},
     rows_and_columns,
     transpose},
    {"permute",
     "Four axes stored in another order: channels behind pixels",
     "NxCxHxW",
     Unit::Gbps,
     {{8, 64, 64, 64}},
     exactly<4>,
     permute},
    {"gather",
     "Rows of a table by index",
     "RxCxN: table RxC, N rows taken",
     Unit::Gbps,
     {{50257, 768, 4096}},
     exactly<3>,
     gather},
    {"scatter",
     "Rows added to a copy of a table by index",
     "RxCxN: table RxC, N rows added",
     Unit::Gbps,
     {{50257, 768, 4096}, {1000000, 1, 10000000}},
     exactly<3>,
     scatter},
  };
}

std::vector<KernelRow> order_rows() {
  return {
    {"sort",
     "A vector in order, and where its elements were",
     "N",
     Unit::Gbps,
     {{10'000}, {1'000'000}},
     exactly<1>,
     sort},
    {"topk",
     "The largest elements of a vector, and where they were",
     "NxK: K of N",
     Unit::Gbps,
     {{50257, 50}, {1'000'000, 50}},
     exactly<2>,
     topk},
  };
}

}  // namespace

std::span<const KernelRow> kernel_rows() {
  static const std::vector<KernelRow> rows = [] {
    std::vector<KernelRow> all = arithmetic_rows();
    for (const auto part : {memory_rows, order_rows})
      for (KernelRow& row : part()) all.push_back(std::move(row));
    return all;
  }();
  return rows;
}

}  // namespace tuff::bench
