// Spectra, windows of signals, what slides along time.
#include <cmath>

#include <tuff/fft.h>
#include <tuff/scan.h>
#include "base/check.h"
#include "onnx/attention.h"
#include "onnx/operators.h"

namespace tuff::onnx {
namespace {

// (..., 1) are real numbers, (..., 2) complex ones: as tuff has them, with the parts behind.
Tensor complex_of(const Tensor& x) {
  if (int64_t(x.size(-1)) == 2) return x;
  std::vector<int64_t> pads{0, 1};
  return x.pad(pads);
}

Outputs dft(const Node& node) {
  const Tensor x = node.tensor(0);
  int64_t axis = node.version() < 20 ? node.integer("axis", 1) : node.has(2) ? node.integer(2) : -2;
  axis = axis_of(axis, x.dim());
  std::optional<int64_t> n;
  if (node.has(1)) n = node.integer(1);
  const bool inverse = node.integer("inverse", 0) != 0, half = node.integer("onesided", 0) != 0;
  const bool is_real = int64_t(x.size(-1)) == 1;
  // Axes of fft's functions are those of the points, without the parts behind.
  if (half && inverse) return {fft::irfft(complex_of(x), n, axis).unsqueeze(-1)};
  if (half && is_real) return {fft::rfft(x.squeeze(-1), n, axis)};
  const Tensor all = complex_of(x);
  return {inverse ? fft::ifft(all, n, axis) : fft::fft(all, n, axis)};
}

Outputs stft(const Node& node) {
  Tensor x = node.tensor(0);
  const int64_t step = node.integer(1);
  const Tensor window = node.tensor_or_none(2);
  if (!node.has(3) && !window.defined())
    fail<InvalidArgument>("a window or the length of a frame is wanted");
  const int64_t length = node.has(3) ? node.integer(3) : int64_t(window.size(0));
  if (x.dim() == 2) x = x.unsqueeze(-1);
  const bool is_real = int64_t(x.size(-1)) == 1;
  Tensor frames = x.unfold(1, length, step).transpose(-1, -2);  // (batch, frames, length, parts)
  if (window.defined()) frames = frames * window.unsqueeze(-1);
  if (is_real && node.integer("onesided", 1)) return {fft::rfft(frames.squeeze(-1), {}, 2)};
  return {fft::fft(complex_of(frames), {}, 2)};
}

TensorOptions window_options(const Node& node) {
  return node.options(node.dtype("output_datatype").value_or(DType::F32));
}

// The sum of a[k] cos(2 pi k i / n), with signs in turn.
Tensor cosine_window(const Node& node, const std::vector<double>& a) {
  const int64_t count = node.integer(0);
  require_reckonable(double(count));
  const double n = node.integer("periodic", 1) ? double(count) : double(count - 1);
  std::vector<double> out;
  for (int64_t i = 0; i < count; i++) {
    double sum = 0;
    for (size_t k = 0; k < a.size(); k++)
      sum += (k % 2 ? -1 : 1) * a[k] * std::cos(2 * M_PI * double(k) * double(i) / n);
    out.push_back(sum);
  }
  const TensorOptions options = window_options(node);
  std::vector<float> narrow(out.begin(), out.end());
  if (options.dtype == DType::F64) return Tensor::from(out, {count}, options);
  return Tensor::from(narrow, {count}, options).cast(options.dtype);
}
Outputs hann(const Node& node) { return {cosine_window(node, {0.5, 0.5})}; }
Outputs hamming(const Node& node) {
  return {cosine_window(node, {25.0 / 46, 1 - 25.0 / 46})};
}
Outputs blackman(const Node& node) { return {cosine_window(node, {0.42, 0.5, 0.08})}; }

// docs/Operators.md, MelWeightMatrix: triangles that rise and fall between the bins of neighbours.
Outputs mel_weights(const Node& node) {
  const int64_t bands = node.integer(0), length = node.integer(1), rate = node.integer(2);
  const double low = node.number(3), high = node.number(4);
  if (bands < 0 || length < 0) fail<InvalidArgument>("{} bands of {} samples", bands, length);
  require_reckonable(double(bands) * (double(length) / 2 + 1));
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  std::vector<int64_t> bins;
  for (int64_t i = 0; i < bands + 2; i++) {
    const double at = mel(low) + double(i) * (mel(high) - mel(low)) / double(bands + 2);
    const double hertz = 700 * (std::pow(10, at / 2595) - 1);
    bins.push_back(whole(std::floor((double(length) + 1) * hertz / double(rate))));
  }
  const int64_t points = length / 2 + 1;
  std::vector<float> out(size_t(points * bands));
  const auto put = [&](int64_t point, int64_t band, double value) {
    if (point >= 0 && point < points) out[size_t(point * bands + band)] = float(value);
  };
  for (int64_t b = 0; b < bands; b++) {
    const int64_t first = bins[size_t(b)], top = bins[size_t(b) + 1], last = bins[size_t(b) + 2];
    if (first == top) put(top, b, 1);
    for (int64_t p = std::max<int64_t>(first, 0); first != top && p < points && p <= top; p++)
      put(p, b, (double(p) - double(first)) / (double(top) - double(first)));
    for (int64_t p = std::max<int64_t>(top, 0); p < points && p < last; p++)
      put(p, b, (double(last) - double(p)) / (double(last) - double(top)));
  }
  return {Tensor::from(out, {points, bands}, {.device = node.device()})
              .cast(window_options(node).dtype)};
}

// ---- what slides along time and keeps a state

// Each channel by a kernel of its own, over what came before.
Outputs causal_conv(const Node& node) {
  const Tensor x = node.tensor(0), weight = node.tensor(1);
  const int64_t before = int64_t(weight.size(2)) - 1;
  const Tensor past = node.has(3) ? node.tensor(3)
                                  : Tensor::zeros({x.size(0), x.size(1), before},
                                                  node.options(x.dtype()));
  const Tensor all = before ? Tensor::cat({past, x}, 2) : x;
  Tensor y = all.conv1d(weight, node.tensor_or_none(2), 1, 0, 1, int64_t(x.size(1)));
  const std::string activation = node.text("activation", "none");
  if (activation == "silu" || activation == "swish") y = y.silu();
  return {y, all.narrow(2, all.size(2) - before, before)};
}

// A state (n, heads, dk, dv) that decays and takes an outer product at each step.
struct LinearRule {
  bool decays, corrects;
  Tensor next(Tensor state, const Tensor& k, const Tensor& v, const Tensor& decay,
              const Tensor& beta) const {
    if (decays) state = state * decay.exp().unsqueeze(-1);
    Tensor value = v;
    if (corrects) value = (v - k.unsqueeze(-2).matmul(state).squeeze(-2)) * beta;
    return state + k.unsqueeze(-1) * value.unsqueeze(-2);
  }
};

Outputs linear_attention(const Node& node) {
  const int64_t q_heads = node.positive("q_num_heads"), heads = node.positive("kv_num_heads");
  const std::string word = node.text("update_rule", "gated_delta");
  const LinearRule rule{word.starts_with("gated"), word.ends_with("delta")};
  const DType dtype = node.value(0).dtype(), wide = accumulator(dtype);
  // (n, t, h * d) as (t, n, h, d)
  const auto over_time = [&](size_t i, int64_t h) {
    const Tensor x = node.tensor(i).cast(wide);
    return x.reshape({x.size(0), x.size(1), h, x.size(2) / h}).transpose(0, 1);
  };
  const Tensor q = over_time(0, q_heads), k = over_time(1, heads), v = over_time(2, heads);
  const int64_t times = q_heads / heads;
  double scale = node.number("scale", 0);
  if (scale == 0) scale = 1 / std::sqrt(double(int64_t(q.size(-1))));
  const Sizes sizes{q.size(1), heads, k.size(-1), v.size(-1)};
  const Tensor start = node.has(3) ? node.tensor(3).cast(wide)
                                   : Tensor::zeros(sizes, node.options(wide));
  Tensors rows{q, k, v};
  if (rule.decays) rows.push_back(over_time(4, heads));
  if (rule.corrects) {
    const Tensor beta = node.tensor(5).cast(wide);
    rows.push_back(beta.transpose(0, 1).unsqueeze(-1));
  }
  const Scanned out = scan(
      [&](const Tensors& states, const Tensors& r) {
        const Tensor next = rule.next(states[0], r[1], r[2], rule.decays ? r[3] : Tensor(),
                                      rule.corrects ? r.back() : Tensor());
        const Tensor seen = repeat_heads(next, times);
        return Scanned{{next}, {r[0].unsqueeze(-2).matmul(seen).squeeze(-2) * scale}};
      },
      {start}, rows);
  return {out.outputs[0].transpose(0, 1).flatten(2).cast(dtype),
          out.states[0].cast(node.has(3) ? node.value(3).dtype() : dtype)};
}

constexpr Operator kRows[] = {
    {"", "BlackmanWindow", 17, kNewest, blackman},
    {"", "CausalConvWithState", 27, kNewest, causal_conv},
    {"", "DFT", 17, kNewest, dft},
    {"", "HammingWindow", 17, kNewest, hamming},
    {"", "HannWindow", 17, kNewest, hann},
    {"", "LinearAttention", 27, kNewest, linear_attention},
    {"", "MelWeightMatrix", 17, kNewest, mel_weights},
    {"", "STFT", 17, kNewest, stft},
};

}  // namespace

std::span<const Operator> signal_operators() { return kRows; }

}  // namespace tuff::onnx
