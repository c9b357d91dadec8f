#include "language/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tuff::language {
namespace {

// Where the frequencies of YaRN begin or end to be interpolated: the element that turns so many
// times within the original context (Peng et al., 2023, section 3.2).
double turning(const Config& c, double turns) {
  const double ratio = c.scaling.original_context / (turns * 2 * std::numbers::pi);
  return double(c.rotated) * std::log(ratio) / (2 * std::log(c.rope_base));
}

std::vector<double> frequencies(const Config& c, double base, const std::vector<float>& factors,
                                bool scaled) {
  std::vector<double> out;
  const RopeScaling& s = c.scaling;
  const double last = double(c.rotated) - 1;
  const double low = std::max(std::floor(turning(c, s.beta_fast)), 0.0),
               high = std::min(std::ceil(turning(c, s.beta_slow)), last);
  for (int64_t i = 0; i < c.rotated / 2; i++) {
    double f = std::pow(base, -2.0 * double(i) / double(c.rotated));
    if (!factors.empty()) f /= double(factors[size_t(i)]);
    if (scaled && s.kind == RopeScaling::Kind::Linear) f /= s.factor;
    if (scaled && s.kind == RopeScaling::Kind::Yarn) {
      const double ramp = std::clamp((double(i) - low) / std::max(high - low, 0.001), 0.0, 1.0);
      f = f / s.factor * ramp + f * (1 - ramp);
    }
    out.push_back(f);
  }
  return out;
}

struct Positions {
  int64_t first, count;
};

std::pair<Tensor, Tensor> table(const std::vector<double>& frequencies, Positions positions,
                                double scale, const std::string& device) {
  std::vector<float> cosines, sines;
  for (int64_t p = positions.first; p < positions.first + positions.count; p++) {
    for (const double f : frequencies) {
      cosines.push_back(float(std::cos(double(p) * f) * scale));
      sines.push_back(float(std::sin(double(p) * f) * scale));
    }
  }
  const Sizes sizes{positions.count, int64_t(frequencies.size())};
  return {Tensor::from(cosines, sizes, {.device = device}),
          Tensor::from(sines, sizes, {.device = device})};
}

// `scale`: of layers without a base of their own.
RopeTables tables(const Config& c, Positions positions, const std::vector<float>& factors,
                  double scale, const std::string& device) {
  RopeTables t;
  if (c.architecture.pairs == RopePairs::None) return t;
  std::tie(t.cosines, t.sines) =
      table(frequencies(c, c.rope_base, factors, true), positions, scale, device);
  if (const double base = c.window_rope_base; base > 0)
    std::tie(t.window_cosines, t.window_sines) =
        table(frequencies(c, base, {}, false), positions, 1, device);
  return t;
}

}  // namespace

RopeTables rope_tables(const Config& c, int64_t positions, const std::vector<float>& factors,
                       const std::string& device) {
  const bool yarn = c.scaling.kind == RopeScaling::Kind::Yarn;
  const double scale =
      c.scaling.attention_factor * (yarn ? 1 + 0.1 * std::log(c.scaling.factor) : 1);
  return tables(c, {0, positions}, factors, scale, device);
}

RopeTables rope_turn_back(const Config& c, int64_t positions, const std::vector<float>& factors,
                          const std::string& device) {
  return tables(c, {-positions, 1}, factors, 1, device);
}

Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines, RopePairs pairs) {
  const int64_t half = cosines.size(-1), size = x.size(-1), rotated = 2 * half;
  if (rotated == 0) return x;
  const bool neighbours = pairs == RopePairs::Neighbours;
  const Size rows = x.size(0), heads = x.size(1);
  // Each element beside the other one of its pair, which reads as one expression: parts that are
  // joined would be a kernel of their own.
  const int64_t axis = neighbours ? 3 : 2;
  const int64_t outer = neighbours ? half : 2, inner = neighbours ? 2 : half;
  const Tensor own = x.narrow(-1, 0, rotated).reshape({rows, heads, outer, inner});
  const Tensor sign = Tensor::arange(-1, 2, 2, {DType::F32, x.device()})
                          .reshape({neighbours ? 1 : 2, neighbours ? 2 : 1});
  const Tensor c = cosines.unsqueeze(1).unsqueeze(axis), s = sines.unsqueeze(1).unsqueeze(axis);
  const Tensor out = (own * c + own.flip({axis}) * (s * sign)).reshape({rows, heads, rotated});
  return rotated == size ? out : Tensor::cat({out, x.narrow(-1, rotated, size - rotated)}, -1);
}

}  // namespace tuff::language
