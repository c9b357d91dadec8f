#include "models/gpt_reference.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace tuff::models {
namespace {

constexpr double kDeviation = 0.02;

void check_recipe(const GptRecipe& r) {
  if (r.vocabulary == 0 || r.layers == 0 || r.heads == 0 || r.embed == 0 || r.context == 0 ||
      r.batch == 0) {
    fail<InvalidArgument>(
        "gpt: vocabulary {}, layers {}, heads {}, embed {}, context {}, batch {}: each must be at "
        "least 1",
        r.vocabulary, r.layers, r.heads, r.embed, r.context, r.batch);
  }
  if (r.embed % r.heads != 0) {
    fail<InvalidArgument>("gpt: {} heads do not divide embed {}", r.heads, r.embed);
  }
}

void add_norm(std::vector<ReferenceParameter>& list, const std::string& name, uint32_t size) {
  list.push_back({name + ".w", {size}, 0, 1.0f});
  list.push_back({name + ".b", {size}, 0, 0.0f});
}

void add_linear(std::vector<ReferenceParameter>& list, const std::string& name, uint32_t in,
                uint32_t out, double deviation) {
  list.push_back({name + ".w", {out, in}, deviation});
  list.push_back({name + ".b", {out}, 0, 0.0f});
}

void offsets(const GptRecipe& recipe, uint32_t stream, uint32_t first, uint64_t token_count,
             std::span<uint32_t> starts) {
  if (token_count <= uint64_t{recipe.context} + 1) {
    fail<InvalidArgument>("gpt: {} tokens are too few for context {}: more than {} are needed",
                          token_count, recipe.context, recipe.context + 1);
  }
  TUFF_CHECK(starts.size() == recipe.batch);
  const uint64_t range = token_count - recipe.context - 1;
  const ReferenceRandom random(recipe.seed);
  for (uint32_t row = 0; row < recipe.batch; ++row) {
    starts[row] = static_cast<uint32_t>(random.bits(stream, first * recipe.batch + row) % range);
  }
}

}  // namespace

std::vector<ReferenceParameter> gpt_parameters(const GptRecipe& recipe) {
  check_recipe(recipe);
  const uint32_t width = recipe.embed;
  // Residual branches start smaller so that their sum keeps its variance (GPT-2).
  const double residual = kDeviation / std::sqrt(2.0 * recipe.layers);
  std::vector<ReferenceParameter> list;
  list.push_back({"wte", {recipe.vocabulary, width}, kDeviation});
  list.push_back({"wpe", {recipe.context, width}, kDeviation});
  for (uint32_t layer = 0; layer < recipe.layers; ++layer) {
    const std::string prefix = fmt::format("layer{}.", layer);
    add_norm(list, prefix + "ln1", width);
    add_linear(list, prefix + "qkv", width, 3 * width, kDeviation);
    add_linear(list, prefix + "proj", width, width, residual);
    add_norm(list, prefix + "ln2", width);
    add_linear(list, prefix + "fc", width, 4 * width, kDeviation);
    add_linear(list, prefix + "out", 4 * width, width, residual);
  }
  add_norm(list, "lnf", width);
  list.push_back({"head.w", {recipe.vocabulary, width}, kDeviation});
  return list;
}

void gpt_train_offsets(const GptRecipe& recipe, uint32_t step, uint64_t token_count,
                       std::span<uint32_t> starts) {
  offsets(recipe, kGptTrainStream, step, token_count, starts);
}

void gpt_validation_offsets(const GptRecipe& recipe, uint32_t batch_index, uint64_t token_count,
                            std::span<uint32_t> starts) {
  offsets(recipe, kGptValidationStream, batch_index, token_count, starts);
}

double gpt_learning_rate(const GptOptimizer& optimizer, uint32_t step, uint32_t steps) {
  const uint32_t warmup = optimizer.warmup_steps;
  if (step < warmup) return optimizer.learning_rate * (step + 1) / warmup;
  const double span = steps > warmup ? steps - warmup : 1;
  const double progress = std::min(1.0, (step - warmup) / span);
  return optimizer.learning_rate_end + 0.5 *
                                           (optimizer.learning_rate - optimizer.learning_rate_end) *
                                           (1.0 + std::cos(std::numbers::pi * progress));
}

}  // namespace tuff::models
