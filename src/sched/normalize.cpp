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

// Four independent lanes: the multiply chain of one lane is too slow for a key made on every realize.
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

struct Frame {
  const Node* node;
  uint32_t next;
};

void note_leaf(const Node* n, GraphKey& key) {
  if (n->op == Op::Buffer) key.inputs.push_back(n->get<Ref<graph::Storage>>().get());
  if (n->device && std::find(key.devices.begin(), key.devices.end(), n->device) == key.devices.end()) {
    key.devices.push_back(n->device);
  }
}

}  // namespace

// A node's structural key says everything below it but the sharing of Storages, and hash-consing makes
// sharing of nodes follow from sharing of leaves. So a first visit emits the key and an edge to a node
// seen before emits that node's number: together they pin the DAG.
void normalize(std::span<const graph::UOp> sinks, GraphKey& key) {
  static thread_local std::vector<Frame> stack;
  key.clear();
  stack.clear();
  const MarkScope scope;
  uint32_t visited = 0;
  auto enter = [&](const Node* n) {
    if (!scope.visit(n)) {
      key.tokens.push_back(n->mark_order);
      return;
    }
    n->mark_order = visited++;
    key.tokens.push_back(n->key);
    if (n->src_count == 0 || n->op == Op::Copy) note_leaf(n, key);
    if (n->src_count) stack.push_back({n, 0});
  };
  for (const graph::UOp& sink : sinks) {
    key.tokens.push_back(0x51d5);
    enter(sink.get());
    while (!stack.empty()) {
      Frame& f = stack.back();
      const Node* n = f.node;
      const uint32_t i = f.next++;
      if (f.next == n->src_count) stack.pop_back();
      enter(n->src_begin[i].get());
    }
  }
  key.hash = hash_tokens(key.tokens);
}

}  // namespace tuff::sched
