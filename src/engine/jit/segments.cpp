#include "engine/jit/segments.h"

#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/log.h"
#include "engine/jit/make_graph.h"
#include "engine/jit/rebind.h"
#include "engine/realize/call_bytes.h"
#include "engine/stats.h"
#include "hcq/hazard_guard.h"

namespace tuff::engine {
namespace {

using Part = PlannedWork::Part;
using Role = PlannedSegment::Role;

// Memory of a copy: a buffer, fixed or an input's part, or a staging span.
struct Operand {
  Ref<Buffer> buffer;  // null for an input and for staging
  hcq::Span span;      // of staging
  int32_t input = -1;
  uint64_t offset = 0, size_bytes = 0;

  // Where extents vary an input may be smaller than what was captured: then there is less.
  hcq::Span now(std::span<const Ref<Buffer>> inputs) const {
    if (span) return span;
    if (buffer) return buffer->span().sub(0, size_bytes);
    Buffer& in = *inputs[size_t(input)];
    const uint64_t begin = std::min(offset, in.size_bytes());
    return in.span().sub(begin, std::min(size_bytes, in.size_bytes() - begin));
  }
};

// Both sides of a copy, of the same size.
struct CopySpans {
  hcq::Span dst, src;
};

struct Copy {
  Operand dst, src;
  bool rebinds() const { return dst.input >= 0 || src.input >= 0; }
  CopySpans now(std::span<const Ref<Buffer>> inputs) const {
    CopySpans s{dst.now(inputs), src.now(inputs)};
    s.dst.size_bytes = s.src.size_bytes = std::min(s.dst.size_bytes, s.src.size_bytes);
    return s;
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
  std::vector<size_t> raises;    // signals, of a host segment
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

// A signal of `device`, raised by a host's queue to its own timeline's value.
struct Relay {
  size_t from = 0;  // queue
  Device* device = nullptr;
  std::unique_ptr<hcq::Signal> signal;
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

constexpr size_t kNone = SIZE_MAX;

// A copy by a device that reaches the other's memory.
bool is_peer_copy(const PlannedWork& work, std::span<const BoundCall> calls) {
  return work.part == Part::Whole && crosses_devices(calls[work.call]);
}

}  // namespace

struct SegmentedGraph::State {
  std::vector<DeviceUse> devices;  // first, so that it goes last
  std::vector<Relay> relays;
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
  uint32_t peer_copies = 0;
  ReplayStats stats;  // what the calls count
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
  void make(const PlannedSegment& planned);
  void count_copies(const PlannedSegment& planned);
  void make_graph(Segment& s, const PlannedSegment& planned);
  void make_host(Segment& s, const PlannedSegment& planned);
  void make_rebinding(Segment& s, const PlannedSegment& planned);
  Copy copy_of(const PlannedWork& work);
  Operand operand(const Ref<Buffer>& b);
  Operand staged(size_t call, Part part);
  hcq::Span placeholder(const Operand& o) const;
  hcq::Command neutral(const Copy& c) const;
  hcq::Signal* signal_for(const Segment& s, size_t before);
  void share(const Operand& o, const hcq::Span& span, std::span<const Ref<Buffer>> given,
             Device& with) const;
  size_t relay(size_t from, const Device& device) const;
  DeviceUse& use_of(const Device& device);

  void require_inputs(std::span<const Ref<Buffer>> given);
  void submit_all(const ReplayInputs& given);
  void fill_points(Segment& s);
  void submit_watch();
  void submit_host(Segment& s, std::span<const Ref<Buffer>> given);
  void submit_rebinding(Segment& s, std::span<const Ref<Buffer>> given);
  void mark_used(std::span<const Ref<Buffer>> given);
  void mark_written(std::span<const Ref<Buffer>> given);
  void abandon(std::span<const Ref<Buffer>> given) noexcept;
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
    // One list per segment and replay: the value tells the replay.
    const uint64_t lists =
        uint64_t(std::count_if(plan.segments.begin(), plan.segments.end(),
                               [&](const PlannedSegment& s) { return s.queue == q; }));
    host_queues.push_back(std::make_unique<hcq::HostQueue>(
        queues[q].device->hcq(), sources,
        [lists, told = outcome](uint64_t value, const std::string& reason) {
          told->fail((value - 1) / lists + 1, reason);
        }));
    queues[q].queue = queues[q].host = host_queues.back().get();
  }
  for (const auto& host : host_queues)
    for (const auto& other : host_queues)
      if (host != other) host->add_source(*other);
}

// Signals that queues of devices wait for; where they cannot, the host's timelines are waited for
// in their place.
void SegmentedGraph::State::make_relays(const SegmentPlan& plan) {
  for (const PlannedSegment& s : plan.segments) {
    const QueueState& to = queues[s.queue];
    if (to.kind == QueueKind::Host || host_waits) continue;
    for (size_t before : s.after) {
      const size_t from = plan.segments[before].queue;
      if (queues[from].kind != QueueKind::Host || relay(from, *to.device) != kNone) continue;
      try {
        relays.push_back({from, to.device, to.device->hcq().create_signal()});
      } catch (const Unsupported&) {
        host_waits = true;
        return;
      }
    }
  }
}

size_t SegmentedGraph::State::relay(size_t from, const Device& device) const {
  for (size_t i = 0; i < relays.size(); i++)
    if (relays[i].from == from && relays[i].device == &device) return i;
  return kNone;
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
  // One list per replay: the value tells the replay.
  host_queues.push_back(std::make_unique<hcq::HostQueue>(
      devices[0].device->hcq(), sources,
      [told = outcome](uint64_t value, const std::string& reason) { told->fail(value, reason); }));
  watch.queue = host_queues.back().get();
  hcq::CommandList list;
  for (size_t s : watch.segments)
    list.commands.push_back(
        {hcq::WaitCmd{&queues[segments[s].queue].queue->timeline(), list.slot_count++}, {}, {}});
  watch.list = watch.queue->encode(list, hcq::EncodeUse::Replay);
}

// What segment s waits on for the end of an earlier one.
hcq::Signal* SegmentedGraph::State::signal_for(const Segment& s, size_t before) {
  const QueueState& from = queues[segments[before].queue];
  const QueueState& to = queues[s.queue];
  if (from.kind == QueueKind::Host && to.kind != QueueKind::Host && !host_waits)
    return relays[relay(segments[before].queue, *to.device)].signal.get();
  TUFF_CHECK(from.device == to.device || to.kind == QueueKind::Host || host_waits ||
                 from.device->hcq().reaches(to.device->hcq()) ||
                 to.device->hcq().reaches(from.device->hcq()),
             "a queue of {} waits for one of {}", to.device->name(), from.device->name());
  return &from.queue->timeline();
}

Operand SegmentedGraph::State::operand(const Ref<Buffer>& b) {
  Operand o;
  o.size_bytes = b->size_bytes();
  o.input = input_slot(*b, inputs);
  if (o.input >= 0)
    o.offset = b->byte_offset() - inputs[size_t(o.input)]->byte_offset();
  else
    o.buffer = b;
  return o;
}

Operand SegmentedGraph::State::staged(size_t call, Part part) {
  const auto& copy = std::get<BoundCopy>(calls[call]);
  const bool out = part == Part::StageOut;
  Operand o;
  o.size_bytes = copy.dst->size_bytes();
  Staged& s = staging[{call, part}];
  if (!s.span) {
    s.device = out ? &copy.src->on() : &copy.dst->on();
    s.span = s.device->hcq().allocator().allocate(
        o.size_bytes, out ? hcq::MemoryKind::Readback : hcq::MemoryKind::Upload);
  }
  o.span = s.span;
  return o;
}

Copy SegmentedGraph::State::copy_of(const PlannedWork& work) {
  const auto& copy = std::get<BoundCopy>(calls[work.call]);
  const auto visible = [](const Ref<Buffer>& b) { return b->span().host_reaches(); };
  if (is_peer_copy(work, calls)) return {operand(copy.dst), operand(copy.src)};
  switch (work.part) {
    case Part::StageOut: return {staged(work.call, Part::StageOut), operand(copy.src)};
    case Part::StageIn: return {operand(copy.dst), staged(work.call, Part::StageIn)};
    default:
      return {visible(copy.dst) ? operand(copy.dst) : staged(work.call, Part::StageIn),
              visible(copy.src) ? operand(copy.src) : staged(work.call, Part::StageOut)};
  }
}

// In lists that the hazard checker reads, inputs are placeholders.
hcq::Span SegmentedGraph::State::placeholder(const Operand& o) const {
  if (o.input < 0) return o.now({});
  return {&(*input_blocks)[size_t(o.input)], o.offset, o.size_bytes};
}

hcq::Command SegmentedGraph::State::neutral(const Copy& c) const {
  return hcq::copy_command(placeholder(c.dst), placeholder(c.src));
}

void SegmentedGraph::State::make_graph(Segment& s, const PlannedSegment& planned) {
  std::vector<SegmentItem> items;
  for (const PlannedWork& w : planned.work) {
    if (is_peer_copy(w, calls)) {
      const Copy c = copy_of(w);
      for (const Operand* o : {&c.dst, &c.src}) share(*o, o->now({}), {}, *queues[s.queue].device);
    }
    if (w.part == Part::Whole) {
      items.emplace_back(&calls[w.call]);
      continue;
    }
    const Copy c = copy_of(w);
    hcq::Transfer node;
    node.dst.span = c.dst.now({});
    node.src.span = c.src.now({});
    items.emplace_back(node);
  }
  hcq::GraphPlace place;
  place.queue = queues[s.queue].queue;
  for (size_t before : s.after) place.waits.push_back(signal_for(s, before));
  place.host_waits = host_waits;
  place.input_blocks = input_blocks;
  s.graph = engine::make_graph(*queues[s.queue].device, items, inputs, values, sizes_vary,
                               std::move(place));
}

// Memory that another device's queue is about to copy.
void SegmentedGraph::State::share(const Operand& o, const hcq::Span& span,
                                  std::span<const Ref<Buffer>> given, Device& with) const {
  const Device* owner = o.input >= 0 ? &given[size_t(o.input)]->on()
                        : o.buffer   ? &o.buffer->on()
                                     : &with;
  if (owner != &with) owner->hcq().share(*span.block, with.hcq());
}

void SegmentedGraph::State::make_host(Segment& s, const PlannedSegment& planned) {
  for (size_t before : s.after)
    s.list.commands.push_back({hcq::WaitCmd{signal_for(s, before), s.list.slot_count++}, {}, {}});
  for (const PlannedWork& w : planned.work) {
    s.copies.push_back(copy_of(w));
    s.list.commands.push_back(neutral(s.copies.back()));
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

namespace {

// After all segments are known: which devices wait for this one.
void finish_host(Segment& s, std::span<Relay> relays, hcq::Queue& queue) {
  for (size_t r : s.raises)
    s.list.commands.push_back(
        {hcq::SignalCmd{relays[r].signal.get(), s.list.slot_count++}, {}, {}});
  s.points.resize(s.list.slot_count);
  s.host = queue.encode(s.list, hcq::EncodeUse::Replay);
}

}  // namespace

void SegmentedGraph::State::make_rebinding(Segment& s, const PlannedSegment& planned) {
  if (!host_waits)
    for (size_t before : s.after)
      s.list.commands.push_back({hcq::WaitCmd{signal_for(s, before), s.list.slot_count++}, {}, {}});
  for (const PlannedWork& w : planned.work) {
    s.copies.push_back(copy_of(w));
    s.list.commands.push_back(neutral(s.copies.back()));
  }
}

void SegmentedGraph::State::make(const PlannedSegment& planned) {
  segments.emplace_back();
  Segment& s = segments.back();
  s.role = planned.role;
  s.queue = planned.queue;
  s.after = planned.after;
  s.points.resize(s.after.size());
  if (s.role == Role::Entry) return;
  const bool on_host = queues[s.queue].kind == QueueKind::Host;
  if (on_host) return make_host(s, planned);
  for (size_t before : s.after) {
    const size_t from = segments[before].queue;
    const size_t r = queues[from].kind == QueueKind::Host && !host_waits
                         ? relay(from, *queues[s.queue].device)
                         : kNone;
    std::vector<size_t>& raises = segments[before].raises;
    if (r != kNone && std::find(raises.begin(), raises.end(), r) == raises.end())
      raises.push_back(r);
  }
  if (planned.rebinds)
    make_rebinding(s, planned);
  else
    make_graph(s, planned);
}

void SegmentedGraph::State::count_copies(const PlannedSegment& planned) {
  for (const PlannedWork& w : planned.work) {
    const auto* copy = std::get_if<BoundCopy>(&calls[w.call]);
    if (w.part == Part::HostCopy) host_copied_bytes += copy->dst->size_bytes();
    if (!is_peer_copy(w, calls)) continue;
    peer_copied_bytes += copy->dst->size_bytes();
    peer_copies++;
  }
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
    st.count_copies(s);
  }
  st.make_watch();
  for (Segment& s : st.segments)
    if (st.queues[s.queue].host) finish_host(s, st.relays, *st.queues[s.queue].queue);
  if (hcq::checking_hazards()) st.note_follow_ups();
  for (const BoundCall& c : calls) {
    auto* k = std::get_if<BoundKernel>(&c);
    st.stats.flops += k ? k->kernel->estimate.flops : 0;
    st.stats.bytes += k ? k->kernel->estimate.bytes : 0;
    (k ? st.stats.kernels : st.stats.copies)++;
  }
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
    if (!written_inputs[i] && given[i]->has_origin()) origins = origins.with(given[i]->origin());
  }
  for (const DeviceUse& u : devices)
    for (const DeviceUse::Memory& m : u.touched)
      if (m.buffer->has_origin()) origins = origins.with(m.buffer->origin());
  origins.require();
  given_origins = origins;
  origin = host_queues.empty() ? origins : origins.with(latest);
}

void SegmentedGraph::State::fill_points(Segment& s) {
  for (size_t i = 0; i < s.after.size(); i++) s.points[i] = segments[s.after[i]].value;
}

void SegmentedGraph::State::submit_host(Segment& s, std::span<const Ref<Buffer>> given) {
  auto& list = static_cast<hcq::HostList&>(*s.host);
  for (size_t i = 0; i < s.copies.size(); i++) {
    if (!s.copies[i].rebinds()) continue;
    const CopySpans c = s.copies[i].now(given);
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
    const CopySpans now = copy.now(given);
    share(copy.dst, now.dst, given, *queues[s.queue].device);
    share(copy.src, now.src, given, *queues[s.queue].device);
    c.body = hcq::CopyCmd{now.dst, now.src};
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
    fill_points(s);
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
    u.use->used_until(value);
    for (const Ref<Buffer>& b : given)
      if (&b->on() == u.device) b->used_until(value);
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
    given[i]->written_until(given[i]->on().queue().last_submitted());
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
  counters().submits += device_submits();
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
  out.submits_per_replay = device_submits();
  out.host_submits_per_replay = host_submits();
  out.host_copies = host_copies();
  return out;
}

uint32_t SegmentedGraph::device_submits() const {
  uint32_t n = 0;
  for (const Segment& s : state_->segments) {
    if (s.role == Role::Entry || s.host) continue;
    n += s.graph ? s.graph->stats().submits_per_replay : 1;
  }
  return n;
}

uint32_t SegmentedGraph::host_submits() const {
  uint32_t n = 0;
  for (const Segment& s : state_->segments) n += bool(s.host);
  return n;
}

uint32_t SegmentedGraph::host_copies() const {
  uint32_t n = 0;
  for (const Segment& s : state_->segments)
    if (s.host) n += uint32_t(s.copies.size());
  return n;
}

uint32_t SegmentedGraph::peer_copies() const { return state_->peer_copies; }

namespace {

// One submission of a segment, after what the host does for it.
struct Traced {
  hcq::Submission submission;
  hcq::Span patched;
  uint64_t reused = 0;  // value that the instance had before; 0: it is free
};

void append(hcq::Trace& trace, Traced t) {
  if (t.reused) trace.events.emplace_back(hcq::HostWait{t.submission.timeline, t.reused});
  if (t.patched) trace.events.emplace_back(hcq::HostAccess{{{t.patched, true}}, "patch"});
  trace.events.emplace_back(std::move(t.submission));
}

}  // namespace

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
      Traced t;
      t.submission.queue = uint32_t(s.queue);
      t.submission.list = &s.list;
      t.submission.timeline = &st.queues[s.queue].queue->timeline();
      t.submission.value = value;
      t.submission.label = fmt::format("replay {} segment {}", replay, i);
      if (!st.host_waits || s.host)
        for (size_t before : s.after) t.submission.slots.push_back(values[before].back());
      else
        for (size_t before : s.after)
          trace.events.emplace_back(hcq::HostWait{
              &st.queues[st.segments[before].queue].queue->timeline(), values[before].back()});
      t.submission.slots.resize(t.submission.slots.size() + s.raises.size(), value);
      if (s.graph) {
        const std::vector<hcq::ReplayInstance> instances = s.graph->replay_instances();
        TUFF_CHECK(!instances.empty(), "the graph was made without TUFF_CHECK_HAZARDS");
        const hcq::ReplayInstance& in = instances[replay % instances.size()];
        t.submission.list = in.list;
        t.patched = in.patched;
        if (replay >= instances.size()) t.reused = values[i][replay - instances.size()];
      }
      values[i].push_back(value);
      append(trace, std::move(t));
    }
  }
  for (const State::FollowUp& f : st.follow_ups)
    trace.events.emplace_back(
        hcq::Submission{.queue = uint32_t(f.queue), .list = &f.list, .label = kWhatFollows});
  return trace;
}

}  // namespace tuff::engine
