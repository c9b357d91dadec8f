// Random legal opts: a schedule drawn from a seed, so that tests reach kinds and mixtures of opts
// that no heuristic would choose. Called by the pass opts where TUFF_RANDOM_OPTS asks for it and by
// property tests. Must never look at what a schedule is worth.
#pragma once

#include <array>
#include <vector>

#include "ir/uop.h"
#include "kernel/opt/opt.h"

namespace tuff::kernel {

// How often each kind was drawn, and how often that was legal.
struct OptCounts {
  struct Row {
    uint64_t tried = 0, applied = 0;
  };
  std::array<Row, std::size(kOptKinds)> rows{};  // by kind
  Row& of(OptKind k) { return rows[size_t(k)]; }
  const Row& of(OptKind k) const { return rows[size_t(k)]; }
  Row total() const;
  OptCounts& operator+=(const OptCounts& other);
};
// "3 of 8 draws were legal (38 %): split 1, upcast 2 ...", of the kinds that the target allows.
std::string to_string(const OptCounts& counts, const Target& target);

// The same for the same seed everywhere; at most so many lanes. `ast` is what ast_for_opts() gave.
std::vector<Opt> random_opts(const ir::UOp& ast, const Target& target, uint64_t seed,
                             int64_t most_lanes);
// The sum over all calls in this process.
OptCounts random_opt_counts();

}  // namespace tuff::kernel
