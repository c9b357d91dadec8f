#include "engine/jit/capture.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "engine/jit/rebind.h"
#include "engine/profile/profile.h"
#include "engine/realize/bounds.h"
#include "engine/realize/validate.h"
#include "engine/stats.h"

namespace tuff::engine {
namespace {

constexpr uint32_t kInstances = 2;  // the next replay is patched while the last one runs

thread_local Capture* current_capture = nullptr;

// A run of calls on one device, or one copy between devices.
struct Segment {
  Device* device = nullptr;
  std::shared_ptr<hcq::CommandGraph> graph;
  std::unique_ptr<ReboundGraph> rebound;  // instead of `graph`, where addresses cannot be patched
  std::optional<BoundCopy> host_copy;
  int32_t copy_dst_input = -1, copy_src_input = -1;
  std::vector<Ref<Buffer>> touched;  // root buffers, for used_until

  const hcq::CommandGraph& command_graph() const { return rebound ? *rebound->graph() : *graph; }
};

hcq::GraphBuffer graph_buffer(Buffer& b, std::span<const Ref<Buffer>> inputs, bool read,
                              bool write) {
  hcq::GraphBuffer g;
  g.input = input_slot(b, inputs);
  g.size_bytes = b.size_bytes();
  g.read = read;
  g.write = write;
  if (g.input >= 0) {
    g.offset = b.byte_offset() - inputs[size_t(g.input)]->byte_offset();
  } else {
    g.span = b.span();
  }
  return g;
}

hcq::GraphNode graph_node(const BoundCall& c, std::span<const Ref<Buffer>> inputs) {
  if (auto* copy = std::get_if<BoundCopy>(&c)) {
    hcq::GraphCopy g{graph_buffer(*copy->dst, inputs, false, true),
                     graph_buffer(*copy->src, inputs, true, false)};
    // A span may be longer than its elements: memory comes in words.
    for (hcq::GraphBuffer* b : {&g.dst, &g.src})
      if (b->span) b->span.size_bytes = copy->dst->size_bytes();
    return g;
  }
  const BoundKernel& k = std::get<BoundKernel>(c);
  hcq::GraphKernel g;
  g.program = k.kernel->program.get();
  for (size_t i = 0; i < k.buffers.size(); i++) {
    g.buffers.push_back(graph_buffer(*k.buffers[i], inputs, k.kernel->buffers[i].read,
                                     k.kernel->buffers[i].written));
  }
  for (int32_t s : k.scalars) g.scalars.push_back({s, -1});
  g.groups = k.groups;
  return g;
}

void add_touched(std::vector<Ref<Buffer>>& touched, const BoundCall& c) {
  auto add = [&](const Ref<Buffer>& b) { touched.push_back(b); };
  if (auto* k = std::get_if<BoundKernel>(&c)) {
    std::for_each(k->buffers.begin(), k->buffers.end(), add);
  } else {
    add(std::get<BoundCopy>(c).dst);
    add(std::get<BoundCopy>(c).src);
  }
}

// One entry per piece of memory is enough to keep it and to mark it.
void keep_one_per_root(std::vector<Ref<Buffer>>& touched) {
  auto root = [](const Ref<Buffer>& b) { return b->root().id; };
  std::sort(touched.begin(), touched.end(),
            [&](const auto& a, const auto& b) { return root(a) < root(b); });
  touched.erase(std::unique(touched.begin(), touched.end(),
                            [&](const auto& a, const auto& b) { return root(a) == root(b); }),
                touched.end());
}

std::shared_ptr<hcq::CommandGraph> make_graph(Device& device, std::span<const BoundCall> calls,
                                              std::span<const Ref<Buffer>> inputs) {
  std::vector<hcq::GraphNode> nodes;
  for (const BoundCall& c : calls) nodes.push_back(graph_node(c, inputs));
  auto graph =
      std::make_shared<hcq::CommandGraph>(device.hcq(), std::move(nodes), uint32_t(inputs.size()),
                                          0, kInstances, profile_sink(device.name()));
  profile_graph(graph);
  return graph;
}

}  // namespace

Capture::Capture() {
  if (current_capture)
    fail<InvalidArgument>(
        "a Jit is called while another one captures: nested Jits are not supported");
  current_capture = this;
}
Capture::~Capture() { current_capture = nullptr; }
Capture* Capture::current() { return current_capture; }

struct CapturedGraph::State {
  // Captured under TUFF_VALIDATE: replays execute these, one by one, instead of the segments.
  std::vector<BoundCall> validated;
  std::vector<BoundCall> bounded;  // with TUFF_CHECK_OOB: what replays report
  std::vector<Ref<Buffer>> captured_inputs;
  std::vector<Segment> segments;
  std::vector<uint64_t> addresses;
  ReplayStats stats;

  void add_graph(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs) {
    Segment s;
    s.device = &device_of(calls[0]);
    for (const BoundCall& c : calls) {
      add_touched(s.touched, c);
      if (auto* k = std::get_if<BoundKernel>(&c)) {
        stats.flops += k->kernel->estimate.flops;
        stats.bytes += k->kernel->estimate.bytes;
      }
    }
    keep_one_per_root(s.touched);
    std::erase_if(s.touched, [&](const Ref<Buffer>& b) { return input_slot(*b, inputs) >= 0; });
    if (s.device->target().features.device_address) {
      s.graph = make_graph(*s.device, calls, inputs);
    } else {
      s.rebound = std::make_unique<ReboundGraph>(
          calls, inputs, [device = s.device](std::span<const BoundCall> bound) {
            return make_graph(*device, bound, {});
          });
    }
    const hcq::GraphStats& g = s.command_graph().stats();
    stats.kernels += g.kernels;
    stats.copies += g.copies;
    stats.barriers += g.barriers;
    stats.submits_per_replay += g.submits_per_replay;
    segments.push_back(std::move(s));
  }

  // What re-binding costs by now; the first replay with other memory adds to it.
  void count_rebinding() {
    stats.rebind_copies = stats.submits_per_replay = 0;
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
    segments.push_back(std::move(s));
  }

  void replay_validated(std::span<const Ref<Buffer>> inputs) const {
    std::vector<BoundCall> calls = validated;
    for (BoundCall& c : calls) rebind(c, captured_inputs, inputs);
    execute(calls);
    counters().replays++;
  }
};

CapturedGraph::CapturedGraph(std::vector<BoundCall> calls, std::span<const Ref<Buffer>> inputs)
    : state_(std::make_unique<State>()) {
  state_->addresses.resize(inputs.size());
  if (validating()) {
    state_->validated = calls;
    state_->captured_inputs.assign(inputs.begin(), inputs.end());
  }
  if (checking_bounds()) state_->bounded = calls;
  size_t begin = 0;
  const std::span<const BoundCall> all(calls);
  while (begin < calls.size()) {
    if (crosses_devices(calls[begin])) {
      state_->add_host_copy(std::get<BoundCopy>(calls[begin++]), inputs);
      continue;
    }
    size_t end = begin + 1;
    while (end < calls.size() && !crosses_devices(calls[end]) &&
           &device_of(calls[end]) == &device_of(calls[begin]))
      end++;
    state_->add_graph(all.subspan(begin, end - begin), inputs);
    begin = end;
  }
}

// The device may still run the last replay; the graphs wait for that themselves.
CapturedGraph::~CapturedGraph() = default;

void CapturedGraph::replay(std::span<const Ref<Buffer>> inputs) {
  State& st = *state_;
  TUFF_CHECK(inputs.size() == st.addresses.size(), "{} inputs given, captured with {}",
             inputs.size(), st.addresses.size());
  if (!st.validated.empty()) return st.replay_validated(inputs);
  const ProfiledScope scope("replay");
  for (size_t i = 0; i < inputs.size(); i++) st.addresses[i] = inputs[i]->span().address();
  for (Segment& s : st.segments) {
    if (s.host_copy) {
      BoundCopy c = *s.host_copy;
      if (s.copy_dst_input >= 0) c.dst = inputs[size_t(s.copy_dst_input)];
      if (s.copy_src_input >= 0) c.src = inputs[size_t(s.copy_src_input)];
      const BoundCall call(std::move(c));
      execute(std::span<const BoundCall>(&call, 1));
      continue;
    }
    const uint64_t value =
        s.rebound ? s.rebound->replay(inputs) : s.graph->replay(st.addresses, {});
    for (const Ref<Buffer>& b : s.touched) b->used_until(value);
    for (const Ref<Buffer>& b : inputs) b->used_until(value);
    counters().submits += s.command_graph().stats().submits_per_replay;
    if (s.rebound) st.count_rebinding();
  }
  counters().replays++;
  if (!st.bounded.empty()) check_bounds(st.bounded);
}

const ReplayStats& CapturedGraph::stats() const { return state_->stats; }
std::vector<const hcq::CommandGraph*> CapturedGraph::graphs() const {
  std::vector<const hcq::CommandGraph*> out;
  for (const Segment& s : state_->segments)
    if (!s.host_copy) out.push_back(&s.command_graph());
  return out;
}

}  // namespace tuff::engine
