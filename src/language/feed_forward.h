// The feed-forward branch of a layer: gated or not, or the experts that a router chooses. Called by
// the decoder. Must never know attention.
#pragma once

#include "language/config.h"
#include "language/weights.h"

namespace tuff::language {

// (rows, width) -> (rows, width).
Tensor feed_forward(const Config& config, const LayerWeights& layer, const Tensor& x);

// What experts have in common with it.
Tensor activated(const Config& config, const Tensor& x);
Tensor gated(const Config& config, const Projection& gate, const Projection& up,
             const Projection& down, const Tensor& x);

}  // namespace tuff::language
