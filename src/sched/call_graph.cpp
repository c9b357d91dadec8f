#include "sched/call_graph.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/contains.h"
#include "ir/walk.h"

namespace tuff::sched {

using namespace ir;

void CallSet::unite(const CallSet& o) {
  for (size_t k = 0; k < words_.size(); k++) words_[k] |= o.words_[k];
}

bool CallSet::meets(const CallSet& o) const {
  for (size_t k = 0; k < words_.size(); k++) {
    if (words_[k] & o.words_[k]) return true;
  }
  return false;
}

CallAccess access_of(const Call& c) {
  CallAccess out;
  for (uint32_t k = 0; k < c.output_count; k++) add_once(out.writes, c.args[k]);
  if (c.kind != CallKind::Kernel) {
    out.reads.assign(c.args.begin() + c.output_count, c.args.end());
    return out;
  }
  for (const Node* n : toposort(c.ast)) {
    if (n->op == Op::Load && n->src(0)->op == Op::Index && n->src(0)->src(0)->op == Op::Param)
      add_once(out.reads, c.args[size_t(n->src(0)->src(0)->get<ParamArg>().slot)]);
  }
  return out;
}

CallGraph::CallGraph(std::span<const Call> calls, std::span<const uint32_t> memory) {
  const size_t n = calls.size();
  ancestors_.assign(n, CallSet(n));
  before_.resize(n);
  std::map<uint32_t, std::vector<uint32_t>> readers, writers;  // by memory, so far
  for (uint32_t c = 0; c < n; c++) {
    auto wait_for = [&](const std::vector<uint32_t>& list) {
      for (uint32_t b : list) add_once(before_[c], b);
    };
    const CallAccess slots = access_of(calls[c]);
    std::vector<uint32_t> reads, writes;
    for (uint32_t s : slots.reads) add_once(reads, memory[s]);
    for (uint32_t s : slots.writes) add_once(writes, memory[s]);
    for (uint32_t m : reads) wait_for(writers[m]);
    for (uint32_t m : writes) {
      wait_for(writers[m]);
      wait_for(readers[m]);
    }
    for (uint32_t m : reads) readers[m].push_back(c);
    for (uint32_t m : writes) writers[m].push_back(c);
    for (uint32_t b : before_[c]) {
      ancestors_[c].add(b);
      ancestors_[c].unite(ancestors_[b]);
    }
  }
}

bool CallGraph::separated(std::span<const uint32_t> members, uint32_t c) const {
  CallSet own(ancestors_.size());
  for (uint32_t m : members) own.add(m);
  for (uint32_t x = 0; x < c; x++) {
    if (!own.has(x) && ancestors_[c].has(x) && ancestors_[x].meets(own)) return true;
  }
  return false;
}

bool CallGraph::waits(uint32_t c, std::span<const uint32_t> members) const {
  return std::ranges::any_of(members, [&](uint32_t m) { return ancestors_[c].has(m); });
}

void CallGraph::contract(std::span<const uint32_t> members) {
  const size_t n = ancestors_.size();
  CallSet own(n), all(n);
  for (uint32_t m : members) {
    own.add(m);
    all.add(m);
    all.unite(ancestors_[m]);
  }
  for (uint32_t x = 0; x < n; x++) {
    if (own.has(x) || ancestors_[x].meets(own)) ancestors_[x].unite(all);
    if (!own.has(x)) continue;
    for (uint32_t m : members) ancestors_[x].remove(m);
  }
}

std::vector<uint32_t> CallGraph::order(std::span<const uint32_t> head) const {
  const size_t n = head.size();
  std::vector<std::set<uint32_t>> after(n);
  std::vector<size_t> waiting(n, 0);
  for (uint32_t c = 0; c < n; c++) {
    for (uint32_t b : before_[c]) {
      if (head[b] != head[c] && after[head[b]].insert(head[c]).second) waiting[head[c]]++;
    }
  }
  std::set<uint32_t> ready;
  for (uint32_t c = 0; c < n; c++) {
    if (head[c] == c && waiting[c] == 0) ready.insert(c);
  }
  std::vector<uint32_t> out;
  while (!ready.empty()) {
    const uint32_t c = *ready.begin();
    ready.erase(ready.begin());
    out.push_back(c);
    for (uint32_t next : after[c]) {
      if (--waiting[next] == 0) ready.insert(next);
    }
  }
  return out;
}

}  // namespace tuff::sched
