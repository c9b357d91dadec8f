#include <cmath>

#include <tuff/language.h>

#include "base/check.h"

namespace tuff::language {
namespace {

constexpr int64_t kLeastContext = 8;

}  // namespace

Perplexity perplexity(const Model& model, std::span<const int32_t> tokens,
                      const PerplexityOptions& o) {
  const int64_t context = o.context, most = model.description().context;
  if (context < kLeastContext || context > most)
    fail<InvalidArgument>("a context of {} tokens: {} to {} was wanted", context, kLeastContext,
                          most);
  const int64_t pieces = int64_t(tokens.size()) / context;
  if (pieces < 2)
    fail<InvalidArgument>("a text of {} tokens: two pieces of {} at least were wanted",
                          tokens.size(), context);
  // What a token that begins a text is replaced by costs no prediction: it is in the first half.
  const std::optional<int32_t> bos = model.tokenizer().bos();
  const bool begins = bos && tokens[0] == *bos;
  const int64_t first = context / 2;
  Jit losses([&](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    const NoGradGuard reading;
    const Tensor logits = model(in[0]).narrow(0, first, context - 1 - first);
    const Tensor wanted = in[0].narrow(0, first + 1, context - 1 - first);
    return {logits.cross_entropy(wanted, {}, -100, Reduction::None)};
  });
  Perplexity out;
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < pieces; i++) {
    const auto piece = tokens.subspan(size_t(i * context), size_t(context));
    std::vector<int32_t> ids(piece.begin(), piece.end());
    if (begins) ids[0] = *bos;
    const Tensor in = Tensor::from(ids, {context}, {.device = model.device()});
    for (const float loss : losses({in})[0].to_vector<float>())
      sum += double(loss), squares += double(loss) * double(loss), out.tokens++;
    const double n = double(out.tokens), mean = sum / n;
    out.value = std::exp(mean);
    out.error = out.value * std::sqrt(std::max(squares / n - mean * mean, 0.0) / (n - 1));
    if (o.on_piece && !o.on_piece(i + 1, pieces, out.value)) break;
  }
  return out;
}

}  // namespace tuff::language
