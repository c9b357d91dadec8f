#include "engine/jit/capture.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "engine/jit/segments.h"
#include "engine/profile/profile.h"
#include "engine/realize/bounds.h"
#include "engine/realize/validate.h"
#include "engine/stats.h"

namespace tuff::engine {
namespace {

constexpr uint32_t kInstances = 2;  // the next replay is patched while the last one runs

thread_local Capture* current_capture = nullptr;

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

// The buffer of a call as this replay has it: inputs are the ones given now.
void rebind(Ref<Buffer>& b, std::span<const Ref<Buffer>> captured,
            std::span<const Ref<Buffer>> given) {
  const int32_t slot = input_slot(*b, captured);
  if (slot < 0) return;
  const uint64_t offset = b->byte_offset() - captured[size_t(slot)]->byte_offset();
  b = make_ref<Buffer>(given[size_t(slot)], b->dtype, b->count, offset);
}

void rebind(BoundCall& c, std::span<const Ref<Buffer>> captured,
            std::span<const Ref<Buffer>> given) {
  if (auto* k = std::get_if<BoundKernel>(&c)) {
    for (Ref<Buffer>& b : k->buffers) rebind(b, captured, given);
  } else {
    rebind(std::get<BoundCopy>(c).dst, captured, given);
    rebind(std::get<BoundCopy>(c).src, captured, given);
  }
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
  // Captured under TUFF_VALIDATE: replays execute these, one by one, instead of the graph.
  std::vector<BoundCall> validated;
  std::vector<BoundCall> bounded;  // with TUFF_CHECK_OOB: what replays report
  std::vector<Ref<Buffer>> captured_inputs;
  // All calls on one compute queue; else `segmented`.
  std::shared_ptr<hcq::CommandGraph> graph;
  std::vector<Ref<Buffer>> touched;  // root buffers, for used_until
  std::unique_ptr<SegmentedGraph> segmented;
  std::vector<uint64_t> addresses;
  ReplayStats stats;

  std::shared_ptr<hcq::CommandGraph> make_graph(Device& device, std::vector<hcq::GraphNode> nodes,
                                                hcq::GraphPlace place) {
    const bool copies = place.queue && place.queue != &device.queue();
    auto made = std::make_shared<hcq::CommandGraph>(
        device.hcq(), std::move(nodes), uint32_t(addresses.size()), 0, kInstances,
        profile_sink(device.name() + (copies ? " copies" : "")), std::move(place));
    profile_graph(made);
    return made;
  }

  void make_single(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs) {
    std::vector<hcq::GraphNode> nodes;
    for (const BoundCall& c : calls) {
      nodes.push_back(graph_node(c, inputs));
      add_touched(touched, c);
    }
    keep_one_per_root(touched);
    std::erase_if(touched, [&](const Ref<Buffer>& b) { return input_slot(*b, inputs) >= 0; });
    graph = make_graph(device_of(calls[0]), std::move(nodes), {});
  }

  void make_segmented(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                      const SegmentPlan& plan, bool host_waits) {
    const auto make = [&](Device& device, std::span<const SegmentItem> items,
                          hcq::GraphPlace place) {
      std::vector<hcq::GraphNode> nodes;
      for (const SegmentItem& item : items) {
        if (auto* call = std::get_if<const BoundCall*>(&item))
          nodes.push_back(graph_node(**call, inputs));
        else
          nodes.push_back(std::get<hcq::GraphCopy>(item));
      }
      return make_graph(device, std::move(nodes), std::move(place));
    };
    segmented = std::make_unique<SegmentedGraph>(calls, inputs, plan, make, host_waits);
  }

  void count(std::span<const BoundCall> calls) {
    for (const BoundCall& c : calls) {
      if (auto* k = std::get_if<BoundKernel>(&c)) {
        stats.flops += k->kernel->estimate.flops;
        stats.bytes += k->kernel->estimate.bytes;
        stats.kernels++;
      } else {
        stats.copies++;
      }
    }
    stats.submits_per_replay = segmented ? segmented->device_submits() : uint32_t(bool(graph));
    stats.host_submits_per_replay = segmented ? segmented->host_submits() : 0;
    for (const auto& g : all_graphs()) stats.barriers += g->stats().barriers;
  }

  std::vector<std::shared_ptr<hcq::CommandGraph>> all_graphs() const {
    if (segmented) return segmented->graphs();
    if (graph) return {graph};
    return {};
  }

  // Memory that another device's loss has spoilt is not computed with.
  void pass_origins_on(std::span<const Ref<Buffer>> inputs) {
    Origin origins;
    for (const auto& buffers : {inputs, std::span<const Ref<Buffer>>(touched)})
      for (const Ref<Buffer>& b : buffers)
        if (b->has_origin()) origins = origins.with(b->origin());
    if (!origins) return;
    origins.require();
    for (const auto& buffers : {inputs, std::span<const Ref<Buffer>>(touched)})
      for (const Ref<Buffer>& b : buffers) b->written_from(origins.with(b->origin()));
  }

  void replay_single(std::span<const Ref<Buffer>> inputs) {
    pass_origins_on(inputs);
    const uint64_t value = graph->replay(addresses, {});
    for (const Ref<Buffer>& b : touched) b->used_until(value);
    for (const Ref<Buffer>& b : inputs) b->used_until(value);
    counters().submits += graph->stats().submits_per_replay;
  }

  void replay_segmented(std::span<const Ref<Buffer>> inputs) {
    segmented->replay(inputs, [this](hcq::CommandGraph& g, std::span<const uint64_t> points) {
      return g.replay(addresses, {}, points);
    });
  }

  void replay_validated(std::span<const Ref<Buffer>> inputs) const {
    std::vector<BoundCall> calls = validated;
    for (BoundCall& c : calls) rebind(c, captured_inputs, inputs);
    execute(calls);
    counters().replays++;
  }
};

CapturedGraph::CapturedGraph(std::vector<BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                             const CaptureOptions& options)
    : state_(std::make_unique<State>()) {
  State& st = *state_;
  st.addresses.resize(inputs.size());
  if (validating()) {
    st.validated = calls;
    st.captured_inputs.assign(inputs.begin(), inputs.end());
  }
  if (checking_bounds()) st.bounded = calls;
  const SegmentPlan plan = plan_segments(calls, inputs, options.copy_queue_bytes);
  if (!plan.simple())
    st.make_segmented(calls, inputs, plan, options.host_waits);
  else if (!calls.empty())
    st.make_single(calls, inputs);
  st.count(calls);
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
  if (st.segmented)
    st.replay_segmented(inputs);
  else if (st.graph)
    st.replay_single(inputs);
  counters().replays++;
  if (!st.bounded.empty()) check_bounds(st.bounded);
}

const ReplayStats& CapturedGraph::stats() const { return state_->stats; }
std::vector<const hcq::CommandGraph*> CapturedGraph::graphs() const {
  std::vector<const hcq::CommandGraph*> out;
  for (const auto& g : state_->all_graphs()) out.push_back(g.get());
  return out;
}
const SegmentedGraph* CapturedGraph::segmented() const { return state_->segmented.get(); }

}  // namespace tuff::engine
