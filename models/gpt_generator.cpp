#include "models/gpt_generator.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "models/checkpoint.h"
#include "models/gpt_trainer.h"

namespace tuff::models {
namespace {

constexpr uint32_t kSampleStream = 0x30000;
constexpr uint32_t kPieceTokens = 64;

JitOptions seen_at_least(uint32_t tokens, uint32_t context) {
  return {.dynamic = {{.argument = 0, .axis = 0, .name = "T", .min = tokens, .max = context}}};
}

std::vector<KeyValues> make_caches(const Gpt& model) {
  const GptRecipe& r = model.recipe;
  const Sizes sizes{r.heads, r.context, r.embed / r.heads};
  const TensorOptions options{DType::F32, model.wte.weight.device()};
  std::vector<KeyValues> caches;
  for (uint32_t i = 0; i < r.layers; ++i)
    caches.push_back({Tensor::zeros(sizes, options), Tensor::zeros(sizes, options)});
  std::vector<Tensor> all;
  for (const KeyValues& c : caches) all.insert(all.end(), {c.keys, c.values});
  Tensor::realize(all);
  return caches;
}

}  // namespace

GptDecoder::GptDecoder(const Gpt& model)
    : model_(model),
      caches_(make_caches(model)),
      logits_(model.recipe.vocabulary),
      piece_tokens_(std::clamp(model.recipe.context / 2, 1u, kPieceTokens)),
      steps_([this](const std::vector<Tensor>& in) { return forward(in[0], 1, {}); },
             seen_at_least(1, model.recipe.context)),
      pieces_(
          [this](const std::vector<Tensor>& in) { return forward(in[0], piece_tokens_, in[1]); },
          seen_at_least(piece_tokens_, model.recipe.context)) {}

// The logits of the last position, or of the row that `last` says.
std::vector<Tensor> GptDecoder::forward(const Tensor& seen, int64_t rows, const Tensor& last) {
  const Size length = seen.size(0), first = length - rows;
  const CachePlace place(rows, length, model_.recipe.context, seen.device());
  Tensor x = model_.wte(seen.narrow(0, first, rows)) + model_.wpe.weight.narrow(0, first, rows);
  for (size_t i = 0; i < caches_.size(); ++i) x = model_.blocks[i].next(x, caches_[i], place);
  if (last.defined()) x = x.index_select(0, last);
  return {model_.head(model_.lnf(x))};
}

void GptDecoder::run(Jit& jit, std::span<const uint8_t> seen, size_t padded,
                     std::vector<Tensor> more) {
  tokens_.assign(seen.begin(), seen.end());
  tokens_.resize(padded);
  more.insert(more.begin(),
              Tensor::from(tokens_, {int64_t(padded)}, {.device = model_.wte.weight.device()}));
  jit(more)[0].copy_to(logits_.data(), logits_.size() * sizeof(float));
}

// The last piece ends with the text and reads some tokens again. A text shorter than a piece is
// padded by tokens that no position sees; their keys and values are overwritten when others take
// their places.
void GptDecoder::read_pieces(std::span<const uint8_t> seen, size_t known) {
  while (known < seen.size()) {
    const size_t end = std::min<size_t>(known + piece_tokens_, seen.size());
    const size_t padded = std::max<size_t>(end, piece_tokens_);
    const std::vector<int32_t> last{int32_t(end - 1 - (padded - piece_tokens_))};
    run(pieces_, seen.first(end), padded,
        {Tensor::from(last, {1}, {.device = model_.wte.weight.device()})});
    known = end;
  }
}

std::span<const float> GptDecoder::operator()(std::span<const uint8_t> seen, size_t known) {
  if (seen.empty() || seen.size() > model_.recipe.context)
    fail<InvalidArgument>("gpt: {} tokens for a context of {}", seen.size(), model_.recipe.context);
  if (known >= seen.size())
    fail<InvalidArgument>("gpt: {} of {} tokens are known: one at least is new", known,
                          seen.size());
  // A piece takes the time of a few steps, and once that of making its graph.
  if (piece_tokens_ > 1 && seen.size() - known > piece_tokens_ / 2)
    read_pieces(seen, known);
  else
    while (known++ < seen.size()) run(steps_, seen.first(known), known, {});
  return logits_;
}

uint64_t gpt_window_begin(uint64_t count, uint32_t context) {
  if (count <= context) return 0;
  const uint64_t half = std::max<uint64_t>(1, context / 2);
  return (count - context + half - 1) / half * half;
}

uint8_t draw_token(std::span<const float> logits, double temperature, double unit) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) return static_cast<uint8_t>(largest - logits.begin());
  const double top = *largest;
  double sum = 0;
  for (const float l : logits) sum += std::exp((l - top) / temperature);
  double left = unit * sum;
  for (size_t i = 0; i < logits.size(); ++i) {
    left -= std::exp((logits[i] - top) / temperature);
    if (left < 0) return static_cast<uint8_t>(i);
  }
  return static_cast<uint8_t>(logits.size() - 1);
}

void GptGenerator::read(std::span<const uint8_t> tokens) {
  for (const uint8_t token : tokens) text_.push_back(token);
}

uint8_t GptGenerator::write(double temperature) {
  if (!(temperature >= 0))
    fail<InvalidArgument>("generate: temperature {} is below 0", temperature);
  if (text_.empty()) fail<InvalidArgument>("generate: a text begins with at least one token");
  const uint64_t begin = gpt_window_begin(text_.size(), model_.recipe.context);
  if (begin != window_begin_) {
    window_begin_ = begin;
    known_ = 0;
  }
  const std::span<const uint8_t> window = std::span(text_).subspan(begin);
  const std::span<const float> logits = decoder_(window, known_);
  known_ = window.size();
  drew_from_nan_ = std::ranges::any_of(logits, [](float l) { return std::isnan(l); });
  const double unit = ReferenceRandom(seed_).uniform(kSampleStream, written_++);
  text_.push_back(draw_token(logits, temperature, unit));
  return text_.back();
}

uint8_t first_token(const Vocabulary& vocabulary) {
  return vocabulary.contains('\n') ? vocabulary.token('\n') : uint8_t{0};
}

namespace {

// Sizes that a file claims are believed once its tensors have them.
void require_tensors(const Checkpoint& file, const GptRecipe& r) {
  const auto has_shape = [&](const char* name, int64_t rows) {
    const std::vector<TensorInfo> all = file.tensors().info();
    const auto found = std::ranges::find(all, name, &TensorInfo::name);
    return found != all.end() && found->shape == std::vector<int64_t>{rows, int64_t{r.embed}};
  };
  if (has_shape("model.wte.weight", r.vocabulary) && has_shape("model.wpe.weight", r.context) &&
      r.layers <= file.tensors().size())
    return;
  fail<InvalidArgument>(
      "{}: its tensors are not those of a GPT with vocabulary {}, context {}, width {} and {} "
      "layers, as its metadata says",
      file.path(), r.vocabulary, r.context, r.embed, r.layers);
}

}  // namespace

SavedGpt load_gpt(const std::string& path, const std::string& device) {
  const Checkpoint file(path, kGptTask, device);
  GptTraining training;
  for_each_setting(training, [&]<class T>(const char* name, T& value, SettingRange range) {
    value = file.setting<T>(name, range);
  });
  const Vocabulary vocabulary = Vocabulary::from_hex(file.text(kVocabularyKey));
  training.recipe.vocabulary = static_cast<uint32_t>(vocabulary.size());
  require_tensors(file, training.recipe);
  SavedGpt saved{Gpt::uninitialized(training.recipe, device), vocabulary};
  try {
    nn::load_state_dict(saved.model.state_dict(), file.tensors().state("model"));
  } catch (const ShapeError& e) {
    throw ShapeError(fmt::format("{}: {}", path, e.what()));
  } catch (const InvalidArgument& e) {
    throw InvalidArgument(fmt::format("{}: {}", path, e.what()));
  }
  return saved;
}

}  // namespace tuff::models
