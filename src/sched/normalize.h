// The cache key of a graph: a token stream over its DAG that is equal for two graphs exactly when
// they differ only in which Storages they use. Called by schedule() on every realize, so it only
// reads: no node is made, no reference counted but those of the Storages. Knows nothing of kernels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ir/uop.h"

namespace tuff::sched {

struct GraphKey {
  std::vector<uint64_t> tokens;             // compared as a whole on a cache hit
  uint64_t hash = 0;                        // of tokens
  std::vector<ir::Storage*> inputs;      // in order of first encounter; kept alive by the sinks
  std::vector<const std::string*> devices;  // distinct, interned, in order of first encounter
  void clear();
};

// Fills `key` (cleared first; its memory is reused from call to call).
void normalize(std::span<const ir::UOp> sinks, GraphKey& key);

uint64_t hash_tokens(std::span<const uint64_t> tokens);

}  // namespace tuff::sched
