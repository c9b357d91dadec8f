#include "sched/normalize.h"

#include "base/contains.h"
#include "ir/walk.h"

namespace tuff::sched {

using ir::MarkScope;
using ir::Node;
using ir::Op;

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

uint64_t edge_token(uint64_t target, uint64_t junction) {
  return target ^ (junction + 1) * 0x9e3779b97f4a7c15ull;
}

void note_leaf(const Node* n, GraphKey& key) {
  if (n->op == Op::Buffer) key.inputs.push_back(n->get<Ref<ir::Storage>>().get());
  if (n->device) add_once(key.devices, n->device);
}

}  // namespace

// A node's structural key says everything below it but which Storages it reads, and hash-consing
// makes sharing of nodes follow from sharing of leaves. So an edge is pinned by the key of the node
// it ends at and by which junction lies below that: its number if it was seen before, its key if it
// is new, and then its own edges follow. What stands between junctions is never visited. Breadth
// first, because the misses on a node's sources then overlap: this walk is bound by memory.
void normalize(std::span<const ir::UOp> sinks, GraphKey& key) {
  static thread_local std::vector<const Node*> queue;
  key.clear();
  queue.clear();
  const MarkScope scope;
  const uint64_t epoch = scope.epoch();
  auto token = [&](const Node* n) {
    const Node* j = n->junction;
    if (!j) return edge_token(n->key, 0);
    if (j->mark == epoch) return edge_token(n->key, j->mark_order);
    j->mark = epoch;
    queue.push_back(j);
    j->mark_order = uint32_t(queue.size());
    if (j->src_count == 0 || std::holds_alternative<ir::Placement>(j->arg)) note_leaf(j, key);
    return edge_token(n->key, j->key);
  };
  auto emit = [&](std::span<const ir::UOp> list) {
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
