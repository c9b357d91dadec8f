// The hazard checker: each kind of hazard and of order by hand, then against the brute-force oracle
// on random traces, and by mutation.
#include "hcq/hazards.h"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "hcq/fake_device.h"
#include "hcq/graph.h"
#include "hcq/hazard_oracle.h"

namespace tuff::hcq {
namespace {

using test::Mutant;
using test::oracle;
using test::verdict;

Command kernel(const std::string& label, std::vector<Access> accesses) {
  return {DispatchCmd{}, std::move(accesses), label};
}
Command barrier() { return {BarrierCmd{}, {}, {}}; }
Command wait(Signal& s, uint32_t slot) { return {WaitCmd{&s, slot}, {}, {}}; }
Command signal(Signal& s, uint32_t slot) { return {SignalCmd{&s, slot}, {}, {}}; }

class Hazards : public testing::Test {
 protected:
  Access read(size_t begin, size_t end) { return {{&block, begin, end - begin}, false}; }
  Access write(size_t begin, size_t end) { return {{&block, begin, end - begin}, true}; }
  // A submission of these commands; the list stays here.
  Submission list(std::vector<Command> commands, uint32_t queue = 0,
                  std::vector<uint64_t> slots = {}) {
    lists.push_back({std::move(commands)});
    return Submission{queue, &lists.back(), std::move(slots)};
  }
  HazardReport check(std::vector<TraceEvent> events,
                     SubmissionOrder order = SubmissionOrder::AfterAllBefore) {
    trace = {std::move(events), order, {}};
    const HazardReport report = check_hazards(trace);
    EXPECT_EQ(verdict(report).hazards, oracle(trace).hazards);
    EXPECT_EQ(verdict(report).stuck, oracle(trace).stuck);
    return report;
  }
  std::string kinds(const HazardReport& r) {
    std::string out;
    for (const Hazard& h : r.hazards) out += std::string(name(h.kind)) + " ";
    return out;
  }

  MemoryBlock block{0, 4096}, other{0, 4096};
  FakeSignal s0, s1;
  std::deque<CommandList> lists;
  Trace trace;
};

TEST_F(Hazards, EachKindWithoutABarrier) {
  EXPECT_EQ(kinds(check({list({kernel("a", {write(0, 8)}), kernel("b", {read(4, 12)})})})), "RAW ");
  EXPECT_EQ(kinds(check({list({kernel("a", {read(0, 8)}), kernel("b", {write(4, 12)})})})), "WAR ");
  EXPECT_EQ(kinds(check({list({kernel("a", {write(0, 8)}), kernel("b", {write(4, 12)})})})),
            "WAW ");
  EXPECT_EQ(kinds(check({list({kernel("a", {read(0, 8)}), kernel("b", {read(4, 12)})})})), "");
  EXPECT_EQ(kinds(check({list({kernel("a", {write(0, 8)}), kernel("b", {write(8, 12)})})})), "");
}

TEST_F(Hazards, ACommandDoesNotConflictWithItself) {
  EXPECT_EQ(kinds(check({list({kernel("a", {read(0, 8), write(0, 8), write(4, 6)})})})), "");
}

TEST_F(Hazards, OtherBlocksAreOtherMemory) {
  EXPECT_EQ(
      kinds(check({list({kernel("a", {write(0, 8)}), kernel("b", {{{&other, 0, 8}, true}})})})),
      "");
}

TEST_F(Hazards, ABarrierOrders) {
  const auto report =
      check({list({kernel("a", {write(0, 8)}), barrier(), kernel("b", {write(0, 8)})})});
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.barriers, 1u);
  EXPECT_TRUE(report.unneeded.empty());
}

TEST_F(Hazards, AFindingNamesCommandsBytesAndTheMissingEdge) {
  const auto report = check({list({kernel("x", {}), kernel("add", {write(16, 64)}),
                                   kernel("mul", {read(0, 32), read(24, 48)})})});
  ASSERT_EQ(report.hazards.size(), 1u);
  EXPECT_EQ(
      to_text(report),
      "RAW: #2 \"mul\" of queue 0, event 0 reads b0[16..48) that #1 \"add\" of queue 0, event 0 "
      "writes; missing: a barrier between them\n");
  EXPECT_EQ(to_json_lines(report),
            R"({"kind":"RAW","first":{"event":0,"command":1,"queue":0,"label":"add"},)"
            R"("second":{"event":0,"command":2,"queue":0,"label":"mul"},"block":0,"begin":16,)"
            R"("end":48,"missing":"a barrier between them"})"
            "\n");
}

TEST_F(Hazards, OneOverlapInTwoPiecesIsTwoFindings) {
  const auto report = check(
      {list({kernel("a", {write(0, 8), write(16, 24)}), kernel("b", {read(0, 40), read(4, 20)})})});
  ASSERT_EQ(report.hazards.size(), 2u);
  EXPECT_EQ(report.hazards[1].begin, 16u);
  EXPECT_EQ(report.hazards[1].end, 24u);
}

TEST_F(Hazards, SubmissionsOfAQueueFollowOneAnotherIfTheDeviceSaysSo) {
  const std::vector<TraceEvent> two{list({kernel("a", {write(0, 8)})}),
                                    list({kernel("b", {read(0, 8)})})};
  EXPECT_TRUE(check(two).clean());
  const auto report = check(two, SubmissionOrder::Overlapping);
  EXPECT_EQ(kinds(report), "RAW ");
  EXPECT_NE(to_text(report).find("submissions of this queue overlap"), std::string::npos);
}

TEST_F(Hazards, ABarrierReachesBackOverSubmissions) {
  EXPECT_TRUE(
      check({list({kernel("a", {write(0, 8)})}), list({barrier(), kernel("b", {read(0, 8)})})},
            SubmissionOrder::Overlapping)
          .clean());
}

TEST_F(Hazards, QueuesAreOrderedBySignalsAndWaits) {
  const auto first = [&] { return list({kernel("a", {write(0, 8)}), signal(s0, 0)}, 0, {5}); };
  EXPECT_EQ(kinds(check({first(), list({kernel("b", {read(0, 8)})}, 1)})), "RAW ");
  EXPECT_TRUE(check({first(), list({wait(s0, 0), kernel("b", {read(0, 8)})}, 1, {5})}).clean());
  EXPECT_TRUE(check({first(), list({wait(s0, 0), kernel("b", {read(0, 8)})}, 1, {4})}).clean());
  const auto late = check({first(), list({kernel("b", {read(0, 8)}), wait(s0, 0)}, 1, {5})});
  EXPECT_EQ(kinds(late), "RAW ");
  EXPECT_NE(late.hazards[0].missing.find("a wait in queue 1 before #0"), std::string::npos);
}

TEST_F(Hazards, AWaitForALowerValueIsNoWaitForTheHigherOne) {
  const auto first = list({signal(s0, 0), kernel("a", {write(0, 8)}), signal(s0, 1)}, 0, {3, 7});
  EXPECT_EQ(kinds(check({first, list({wait(s0, 0), kernel("b", {read(0, 8)})}, 1, {3})})), "RAW ");
  EXPECT_TRUE(check({first, list({wait(s0, 0), kernel("b", {read(0, 8)})}, 1, {4})}).clean());
}

TEST_F(Hazards, OrderIsTransitiveOverQueues) {
  const auto chain = [&](uint64_t waited) {
    return check({list({kernel("a", {write(0, 8)}), signal(s0, 0)}, 0, {1}),
                  list({wait(s0, 0), signal(s1, 1)}, 1, {waited, 1}),
                  list({wait(s1, 0), kernel("c", {write(0, 8)})}, 2, {1})});
  };
  EXPECT_TRUE(chain(1).clean());
  EXPECT_EQ(kinds(chain(0)), "WAW ");
}

TEST_F(Hazards, AWaitThatNobodyEndsIsFound) {
  const auto never = check({list({wait(s0, 0), kernel("a", {})}, 0, {1})});
  ASSERT_EQ(never.stuck.size(), 1u);
  EXPECT_NE(to_text(never).find("stuck"), std::string::npos);
  EXPECT_EQ(to_json_lines(never),
            R"({"kind":"stuck_wait","place":{"event":0,"command":0,"queue":0,"label":"wait"}})"
            "\n");
  const auto circle = check(
      {list({wait(s0, 0), signal(s1, 0)}, 0, {1}), list({wait(s1, 0), signal(s0, 0)}, 1, {1})});
  EXPECT_EQ(circle.stuck.size(), 1u);
}

TEST_F(Hazards, ATimelineThatIsThereAlreadyNeedsNoSignal) {
  Trace t{{list({wait(s0, 0)}, 0, {9})}, {}, {{&s0, 9}}};
  EXPECT_TRUE(check_hazards(t).clean());
  t.reached[&s0] = 8;
  EXPECT_FALSE(check_hazards(t).clean());
}

TEST_F(Hazards, ATimelineIsSignalledToAValueOnce) {
  Trace t{{HostSignal{&s0, 1}, HostSignal{&s0, 1}}, {}, {}};
  EXPECT_THROW(check_hazards(t), InvalidArgument);
}

TEST_F(Hazards, TheHostIsOneMoreAgent) {
  const auto submission = [&](uint64_t value) {
    Submission s = list({kernel("a", {read(0, 8)})});
    s.timeline = &s0;
    s.value = value;
    return s;
  };
  const HostAccess fill{{write(0, 8)}, "fill"};
  EXPECT_TRUE(check({fill, submission(1)}).clean());
  const auto early = check({submission(1), fill});
  EXPECT_EQ(kinds(early), "WAR ");
  EXPECT_NE(early.hazards[0].missing.find("a wait of the host"), std::string::npos);
  EXPECT_TRUE(check({submission(1), HostWait{&s0, 1}, fill}).clean());
  EXPECT_TRUE(check({submission(1), submission(2), HostWait{&s0, 2}, fill}).clean());
  EXPECT_EQ(kinds(check({submission(1), submission(2), HostWait{&s0, 1}, fill})), "WAR ");
  EXPECT_EQ(kinds(check({submission(1), HostAccess{{read(0, 8)}, "look"}})), "");
}

TEST_F(Hazards, ADeviceWaitsForTheHostsSignal) {
  const HostAccess fill{{write(0, 8)}, "fill"};
  const auto waiting = list({wait(s0, 0), kernel("a", {read(0, 8)})}, 0, {1});
  EXPECT_TRUE(check({waiting, fill, HostSignal{&s0, 1}}).clean());
  EXPECT_EQ(kinds(check({waiting, HostSignal{&s0, 1}, fill})), "WAR ");
}

TEST_F(Hazards, BarriersThatOrderNothingAreCounted) {
  const auto report =
      check({list({barrier(), kernel("a", {write(0, 8)}), barrier(), kernel("b", {write(8, 16)}),
                   barrier(), kernel("c", {read(0, 16)})})});
  EXPECT_TRUE(report.clean());
  EXPECT_EQ(report.barriers, 3u);
  ASSERT_EQ(report.unneeded.size(), 2u);
  EXPECT_EQ(report.unneeded[0].command, 0u);
  EXPECT_EQ(report.unneeded[1].command, 2u);
}

TEST_F(Hazards, ABarrierIsNotNeededWhereARoundTripOrders) {
  const auto round_trip = [&](uint64_t back) {
    const auto ask = list({kernel("a", {write(0, 8)}), signal(s0, 0)}, 0, {1});
    return check({ask, list({wait(s0, 0), signal(s1, 1)}, 1, {1, 1}),
                  list({wait(s1, 0), barrier(), kernel("b", {read(0, 8)})}, 0, {back})},
                 SubmissionOrder::Overlapping);
  };
  EXPECT_EQ(round_trip(1).unneeded.size(), 1u);
  EXPECT_EQ(round_trip(0).unneeded.size(), 0u);
}

// ---- against the oracle

class RandomTrace {
 public:
  explicit RandomTrace(uint64_t seed) : rng_(seed) {}
  Trace make() {
    Trace t;
    queues_ = 1 + uint32_t(below(3));
    t.order = below(2) ? SubmissionOrder::Overlapping : SubmissionOrder::AfterAllBefore;
    if (below(8) == 0) t.reached[&signals_[0]] = values_[0] = below(3);
    for (size_t e = 3 + below(6); e-- > 0;) t.events.emplace_back(event());
    return t;
  }
  const std::deque<CommandList>& lists() const { return lists_; }

 private:
  size_t below(size_t n) { return rng_() % n; }
  Access access() {
    const size_t begin = below(56), size = below(4) == 0 ? below(9) : 1 + below(20);
    return {{&blocks_[below(2)], begin, size}, below(3) == 0};
  }
  std::vector<Access> accesses() {
    std::vector<Access> out;
    for (size_t n = below(4); n-- > 0;) out.push_back(access());
    return out;
  }
  std::string label() { return std::to_string(labels_++); }
  uint64_t next_value(size_t s) { return values_[s] += 1 + below(3); }
  // Rarely for a value to come, so that some waits are never ended or go in a circle.
  uint64_t waited(size_t s) { return below(40) == 0 ? values_[s] + 1 : below(values_[s] + 1); }

  TraceEvent event() {
    const size_t s = below(3);
    switch (below(8)) {
      case 0: return HostWait{&signals_[s], waited(s)};
      case 1: return HostSignal{&signals_[s], next_value(s)};
      case 2: return HostAccess{accesses(), label()};
      default: return submission();
    }
  }
  Submission submission() {
    Submission s;
    s.queue = uint32_t(below(queues_));
    if (lists_.empty() || below(4) > 0) {
      CommandList& list = lists_.emplace_back();
      for (size_t n = below(9); n-- > 0;) list.commands.push_back(command());
    }
    s.list = &lists_[below(4) ? lists_.size() - 1 : below(lists_.size())];
    for (const Command& c : s.list->commands) {
      if (auto* w = std::get_if<WaitCmd>(&c.body)) value(s, w->value_slot) = waited(at(w->signal));
      if (auto* g = std::get_if<SignalCmd>(&c.body))
        value(s, g->value_slot) = next_value(at(g->signal));
    }
    if (below(2)) {
      const size_t line = below(3);
      s.timeline = &signals_[line];
      s.value = next_value(line);
    }
    return s;
  }
  Command command() {
    switch (below(10)) {
      case 0: return {WaitCmd{&signals_[below(3)], slots_++}, {}, label()};
      case 1: return {SignalCmd{&signals_[below(3)], slots_++}, {}, label()};
      case 2:
      case 3: return {BarrierCmd{}, {}, label()};
      case 4: return {HostCallCmd{}, accesses(), label()};
      default: return {DispatchCmd{}, accesses(), label()};
    }
  }
  static uint64_t& value(Submission& s, uint32_t slot) {
    if (slot >= s.slots.size()) s.slots.resize(slot + 1);
    return s.slots[slot];
  }
  size_t at(const Signal* s) const { return size_t(static_cast<const FakeSignal*>(s) - signals_); }

  std::mt19937_64 rng_;
  MemoryBlock blocks_[2] = {{0, 128}, {0, 128}};
  FakeSignal signals_[3];
  uint64_t values_[3] = {0, 0, 0};
  uint32_t queues_ = 1, slots_ = 0;
  int labels_ = 0;
  std::deque<CommandList> lists_;
};

TEST(HazardOracle, AgreesOnThousandsOfRandomTraces) {
  int clean = 0, hazardous = 0, stuck = 0;
  for (uint64_t seed = 0; seed < 6000; seed++) {
    RandomTrace random(seed);
    const Trace trace = random.make();
    const test::Verdict mine = verdict(check_hazards(trace)), truth = oracle(trace);
    ASSERT_EQ(mine.stuck, truth.stuck) << "seed " << seed;
    if (!truth.stuck) {
      ASSERT_EQ(mine.hazards, truth.hazards) << "seed " << seed;
    }
    (truth.stuck ? stuck : truth.clean() ? clean : hazardous)++;
  }
  printf("%d clean, %d with hazards, %d stuck\n", clean, hazardous, stuck);
  EXPECT_GT(clean, 500);
  EXPECT_GT(hazardous, 500);
  EXPECT_GT(stuck, 100);
}

std::set<const CommandList*> submitted_lists(const Trace& trace) {
  std::set<const CommandList*> out;
  for (const TraceEvent& e : trace.events)
    if (auto* s = std::get_if<Submission>(&e)) out.insert(s->list);
  return out;
}

struct MutationCounts {
  size_t barriers = 0, unneeded = 0, others = 0;
};

// A barrier is unneeded if and only if the oracle finds the same hazards without it; and whatever
// is deleted, both go on agreeing.
void delete_each(const Trace& trace, MutationCounts& counts) {
  const HazardReport report = check_hazards(trace);
  if (!report.stuck.empty()) return;
  std::set<std::string> claimed, truth;
  for (const TracePlace& p : report.unneeded) claimed.insert(p.label);
  for (const CommandList* list : submitted_lists(trace)) {
    for (size_t c = 0; c < list->commands.size(); c++) {
      if (!test::only_orders(list->commands[c])) continue;
      const Mutant m = test::without(trace, *list, c);
      const test::Verdict mutated = oracle(m.trace), found = verdict(check_hazards(m.trace));
      ASSERT_EQ(found.stuck, mutated.stuck);
      if (!mutated.stuck) {
        ASSERT_EQ(found.hazards, mutated.hazards);
      }
      const bool is_barrier = std::holds_alternative<BarrierCmd>(list->commands[c].body);
      (is_barrier ? counts.barriers : counts.others)++;
      if (is_barrier && mutated.hazards == verdict(report).hazards)
        truth.insert(list->commands[c].label);
    }
  }
  ASSERT_EQ(claimed, truth);
  counts.unneeded += truth.size();
}

TEST(HazardOracle, AgreesOnEveryMutationOfRandomTraces) {
  MutationCounts counts;
  for (uint64_t seed = 0; seed < 1500; seed++) {
    SCOPED_TRACE(seed);
    RandomTrace random(seed + 100'000);
    delete_each(random.make(), counts);
    if (HasFatalFailure()) return;
  }
  printf("%zu barriers deleted, %zu of them unneeded; %zu waits and signals\n", counts.barriers,
         counts.unneeded, counts.others);
  EXPECT_GT(counts.barriers - counts.unneeded, 300u);
  EXPECT_GT(counts.unneeded, 300u);
  EXPECT_GT(counts.others, 300u);
}

// Two queues as a graph over a compute and a copy queue would use them: the copy queue brings input
// in, two buffers in turn, while the other computes on what came before. Every wait and every
// barrier is needed; a signal is not where a later one of its timeline says more.
TEST(HazardMutation, WaitsAndBarriersOfADoubleBufferedPipelineAreNeeded) {
  MemoryBlock in[2] = {{0, 64}, {0, 64}}, staging[2] = {{0, 64}, {0, 64}}, out{0, 64};
  FakeSignal copied, computed;
  std::deque<CommandList> lists;
  Trace trace;
  const auto submit = [&](uint32_t queue, std::vector<Command> commands,
                          std::vector<uint64_t> slots) {
    lists.push_back({std::move(commands)});
    trace.events.emplace_back(Submission{queue, &lists.back(), std::move(slots)});
  };
  for (uint64_t step = 0; step < 6; step++) {
    const Span a{&in[step % 2], 0, 64}, s{&staging[step % 2], 0, 64}, o{&out, 0, 64};
    const std::string n = std::to_string(step);
    if (step >= 2) trace.events.emplace_back(HostWait{&copied, step - 1});
    trace.events.emplace_back(HostAccess{{{s, true}}, "stage " + n});
    std::vector<Command> bring;
    if (step >= 2) bring.push_back({WaitCmd{&computed, 1}, {}, "free " + n});
    bring.push_back({CopyCmd{a, s}, {{s, false}, {a, true}}, "copy " + n});
    bring.push_back({SignalCmd{&copied, 0}, {}, "copied " + n});
    submit(1, std::move(bring), {step + 1, step - 1});
    submit(0,
           {{WaitCmd{&copied, 0}, {}, "ready " + n},
            {DispatchCmd{}, {{a, false}, {a.sub(32, 32), true}}, "f " + n},
            {BarrierCmd{}, {}, "barrier " + n},
            {DispatchCmd{}, {{a, false}, {o, false}, {o, true}}, "g " + n},
            {SignalCmd{&computed, 1}, {}, "computed " + n}},
           {step + 1, step + 1});
  }
  ASSERT_TRUE(check_hazards(trace).clean()) << to_text(check_hazards(trace));
  size_t edges = 0, needed = 0, signals = 0;
  for (const CommandList& list : lists) {
    for (size_t c = 0; c < list.commands.size(); c++) {
      if (!test::only_orders(list.commands[c])) continue;
      const Mutant m = test::without(trace, list, c);
      const HazardReport found = check_hazards(m.trace);
      EXPECT_EQ(found.clean(), oracle(m.trace).clean()) << list.commands[c].label;
      const bool is_signal = std::holds_alternative<SignalCmd>(list.commands[c].body);
      EXPECT_TRUE(is_signal || !found.clean()) << list.commands[c].label;
      edges++;
      signals += is_signal;
      needed += !found.clean();
    }
  }
  printf("%zu waits, signals and barriers deleted, %zu of them needed\n", edges, needed);
  EXPECT_EQ(edges - signals, 16u);
  EXPECT_GT(needed, edges - signals);
}

// ---- size

TEST(HazardSpeed, ThousandsOfCommandsAreFast) {
  std::vector<MemoryBlock> blocks(4, MemoryBlock{0, 64u << 20});
  std::mt19937 rng(7);
  CommandList list;
  for (size_t i = 0; i < 20'000; i++) {
    Command c{DispatchCmd{}, {}, "k"};
    for (int a = 0; a < 4; a++) {
      const size_t size = 256 * (1 + rng() % 16);
      c.accesses.push_back({{&blocks[rng() % 4], (rng() % 4096) * 256, size}, a == 0});
    }
    list.commands.push_back(std::move(c));
  }
  insert_barriers(list);
  Trace trace;
  for (int i = 0; i < 3; i++) trace.events.emplace_back(Submission{.list = &list});
  const auto begin = std::chrono::steady_clock::now();
  const HazardReport report = check_hazards(trace);
  EXPECT_TRUE(report.clean());
  EXPECT_GT(report.barriers, 100u);
  EXPECT_LT(std::chrono::steady_clock::now() - begin,
            std::chrono::seconds(10));  // all pairs: minutes
}

}  // namespace
}  // namespace tuff::hcq
