#include <algorithm>
#include <array>

#include "base/check.h"
#include "language/decoder.h"
#include "language/model_state.h"

namespace tuff::language {
namespace {

// Rows of a call. Fewer graphs compile sooner, pieces that fit the prompt better are read sooner.
constexpr std::array<int64_t, 3> kRows{1, 32, 256};
constexpr int64_t kUsualContext = 4096;

}  // namespace

struct Sequence::State {
  State(Model m, const SequenceOptions& options);
  // Reads what was seen, of which the first `known` tokens have been read.
  void read_from(size_t known);
  // The same from position `first` to `end`, in one call.
  void run(size_t graph, size_t first, size_t end);
  // Which of kRows reads the next piece of so many tokens.
  static size_t graph_for(int64_t tokens);
  std::vector<Tensor> forward(int64_t rows, const std::vector<Tensor>& in);

  Model model;
  const Config& config;
  const Weights& weights;
  int64_t context = 0;
  std::string device;
  RopeTables rope;
  std::vector<LayerCache> cache;
  std::vector<int32_t> seen, padded;
  std::vector<float> logits;
  std::vector<std::unique_ptr<Jit>> graphs;  // by kRows
};

Sequence::State::State(Model m, const SequenceOptions& options)
    : model(std::move(m)), config(model.state_->config), weights(model.state_->weights) {
  model.state_->require_writer();
  context = options.context == 0 ? std::min(config.context, kUsualContext) : options.context;
  if (context < 1 || context > config.context)
    fail<InvalidArgument>("a context of {} tokens: the model was trained for 1 to {}",
                          options.context, config.context);
  device = weights.embedding.device();
  rope = rope_tables(config, context, model.state_->rope_factors(context), device);
  // Memory of its own each, which equal zeros would share until they are written.
  const auto empty = [&](int64_t size) {
    return Tensor::empty({config.kv_heads, context, size}, {options.cache_dtype, device});
  };
  for (int64_t i = 0; i < config.layers; i++)
    cache.push_back({empty(config.key_size), empty(config.value_size)});
  logits.resize(size_t(config.vocabulary));
  for (const int64_t rows : kRows) {
    if (rows > context) break;
    JitOptions varies{.dynamic = {{.argument = 0, .axis = 0, .name = "T", .min = rows,
                                   .max = context}}};
    graphs.push_back(std::make_unique<Jit>(
        [this, rows](const std::vector<Tensor>& in) { return forward(rows, in); },
        std::move(varies)));
  }
}

// in: the text (T), of which the last rows are new, and of several rows the one whose logits are
// wanted (1).
std::vector<Tensor> Sequence::State::forward(int64_t rows, const std::vector<Tensor>& in) {
  const Size length = in[0].size(0), first = length - rows;
  const Tensor tokens = in[0].narrow(0, first, rows);
  Tensor x = decode(config, weights, rope, tokens, {first, length, &cache});
  if (rows > 1) x = x.index_select(0, in[1]);
  return {language::logits(config, weights, x)};
}

void Sequence::State::run(size_t graph, size_t first, size_t end) {
  const int64_t rows = kRows[graph];
  padded.assign(seen.begin(), seen.begin() + std::ptrdiff_t(end));
  padded.resize(first + size_t(rows));
  const auto uploaded = [&](const std::vector<int32_t>& v) {
    return Tensor::from(v, {int64_t(v.size())}, {.device = device});
  };
  std::vector<Tensor> in{uploaded(padded)};
  if (rows > 1) in.push_back(uploaded({int32_t(end - first) - 1}));
  (*graphs[graph])(in)[0].copy_to(logits.data(), logits.size() * sizeof(float));
}

size_t Sequence::State::graph_for(int64_t tokens) {
  size_t graph = 0;
  for (size_t i = 1; i < kRows.size(); i++)
    if (tokens > kRows[i] / 4) graph = i;
  return graph;
}

Sequence::Sequence(Model model, const SequenceOptions& options)
    : state_(std::make_unique<State>(std::move(model), options)) {}
Sequence::~Sequence() = default;
Sequence::Sequence(Sequence&&) noexcept = default;

std::span<const float> Sequence::read(std::span<const int32_t> tokens) {
  State& s = *state_;
  if (tokens.empty()) fail<InvalidArgument>("a sequence reads at least one token");
  s.model.state_->require_tokens(tokens);
  if (s.seen.size() + tokens.size() > size_t(s.context))
    fail<InvalidArgument>("{} tokens behind {} exceed the context of {}", tokens.size(),
                          s.seen.size(), s.context);
  const size_t known = s.seen.size();
  s.seen.insert(s.seen.end(), tokens.begin(), tokens.end());
  try {
    s.read_from(known);
  } catch (...) {
    s.seen.resize(known);  // what could not be read is not part of the text
    throw;
  }
  return s.logits;
}

// A piece is padded by tokens that no position before them sees: their keys and values are
// overwritten when others take their places. Where the context has no room for them, the piece
// begins with tokens that are known.
void Sequence::State::read_from(size_t known) {
  while (known < seen.size()) {
    size_t graph = graph_for(int64_t(seen.size() - known));
    while (kRows[graph] > context) graph--;
    const size_t rows = size_t(kRows[graph]);
    const size_t first = std::min(known, size_t(context) - rows);
    const size_t end = std::min(first + rows, seen.size());
    run(graph, first, end);
    known = end;
  }
}

std::span<const int32_t> Sequence::tokens() const { return state_->seen; }
void Sequence::truncate(size_t count) {
  if (count < state_->seen.size()) state_->seen.resize(count);
}
int64_t Sequence::context() const { return state_->context; }
const Model& Sequence::model() const { return state_->model; }
JitStats Sequence::stats() const { return state_->graphs[0]->stats(); }

}  // namespace tuff::language
