#include "sched/normalize.h"

#include <algorithm>

#include "graph/walk.h"

namespace tuff::sched {

using graph::MarkScope;
using graph::Node;
using graph::Op;

void GraphKey::clear() {
  tokens.clear();
  inputs.clear();
  devices.clear();
  hash = 0;
}

// Four independent lanes: the multiply chain of one lane is too slow for a key made on every
// realize.
uint64_t hash_tokens(std::span<const uint64_t> tokens) {
  constexpr uint64_t kMul = 0x9fb21c651e98df25ull;
  uint64_t lane[4] = {1, 2, 3, tokens.size()};
  size_t i = 0;
  for (; i + 4 <= tokens.size(); i += 4) {
    for (int k = 0; k < 4; k++) {
      lane[k] = (lane[k] ^ tokens[i + k]) * kMul;
      lane[k] ^= lane[k] >> 29;
    }
  }
  for (; i < tokens.size(); i++) lane[0] = ((lane[0] ^ tokens[i]) * kMul) ^ (lane[0] >> 31);
  uint64_t h = 0;
  for (uint64_t l : lane) h = (h ^ l ^ (l >> 33)) * kMul + (h << 7);
  return h ^ (h >> 32);
}

namespace {

void note_leaf(const Node* n, GraphKey& key) {
  if (n->op == Op::Buffer) key.inputs.push_back(n->get<Ref<graph::Storage>>().get());
  if (n->device &&
      std::find(key.devices.begin(), key.devices.end(), n->device) == key.devices.end()) {
    key.devices.push_back(n->device);
  }
}

}  // namespace

// A node's structural key says everything below it but the sharing of Storages, and hash-consing
// makes sharing of nodes follow from sharing of leaves. So a first visit emits the key and an edge
// to a node seen before emits that node's number: together they pin the DAG. Breadth first, because
// the misses on a node's sources then overlap: this walk is bound by memory.
void normalize(std::span<const graph::UOp> sinks, GraphKey& key) {
  static thread_local std::vector<const Node*> queue;
  key.clear();
  queue.clear();
  const MarkScope scope;
  const uint64_t epoch = scope.epoch();
  uint32_t visited = 0;
  auto token = [&](const Node* n) {
    if (n->mark == epoch) return uint64_t(n->mark_order);
    n->mark = epoch;
    n->mark_order = visited++;
    if (n->src_count) queue.push_back(n);
    if (n->src_count == 0 || n->op == Op::Copy) note_leaf(n, key);
    return n->key;
  };
  auto emit = [&](std::span<const graph::UOp> list) {
    const size_t at = key.tokens.size();
    key.tokens.resize(at + list.size());
    for (size_t i = 0; i < list.size(); i++) key.tokens[at + i] = token(list[i].get());
  };
  emit(sinks);
  for (size_t i = 0; i < queue.size(); i++) emit(queue[i]->src());
  key.tokens.push_back(sinks.size());
  key.hash = hash_tokens(key.tokens);
}

}  // namespace tuff::sched
