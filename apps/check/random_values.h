// Contents for buffers of random graphs: small numbers whose sums and products are exact, so that
// most results can be demanded to the bit; some of them at the edges of their dtype.
// Called by the generator alone. Must never know graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include <tuff/dtype.h>

namespace tuff::check {

// `special`: infinities, NaNs, zeros of both signs and a dtype's limits stand among them.
std::vector<std::byte> random_values(DType t, int64_t count, bool special, std::mt19937_64& random);

}  // namespace tuff::check
