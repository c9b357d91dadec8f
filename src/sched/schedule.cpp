// schedule(): key, cache, then on a miss prepare, fuse, linearize, fuse rows, keep rows, merge,
// plan memory.
#include "sched/schedule.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>

#include "base/check.h"
#include "base/contains.h"
#include "base/log.h"
#include "ir/custom_kernel.h"
#include "ir/spec.h"
#include "ir/walk.h"
#include "sched/beside.h"
#include "sched/cache.h"
#include "sched/call_fusion.h"
#include "sched/fuse.h"
#include "sched/keep.h"
#include "sched/linearize.h"
#include "sched/loop_calls.h"
#include "sched/memory_plan.h"
#include "sched/merge.h"
#include "sched/normalize.h"
#include "sched/norms.h"
#include "sched/prepare.h"
#include "sched/rows.h"
#include "sched/single_rows.h"
#include "sched/slot_ast.h"
#include "sched/steps.h"
#include "sched/sums.h"

namespace tuff::sched {

using ir::Node;
using ir::Op;
using ir::UOp;

namespace {

constexpr size_t kCachedSchedules = 512;

ScheduleCache& cache() {
  static ScheduleCache c(kCachedSchedules);
  return c;
}

// Which steps are taken and what of a Target shapes a schedule is part of the key.
void add_circumstances(GraphKey& key, const StepChoice& steps, const TargetOf& target_of) {
  key.tokens.push_back(steps.skipped);
  key.tokens.push_back(steps.random_seed);
  key.tokens.push_back(steps.any_order);
  for (const std::string* d : key.devices) {
    const Target& t = target_of(*d);
    key.tokens.push_back(t.max_buffers);
    key.tokens.push_back(t.max_binding_bytes);
    key.tokens.push_back(t.max_loop_trips);
    key.tokens.push_back(t.cores * 8 + t.features.f16 * 4 + t.has_local * 2 + t.features.atomics);
    key.tokens.push_back(t.vector_bytes);
    key.tokens.push_back(t.shared_bytes);
    key.tokens.push_back(t.l2_bytes);
    key.tokens.push_back(t.l3_bytes);
    key.tokens.push_back(t.launch_cost_ns);
    key.tokens.push_back(t.subgroup_size);
    uint64_t multiplied = 0;  // dtypes, by bit
    for (const MatrixShape& m : t.matrix_shapes) multiplied |= uint64_t(1) << uint64_t(m.a);
    key.tokens.push_back(multiplied);
  }
  key.hash = hash_tokens(key.tokens);
}

// For each input the number of the first one whose memory overlaps its own, directly or through
// others. What differs from its own number is part of the key.
std::vector<uint32_t> shared_memory(GraphKey& key, const MemoryOf& memory_of) {
  const size_t n = key.inputs.size();
  std::vector<uint32_t> number(n);
  std::iota(number.begin(), number.end(), 0u);
  if (!memory_of || n < 2) return number;
  std::vector<MemoryPart> parts;
  for (const ir::Storage* s : key.inputs) parts.push_back(memory_of(*s));
  std::vector<uint32_t> order = number;
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::tie(parts[a].allocation, parts[a].begin, a) <
           std::tie(parts[b].allocation, parts[b].begin, b);
  });
  uint64_t end = 0;
  for (size_t k = 0; k < n; k++) {
    const MemoryPart& p = parts[order[k]];
    const bool meets = k > 0 && p.allocation == parts[order[k - 1]].allocation && p.begin < end;
    end = meets ? std::max(end, p.end) : p.end;
    if (!meets) continue;
    number[order[k]] = number[order[k - 1]];
    key.tokens.insert(key.tokens.end(), {order[k], number[order[k]]});
  }
  return number;
}

void plan_memory(Schedule& s) {
  std::vector<Lifetime> life(s.buffers.size());
  std::vector<bool> used(s.buffers.size(), false);
  const std::vector<uint32_t> memory = memory_of_parts(s);
  for (uint32_t pos = 0; pos < s.calls.size(); pos++) {
    for (uint32_t slot : s.calls[pos].args) {
      const uint32_t a = memory[slot];
      if (!used[a]) life[a].first = pos;
      used[a] = true;
      life[a].last = pos;
    }
  }
  std::vector<std::string> devices;
  for (const BufferSlot& b : s.buffers) {
    if (b.origin == BufferOrigin::Temp) add_once(devices, b.device);
  }
  for (const std::string& device : devices) {
    std::vector<uint32_t> slots;
    std::vector<Lifetime> lifetimes;
    for (uint32_t i = 0; i < s.buffers.size(); i++) {
      if (s.buffers[i].origin != BufferOrigin::Temp || s.buffers[i].device != device) continue;
      life[i].size_bytes = s.buffers[i].size_bytes();
      slots.push_back(i);
      lifetimes.push_back(life[i]);
    }
    const Packing packing = pack(lifetimes);
    for (size_t k = 0; k < slots.size(); k++) {
      s.buffers[slots[k]].arena_offset = packing.offsets[k];
      s.buffers[slots[k]].arena = uint32_t(s.arenas.size());
    }
    s.arenas.push_back({device, packing.size_bytes});
  }
}

void collect_variables(Schedule& s) {
  std::vector<UOp> asts;
  std::unordered_set<const Node*> seen;
  for (const Call& c : s.calls) {
    if (c.ast && seen.insert(c.ast.get()).second) asts.push_back(c.ast);
    if (!c.runs.is_const()) asts.push_back(c.runs.uop());
  }
  for (const Node* n : ir::toposort(asts)) {
    if (n->op == Op::Variable) s.variables.push_back(UOp(n));
  }
  std::ranges::sort(s.variables, {}, [](const UOp& v) { return v->get<ir::VariableArg>().name; });
}

void check_sinks(std::span<const UOp> sinks) {
  for (const UOp& sink : sinks) ir::check_spec(sink, ir::kFloorTensor, "building the graph");
}

void check_kernels(const Schedule& s) {
  for (const Call& c : s.calls) {
    if (c.ast) ir::check_spec(c.ast, ir::kFloorKernel, "schedule");
  }
}

// A device that binds buffers binds so many bytes of one: said before anything is compiled or run.
void check_bindings(const Schedule& s, const TargetOf& target_of) {
  for (const Call& c : s.calls) {
    if (c.kind != CallKind::Kernel && c.kind != CallKind::Custom) continue;
    const Target& t = target_of(c.device);
    if (c.kind == CallKind::Custom && c.args.size() > t.max_buffers)
      fail<Unsupported>("kernel {} takes {} buffers, on {} it may take {}",
                        c.ast->get<ir::CustomKernelArg>().kernel->name, c.args.size(), t.describe(),
                        t.max_buffers);
    TUFF_CHECK(c.args.size() <= t.max_buffers, "a kernel takes {} buffers, on {} at most {}",
               c.args.size(), t.device, t.max_buffers);
    for (uint32_t a : c.args) {
      const uint64_t bytes = s.buffers[a].size_bytes();
      if (bytes <= t.max_binding_bytes) continue;
      fail<Unsupported>(
          "{}: a kernel takes a {} buffer of {} bytes, and without buffer device addresses this "
          "device binds at most {} (maxStorageBufferRange): split the tensor, use a narrower dtype "
          "or another device",
          t.describe(), name(s.buffers[a].dtype), bytes, t.max_binding_bytes);
    }
  }
}

// In order, without a memory plan.
Schedule form_calls(std::span<const UOp> sinks, std::span<ir::Storage* const> inputs,
                    std::span<const uint32_t> memory, const TargetOf& target_of,
                    const StepChoice& steps) {
  Prepared prepared = prepare(sinks, target_of, steps);
  const FusePlan plan = plan_fusion(std::move(prepared.sinks), target_of);
  Schedule s = linearize(plan, {inputs.begin(), inputs.end()}, target_of);
  s.parts = std::move(prepared.parts);
  for (const std::string& p : s.parts) TUFF_DEBUG_LINE(3, "opts {}", p);
  constexpr std::pair<Step, FuseCalls> kFusions[] = {{Step::Rows, fuse_rows},
                                                    {Step::Sums, take_sums},
                                                    {Step::Sums, take_norms},
                                                    {Step::Keep, keep_rows},
                                                    {Step::Merge, merge_kernels},
                                                    {Step::Beside, put_beside}};
  for (const auto& [step, fuse] : kFusions)
    if (!steps.skips(step)) fuse_calls(s, memory, target_of, fuse);
  settle_order(s);
  unroll_loops(s, [&](std::span<const UOp> of_step, std::span<const UOp> buffers) {
    std::vector<ir::Storage*> storages;
    std::vector<uint32_t> own(buffers.size());
    std::iota(own.begin(), own.end(), 0u);
    for (const UOp& b : buffers) storages.push_back(b->get<Ref<ir::Storage>>().get());
    return form_calls(of_step, storages, own, target_of, steps);
  });
  return s;
}

Schedule make_schedule(std::span<const UOp> sinks, const GraphKey& key,
                       std::span<const uint32_t> memory, const TargetOf& target_of,
                       const StepChoice& steps) {
  if (steps.check_spec) check_sinks(sinks);
  Schedule s = form_calls(sinks, key.inputs, memory, target_of, steps);
  if (!steps.skips(Step::SingleRows)) add_single_rows(s, target_of);
  check_bindings(s, target_of);
  plan_memory(s);
  place_parts(s);
  collect_variables(s);
  if (steps.check_spec) check_kernels(s);
  return s;
}

}  // namespace

Scheduled schedule(std::span<const UOp> sinks, const TargetOf& target_of,
                   const MemoryOf& memory_of, const StepChoice& steps) {
  static thread_local GraphKey key;
  normalize(sinks, key);
  const std::vector<uint32_t> memory = shared_memory(key, memory_of);
  add_circumstances(key, steps, target_of);
  Scheduled out;
  out.inputs.assign(key.inputs.begin(), key.inputs.end());
  out.schedule = cache().find(key.hash, key.tokens);
  out.from_cache = bool(out.schedule);
  if (out.from_cache) return out;
  const GraphKey own = key;  // target_of may come back here on this thread
  out.schedule =
      std::make_shared<const Schedule>(make_schedule(sinks, own, memory, target_of, steps));
  cache().insert(own.hash, own.tokens, out.schedule);
  return out;
}

ScheduleCacheStats schedule_cache_stats() { return cache().stats(); }
void clear_schedule_cache() { cache().clear(); }

}  // namespace tuff::sched
