// Random graphs on the random-order device over 1,000 seeds of its order: eager, and captured and
// replayed three times without waiting, each replay with inputs and results of its own. What the
// first order gives is judged by the interpreter; every other order has to give the same bits.
// TUFF_TEST_GRAPHS and TUFF_TEST_SEED widen or move the run.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/check.h"
#include "check/graph_check.h"
#include "check/random_case.h"
#include "devices/shuffle/shuffle.h"
#include "engine/jit/captured_graph.h"
#include "engine/realize/capture.h"

namespace tuff::check {
namespace {

using engine::Buffer;

constexpr uint64_t kSeedsPerGraph = 20;

uint64_t setting(const char* name, uint64_t usual) {
  const char* given = std::getenv(name);
  return given ? std::strtoull(given, nullptr, 10) : usual;
}

std::vector<std::byte> contents(Buffer& b) {
  std::vector<std::byte> out(b.size_bytes());
  if (!out.empty()) b.copyout(out.data());
  return out;
}

bool same(const RunOutput& a, const RunOutput& b) {
  return a.sinks == b.sinks && a.storages == b.storages;
}

// The graph on memory of its own, filled anew.
struct OnDevice {
  GraphCase there;
  std::vector<Ref<Buffer>> inputs;

  OnDevice(const GraphCase& c, const std::shared_ptr<engine::Device>& device) {
    std::map<uint64_t, Ref<Buffer>> made;
    there = placed(c, device->name(), [&](const ir::Storage& s) -> Ref<ir::Storage> {
      auto buffer = Buffer::make(device, s.dtype, s.count);
      made[s.id] = buffer;
      return buffer;
    });
    for (const GraphInput& in : c.inputs) {
      inputs.push_back(made.at(in.storage->id));
      if (!in.bytes.empty()) inputs.back()->copyin(in.bytes.data());
    }
  }
  RunOutput output(const GraphCase& c, std::span<const Ref<Buffer>> sinks) const {
    RunOutput o;
    for (const Ref<Buffer>& b : sinks) o.sinks.push_back(contents(*b));
    for (size_t i = 0; i < inputs.size(); i++)
      o.storages[c.inputs[i].storage->id] = contents(*inputs[i]);
    return o;
  }
};

// The same graph with other values: those of every input moved on by one.
GraphCase moved_on(GraphCase c) {
  for (GraphInput& in : c.inputs) {
    const size_t size = size_bytes(in.storage->dtype);
    if (in.bytes.size() > size)
      std::rotate(in.bytes.begin(), in.bytes.begin() + std::ptrdiff_t(size), in.bytes.end());
  }
  return c;
}

// A graph as a Jit keeps it: inputs and results are slots.
class Captured {
 public:
  Captured(const GraphCase& c, const std::shared_ptr<engine::Device>& device) : device_(device) {
    const OnDevice first(c, device);
    engine::Capture capture;
    sinks_ = engine::realize(first.there.sinks, c.variables);
    std::vector<engine::BoundCall> calls = capture.take();
    slots_ = first.inputs;
    for (const Ref<Buffer>& s : sinks_)
      if (slot_of(*s) < 0 && &s->root() == s.get()) slots_.push_back(s);
    input_count_ = first.inputs.size();
    if (calls.empty()) return;
    fixed_ = std::any_of(calls.begin(), calls.end(), [&](const engine::BoundCall& call) {
      const auto* copy = std::get_if<engine::BoundCopy>(&call);
      return copy && (slot_of(*copy->dst) >= 0 || slot_of(*copy->src) >= 0);
    });
    graph_.emplace(calls, fixed_ ? std::span<const Ref<Buffer>>() : slots_);
  }
  // Whether there is anything to be replayed with other memory.
  bool replays() const { return graph_.has_value(); }
  // A captured copy takes no slots: the memory stays what it was at capture.
  bool fixed() const { return fixed_; }
  RunOutput replay_in_place(const GraphCase& c) {
    for (size_t i = 0; i < input_count_; i++)
      if (!c.inputs[i].bytes.empty()) slots_[i]->copyin(c.inputs[i].bytes.data());
    graph_->replay({});
    RunOutput o;
    for (const Ref<Buffer>& b : sinks_) o.sinks.push_back(contents(*b));
    for (size_t i = 0; i < input_count_; i++)
      o.storages[c.inputs[i].storage->id] = contents(*slots_[i]);
    return o;
  }

  // Submits a replay on `memory`, and returns where its sinks will be.
  std::vector<Ref<Buffer>> replay(const OnDevice& memory) {
    std::vector<Ref<Buffer>> given = memory.inputs;
    for (size_t i = input_count_; i < slots_.size(); i++)
      given.push_back(Buffer::make(device_, slots_[i]->dtype, slots_[i]->count));
    graph_->replay(given);
    std::vector<Ref<Buffer>> out;
    for (const Ref<Buffer>& s : sinks_) {
      const int slot = slot_of(*s);
      const bool whole = slot >= 0 && slots_[size_t(slot)] == s;
      out.push_back(
          slot < 0 ? s
          : whole  ? given[size_t(slot)]
                   : Buffer::view(given[size_t(slot)], s->dtype, s->count, s->byte_offset()));
    }
    return out;
  }

 private:
  int slot_of(const Buffer& b) const {
    for (size_t i = 0; i < slots_.size(); i++)
      if (&slots_[i]->root() == &b.root()) return int(i);
    return -1;
  }
  std::shared_ptr<engine::Device> device_;
  std::vector<Ref<Buffer>> sinks_, slots_;
  size_t input_count_ = 0;
  std::optional<engine::CapturedGraph> graph_;
  bool fixed_ = false;
};

struct Counts {
  uint64_t graphs = 0, orders = 0, triples = 0, in_flight = 0, not_replayed = 0, in_place = 0;
};

// One graph under kSeedsPerGraph orders.
class Shuffling {
 public:
  Shuffling(uint64_t seed, const std::string& device, Counts& counts)
      : device_(engine::Device::get(device)),
        counts_(counts),
        seed_(seed),
        cases_{random_case(seed, device), {}} {
    cases_[1] = moved_on(cases_[0]);
    counts_.graphs++;
  }
  void run() {
    Captured captured(cases_[0], device_);
    counts_.not_replayed += !captured.replays();
    counts_.in_place += captured.fixed();
    for (uint64_t order = 0; order < kSeedsPerGraph; order++) {
      devices::shuffle_reseed(device_->hcq(), seed_ * kSeedsPerGraph + order);
      counts_.orders++;
      run_eager(order % 2);
      if (captured.fixed())
        judge(order % 2, captured.replay_in_place(cases_[order % 2]), "replay in place");
      else if (captured.replays())
        run_captured(captured);
      if (testing::Test::HasFailure()) return;
    }
  }

 private:
  void run_eager(size_t which) {
    const OnDevice memory(cases_[which], device_);
    const auto sinks = engine::realize(memory.there.sinks, cases_[which].variables);
    judge(which, memory.output(cases_[which], sinks), "eager");
  }
  void run_captured(Captured& captured) {
    const OnDevice memory[] = {{cases_[0], device_}, {cases_[1], device_}, {cases_[0], device_}};
    const auto first = captured.replay(memory[0]);
    const uint64_t value = device_->queue().last_submitted();
    const auto second = captured.replay(memory[1]);
    counts_.triples++;
    counts_.in_flight += !device_->queue().passed(value);
    const auto third = captured.replay(memory[2]);  // patches what the first one was given
    judge(1, memory[1].output(cases_[1], second), "second replay");
    judge(0, memory[0].output(cases_[0], first), "first replay");
    judge(0, memory[2].output(cases_[0], third), "third replay");
  }
  void judge(size_t which, RunOutput got, const char* what) {
    if (!known_[which]) {
      EXPECT_EQ(difference(cases_[which], got), "") << "graph " << seed_ << ", " << what;
      known_[which] = std::move(got);
    } else {
      EXPECT_TRUE(same(*known_[which], got))
          << "graph " << seed_ << ", " << what << ", order " << counts_.orders << ": "
          << difference(cases_[which], got);
    }
  }

  std::shared_ptr<engine::Device> device_;
  Counts& counts_;
  uint64_t seed_;
  GraphCase cases_[2];
  std::optional<RunOutput> known_[2];
};

class ShuffledGraphs : public testing::TestWithParam<std::string> {};

TEST_P(ShuffledGraphs, GiveTheInterpretersResultsInEveryOrder) {
  Counts counts;
  const uint64_t first = setting("TUFF_TEST_SEED", 0), graphs = setting("TUFF_TEST_GRAPHS", 50);
  for (uint64_t seed = first; seed < first + graphs && !HasFailure(); seed++)
    Shuffling(seed, GetParam(), counts).run();
  fmt::print(
      "{}: {} graphs, {} orders; in {} of {} triples of replays the first was pending when the "
      "second had been submitted; {} graphs replayed on the same memory, {} with no calls\n",
      GetParam(), counts.graphs, counts.orders, counts.in_flight, counts.triples, counts.in_place,
      counts.not_replayed);
  EXPECT_GT(3 * counts.in_flight, counts.triples);
  EXPECT_LT(2 * (counts.in_place + counts.not_replayed), counts.graphs);
}

INSTANTIATE_TEST_SUITE_P(Memory, ShuffledGraphs, testing::Values("SHUFFLE", "SHUFFLE:visible"),
                         [](const auto& row) {
                           return std::string(row.param == "SHUFFLE" ? "staged" : "visible");
                         });

}  // namespace
}  // namespace tuff::check
