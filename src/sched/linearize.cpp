#include "sched/linearize.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/contains.h"
#include "ir/custom_kernel.h"
#include "ir/loop.h"
#include "ir/walk.h"
#include "sched/loop_calls.h"
#include "sched/order.h"
#include "sched/prepare.h"
#include "sched/rangeify.h"
#include "sched/scatter_parts.h"

namespace tuff::sched {

using namespace ir;

namespace {

// Views must start where any device may bind a buffer.
constexpr int64_t kViewAlignment = 64;

struct Draft {
  Call call;
  bool in_place = false;        // reads the old contents through its output argument
  bool leaves_as_is = false;    // nothing is to be done where it stores in place
  std::vector<uint32_t> after;  // drafts whose results or reads it must follow
};

// An Assign to a part as a version of memory: its root, and the slots of the version before, which
// it keeps around the part, and of the Storage.
struct PartVersion {
  uint32_t root;
  int32_t before, storage;
};

class Linearizer {
 public:
  Linearizer(const FusePlan& plan, const std::vector<Storage*>& inputs, const TargetOf& target_of)
      : plan_(plan), inputs_(inputs), target_of_(target_of) {}

  Schedule run() {
    assign_slots();
    join_outputs();
    find_scatters();
    for (uint32_t r : roots_) {
      const bool launched = node(r).op == Op::CustomKernel && !outputs_.contains(r);
      if (!launched && element_count(node(r).shape) > 0 && !continued_[r]) add_root(r);
    }
    order_reads_before_writes();
    finish();
    return std::move(out_);
  }

 private:
  const Node& node(uint32_t i) const { return *plan_.nodes[i]; }

  int32_t new_slot(const Node& n, const std::string& device, BufferOrigin origin, uint32_t index) {
    out_.buffers.push_back(BufferSlot{.dtype = n.dtype,
                                      .count = element_count(n.shape),
                                      .device = device,
                                      .origin = origin,
                                      .index = index});
    return int32_t(out_.buffers.size() - 1);
  }

  // Slots by position: Buffers, roots, and Assigns as the root that stores for them. What an Assign
  // stores gets a slot of its own that stands for the new contents, until it is known whether the
  // Storage itself can take them.
  void assign_slots() {
    slot_of_.assign(plan_.nodes.size(), kNone);
    std::unordered_map<const Storage*, uint32_t> number;
    for (uint32_t i = 0; i < inputs_.size(); i++) {
      number.emplace(inputs_[i], i);
      const Storage& s = *inputs_[i];
      out_.buffers.push_back(BufferSlot{.dtype = s.dtype,
                                        .count = s.count,
                                        .device = s.device,
                                        .origin = BufferOrigin::Input,
                                        .index = i});
    }
    for (uint32_t i = 0; i < plan_.nodes.size(); i++) {
      const Node& n = node(i);
      if (n.op == Op::Buffer) slot_of_[i] = int32_t(number.at(n.get<Ref<Storage>>().get()));
      if (plan_.is_root(i)) {
        roots_.push_back(i);
        const int32_t s = plan_.sink_number[i];
        const bool is_output = s != kNone && n.op != Op::Assign;
        slot_of_[i] =
            new_slot(n, plan_.device_of(i), is_output ? BufferOrigin::Output : BufferOrigin::Temp,
                     is_output ? uint32_t(s) : 0);
      }
      if (n.op != Op::Assign) continue;
      slot_of_[i] = slot_of_[plan_.stored_by[i]];
      if (assigned_part(n)) {
        add_version(i);
        continue;
      }
      const uint32_t target = plan_.position.at(strip_reshapes(n.src(0).get()));
      storage_slot_[plan_.stored_by[i]] = slot_of_[target];
    }
  }

  // Parts are stored in the Storage itself; readers of a version that would come too late read a
  // copy.
  void add_version(uint32_t i) {
    const int32_t before = slot_of_[plan_.version_before(i)];
    const auto earlier = target_.find(before);
    const int32_t storage = earlier == target_.end() ? before : earlier->second;
    versions_.push_back({i, before, storage});
    target_[slot_of_[i]] = storage;
  }
  const PartVersion* version_of(uint32_t root) const {
    const auto it = std::ranges::find(versions_, root, &PartVersion::root);
    return it == versions_.end() ? nullptr : &*it;
  }

  // Outputs of one launch of a user's kernel are written by one call.
  void join_outputs() {
    UOpMap<uint32_t> first;
    for (uint32_t r : roots_) {
      if (node(r).op != Op::CustomKernel) continue;
      outputs_[first.try_emplace(launch_of_output(node(r)), r).first->second].push_back(r);
    }
  }

  KernelSpec spec_of(uint32_t r, bool in_place) const {
    KernelSpec spec{.root = r, .slot_of = &slot_of_};
    if (auto it = storage_slot_.find(r); it != storage_slot_.end() && in_place)
      spec.in_place_slot = it->second;
    if (const PartVersion* v = version_of(r); v && in_place) spec.in_place_slot = v->before;
    return spec;
  }

  void add_root(uint32_t r) {
    Draft d;
    d.call.device = plan_.device_of(r);
    if (is_transfer(node(r))) {
      const uint32_t from = plan_.position.at(strip_reshapes(node(r).src(0).get()));
      d.call.kind = CallKind::Copy;
      d.call.args = {uint32_t(slot_of_[r]), uint32_t(slot_of_[from])};
    } else if (node(r).op == Op::Loop) {
      form_loop_call(r, d);
    } else if (node(r).op == Op::CustomKernel) {
      form_custom_call(r, d);
    } else if (assigned_part(node(r))) {
      return add_part(r);
    } else if (node(r).op == Op::Scatter) {
      return add_scatter(r);
    } else if (node(r).op == Op::Again) {
      form_again_call(r, d);
    } else {
      form_kernel(r, d, true);
    }
    drafts_.push_back(std::move(d));
  }

  void form_loop_call(uint32_t r, Draft& d) {
    d.call.kind = CallKind::Loop;
    d.call.ast = UOp(&node(r));
    d.call.args = {uint32_t(slot_of_[r])};
    const size_t sequences = sequences_of(node(r)).size();
    for (size_t k = 0; k < node(r).src_count; k++) {
      const UOp& s = node(r).src(k);
      const bool is_sequence = k > 0 && k <= sequences;
      const Node* memory = is_sequence ? loop_rows(s).memory : strip_reshapes(s.get());
      d.call.args.push_back(uint32_t(slot_of_[plan_.position.at(memory)]));
    }
  }

  // An output that nothing reads is written all the same.
  void form_custom_call(uint32_t r, Draft& d) {
    d.call.kind = CallKind::Custom;
    d.call.ast = custom_kernel_ast(node(r));
    const std::vector<CustomOutput>& declared = node(r).get<CustomKernelArg>().outputs;
    d.call.output_count = uint32_t(declared.size());
    d.call.args.assign(declared.size(), UINT32_MAX);
    for (uint32_t o : outputs_.at(r))
      d.call.args[size_t(node(o).get<CustomKernelArg>().number)] = uint32_t(slot_of_[o]);
    for (size_t k = 0; k < declared.size(); k++) {
      if (d.call.args[k] != UINT32_MAX) continue;
      const int64_t count = d.call.ast->src(k)->get<ParamArg>().count;
      d.call.args[k] = uint32_t(out_.buffers.size());
      out_.buffers.push_back(
          BufferSlot{.dtype = declared[k].dtype, .count = count, .device = d.call.device});
    }
    for (const UOp& s : node(r).src())
      d.call.args.push_back(uint32_t(slot_of_[plan_.position.at(strip_reshapes(s.get()))]));
  }

  // The same memory by another name, and what is computed before it is read. Versions of memory
  // that parts are stored in are copied: who reads them when is settled by their slots.
  void form_again_call(uint32_t r, Draft& d) {
    const uint32_t from = plan_.position.at(strip_reshapes(node(r).src(0).get()));
    const auto slot = uint32_t(slot_of_[from]);
    const bool changes = contains(versions_, int32_t(slot), &PartVersion::storage) ||
                         contains(versions_, int32_t(slot), &PartVersion::before) ||
                         target_.contains(int32_t(slot));
    d.call.kind = changes ? CallKind::Copy : CallKind::Again;
    d.call.args = {uint32_t(slot_of_[r]), slot};
    if (changes) return;
    same_as_[slot_of_[r]] = int32_t(slot);
    for (uint32_t i : plan_.roots_of(plan_.earlier.at(r)))
      if (slot_of_[i] != kNone) add_once(d.call.args, uint32_t(slot_of_[i]));
  }
  // The slot of the memory, whatever it is called.
  uint32_t memory_slot(uint32_t slot) const {
    for (auto it = same_as_.find(int32_t(slot)); it != same_as_.end();
         it = same_as_.find(int32_t(slot)))
      slot = uint32_t(it->second);
    return slot;
  }

  // Where the value is of other elements of what is overwritten, it is computed before any is.
  void add_part(uint32_t r) {
    const Kernel whole = rangeify(plan_, spec_of(r, true));
    if (!whole.in_place_conflict) return add_kernel(r, whole);
    KernelSpec spec = spec_of(r, false);
    spec.value_slot =
        new_slot(node(plan_.sources(r)[1]), plan_.device_of(r), BufferOrigin::Temp, 0);
    for (const PartStep step : {PartStep::Value, PartStep::Store}) {
      spec.part_step = step;
      add_kernel(r, rangeify(plan_, spec));
    }
  }
  void add_kernel(uint32_t r, const Kernel& k) {
    Draft d;
    d.in_place = k.in_place;
    d.call.device = plan_.device_of(r);
    d.call.ast = k.ast;
    d.call.args = k.args;
    drafts_.push_back(std::move(d));
  }

  // A Scatter that is the target of another one and nothing else is stored in its memory.
  void find_scatters() {
    std::vector<uint32_t> uses(plan_.nodes.size(), 0);
    for (uint32_t s : plan_.src) uses[s]++;
    continued_.assign(plan_.nodes.size(), 0);
    for (uint32_t r : roots_) {
      if (node(r).op != Op::Scatter || node(r).get<ScatterArg>().named == Named::All) continue;
      const Node* target = strip_reshapes(node(r).src(0).get());
      const uint32_t p = plan_.position.at(target);
      bool alone = target->op == Op::Scatter && plan_.sink_number[p] == kNone &&
                   plan_.stores_for[p] == kNone;
      for (const Node* n = node(r).src(0).get(); alone; n = n->src(0).get()) {
        alone = uses[plan_.position.at(n)] == 1;
        if (n == target) break;
      }
      if (!alone) continue;
      continues_[r] = p;
      continued_[p] = 1;
    }
  }

  // In the target's place: first the target, then what is stored by index.
  void add_scatter(uint32_t r) {
    std::optional<std::vector<Draft>> steps = scatter_steps(r, true);
    if (!steps) {
      separate_.push_back(r);
      steps = scatter_steps(r, false);
    }
    Run& run = scatters_[r];
    run.first = uint32_t(drafts_.size());
    std::ranges::move(*steps, std::back_inserter(drafts_));
    run.last = uint32_t(drafts_.size()) - 1;
  }
  // None where what is overwritten would be read at other elements.
  std::optional<std::vector<Draft>> scatter_steps(uint32_t r, bool in_place) const {
    std::vector<Draft> out;
    bool conflict = false;
    const auto add = [&](const KernelSpec& spec) {
      Kernel k = rangeify(plan_, spec);
      k.args[0] = uint32_t(slot_of_[r]);
      conflict = conflict || k.in_place_conflict;
      Draft& d = out.emplace_back();
      d.in_place = k.in_place;
      d.leaves_as_is = k.leaves_as_is;
      d.call.device = plan_.device_of(r);
      d.call.args = std::move(k.args);
      if (k.is_copy && is_whole_copy(d.call, k.copy_offset))
        d.call.kind = CallKind::Copy;
      else
        d.call.ast = k.ast;
    };
    std::vector<uint32_t> chain{r};
    for (auto it = continues_.find(r); it != continues_.end(); it = continues_.find(it->second))
      chain.insert(chain.begin(), it->second);
    KernelSpec spec = spec_of(r, in_place);
    for (uint32_t s : chain) {
      spec.root = s;
      spec.part_step = PartStep::All;
      if (s == chain[0] && node(s).get<ScatterArg>().named != Named::All) add(spec);
      spec.part_step = PartStep::ByIndex;
      for (const OrderedStep& step : ordered_steps(node(s), target_of_(plan_.device_of(s)))) {
        spec.ordered = step;
        add(spec);
      }
    }
    const bool any = std::ranges::any_of(out, &Draft::in_place);
    for (Draft& d : out) d.in_place = any;
    return conflict ? std::nullopt : std::optional(std::move(out));
  }

  void form_kernel(uint32_t r, Draft& d, bool in_place) {
    Kernel k = rangeify(plan_, spec_of(r, in_place));
    if (k.in_place_conflict) {
      separate_.push_back(r);
      k = rangeify(plan_, spec_of(r, false));
    }
    d.in_place = k.in_place;
    d.call.kind = CallKind::Kernel;
    d.call.ast = k.ast;
    d.call.args = std::move(k.args);
    if (k.is_copy) simplify_copy(r, k.copy_offset, d);
  }

  // A kernel that copies a run of elements is a view where the caller may share memory, or a copy.
  void simplify_copy(uint32_t r, int64_t offset, Draft& d) {
    const BufferSlot& from = out_.buffers[d.call.args[1]];
    const BufferSlot& to = out_.buffers[d.call.args[0]];
    const bool own_memory =
        node(r).op == Op::Contiguous || node(r).op == Op::Copy || storage_slot_.count(r);
    const int64_t bytes = offset * int64_t(tuff::size_bytes(from.dtype));
    if (to.origin == BufferOrigin::Output && !own_memory && is_stable(d.call.args[1]) &&
        bytes % kViewAlignment == 0) {
      d.call.kind = CallKind::View;
      d.call.ast = UOp();
      d.call.byte_offset = uint64_t(bytes);
    } else if (is_whole_copy(d.call, offset)) {
      d.call.kind = CallKind::Copy;
      d.call.ast = UOp();
    }
  }
  bool is_whole_copy(const Call& c, int64_t offset) const {
    const BufferSlot &to = out_.buffers[c.args[0]], &from = out_.buffers[c.args[1]];
    return offset == 0 && from.count == to.count && from.device == to.device;
  }

  // Memory that outlives the schedule and that nothing in it overwrites.
  bool is_stable(uint32_t slot) const {
    if (out_.buffers[slot].origin == BufferOrigin::Output) return true;
    if (out_.buffers[slot].origin != BufferOrigin::Input) return false;
    if (contains(versions_, int32_t(slot), &PartVersion::storage)) return false;
    return std::none_of(storage_slot_.begin(), storage_slot_.end(),
                        [&](const auto& s) { return s.second == int32_t(slot); });
  }

  void connect(uint32_t before, uint32_t after) {
    if (before != after) add_once(drafts_[after].after, before);
  }

  void connect_reads_to_writers() {
    std::vector<int32_t> writer(out_.buffers.size(), kNone);
    for (uint32_t d = 0; d < drafts_.size(); d++) {
      for (uint32_t k = 0; k < drafts_[d].call.output_count; k++)
        writer[drafts_[d].call.args[k]] = int32_t(d);
    }
    for (uint32_t d = 0; d < drafts_.size(); d++) {
      drafts_[d].after.clear();
      const Call& c = drafts_[d].call;
      for (size_t k = c.output_count; k < c.args.size(); k++) {
        if (writer[c.args[k]] != kNone) connect(uint32_t(writer[c.args[k]]), d);
      }
    }
    for (const PartVersion& v : versions_) {
      if (writer[v.before] != kNone) connect(uint32_t(writer[v.before]), writer[slot_of_[v.root]]);
    }
    for (const auto& [root, run] : scatters_) {
      for (uint32_t d = run.first; d < run.last; d++) connect(d, d + 1);
    }
    writer_ = std::move(writer);
  }

  std::vector<uint8_t> ancestors(std::span<const uint32_t> of) const {
    std::vector<uint8_t> seen(drafts_.size(), 0);
    std::vector<uint32_t> work;
    for (uint32_t d : of) {
      if (!seen[d]) work.push_back(d);
      seen[d] = 1;
    }
    while (!work.empty()) {
      const uint32_t d = work.back();
      work.pop_back();
      for (uint32_t a : drafts_[d].after) {
        if (!seen[a]) work.push_back(a);
        seen[a] = 1;
      }
    }
    return seen;
  }

  std::vector<uint32_t> required() const {
    std::vector<uint32_t> out;
    auto add = [&](int32_t slot) {
      if (slot != kNone && writer_[slot] != kNone) add_once(out, uint32_t(writer_[slot]));
    };
    for (const UOp& s : plan_.sinks) add(slot_of_[sink_position(s)]);
    for (const auto& [root, storage] : storage_slot_) add(slot_of_[root]);
    for (const PartVersion& v : versions_) add(slot_of_[v.root]);
    for (uint32_t d : final_copies_) out.push_back(d);
    return out;
  }

  uint32_t sink_position(const UOp& s) const {
    const uint32_t below = plan_.position.at(strip_reshapes(s.get()));
    return slot_of_[below] != kNone ? below : plan_.position.at(s.get());
  }

  // Readers of contents that will be overwritten among the calls that will run.
  std::map<int32_t, std::vector<uint32_t>> old_readers() const {
    const std::vector<uint8_t> needed = ancestors(required());
    std::map<int32_t, std::vector<uint32_t>> readers;
    for (const auto& [root, storage] : storage_slot_) readers[storage];
    for (const PartVersion& v : versions_) readers[v.before];
    for (uint32_t d = 0; d < drafts_.size(); d++) {
      const Call& c = drafts_[d].call;
      for (size_t k = c.output_count; needed[d] && k < c.args.size(); k++) {
        if (auto it = readers.find(int32_t(memory_slot(c.args[k]))); it != readers.end())
          add_once(it->second, d);
      }
    }
    return readers;
  }

  // Where every reader of the old contents can run before the kernel that stores the new ones, it
  // stores them in place; where one depends on it, it stores to a temporary that is copied over at
  // the end.
  void order_reads_before_writes() {
    connect_reads_to_writers();
    auto readers = old_readers();
    for (const auto& [root, storage] : storage_slot_) {
      if (writer_[slot_of_[root]] == kNone) continue;  // zero-sized
      const uint32_t k = uint32_t(writer_[slot_of_[root]]);
      std::vector<uint32_t>& old = readers[storage];
      std::vector<uint32_t> others = old;
      std::erase(others, k);
      if (!contains(separate_, root) && !reads_renamed(k, storage) && !ancestors(others)[k]) {
        for (uint32_t r : others) connect(r, first_writer(root, k));
        target_[slot_of_[root]] = storage;
        continue;
      }
      if (drafts_[k].in_place) {
        // Its sources stay the same but for the Storage itself, so its place in the order does too.
        form_again(root, k);
        old.push_back(k);
      }
      copy_at_end(k, root, storage, old);
    }
    for (const PartVersion& v : versions_) order_version(v, readers[v.before]);
  }

  // Kernels know the memory that they overwrite by its own slot.
  bool reads_renamed(uint32_t d, int32_t storage) const {
    return std::ranges::any_of(drafts_[d].call.args, [&](uint32_t slot) {
      return int32_t(slot) != storage && int32_t(memory_slot(slot)) == storage;
    });
  }

  uint32_t first_writer(uint32_t root, uint32_t last) const {
    const auto it = scatters_.find(root);
    return it == scatters_.end() ? last : it->second.first;
  }
  void form_again(uint32_t root, uint32_t k) {
    const auto it = scatters_.find(root);
    if (it == scatters_.end()) return form_kernel(root, drafts_[k], false);
    std::vector<Draft> steps = *scatter_steps(root, false);
    for (size_t i = 0; i < steps.size(); i++) {
      Draft& d = drafts_[it->second.first + i];
      steps[i].after = d.after;
      d = std::move(steps[i]);
    }
  }

  // Readers of the version before come first, or have a copy.
  void order_version(const PartVersion& v, const std::vector<uint32_t>& readers) {
    const auto k = uint32_t(writer_[slot_of_[v.root]]);
    std::vector<uint32_t> late;
    for (uint32_t r : readers) {
      if (r == k) continue;
      if (ancestors({&r, 1})[k])
        late.push_back(r);
      else
        connect(r, k);
    }
    if (late.empty()) return;
    const BufferSlot& before = out_.buffers[v.before];
    const auto copy = uint32_t(drafts_.size());
    const int32_t slot = kept_copy(before);
    Draft d;
    d.call.kind = CallKind::Copy;
    d.call.device = out_.buffers[slot].device;
    d.call.args = {uint32_t(slot), uint32_t(v.before)};
    drafts_.push_back(std::move(d));
    if (writer_[v.before] != kNone) connect(uint32_t(writer_[v.before]), copy);
    connect(copy, k);
    for (uint32_t r : late) {
      std::vector<uint32_t>& args = drafts_[r].call.args;
      std::replace(args.begin() + drafts_[r].call.output_count, args.end(), uint32_t(v.before),
                   uint32_t(slot));
      connect(copy, r);
    }
  }
  int32_t kept_copy(BufferSlot of) {
    of.origin = BufferOrigin::Temp;
    of.index = 0;
    out_.buffers.push_back(std::move(of));
    return int32_t(out_.buffers.size() - 1);
  }

  void copy_at_end(uint32_t k, uint32_t root, int32_t storage, const std::vector<uint32_t>& old) {
    Draft copy;
    copy.call.kind = CallKind::Copy;
    copy.call.device = out_.buffers[storage].device;
    copy.call.args = {uint32_t(storage), uint32_t(slot_of_[root])};
    const uint32_t number = uint32_t(drafts_.size());
    drafts_.push_back(std::move(copy));
    connect(k, number);
    for (uint32_t r : old) connect(r, number);
    final_copies_.push_back(number);
  }

  bool is_temp(uint32_t slot) const {
    return out_.buffers[slot].origin == BufferOrigin::Temp && !target_.count(int32_t(slot));
  }

  void finish() {
    std::vector<OrderNode> nodes;
    std::vector<uint64_t> sizes;
    for (const BufferSlot& b : out_.buffers) sizes.push_back(b.size_bytes());
    std::vector<uint8_t> made(out_.buffers.size(), 0);
    for (const Draft& d : drafts_) {
      OrderNode n{.after = d.after, .makes = {}, .uses = {}};
      for (size_t k = 0; k < d.call.args.size(); k++) {
        const uint32_t slot = memory_slot(d.call.args[k]);
        if (!is_temp(slot) || (d.call.kind == CallKind::Again && k != 1)) continue;
        const bool makes = k < d.call.output_count && !made[slot];
        (makes ? n.makes : n.uses).push_back(slot);
        if (makes) made[slot] = 1;
      }
      nodes.push_back(std::move(n));
    }
    for (uint32_t d : order_calls(nodes, required(), sizes)) {
      const bool needless =
          drafts_[d].leaves_as_is && target_.count(int32_t(drafts_[d].call.args[0]));
      if (!needless) out_.calls.push_back(std::move(drafts_[d].call));
    }
    for (const UOp& s : plan_.sinks) out_.sink_slots.push_back(sink_slot(s));
    renumber_slots();
  }

  uint32_t sink_slot(const UOp& s) const {
    const uint32_t i = sink_position(s);
    if (assigned_part(node(i))) return uint32_t(target_.at(slot_of_[i]));
    if (node(i).op == Op::Assign) return uint32_t(storage_slot_.at(uint32_t(plan_.stored_by[i])));
    return uint32_t(slot_of_[i]);
  }

  // New contents written in place are their Storage; slots that nothing uses vanish.
  void renumber_slots() {
    std::vector<int32_t> number(out_.buffers.size(), kNone);
    std::vector<BufferSlot> kept;
    for (uint32_t i = 0; i < inputs_.size(); i++) {
      number[i] = int32_t(i);
      kept.push_back(out_.buffers[i]);
    }
    auto renumber = [&](uint32_t& slot) {
      if (auto it = target_.find(int32_t(slot)); it != target_.end()) slot = uint32_t(it->second);
      if (number[slot] == kNone) {
        number[slot] = int32_t(kept.size());
        kept.push_back(out_.buffers[slot]);
      }
      slot = uint32_t(number[slot]);
    };
    for (Call& c : out_.calls) {
      for (uint32_t& a : c.args) renumber(a);
    }
    for (uint32_t& s : out_.sink_slots) renumber(s);
    out_.buffers = std::move(kept);
  }

  const FusePlan& plan_;
  const std::vector<Storage*>& inputs_;
  const TargetOf& target_of_;
  std::vector<uint32_t> roots_;  // positions
  Schedule out_;
  std::vector<int32_t> slot_of_;
  std::map<uint32_t, int32_t>
      storage_slot_;                   // root that stores for an Assign -> the Storage's slot
  std::vector<PartVersion> versions_;  // of each Storage in order
  std::map<int32_t, int32_t> same_as_;  // slot of an Again -> the slot of what it reads
  std::map<int32_t, int32_t> target_;  // slot of new contents -> Storage slot written in place
  std::vector<uint32_t> separate_;     // roots that read the old contents at other elements
  std::vector<Draft> drafts_;
  struct Run {
    uint32_t first = 0, last = 0;
  };
  std::map<uint32_t, std::vector<uint32_t>> outputs_;  // of users' kernels, by the first of them
  std::map<uint32_t, Run> scatters_;           // their steps among the drafts, by root
  std::map<uint32_t, uint32_t> continues_;     // a Scatter -> the one whose memory it goes on with
  std::vector<uint8_t> continued_;             // of these, by position
  std::vector<int32_t> writer_;  // draft by slot
  std::vector<uint32_t> final_copies_;
};

}  // namespace

Schedule linearize(const FusePlan& plan, const std::vector<Storage*>& inputs,
                   const TargetOf& target_of) {
  return Linearizer(plan, inputs, target_of).run();
}

}  // namespace tuff::sched
