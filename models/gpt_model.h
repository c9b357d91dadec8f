// A small decoder-only transformer (GPT-2's shape, Radford et al. 2019): learned positions, layer
// norm before each branch, GELU. Called by the trainers. Must never know texts or batches.
#pragma once

#include <vector>

#include <tuff/nn.h>

#include "models/gpt_reference.h"
#include "models/training.h"

namespace tuff::models {

// Keys and values of the positions that a decoder has seen: (heads, context, C / heads).
struct KeyValues {
  Tensor keys, values;
};

// Where the last positions of a text, one row each, stand in the caches, and what each of them
// sees.
struct CachePlace {
  // The last `rows` of `length` positions, at most `context`.
  CachePlace(int64_t rows, const Size& length, int64_t context, const std::string& device);
  Size first, length;  // from the first of them on, to the end of the text
  Tensor visible;      // (rows, length): none sees what follows it; undefined for one row
};

struct Attention {
  Attention(RecipeParameters& source, int64_t heads);
  // (B, T, C) -> (B, T, C). With `masked` a position sees nothing but itself.
  Tensor operator()(const Tensor& x, bool masked) const;
  // The last positions of a text, (rows, C) -> (rows, C), with those before from the cache, into
  // which they are put.
  Tensor next(const Tensor& x, KeyValues& cache, const CachePlace& place) const;
  nn::Linear qkv, proj;
  int64_t heads;
};

struct Mlp {
  explicit Mlp(RecipeParameters& source) : fc(source.linear()), out(source.linear()) {}
  Tensor operator()(const Tensor& x) const { return out(fc(x).gelu("tanh")); }
  nn::Linear fc, out;
};

struct Block {
  Block(RecipeParameters& source, int64_t heads);
  Tensor operator()(const Tensor& x, bool masked, double dropout) const;
  Tensor next(const Tensor& x, KeyValues& cache, const CachePlace& place) const;
  nn::StateDict state_dict() const;
  nn::LayerNorm ln1;
  Attention attention;
  nn::LayerNorm ln2;
  Mlp mlp;
};

// Parameters start as gpt_parameters(recipe) says, in the same order.
struct Gpt {
  Gpt(const GptRecipe& recipe, const std::string& device);
  // For callers that load the parameters.
  static Gpt uninitialized(const GptRecipe& recipe, const std::string& device);
  // Tokens (B, T) with T <= context -> logits (B, T, vocabulary).
  Tensor operator()(const Tensor& tokens) const;
  // "wte.weight", "blocks.0.attention.qkv.weight" ...
  nn::StateDict state_dict() const;
  nn::Parameters parameters() const { return nn::parameters_of(state_dict()); }

  GptRecipe recipe;
  double dropout = 0;           // after the embedding and each branch, in training mode
  bool mask_attention = false;  // for the experiment that shows what attention is for

 private:
  Gpt(const GptRecipe& recipe, RecipeParameters source);

 public:
  nn::Embedding wte, wpe;
  std::vector<Block> blocks;
  nn::LayerNorm lnf;
  nn::Linear head;
};

}  // namespace tuff::models
