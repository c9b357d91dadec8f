#include "check/random_values.h"

#include <cmath>
#include <limits>

namespace tuff::check {
namespace {

enum class Kind : uint8_t { Dyadic, Rounded, Wide };

Scalar limit(DType t, std::mt19937_64& random) {
  if (is_float(t)) {
    const double values[] = {0.0,      -0.0,      1.0, -1.0,
                             INFINITY, -INFINITY, NAN, std::numeric_limits<double>::quiet_NaN()};
    return Scalar::of_double(t, values[random() % std::size(values)]);
  }
  const Scalar low = Scalar::of_double(t, -INFINITY), high = Scalar::of_double(t, INFINITY);
  return random() % 2 ? low : high;
}

Scalar plain(DType t, Kind kind, std::mt19937_64& random) {
  if (t == DType::Bool) return Scalar::of_int(t, int64_t(random() % 2));
  if (!is_float(t)) {
    if (kind == Kind::Wide) return Scalar::of_int(t, int64_t(random()));
    const int64_t v = int64_t(random() % 19) - (is_signed(t) ? 9 : 0);
    return Scalar::of_int(t, v);
  }
  if (kind == Kind::Dyadic) return Scalar::of_double(t, (double(random() % 65) - 32) / 8);
  const double unit = double(random() % (1u << 24)) / (1u << 24);
  return Scalar::of_double(t, kind == Kind::Wide ? (unit - 0.5) * 200 : unit * 4 - 2);
}

}  // namespace

std::vector<std::byte> random_values(DType t, int64_t count, bool special,
                                     std::mt19937_64& random) {
  const uint64_t choice = random() % 8;
  const Kind kind = choice < 5 ? Kind::Dyadic : choice < 7 ? Kind::Rounded : Kind::Wide;
  std::vector<std::byte> out(size_t(count) * size_bytes(t));
  for (size_t i = 0; i < size_t(count); i++) {
    const bool edge = special && random() % 6 == 0;
    store_scalar(edge ? limit(t, random) : plain(t, kind, random), out.data() + i * size_bytes(t));
  }
  return out;
}

}  // namespace tuff::check
