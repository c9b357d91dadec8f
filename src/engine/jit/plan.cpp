#include "engine/jit/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/realize/call_bytes.h"
#include "engine/realize/launch.h"

namespace tuff::engine {
namespace {

using Part = PlannedWork::Part;
using Role = PlannedSegment::Role;

// Bytes of a piece of memory: a buffer's root, or the staging of a call's copy.
struct Resource {
  uint64_t id = 0;
  Part staging = Part::Whole;  // StageOut or StageIn: the staging of call `id`
  auto operator<=>(const Resource&) const = default;
};
struct Touch {
  Resource resource;
  uint64_t begin = 0, end = 0;
  bool write = false;
  Device* device = nullptr;  // whose memory it is
};

Touch touch_of(const Buffer& b, bool write) {
  return {{b.root().id, Part::Whole},
          b.byte_offset(),
          b.byte_offset() + b.size_bytes(),
          write,
          &b.on()};
}

std::vector<Touch> touches_of(const BoundCall& c) {
  std::vector<Touch> out;
  each_buffer(c, [&](const Ref<Buffer>& b, bool read, bool written) {
    if (read) out.push_back(touch_of(*b, false));
    if (written) out.push_back(touch_of(*b, true));
  });
  return out;
}

bool conflict(const Touch& a, const Touch& b) {
  return a.resource == b.resource && (a.write || b.write) && a.begin < b.end && b.begin < a.end;
}
bool conflict(const std::vector<Touch>& a, const std::vector<Touch>& b) {
  for (const Touch& x : a)
    for (const Touch& y : b)
      if (conflict(x, y)) return true;
  return false;
}

bool host_visible(Buffer& b) { return b.span().host_reaches(); }

class Planner {
 public:
  Planner(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
          size_t copy_queue_bytes)
      : calls_(calls), inputs_(inputs), copy_queue_bytes_(copy_queue_bytes) {
    for (const BoundCall& c : calls) touches_.push_back(touches_of(c));
  }

  SegmentPlan run() {
    for (const std::vector<Touch>& touches : touches_)
      for (const Touch& t : touches) entry_of(*t.device);
    for (size_t i = 0; i < calls_.size(); i++) {
      if (crosses_devices(calls_[i]))
        add_crossing(i);
      else
        add({i, Part::Whole}, queue_of(i), touches_[i], false);
    }
    for (const auto& [device, entry] : entries_) leave(*device);
    return std::move(plan_);
  }

 private:
  size_t queue_index(QueueKind kind, Device& device) {
    for (size_t q = 0; q < plan_.queues.size(); q++)
      if (plan_.queues[q].kind == kind && plan_.queues[q].device == &device) return q;
    plan_.queues.push_back({kind, &device});
    newest_.push_back(SIZE_MAX);
    return plan_.queues.size() - 1;
  }

  // The segment that stands for what the device did before.
  size_t entry_of(Device& device) {
    for (const auto& [known, entry] : entries_)
      if (known == &device) return entry;
    const size_t s = append(Role::Entry, queue_index(QueueKind::Compute, device), {});
    return entries_.emplace_back(&device, s).second;
  }

  size_t queue_of(size_t call) {
    Device& device = device_of(calls_[call]);
    return queue_index(pays_on_copy_queue(call, device) ? QueueKind::Copy : QueueKind::Compute,
                       device);
  }

  bool pays_on_copy_queue(size_t call, const Device& device) const {
    const auto* copy = std::get_if<BoundCopy>(&calls_[call]);
    if (!copy || !device.hcq().copy_queue() || copy->dst->size_bytes() < copy_queue_bytes_)
      return false;
    if (input_slot(*copy->dst, inputs_) >= 0 || input_slot(*copy->src, inputs_) >= 0) return false;
    const auto beside = [&](size_t i) {
      return std::holds_alternative<BoundKernel>(calls_[i]) && &device_of(calls_[i]) == &device;
    };
    for (size_t i = call; i-- > 0 && !conflict(touches_[i], touches_[call]);)
      if (beside(i)) return true;
    for (size_t i = call + 1; i < calls_.size() && !conflict(touches_[i], touches_[call]); i++)
      if (beside(i)) return true;
    return false;
  }

  size_t staging_queue(Device& device) {
    return queue_index(device.hcq().copy_queue() ? QueueKind::Copy : QueueKind::Compute, device);
  }

  void add_crossing(size_t call) {
    const auto& copy = std::get<BoundCopy>(calls_[call]);
    if (Device* by = copier_between(copy)) {
      const bool rebinds =
          input_slot(*copy.src, inputs_) >= 0 || input_slot(*copy.dst, inputs_) >= 0;
      return add({call, Part::Whole}, staging_queue(*by), touches_[call], rebinds);
    }
    const uint64_t size = copy.dst->size_bytes();
    Touch from = touches_[call][0], to = touches_[call][1];
    if (!host_visible(*copy.src)) {
      const Touch staged{{call, Part::StageOut}, 0, size, true, &copy.src->on()};
      add({call, Part::StageOut}, staging_queue(copy.src->on()), {from, staged},
          input_slot(*copy.src, inputs_) >= 0);
      from = staged;
      from.write = false;
    }
    const bool hidden = !host_visible(*copy.dst);
    const Touch staged{{call, Part::StageIn}, 0, size, true, &copy.dst->on()};
    add({call, Part::HostCopy}, queue_index(QueueKind::Host, copy.dst->on()),
        {from, hidden ? staged : to}, false);
    if (!hidden) return;
    add({call, Part::StageIn}, staging_queue(copy.dst->on()),
        {{staged.resource, 0, size, false, staged.device}, to},
        input_slot(*copy.dst, inputs_) >= 0);
  }

  // What has to be over before: segments with conflicting bytes, and what the device did before.
  std::set<size_t> dependencies(const std::vector<Touch>& touches) {
    std::set<size_t> out;
    for (const Touch& t : touches) {
      out.insert(entry_of(*t.device));
      const auto known = touched_.find(t.resource);
      if (known == touched_.end()) continue;
      for (const auto& [segment, earlier] : known->second)
        if (conflict(earlier, t)) out.insert(segment);
    }
    return out;
  }

  void add(PlannedWork work, size_t queue, const std::vector<Touch>& touches, bool rebinds) {
    const std::set<size_t> needed = dependencies(touches);
    size_t s = newest_[queue];
    if (s == SIZE_MAX || !may_join(s, needed, rebinds)) s = append(Role::Work, queue, needed);
    plan_.segments[s].work.push_back(work);
    plan_.segments[s].rebinds = rebinds;
    for (const Touch& t : touches) note(s, t);
  }

  bool may_join(size_t s, const std::set<size_t>& needed, bool rebinds) const {
    const PlannedSegment& segment = plan_.segments[s];
    if (segment.role != Role::Work || closed_[s] || segment.rebinds || rebinds) return false;
    return std::all_of(needed.begin(), needed.end(), [&](size_t d) {
      return plan_.segments[d].queue == segment.queue || before_[s][d];
    });
  }

  size_t append(Role role, size_t queue, const std::set<size_t>& needed) {
    const size_t s = plan_.segments.size();
    PlannedSegment segment;
    segment.role = role;
    segment.queue = queue;
    std::vector<bool> before(s + 1);
    if (const size_t p = newest_[queue]; p != SIZE_MAX) add_before(before, p);
    // The latest first: it may imply the earlier ones.
    for (auto d = needed.rbegin(); d != needed.rend(); ++d) {
      if (before[*d]) continue;
      segment.after.push_back(*d);
      closed_[*d] = true;
      add_before(before, *d);
    }
    newest_[queue] = s;
    plan_.segments.push_back(std::move(segment));
    before_.push_back(std::move(before));
    closed_.push_back(false);
    return s;
  }
  void add_before(std::vector<bool>& before, size_t s) const {
    before[s] = true;
    for (size_t i = 0; i < s; i++)
      if (before_[s][i]) before[i] = true;
  }

  void note(size_t s, const Touch& t) {
    auto& known = touched_[t.resource];
    // What a later write of the same bytes in the same segment stands for need not be kept.
    std::erase_if(known, [&](const auto& k) {
      const bool covered = t.begin <= k.second.begin && k.second.end <= t.end;
      return k.first == s && covered && (t.write || !k.second.write);
    });
    known.emplace_back(s, t);
    users_[t.device].insert(s);
  }

  void leave(Device& device) {
    const size_t compute = queue_index(QueueKind::Compute, device), last = newest_[compute];
    std::set<size_t> open;
    for (size_t s : users_[&device])
      if (plan_.segments[s].queue != compute && !before_[last][s]) open.insert(s);
    if (!open.empty()) append(Role::Exit, compute, open);
  }

  std::span<const BoundCall> calls_;
  std::span<const Ref<Buffer>> inputs_;
  size_t copy_queue_bytes_;
  std::vector<std::vector<Touch>> touches_;  // by call
  SegmentPlan plan_;
  std::vector<size_t> newest_;                       // by queue: its last segment, or SIZE_MAX
  std::vector<std::vector<bool>> before_;            // by segment: what is over when it begins
  std::vector<bool> closed_;                         // by segment
  std::vector<std::pair<Device*, size_t>> entries_;  // in the order of first use
  std::map<Resource, std::vector<std::pair<size_t, Touch>>> touched_;
  std::map<const Device*, std::set<size_t>> users_;
};

}  // namespace

bool SegmentPlan::simple() const {
  return queues.size() <= 1 && (queues.empty() || queues[0].kind == QueueKind::Compute);
}

bool SegmentPlan::patchable() const {
  return std::all_of(queues.begin(), queues.end(), [](const PlannedQueue& q) {
    return q.device->target().features.device_address;
  });
}

SegmentPlan plan_segments(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                          size_t copy_queue_bytes) {
  Device* only = calls.empty() ? nullptr : &device_of(calls[0]);
  const bool one_queue = only && !only->hcq().copy_queue() &&
                         std::all_of(calls.begin(), calls.end(), [&](const BoundCall& c) {
                           return !crosses_devices(c) && &device_of(c) == only;
                         });
  if (one_queue) return {{{QueueKind::Compute, only}}, {}};
  return Planner(calls, inputs, copy_queue_bytes).run();
}

}  // namespace tuff::engine
