// Weights: the tensors of a decoder-only transformer by what they are for, as lazy tensors over the
// blocks of the file. Called by Model::open(). Must never know how they are computed with.
#pragma once

#include <vector>

#include <tuff/io.h>

#include "language/config.h"

namespace tuff::language {

// Another map to be added by way of few elements, (rank, in) and then (out, rank), times `scale`.
struct LowRank {
  Tensor down, up;  // undefined: nothing is added
  double scale = 1;
  int64_t heads_in_turns = 0;  // above 0: the map's rows have those of a head's halves in turns
  Tensor operator()(const Tensor& x) const;
};

// A linear map (out, in); a bias that is undefined is none.
struct Projection {
  Tensor weight, bias;
  LowRank adapter = {};
  Tensor operator()(const Tensor& x) const {
    const Tensor y = x.linear(weight, bias);
    return adapter.down.defined() ? y + adapter(x) : y;
  }
};

// What is undefined is not there.
struct LayerWeights {
  Tensor attention_norm, query_norm, key_norm, after_attention_norm;
  Projection queries, keys, values, output;
  Tensor hidden_norm, after_hidden_norm;
  Projection gate, up, down;
};

struct Weights {
  Tensor embedding, output_norm, output;   // output: the embedding where the file has none
  Tensor rope_factors, rope_factors_long;  // what frequencies are divided by
  std::vector<LayerWeights> layers;
};

// By the names of GGUF files. InvalidArgument names a tensor that is missing or has another shape
// than the configuration gives it, and one that nothing uses.
Weights weights_of(const TensorDict& file, const Config& config);

}  // namespace tuff::language
