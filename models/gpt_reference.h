// The fixed recipe of the character-level GPT: shapes and initial values of its parameters, batch
// offsets, learning rate. Called by `tuff train gpt`; scripts/gpt-reference.py is its PyTorch twin
// and tests/data/gpt_reference.json what that one measured.
// Must never know tensors or devices: plain numbers in, plain numbers out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/reference_random.h"

namespace tuff::models {

struct GptRecipe {
  uint32_t vocabulary = 0;  // distinct bytes of the corpus
  uint32_t layers = 4;
  uint32_t heads = 4;
  uint32_t embed = 128;
  uint32_t context = 64;
  uint32_t batch = 16;
  uint32_t steps = 300;
  uint32_t seed = 1;
};

struct GptOptimizer {
  double learning_rate = 1e-3;      // after warm-up
  double learning_rate_end = 1e-4;  // where the cosine ends
  uint32_t warmup_steps = 20;
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
  double weight_decay = 0.1;  // on parameters of two dimensions only
};

inline constexpr uint32_t kGptTrainStream = 0x10000;
inline constexpr uint32_t kGptValidationStream = 0x20000;
inline constexpr uint32_t kGptValidationBatches = 8;
inline constexpr uint32_t kGptValidationInterval = 50;  // steps
inline constexpr double kGptNormEpsilon = 1e-5;

// In the order wte, wpe, per layer ln1, qkv, proj, ln2, fc, out (weight then bias), lnf, head.w;
// a parameter's index is its random stream. InvalidArgument if a size is 0 or heads do not divide
// embed.
std::vector<ReferenceParameter> gpt_parameters(const GptRecipe& recipe);

// Where the rows of one batch start in the token stream: row b reads [offset, offset + context] and
// predicts each next token. InvalidArgument if the stream is no longer than context + 1.
// starts.size() == recipe.batch.
void gpt_train_offsets(const GptRecipe& recipe, uint32_t step, uint64_t token_count,
                       std::span<uint32_t> starts);
void gpt_validation_offsets(const GptRecipe& recipe, uint32_t batch_index, uint64_t token_count,
                            std::span<uint32_t> starts);

// Linear warm-up, then a cosine; `step` counts from 0.
double gpt_learning_rate(const GptOptimizer& optimizer, uint32_t step, uint32_t steps);

}  // namespace tuff::models
