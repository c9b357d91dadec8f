// The logarithm of the gamma function and its derivative: polynomials up to 3 (which keep the
// digits beside their zeros), recurrence up to 8, Stirling's series beyond (Abramowitz and Stegun,
// "Handbook of Mathematical Functions", 6.1.41 and 6.3.18), reflection below 0 (6.1.17, 6.3.7).
#include <cmath>
#include <numbers>

#include "tensor/impl.h"
#include "tensor/polynomials.h"

namespace tuff {

using detail::at;
using detail::computed_wide;
using detail::horner;
using detail::is_wide;
using detail::log_of;

namespace {

constexpr double kPi = std::numbers::pi;
constexpr double kSeriesFrom = 8;

// B(2n) / (2n), and B(2n) / (2n (2n - 1)).
constexpr double kDigammaSeries[] = {1.0 / 12,           -1.0 / 120, 1.0 / 252,
                                     -1.0 / 240,         1.0 / 132,  -691.0 / 32760,
                                     1.0 / 12,           -3617.0 / 8160, 43867.0 / 14364};
constexpr double kLgammaSeries[] = {1.0 / 12,          -1.0 / 360, 1.0 / 1260,
                                    -1.0 / 1680,       1.0 / 1188, -691.0 / 360360,
                                    1.0 / 156,         -3617.0 / 122400, 43867.0 / 244188};
std::span<const double> terms_for(const Tensor& x, std::span<const double> all) {
  return all.first(is_wide(x) ? all.size() : 4);
}

// sin(pi x) and cos(pi x) up to their sign, of the distance to the nearest whole number, which is
// exact.
struct Turn {
  Tensor sine, cosine;
};
Turn half_turns(const Tensor& x) {
  const Tensor angle = (x - x.round()) * kPi;
  return {angle.sin(), angle.cos()};
}
// Of x < 0: a whole number, which all large ones are?
Tensor is_pole(const Tensor& x) { return (x < 0) & (x == x.trunc()); }

Tensor lgamma_by_series(const Tensor& x) {
  const Tensor r = x.reciprocal();
  const Tensor rest = r * horner(r * r, terms_for(x, kLgammaSeries));
  const double constant = 0.5 * std::log(2 * kPi) - 0.5;
  return (x - 0.5) * (log_of(x) - 1) + (rest + constant);
}

// From 1.5 on: x - k in 1.5..3 and the product of the k factors that this leaves out.
Tensor lgamma_by_recurrence(const Tensor& x) {
  Tensor distance = x - 2, product = at(x >= 3, x - 1);
  for (int i = 1; i <= 5; i++) {
    const Tensor beyond = x >= i + 2;
    distance = Tensor::where(beyond, x - (i + 2), distance);
    if (i > 1) product = Tensor::where(beyond, product * (x - i), product);
  }
  distance = distance.clamp(-0.5, 1);
  const Tensor p = distance * horner(distance, detail::kLgamma2F32, detail::kLgamma2F64);
  return p + log_of(product);
}

Tensor lgamma_of_positive(const Tensor& x) {
  const Tensor tiny = x < 0.5, far = x >= kSeriesFrom;
  const Tensor z = Tensor::where(tiny, x, x - 1).clamp(-0.5, 0.5);
  const Tensor p = z * horner(z, detail::kLgamma1F32, detail::kLgamma1F64);
  const Tensor first = p - log_of(at(tiny, x));
  const Tensor middle = lgamma_by_recurrence(Tensor::where(far, 2.0, x));
  const Tensor near = Tensor::where(x < 1.5, first, middle);
  return Tensor::where(far, lgamma_by_series(Tensor::where(far, x, kSeriesFrom)), near);
}

Tensor lgamma_of(const Tensor& x) {
  const Tensor below = x < 0, pole = is_pole(x), regular = below & ~pole;
  const Tensor inside = Tensor::where(pole, -1.0, x);
  const Tensor value = lgamma_of_positive(Tensor::where(below, 1 - inside, inside));
  const Turn turn = half_turns(Tensor::where(regular, x, -0.5));
  const Tensor reflected = log_of(kPi / detail::magnitude(turn.sine)) - value;
  return Tensor::where(pole, INFINITY, Tensor::where(below, reflected, value));
}

Tensor digamma_by_series(const Tensor& x) {
  const Tensor r = x.reciprocal(), s = r * r;
  return log_of(x) - (r * 0.5 + s * horner(s, terms_for(x, kDigammaSeries)));
}

// Up to 8: from x - k or x + 1 in 1..2, around the root, 1.46163..., in two words.
Tensor digamma_by_recurrence(const Tensor& x) {
  Tensor base = Tensor::where(x < 1, x + 1, x);
  Tensor steps = Tensor::where(x < 1, -(at(x < 1, x).reciprocal()), 0.0);
  for (int i = 1; i <= 6; i++) {
    const Tensor beyond = x > i + 1;
    base = Tensor::where(beyond, x - i, base);
    steps = Tensor::where(beyond, steps + at(beyond, x - i).reciprocal(), steps);
  }
  const double root = is_wide(x) ? 1.4616321449683622 : 1.4616321325302124;
  const double rest = is_wide(x) ? 9.5499954299656977e-17 : 1.2438149938918910e-8;
  const Tensor distance = (base - root) - rest;
  return distance * horner(base - 1.5, detail::kDigammaF32, detail::kDigammaF64) + steps;
}

Tensor digamma_of(const Tensor& x) {
  const Tensor below = x < 0, pole = is_pole(x), regular = below & ~pole;
  const Tensor v = Tensor::where(below, 1 - x, x), far = v >= kSeriesFrom;
  const Tensor value = Tensor::where(far, digamma_by_series(Tensor::where(far, v, kSeriesFrom)),
                                     digamma_by_recurrence(Tensor::where(far, 1.0, v)));
  const Turn turn = half_turns(Tensor::where(regular, x, -0.5));
  const Tensor reflected = value - turn.cosine * kPi / turn.sine;
  return Tensor::where(pole, NAN, Tensor::where(below, reflected, value));
}

}  // namespace

Tensor TensorMath::lgamma() const {
  return computed_wide(static_cast<const Tensor&>(*this), lgamma_of);
}
Tensor TensorMath::digamma() const {
  return computed_wide(static_cast<const Tensor&>(*this), digamma_of);
}

}  // namespace tuff
