#include "engine/jit/segments.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/log.h"
#include "engine/jit/make_graph.h"
#include "engine/realize/call_bytes.h"
#include "engine/realize/launch.h"
#include "engine/stats.h"
#include "hcq/hazard_guard.h"
#include "hcq/host_queue.h"

namespace tuff::engine {
namespace {

using Part = PlannedWork::Part;
using Role = PlannedSegment::Role;

// The operand's valid bytes in a replay: where extents vary an input may be smaller than captured.
hcq::Span now(const hcq::LaunchOperand& o, std::span<const Ref<Buffer>> inputs) {
  if (o.span) return o.span;
  Buffer& in = *inputs[size_t(o.input)];
  const uint64_t begin = std::min<uint64_t>(o.offset, in.size_bytes());
  return in.span().sub(begin, std::min<uint64_t>(o.size_bytes, in.size_bytes() - begin));
}

struct Copy {
  hcq::Transfer at;
  Device *dst_on = nullptr, *src_on = nullptr;  // whose memory it is; null for staging
  bool rebinds() const { return at.dst.input >= 0 || at.src.input >= 0; }
  hcq::CopyCmd now(std::span<const Ref<Buffer>> inputs) const {
    hcq::CopyCmd c{engine::now(at.dst, inputs), engine::now(at.src, inputs)};
    c.dst.size_bytes = c.src.size_bytes = std::min(c.dst.size_bytes, c.src.size_bytes);
    return c;
  }
  // Memory that a queue of `by` is about to copy.
  void share(const hcq::CopyCmd& spans, Device& by) const {
    if (dst_on && dst_on != &by) hcq::share(dst_on->hcq(), *spans.dst.block, by.hcq());
    if (src_on && src_on != &by) hcq::share(src_on->hcq(), *spans.src.block, by.hcq());
  }
};

// Exactly one of graph, host and (copies with list) is what is submitted; entries submit nothing.
struct Segment {
  Role role = Role::Work;
  size_t queue = 0;
  std::vector<size_t> after;
  std::shared_ptr<hcq::CommandGraph> graph;
  std::unique_ptr<hcq::EncodedList> host;
  std::vector<Copy> copies;      // of host and of rebinding segments
  hcq::CommandList list;         // of these, with placeholders for inputs
  std::vector<hcq::Signal*> raises;  // of a host segment
  std::vector<uint64_t> points;  // values of one replay
  uint64_t value = 0;            // of the last submission
};

struct QueueState {
  QueueKind kind = QueueKind::Compute;
  Device* device = nullptr;
  hcq::Queue* queue = nullptr;
  hcq::HostQueue* host = nullptr;  // where it is one
};

// Segments that queues of other devices wait for by themselves, and who sees that they end.
struct Watch {
  std::vector<size_t> segments;  // ascending
  std::unique_ptr<hcq::EncodedList> list;
  hcq::HostQueue* queue = nullptr;
  std::vector<uint64_t> values;  // of one replay
};

// What buffers there are, one per piece of memory, by device.
struct DeviceUse {
  Device* device = nullptr;
  std::shared_ptr<Device> kept;
  struct Memory {
    Ref<Buffer> buffer;
    bool written = false;
  };
  std::vector<Memory> touched;  // inputs are not among them
  std::unique_ptr<GroupUse> use;
};

// A copy by a device that reaches the other's memory.
bool is_peer_copy(const PlannedWork& work, std::span<const BoundCall> calls) {
  return work.part == Part::Whole && crosses_devices(calls[work.call]);
}

}  // namespace

struct SegmentedGraph::State {
  std::vector<DeviceUse> devices;  // first, so that it goes last
  // Signals of a device, each raised by a host's queue to its own timeline's value.
  std::map<std::pair<size_t, Device*>, std::unique_ptr<hcq::Signal>> relays;
  Watch watch;
  std::vector<QueueState> queues;
  std::vector<Segment> segments;
  std::vector<std::unique_ptr<hcq::HostQueue>> host_queues;
  struct Staged {
    Device* device;
    hcq::Span span;
  };
  std::map<std::pair<size_t, Part>, Staged> staging;  // by call
  std::vector<uint64_t> written_roots;                // of fixed buffers, ascending
  std::vector<bool> written_inputs;
  std::shared_ptr<std::vector<hcq::MemoryBlock>> input_blocks;
  std::shared_ptr<Outcome> outcome = std::make_shared<Outcome>();
  Origin latest;         // this graph's newest replay
  Origin given_origins;  // what this replay depends on,
  Origin origin;         // itself included
  uint64_t replays = 0;
  uint64_t host_copied_bytes = 0, peer_copied_bytes = 0;  // of a replay with the largest inputs
  ReplayStats stats;  // but for what the graphs count
  bool host_waits = false;
  // For the hazard checker: what may follow a replay on each device's compute queue once it has
  // returned, as if it were an access to all memory of the device that the graph touches.
  struct FollowUp {
    size_t queue;
    hcq::CommandList list;
  };
  std::vector<FollowUp> follow_ups;

  std::span<const BoundCall> calls;  // while it is made
  std::span<const Ref<Buffer>> inputs;
  std::vector<ir::UOp> values;  // what replays give values of
  bool sizes_vary = false;

  void note_devices();
  void note_follow_ups();
  void make_queues(const SegmentPlan& plan);
  void make_relays(const SegmentPlan& plan);
  void make_watch();
  hcq::HostQueue* add_host_queue(Device& device, const std::vector<hcq::Queue*>& sources,
                                 uint64_t lists_per_replay);
  void make(const PlannedSegment& planned);
  void count(const PlannedSegment& planned);
  void count(const BoundCall& call);
  void make_graph(Segment& s, const PlannedSegment& planned);
  void make_copies(Segment& s, const PlannedSegment& planned);
  void finish_host(Segment& s);
  Copy copy_of(const PlannedWork& work);
  hcq::LaunchOperand staged(size_t call, Part part);
  hcq::Signal* signal_for(const Segment& s, size_t before);
  DeviceUse& use_of(const Device& device);

  void require_inputs(std::span<const Ref<Buffer>> given);
  void submit_all(const ReplayInputs& given);
  void submit_watch();
  void submit_host(Segment& s, std::span<const Ref<Buffer>> given);
  void submit_rebinding(Segment& s, std::span<const Ref<Buffer>> given);
  void mark_used(std::span<const Ref<Buffer>> given);
  void mark_written(std::span<const Ref<Buffer>> given);
  void abandon(std::span<const Ref<Buffer>> given) noexcept;
  uint32_t device_submits() const;  // of one replay
};

// ---- building

DeviceUse& SegmentedGraph::State::use_of(const Device& device) {
  for (DeviceUse& u : devices)
    if (u.device == &device) return u;
  TUFF_CHECK(false, "{} is not a device of this graph", device.name());
  return devices[0];
}

void SegmentedGraph::State::note_devices() {
  written_inputs.resize(inputs.size());
  std::map<uint64_t, DeviceUse::Memory> fixed;  // by root
  for (const BoundCall& c : calls) {
    each_buffer(c, [&](const Ref<Buffer>& b, bool, bool written) {
      use_of(b->on()).kept = b->shared_device();
      const int32_t slot = input_slot(*b, inputs);
      if (slot < 0) {
        DeviceUse::Memory& m = fixed.try_emplace(b->root().id, b, false).first->second;
        m.written |= written;
      } else if (written) {
        written_inputs[size_t(slot)] = true;
      }
    });
  }
  for (auto& [root, memory] : fixed) {
    if (memory.written) written_roots.push_back(root);
    use_of(memory.buffer->on()).touched.push_back(std::move(memory));
  }
  for (DeviceUse& u : devices) {
    std::vector<Ref<Buffer>> members;
    for (const DeviceUse::Memory& m : u.touched) members.push_back(m.buffer);
    u.use = std::make_unique<GroupUse>(std::move(members));
  }
}

void SegmentedGraph::State::make_queues(const SegmentPlan& plan) {
  std::vector<hcq::Queue*> sources;
  for (size_t q = 0; q < plan.queues.size(); q++) {
    const PlannedQueue& p = plan.queues[q];
    QueueState state{p.kind, p.device, nullptr, nullptr};
    if (p.kind == QueueKind::Compute) {
      state.queue = &p.device->queue();
      devices.push_back({p.device, {}, {}});
    } else if (p.kind == QueueKind::Copy) {
      state.queue = p.device->hcq().copy_queue();
    }
    if (state.queue) sources.push_back(state.queue);
    queues.push_back(state);
  }
  for (size_t q = 0; q < queues.size(); q++) {
    if (queues[q].kind != QueueKind::Host) continue;
    const uint64_t lists =
        uint64_t(std::count_if(plan.segments.begin(), plan.segments.end(),
                               [&](const PlannedSegment& s) { return s.queue == q; }));
    queues[q].queue = queues[q].host = add_host_queue(*queues[q].device, sources, lists);
  }
  for (const auto& host : host_queues)
    for (const auto& other : host_queues)
      if (host != other) host->add_source(*other);
}

// A failed list's value tells the replay.
hcq::HostQueue* SegmentedGraph::State::add_host_queue(Device& device,
                                                      const std::vector<hcq::Queue*>& sources,
                                                      uint64_t lists_per_replay) {
  const auto failed = [lists_per_replay, told = outcome](uint64_t value,
                                                         const std::string& reason) {
    told->fail((value - 1) / lists_per_replay + 1, reason);
  };
  host_queues.push_back(std::make_unique<hcq::HostQueue>(device.hcq(), sources, failed));
  return host_queues.back().get();
}

// Signals that queues of devices wait for; where they cannot, the host's timelines are waited for
// in their place.
void SegmentedGraph::State::make_relays(const SegmentPlan& plan) {
  for (const PlannedSegment& s : plan.segments) {
    const QueueState& to = queues[s.queue];
    if (to.kind == QueueKind::Host || host_waits) continue;
    for (size_t before : s.after) {
      const size_t from = plan.segments[before].queue;
      if (queues[from].kind != QueueKind::Host || relays.contains({from, to.device})) continue;
      try {
        relays.emplace(std::pair(from, to.device), to.device->hcq().create_signal());
      } catch (const Unsupported&) {
        host_waits = true;
        return;
      }
    }
  }
}

// A queue cannot ask whether a device that it waits for is still there.
void SegmentedGraph::State::make_watch() {
  if (host_waits) return;
  for (const Segment& s : segments) {
    for (size_t before : s.after) {
      const QueueState &from = queues[segments[before].queue], &to = queues[s.queue];
      if (from.host || to.host || from.device == to.device) continue;
      watch.segments.push_back(before);
    }
  }
  if (watch.segments.empty()) return;
  std::sort(watch.segments.begin(), watch.segments.end());
  watch.segments.erase(std::unique(watch.segments.begin(), watch.segments.end()),
                       watch.segments.end());
  watch.values.resize(watch.segments.size());
  std::vector<hcq::Queue*> sources;
  for (const QueueState& q : queues) sources.push_back(q.queue);
  watch.queue = add_host_queue(*devices[0].device, sources, 1);
  hcq::CommandList list;
  for (size_t s : watch.segments)
    list.commands.push_back(
        {hcq::WaitCmd{&queues[segments[s].queue].queue->timeline(), list.slot_count++}, {}, {}});
  watch.list = watch.queue->encode(list, hcq::EncodeUse::Replay);
}

// What segment s waits on for the end of an earlier one, which raises it.
hcq::Signal* SegmentedGraph::State::signal_for(const Segment& s, size_t before) {
  const QueueState& from = queues[segments[before].queue];
  const QueueState& to = queues[s.queue];
  if (from.host && !to.host && !host_waits) {
    hcq::Signal* signal = relays.at({segments[before].queue, to.device}).get();
    std::vector<hcq::Signal*>& raises = segments[before].raises;
    if (std::ranges::find(raises, signal) == raises.end()) raises.push_back(signal);
    return signal;
  }
  TUFF_CHECK(from.device == to.device || to.kind == QueueKind::Host || host_waits ||
                 hcq::reaches(from.device->hcq(), to.device->hcq()) ||
                 hcq::reaches(to.device->hcq(), from.device->hcq()),
             "a queue of {} waits for one of {}", to.device->name(), from.device->name());
  return &from.queue->timeline();
}

hcq::LaunchOperand SegmentedGraph::State::staged(size_t call, Part part) {
  const auto& copy = std::get<BoundCopy>(calls[call]);
  const bool out = part == Part::StageOut;
  Staged& s = staging[{call, part}];
  if (!s.span) {
    s.device = out ? &copy.src->on() : &copy.dst->on();
    s.span = s.device->hcq().allocator().allocate(
        copy.dst->size_bytes(), out ? hcq::MemoryKind::Readback : hcq::MemoryKind::Upload);
  }
  return {.span = s.span, .size_bytes = s.span.size_bytes};
}

Copy SegmentedGraph::State::copy_of(const PlannedWork& work) {
  const auto& copy = std::get<BoundCopy>(calls[work.call]);
  Copy c{transfer_of(copy, inputs), &copy.dst->on(), &copy.src->on()};
  const bool by_host = work.part == Part::HostCopy;
  if (work.part == Part::StageOut || (by_host && !copy.dst->span().host_reaches())) {
    c.at.dst = staged(work.call, by_host ? Part::StageIn : Part::StageOut);
    c.dst_on = nullptr;
  }
  if (work.part == Part::StageIn || (by_host && !copy.src->span().host_reaches())) {
    c.at.src = staged(work.call, by_host ? Part::StageOut : Part::StageIn);
    c.src_on = nullptr;
  }
  return c;
}

void SegmentedGraph::State::make_graph(Segment& s, const PlannedSegment& planned) {
  GraphMaker maker(*queues[s.queue].device, inputs, values, sizes_vary);
  for (const PlannedWork& w : planned.work) {
    if (w.part != Part::Whole) {
      maker.add(copy_of(w).at);
      continue;
    }
    if (is_peer_copy(w, calls)) {
      const Copy c = copy_of(w);
      c.share(c.now({}), *queues[s.queue].device);
    }
    maker.add(calls[w.call]);
  }
  hcq::GraphPlace place;
  place.queue = queues[s.queue].queue;
  for (size_t before : s.after) place.waits.push_back(signal_for(s, before));
  place.host_waits = host_waits;
  place.input_blocks = input_blocks;
  s.graph = maker.make(std::move(place));
}

// A segment whose list is made here: the host's, or copies from and to inputs by a device's queue.
// In such lists, which the hazard checker reads too, inputs are placeholders.
void SegmentedGraph::State::make_copies(Segment& s, const PlannedSegment& planned) {
  if (queues[s.queue].host || !host_waits)
    for (size_t before : s.after)
      s.list.commands.push_back(
          {hcq::WaitCmd{signal_for(s, before), s.list.slot_count++}, {}, {}});
  for (const PlannedWork& w : planned.work) {
    s.copies.push_back(copy_of(w));
    s.list.commands.push_back(hcq::copy_command(s.copies.back().at, *input_blocks));
  }
}

void SegmentedGraph::State::note_follow_ups() {
  for (size_t q = 0; q < queues.size(); q++) {
    if (queues[q].kind != QueueKind::Compute) continue;
    Device* device = queues[q].device;
    hcq::Command all{hcq::HostCallCmd{[](void*) {}, nullptr}, {}, "what follows"};
    for (const DeviceUse::Memory& m : use_of(*device).touched) {
      hcq::Span span = m.buffer->span();
      span.offset -= m.buffer->byte_offset();
      span.size_bytes = m.buffer->root().size_bytes();
      all.accesses.push_back({span, true});
    }
    for (const auto& [call, staged] : staging)
      if (staged.device == device) all.accesses.push_back({staged.span, true});
    for (size_t i = 0; i < inputs.size(); i++)
      if (&inputs[i]->on() == device)
        all.accesses.push_back({{&(*input_blocks)[i], 0, inputs[i]->size_bytes()}, true});
    follow_ups.push_back({q, {{all}, 0, 0}});
  }
}

// After all segments are known: which devices wait for this one.
void SegmentedGraph::State::finish_host(Segment& s) {
  for (hcq::Signal* signal : s.raises)
    s.list.commands.push_back({hcq::SignalCmd{signal, s.list.slot_count++}, {}, {}});
  s.points.resize(s.list.slot_count);
  s.host = queues[s.queue].queue->encode(s.list, hcq::EncodeUse::Replay);
}

void SegmentedGraph::State::make(const PlannedSegment& planned) {
  segments.emplace_back();
  Segment& s = segments.back();
  s.role = planned.role;
  s.queue = planned.queue;
  s.after = planned.after;
  s.points.resize(s.after.size());
  if (s.role == Role::Entry) return;
  if (queues[s.queue].host || planned.rebinds)
    make_copies(s, planned);
  else
    make_graph(s, planned);
}

void SegmentedGraph::State::count(const PlannedSegment& planned) {
  const bool on_host = queues[planned.queue].host;
  stats.host_submits_per_replay += on_host;
  for (const PlannedWork& w : planned.work) {
    const auto* copy = std::get_if<BoundCopy>(&calls[w.call]);
    if (on_host) {
      host_copied_bytes += copy->dst->size_bytes();
      stats.host_copies++;
    } else if (is_peer_copy(w, calls)) {
      peer_copied_bytes += copy->dst->size_bytes();
      stats.peer_copies++;
    }
  }
}

void SegmentedGraph::State::count(const BoundCall& call) {
  const auto* k = std::get_if<BoundKernel>(&call);
  stats.flops += k ? k->kernel->estimate.flops : 0;
  stats.bytes += k ? k->kernel->estimate.bytes : 0;
  (k ? stats.kernels : stats.copies)++;
}

SegmentedGraph::SegmentedGraph(std::span<const BoundCall> calls,
                               std::span<const Ref<Buffer>> inputs, const SegmentPlan& plan,
                               const std::vector<ir::UOp>& variables, bool host_waits)
    : state_(std::make_unique<State>()) {
  State& st = *state_;
  st.calls = calls;
  st.inputs = inputs;
  st.values = given_values(variables, inputs);
  st.sizes_vary = !variables.empty();
  st.host_waits = host_waits;
  st.input_blocks = std::make_shared<std::vector<hcq::MemoryBlock>>(inputs.size());
  for (size_t i = 0; i < inputs.size(); i++)
    (*st.input_blocks)[i].size_bytes = inputs[i]->size_bytes();
  st.latest = Origin(st.outcome, Outcome::kLatest);
  st.make_queues(plan);
  st.make_relays(plan);
  st.note_devices();
  st.segments.reserve(plan.segments.size());
  for (const PlannedSegment& s : plan.segments) {
    st.make(s);
    st.count(s);
  }
  st.make_watch();
  for (Segment& s : st.segments)
    if (st.queues[s.queue].host) st.finish_host(s);
  if (hcq::checking_hazards()) st.note_follow_ups();
  for (const BoundCall& c : calls) st.count(c);
  st.calls = {};
  st.inputs = {};
  if (hcq::checking_hazards())
    hcq::guard_trace(trace(5), fmt::format("a graph of {} segments on {} queues",
                                           st.segments.size(), st.queues.size()));
}

SegmentedGraph::~SegmentedGraph() {
  State& st = *state_;
  // Their lists end, whatever becomes of the devices. All before the first is freed: they are
  // sources of one another.
  for (const auto& host : st.host_queues) host->wait_idle();
  st.host_queues.clear();
  for (Segment& s : st.segments) {
    if (st.queues[s.queue].kind == QueueKind::Host || s.value == 0) continue;
    try {
      st.queues[s.queue].queue->wait(s.value);
    } catch (const Error&) {
      st.queues[s.queue].device->hcq().settle();
    }
  }
  for (Segment& s : st.segments) s.graph.reset();
  for (auto& [call, staged] : st.staging) staged.device->hcq().allocator().free(staged.span);
}

// ---- replaying

// Memory that the graph writes may not be given as an input: edges were found without knowing.
void SegmentedGraph::State::require_inputs(std::span<const Ref<Buffer>> given) {
  Origin origins;
  for (size_t i = 0; i < given.size(); i++) {
    if (std::binary_search(written_roots.begin(), written_roots.end(), given[i]->root().id))
      fail<InvalidArgument>(
          "graph replay: input {} lies in memory that the graph writes; copy it first", i);
    if (!written_inputs[i]) given[i]->uses().add_origin(origins);
  }
  for (const DeviceUse& u : devices)
    for (const DeviceUse::Memory& m : u.touched) m.buffer->uses().add_origin(origins);
  origins.require();
  given_origins = origins;
  origin = host_queues.empty() ? origins : origins.with(latest);
}

void SegmentedGraph::State::submit_host(Segment& s, std::span<const Ref<Buffer>> given) {
  auto& list = static_cast<hcq::HostList&>(*s.host);
  for (size_t i = 0; i < s.copies.size(); i++) {
    if (!s.copies[i].rebinds()) continue;
    const hcq::CopyCmd c = s.copies[i].now(given);
    list.bind_copy(i, c.dst, c.src);
  }
  hcq::Queue& queue = *queues[s.queue].queue;
  std::fill(s.points.begin() + std::ptrdiff_t(s.after.size()), s.points.end(),
            queue.last_submitted() + 1);
  s.value = queue.submit(list, s.points);
}

void SegmentedGraph::State::submit_rebinding(Segment& s, std::span<const Ref<Buffer>> given) {
  hcq::Queue& queue = *queues[s.queue].queue;
  hcq::CommandList list = s.list;
  size_t next = 0;
  for (hcq::Command& c : list.commands) {
    if (!std::holds_alternative<hcq::CopyCmd>(c.body)) continue;
    const Copy& copy = s.copies[next++];
    const hcq::CopyCmd spans = copy.now(given);
    copy.share(spans, *queues[s.queue].device);
    c.body = spans;
  }
  std::span<const uint64_t> points = s.points;
  if (host_waits) {
    for (size_t i = 0; i < s.after.size(); i++)
      queues[segments[s.after[i]].queue].queue->wait(points[i]);
    points = {};
  }
  s.value = queue.submit_once(queue.encode(list, hcq::EncodeUse::Once), points);
}

void SegmentedGraph::State::submit_all(const ReplayInputs& given) {
  for (Segment& s : segments)
    if (s.role == Role::Entry) s.value = queues[s.queue].queue->last_submitted();
  for (Segment& s : segments) {
    if (s.role == Role::Entry) continue;
    for (size_t i = 0; i < s.after.size(); i++) s.points[i] = segments[s.after[i]].value;
    if (s.graph)
      s.value = s.graph->replay(given.addresses, given.values, given.sizes, s.points);
    else if (s.host)
      submit_host(s, given.buffers);
    else
      submit_rebinding(s, given.buffers);
  }
  submit_watch();
}

// Once for each replay, of one that was submitted in part too: what did not come to be submitted
// has the values of the replay before.
void SegmentedGraph::State::submit_watch() {
  if (!watch.queue || watch.queue->last_submitted() == replays) return;
  for (size_t i = 0; i < watch.segments.size(); i++)
    watch.values[i] = segments[watch.segments[i]].value;
  watch.queue->submit(*watch.list, watch.values);
}

void SegmentedGraph::State::mark_used(std::span<const Ref<Buffer>> given) {
  for (const DeviceUse& u : devices) {
    const uint64_t value = u.device->queue().last_submitted();
    u.use->until(value);
    for (const Ref<Buffer>& b : given)
      if (&b->on() == u.device) b->uses().until(value);
  }
}

void SegmentedGraph::State::mark_written(std::span<const Ref<Buffer>> given) {
  if (!origin) return;  // one device, whose own loss its queues tell
  for (const DeviceUse& u : devices)
    for (const DeviceUse::Memory& m : u.touched)
      if (m.written) m.buffer->written_from(origin);
  Origin of_results = host_queues.empty() ? given_origins : Origin();
  for (size_t i = 0; i < given.size(); i++) {
    if (!written_inputs[i]) continue;
    if (!of_results) of_results = given_origins.with(Origin(outcome, replays));
    given[i]->written_from(of_results);
    given[i]->uses().written_until(given[i]->on().queue().last_submitted());
  }
}

// A replay that was submitted in part: what copies on has to have ended before anybody may let go
// of the memory, since nothing on the compute queues stands for it.
void SegmentedGraph::State::abandon(std::span<const Ref<Buffer>> given) noexcept {
  try {
    submit_watch();
  } catch (const Error& e) {
    log_warn("a graph over several devices is not watched: {}", e.what());
  }
  for (const QueueState& q : queues) {
    try {
      if (q.kind != QueueKind::Compute) q.queue->wait_idle();
    } catch (const Error&) {
      q.device->hcq().settle();
    }
  }
  mark_used(given);
}

void SegmentedGraph::replay(const ReplayInputs& inputs) {
  State& st = *state_;
  st.outcome->require(Outcome::kLatest);
  st.require_inputs(inputs.buffers);
  ++st.replays;
  try {
    st.submit_all(inputs);
  } catch (const std::exception& e) {
    st.abandon(inputs.buffers);
    if (dynamic_cast<const DeviceLost*>(&e)) st.outcome->fail(st.replays, e.what());
    throw;
  }
  st.mark_used(inputs.buffers);
  st.mark_written(inputs.buffers);
  counters().submits += st.device_submits();
  if (st.host_copied_bytes) counters().host_copied_bytes += st.host_copied_bytes;
  if (st.peer_copied_bytes) counters().peer_copied_bytes += st.peer_copied_bytes;
}

// ---- what it is made of

std::vector<const hcq::CommandGraph*> SegmentedGraph::graphs() const {
  std::vector<const hcq::CommandGraph*> out;
  for (const Segment& s : state_->segments)
    if (s.graph) out.push_back(s.graph.get());
  return out;
}

ReplayStats SegmentedGraph::stats() const {
  ReplayStats out = state_->stats;
  for (const hcq::CommandGraph* g : graphs()) out.barriers += g->stats().barriers;
  out.submits_per_replay = state_->device_submits();
  return out;
}

uint32_t SegmentedGraph::State::device_submits() const {
  uint32_t n = 0;
  for (const Segment& s : segments)
    if (s.role != Role::Entry && !s.host) n += s.graph ? s.graph->stats().submits_per_replay : 1;
  return n;
}

hcq::Trace SegmentedGraph::trace(size_t replays) const {
  const State& st = *state_;
  hcq::Trace trace;
  std::vector<uint64_t> submitted(st.queues.size());  // by queue
  std::vector<std::vector<uint64_t>> values(st.segments.size());
  for (size_t replay = 0; replay < replays; replay++) {
    for (size_t i = 0; i < st.segments.size(); i++) {
      const Segment& s = st.segments[i];
      if (s.role == Role::Entry) {
        values[i].push_back(submitted[s.queue]);
        continue;
      }
      const uint64_t value = ++submitted[s.queue];
      hcq::Submission submission{.queue = uint32_t(s.queue),
                                 .list = &s.list,
                                 .timeline = &st.queues[s.queue].queue->timeline(),
                                 .value = value,
                                 .label = fmt::format("replay {} segment {}", replay, i)};
      if (!st.host_waits || s.host)
        for (size_t before : s.after) submission.slots.push_back(values[before].back());
      else
        for (size_t before : s.after)
          trace.events.emplace_back(hcq::HostWait{
              &st.queues[st.segments[before].queue].queue->timeline(), values[before].back()});
      submission.slots.resize(submission.slots.size() + s.raises.size(), value);
      if (s.graph) {
        const std::vector<hcq::ReplayInstance> instances = s.graph->replay_instances();
        TUFF_CHECK(!instances.empty(), "the graph was made without TUFF_CHECK_HAZARDS");
        const hcq::ReplayInstance& in = instances[replay % instances.size()];
        submission.list = in.list;
        if (replay >= instances.size())
          trace.events.emplace_back(
              hcq::HostWait{submission.timeline, values[i][replay - instances.size()]});
        if (in.patched) trace.events.emplace_back(hcq::HostAccess{{{in.patched, true}}, "patch"});
      }
      values[i].push_back(value);
      trace.events.emplace_back(std::move(submission));
    }
  }
  for (const State::FollowUp& f : st.follow_ups)
    trace.events.emplace_back(
        hcq::Submission{.queue = uint32_t(f.queue), .list = &f.list, .label = kWhatFollows});
  return trace;
}

}  // namespace tuff::engine
