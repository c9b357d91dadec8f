// Graphs over several devices as the hazard checker takes them: several replays in a row on all
// queues, the host's included. Every barrier, wait and signal is deleted once; what the judge calls
// needed the checker has to find, and on the random-order device it shows.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "base/env.h"
#include "devices/shuffle/shuffle.h"
#include "engine/jit/captured_graph.h"
#include "engine/realize/capture.h"
#include "engine/split_step.h"
#include "hcq/hazard_guard.h"
#include "hcq/hazard_oracle.h"
#include "hcq/host_queue.h"

namespace tuff::engine {
namespace {

using hcq::Access;
using hcq::Command;
using hcq::CommandList;
using hcq::Span;
using hcq::Submission;
using hcq::Trace;
using test::SplitStep;

// A trace with lists of its own, whose commands are numbered, so that the judge can tell them
// apart.
struct OwnTrace {
  Trace trace;
  std::vector<std::unique_ptr<CommandList>> lists;

  explicit OwnTrace(Trace from) : trace(std::move(from)) {
    std::map<const CommandList*, const CommandList*> own;
    for (hcq::TraceEvent& e : trace.events) {
      auto* s = std::get_if<Submission>(&e);
      if (!s) continue;
      const CommandList*& copy = own[s->list];
      if (!copy) {
        lists.push_back(std::make_unique<CommandList>(*s->list));
        for (size_t i = 0; i < lists.back()->commands.size(); i++) {
          Command& c = lists.back()->commands[i];
          c.label = fmt::format("{} of list {} {}", i, lists.size() - 1, c.label);
        }
        copy = lists.back().get();
      }
      s->list = copy;
    }
  }
};

const char* kind_of(const Command& c) {
  return std::holds_alternative<hcq::WaitCmd>(c.body)     ? "waits"
         : std::holds_alternative<hcq::SignalCmd>(c.body) ? "signals"
                                                          : "barriers";
}

struct Deletions {
  size_t deleted = 0, needed = 0, found = 0, stuck = 0;
  std::string unneeded;
};

// `other` has one replay less: the last one, which something else than a replay follows, is the
// other instance's. What either needs is needed.
void delete_each(const OwnTrace& own, const OwnTrace& other, const char* what, size_t kinds = 3) {
  ASSERT_EQ(own.lists.size(), other.lists.size());
  const hcq::HazardReport whole = check_hazards(own.trace);
  ASSERT_TRUE(whole.clean()) << to_text(whole, 10);
  ASSERT_TRUE(hcq::test::oracle(own.trace).clean());
  std::map<std::string, Deletions> counts;
  for (size_t l = 0; l < own.lists.size(); l++) {
    const CommandList& list = *own.lists[l];
    for (size_t c = 0; c < list.commands.size(); c++) {
      if (!hcq::test::only_orders(list.commands[c])) continue;
      const hcq::test::Mutant m = hcq::test::without(own.trace, list, c);
      const hcq::test::Verdict truth = hcq::test::oracle(m.trace);
      const hcq::HazardReport report = check_hazards(m.trace);
      const hcq::test::Verdict found = hcq::test::verdict(report);
      EXPECT_EQ(found.stuck, truth.stuck) << "list " << l << " without command " << c;
      if (!truth.stuck) {
        EXPECT_EQ(found.hazards, truth.hazards) << list.commands[c].label;
      }
      const hcq::test::Mutant n = hcq::test::without(other.trace, *other.lists[l], c);
      const bool needed = !truth.clean() || !hcq::test::oracle(n.trace).clean();
      Deletions& d = counts[kind_of(list.commands[c])];
      d.deleted++;
      d.needed += needed;
      d.found += !report.clean() || !check_hazards(n.trace).clean();
      d.stuck += truth.stuck;
      if (!needed) d.unneeded += fmt::format(" [{}]", list.commands[c].label);
    }
  }
  for (const auto& [kind, d] : counts) {
    fmt::print(
        "{}, {}: {} deleted one by one, {} needed ({} of them hang), {} found; not needed:{}\n",
        what, kind, d.deleted, d.needed, d.stuck, d.found,
        d.unneeded.empty() ? " none" : d.unneeded);
    EXPECT_EQ(d.found, d.needed) << what << " " << kind;
    EXPECT_EQ(d.unneeded, "") << what << " " << kind;
    EXPECT_GT(d.needed, 0u);
  }
  EXPECT_EQ(counts.size(), kinds);
}

// A training step captured through the public API, inputs re-bound at every replay.
template <class Step>
void mutate_step(Step step, const std::string& what, size_t kinds) {
  const uint64_t checked = hcq::guarded_traces();
  Jit jit([&](const std::vector<Tensor>& in) { return step(in); });
  const std::vector<Tensor> in = step.inputs();
  jit(in);
  jit(in);
  ASSERT_NE(jit.graph()->segmented(), nullptr);
  EXPECT_GT(hcq::guarded_traces(), checked);
  const SegmentedGraph& graph = *jit.graph()->segmented();
  delete_each(OwnTrace(graph.trace(3)), OwnTrace(graph.trace(2)),
              what.c_str(), kinds);
}

void mutate_split(const std::string& first, const std::string& second, size_t kinds = 3) {
  EnvOverride on(Env::TUFF_CHECK_HAZARDS, "1");
  mutate_step(SplitStep(first, second, 4), first + " and " + second, kinds);
}

// The same weights on both devices, half of the rows on each: gradients are summed over both.
class ShardedStep {
 public:
  ShardedStep(const std::string& first, const std::string& second)
      : names_{first, second},
        w_(on_both(1).shard(names_).set_requires_grad()),
        optimizer_({w_}, {.lr = 2e-2}) {}
  std::vector<Tensor> inputs() const {
    return {on_both(5).shard(names_, 0).realize(), on_both(6).shard(names_, 0).realize()};
  }
  std::vector<Tensor> operator()(const std::vector<Tensor>& in) {
    const Tensor loss = (in[0].matmul(w_).tanh() - in[1]).square().mean();
    optimizer_.zero_grad();
    loss.backward();
    optimizer_.step({loss});
    return {loss};
  }

 private:
  Tensor on_both(int seed) const {
    return Tensor::from(tuff::test::numbers(16, seed), {4, 4}, {.device = names_[0]});
  }
  std::vector<std::string> names_;
  Tensor w_;
  optim::SGD optimizer_;
};

TEST(SplitMutation, OfCpuAndNull) { mutate_split("CPU", "NULL"); }
TEST(SplitMutation, OfNullAndCpu) { mutate_split("NULL", "CPU"); }
TEST(SplitMutation, OfShuffleWithItsCopyQueueAndCpu) { mutate_split("SHUFFLE", "CPU"); }
TEST(SplitMutation, OfTwoDevicesWithHiddenMemory) { mutate_split("CPU", "SHUFFLE"); }
// GPUs that reach each other wait for each other's timelines: nobody raises a signal for them.
TEST(SplitMutation, OfTwoGpusThatReachEachOther) {
  EnvOverride iface(Env::AMD_IFACE, "MOCK"), machine(Env::TUFF_MOCK, "gpus:2,seed:1");
  mutate_split("AMD:0", "AMD:1", 2);
  close_devices();
}


class NvidiaGpus : public testing::Test {
 protected:
  ~NvidiaGpus() override { close_devices(); }
  EnvOverride on_{Env::TUFF_CHECK_HAZARDS, "1"}, iface_{Env::NV_IFACE, "MOCK"},
      machine_{Env::TUFF_MOCK, "gpus:2,seed:1,sm:120"};
};
TEST_F(NvidiaGpus, StepSplitOverThem) { mutate_split("NV:0", "NV:1", 2); }
TEST_F(NvidiaGpus, StepShardedOverThem) {
  mutate_step(ShardedStep("NV:0", "NV:1"), "rows over NV:0 and NV:1", 2);
}

// ---- on the random-order device

std::byte* at(const Span& s) { return reinterpret_cast<std::byte*>(s.address()); }

// A graph's lists submitted anew, in the order of the trace, with a host's queue of its own.
class Rerun {
 public:
  explicit Rerun(const std::string& shuffle)
      : shuffle_(Device::get(shuffle)), step_(shuffle, "CPU") {
    EnvOverride on(Env::TUFF_CHECK_HAZARDS, "1");
    const std::vector<Tensor> in = step_.inputs();
    step_(in);
    std::vector<BoundCall> calls;
    {
      Capture capture;
      step_(in);
      calls = capture.take();
    }
    for (const auto& device : {shuffle_, cpu_}) device->queue().wait_idle();
    graph_ = std::make_unique<CapturedGraph>(calls, std::span<const Ref<Buffer>>{});
    Trace replays = graph_->segmented()->trace(2);
    std::erase_if(replays.events, [](const hcq::TraceEvent& e) {
      const auto* s = std::get_if<Submission>(&e);
      return s && s->label == SegmentedGraph::kWhatFollows;
    });
    own_ = std::make_unique<OwnTrace>(std::move(replays));
    keep_memory();
  }
  const OwnTrace& own() const { return *own_; }

  // What the memory holds in the end, or nothing where the device hangs; it is lost then.
  std::vector<std::byte> run(const Trace& trace, uint64_t seed) {
    for (const Kept& k : kept_) std::memcpy(at(k.span), k.before.data(), k.before.size());
    devices::shuffle_reseed(shuffle_->hcq(), seed);
    try {
      submit(trace);
      for (hcq::Queue* q : {&shuffle_->queue(), shuffle_->hcq().copy_queue(), &cpu_->queue()})
        q->wait_idle();
      for (auto& [number, host] : hosts_) host->wait_idle();
    } catch (const DeviceLost& e) {
      message_ = e.what();
      hosts_.clear();
      return {};
    }
    hosts_.clear();
    std::vector<std::byte> out;
    for (const Kept& k : kept_)
      if (k.compared) out.insert(out.end(), at(k.span), at(k.span) + k.span.size_bytes);
    return out;
  }
  const std::string& message() const { return message_; }

 private:
  struct Kept {
    Span span;
    std::vector<std::byte> before;
    bool compared = true;
  };

  // The memory of the first replay's start: what is read before it is written as it is, argument
  // blocks naming a place that no kernel means, all else spoilt.
  void keep_memory() {
    scratch_ = shuffle_->hcq().allocator().allocate(1 << 20, hcq::MemoryKind::Device);
    std::vector<Access> seen;
    const auto touched = [&](const Span& s, bool by_read) {
      return std::any_of(seen.begin(), seen.end(), [&](const Access& a) {
        return a.write != by_read && a.span.block == s.block &&
               a.span.offset < s.offset + s.size_bytes &&
               s.offset < a.span.offset + a.span.size_bytes;
      });
    };
    for (const hcq::TraceEvent& e : own_->trace.events) {
      const auto* s = std::get_if<Submission>(&e);
      if (!s) continue;
      for (const Command& c : s->list->commands) {
        for (const Access& a : c.accesses)
          if (!a.write) seen.push_back(a);
        for (const Access& a : c.accesses) {
          if (!a.write || a.span.size_bytes == 0) continue;
          if (!touched(a.span, false)) keep(a.span, touched(a.span, true));
          seen.push_back(a);
        }
      }
    }
  }
  void keep(const Span& s, bool as_it_is) {
    Kept k{s, std::vector<std::byte>(s.size_bytes, std::byte{0xFF}), true};
    if (as_it_is) {
      std::memcpy(k.before.data(), at(s), s.size_bytes);
    } else if (s.block->kind == hcq::MemoryKind::Args) {
      const uint64_t address = scratch_.address();
      for (size_t i = 0; i + 8 <= s.size_bytes; i += 8) std::memcpy(&k.before[i], &address, 8);
      k.compared = false;
    }
    kept_.push_back(std::move(k));
  }

  hcq::Queue& queue_of(const Submission& s) {
    for (hcq::Queue* q : {&shuffle_->queue(), shuffle_->hcq().copy_queue(), &cpu_->queue()})
      if (&q->timeline() == s.timeline) return *q;
    std::unique_ptr<hcq::HostQueue>& host = hosts_[s.queue];
    if (!host)
      host = std::make_unique<hcq::HostQueue>(
          cpu_->hcq(),
          std::vector<hcq::Queue*>{&shuffle_->queue(), shuffle_->hcq().copy_queue(),
                                   &cpu_->queue()},
          nullptr);
    return *host;
  }
  // Values of the trace are those of timelines that begin at 0.
  uint64_t base_of(hcq::Signal* signal) {
    return bases_.try_emplace(signal, signal->value()).first->second;
  }
  void submit(const Trace& trace) {
    bases_.clear();
    for (hcq::Queue* q : {&shuffle_->queue(), shuffle_->hcq().copy_queue(), &cpu_->queue()})
      bases_[&q->timeline()] = q->last_submitted();
    for (const hcq::TraceEvent& e : trace.events) {
      const auto* s = std::get_if<Submission>(&e);
      if (!s) continue;
      std::vector<uint64_t> slots = s->slots;
      for (const Command& c : s->list->commands) {
        if (const auto* w = std::get_if<hcq::WaitCmd>(&c.body))
          slots[w->value_slot] += base_of(w->signal);
        if (const auto* g = std::get_if<hcq::SignalCmd>(&c.body))
          slots[g->value_slot] += base_of(g->signal);
      }
      hcq::Queue& queue = queue_of(*s);
      queue.submit_once(queue.encode(*s->list, hcq::EncodeUse::Once), slots);
    }
  }

  std::shared_ptr<Device> shuffle_, cpu_ = Device::get("CPU");
  SplitStep step_;
  std::unique_ptr<CapturedGraph> graph_;
  std::unique_ptr<OwnTrace> own_;
  std::vector<Kept> kept_;
  Span scratch_;
  std::map<uint32_t, std::unique_ptr<hcq::HostQueue>> hosts_;
  std::map<hcq::Signal*, uint64_t> bases_;
  std::string message_;
};

TEST(ShuffledSplit, DeletedWaitsSignalsAndBarriersShow) {
  constexpr uint64_t kSeeds = 60;
  EnvOverride timeout(Env::TUFF_TIMEOUT_MS, "1000");
  auto rerun = std::make_unique<Rerun>("SHUFFLE");
  const std::vector<std::byte> wanted = rerun->run(rerun->own().trace, 0);
  ASSERT_FALSE(wanted.empty()) << rerun->message();
  for (uint64_t seed = 1; seed < kSeeds; seed++)
    ASSERT_EQ(rerun->run(rerun->own().trace, seed), wanted) << "nothing deleted, seed " << seed;
  size_t needed = 0, wrong = 0, hung = 0;
  const size_t lists = rerun->own().lists.size();
  for (size_t l = 0; l < lists; l++) {
    for (size_t c = 0; c < rerun->own().lists[l]->commands.size(); c++) {
      const CommandList& list = *rerun->own().lists[l];
      if (!hcq::test::only_orders(list.commands[c])) continue;
      const std::string label = list.commands[c].label;
      const hcq::test::Mutant m = hcq::test::without(rerun->own().trace, list, c);
      const hcq::HazardReport report = check_hazards(m.trace);
      needed += !report.clean();
      if (hung > 2 && !report.stuck.empty()) continue;  // each costs a deadlock's time
      for (uint64_t seed = 0; seed < kSeeds; seed++) {
        const std::vector<std::byte> got = rerun->run(m.trace, seed);
        if (got == wanted) continue;
        EXPECT_FALSE(report.clean()) << label << " seed " << seed << ": the checker finds nothing";
        if (got.empty()) {
          const bool named = rerun->message().find("deadlock") != std::string::npos ||
                             rerun->message().find("no progress") != std::string::npos;
          EXPECT_TRUE(named) << rerun->message();
          hung++;
        } else {
          wrong++;
        }
        break;
      }
      if (!rerun->message().empty()) {  // the device is lost
        rerun.reset();
        close_devices();
        rerun = std::make_unique<Rerun>("SHUFFLE");
      }
    }
  }
  fmt::print("split step on SHUFFLE and CPU: {} needed, {} give wrong values, {} hang\n", needed,
             wrong, hung);
  EXPECT_GT(wrong, 10u);
  EXPECT_GT(hung, 0u);
}

}  // namespace
}  // namespace tuff::engine
