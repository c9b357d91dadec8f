#include "hcq/hazard_oracle.h"

#include <map>

namespace tuff::hcq::test {
namespace {

struct Step {
  enum Kind { Plain, Barrier, Begin, End, Wait, Signal } kind = Plain;
  size_t event;
  int agent;  // -1: host
  const std::vector<Access>* accesses = nullptr;
  std::string label;
  const hcq::Signal* signal = nullptr;
  uint64_t value = 0;
};

std::vector<Step> steps_of(const Trace& trace) {
  std::vector<Step> out;
  for (size_t e = 0; e < trace.events.size(); e++) {
    const TraceEvent& event = trace.events[e];
    if (auto* a = std::get_if<HostAccess>(&event))
      out.push_back({Step::Plain, e, -1, &a->accesses, a->label});
    if (auto* w = std::get_if<HostWait>(&event))
      out.push_back({Step::Wait, e, -1, nullptr, "wait", w->signal, w->value});
    if (auto* s = std::get_if<HostSignal>(&event))
      out.push_back({Step::Signal, e, -1, nullptr, "signal", s->signal, s->value});
    auto* s = std::get_if<Submission>(&event);
    if (!s) continue;
    const int agent = int(s->queue);
    out.push_back({Step::Plain, e, -1});
    out.push_back({Step::Begin, e, agent});
    for (const Command& c : s->list->commands) {
      Step step{Step::Plain, e, agent, &c.accesses, c.label};
      if (std::holds_alternative<BarrierCmd>(c.body)) step.kind = Step::Barrier;
      if (auto* w = std::get_if<WaitCmd>(&c.body)) {
        step.kind = Step::Wait;
        step.signal = w->signal;
        step.value = s->slots.at(w->value_slot);
      }
      if (auto* g = std::get_if<SignalCmd>(&c.body)) {
        step.kind = Step::Signal;
        step.signal = g->signal;
        step.value = s->slots.at(g->value_slot);
      }
      out.push_back(step);
    }
    out.push_back(
        {s->timeline ? Step::Signal : Step::End, e, agent, nullptr, "end", s->timeline, s->value});
  }
  return out;
}

using Bits = std::vector<uint64_t>;
class Relation {
 public:
  explicit Relation(size_t n) : rows_(n, Bits((n + 63) / 64)) {}
  void set(size_t i, size_t j) { rows_[i][j / 64] |= uint64_t{1} << j % 64; }
  bool has(size_t i, size_t j) const { return rows_[i][j / 64] >> j % 64 & 1; }
  void close() {  // Warshall
    for (size_t k = 0; k < rows_.size(); k++)
      for (size_t i = 0; i < rows_.size(); i++)
        if (has(i, k))
          for (size_t w = 0; w < rows_[i].size(); w++) rows_[i][w] |= rows_[k][w];
  }

 private:
  std::vector<Bits> rows_;
};

// Whether x, which stands before y in one agent's stream, is finished before y begins.
bool ordered_in_stream(const Step& x, const Step& y, SubmissionOrder order) {
  if (x.agent < 0) return true;
  if (x.kind == Step::Barrier || y.kind == Step::Barrier) return true;
  if (x.kind == Step::Begin || x.kind == Step::Wait) return true;
  if (y.kind == Step::Signal || y.kind == Step::End) return true;
  return y.kind == Step::Begin && order == SubmissionOrder::AfterAllBefore;
}

// The step that ends a wait, or SIZE_MAX.
size_t ends_wait(const std::vector<Step>& steps, const Step& wait) {
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < steps.size(); i++)
    if (steps[i].kind == Step::Signal && steps[i].signal == wait.signal &&
        steps[i].value >= wait.value && (best == SIZE_MAX || steps[i].value < steps[best].value))
      best = i;
  return best;
}

// Maximal ranges of bytes of each block that one step accesses so and the other so.
void overlaps(const Step& x, bool x_writes, const Step& y, bool y_writes,
              std::map<const MemoryBlock*, std::set<size_t>>& out) {
  for (const Access& a : *x.accesses)
    for (const Access& b : *y.accesses) {
      if (a.write != x_writes || b.write != y_writes || a.span.block != b.span.block) continue;
      const size_t begin = std::max(a.span.offset, b.span.offset);
      const size_t end =
          std::min(a.span.offset + a.span.size_bytes, b.span.offset + b.span.size_bytes);
      for (size_t at = begin; at < end; at++) out[a.span.block].insert(at);
    }
}

void add_pair(const Step& x, const Step& y, std::set<Finding>& out) {
  for (const auto& [kind, xw, yw] :
       {std::tuple{"RAW", true, false}, {"WAR", false, true}, {"WAW", true, true}}) {
    std::map<const MemoryBlock*, std::set<size_t>> bytes;
    overlaps(x, xw, y, yw, bytes);
    for (const auto& [block, set] : bytes)
      for (auto it = set.begin(); it != set.end();) {
        const size_t begin = *it;
        size_t end = begin;
        while (it != set.end() && *it == end) {
          end++;
          ++it;
        }
        out.insert({x.event, x.label, y.event, y.label, kind, block, begin, end});
      }
  }
}

}  // namespace

Verdict oracle(const Trace& trace) {
  const std::vector<Step> steps = steps_of(trace);
  Relation before(steps.size());
  Verdict out;
  for (size_t i = 0; i < steps.size(); i++) {
    for (size_t j = i + 1; j < steps.size(); j++) {
      const bool submits = steps[i].agent < 0 && steps[j].kind == Step::Begin;
      if (submits ||
          (steps[i].agent == steps[j].agent && ordered_in_stream(steps[i], steps[j], trace.order)))
        before.set(i, j);
    }
    if (steps[i].kind != Step::Wait) continue;
    const auto reached = trace.reached.find(steps[i].signal);
    if (steps[i].value <= (reached == trace.reached.end() ? 0 : reached->second)) continue;
    const size_t end = ends_wait(steps, steps[i]);
    if (end == SIZE_MAX)
      out.stuck = true;
    else
      before.set(end, i);
  }
  before.close();
  for (size_t i = 0; i < steps.size(); i++) {
    out.stuck |= before.has(i, i);
    for (size_t j = i + 1; steps[i].accesses && j < steps.size(); j++)
      if (steps[j].accesses && !before.has(i, j) && !before.has(j, i))
        add_pair(steps[i], steps[j], out.hazards);
  }
  return out;
}

Verdict verdict(const HazardReport& report) {
  Verdict out;
  out.stuck = !report.stuck.empty();
  for (const Hazard& h : report.hazards)
    out.hazards.insert({h.first.event, h.first.label, h.second.event, h.second.label, name(h.kind),
                        h.block, h.begin, h.end});
  return out;
}

Mutant without(const Trace& trace, const CommandList& list, size_t command) {
  Mutant m{trace, std::make_unique<CommandList>(list)};
  m.list->commands.erase(m.list->commands.begin() + std::ptrdiff_t(command));
  for (TraceEvent& e : m.trace.events)
    if (auto* s = std::get_if<Submission>(&e); s && s->list == &list) s->list = m.list.get();
  return m;
}

bool only_orders(const Command& c) {
  return std::holds_alternative<BarrierCmd>(c.body) || std::holds_alternative<WaitCmd>(c.body) ||
         std::holds_alternative<SignalCmd>(c.body);
}

}  // namespace tuff::hcq::test
