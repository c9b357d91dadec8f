// Integer arithmetic that rounds: the one definition of each.
#pragma once

#include <concepts>
#include <type_traits>

namespace tuff {

// The least multiple of `to` that is not below n. The result has n's type; n + to - 1 must fit it.
template <std::unsigned_integral T>
constexpr T align_up(T n, std::type_identity_t<T> to) {
  return (n + to - 1) / to * to;
}

// a / b rounded up; a >= 0, b > 0.
template <std::integral T>
constexpr T ceil_div(T a, std::type_identity_t<T> b) {
  return (a + b - 1) / b;
}

// a / b rounded toward -inf, and what is left, which has b's sign.
template <std::signed_integral T>
constexpr T floor_div(T a, std::type_identity_t<T> b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
template <std::signed_integral T>
constexpr T floor_mod(T a, std::type_identity_t<T> b) {
  return a - floor_div(a, b) * b;
}

}  // namespace tuff
