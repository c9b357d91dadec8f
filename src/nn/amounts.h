// What options of optimizers have to be. Used by the constructors in this room.
#pragma once

#include <cmath>

#include "base/check.h"

namespace tuff::optim {

// Refused are NaN, infinities and what is below 0. A rate is stored as F32.
inline void require_amount(const char* optimizer, const char* option, double v) {
  if (!(v >= 0) || !std::isfinite(float(v)))
    fail<InvalidArgument>("{}: {} is {}: it has to be finite and 0 or more", optimizer, option, v);
}
inline void require_below_1(const char* optimizer, const char* option, double v) {
  if (!(v >= 0 && v < 1))
    fail<InvalidArgument>("{}: {} is {}: it has to be 0 or more, and less than 1", optimizer,
                          option, v);
}

}  // namespace tuff::optim
