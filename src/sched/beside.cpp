#include "sched/beside.h"

#include <algorithm>
#include <set>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "sched/call_graph.h"
#include "sched/loops.h"
#include "sched/parts.h"
#include "sched/slot_ast.h"

namespace tuff::sched {

using namespace ir;

namespace {

constexpr size_t kOpenLaunches = 8;  // that a kernel may still join

// Ends that have ranges in common.
std::vector<std::vector<UOp>> nests_of(std::span<const UOp> ends) {
  struct Nest {
    std::vector<UOp> ends;
    std::set<const Node*> ranges;
  };
  std::vector<Nest> nests;
  for (const UOp& end : ends) {
    Nest own{{end}, {}};
    for (const Node* n : toposort(end))
      if (n->op == Op::Range) own.ranges.insert(n);
    for (size_t i = 0; i < nests.size();) {
      const bool meets = std::ranges::any_of(
          nests[i].ranges, [&](const Node* r) { return own.ranges.contains(r); });
      if (!meets) {
        i++;
        continue;
      }
      own.ends.insert(own.ends.begin(), nests[i].ends.begin(), nests[i].ends.end());
      own.ranges.insert(nests[i].ranges.begin(), nests[i].ranges.end());
      nests.erase(nests.begin() + std::ptrdiff_t(i));
    }
    nests.push_back(std::move(own));
  }
  std::vector<std::vector<UOp>> out;
  for (Nest& n : nests) out.push_back(std::move(n.ends));
  return out;
}

// Rows of a matrix: each output sums up a run of memory. Sums over columns, whose outputs are
// neighbours in each row, are shared out otherwise.
bool sums_rows(std::span<const UOp> ends) {
  for (const UOp& end : ends) {
    const auto loops = closed_ranges(end.get());
    for (const Node* n : toposort(end)) {
      if (n->op != Op::Reduce || vectors_of(n) == 0) continue;
      for (const Node* load : toposort(n->src(0))) {
        if (load->op != Op::Load) continue;
        const bool across = std::ranges::any_of(loops, [&](const UOp& loop) {
          const auto step = coefficient(load->src(0)->src(1), loop);
          return !step || *step < 0 || *step > 1;
        });
        if (across) return true;
      }
    }
  }
  return false;
}

bool has_limits_known(const Node* n) {
  if (n->op == Op::Shared || is_ordered(n)) return false;
  return n->op != Op::Range || n->src(0)->is_const();
}

struct Thin {
  bool possible = false;
  UOp sink;  // Params carry slots of the schedule
  CallAccess access;
  size_t nodes = 0;
};

Thin thin_product(const Call& c, const TargetOf& target_of) {
  Thin out;
  if (c.kind != CallKind::Kernel || !(c.runs == 1) || !target_of(c.device).has_local) return out;
  const std::vector<const Node*> nodes = toposort(c.ast);
  if (!std::ranges::all_of(nodes, has_limits_known)) return out;
  std::span<const UOp> folded;
  for (const Node* n : nodes) {
    if (n->op != Op::Reduce) continue;
    const auto own = closed_ranges(n);
    if (!folded.empty() && !std::ranges::equal(folded, own)) return out;
    folded = own;
    if (vectors_of(n) > kThinProduct || extent(own) < kLeastBesideSteps) return out;
  }
  const auto ends = c.ast->src();
  if (!sums_rows(ends) || nests_of(ends).size() > 1) return out;
  out.sink = slot_ast(c);
  out.access = access_of(c);
  out.nodes = nodes.size();
  out.possible = true;
  return out;
}

struct Launch {
  std::string device;
  std::vector<uint32_t> calls;
  std::set<uint32_t> slots;
  size_t nodes = 0;
};

class Neighbours {
 public:
  // memory: by slot.
  Neighbours(std::span<const uint32_t> memory, const TargetOf& target_of)
      : memory_(memory), target_of_(target_of) {}

  // The calls in a new order, some of them one.
  std::vector<Call> run(std::span<const Call> calls) {
    for (const Call& c : calls) thin_.push_back(thin_product(c, target_of_));
    if (std::ranges::count_if(thin_, &Thin::possible) < 2) return {calls.begin(), calls.end()};
    graph_ = CallGraph(calls, memory_);
    std::vector<uint32_t> head(calls.size());
    for (uint32_t c = 0; c < calls.size(); c++) {
      head[c] = c;
      if (thin_[c].possible) place(c, calls[c].device);
    }
    for (const Launch& l : launches_)
      for (uint32_t c : l.calls) head[c] = l.calls.back();
    std::vector<Call> out;
    for (uint32_t c : graph_.order(head)) {
      const auto found = std::ranges::find_if(
          launches_, [&](const Launch& l) { return l.calls.back() == c && l.calls.size() > 1; });
      out.push_back(found == launches_.end() ? calls[c] : joined(*found));
    }
    return out;
  }

 private:
  void place(uint32_t c, const std::string& device) {
    size_t looked_at = 0;
    for (size_t i = launches_.size(); i-- > 0 && looked_at < kOpenLaunches;) {
      Launch& l = launches_[i];
      if (l.device != device) continue;
      looked_at++;
      if (!takes(l, c)) continue;
      add(l, c);
      graph_.contract(l.calls);
      return;
    }
    launches_.emplace_back().device = device;
    add(launches_.back(), c);
  }
  void add(Launch& l, uint32_t c) {
    const Thin& k = thin_[c];
    l.calls.push_back(c);
    l.slots.insert(k.access.reads.begin(), k.access.reads.end());
    l.slots.insert(k.access.writes.begin(), k.access.writes.end());
    l.nodes += k.nodes;
  }
  bool takes(const Launch& l, uint32_t c) const {
    const Thin& k = thin_[c];
    if (l.calls.size() >= kMaxBeside || l.nodes + k.nodes > kMaxBesideNodes) return false;
    std::set<uint32_t> all = l.slots;
    all.insert(k.access.reads.begin(), k.access.reads.end());
    all.insert(k.access.writes.begin(), k.access.writes.end());
    if (all.size() > target_of_(l.device).max_buffers) return false;
    const bool meets = std::ranges::any_of(l.calls, [&](uint32_t m) {
      const CallAccess& other = thin_[m].access;
      return meet(k.access.writes, other.writes) || meet(k.access.writes, other.reads) ||
             meet(k.access.reads, other.writes);
    });
    return !meets && !graph_.waits(c, l.calls) && !graph_.separated(l.calls, c);
  }
  bool meet(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) const {
    return std::ranges::any_of(a, [&](uint32_t x) {
      return std::ranges::any_of(b, [&](uint32_t y) { return memory_[x] == memory_[y]; });
    });
  }

  // Ranges of the products are numbered one after the other.
  Call joined(const Launch& l) const {
    std::vector<UOp> ends;
    int32_t next = 0;
    for (uint32_t c : l.calls) {
      UOpMap<UOp> own;
      int32_t end = next;
      for (const Node* n : toposort(thin_[c].sink)) {
        if (n->op != Op::Range) continue;
        const RangeArg& arg = n->get<RangeArg>();
        own.emplace(UOp(n), range(n->src(0), next + arg.id, arg.kind));
        end = std::max(end, next + arg.id + 1);
      }
      const UOp moved = substitute(thin_[c].sink, own);
      ends.insert(ends.end(), moved->src().begin(), moved->src().end());
      next = end;
    }
    return call_of(l.device, ends);
  }

  std::span<const uint32_t> memory_;
  const TargetOf& target_of_;
  std::vector<Thin> thin_;  // by call
  std::vector<Launch> launches_;
  CallGraph graph_;
};

}  // namespace

std::vector<Call> put_beside(Schedule&, std::span<const uint32_t> memory,
                             const TargetOf& target_of, std::span<const Call> calls) {
  return Neighbours(memory, target_of).run(calls);
}

std::vector<UOp> launches_of(const UOp& ast) {
  if (ast->src_count < 2) return {};
  const std::vector<std::vector<UOp>> nests = nests_of(ast->src());
  if (nests.size() < 2 || !std::ranges::all_of(nests, [](const auto& n) { return sums_rows(n); }))
    return {};
  std::vector<UOp> out;
  for (const std::vector<UOp>& ends : nests) out.push_back(sink(ends));
  return out;
}

}  // namespace tuff::sched
