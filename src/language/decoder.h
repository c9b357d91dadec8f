// The layers of a transformer as a graph of tensors. Called by Model and Sequence.
// Must never know files, texts or who captures it.
#pragma once

#include <vector>

#include "language/config.h"
#include "language/rope.h"
#include "language/weights.h"

namespace tuff::language {

// Keys and values of the positions that a sequence has read: (kv_heads, context, size of a head).
struct LayerCache {
  Tensor keys, values;
};

// Where the rows of a call stand: the positions from `first` to `length`. Keys and values are put
// into the cache there, and read from its beginning to `length`; without a cache a call's rows are
// the whole text.
struct Place {
  Size first, length;
  std::vector<LayerCache>* cache = nullptr;
  Tensor present = {};  // of an encoder's rows (rows): those that are no padding; undefined: all
};

// (rows) tokens -> (rows, width), before the last norm.
Tensor decode(const Config& config, const Weights& weights, const RopeTables& rope,
              const Tensor& tokens, const Place& place);
// (rows, width) -> (rows, width), by the norm behind all layers.
Tensor last_norm(const Config& config, const Weights& weights, const Tensor& x);
// (rows, width) -> (rows, vocabulary).
Tensor logits(const Config& config, const Weights& weights, const Tensor& x);

}  // namespace tuff::language
