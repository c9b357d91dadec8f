#include "sched/root_graph.h"

#include <algorithm>

#include "base/contains.h"

namespace tuff::sched {

using namespace ir;

RootGraph::RootGraph(const FusePlan& plan) : plan_(plan) {
  const size_t n = plan.nodes.size();
  reads.resize(n);
  users.resize(n);
  members.resize(n);
  reduces.assign(n, 0);
  streams.assign(n, 0);
  host.resize(n);
  std::vector<uint32_t> stamp(n, UINT32_MAX);
  for (uint32_t i = 0; i < n; i++) {
    host[i] = i;
    if (!plan.is_root(i)) continue;
    roots.push_back(i);
    scan(i, stamp);
  }
}

// Walks the root's own kernel: down to leaves, Assigns and other roots.
void RootGraph::scan(uint32_t root, std::vector<uint32_t>& stamp) {
  std::vector<uint32_t> work;
  int64_t reduced = 0, largest_read = 0;
  auto visit = [&](uint32_t i) {
    if (stamp[i] == root) return;
    stamp[i] = root;
    const Node& n = *plan_.nodes[i];
    const bool is_root = i != root && (plan_.realized[i] || n.op == Op::Assign);
    if (is_root || n.op == Op::Buffer)
      largest_read = std::max(largest_read, element_count(n.shape));
    if (is_root) {
      const uint32_t r = n.op == Op::Assign ? uint32_t(plan_.stored_by[i]) : i;
      if (!contains(reads[root], r)) {
        reads[root].push_back(r);
        users[r].push_back(root);
      }
      return;
    }
    if (n.op == Op::Reduce) reduced = std::max(reduced, element_count(n.src(0)->shape));
    work.push_back(i);
  };
  visit(root);
  // What has to be there before counts as read.
  if (const auto it = plan_.earlier.find(root); it != plan_.earlier.end()) visit(it->second);
  while (!work.empty()) {
    const uint32_t i = work.back();
    work.pop_back();
    const auto src = plan_.sources(i);
    for (size_t k = plan_.nodes[i]->op == Op::Assign ? 1 : 0; k < src.size(); k++) visit(src[k]);
  }
  if (assigned_part(*plan_.nodes[root])) {
    const uint32_t before = plan_.version_before(root);
    if (plan_.nodes[before]->op == Op::Assign) visit(before);
  }
  reduces[root] = reduced > 0;
  streams[root] = reduced > 0 && largest_read >= reduced;
}

bool RootGraph::may_absorb(uint32_t into, uint32_t p) const {
  const Node &a = *plan_.nodes[into], &b = *plan_.nodes[p];
  if (host[p] != p || host[into] != into || !reduces[p] || !streams[p]) return false;
  if (reduces[into] && !streams[into]) return false;
  if (is_transfer(a) || a.op == Op::Assign || a.op == Op::Scatter || a.op == Op::Again ||
      a.op == Op::Loop || a.op == Op::CustomKernel)
    return false;
  if (!(is_alu(b.op) || b.op == Op::Reduce)) return false;
  if (!(a.shape == b.shape) || plan_.device_of(into) != plan_.device_of(p)) return false;
  if (plan_.stores_for[p] != kNone || plan_.stores_for[into] != kNone) return false;
  return !reaches_through_others(into, p);
}

// Whether some other kernel between p and `into` needs p: then they cannot be one kernel.
bool RootGraph::reaches_through_others(uint32_t into, uint32_t p) const {
  uint32_t lowest = p;
  for (uint32_t m : members[p]) lowest = std::min(lowest, m);
  std::vector<uint8_t> seen(into + 1, 0);
  std::vector<uint32_t> work;
  auto push_reads = [&](uint32_t r, bool skip_p) {
    for (uint32_t x : reads[r]) {
      const uint32_t h = host[x];
      if (h == into || (skip_p && h == p)) continue;
      if (h < lowest || (h < seen.size() && seen[h])) continue;
      if (h < seen.size()) seen[h] = 1;
      work.push_back(h);
    }
  };
  push_reads(into, true);
  for (uint32_t m : members[into]) push_reads(m, true);
  while (!work.empty()) {
    const uint32_t h = work.back();
    work.pop_back();
    if (h == p) return true;
    push_reads(h, false);
    for (uint32_t m : members[h]) push_reads(m, false);
  }
  return false;
}

void RootGraph::absorb(uint32_t into, uint32_t p) {
  std::vector<uint32_t>& to = members[into];
  to.push_back(p);
  to.insert(to.end(), members[p].begin(), members[p].end());
  std::sort(to.begin(), to.end());
  members[p].clear();
  for (uint32_t m : to) host[m] = into;
}

void RootGraph::release(uint32_t into) {
  for (uint32_t m : members[into]) host[m] = m;
  members[into].clear();
}

}  // namespace tuff::sched
