// check_hazards: the trace as streams of nodes, vector clocks along them, and a shadow of memory.
#include "hcq/hazards.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "base/check.h"

namespace tuff::hcq {
namespace {

// Per stream: so many of its nodes, from the first one on, have happened before. Whatever orders
// two streams orders everything that stands before it in one of them, so that prefixes are exact.
using Clock = std::vector<size_t>;

constexpr size_t kNone = SIZE_MAX;
constexpr uint32_t kHostStream = 0;

// One thing that an agent does: a command, or the beginning or the end of a submission.
struct Node {
  size_t event = 0, command = 0;
  uint32_t stream = kHostStream;
  size_t position = 0;  // in its stream
  const std::vector<Access>* accesses = nullptr;
  const std::string* label = nullptr;
  size_t after = kNone;        // a node of another stream that has to be finished before
  bool publishes = false;      // others may come after it
  bool orders_stream = false;  // all before it in its stream with all after it
  bool barrier = false, wait = false;
};

struct WaitFor {
  size_t node;
  const Signal* signal;
  uint64_t value;
};

// The trace, flattened: every stream's nodes in order, waits tied to what they wait for.
class Streams {
 public:
  explicit Streams(const Trace& trace) : of_stream(1), trace_(trace) {
    for (size_t e = 0; e < trace.events.size(); e++)
      std::visit([&](const auto& event) { add(e, event); }, trace.events[e]);
    for (const WaitFor& w : waits_) tie(w);
  }

  std::vector<Node> nodes;
  std::vector<std::vector<size_t>> of_stream;  // the host's nodes, then each queue's
  std::vector<size_t> stuck;                   // waits that nothing ends

 private:
  const Trace& trace_;
  std::map<const Signal*, std::map<uint64_t, size_t>> signals_;
  std::vector<WaitFor> waits_;

  size_t append(Node n) {
    if (n.stream >= of_stream.size()) of_stream.resize(n.stream + 1);
    n.position = of_stream[n.stream].size();
    of_stream[n.stream].push_back(nodes.size());
    nodes.push_back(n);
    return nodes.size() - 1;
  }
  void signal(size_t node, const Signal* s, uint64_t value) {
    nodes[node].publishes = true;
    if (!signals_[s].emplace(value, node).second)
      fail<InvalidArgument>("a timeline is signalled to {} twice", value);
  }
  void wait(size_t node, const Signal* s, uint64_t value) {
    nodes[node].wait = true;
    waits_.push_back({node, s, value});
  }
  void tie(const WaitFor& w) {
    const auto reached = trace_.reached.find(w.signal);
    if (w.value <= (reached == trace_.reached.end() ? 0 : reached->second)) return;
    const auto& values = signals_[w.signal];
    const auto it = values.lower_bound(w.value);
    if (it == values.end())
      stuck.push_back(w.node);
    else
      nodes[w.node].after = it->second;
  }

  void add(size_t e, const HostAccess& h) {
    append({.event = e, .accesses = &h.accesses, .label = &h.label});
  }
  void add(size_t e, const HostWait& h) { wait(append({.event = e}), h.signal, h.value); }
  void add(size_t e, const HostSignal& h) { signal(append({.event = e}), h.signal, h.value); }
  void add(size_t e, const Submission& s) {
    TUFF_CHECK(s.list != nullptr && s.queue < TracePlace::kHost - 1, "a submission of nothing");
    const uint32_t stream = s.queue + 1;
    const size_t submit = append({.event = e, .publishes = true});
    append({.event = e,
            .stream = stream,
            .after = submit,
            .orders_stream = trace_.order == SubmissionOrder::AfterAllBefore});
    for (size_t c = 0; c < s.list->commands.size(); c++) add_command(e, c, s, stream);
    const size_t end = append({.event = e, .stream = stream});
    if (s.timeline) signal(end, s.timeline, s.value);
  }
  void add_command(size_t e, size_t c, const Submission& s, uint32_t stream) {
    const Command& command = s.list->commands[c];
    const size_t n = append({.event = e, .command = c, .stream = stream});
    nodes[n].accesses = &command.accesses;
    nodes[n].label = &command.label;
    const auto value = [&](uint32_t slot) {
      TUFF_CHECK(slot < s.slots.size(), "slot {} of {}", slot, s.slots.size());
      return s.slots[slot];
    };
    if (const auto* w = std::get_if<WaitCmd>(&command.body))
      wait(n, w->signal, value(w->value_slot));
    if (const auto* g = std::get_if<SignalCmd>(&command.body))
      signal(n, g->signal, value(g->value_slot));
    nodes[n].barrier = nodes[n].orders_stream = std::holds_alternative<BarrierCmd>(command.body);
  }
};

// Memory cut at every byte where an access begins or ends, with the nodes that touched each cell.
class Shadow {
 public:
  struct Cell {
    const MemoryBlock* block;
    size_t begin, end;
    std::vector<std::vector<size_t>> reads, writes;  // by stream, in its order
  };
  struct Cells {
    std::vector<size_t> read, written;  // ascending
  };

  explicit Shadow(const Streams& streams) {
    for (const Node& n : streams.nodes)
      if (n.accesses)
        for (const Access& a : *n.accesses) note(a.span);
    for (auto& [block, entry] : blocks_) {
      std::vector<size_t>& cuts = entry.cuts;
      std::sort(cuts.begin(), cuts.end());
      cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
      entry.first_cell = cells.size();
      const std::vector<std::vector<size_t>> untouched(streams.of_stream.size());
      for (size_t i = 0; i + 1 < cuts.size(); i++)
        cells.push_back({block, cuts[i], cuts[i + 1], untouched, untouched});
    }
  }
  Cells of(const std::vector<Access>& accesses) const {
    Cells out;
    for (const Access& a : accesses) append(a.write ? out.written : out.read, a.span);
    for (std::vector<size_t>* v : {&out.read, &out.written}) {
      std::sort(v->begin(), v->end());
      v->erase(std::unique(v->begin(), v->end()), v->end());
    }
    return out;
  }
  size_t block_index(const MemoryBlock* block) const { return blocks_.at(block).index; }

  std::vector<Cell> cells;

 private:
  struct Block {
    size_t index = 0, first_cell = 0;
    std::vector<size_t> cuts;
  };
  void note(const Span& s) {
    if (!s || s.size_bytes == 0) return;
    auto [it, fresh] = blocks_.try_emplace(s.block);
    if (fresh) it->second.index = blocks_.size() - 1;
    it->second.cuts.push_back(s.offset);
    it->second.cuts.push_back(s.offset + s.size_bytes);
  }
  void append(std::vector<size_t>& out, const Span& s) const {
    if (!s || s.size_bytes == 0) return;
    const Block& b = blocks_.at(s.block);
    const auto at = std::lower_bound(b.cuts.begin(), b.cuts.end(), s.offset);
    const size_t end = s.offset + s.size_bytes;
    for (auto it = at; *it < end; ++it) out.push_back(b.first_cell + size_t(it - b.cuts.begin()));
  }
  std::unordered_map<const MemoryBlock*, Block> blocks_;
};

class Checker {
 public:
  explicit Checker(const Trace& trace)
      : trace_(trace),
        streams_(trace),
        shadow_(streams_),
        agents_(streams_.of_stream.size(), Agent{Clock(streams_.of_stream.size())}),
        published_(streams_.nodes.size()) {}

  HazardReport run() {
    while (advance_all()) {}
    for (size_t n : streams_.stuck) report_.stuck.push_back(place(streams_.nodes[n]));
    std::sort(report_.stuck.begin(), report_.stuck.end(), [](const auto& a, const auto& b) {
      return std::tie(a.event, a.command) < std::tie(b.event, b.command);
    });
    collect_hazards();
    collect_barriers();
    return std::move(report_);
  }

 private:
  struct Agent {
    Clock clock;
    size_t next = 0;
    // How the last barrier could be missed: what of its own stream the agent knows without it.
    size_t known_without_barrier = 0;
    size_t barrier = kNone;
  };
  struct PairKey {
    size_t earlier, later;
    HazardKind kind;
    const MemoryBlock* block;
    auto operator<=>(const PairKey&) const = default;
  };

  // Every stream as far as it gets. False when all have ended.
  bool advance_all() {
    bool moved = false, left = false;
    for (uint32_t s = 0; s < agents_.size(); s++) {
      while (agents_[s].next < streams_.of_stream[s].size() && step(s)) moved = true;
      left |= agents_[s].next < streams_.of_stream[s].size();
    }
    if (left && !moved) break_circle();
    return left;
  }
  // Waits that wait for one another: the first is reported and passed over.
  void break_circle() {
    for (uint32_t s = 0; s < agents_.size(); s++) {
      if (agents_[s].next == streams_.of_stream[s].size()) continue;
      const size_t n = streams_.of_stream[s][agents_[s].next];
      if (!streams_.nodes[n].wait) continue;
      streams_.nodes[n].after = kNone;
      streams_.stuck.push_back(n);
      return;
    }
    TUFF_CHECK(false, "streams stand still without a wait");
  }

  bool step(uint32_t stream) {
    Agent& agent = agents_[stream];
    const size_t id = streams_.of_stream[stream][agent.next];
    const Node& n = streams_.nodes[id];
    if (n.after != kNone) {
      if (!published_[n.after]) return false;
      join(agent, stream, *published_[n.after]);
    }
    if (stream == kHostStream) agent.clock[stream] = n.position;
    if (n.orders_stream) order_stream(agent, id);
    if (n.accesses) access(agent, id);
    if (n.publishes) {
      published_[id] = agent.clock;
      (*published_[id])[stream] = n.position;
    }
    agent.next++;
    return true;
  }
  static void join(Agent& agent, uint32_t stream, const Clock& other) {
    for (size_t s = 0; s < other.size(); s++) agent.clock[s] = std::max(agent.clock[s], other[s]);
    agent.known_without_barrier = std::max(agent.known_without_barrier, other[stream]);
  }
  void order_stream(Agent& agent, size_t id) {
    const Node& n = streams_.nodes[id];
    agent.barrier = n.barrier ? id : kNone;
    agent.known_without_barrier = n.barrier ? agent.clock[n.stream] : n.position;
    agent.clock[n.stream] = n.position;
  }

  void access(Agent& agent, size_t id) {
    const Shadow::Cells cells = shadow_.of(*streams_.nodes[id].accesses);
    for (size_t c : cells.read) compare(agent, id, false, c);
    for (size_t c : cells.written) compare(agent, id, true, c);
    const uint32_t stream = streams_.nodes[id].stream;
    for (size_t c : cells.read) shadow_.cells[c].reads[stream].push_back(id);
    for (size_t c : cells.written) shadow_.cells[c].writes[stream].push_back(id);
  }
  void compare(Agent& agent, size_t id, bool write, size_t cell) {
    const Shadow::Cell& c = shadow_.cells[cell];
    for (uint32_t s = 0; s < agents_.size(); s++) {
      compare(agent, id, write, c, s, c.writes[s], true);
      if (write) compare(agent, id, write, c, s, c.reads[s], false);
    }
  }
  // What is not known to have happened before stands at the end of a stream's touches.
  void compare(Agent& agent, size_t id, bool write, const Shadow::Cell& c, uint32_t stream,
               const std::vector<size_t>& touched, bool they_write) {
    auto it = touched.rbegin();
    for (; it != touched.rend() && streams_.nodes[*it].position >= agent.clock[stream]; ++it)
      add_pair(*it, they_write, id, write, c);
    const bool own = stream == streams_.nodes[id].stream && agent.barrier != kNone;
    if (own && it != touched.rend() && streams_.nodes[*it].position >= agent.known_without_barrier)
      needed_.insert(barrier_key(agent.barrier));
  }

  void add_pair(size_t a, bool a_writes, size_t b, bool b_writes, const Shadow::Cell& c) {
    if (a > b) {  // nodes are numbered in the order of submission
      std::swap(a, b);
      std::swap(a_writes, b_writes);
    }
    const HazardKind kind = !a_writes  ? HazardKind::WriteAfterRead
                            : b_writes ? HazardKind::WriteAfterWrite
                                       : HazardKind::ReadAfterWrite;
    auto& ranges = pairs_[{a, b, kind, c.block}];
    if (!ranges.empty() && ranges.back().second == c.begin)
      ranges.back().second = c.end;
    else
      ranges.emplace_back(c.begin, c.end);
  }

  TracePlace place(const Node& n) const {
    TracePlace p{
        n.event, n.command, n.stream == kHostStream ? TracePlace::kHost : n.stream - 1, {}};
    if (n.label) p.label = *n.label;
    if (n.wait && p.label.empty()) p.label = "wait";
    if (n.barrier && p.label.empty()) p.label = "barrier";
    return p;
  }
  std::string missing(const Node& a, const Node& b) const {
    if (a.stream == b.stream)
      return a.event == b.event ? "a barrier between them"
                                : "a barrier between them, since submissions of this queue overlap";
    const auto after = [](const Node& n) {
      return fmt::format("a signal of queue {} after #{}", n.stream - 1, n.command);
    };
    if (b.stream == kHostStream)
      return fmt::format(
          "a wait of the host, before its access, for {} or for its submission's end", after(a));
    return fmt::format("a wait in queue {} before #{} for {}", b.stream - 1, b.command, after(a));
  }
  void collect_hazards() {
    for (const auto& [key, ranges] : pairs_) {
      const Node &a = streams_.nodes[key.earlier], &b = streams_.nodes[key.later];
      for (const auto& [begin, end] : ranges)
        report_.hazards.push_back({key.kind, place(a), place(b), key.block,
                                   shadow_.block_index(key.block), begin, end, missing(a, b)});
    }
    const auto order = [](const Hazard& h) {
      return std::tie(h.first.event, h.first.command, h.second.event, h.second.command, h.kind,
                      h.block_index, h.begin);
    };
    std::sort(report_.hazards.begin(), report_.hazards.end(),
              [&](const Hazard& x, const Hazard& y) { return order(x) < order(y); });
  }

  // A list that is submitted twice has its barriers once.
  using BarrierKey = std::pair<const CommandList*, size_t>;
  BarrierKey barrier_key(size_t node) const {
    const Node& n = streams_.nodes[node];
    return {std::get<Submission>(trace_.events[n.event]).list, n.command};
  }
  void collect_barriers() {
    std::set<BarrierKey> seen;
    for (size_t i = 0; i < streams_.nodes.size(); i++) {
      if (!streams_.nodes[i].barrier || !seen.insert(barrier_key(i)).second) continue;
      report_.barriers++;
      if (!needed_.contains(barrier_key(i))) report_.unneeded.push_back(place(streams_.nodes[i]));
    }
  }

  const Trace& trace_;
  Streams streams_;
  Shadow shadow_;
  std::vector<Agent> agents_;
  std::vector<std::optional<Clock>> published_;
  std::map<PairKey, std::vector<std::pair<size_t, size_t>>> pairs_;
  std::set<BarrierKey> needed_;
  HazardReport report_;
};

}  // namespace

HazardReport check_hazards(const Trace& trace) { return Checker(trace).run(); }

}  // namespace tuff::hcq
