#include "hcq/graph.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/arith.h"
#include "base/check.h"
#include "base/mutex.h"
#include "base/prefetch.h"
#include "hcq/args.h"
#include "hcq/hazard_guard.h"

namespace tuff::hcq {
namespace {

constexpr size_t kBlockAlignment = 64;  // of an argument block: one cache line
constexpr size_t kIndirectAlignment = 16;
constexpr uint64_t kCopyBytesPerNs = 4;
constexpr size_t kRemembered = 4;  // sets of inputs found free of conflicts
constexpr size_t kPrefetchedPatches = 16;

// Where one kernel's block and launch size lie in an instance's argument memory.
struct Placement {
  size_t args = 0, args_bytes = 0;
  size_t indirect = 0;  // 0: its launch size is not in memory
};

struct Range {
  uint64_t begin, end;
};  // device addresses, half open

void sort_and_join(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](Range a, Range b) { return a.begin < b.begin; });
  std::vector<Range> joined;
  for (const Range& r : ranges) {
    if (!joined.empty() && r.begin <= joined.back().end)
      joined.back().end = std::max(joined.back().end, r.end);
    else
      joined.push_back(r);
  }
  ranges = std::move(joined);
}

bool overlaps(const std::vector<Range>& joined, Range r) {
  auto it = std::lower_bound(joined.begin(), joined.end(), r.end,
                             [](const Range& a, uint64_t end) { return a.begin < end; });
  return it != joined.begin() && std::prev(it)->end > r.begin;
}

// What the graph touches of one input, as offsets into it.
struct InputExtent {
  uint64_t begin = UINT64_MAX, end = 0;
  bool written = false;
  Range at(uint64_t address, uint64_t size) const {
    return {address + std::min(begin, size), address + std::min(end, size)};
  }
  bool used() const { return begin < end; }
};

struct Instance {
  ArgMemory args;
  std::byte* host = nullptr;  // what a replay patches
  std::unique_ptr<PacedList> list;
  uint64_t value = 0;          // timeline value of its last submission
  uint64_t patched = 0;        // State::loads when it was patched last
  bool times_are_due = false;  // of that submission
};

}  // namespace

struct CommandGraph::State {
  State(Device& d, uint32_t inputs_, SlotProgram values_, GraphPlace place_)
      : input_count(inputs_),
        device(d),
        place_of(std::move(place_)),
        queue(place_of.queue ? *place_of.queue : d.compute_queue()),
        accepted(kRemembered * inputs_),
        accepted_sizes(kRemembered * inputs_),
        given(2 * inputs_ + values_.given()),
        values(std::move(values_)),
        extents(inputs_),
        checked_with_others(place_of.input_blocks || !place_of.waits.empty() ||
                            !place_of.signals.empty()) {
    if (!place_of.input_blocks)
      place_of.input_blocks = std::make_shared<const std::vector<MemoryBlock>>(inputs_);
    TUFF_CHECK(place_of.input_blocks->size() >= inputs_, "{} placeholders for {} inputs",
               place_of.input_blocks->size(), inputs_);
  }
  // What has to hold of a value before it is patched in: one entry per slot and axis.
  struct Limit {
    uint32_t value;
    int64_t min, max;
    int32_t axis;            // of a launch, or -1
    const Program* program;  // the first that uses it
  };

  // Used by replays, side by side so that they come to few lines of memory.
  Mutex mutex;
  uint32_t input_count = 0;
  Device& device;
  GraphPlace place_of;
  Queue& queue;
  // Addresses and sizes of kRemembered sets of inputs, which replays go round between.
  std::vector<uint64_t> accepted, accepted_sizes;
  std::array<bool, kRemembered> has_sizes{};
  size_t accepted_count = 0;
  std::vector<uint64_t> given;                      // what `slots` were loaded from
  std::vector<uint64_t> slots;                      // of one replay
  size_t loaded_sizes = SIZE_MAX;                   // in `given`; SIZE_MAX: nothing is loaded
  uint64_t loads = 0;                               // of `slots`
  bool holds_values = false;                        // `slots`: what the last scalars imply
  std::vector<Patch> wide_patches, narrow_patches;  // of 8 and of 4 bytes
  std::vector<DerivedSlot> derived;
  std::vector<Limit> limits;
  std::vector<uint32_t> launch_slots;  // those that the list takes behind its points' values
  std::vector<uint64_t> list_slots;    // of one replay; used where there are launch_slots
  std::vector<Instance> instances;
  size_t newest = 0;  // of instances: the last one submitted
  TimesSink times;
  GraphStats stats;
  SlotProgram values;  // its slots follow the inputs

  // Used by building and by errors.
  std::vector<InputExtent> extents;
  bool checked_with_others;
  std::vector<Range> fixed_written, fixed_all;
  std::vector<Placement> placements;  // one per node
  std::vector<std::byte> contents;    // argument memory as it is before patching
  std::map<std::pair<uint32_t, uint64_t>, uint32_t> derived_index;
  CommandList commands;
  std::vector<CommandList> unchecked;  // every instance's, while made with TUFF_CHECK_HAZARDS;
                                       // where others take part, as long as the graph lives

  void place(const std::vector<GraphNode>& nodes);
  void check(const Launch& k) const;
  void note_range(const LaunchOperand& b);
  void fill(const Launch& k, const Placement& at);
  void patch_value(uint32_t value, size_t at);
  void limit(const Limit& l);
  void check_limits() const;
  void fill_groups(const Launch& k, size_t at);
  size_t point_slots() const {
    return (place_of.host_waits ? 0 : place_of.waits.size()) + place_of.signals.size();
  }
  int32_t launch_slot(int32_t value);
  std::span<const uint64_t> submitted_slots(std::span<const uint64_t> points);
  uint32_t address_slot(const LaunchOperand& b);
  Command dispatch(const Launch& k, const Placement& at, const Instance& in);
  CommandList record(const std::vector<GraphNode>& nodes, const Instance& in);
  void add_points(CommandList& list) const;
  std::span<const uint64_t> wait_here(std::span<const uint64_t> points);
  void add_instance(const std::vector<GraphNode>& nodes);
  std::vector<ReplayInstance> replays() const;
  bool is_loaded(std::span<const uint64_t> inputs, std::span<const int64_t> scalars,
                 std::span<const uint64_t> sizes) const;
  void load_values(std::span<const int64_t> scalars);
  void load_slots(std::span<const uint64_t> inputs, std::span<const int64_t> scalars,
                  std::span<const uint64_t> sizes);
  Instance& free_instance();
  void prefetch_all() const;
  void patch(std::byte* host) const;
  void report_times();
  std::vector<Instance*> by_age();  // of their last submissions, the oldest first
  [[gnu::noinline]] int32_t conflict(std::span<const uint64_t> inputs,
                                     std::span<const uint64_t> sizes) const;
  void require_no_conflict(std::span<const uint64_t> inputs, std::span<const uint64_t> sizes);
};

// ---- building

void CommandGraph::State::check(const Launch& k) const {
  TUFF_CHECK(k.program != nullptr, "kernel without a program");
  const render::ArgLayout& layout = k.program->args();
  TUFF_CHECK(layout.buffer_count == k.operands.size() && layout.scalar_count == k.scalars.size(),
             "{}: {} buffers and {} scalars given, {} and {} declared", k.program->name(),
             k.operands.size(), k.scalars.size(), layout.buffer_count, layout.scalar_count);
  for (const LaunchOperand& b : k.operands)
    TUFF_CHECK(b.span || (b.input >= 0 && static_cast<uint32_t>(b.input) < input_count),
               "{}: buffer is neither memory nor one of {} inputs", k.program->name(), input_count);
  for (const LaunchScalar& s : k.scalars)
    TUFF_CHECK(s.slot < static_cast<int64_t>(values.slot_count()), "{}: scalar slot {} of {}",
               k.program->name(), s.slot, values.slot_count());
  for (int32_t slot : k.group_slots)
    TUFF_CHECK(slot < static_cast<int64_t>(values.slot_count()), "{}: launch slot {} of {}",
               k.program->name(), slot, values.slot_count());
}

// Blocks that replays patch come first: a replay then writes to few pages, which are cold after the
// one before it, however many kernels the graph has.
void CommandGraph::State::place(const std::vector<GraphNode>& nodes) {
  placements.resize(nodes.size());
  size_t end = 0;
  for (bool patched : {true, false}) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      const auto* k = std::get_if<Launch>(&nodes[i]);
      if (k == nullptr || k->is_patched() != patched) continue;
      check(*k);
      Placement& p = placements[i];
      p.args = align_up(end, kBlockAlignment);
      p.args_bytes = std::max<size_t>(k->program->args().size_bytes(), 16);
      end = p.args + p.args_bytes;
      if (!k->is_symbolic() || queue.takes_group_slots()) continue;
      p.indirect = align_up(end, kIndirectAlignment);
      end = p.indirect + 12;
    }
  }
  contents.resize(align_up(end, kBlockAlignment));
}

void CommandGraph::State::note_range(const LaunchOperand& b) {
  if (b.span) {
    Range r{b.span.address(), b.span.address() + b.span.size_bytes};
    fixed_all.push_back(r);
    if (b.write) fixed_written.push_back(r);
    return;
  }
  InputExtent& e = extents[static_cast<size_t>(b.input)];
  e.begin = std::min<uint64_t>(e.begin, b.offset);
  e.end = std::max<uint64_t>(e.end, b.offset + b.size_bytes);
  e.written |= b.write;
}

uint32_t CommandGraph::State::address_slot(const LaunchOperand& b) {
  uint32_t input = static_cast<uint32_t>(b.input);
  if (b.offset == 0) return input;
  auto [it, fresh] = derived_index.try_emplace(
      {input, b.offset}, input_count + values.slot_count() + static_cast<uint32_t>(derived.size()));
  if (fresh) derived.push_back({it->second, input, b.offset});
  return it->second;
}

void CommandGraph::State::patch_value(uint32_t value, size_t at) {
  narrow_patches.push_back({static_cast<uint32_t>(at), input_count + value});
}

void CommandGraph::State::limit(const Limit& l) {
  const auto same = [&](const Limit& o) { return o.value == l.value && o.axis == l.axis; };
  if (std::none_of(limits.begin(), limits.end(), same)) limits.push_back(l);
}

// `at`: where its size is read from, or 0.
void CommandGraph::State::fill_groups(const Launch& k, size_t at) {
  for (uint32_t axis = 0; axis < 3; ++axis) {
    const int32_t slot = k.group_slots[axis];
    if (slot >= 0)
      limit({static_cast<uint32_t>(slot), 0, device.target().max_groups[axis],
             static_cast<int32_t>(axis), k.program});
    if (at && slot >= 0)
      patch_value(static_cast<uint32_t>(slot), at + 4 * axis);
    else if (at)
      std::memcpy(&contents[at + 4 * axis], &k.groups[axis], 4);
  }
}

// The slot of the list that a launch size comes from.
int32_t CommandGraph::State::launch_slot(int32_t value) {
  if (value < 0) return -1;
  const uint32_t slot = input_count + static_cast<uint32_t>(value);
  const auto known = std::find(launch_slots.begin(), launch_slots.end(), slot);
  const auto index = point_slots() + static_cast<size_t>(known - launch_slots.begin());
  if (known == launch_slots.end()) launch_slots.push_back(slot);
  return static_cast<int32_t>(index);
}

void CommandGraph::State::fill(const Launch& k, const Placement& at) {
  for (const LaunchOperand& b : k.operands) note_range(b);
  write_block(k, &contents[at.args], [&](size_t offset, const auto& given) {
    const size_t word = at.args + offset;
    if constexpr (std::is_same_v<decltype(given), const LaunchOperand&>) {
      wide_patches.push_back({static_cast<uint32_t>(word), address_slot(given)});
    } else {
      const auto slot = static_cast<uint32_t>(given.slot);
      patch_value(slot, word);
      limit({slot, INT32_MIN, INT32_MAX, -1, k.program});
    }
  });
  fill_groups(k, at.indirect);
}

Command CommandGraph::State::dispatch(const Launch& k, const Placement& at, const Instance& in) {
  Command c = dispatch_command(k, in.args.device.sub(at.args, at.args_bytes), names_buffers(device),
                               *place_of.input_blocks);
  auto& d = std::get<DispatchCmd>(c.body);
  c.keeps_args = !k.is_patched();
  if (at.indirect) {
    d.indirect = in.args.device.sub(at.indirect, 12);
    c.accesses.insert(c.accesses.begin() + 1, {d.indirect, false});  // behind the block
  } else {
    std::transform(k.group_slots.begin(), k.group_slots.end(), d.group_slots.begin(),
                   [this](int32_t value) { return launch_slot(value); });
  }
  return c;
}

CommandList CommandGraph::State::record(const std::vector<GraphNode>& nodes, const Instance& in) {
  CommandList list;
  auto add_copy = [&](Span dst, Span src, const char* label) {
    list.commands.push_back(copy_command(dst, src, label));
    list.commands.back().cost_ns = dst.size_bytes / kCopyBytesPerNs;
  };
  if (in.args.staged) add_copy(in.args.device, in.args.staged, "arguments");
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (const auto* k = std::get_if<Launch>(&nodes[i])) {
      list.commands.push_back(dispatch(*k, placements[i], in));
      continue;
    }
    const auto& copy = std::get<Transfer>(nodes[i]);
    if (!copy.dst.span || !copy.src.span)
      fail<InvalidArgument>(
          "node {}: a copy's operands are fixed memory; an input is copied by a kernel", i);
    TUFF_CHECK(copy.dst.span.size_bytes == copy.src.span.size_bytes, "copy of {} bytes into {}",
               copy.src.span.size_bytes, copy.dst.span.size_bytes);
    add_copy(copy.dst.span, copy.src.span, "copy");
  }
  order_by_levels(list);
  insert_barriers(list);
  add_points(list);
  return list;
}

void CommandGraph::State::add_points(CommandList& list) const {
  std::vector<Command> waits;
  if (!place_of.host_waits) {
    for (Signal* s : place_of.waits) waits.push_back({WaitCmd{s, list.slot_count++}, {}, {}});
    list.commands.insert(list.commands.begin(), waits.begin(), waits.end());
  }
  for (Signal* s : place_of.signals)
    list.commands.push_back({SignalCmd{s, list.slot_count++}, {}, {}});
  TUFF_CHECK(list.slot_count == point_slots(), "{} points of {}", list.slot_count, point_slots());
  list.slot_count += static_cast<uint32_t>(launch_slots.size());
}

void CommandGraph::State::add_instance(const std::vector<GraphNode>& nodes) {
  Instance& in = instances.emplace_back();
  if (!contents.empty()) {
    in.args = ArgMemory(device, contents.size());
    in.host = in.args.writable().host();
    std::memcpy(in.host, contents.data(), contents.size());
  }
  CommandList list = record(nodes, in);
  in.list = std::make_unique<PacedList>(queue, list, bool(times));
  if (checking_hazards()) unchecked.push_back(list);
  if (instances.size() == 1) commands = std::move(list);
}

std::vector<ReplayInstance> CommandGraph::State::replays() const {
  std::vector<ReplayInstance> replayed;
  for (size_t i = 0; i < unchecked.size(); ++i)
    replayed.push_back({&unchecked[i], instances[i].args.writable()});
  return replayed;
}

CommandGraph::CommandGraph(Device& device, std::vector<GraphNode> nodes, uint32_t input_count,
                           SlotProgram values, uint32_t instances, TimesSink times,
                           GraphPlace place)
    : state_(std::make_unique<State>(device, input_count, std::move(values), std::move(place))) {
  State& s = *state_;
  s.times = std::move(times);
  TUFF_CHECK(instances >= 1, "a graph needs an instance");
  if (input_count && !device.target().features.device_address)
    fail<Unsupported>("{}: a graph whose inputs are re-bound takes buffer device addresses",
                      device.name());
  s.place(nodes);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (const auto* k = std::get_if<Launch>(&nodes[i])) {
      s.fill(*k, s.placements[i]);
      ++s.stats.kernels;
    } else {
      auto copy = std::get<Transfer>(nodes[i]);
      copy.dst.write = true;
      for (const LaunchOperand* b : {&copy.dst, &copy.src})
        if (b->span) s.note_range(*b);
      ++s.stats.copies;
    }
  }
  sort_and_join(s.fixed_written);
  sort_and_join(s.fixed_all);
  s.derived_index.clear();
  s.slots.resize(input_count + s.values.slot_count() + s.derived.size());
  s.values.load_constants(std::span(s.slots).subspan(input_count, s.values.slot_count()));
  s.instances.reserve(instances);
  for (uint32_t i = 0; i < instances; ++i) s.add_instance(nodes);
  s.list_slots.resize(s.point_slots() + s.launch_slots.size());
  if (!s.unchecked.empty() && !s.checked_with_others) {
    guard_trace(replay_trace(s.replays(), s.queue.timeline()),
                fmt::format("a graph of {} commands on {}", s.commands.commands.size(),
                            device.name()));
    s.unchecked.clear();
  }
  s.stats.barriers = static_cast<uint32_t>(
      std::count_if(s.commands.commands.begin(), s.commands.commands.end(),
                    [](const Command& c) { return std::holds_alternative<BarrierCmd>(c.body); }));
  s.stats.patches = static_cast<uint32_t>(s.wide_patches.size() + s.narrow_patches.size());
  s.stats.submits_per_replay = s.instances[0].list->submissions();
}

CommandGraph::~CommandGraph() {
  State& s = *state_;
  for (Instance* in : s.by_age()) {
    try {
      s.queue.wait(in->value);
      s.report_times();
    } catch (const Error&) {
      s.device.settle();
    }
    in->list.reset();
    in->args.free(s.device);
  }
}

// ---- replaying

int32_t CommandGraph::State::conflict(std::span<const uint64_t> inputs,
                                      std::span<const uint64_t> sizes) const {
  const auto range = [&](size_t i) {
    return extents[i].at(inputs[i], sizes.empty() ? UINT64_MAX : sizes[i]);
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputExtent& e = extents[i];
    if (!e.used()) continue;
    Range r = range(i);
    if (overlaps(e.written ? fixed_all : fixed_written, r)) return static_cast<int32_t>(i);
    if (!e.written) continue;
    for (size_t j = 0; j < inputs.size(); ++j) {
      if (j == i || !extents[j].used()) continue;
      Range other = range(j);
      if (r.begin < other.end && other.begin < r.end) return static_cast<int32_t>(std::max(i, j));
    }
  }
  return -1;
}

// Callers go round between a few sets of inputs; looking through the ranges takes more than all the
// rest of a replay once they are out of the caches.
[[gnu::hot]]
void CommandGraph::State::require_no_conflict(std::span<const uint64_t> inputs,
                                              std::span<const uint64_t> sizes) {
  if (inputs.empty()) return;
  // No memcmp: the C library has left the caches too.
  const auto same = [](uint64_t a, uint64_t b) { return a == b; };
  for (size_t n = 0; n < std::min(accepted_count, kRemembered); ++n) {
    const auto at = static_cast<ptrdiff_t>(n * input_count);
    if (has_sizes[n] != sizes.empty() &&
        std::equal(inputs.begin(), inputs.end(), accepted.begin() + at, same) &&
        std::equal(sizes.begin(), sizes.end(), accepted_sizes.begin() + at, same))
      return;
  }
  if (int32_t i = conflict(inputs, sizes); i >= 0)
    fail<InvalidArgument>(
        "graph replay: input {} overlaps memory that the graph writes; copy it first", i);
  const size_t oldest = accepted_count++ % kRemembered;
  const auto at = static_cast<ptrdiff_t>(oldest * input_count);
  has_sizes[oldest] = !sizes.empty();
  std::copy(inputs.begin(), inputs.end(), accepted.begin() + at);
  std::copy(sizes.begin(), sizes.end(), accepted_sizes.begin() + at);
}

void CommandGraph::State::check_limits() const {
  for (const Limit& l : limits) {
    const int64_t v = static_cast<int64_t>(slots[input_count + l.value]);
    if (v >= l.min && v <= l.max) continue;
    if (l.axis >= 0)
      fail<InvalidArgument>(
          "graph replay: kernel {} takes {} groups along axis {}; the device takes 0..{}",
          l.program->name(), v, l.axis, l.max);
    fail<InvalidArgument>(
        "graph replay: kernel {} takes a scalar {}, which does not fit in 32 bits",
        l.program->name(), v);
  }
}

[[gnu::hot]]
bool CommandGraph::State::is_loaded(std::span<const uint64_t> inputs,
                                    std::span<const int64_t> scalars,
                                    std::span<const uint64_t> sizes) const {
  auto at = given.begin();
  const auto same = [&](const auto& values) {
    const auto begin = std::exchange(at, at + std::ptrdiff_t(values.size()));
    return std::equal(values.begin(), values.end(), begin,
                      [](auto a, uint64_t b) { return static_cast<uint64_t>(a) == b; });
  };
  return loaded_sizes == sizes.size() && same(inputs) && same(scalars) && same(sizes);
}

// Sizes often stay the same where the memory does not.
[[gnu::hot]]
void CommandGraph::State::load_values(std::span<const int64_t> scalars) {
  const auto to = std::span(slots).subspan(input_count, values.slot_count());
  const auto same = [](int64_t a, uint64_t b) { return static_cast<uint64_t>(a) == b; };
  if (holds_values && std::equal(scalars.begin(), scalars.end(), to.begin(), same)) return;
  holds_values = false;  // until all of them have passed
  std::copy(scalars.begin(), scalars.end(), to.begin());
  values.run(to);
  check_limits();
  holds_values = true;
}

// Steps that are given the same memory again leave slots and argument memory as they are.
[[gnu::hot]]
void CommandGraph::State::load_slots(std::span<const uint64_t> inputs,
                                     std::span<const int64_t> scalars,
                                     std::span<const uint64_t> sizes) {
  if (inputs.size() != input_count || scalars.size() != values.given())
    fail<InvalidArgument>("graph replay: {} inputs and {} scalars given, {} and {} captured",
                          inputs.size(), scalars.size(), input_count, values.given());
  TUFF_CHECK(sizes.empty() || sizes.size() == input_count, "{} input sizes", sizes.size());
  if (is_loaded(inputs, scalars, sizes)) return;
  require_no_conflict(inputs, sizes);
  loaded_sizes = SIZE_MAX;  // until all of it has passed
  for (size_t i = 0; i < inputs.size(); ++i) slots[i] = given[i] = inputs[i];
  load_values(scalars);
  for (const DerivedSlot& d : derived) slots[d.slot] = slots[d.from] + d.addend;
  const auto to = std::transform(scalars.begin(), scalars.end(),
                                 given.begin() + static_cast<ptrdiff_t>(inputs.size()),
                                 [](int64_t v) { return static_cast<uint64_t>(v); });
  std::copy(sizes.begin(), sizes.end(), to);
  loaded_sizes = sizes.size();
  ++loads;
}

[[gnu::hot]]
void CommandGraph::State::patch(std::byte* host) const {
  for (const Patch& p : wide_patches) std::memcpy(host + p.offset, &slots[p.slot], 8);
  for (const Patch& p : narrow_patches) {
    const auto word = static_cast<uint32_t>(slots[p.slot]);
    std::memcpy(host + p.offset, &word, 4);
  }
}

// What a replay comes to one by one; the instance is most likely the newest.
[[gnu::hot]]
void CommandGraph::State::prefetch_all() const {
  const auto* begin = reinterpret_cast<const std::byte*>(this);
  prefetch(begin, size_t(reinterpret_cast<const std::byte*>(&extents) - begin));
  prefetch(&device, 64);
  prefetch(&queue, 128);
  const Instance& in = instances[newest];
  prefetch(&in, sizeof in);
  for (const std::vector<uint64_t>* values : {&given, &slots, &accepted})
    prefetch(values->data(), std::min<size_t>(values->size() * 8, 512));
  prefetch(wide_patches.data(), std::min(wide_patches.size(), kPrefetchedPatches) * sizeof(Patch));
  prefetch(in.list.get(), sizeof(PacedList));
  for (size_t i = 0; i < std::min(wide_patches.size(), kPrefetchedPatches); ++i)
    __builtin_prefetch(in.host + wide_patches[i].offset, 1);
}

// The ring is used in order, so the instance after the newest is the oldest: waiting for it means
// that all of them are in flight. Where replays are waited for one by one the newest serves again:
// one instance stays in the caches that two would throw out in turns.
[[gnu::hot]]
Instance& CommandGraph::State::free_instance() {
  if (queue.passed(instances[newest].value)) return instances[newest];
  newest = (newest + 1) % instances.size();
  queue.wait(instances[newest].value);
  return instances[newest];
}

// What the queue cannot wait for itself; the values that are left for it.
std::span<const uint64_t> CommandGraph::State::wait_here(std::span<const uint64_t> points) {
  constexpr uint64_t kSliceNs = 20'000'000;
  for (size_t i = 0; i < place_of.waits.size(); ++i) {
    while (!place_of.waits[i]->wait(points[i], kSliceNs)) device.fail_if_lost();
  }
  return points.subspan(place_of.waits.size());
}

[[gnu::hot]]
std::span<const uint64_t> CommandGraph::State::submitted_slots(std::span<const uint64_t> points) {
  if (launch_slots.empty()) return points;
  auto to = std::copy(points.begin(), points.end(), list_slots.begin());
  for (uint32_t slot : launch_slots) *to++ = slots[slot];
  return list_slots;
}

[[gnu::hot]]
uint64_t CommandGraph::replay(std::span<const uint64_t> input_addresses,
                              std::span<const int64_t> scalars,
                              std::span<const uint64_t> input_sizes,
                              std::span<const uint64_t> points) {
  State& s = *state_;
  std::lock_guard lock(s.mutex);
  s.prefetch_all();
  s.device.liveness().require_open();  // before its argument memory is written
  TUFF_CHECK(points.size() == s.place_of.waits.size() + s.place_of.signals.size(),
             "{} values for {} waits and {} signals", points.size(), s.place_of.waits.size(),
             s.place_of.signals.size());
  s.load_slots(input_addresses, scalars, input_sizes);
  if (s.place_of.host_waits) points = s.wait_here(points);
  Instance& in = s.free_instance();
  if (s.times) s.report_times();
  if (std::exchange(in.patched, s.loads) != s.loads) s.patch(in.host);
  in.list->submit(s.submitted_slots(points), in.value);
  s.stats.submits_per_replay = in.list->submissions();
  in.times_are_due = bool(s.times);
  return in.value;
}

std::vector<Instance*> CommandGraph::State::by_age() {
  std::vector<Instance*> out;
  for (Instance& in : instances) out.push_back(&in);
  std::ranges::sort(out, {}, &Instance::value);
  return out;
}

void CommandGraph::State::report_times() {
  for (Instance* in : by_age()) {
    if (!in->times_are_due || !queue.passed(in->value)) continue;
    in->times_are_due = false;
    in->list->report(times);
  }
}

void CommandGraph::report_times() {
  std::lock_guard lock(state_->mutex);
  state_->report_times();
}

const GraphStats& CommandGraph::stats() const { return state_->stats; }
const CommandList& CommandGraph::commands() const { return state_->commands; }
Queue& CommandGraph::queue() const { return state_->queue; }
std::vector<ReplayInstance> CommandGraph::replay_instances() const { return state_->replays(); }

}  // namespace tuff::hcq
