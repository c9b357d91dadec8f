// The hazard checker on real graphs: training steps captured through the public API. Every barrier
// is deleted once; and accesses are not believed but executed, in the interpreter.
#include "hcq/hazards.h"

#include <gtest/gtest.h>

#include <tuff/jit.h>

#include "base/env.h"
#include "engine/jit/captured_graph.h"
#include "engine/small_steps.h"
#include "ir/interpret.h"
#include "hcq/hazard_guard.h"
#include "hcq/hazard_oracle.h"
#include "kernel/lowered.h"

namespace tuff::engine {
namespace {

using hcq::CommandList;
using hcq::HazardReport;
using hcq::Span;
using hcq::Trace;

// Commands by number, so that the oracle can tell them apart.
CommandList numbered(CommandList list) {
  for (size_t i = 0; i < list.commands.size(); i++)
    list.commands[i].label = std::to_string(i) + " " + list.commands[i].label;
  return list;
}

Trace submitted_once(const CommandList& list) {
  Trace t;
  t.events.emplace_back(hcq::Submission{.list = &list});
  return t;
}

// Deletes the list's barriers one by one: what the oracle calls needed the checker must find.
void delete_each_barrier(const CommandList& list, const char* what) {
  const Trace trace = submitted_once(list);
  const HazardReport whole = check_hazards(trace);
  ASSERT_TRUE(whole.clean()) << to_text(whole);
  ASSERT_TRUE(hcq::test::oracle(trace).clean());
  size_t barriers = 0, needed = 0, found = 0, pairs = 0;
  for (size_t c = 0; c < list.commands.size(); c++) {
    if (!std::holds_alternative<hcq::BarrierCmd>(list.commands[c].body)) continue;
    const hcq::test::Mutant m = hcq::test::without(trace, list, c);
    const hcq::test::Verdict truth = hcq::test::oracle(m.trace);
    const HazardReport report = check_hazards(m.trace);
    EXPECT_EQ(hcq::test::verdict(report).hazards, truth.hazards) << "without command " << c;
    barriers++;
    needed += !truth.clean();
    found += !report.clean();
    pairs += report.hazards.size();
  }
  printf(
      "%s: %zu commands, %zu barriers deleted one by one, %zu needed, %zu found (%zu findings), "
      "%zu not needed\n",
      what, list.commands.size(), barriers, needed, found, pairs, whole.unneeded.size());
  EXPECT_EQ(whole.barriers, barriers);
  EXPECT_EQ(whole.unneeded.size(), barriers - needed);
  EXPECT_EQ(found, needed);
  EXPECT_GT(needed, 10u);
}

template <class Step>
void mutate_captured(const char* what) {
  Step step;
  Jit jit([&](const std::vector<Tensor>& in) { return step(in); });
  const std::vector<Tensor> in = step.inputs();
  EXPECT_EQ(jit.graph(), nullptr);
  jit(in);
  jit(in);
  ASSERT_NE(jit.graph(), nullptr);
  const auto graphs = jit.graph()->graphs();
  ASSERT_EQ(graphs.size(), 1u);
  delete_each_barrier(numbered(graphs[0]->commands()), what);
}

TEST(HazardMutation, EveryNeededBarrierOfAGptStepIsMissed) { mutate_captured<GptStep>("GPT step"); }
TEST(HazardMutation, EveryNeededBarrierOfAConvNetStepIsMissed) {
  mutate_captured<ConvNetStep>("ConvNet step");
}

// ---- accesses that are executed

// Bytes of each buffer that a kernel really reads and writes.
struct Executed {
  std::map<size_t, std::set<int64_t>> read, written;  // elements by argument
};

Executed execute_accesses(const BoundKernel& k, const Target& target) {
  const kernel::LinearKernel linear = kernel::lower(k.kernel->ast, target);
  std::map<int32_t, size_t> argument;
  for (size_t i = 0; i < k.kernel->buffers.size(); i++) argument[k.kernel->buffers[i].slot] = i;
  std::vector<std::vector<std::byte>> memory;
  ir::LinearRun run;
  for (const auto& a : linear.buffers) {
    memory.emplace_back(k.buffers.at(argument.at(a.slot))->size_bytes());
    run.buffers.resize(std::max(run.buffers.size(), size_t(a.slot) + 1));
    run.buffers[size_t(a.slot)] = memory.back();
  }
  for (size_t i = 0; i < k.scalars.size(); i++)
    run.variables[k.kernel->variables[i]->get<ir::VariableArg>().name] = k.scalars[i];
  for (size_t i = 0; i < 3; i++) run.groups[i] = uint32_t(linear.groups[i].value());
  run.local = linear.local;
  run.subgroup_size = linear.subgroup_size;
  Executed out;
  run.on_access = [&](const ir::LinearAccess& a) {
    const size_t at = argument.at(a.slot);
    const auto n = int64_t(a.bytes / size_bytes(k.buffers.at(at)->dtype));
    for (int64_t e = 0; e < n; e++)
      (a.write ? out.written : out.read)[at].insert(a.element * n + e);
  };
  ir::interpret_linear(linear.ops, run);
  return out;
}

// Elements as ranges of bytes of the buffer's memory.
void append_ranges(const std::set<int64_t>& elements, Buffer& b, bool write,
                   std::vector<hcq::Access>& out) {
  const size_t size = size_bytes(b.dtype);
  const Span span = b.span();
  for (auto it = elements.begin(); it != elements.end();) {
    const size_t begin = size_t(*it) * size;
    size_t end = begin;
    for (; it != elements.end() && size_t(*it) * size == end; ++it) end += size;
    out.push_back({span.sub(begin, end - begin), write});
  }
}

bool covered(const hcq::Access& executed, const std::vector<hcq::Access>& claimed) {
  return std::any_of(claimed.begin(), claimed.end(), [&](const hcq::Access& c) {
    return c.write == executed.write && c.span.block == executed.span.block &&
           c.span.offset <= executed.span.offset &&
           c.span.offset + c.span.size_bytes >= executed.span.offset + executed.span.size_bytes;
  });
}

// Whether the command claims what a call of the kernel would: the same program on the same memory.
bool is_call(const hcq::Command& c, const BoundKernel& k) {
  const auto* d = std::get_if<hcq::DispatchCmd>(&c.body);
  if (!d || d->program != k.kernel->program.get()) return false;
  std::multiset<std::tuple<const hcq::MemoryBlock*, size_t, bool>> want{
      {d->args.block, d->args.offset, false}};
  for (size_t i = 0; i < k.buffers.size(); i++) {
    const Span s = k.buffers[i]->span();
    if (k.kernel->buffers[i].read) want.insert({s.block, s.offset, false});
    if (k.kernel->buffers[i].written) want.insert({s.block, s.offset, true});
  }
  std::multiset<std::tuple<const hcq::MemoryBlock*, size_t, bool>> have;
  for (const hcq::Access& a : c.accesses) have.insert({a.span.block, a.span.offset, a.write});
  return have == want;
}

// The call that a command stands for; it is taken out of `calls`. Graphs order commands anew.
std::optional<BoundKernel> take_call(const hcq::Command& c, std::vector<BoundCall>& calls) {
  for (auto it = calls.begin(); it != calls.end(); ++it) {
    const auto* k = std::get_if<BoundKernel>(&*it);
    if (!k || !is_call(c, *k)) continue;
    BoundKernel out = *k;
    calls.erase(it);
    return out;
  }
  return std::nullopt;
}

// A step's list with what its kernels do in place of what it claims. On the way: all that is done
// is claimed.
CommandList with_executed_accesses(std::span<const BoundCall> all, const CommandList& list,
                                   const Target& target) {
  CommandList out = list;
  std::vector<BoundCall> calls(all.begin(), all.end());
  std::erase_if(calls, [](const BoundCall& c) { return std::holds_alternative<BoundCopy>(c); });
  for (hcq::Command& c : out.commands) {
    if (!std::holds_alternative<hcq::DispatchCmd>(c.body)) continue;
    const std::optional<BoundKernel> k = take_call(c, calls);
    if (!k) {
      ADD_FAILURE() << c.label << " is no call of the step";
      return out;
    }
    const Executed e = execute_accesses(*k, target);
    const Span args = std::get<hcq::DispatchCmd>(c.body).args;
    std::vector<hcq::Access> accesses{{args, false}};
    for (const auto& [i, elements] : e.read)
      append_ranges(elements, *k->buffers[i], false, accesses);
    for (const auto& [i, elements] : e.written)
      append_ranges(elements, *k->buffers[i], true, accesses);
    for (const hcq::Access& a : accesses)
      EXPECT_TRUE(covered(a, c.accesses))
          << c.label << (a.write ? " writes" : " reads") << " bytes " << a.span.offset << ".."
          << a.span.size_bytes;
    EXPECT_FALSE(e.written.empty()) << c.label;
    c.accesses = std::move(accesses);
  }
  EXPECT_TRUE(calls.empty()) << calls.size() << " calls have no command";
  return out;
}

// `claimed`: the calls' list as it was built.
void check_executed(std::span<const BoundCall> calls, const CommandList& claimed,
                    const char* what) {
  for (const char* target : {"c-x86-64", "spirv-generic"}) {
    SCOPED_TRACE(target);
    const CommandList executed = with_executed_accesses(calls, claimed, builtin_target(target));
    const HazardReport report = check_hazards(submitted_once(executed));
    EXPECT_TRUE(report.clean()) << to_text(report);
    printf("%s as %s does it: %zu calls, %zu barriers, %zu of them not needed\n", what, target,
           calls.size(), report.barriers, report.unneeded.size());
    EXPECT_GT(report.barriers, 10u);
    // Without barriers the accesses that were executed do conflict.
    CommandList bare = executed;
    std::erase_if(bare.commands, [](const hcq::Command& c) {
      return std::holds_alternative<hcq::BarrierCmd>(c.body);
    });
    EXPECT_FALSE(check_hazards(submitted_once(bare)).clean());
  }
}

template <class Step>
void check_executed(const char* what) {
  Step step;
  const std::vector<BoundCall> calls = calls_of_a_step(step);
  const CapturedGraph graph(calls, {});
  ASSERT_EQ(graph.graphs().size(), 1u);
  check_executed(calls, graph.graphs()[0]->commands(), (std::string("captured ") + what).c_str());
  const CommandList eager = record(device_of(calls[0]), calls);
  check_executed(calls, eager, (std::string("eager ") + what).c_str());
}

TEST(ExecutedAccesses, OfAGptStepAreClaimedAndOrdered) { check_executed<GptStep>("GPT step"); }
TEST(ExecutedAccesses, OfAConvNetStepAreClaimedAndOrdered) {
  check_executed<ConvNetStep>("ConvNet step");
}

// ---- TUFF_CHECK_HAZARDS

TEST(HazardGuard, ChecksEagerListsAndGraphsIfAskedTo) {
  GptStep step;
  const std::vector<Tensor> in = step.inputs();
  const uint64_t before = hcq::guarded_traces();
  {
    EnvOverride off(Env::TUFF_CHECK_HAZARDS, "0");
    step(in)[0].realize();
    EXPECT_EQ(hcq::guarded_traces(), before);
  }
  EnvOverride on(Env::TUFF_CHECK_HAZARDS, "1");
  step(in)[0].realize();
  const uint64_t eager = hcq::guarded_traces();
  EXPECT_GT(eager, before);
  Jit jit([&](const std::vector<Tensor>& given) { return step(given); });
  jit(in);
  const uint64_t first_call = hcq::guarded_traces() - eager;
  jit(in);
  const uint64_t captured = hcq::guarded_traces();
  EXPECT_EQ(captured - eager, 2 * first_call + 1);  // the eager lists again, and the graph
  jit(in);
  EXPECT_EQ(hcq::guarded_traces(), captured) << "replays make no lists";
}

}  // namespace
}  // namespace tuff::engine
