#include "sched/merge.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_set>

#include "graph/symbolic.h"
#include "graph/walk.h"
#include "sched/canonical.h"

namespace tuff::sched {

using namespace graph;

namespace {

constexpr size_t kWindow = 2048;      // calls looked at together: bounds the sets of ancestors
constexpr size_t kOpenGroups = 8;     // groups that a kernel may still join
constexpr int64_t kMaxColumn = 4096;  // elements that one invocation adds up
constexpr size_t kMaxStreams = 24;    // buffers that one loop walks

// A kernel as merging sees it, or why it stays alone.
struct Candidate {
  bool possible = false;
  bool sums = false;        // over columns
  std::vector<UOp> ranges;  // of all its Ends
  UOp sink;                 // Params carry slots of the schedule instead of argument numbers
  std::vector<uint32_t> reads, writes;  // slots; what is updated in place is both
  int64_t elements = 1;
  size_t nodes = 0;
};

struct Stored {
  UOp offset, value;
};

// Loops over the same elements.
struct Nest {
  std::vector<UOp> ranges;
  UOp offset;  // of its stores
  std::vector<UOp> ends;
  std::set<uint32_t> reads;
  std::map<uint32_t, Stored> stored;
  size_t nodes = 0;
};

struct Group {
  std::string device;
  std::vector<uint32_t> calls;
  std::vector<Nest> nests;
  std::set<uint32_t> slots;
  int64_t elements = 0;
  size_t nodes = 0;
};

// Sets of calls of one window.
class CallSet {
 public:
  explicit CallSet(size_t n = 0) : words_((n + 63) / 64, 0) {}
  void add(size_t i) { words_[i / 64] |= uint64_t(1) << (i % 64); }
  void remove(size_t i) { words_[i / 64] &= ~(uint64_t(1) << (i % 64)); }
  bool has(size_t i) const { return words_[i / 64] >> (i % 64) & 1; }
  void unite(const CallSet& o) {
    for (size_t k = 0; k < words_.size(); k++) words_[k] |= o.words_[k];
  }
  bool meets(const CallSet& o) const {
    for (size_t k = 0; k < words_.size(); k++) {
      if (words_[k] & o.words_[k]) return true;
    }
    return false;
  }

 private:
  std::vector<uint64_t> words_;
};

bool contains(const std::vector<uint32_t>& v, uint32_t x) {
  return std::find(v.begin(), v.end(), x) != v.end();
}

void add_once(std::vector<uint32_t>& v, uint32_t x) {
  if (!contains(v, x)) v.push_back(x);
}

uint32_t slot_of(const UOp& index) { return uint32_t(index->src(0)->get<ParamArg>().slot); }

// Stored and loaded again it is what it was; narrower floats may be kept wider in registers.
bool survives_in_register(DType t) { return !is_float(t) || size_bytes(t) >= 4; }

// One loop list for all Ends, of constant sizes, no store gated.
bool has_plain_loops(const UOp& ast, const std::vector<const Node*>& nodes) {
  const auto loops = ast->src(0)->src().subspan(1);
  for (const UOp& end : ast->src()) {
    const auto own = end->src().subspan(1);
    if (!std::equal(own.begin(), own.end(), loops.begin(), loops.end())) return false;
    if (end->src(0)->src(0)->src_count > 2) return false;
    if (!(end->src(0)->src(0)->src(1) == ast->src(0)->src(0)->src(0)->src(1))) return false;
  }
  return std::none_of(nodes.begin(), nodes.end(),
                      [](const Node* n) { return n->op == Op::Range && !n->src(0)->is_const(); });
}

// How many elements a kernel's reductions walk per output; 0 where one is no sum over columns.
int64_t summed_per_output(const UOp& column, const std::vector<const Node*>& nodes) {
  int64_t walked = 0;
  for (const Node* n : nodes) {
    if (n->op == Op::Reduce) {
      int64_t own = 1;
      for (const UOp& r : n->src().subspan(1)) own *= r->src(0)->const_int();
      if (n->get<ReduceArg>().op != Op::Add) return 0;
      walked += own;
    } else if (n->op == Op::Load) {
      const auto step = coefficient(n->src(0)->src(1), column);
      if (n->src(0)->src_count > 2 || !step || *step < 0 || *step > 1) return 0;
    }
  }
  return walked;
}

Candidate candidate(const Call& c) {
  Candidate out;
  if (c.kind != CallKind::Kernel) return out;
  const std::vector<const Node*> nodes = toposort(c.ast);
  if (!has_plain_loops(c.ast, nodes)) return out;
  UOpMap<UOp> renamed;
  for (const Node* n : nodes) {
    if (n->op != Op::Param) continue;
    const ParamArg& p = n->get<ParamArg>();
    renamed.emplace(UOp(n), param(int32_t(c.args[size_t(p.slot)]), n->dtype, p.count));
  }
  out.possible = true;
  out.sink = substitute(c.ast, renamed);
  const auto loops = out.sink->src(0)->src().subspan(1);
  out.ranges.assign(loops.begin(), loops.end());
  for (const UOp& r : out.ranges) out.elements *= r->src(0)->const_int();
  out.sums =
      std::any_of(nodes.begin(), nodes.end(), [](const Node* n) { return n->op == Op::Reduce; });
  if (out.sums) {
    const int64_t walked =
        out.ranges.size() == 1 ? summed_per_output(out.ranges[0], toposort(out.sink)) : 0;
    if (walked == 0 || walked > kMaxColumn || out.elements * walked > kMaxSummedElements) return {};
    out.elements *= walked;
  }
  for (const Node* n : toposort(out.sink)) {
    out.nodes++;
    if (n->op == Op::Load) add_once(out.reads, slot_of(n->src(0)));
    if (n->op == Op::Store) add_once(out.writes, slot_of(n->src(0)));
  }
  return out;
}

class Merger {
 public:
  Merger(Schedule& s, std::span<const uint32_t> memory, const TargetOf& target_of)
      : s_(s), target_of_(target_of) {
    for (uint32_t i = 0; i < s.buffers.size(); i++) {
      const BufferSlot& b = s.buffers[i];
      const bool known = b.origin == BufferOrigin::Input && b.index < memory.size();
      memory_.push_back(known ? memory[b.index] : uint32_t(s.buffers.size()) + i);
    }
  }

  // Calls [begin, end) in a new order, merged.
  std::vector<Call> run(size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++) calls_.push_back(&s_.calls[i]);
    for (const Call* c : calls_) candidates_.push_back(candidate(*c));
    find_ancestors();
    group_of_.assign(calls_.size(), -1);
    for (uint32_t c = 0; c < calls_.size(); c++) place(c);
    return emit();
  }

 private:
  // ---- what waits for what ----
  std::vector<uint32_t> reads_of(uint32_t c) const {
    const Call& call = *calls_[c];
    if (candidates_[c].possible) return candidates_[c].reads;
    std::vector<uint32_t> out(call.args.begin() + call.output_count, call.args.end());
    if (call.kind != CallKind::Kernel) return out;
    for (const Node* n : toposort(call.ast)) {
      if (n->op == Op::Load && n->src(0)->op == Op::Index)
        add_once(out, call.args[slot_of(n->src(0))]);
    }
    return out;
  }

  void find_ancestors() {
    const size_t n = calls_.size();
    ancestors_.assign(n, CallSet(n));
    before_.resize(n);
    std::map<uint32_t, std::vector<uint32_t>> readers, writers;  // by memory, so far
    for (uint32_t c = 0; c < n; c++) {
      auto wait_for = [&](const std::vector<uint32_t>& list) {
        for (uint32_t b : list) add_once(before_[c], b);
      };
      std::vector<uint32_t> reads, writes;
      for (uint32_t s : reads_of(c)) add_once(reads, memory_[s]);
      for (uint32_t k = 0; k < calls_[c]->output_count; k++)
        add_once(writes, memory_[calls_[c]->args[k]]);
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

  // Whether a call outside the group stands between it and c.
  bool separated(const Group& g, uint32_t c) const {
    CallSet members(calls_.size());
    for (uint32_t m : g.calls) members.add(m);
    for (uint32_t x = 0; x < c; x++) {
      if (!members.has(x) && ancestors_[c].has(x) && ancestors_[x].meets(members)) return true;
    }
    return false;
  }

  // From now on what waits for one member waits for all, and for all that they wait for.
  void contract(const Group& g) {
    CallSet members(calls_.size()), all(calls_.size());
    for (uint32_t m : g.calls) {
      members.add(m);
      all.add(m);
      all.unite(ancestors_[m]);
    }
    for (uint32_t x = 0; x < calls_.size(); x++) {
      if (members.has(x) || ancestors_[x].meets(members)) ancestors_[x].unite(all);
      if (members.has(x)) {
        for (uint32_t m : g.calls) ancestors_[x].remove(m);
      }
    }
  }

  // ---- which kernel joins which group ----
  void place(uint32_t c) {
    const Candidate& k = candidates_[c];
    if (!k.possible) return;
    size_t tried = 0;
    for (size_t i = groups_.size(); i-- > 0 && tried < kOpenGroups;) {
      if (groups_[i].device != calls_[c]->device) continue;
      tried++;
      if (!join(groups_[i], c)) continue;
      group_of_[c] = int32_t(i);
      if (groups_[i].calls.size() > 1) contract(groups_[i]);
      return;
    }
    Group g;
    g.device = calls_[c]->device;
    groups_.push_back(std::move(g));
    group_of_[c] = int32_t(groups_.size() - 1);
    add_nest(groups_.back(), k);
    account(groups_.back(), c);
  }

  bool join(Group& g, uint32_t c) {
    const Candidate& k = candidates_[c];
    if (g.nodes + k.nodes > kMaxMergedNodes || !fits_buffers(g, k) || separated(g, c)) return false;
    int32_t nest = -1;
    for (size_t i = 0; i < g.nests.size(); i++) {
      if (!conflicts(g.nests[i], k)) continue;
      if (nest >= 0) return false;
      nest = int32_t(i);
    }
    const bool depends = nest >= 0;
    if (depends && k.sums) return false;
    for (size_t i = 0; !k.sums && !depends && nest < 0 && i < g.nests.size(); i++) {
      if (shares_input(g.nests[i], k) && walks_alike(g.nests[i], k)) nest = int32_t(i);
    }
    if (nest >= 0 && join_nest(g.nests[size_t(nest)], k)) {
      account(g, c);
      return true;
    }
    if (depends || !stands_beside(g, k)) return false;
    add_nest(g, k);
    account(g, c);
    return true;
  }

  bool fits_buffers(const Group& g, const Candidate& k) const {
    std::set<uint32_t> all = g.slots;
    all.insert(k.reads.begin(), k.reads.end());
    all.insert(k.writes.begin(), k.writes.end());
    return all.size() <= target_of_(g.device).max_buffers;
  }

  // Flat loops only: the launch is shared out along one axis per nest.
  bool stands_beside(const Group& g, const Candidate& k) const {
    auto small = [](const std::vector<UOp>& ranges) {
      return ranges.empty() ||
             (ranges.size() == 1 && ranges[0]->src(0)->const_int() <= kMaxNestElements);
    };
    return g.nests.size() < kMaxNests && small(k.ranges) && small(g.nests[0].ranges) &&
           g.elements + k.elements <= kMaxMergedElements;
  }

  bool touches(const Nest& n, uint32_t slot, bool stores_only) const {
    auto same = [&](uint32_t s) { return memory_[s] == memory_[slot]; };
    const bool stored =
        std::any_of(n.stored.begin(), n.stored.end(), [&](const auto& s) { return same(s.first); });
    return stored || (!stores_only && std::any_of(n.reads.begin(), n.reads.end(), same));
  }
  bool conflicts(const Nest& n, const Candidate& k) const {
    return std::any_of(k.reads.begin(), k.reads.end(),
                       [&](uint32_t s) { return touches(n, s, true); }) ||
           std::any_of(k.writes.begin(), k.writes.end(),
                       [&](uint32_t s) { return touches(n, s, false); });
  }
  static bool shares_input(const Nest& n, const Candidate& k) {
    return std::any_of(k.reads.begin(), k.reads.end(),
                       [&](uint32_t s) { return n.reads.count(s) > 0; });
  }

  static UOpMap<UOp> onto(const std::vector<UOp>& from, const std::vector<UOp>& to) {
    UOpMap<UOp> map;
    for (size_t i = 0; i < from.size(); i++) map.emplace(from[i], to[i]);
    return map;
  }
  static bool walks_alike(const Nest& n, const Candidate& k) {
    if (n.ranges.size() != k.ranges.size()) return false;
    for (size_t i = 0; i < n.ranges.size(); i++) {
      if (!(n.ranges[i]->src(0) == k.ranges[i]->src(0))) return false;
    }
    return substitute(k.sink->src(0)->src(0)->src(0)->src(1), onto(k.ranges, n.ranges)) == n.offset;
  }

  // Every access of a slot below root is at this offset.
  static bool accessed_at(std::span<const UOp> roots, uint32_t slot, const UOp& offset) {
    for (const Node* n : toposort(roots)) {
      if (n->op != Op::Index || slot_of(UOp(n)) != slot) continue;
      if (n->src_count > 2 || !(n->src(1) == offset)) return false;
    }
    return true;
  }

  // Into the loops of a nest: what it stored is taken from there.
  bool join_nest(Nest& n, const Candidate& k) const {
    std::set<uint32_t> all = n.reads;
    all.insert(k.reads.begin(), k.reads.end());
    all.insert(k.writes.begin(), k.writes.end());
    for (const auto& [slot, s] : n.stored) all.insert(slot);
    // What the fuser cut because it was too long for one loop stays cut.
    if (n.nodes + k.nodes > kMaxNestNodes || all.size() > kMaxStreams || !walks_alike(n, k))
      return false;
    const UOp moved = substitute(k.sink, onto(k.ranges, n.ranges));
    if (!may_share_loops(n, k, moved)) return false;
    UOpMap<UOp> values;
    for (const Node* node : toposort(moved)) {
      if (node->op != Op::Load) continue;
      const auto it = n.stored.find(slot_of(node->src(0)));
      if (it == n.stored.end()) continue;
      if (!(it->second.value->dtype == node->dtype) || !survives_in_register(node->dtype))
        return false;
      values.emplace(UOp(node), it->second.value);
    }
    add_ends(n, values.empty() ? moved : substitute(moved, values));
    return true;
  }

  bool may_share_loops(const Nest& n, const Candidate& k, const UOp& moved) const {
    auto other_slot = [&](const Nest& nest, uint32_t slot) {  // the same memory by another name
      auto alias = [&](uint32_t s) { return s != slot && memory_[s] == memory_[slot]; };
      return std::any_of(nest.reads.begin(), nest.reads.end(), alias) ||
             std::any_of(nest.stored.begin(), nest.stored.end(),
                         [&](const auto& s) { return alias(s.first); });
    };
    for (uint32_t w : k.writes) {
      if (n.stored.count(w) || other_slot(n, w)) return false;
      if (n.reads.count(w) && !accessed_at(n.ends, w, n.offset)) return false;
    }
    for (uint32_t r : k.reads) {
      if (touches(n, r, true) && other_slot(n, r)) return false;
      if (n.stored.count(r) && !accessed_at(moved->src(), r, n.offset)) return false;
    }
    return true;
  }

  void add_nest(Group& g, const Candidate& k) {
    Nest n;
    for (const UOp& r : k.ranges)
      n.ranges.push_back(range(r->src(0), next_range_++, AxisKind::Loop));
    const UOp moved = substitute(k.sink, onto(k.ranges, n.ranges));
    n.offset = moved->src(0)->src(0)->src(0)->src(1);
    add_ends(n, moved);
    g.nests.push_back(std::move(n));
    g.elements += k.elements;
  }
  static void add_ends(Nest& n, const UOp& moved) {
    for (const UOp& end : moved->src()) {
      const UOp& index = end->src(0)->src(0);
      n.stored[slot_of(index)] = {index->src(1), end->src(0)->src(1)};
      n.ends.push_back(end);
    }
    n.nodes += toposort(moved).size();
    for (const Node* node : toposort(moved)) {
      if (node->op == Op::Load) n.reads.insert(slot_of(node->src(0)));
    }
  }
  void account(Group& g, uint32_t c) {
    const Candidate& k = candidates_[c];
    g.calls.push_back(c);
    g.slots.insert(k.reads.begin(), k.reads.end());
    g.slots.insert(k.writes.begin(), k.writes.end());
    g.nodes += k.nodes;
  }

  // ---- the list ----
  // Each call or group after what it waits for; groups stand where their last member stood.
  std::vector<Call> emit() {
    const size_t n = calls_.size();
    auto head = [&](uint32_t c) {
      return group_of_[c] < 0 ? c : groups_[size_t(group_of_[c])].calls.back();
    };
    std::vector<std::set<uint32_t>> after(n);
    std::vector<size_t> waiting(n, 0);
    for (uint32_t c = 0; c < n; c++) {
      for (uint32_t b : before_[c]) {
        if (head(b) != head(c) && after[head(b)].insert(head(c)).second) waiting[head(c)]++;
      }
    }
    std::set<uint32_t> ready;
    for (uint32_t c = 0; c < n; c++) {
      if (head(c) == c && waiting[c] == 0) ready.insert(c);
    }
    std::vector<Call> out;
    while (!ready.empty()) {
      const uint32_t c = *ready.begin();
      ready.erase(ready.begin());
      const bool alone = group_of_[c] < 0 || groups_[size_t(group_of_[c])].calls.size() == 1;
      out.push_back(alone ? *calls_[c] : merged(groups_[size_t(group_of_[c])]));
      for (uint32_t next : after[c]) {
        if (--waiting[next] == 0) ready.insert(next);
      }
    }
    return out;
  }

  // A temporary that only its own group reads is never stored.
  bool is_needed(const Group& g, uint32_t slot) const {
    if (s_.buffers[slot].origin != BufferOrigin::Temp) return true;
    if (contains(s_.sink_slots, slot)) return true;
    std::set<const Call*> own;
    for (uint32_t c : g.calls) own.insert(calls_[c]);
    for (const Call& c : s_.calls) {
      if (!own.count(&c) && contains(c.args, slot)) return true;
    }
    return false;
  }

  Call merged(const Group& g) const {
    Call call;
    call.device = g.device;
    std::vector<UOp> ends;
    for (const Nest& n : g.nests) {
      for (const UOp& end : n.ends) {
        const uint32_t slot = slot_of(end->src(0)->src(0));
        if (!is_needed(g, slot)) continue;
        ends.push_back(end);
        call.args.push_back(slot);
      }
    }
    call.output_count = uint32_t(call.args.size());
    UOp ast = sink(ends);
    UOpMap<UOp> numbered;
    for (const Node* n : toposort(ast)) {
      if (n->op != Op::Param) continue;
      const ParamArg& p = n->get<ParamArg>();
      add_once(call.args, uint32_t(p.slot));
      const auto at = std::find(call.args.begin(), call.args.end(), uint32_t(p.slot));
      numbered.emplace(UOp(n), param(int32_t(at - call.args.begin()), n->dtype, p.count));
    }
    call.ast = canonicalize(substitute(ast, numbered));
    return call;
  }

  Schedule& s_;
  const TargetOf& target_of_;
  std::vector<uint32_t> memory_;  // by slot
  std::vector<const Call*> calls_;
  std::vector<Candidate> candidates_;
  std::vector<std::vector<uint32_t>> before_;
  std::vector<CallSet> ancestors_;
  std::vector<Group> groups_;
  std::vector<int32_t> group_of_;
  int32_t next_range_ = 0;
};

// Slots that no call uses any more vanish.
void drop_unused_slots(Schedule& s) {
  std::vector<uint8_t> used(s.buffers.size(), 0);
  for (const Call& c : s.calls) {
    for (uint32_t a : c.args) used[a] = 1;
  }
  for (uint32_t a : s.sink_slots) used[a] = 1;
  std::vector<uint32_t> number(s.buffers.size(), 0);
  std::vector<BufferSlot> kept;
  for (size_t i = 0; i < s.buffers.size(); i++) {
    number[i] = uint32_t(kept.size());
    if (used[i] || s.buffers[i].origin != BufferOrigin::Temp) kept.push_back(s.buffers[i]);
  }
  s.buffers = std::move(kept);
  for (Call& c : s.calls) {
    for (uint32_t& a : c.args) a = number[a];
  }
  for (uint32_t& a : s.sink_slots) a = number[a];
}

}  // namespace

void merge_kernels(Schedule& s, std::span<const uint32_t> memory, const TargetOf& target_of) {
  std::vector<Call> out;
  const size_t n = s.calls.size();
  std::vector<std::vector<Call>> windows;
  for (size_t begin = 0; begin < n; begin += kWindow)
    windows.push_back(Merger(s, memory, target_of).run(begin, std::min(begin + kWindow, n)));
  for (std::vector<Call>& w : windows) std::move(w.begin(), w.end(), std::back_inserter(out));
  s.calls = std::move(out);
  drop_unused_slots(s);
}

}  // namespace tuff::sched
