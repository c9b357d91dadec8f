// Weights: the tensors of a transformer by what they are for, as lazy tensors over the
// blocks of the file. Called by Model::open(). Must never know how they are computed with.
#pragma once

#include <string>
#include <vector>

#include <tuff/io.h>

#include "language/config.h"

namespace tuff::language {

// Rows of a map that files have as one with others. They are narrowed where they are used: what is
// trained changes, and a view of it made before would not.
struct MapRows {
  int64_t begin = 0, count = 0;  // 0: all there are
  Tensor of(const Tensor& map) const {
    return count > 0 && map.defined() ? map.narrow(0, begin, count) : map;
  }
};

// Another map to be added by way of few elements, (rank, in) and then (out, rank), times `scale`.
struct LowRank {
  Tensor down, up;  // undefined: nothing is added
  double scale = 1;
  int64_t heads_in_turns = 0;  // above 0: the map's rows have those of a head's halves in turns
  MapRows part = {};
  Tensor operator()(const Tensor& x) const;
  Tensor product() const;  // (out, in), what is added in all

 private:
  Tensor rows() const;  // of `up`, as those of the map stand
};

// A linear map (out, in); a bias that is undefined is none.
struct Projection {
  Tensor weight, bias;
  LowRank adapter = {};
  MapRows part = {};
  int64_t out() const { return part.count > 0 ? part.count : int64_t(weight.size(0)); }
  Tensor operator()(const Tensor& x) const;
};

// A norm's; a bias that is undefined is none.
struct Norm {
  Tensor weight, bias;
};

// Linear maps (out, in) of all experts of a layer.
struct ExpertMaps {
  int64_t count = 0, out = 0, in = 0;
  // Packed blocks of `type`, U8 (experts, bytes of one): one can be picked before it is decoded. Or
  // numbers (experts, out, in), where `type` is empty.
  Tensor all;
  std::string type;
  LowRank adapter = {};  // matrices of each: (experts, rank, in), (experts, out, rank)
  // (rows, in) by the expert of an integer (1).
  Tensor of_one(const Tensor& x, const Tensor& expert) const;
  // (n, rows, in) by an expert each, of integers (n). Of packed weights the blocks of those are
  // copied as they are, or all are decoded into memory and those loaded from there.
  Tensor of_some(const Tensor& x, const Tensor& experts, bool decoded) const;
  // (1 or experts, rows, in) by every expert: (experts, rows, out).
  Tensor of_all(const Tensor& x) const;

 private:
  Tensor every() const;                                    // (experts, out, in)
  Tensor picked(const Tensor& experts, bool copied) const;  // (n, out, in)
};

// Of a layer in which a router chooses a few experts for each token. The shared one computes for
// all; where it is undefined there is none.
struct Experts {
  Tensor router;         // (experts, width)
  ExpertMaps gate, up, down;
  Tensor shared_router;  // (width)
  Projection shared_gate, shared_up, shared_down;
};

// What is undefined is not there. Norms stand before a branch, behind it, and behind the sum of
// both.
struct LayerWeights {
  Norm attention_norm, query_norm, key_norm, after_attention_norm, attention_sum_norm;
  Projection queries, keys, values, output;
  Norm hidden_norm, after_hidden_norm, hidden_sum_norm;
  Projection gate, up, down;
  Experts experts;
};

struct Weights {
  Tensor embedding, output;  // output: the embedding where the file has none
  Tensor positions, token_types;
  Norm embedding_norm, output_norm;
  Tensor rope_factors, rope_factors_long;  // what frequencies are divided by
  std::vector<LayerWeights> layers;
};

// By the names of GGUF files. InvalidArgument names a tensor that is missing or has another shape
// than the configuration gives it, and one that nothing uses.
Weights weights_of(const TensorDict& file, const Config& config);

}  // namespace tuff::language
