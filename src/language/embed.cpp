// embed(): texts as vectors.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "language/decoder.h"
#include "language/model_state.h"

namespace tuff::language {
namespace {

constexpr size_t kLeastRows = 16;

// in: tokens (rows), of which those behind the text are padding; the part that each has in the
// mean, and 1 for those of the text (rows each).
Tensor mean_of(const Config& config, const Weights& weights, const RopeTables& rope,
               const std::vector<Tensor>& in) {
  const int64_t rows = in[0].size(0);
  const NoGradGuard reading;
  const Tensor x = decode(config, weights, rope, in[0], {.present = in[2] > 0});
  return in[1].reshape({1, rows}).matmul(last_norm(config, weights, x)).reshape({config.width});
}

void normalize(std::vector<float>& v) {
  double squares = 0;
  for (const float x : v) squares += double(x) * double(x);
  if (squares == 0) return;
  for (float& x : v) x = float(double(x) / std::sqrt(squares));
}

}  // namespace

std::vector<float> embed(const Model& model, std::span<const int32_t> tokens) {
  const Model::State& s = *model.state_;
  if (tokens.empty()) fail<InvalidArgument>("a text of no token has no embedding");
  s.require_tokens(tokens);
  if (tokens.size() > size_t(s.config.context))
    fail<InvalidArgument>("{} tokens exceed the context of {} that the model was trained for",
                          tokens.size(), s.config.context);
  // Powers of 2: a graph for every length would be one that is compiled for every text.
  const size_t rows = std::min(std::max(std::bit_ceil(tokens.size()), kLeastRows),
                               size_t(s.config.context));
  std::vector<int32_t> padded(tokens.begin(), tokens.end());
  padded.resize(rows);
  std::vector<float> parts(rows), present(rows);
  std::fill_n(present.begin(), tokens.size(), 1.0f);
  if (s.config.pooling == Config::Pooling::First)
    parts[0] = 1;
  else
    std::fill_n(parts.begin(), tokens.size(), 1 / float(tokens.size()));
  const TensorOptions where{.device = s.weights.embedding.device()};
  const std::lock_guard lock(s.embeddings->mutex);
  std::unique_ptr<Jit>& graph = s.embeddings->by_rows[int64_t(rows)];
  if (!graph) {
    const int64_t count = int64_t(rows);
    const RopeTables rope =
        rope_tables(s.config, count, s.rope_factors(count), where.device);
    graph = std::make_unique<Jit>([&s, rope](const std::vector<Tensor>& in) {
      return std::vector<Tensor>{mean_of(s.config, s.weights, rope, in)};
    });
  }
  const auto row = [&](const auto& v) { return Tensor::from(v, {int64_t(rows)}, where); };
  std::vector<float> out = (*graph)({row(padded), row(parts), row(present)})[0].to_vector<float>();
  normalize(out);
  return out;
}

}  // namespace tuff::language
