#include "engine/jit/captured_graph.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "engine/jit/copy_kernel.h"
#include "engine/jit/rebind.h"
#include "engine/jit/segments.h"
#include "engine/jit/size_expressions.h"
#include "engine/profile/profile.h"
#include "engine/program/compile_options.h"
#include "engine/realize/bounds.h"
#include "engine/realize/call_bytes.h"
#include "engine/realize/validate.h"
#include "engine/stats.h"

namespace tuff::engine {
namespace {

constexpr uint32_t kInstances = 2;  // the next replay is patched while the last one runs

// A run of calls on one device, or one copy between devices.
struct Segment {
  Device* device = nullptr;
  std::shared_ptr<hcq::CommandGraph> graph;
  std::unique_ptr<ReboundGraph> rebound;  // instead of `graph`, where addresses cannot be patched
  std::optional<BoundCopy> host_copy;
  int32_t copy_dst_input = -1, copy_src_input = -1;
  std::unique_ptr<GroupUse> touched;  // besides inputs
  // What it reads of what was there before it, and what it writes.
  std::vector<Ref<Buffer>> sources, written;
  std::vector<size_t> source_inputs, written_inputs;

  const hcq::CommandGraph& command_graph() const { return rebound ? *rebound->graph() : *graph; }
};

// How many bytes input `i` has in a replay, as a variable beside the caller's.
ir::UOp input_bytes(size_t i, const Buffer& captured) {
  return ir::variable(fmt::format("bytes of input {}", i), 0, int64_t(captured.size_bytes()));
}

// What there is of b in a replay.
ir::UOp present_bytes(const Buffer& b, std::span<const Ref<Buffer>> inputs) {
  const int32_t slot = input_slot(b, inputs);
  const ir::UOp all = ir::index_const(int64_t(b.size_bytes()));
  if (slot < 0) return all;
  const Buffer& in = *inputs[size_t(slot)];
  const ir::UOp left =
      input_bytes(size_t(slot), in) - int64_t(b.byte_offset() - in.byte_offset());
  const ir::UOp some = ir::alu(ir::Op::Max, {left, ir::index_const(0)});
  return ir::where(ir::lt(some, all), some, all);
}

// A copy's addresses are encoded; a kernel's are patched.
hcq::GraphNode copy_by_kernel(const BoundCopy& copy, std::span<const Ref<Buffer>> inputs,
                              SizeExpressions& sizes, bool sizes_vary) {
  const size_t width = std::min<size_t>(size_bytes(copy.dst->dtype), 4);
  const DType t = width == 1 ? DType::U8 : width == 2 ? DType::U16 : DType::U32;
  const int64_t count = int64_t(copy.dst->size_bytes() / width);
  const LoadedKernel& k = copy_kernel(copy.dst->on(), t, count, sizes_vary);
  hcq::Launch g;
  g.program = k.program.get();
  for (const auto& a : k.buffers)
    g.operands.push_back(
        operand_of(a.slot == 0 ? *copy.dst : *copy.src, inputs, a.read, a.written));
  if (sizes_vary) {
    const ir::UOp from = present_bytes(*copy.src, inputs), to = present_bytes(*copy.dst, inputs);
    const ir::UOp both = ir::where(ir::lt(from, to), from, to);
    g.scalars.push_back({0, int32_t(sizes.slot(ir::floordiv(both, int64_t(width))))});
  }
  for (size_t i = 0; i < 3; i++) g.groups[i] = uint32_t(k.groups[i].value());
  return g;
}

hcq::GraphNode graph_node(const BoundCall& c, std::span<const Ref<Buffer>> inputs,
                          SizeExpressions& sizes, bool sizes_vary) {
  if (auto* copy = std::get_if<BoundCopy>(&c)) {
    if (input_slot(*copy->dst, inputs) >= 0 || input_slot(*copy->src, inputs) >= 0)
      return copy_by_kernel(*copy, inputs, sizes, sizes_vary);
    return transfer_of(*copy, inputs);
  }
  const BoundKernel& k = std::get<BoundKernel>(c);
  hcq::Launch g = launch_of(k, inputs);
  for (size_t i = 0; i < k.scalars.size(); i++) {
    const ir::UOp& v = k.kernel->variables[i];
    if (sizes.covers(v)) g.scalars[i].slot = int32_t(sizes.slot(v));
  }
  for (size_t i = 0; i < 3; i++) {
    const ir::Dim& d = k.kernel->groups[i];
    if (!d.is_const() && sizes.covers(d.uop())) g.group_slots[i] = int32_t(sizes.slot(d.uop()));
  }
  return g;
}

// `given` is what replays give values of.
std::shared_ptr<hcq::CommandGraph> make_graph(Device& device, std::span<const SegmentItem> items,
                                              std::span<const Ref<Buffer>> inputs,
                                              const std::vector<ir::UOp>& given, bool sizes_vary,
                                              hcq::GraphPlace place = {}) {
  std::vector<hcq::GraphNode> nodes;
  SizeExpressions sizes(given);
  for (const SegmentItem& item : items) {
    if (auto* call = std::get_if<const BoundCall*>(&item))
      nodes.push_back(graph_node(**call, inputs, sizes, sizes_vary));
    else
      nodes.push_back(std::get<hcq::Transfer>(item));
  }
  const bool copies = place.queue && place.queue != &device.queue();
  auto graph = std::make_shared<hcq::CommandGraph>(
      device.hcq(), std::move(nodes), uint32_t(inputs.size()), sizes.program(), kInstances,
      profile_sink(device.name() + (copies ? " copies" : "")), std::move(place));
  profile_graph(graph);
  return graph;
}

std::shared_ptr<hcq::CommandGraph> make_graph(Device& device, std::span<const BoundCall> calls,
                                              std::span<const Ref<Buffer>> inputs,
                                              const std::vector<ir::UOp>& given,
                                              bool sizes_vary) {
  std::vector<SegmentItem> items;
  for (const BoundCall& c : calls) items.emplace_back(&c);
  return make_graph(device, items, inputs, given, sizes_vary);
}

void revalue(BoundCall& c, const VariableValues& values) {
  if (auto* k = std::get_if<BoundKernel>(&c)) bind_variables(*k, values);
}

}  // namespace

struct CapturedGraph::State {
  // Captured under TUFF_VALIDATE: replays execute these, one by one, instead of the segments.
  std::vector<BoundCall> validated;
  std::vector<BoundCall> bounded;  // with TUFF_CHECK_OOB: what replays report
  std::vector<Ref<Buffer>> captured_inputs;
  std::vector<ir::UOp> variables;
  std::vector<Segment> segments;              // one after the other, or
  std::unique_ptr<SegmentedGraph> segmented;  // waiting for one another
  std::vector<uint64_t> addresses, sizes;     // of one replay's inputs
  std::vector<int64_t> values;                // the variables', then the inputs' sizes
  std::vector<size_t> written_inputs;
  ReplayStats stats;

  std::vector<ir::UOp> given_values(std::span<const Ref<Buffer>> inputs) const {
    std::vector<ir::UOp> out = variables;
    for (size_t i = 0; i < inputs.size(); i++) out.push_back(input_bytes(i, *inputs[i]));
    return out;
  }

  // Others may be given for them than those that it was captured with.
  void note_written_inputs(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs) {
    written_inputs.clear();
    for (const BoundCall& c : calls)
      each_buffer(c, [&](const Ref<Buffer>& b, bool, bool written) {
        const int32_t slot = written ? input_slot(*b, inputs) : -1;
        if (slot >= 0 && std::ranges::find(written_inputs, size_t(slot)) == written_inputs.end())
          written_inputs.push_back(size_t(slot));
      });
  }

  static void require_written(Buffer& b, size_t input) {
    if (b.read_only()) [[unlikely]]
      refuse_read_only(input);
    b.known_integers().forget();
  }

  // Replays write it at any time.
  static void close_written(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs) {
    for (const BoundCall& c : calls)
      each_buffer(c, [&](const Ref<Buffer>& b, bool, bool written) {
        if (written && input_slot(*b, inputs) < 0) b->known_integers().close();
      });
  }

  [[gnu::noinline]] static void refuse_read_only(size_t input) {
    fail<InvalidArgument>(
        "replay: the memory of input {} is read-only, and the captured function writes it: give "
        "it a copy, (x + 0).realize()",
        input);
  }

  static void note_access(Segment& s, const BoundCall& call, std::span<const Ref<Buffer>> inputs,
                          ByteSet& anew) {
    each_buffer(call, [&](const Ref<Buffer>& b, bool read, bool) {
      if (!read || anew.holds(*b)) return;
      const int32_t slot = input_slot(*b, inputs);
      slot < 0 ? s.sources.push_back(b) : s.source_inputs.push_back(size_t(slot));
    });
    each_buffer(call, [&](const Ref<Buffer>& b, bool, bool written) {
      if (!written) return;
      anew.add(*b);
      const int32_t slot = input_slot(*b, inputs);
      slot < 0 ? s.written.push_back(b) : s.written_inputs.push_back(size_t(slot));
    });
  }

  void add_graph(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs) {
    Segment s;
    s.device = &device_of(calls[0]);
    std::vector<Ref<Buffer>> touched;
    ByteSet anew;
    for (const BoundCall& c : calls) {
      note_access(s, c, inputs, anew);
      each_buffer(c, [&](const Ref<Buffer>& b, bool, bool) {
        if (input_slot(*b, inputs) < 0) touched.push_back(b);
      });
      if (auto* k = std::get_if<BoundKernel>(&c)) {
        stats.flops += k->kernel->estimate.flops;
        stats.bytes += k->kernel->estimate.bytes;
      }
    }
    s.touched = std::make_unique<GroupUse>(std::move(touched));
    const std::vector<ir::UOp> given = given_values(inputs);
    const bool vary = !variables.empty();
    if (s.device->target().features.device_address) {
      s.graph = make_graph(*s.device, calls, inputs, given, vary);
    } else {
      s.rebound = std::make_unique<ReboundGraph>(
          calls, inputs, [device = s.device, given, vary](std::span<const BoundCall> bound) {
            return make_graph(*device, bound, {}, given, vary);
          });
    }
    const hcq::GraphStats& g = s.command_graph().stats();
    stats.kernels += g.kernels;
    stats.copies += g.copies;
    stats.barriers += g.barriers;
    segments.push_back(std::move(s));
  }

  void record(const std::vector<BoundCall>& calls, std::span<const Ref<Buffer>> inputs,
              const CaptureOptions& options) {
    if (checking_bounds()) bounded = calls;
    note_written_inputs(calls, inputs);
    const SegmentPlan plan = plan_segments(calls, inputs, options.copy_queue_bytes);
    if (plan.simple() || !plan.patchable())
      add_runs(calls, inputs);
    else
      add_segmented(calls, inputs, plan, options.host_waits);
  }

  // What replays may change: re-bound inputs come to be copied, and long graphs are cut anew.
  void count_submissions() {
    stats.rebind_copies = 0;
    stats.submits_per_replay = segmented ? segmented->device_submits() : 0;
    for (const Segment& s : segments) {
      if (s.host_copy) continue;
      stats.submits_per_replay += s.command_graph().stats().submits_per_replay;
      if (!s.rebound) continue;
      stats.rebind_copies += s.rebound->copies();
      stats.submits_per_replay += s.rebound->copy_submits();
    }
  }

  void add_host_copy(const BoundCopy& c, std::span<const Ref<Buffer>> inputs) {
    Segment s;
    s.host_copy = c;
    s.copy_dst_input = input_slot(*c.dst, inputs);
    s.copy_src_input = input_slot(*c.src, inputs);
    stats.copies++;
    stats.host_copies += copier_between(c) == nullptr;
    segments.push_back(std::move(s));
  }

  // Runs of calls on one device, and copies between devices, in their order.
  void add_runs(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs) {
    for (size_t begin = 0; begin < calls.size();) {
      if (crosses_devices(calls[begin])) {
        add_host_copy(std::get<BoundCopy>(calls[begin++]), inputs);
        continue;
      }
      size_t end = begin + 1;
      while (end < calls.size() && !crosses_devices(calls[end]) &&
             &device_of(calls[end]) == &device_of(calls[begin]))
        end++;
      add_graph(calls.subspan(begin, end - begin), inputs);
      begin = end;
    }
  }

  void add_segmented(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                     const SegmentPlan& plan, bool host_waits) {
    const std::vector<ir::UOp> given = given_values(inputs);
    const auto make = [&](Device& device, std::span<const SegmentItem> items,
                          hcq::GraphPlace place) {
      return make_graph(device, items, inputs, given, !variables.empty(), std::move(place));
    };
    segmented = std::make_unique<SegmentedGraph>(calls, inputs, plan, make, host_waits);
    for (const BoundCall& c : calls) {
      auto* k = std::get_if<BoundKernel>(&c);
      stats.flops += k ? k->kernel->estimate.flops : 0;
      stats.bytes += k ? k->kernel->estimate.bytes : 0;
      (k ? stats.kernels : stats.copies)++;
    }
    for (const auto& g : segmented->graphs()) stats.barriers += g->stats().barriers;
    stats.host_submits_per_replay = segmented->host_submits();
    stats.host_copies = segmented->host_copies();
  }

  // Memory that another device's loss or a damaged file has spoilt is not computed with.
  [[gnu::noinline]] static void pass_origins_on(std::span<const Ref<Buffer>> inputs,
                                                const Segment& s) {
    Origin origins;
    const auto add = [&](const Ref<Buffer>& b) {
      if (b->has_origin()) origins = origins.with(b->origin());
    };
    std::ranges::for_each(s.sources, add);
    for (const size_t i : s.source_inputs) add(inputs[i]);
    origins.require();
    for (const Ref<Buffer>& b : s.written) b->written_from(origins);
    for (const size_t i : s.written_inputs) inputs[i]->written_from(origins);
  }

  [[gnu::noinline]] static void copy_on_host(const Segment& s,
                                             std::span<const Ref<Buffer>> inputs) {
    BoundCopy c = *s.host_copy;
    if (s.copy_dst_input >= 0) c.dst = inputs[size_t(s.copy_dst_input)];
    if (s.copy_src_input >= 0) c.src = inputs[size_t(s.copy_src_input)];
    const BoundCall call(std::move(c));
    execute(std::span<const BoundCall>(&call, 1));
  }

  [[gnu::noinline]] void replay_segmented(std::span<const Ref<Buffer>> inputs) {
    segmented->replay(inputs, [this](hcq::CommandGraph& g, std::span<const uint64_t> points) {
      return g.replay(addresses, values, sizes, points);
    });
  }

  void replay_runs(std::span<const Ref<Buffer>> inputs) {
    for (Segment& s : segments) {
      if (s.host_copy) {
        copy_on_host(s, inputs);
        continue;
      }
      if (Buffer::any_has_origin()) pass_origins_on(inputs, s);
      const uint64_t value =
          s.rebound ? s.rebound->replay(inputs, values) : s.graph->replay(addresses, values, sizes);
      s.touched->used_until(value);
      for (const Ref<Buffer>& b : inputs)
        if (&b->on() == s.device) b->used_until(value);
      if (Buffer::any_has_origin()) {
        for (const Ref<Buffer>& b : s.written) b->written_until(value);
        for (const size_t i : s.written_inputs) inputs[i]->written_until(value);
      }
      counters().submits += s.command_graph().stats().submits_per_replay;
    }
  }

  [[gnu::noinline]] void require_values(std::span<const int64_t> values) const {
    if (values.size() != variables.size())
      fail<InvalidArgument>("replay: {} values given for {} variables", values.size(),
                            variables.size());
    for (size_t i = 0; i < values.size(); i++) {
      const auto& v = variables[i]->get<ir::VariableArg>();
      if (values[i] < v.min || values[i] > v.max)
        fail<InvalidArgument>("replay: variable {} = {} is outside its bounds {}..{}", v.name,
                              values[i], v.min, v.max);
    }
  }

  [[gnu::noinline]] void replay_validated(std::span<const Ref<Buffer>> inputs,
                                          std::span<const int64_t> given) const {
    std::vector<BoundCall> calls = validated;
    VariableValues values;
    for (size_t i = 0; i < given.size(); i++)
      values[variables[i]->get<ir::VariableArg>().name] = given[i];
    for (BoundCall& c : calls) {
      rebind(c, captured_inputs, inputs);
      if (!values.empty()) revalue(c, values);
    }
    execute(calls);
    counters().replays++;
  }
};

CapturedGraph::CapturedGraph(std::vector<BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                             std::vector<ir::UOp> variables, const CaptureOptions& options)
    : state_(std::make_unique<State>()) {
  State& st = *state_;
  st.variables = std::move(variables);
  st.addresses.resize(inputs.size());
  st.sizes.resize(inputs.size());
  st.values.resize(st.variables.size() + inputs.size());
  if (validating()) {
    st.validated = calls;
    st.captured_inputs.assign(inputs.begin(), inputs.end());
  }
  State::close_written(calls, inputs);
  st.record(calls, inputs, options);
}

// The device may still run the last replay; the graphs wait for that themselves.
CapturedGraph::~CapturedGraph() = default;

void CapturedGraph::replay(std::span<const Ref<Buffer>> inputs, std::span<const int64_t> values) {
  State& st = *state_;
  TUFF_CHECK(inputs.size() == st.addresses.size(), "{} inputs given, captured with {}",
             inputs.size(), st.addresses.size());
  if (!st.variables.empty() || !values.empty()) st.require_values(values);
  if (!st.validated.empty()) return st.replay_validated(inputs, values);
  const ProfiledScope scope("replay");
  for (const size_t i : st.written_inputs)
    State::require_written(*inputs[i], i);
  for (size_t i = 0; i < inputs.size(); i++) {
    st.addresses[i] = inputs[i]->span().address();
    st.sizes[i] = inputs[i]->size_bytes();
    st.values[values.size() + i] = int64_t(st.sizes[i]);
  }
  std::copy(values.begin(), values.end(), st.values.begin());
  if (st.segmented)
    st.replay_segmented(inputs);
  else
    st.replay_runs(inputs);
  counters().replays++;
  if (!st.bounded.empty()) check_bounds(st.bounded);
}

const ReplayStats& CapturedGraph::stats() const {
  state_->count_submissions();
  return state_->stats;
}
std::vector<const hcq::CommandGraph*> CapturedGraph::graphs() const {
  std::vector<const hcq::CommandGraph*> out;
  if (state_->segmented)
    for (const auto& g : state_->segmented->graphs()) out.push_back(g.get());
  for (const Segment& s : state_->segments)
    if (!s.host_copy) out.push_back(&s.command_graph());
  return out;
}
const SegmentedGraph* CapturedGraph::segmented() const { return state_->segmented.get(); }

}  // namespace tuff::engine
