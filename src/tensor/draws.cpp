// Distributions made of uniform numbers.
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "tensor/impl.h"

namespace tuff {

using detail::self;

namespace {

constexpr int64_t kCandidates = 16;   // of a rejection method that rejects one in four at most
constexpr double kSumsUpTo = 12;      // expected events that sums are compared with
constexpr int kSumsOfF32 = 40, kSumsOfF64 = 64;  // beyond, no term is as large as a uniform's step

void require_float(const char* what, DType t) {
  if (!is_float(t)) fail<InvalidArgument>("{}: {} is no floating-point type", what, name(t));
}

Tensor with_options(const Tensor& t, const TensorOptions& o) {
  Tensor out = t.cast(o.dtype);
  if (o.requires_grad) out.realize();
  return detail::finish(out, o);
}

TensorOptions computed_as(const TensorOptions& o) {
  return {detail::compute_dtype(o.dtype), o.device};
}

Tensor uniform_as(const Tensor& x) { return Tensor::rand(x.sizes(), {x.dtype(), x.device()}); }

// The smallest count whose probability, with all below it, is above a uniform number. A term that
// is smaller than the number's own step is beyond what it can reach.
Tensor poisson_by_sums(const Tensor& rate) {
  const bool wide = rate.dtype() == DType::F64;
  const double step = wide ? 0x1p-54 : 0x1p-26;
  const Tensor u = uniform_as(rate);
  Tensor term = (-rate).exp(), sum = term, count = rate.full_like(0);
  for (int k = 1; k <= (wide ? kSumsOfF64 : kSumsOfF32); k++) {
    count = count + ((u >= sum) & (term > step)).cast(rate.dtype());
    term = term * rate / double(k);
    sum = sum + term;
  }
  return count;
}

// (1 + t) log(1 + t) - t, near 0 by its series.
Tensor deviance(const Tensor& t) {
  std::vector<double> series;
  for (int n = 2; n <= 9; n++) series.push_back((n % 2 ? -1.0 : 1.0) / (n * (n - 1)));
  Tensor near = t * series.back();
  for (size_t i = series.size() - 1; i-- > 0;) near = i ? (near + series[i]) * t : near + series[i];
  const Tensor far = (1 + t) * (1 + t).clamp(1e-30).log() - t;
  return Tensor::where(detail::magnitude(t) < 0.1, near * t * t, far);
}

// The logarithm of a count's probability, by Stirling's series and without the difference of large
// numbers (Loader, "Fast and accurate computation of binomial probabilities", 2000).
Tensor log_poisson(const Tensor& count, const Tensor& rate) {
  const Tensor k = count.clamp(1), over = k.reciprocal(), squared = over * over;
  const Tensor stirling = over * (1.0 / 12 - squared * (1.0 / 360 - squared * (1.0 / 1260)));
  const Tensor some = -stirling - rate * deviance((k - rate) / rate) -
                      (k * (2 * std::numbers::pi)).log() * 0.5;
  return Tensor::where(count < 1, -rate, some);
}

// Hormann's PTRS: each candidate, or -1 where it is rejected.
Tensor poisson_candidates(const Tensor& rate) {
  const Tensor b = rate.sqrt() * 2.53 + 0.931, a = b * 0.02483 - 0.059;
  const Tensor inverse_alpha = 1.1328 / (b - 3.4) + 1.1239, limit = 0.9277 - 3.6224 / (b - 2);
  const Tensor u = uniform_as(rate) - 0.5, v = uniform_as(rate);
  const Tensor edge = (0.5 - detail::magnitude(u)).clamp(0x1p-30);
  const Tensor k = ((2 * a / edge + b) * u + rate + 0.43).floor();
  const Tensor height = v * inverse_alpha / (a / (edge * edge) + b);
  const Tensor squeezed = (edge >= 0.07) & (v <= limit);
  const Tensor below = height.log() <= log_poisson(k, rate);
  const Tensor outside = (k < 0) | ((edge < 0.013) & (v > edge));
  return Tensor::where(outside.logical_not() & (squeezed | below), k, -1.0);
}

Tensor poisson_by_rejection(const Tensor& rate) {
  Sizes each = rate.sizes();
  each.insert(each.begin(), kCandidates);
  const Tensor candidates = poisson_candidates(rate.unsqueeze(0).expand(each)).contiguous();
  Tensor out = rate.floor();  // the most likely one, of some 1e-10 that have no candidate
  for (int64_t i = kCandidates - 1; i >= 0; i--) {
    const Tensor one = candidates.select(0, i);
    out = Tensor::where(one >= 0, one, out);
  }
  return out;
}

}  // namespace

Tensor TensorRandom::bernoulli() const {
  const Tensor& p = self(this);
  require_float("bernoulli", p.dtype());
  const Tensor wide = p.detach().cast(detail::compute_dtype(p.dtype()));
  return (uniform_as(wide) < wide).cast(p.dtype());
}

Tensor TensorRandom::bernoulli(double p) const {
  const Tensor& x = self(this);
  if (!(p >= 0 && p <= 1)) fail<InvalidArgument>("bernoulli: probability {} is not in 0..1", p);
  return (Tensor::rand(x.sizes(), {DType::F32, x.device()}) < p).cast(x.dtype());
}

Tensor TensorRandom::poisson() const {
  const Tensor& x = self(this);
  require_float("poisson", x.dtype());
  const Tensor given = x.detach().cast(detail::compute_dtype(x.dtype()));
  const Tensor few = poisson_by_sums(given.clamp(0, kSumsUpTo)),
               many = poisson_by_rejection(given.clamp(kSumsUpTo));
  const Tensor count = Tensor::where(given < kSumsUpTo, few, many);
  return Tensor::where(given >= 0, count, std::nan("")).cast(x.dtype());
}

Tensor TensorRandom::exponential(const Sizes& sizes, double rate, const TensorOptions& o) {
  require_float("exponential", o.dtype);
  if (!(rate > 0)) fail<InvalidArgument>("exponential: rate {} is not above 0", rate);
  const Tensor u = Tensor::rand(sizes, computed_as(o));
  return with_options((1.0 - u).log() / -rate, o);
}

Tensor TensorRandom::trunc_normal(const Sizes& sizes, double mean, double std, double low,
                                  double high, const TensorOptions& o) {
  require_float("trunc_normal", o.dtype);
  if (!(std > 0)) fail<InvalidArgument>("trunc_normal: standard deviation {} is not above 0", std);
  if (!(low < high))
    fail<InvalidArgument>("trunc_normal: lower bound {} is not below upper bound {}", low, high);
  // erf at both ends; between them the uniform number's is inverted.
  const double first = std::erf((low - mean) / std * std::numbers::sqrt2 / 2),
               last = std::erf((high - mean) / std * std::numbers::sqrt2 / 2);
  const Tensor at = Tensor::rand(sizes, computed_as(o)) * (last - first) + first;
  const Tensor x = at.clamp(-1, 1).erfinv() * (std * std::numbers::sqrt2) + mean;
  return with_options(x.clamp(low, high), o);
}

Tensor TensorRandom::scaled_uniform(const Sizes& sizes, const TensorOptions& o) {
  require_float("scaled_uniform", o.dtype);
  detail::require_numbers("scaled_uniform", sizes);
  const auto count = double(std::max<int64_t>(1, ir::element_count(detail::shape_of(sizes))));
  return with_options((Tensor::rand(sizes, computed_as(o)) * 2 - 1) / std::sqrt(count), o);
}

}  // namespace tuff
