// Rotary position embedding (Su et al., 2021): tables of cosines and sines, and their use. Called
// by the decoder. Knows no layers.
#pragma once

#include "language/config.h"

#include <tuff/tensor.h>

namespace tuff::language {

// (positions, rotated / 2) each, in F32; of layers with a window where those have another base.
// Undefined where nothing is rotated.
struct RopeTables {
  Tensor cosines, sines, window_cosines, window_sines;
};
// Computed on the host in double precision. `factors` divide the frequencies; empty: none.
RopeTables rope_tables(const Config& config, int64_t positions, const std::vector<float>& factors,
                       const std::string& device);

// (1, rotated / 2): what turns keys back by so many positions. Does not scale them.
RopeTables rope_turn_back(const Config& config, int64_t positions,
                          const std::vector<float>& factors, const std::string& device);

// x (rows, heads, size), of which the first `rotated` elements of each head are rotated;
// cosines and sines (rows, rotated / 2), or one row of them for all.
Tensor rotate(const Tensor& x, const Tensor& cosines, const Tensor& sines, RopePairs pairs);

}  // namespace tuff::language
