#include "sched/beside.h"

#include <algorithm>
#include <set>

#include "base/contains.h"
#include "ir/kernel_floor.h"
#include "ir/symbolic.h"
#include "sched/call_fusion.h"
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

SlotKernel thin_product(const Call& c, uint32_t number, const Target& target) {
  if (c.kind != CallKind::Kernel || !(c.runs == 1) || !target.has_local) return {};
  const std::vector<const Node*> nodes = toposort(c.ast);
  if (!has_fixed_loops(nodes)) return {};
  std::span<const UOp> folded;
  for (const Node* n : nodes) {
    if (n->op != Op::Reduce) continue;
    const auto own = closed_ranges(n);
    if (!folded.empty() && !std::ranges::equal(folded, own)) return {};
    folded = own;
    if (vectors_of(n) > kThinProduct || extent(own) < kLeastBesideSteps) return {};
  }
  const auto ends = c.ast->src();
  if (!sums_rows(ends) || nests_of(ends).size() > 1) return {};
  SlotKernel out = slot_kernel(c, number);
  out.possible = true;
  return out;
}

class Neighbours : CallFusion {
 public:
  using CallFusion::CallFusion;

  // The calls in a new order, some of them one.
  std::vector<Call> run() {
    for (uint32_t c = 0; c < calls_.size(); c++)
      thin_.push_back(thin_product(calls_[c], c, target(c)));
    for (const SlotKernel& k : thin_)
      if (k.possible) place(k);
    return ordered([&](uint32_t c) {
      return joined(*std::ranges::find_if(
          launches_, [&](const CallGroup& l) { return l.calls.back() == c; }));
    });
  }

 private:
  void place(const SlotKernel& k) {
    const std::string& device = calls_[k.calls[0]].device;
    size_t looked_at = 0;
    for (size_t i = launches_.size(); i-- > 0 && looked_at < kOpenLaunches;) {
      if (launches_[i].device != device) continue;
      looked_at++;
      if (takes(launches_[i], k)) return add(launches_[i], k);
    }
    launches_.emplace_back().device = device;
    add(launches_.back(), k);
  }
  bool takes(const CallGroup& l, const SlotKernel& k) const {
    if (l.calls.size() >= kMaxBeside || l.nodes + k.nodes > kMaxBesideNodes || !fits_buffers(l, k))
      return false;
    const bool meets = std::ranges::any_of(l.calls, [&](uint32_t m) {
      const SlotKernel& other = thin_[m];
      return meet(k.writes, other.writes) || meet(k.writes, other.reads) ||
             meet(k.reads, other.writes);
    });
    return !meets && !graph_.waits(k.calls[0], l.calls) && !graph_.separated(l.calls, k.calls[0]);
  }

  // Ranges of the products are numbered one after the other.
  Call joined(const CallGroup& l) const {
    std::vector<UOp> ends;
    int32_t next = 0;
    for (uint32_t c : l.calls) {
      UOpMap<UOp> own;
      int32_t end = next;
      for (const Node* n : toposort(thin_[c].ends)) {
        if (n->op != Op::Range) continue;
        const RangeArg& arg = n->get<RangeArg>();
        own.emplace(UOp(n), range(n->src(0), next + arg.id, arg.kind));
        end = std::max(end, next + arg.id + 1);
      }
      const std::vector<UOp> moved = substitute(thin_[c].ends, own);
      ends.insert(ends.end(), moved.begin(), moved.end());
      next = end;
    }
    return call_of(l.device, ends);
  }

  std::vector<SlotKernel> thin_;  // by call
  std::vector<CallGroup> launches_;
};

}  // namespace

std::vector<Call> put_beside(Schedule& s, std::span<const uint32_t> memory,
                             const TargetOf& target_of, std::span<const Call> calls) {
  return Neighbours(s, memory, target_of, calls).run();
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
