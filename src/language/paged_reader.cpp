#include "language/paged_reader.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace tuff::language {
namespace {

constexpr int64_t kMoved = 256;  // positions that one call moves

int32_t slot_of(std::span<const int32_t> pages, size_t position) {
  return pages[position / kPagePositions] * int32_t(kPagePositions) +
         int32_t(position % kPagePositions);
}

int64_t pages_for(int64_t positions) {
  return (positions + kPagePositions - 1) / kPagePositions;
}

}  // namespace

PagedReader::PagedReader(const Config& config, const Weights& weights,
                         const std::vector<float>& rope_factors, int64_t context, int64_t pages,
                         CacheType cache)
    : config_(config),
      weights_(weights),
      rope_factors_(rope_factors),
      context_(context),
      scratch_(int32_t(pages)),
      device_(weights.embedding.device()),
      rope_(rope_tables(config, context, rope_factors, device_)) {
  require_cache(cache, config.key_size), require_cache(cache, config.value_size);
  const auto empty = [&](int64_t size) {
    return KvPages(cache, pages + 1, config.kv_heads, size, device_);
  };
  for (int64_t i = 0; i < config.layers; i++)
    pages_.push_back({empty(config.key_size), empty(config.value_size)});
}

int64_t PagedReader::rows_for(int64_t tokens) {
  int64_t rows = kRows[0];
  // Rows that stay empty are computed as well.
  for (size_t i = 1; i < kRows.size(); i++)
    if (tokens > std::max(kRows[i] / 4, kRows[i - 1])) rows = kRows[i];
  return rows;
}

std::vector<Tensor> PagedReader::forward(Shape shape, const std::vector<Tensor>& in) {
  const NoGradGuard reading;
  const Place place{.sequences = shape.sequences,
                    .positions = in[0].select(0, 1),
                    .slots = in[0].select(0, 2),
                    .table = in[1],
                    .pages = &pages_};
  Tensor x = decode(config_, weights_, rope_, in[0].select(0, 0), place);
  if (shape.rows > 1 && !shape.each) x = x.index_select(0, in[2]);
  return {language::logits(config_, weights_, x)};
}

Jit& PagedReader::graph(Shape shape) {
  std::unique_ptr<Jit>& graph = graphs_[shape];
  if (!graph) {
    JitOptions varies{.dynamic = {{.argument = 1, .axis = 1, .name = "P", .min = 1,
                                   .max = pages_for(context_)}}};
    graph = std::make_unique<Jit>(
        [this, shape](const std::vector<Tensor>& in) { return forward(shape, in); },
        std::move(varies));
  }
  return *graph;
}

std::vector<Tensor> PagedReader::inputs(Shape shape, std::span<const Piece> pieces) const {
  const size_t rows = size_t(shape.sequences * shape.rows);
  int64_t pages = 1;
  for (const Piece& p : pieces)
    pages = std::max(pages, pages_for(int64_t(p.first + p.tokens.size())));
  std::vector<int32_t> places(3 * rows), table(size_t(shape.sequences * pages), scratch_), wanted;
  std::fill(places.begin() + std::ptrdiff_t(2 * rows), places.end(),
            scratch_ * int32_t(kPagePositions));
  for (size_t i = 0; i < pieces.size(); i++) {
    const Piece& p = pieces[i];
    const size_t held = size_t(pages_for(int64_t(p.first + p.tokens.size())));
    std::copy_n(p.pages.begin(), held, table.begin() + std::ptrdiff_t(i * size_t(pages)));
    for (size_t t = 0; t < p.tokens.size(); t++) {
      const size_t row = i * size_t(shape.rows) + t, position = p.first + t;
      places[row] = p.tokens[t];
      places[rows + row] = int32_t(position);
      places[2 * rows + row] = slot_of(p.pages, position);
    }
    wanted.push_back(int32_t(i * size_t(shape.rows) + p.tokens.size() - 1));
  }
  const TensorOptions here{.device = device_};
  std::vector<Tensor> in{Tensor::from(places, {3, int64_t(rows)}, here),
                         Tensor::from(table, {shape.sequences, pages}, here)};
  if (shape.rows > 1 && !shape.each)
    in.push_back(Tensor::from(wanted, {int64_t(wanted.size())}, here));
  return in;
}

std::span<const float> PagedReader::read(std::span<const Piece> pieces) {
  size_t most = 0;
  for (const Piece& p : pieces) most = std::max(most, p.tokens.size());
  Shape shape{int64_t(std::bit_ceil(pieces.size())), 1};
  if (most > 1) shape.rows = *std::ranges::lower_bound(kRows, int64_t(most));
  return run(shape, pieces).first(pieces.size() * size_t(config_.vocabulary));
}

std::span<const float> PagedReader::read_each(const Piece& piece) {
  const std::span<const float> logits = run({1, kEach, true}, {&piece, 1});
  return logits.first(piece.tokens.size() * size_t(config_.vocabulary));
}

std::span<const float> PagedReader::run(Shape shape, std::span<const Piece> pieces) {
  logits_.resize(size_t(shape.sequences * (shape.each ? shape.rows : 1) * config_.vocabulary));
  graph(shape)(inputs(shape, pieces))[0].copy_to(logits_.data(), logits_.size() * sizeof(float));
  return logits_;
}

// in: moved_slots(), and the tables of rope_turn_back() that there are.
std::vector<Tensor> PagedReader::moved(const std::vector<Tensor>& in) {
  const Tensor from = in[0].select(0, 0), to = in[0].select(0, 1);
  std::vector<Tensor> written;
  for (int64_t i = 0; i < config_.layers; i++) {
    LayerPages& layer = pages_[size_t(i)];
    const bool own_base = config_.has_window(i) && in.size() > 3;
    const Tensor keys = rotate(layer.keys.rows(from), in[own_base ? 3 : 1], in[own_base ? 4 : 2],
                               config_.architecture.pairs);
    const Tensor values = layer.values.rows(from);
    layer.keys.put(to, keys), layer.values.put(to, values);
    for (const KvPages* pages : {&layer.keys, &layer.values})
      for (const Tensor& t : pages->memory()) written.push_back(t);
  }
  return written;
}

Tensor PagedReader::moved_slots(const Move& m, size_t done) const {
  std::vector<int32_t> slots(2 * kMoved, scratch_ * int32_t(kPagePositions));
  const size_t count = std::min(m.count - done, size_t(kMoved));
  for (size_t i = 0; i < count; i++) {
    const size_t at = m.first + done + i;
    slots[i] = slot_of(m.from, at + m.distance), slots[size_t(kMoved) + i] = slot_of(m.to, at);
  }
  return Tensor::from(slots, {2, kMoved}, {.device = device_});
}

// A call reads what no earlier one has written: what moves goes down.
void PagedReader::move(const Move& m) {
  const RopeTables turn = rope_turn_back(config_, int64_t(m.distance), rope_factors_, device_);
  std::vector<Tensor> in{{}, turn.cosines, turn.sines};
  if (turn.window_cosines.defined())
    in.insert(in.end(), {turn.window_cosines, turn.window_sines});
  if (!move_)
    move_ = std::make_unique<Jit>([this](const std::vector<Tensor>& args) { return moved(args); });
  for (size_t done = 0; done < m.count; done += size_t(kMoved)) {
    in[0] = moved_slots(m, done);
    (*move_)(in);
  }
}

void PagedReader::warm_up(int64_t sequences, const std::function<bool(size_t)>& on_graph) {
  std::vector<Shape> shapes;
  for (const int64_t rows : kRows)
    if (rows <= rows_for(context_)) shapes.push_back({1, rows});
  for (int64_t n = 2; n < 2 * sequences; n *= 2) shapes.push_back({n, 1});
  const int32_t token = 0;
  const Piece nobodys{{&token, 1}, 0, {&scratch_, 1}};
  size_t count = 0;
  for (const Shape shape : shapes) {
    while (!graph(shape).captured()) run(shape, {&nobodys, 1});
    if (on_graph && !on_graph(++count)) return;
  }
}

JitStats PagedReader::stats(int64_t sequences) const {
  const auto found = graphs_.find({sequences, 1});
  return found == graphs_.end() ? JitStats() : found->second->stats();
}

}  // namespace tuff::language
