// A mixture of experts: which of them compute a row, and in what order. Called by feed_forward().
// Must never know attention.
#pragma once

#include <cstdint>

#include "language/config.h"
#include "language/weights.h"

namespace tuff::language {

// How the experts of a layer compute the rows of a call.
struct ExpertPlan {
  enum class Way {
    One,    // those that the only row chose, one after the other
    Tiles,  // rows are sorted by expert, in tiles of one expert each
    All,    // every expert computes every row, and what was not chosen counts nothing
  };
  Way way = Way::All;
  int64_t height = 0;    // Tiles: rows of one
  bool decoded = false;  // Tiles: of packed weights all are decoded, not those of each tile
  bool operator==(const ExpertPlan&) const = default;
};

// What is known of a call before any row has chosen.
struct ExpertCall {
  int64_t rows = 0, experts = 0, used = 0;
  bool packed = false;               // the weights
  bool decodes_in_products = false;  // the device does, of packed weights, whatever the rows
};

// By what a call multiplies, copies and decodes at most, whatever is chosen.
ExpertPlan plan_experts(const ExpertCall& call);
// Tiles that suffice for so many choices.
int64_t most_tiles(int64_t choices, int64_t experts, int64_t height);

// (rows, width) -> (rows, width). All experts compute where gradients are wanted.
Tensor mixture(const Config& config, const Experts& experts, const Tensor& x);
Tensor mixture_by(const ExpertPlan& plan, const Config& config, const Experts& experts,
                  const Tensor& x);

}  // namespace tuff::language
