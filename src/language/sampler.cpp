#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include <tuff/language.h>

#include "base/check.h"
#include "base/split_mix.h"

namespace tuff::language {
namespace {

constexpr uint64_t kNext = 0x9e3779b97f4a7c15;  // from one state of SplitMix64 to the next

template <class T>
void require(bool holds, const char* option, T value, const char* wanted) {
  if (!holds) fail<InvalidArgument>("{} is {}: {} was wanted", option, value, wanted);
}

}  // namespace

Sampler::Sampler(const Sampling& options) : options_(options) {
  const Sampling& o = options_;
  require(o.temperature >= 0 && std::isfinite(o.temperature), "temperature", o.temperature,
          "a number from 0 on");
  require(o.top_k >= 0, "top_k", o.top_k, "a number from 0 on");
  require(o.top_p > 0 && o.top_p <= 1, "top_p", o.top_p, "a number above 0, at most 1");
  require(o.min_p >= 0 && o.min_p <= 1, "min_p", o.min_p, "a number from 0 to 1");
  require(o.typical_p > 0 && o.typical_p <= 1, "typical_p", o.typical_p,
          "a number above 0, at most 1");
  require(o.repeat_penalty > 0, "repeat_penalty", o.repeat_penalty, "a number above 0");
  require(o.penalty_tokens >= -1, "penalty_tokens", o.penalty_tokens, "a number from -1 on");
  require(std::isfinite(o.presence_penalty), "presence_penalty", o.presence_penalty, "a number");
  require(std::isfinite(o.frequency_penalty), "frequency_penalty", o.frequency_penalty, "a number");
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const auto& [token, bias] : o.bias)
    require(bias < kInfinity, "bias", bias, "a number, or -infinity");
}

void Sampler::penalize(std::span<const int32_t> seen) {
  const Sampling& o = options_;
  if (o.repeat_penalty == 1 && o.presence_penalty == 0 && o.frequency_penalty == 0) return;
  if (o.penalty_tokens >= 0 && seen.size() > size_t(o.penalty_tokens))
    seen = seen.last(size_t(o.penalty_tokens));
  std::map<int32_t, int64_t> times;
  for (const int32_t t : seen) times[t]++;
  for (const auto& [token, n] : times) {
    if (size_t(token) >= candidates_.size()) continue;
    double& l = candidates_[size_t(token)].logit;
    l = l > 0 ? l / o.repeat_penalty : l * o.repeat_penalty;
    l -= o.presence_penalty + o.frequency_penalty * double(n);
  }
}

bool Sampler::before(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

void Sampler::keep_typical() {
  const double top = candidates_[0].logit;
  double sum = 0, weighted = 0;
  for (const Candidate& c : candidates_) {
    const double weight = std::exp(c.logit - top);
    if (weight == 0) continue;  // its logit may be -infinity
    sum += weight, weighted += weight * (c.logit - top);
  }
  // How much a token surprises beside the mean: the sum's logarithm is in both.
  const auto unusual = [&](const Candidate& c) {
    return std::abs(weighted / sum - (c.logit - top));
  };
  std::ranges::stable_sort(candidates_, {}, unusual);
  double part = 0;
  size_t kept = 0;
  while (kept < candidates_.size() && part < options_.typical_p * sum)
    part += std::exp(candidates_[kept++].logit - top);
  candidates_.resize(std::max<size_t>(kept, 1));
  std::ranges::sort(candidates_, before);
}

// Leaves the likely ones, the most likely one first.
void Sampler::cut() {
  if (options_.top_k > 0 && size_t(options_.top_k) < candidates_.size()) {
    std::ranges::partial_sort(candidates_, candidates_.begin() + options_.top_k, before);
    candidates_.resize(size_t(options_.top_k));
  } else {
    std::ranges::sort(candidates_, before);
  }
  const double top = candidates_[0].logit;
  const double least = top + std::log(options_.min_p);  // -infinity where all are left
  const auto unlikely = [&](const Candidate& c) { return c.logit < least; };
  candidates_.erase(std::ranges::find_if(candidates_, unlikely), candidates_.end());
  if (options_.typical_p < 1) keep_typical();
  if (options_.top_p >= 1) return;
  double sum = 0, part = 0;
  for (const Candidate& c : candidates_) sum += std::exp(c.logit - top);
  size_t kept = 0;
  while (kept < candidates_.size() && part < options_.top_p * sum)
    part += std::exp(candidates_[kept++].logit - top);
  candidates_.resize(std::max<size_t>(kept, 1));
}

int32_t Sampler::draw(std::span<const float> logits, std::span<const int32_t> seen) {
  candidates_.clear();
  for (const float l : logits) {
    if (!(l < std::numeric_limits<float>::infinity()))
      fail<InvalidArgument>("the logit of token {} is {}", candidates_.size(), l);
    candidates_.push_back({int32_t(candidates_.size()), double(l)});
  }
  if (candidates_.empty()) fail<InvalidArgument>("there are no logits to draw from");
  penalize(seen);
  for (const auto& [token, bias] : options_.bias) {
    if (token < 0 || size_t(token) >= candidates_.size())
      fail<InvalidArgument>("bias of token {}: there are {}", token, candidates_.size());
    candidates_[size_t(token)].logit += bias;
  }
  SplitMix64 random(options_.seed + drawn_++ * kNext);
  const Candidate best = *std::ranges::max_element(candidates_, {}, &Candidate::logit);
  if (!std::isfinite(best.logit)) fail<InvalidArgument>("no token has a logit above -infinity");
  if (options_.temperature == 0) return best.token;
  // Beside the best one, so that no temperature makes an infinity of it.
  for (Candidate& c : candidates_) c.logit = (c.logit - best.logit) / options_.temperature;
  cut();
  const double top = candidates_[0].logit;
  double sum = 0;
  for (const Candidate& c : candidates_) sum += std::exp(c.logit - top);
  double left = double(random.next() >> 11) * 0x1p-53 * sum;
  for (const Candidate& c : candidates_) {
    left -= std::exp(c.logit - top);
    if (left < 0) return c.token;
  }
  return candidates_.back().token;
}

}  // namespace tuff::language
