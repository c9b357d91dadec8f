// TUFF_CHECK_HAZARDS on CommandGraphs: what it throws and reports, and that the replays it assumes
// are those that happen.
#include "hcq/hazard_guard.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

#include "base/env.h"
#include "hcq/args.h"
#include "hcq/fake_device.h"
#include "hcq/graph.h"
#include "hcq/hazard_oracle.h"

namespace tuff::hcq {
namespace {

// A name that no other test process uses at the same time.
struct ReportFile {
  std::string path = testing::TempDir() + "hazards_" + std::to_string(getpid()) + ".jsonl";
  EnvOverride report{Env::TUFF_REPORT, path};
  ~ReportFile() { std::filesystem::remove(path); }
  std::vector<nlohmann::json> lines() const {
    std::vector<nlohmann::json> out;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) out.push_back(nlohmann::json::parse(line));
    return out;
  }
};

CommandList racing(MemoryBlock& block) {
  const Span s{&block, 0, 8};
  return {{{DispatchCmd{}, {{s, true}}, "say \"a\"\n"}, {DispatchCmd{}, {{s, false}}, "b"}}};
}

TEST(HazardGuard, AHazardIsAnErrorThatShowsIt) {
  MemoryBlock block{0, 64};
  const CommandList list = racing(block);
  try {
    guard_list(list, "a list");
    FAIL() << "not found";
  } catch (const HazardFound& e) {
    EXPECT_STREQ(e.kind(), "HazardFound");
    EXPECT_NE(std::string(e.what()).find("a list: 1 hazards"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("RAW: #1 \"b\""), std::string::npos) << e.what();
  }
}

TEST(HazardGuard, FindingsAreAppendedAsJsonLines) {
  ReportFile file;
  MemoryBlock block{0, 64};
  CommandList list = racing(block);
  EXPECT_THROW(guard_list(list, ""), HazardFound);
  insert_barriers(list);
  guard_list(list, "");  // nothing to report
  list.commands.push_back({BarrierCmd{}, {}, {}});
  guard_list(list, "");  // no hazard, a barrier too many
  const auto lines = file.lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["kind"], "RAW");
  EXPECT_EQ(lines[0]["first"]["label"], "say \"a\"\n");
  EXPECT_EQ(lines[0]["end"], 8);
  EXPECT_EQ(lines[1]["kind"], "unneeded_barrier");
  EXPECT_EQ(lines[1]["place"]["command"], 3);
}

TEST(HazardGuard, AReportThatCannotBeWrittenIsAnError) {
  EnvOverride report(Env::TUFF_REPORT, "/nonexistent/report.jsonl");
  MemoryBlock block{0, 64};
  EXPECT_THROW(guard_list(racing(block), ""), IoError);
}

class GraphGuard : public testing::TestWithParam<bool> {
 protected:
  GraphNode copy(size_t to, size_t from) {
    return Transfer{{memory.sub(to, 64), -1, 0, 64, false, true},
                     {memory.sub(from, 64), -1, 0, 64, true, false}};
  }
  GraphNode kernel(size_t at, bool writes) {
    return Launch{
        &program, {{memory.sub(at, 64), -1, 0, 64, true, writes}, input()}, {}, {1, 1, 1}};
  }
  static LaunchOperand input() { return {{}, 0, 0, 64, true, false}; }
  std::vector<GraphNode> nodes() {
    return {kernel(0, true), copy(64, 0), copy(128, 64), kernel(128, true)};
  }

  FakeDevice device{{.hidden = GetParam()}};
  FakeProgram program{"k", 2, 0, [](const std::byte*, auto) {}};
  Span memory = device.allocator().allocate(1024, MemoryKind::Device);
};

TEST_P(GraphGuard, GraphsAreCheckedWhenTheyAreMade) {
  EnvOverride on(Env::TUFF_CHECK_HAZARDS, "1");
  ReportFile file;
  for (uint32_t instances : {1u, 2u, 3u}) CommandGraph(device, nodes(), 1, 0, instances);
  EXPECT_TRUE(file.lines().empty());
}

// Were the ring's instances to share argument memory, a replay would be patched while the one
// before it reads.
TEST_P(GraphGuard, InstancesThatShareTheirArgumentsAreFound) {
  CommandGraph graph(device, nodes(), 1, 0, 2);
  const CommandList& list = graph.commands();
  Span patched;
  for (const Command& c : list.commands)
    if (auto* d = std::get_if<DispatchCmd>(&c.body)) patched = d->args;
  const ReplayInstance shared[2] = {{&list, patched}, {&list, patched}}, alone[1] = {shared[0]};
  FakeSignal timeline;
  EXPECT_THROW(guard_trace(replay_trace(shared, timeline), "shared"), HazardFound);
  guard_trace(replay_trace(alone, timeline), "alone");
}

INSTANTIATE_TEST_SUITE_P(Args, GraphGuard, testing::Bool(),
                         [](const auto& info) { return info.param ? "Staged" : "Direct"; });

// The ranges of bytes in which two states of a block differ, as the host's writes.
std::vector<Access> differences(const MemoryBlock& block, const std::vector<std::byte>& before) {
  std::vector<Access> out;
  for (size_t at = 0; at < before.size(); at++) {
    if (block.host[at] == before[at]) continue;
    if (!out.empty() && out.back().span.offset + out.back().span.size_bytes == at)
      out.back().span.size_bytes++;
    else
      out.push_back({{&block, at, 1}, true});
  }
  return out;
}

// What the host and the queue really do, seen from outside: which values the host waits for, which
// lists it submits, which bytes of the memory they name it has changed in between. Runs what is
// waited for, and nothing earlier.
class Observed {
 public:
  explicit Observed(FakeDevice& device)
      : queue_(device.compute_queue()), line_(static_cast<FakeSignal&>(queue_.timeline())) {
    line_.on_wait = [this](uint64_t value) {
      note_writes();
      trace.events.emplace_back(HostWait{&line_, value});
      while (line_.value() < value && queue_.step()) {}
    };
    queue_.on_submit = [this](const CommandList& list, uint64_t value) {
      note_writes();
      lists_.push_back(list);
      trace.events.emplace_back(Submission{0, &lists_.back(), {}, &line_, value, "submission"});
      for (const Command& c : list.commands)
        for (const Access& a : c.accesses)
          if (!a.write && a.span.block->host) watched_.try_emplace(a.span.block);
      remember();
    };
  }
  ~Observed() {
    line_.on_wait = {};
    queue_.on_submit = {};
    while (queue_.step()) {}
  }
  Trace trace;
  size_t written_bytes = 0;

  // The trace holds as it is and not without its waits; returns how many there are.
  size_t expect_waits_needed() const {
    const HazardReport report = check_hazards(trace);
    EXPECT_TRUE(report.clean()) << to_text(report, 20);
    Trace unwaited = trace;
    const size_t waits = std::erase_if(
        unwaited.events, [](const TraceEvent& e) { return std::holds_alternative<HostWait>(e); });
    EXPECT_FALSE(check_hazards(unwaited).clean());
    return waits;
  }

 private:
  void remember() {
    for (auto& [block, bytes] : watched_)
      bytes.assign(block->host, block->host + block->size_bytes);
  }
  void note_writes() {
    std::vector<Access> all;
    for (const auto& [block, bytes] : watched_)
      for (const Access& a : differences(*block, bytes)) all.push_back(a);
    for (const Access& a : all) written_bytes += a.span.size_bytes;
    trace.events.emplace_back(HostAccess{std::move(all), "observed"});
    remember();
  }
  FakeQueue& queue_;
  FakeSignal& line_;
  std::map<const MemoryBlock*, std::vector<std::byte>> watched_;
  std::deque<CommandList> lists_;
};

TEST(ObservedHost, ReplaysOfEveryNumberOfInstancesAreOrdered) {
  for (uint32_t instances : {1u, 2u, 3u}) {
    FakeDevice device{{.manual = true}};
    FakeProgram program("k", 2, 0, [](const std::byte*, auto) {});
    const Span memory = device.allocator().allocate(256, MemoryKind::Device);
    const LaunchOperand own{memory, -1, 0, 64, true, true}, input{{}, 0, 0, 64, true, false};
    CommandGraph graph(device, {Launch{&program, {own, input}, {}, {1, 1, 1}}}, 1, 0,
                       instances);
    Observed observed(device);
    for (uint64_t i = 0; i < 8; i++) {
      const uint64_t address = 0x0101'0101'0101'0000 * (i + 1);
      graph.replay({&address, 1}, {});
    }
    EXPECT_GE(observed.written_bytes, 8u);
    EXPECT_TRUE(test::oracle(observed.trace).clean());
    EXPECT_EQ(observed.expect_waits_needed(), 8 - instances);
  }
}

TEST(ObservedHost, StagedUploadsAreOrdered) {
  FakeDevice device{{.hidden = true, .manual = true}};
  constexpr size_t kPiece = 4u << 20;  // of the staging memory
  std::vector<std::byte> source;
  for (int piece = 1; piece <= 5; piece++)
    source.insert(source.end(), kPiece, static_cast<std::byte>(piece));
  const Span memory = device.allocator().allocate(source.size(), MemoryKind::Device);
  Observed observed(device);
  device.upload(memory, source.data());
  EXPECT_GT(observed.written_bytes, 3 * kPiece);  // all but the first piece, which no list precedes
  EXPECT_EQ(observed.expect_waits_needed(), 4u);
}

TEST(ObservedHost, ArgumentBlocksOfEagerListsAreOrdered) {
  FakeDevice device{{.manual = true}};
  const Span memory = device.allocator().allocate(1024, MemoryKind::Device);
  ArgRing ring(device, 16 << 10);
  Observed observed(device);
  for (int i = 1; i <= 60; i++) {
    const Span block = ring.allocate(1024);
    std::memset(ring.host(block), i, block.size_bytes);
    CommandList list;
    list.commands.push_back({CopyCmd{memory, block}, {{block, false}, {memory, true}}, "use"});
    ring.retire(
        device.compute_queue().submit_once(device.compute_queue().encode(list, EncodeUse::Once)));
  }
  EXPECT_GT(observed.written_bytes, 40u * 1024);
  EXPECT_GT(observed.expect_waits_needed(), 5u);
}

}  // namespace
}  // namespace tuff::hcq
