// PagedReader: a model's captured graphs, which read tokens of several sequences in one call and
// keep keys and values in pages. Called by Sequence and Batch, which say what pages hold.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include <tuff/language.h>

#include "language/decoder.h"

namespace tuff::language {

// Tokens of a sequence that follow `first` others, and the pages that hold all of them.
struct Piece {
  std::span<const int32_t> tokens;
  size_t first;
  std::span<const int32_t> pages;
};

class PagedReader {
 public:
  // Rows of a call for one sequence. Fewer graphs compile sooner, pieces that fit the prompt better
  // are read sooner.
  static constexpr std::array<int64_t, 4> kRows{1, 32, 256, 512};
  PagedReader(const Config& config, const Weights& weights, const std::vector<float>& rope_factors,
              int64_t context, int64_t pages, CacheType cache);
  // So many rows read the next piece of that many tokens.
  static int64_t rows_for(int64_t tokens);
  // Several pieces have one token each, one has up to 512: one call. The logits behind the last
  // token of each, valid until the next call.
  std::span<const float> read(std::span<const Piece> pieces);
  // The logits behind each token of a piece of up to kEach.
  static constexpr int64_t kEach = 8;
  std::span<const float> read_each(const Piece& piece);
  // What stands at positions from `first` + `distance` on moves to those from `first` on, of the
  // pages `to`, which may be the same. Keys are turned back by the distance. Not if positions are
  // learned.
  struct Move {
    std::span<const int32_t> from, to;
    size_t first, count, distance;
  };
  void move(const Move& move);
  bool can_move() const { return config_.architecture.pairs != RopePairs::None; }
  // Captures the graphs that read() has for up to so many sequences. Told of each one, counted from
  // 1; false ends it.
  void warm_up(int64_t sequences, const std::function<bool(size_t)>& on_graph);
  // Of the graph that reads a token of each of so many sequences.
  JitStats stats(int64_t sequences) const;

 private:
  struct Shape {
    int64_t sequences, rows;  // `rows` of each
    bool each = false;        // all rows' logits are wanted, not those of the last ones alone
    auto operator<=>(const Shape&) const = default;
  };
  Jit& graph(Shape shape);
  std::span<const float> run(Shape shape, std::span<const Piece> pieces);
  std::vector<Tensor> forward(Shape shape, const std::vector<Tensor>& in);
  // (3, rows): tokens, positions, slots; (sequences, pages); and which rows' logits are wanted.
  std::vector<Tensor> inputs(Shape shape, std::span<const Piece> pieces) const;
  // (2, rows): the slots that rows come from, and go to.
  Tensor moved_slots(const Move& move, size_t done) const;
  std::vector<Tensor> moved(const std::vector<Tensor>& in);

  const Config& config_;
  const Weights& weights_;
  const std::vector<float>& rope_factors_;
  const int64_t context_;
  const int32_t scratch_;  // the page of rows that nobody reads
  const std::string device_;
  RopeTables rope_;
  std::vector<LayerPages> pages_;
  std::vector<float> logits_;
  std::map<Shape, std::unique_ptr<Jit>> graphs_;
  std::unique_ptr<Jit> move_;
};

}  // namespace tuff::language
