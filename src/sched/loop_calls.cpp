#include "sched/loop_calls.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "ir/loop.h"
#include "ir/walk.h"
#include "sched/prepare.h"

namespace tuff::sched {

using namespace ir;

LoopRows loop_rows(const UOp& sequence) {
  const Node* n = strip_reshapes(sequence.get());
  const int64_t width = sequence->shape.at(1).value();
  if (n->op == Op::Shrink && n->src(0)->op == Op::Loop && n->shape == sequence->shape) {
    const Pairs& part = n->get<Pairs>();
    const int64_t stride = n->src(0)->shape[1].value();
    return {n->src(0).get(), part[0].a.value() * stride + part[1].a.value(), stride};
  }
  return {n, 0, width};
}

namespace {

class Unroller {
 public:
  Unroller(Schedule& s, const FormCalls& form) : s_(s), form_(form) {}

  void run() {
    const std::vector<Call> calls = std::move(s_.calls);
    s_.calls.clear();
    for (const Call& c : calls) {
      if (c.kind == CallKind::Loop)
        unroll(c);
      else
        s_.calls.push_back(c);
    }
  }

 private:
  // What a step's slot is in the loop's schedule: an element of a row, or all of a slot.
  struct Place {
    uint32_t slot = 0;
    int64_t begin = 0, stride = 0;  // elements; stride 0: the same in every step
    int64_t count = 0;
    DType dtype = DType::Void;
  };

  void unroll(const Call& c) {
    const Node& loop = *c.ast;
    const LoopArg& arg = loop.get<LoopArg>();
    const LoopBody& body = *arg.body;
    const std::string& device = c.device;
    // As a graph of memory.
    std::vector<UOp> buffers, sinks;
    UOpMap<UOp> memory;
    for (const UOp& place : body.places) {
      const int64_t count = element_count(place->shape);
      buffers.push_back(buffer(make_ref<Storage>(device, place->dtype, count)));
      memory[place] = reshape(buffers.back(), place->shape);
    }
    for (const UOp& u : substitute(body.next, memory))
      sinks.push_back(make(Op::Contiguous, u->dtype, {u}, Placement{{device}}));
    const Schedule step = form_(sinks, buffers);

    const std::vector<Place> places = places_of(c, step);
    const auto& [offsets, row] = layout_of(loop);
    copy_initial(c, first_row(loop) * row, row);
    std::vector<uint32_t> temporaries(step.buffers.size(), UINT32_MAX);
    std::map<uint32_t, uint32_t> parts;  // of this step: the step's slot -> ours
    for (int64_t i = 0; i < arg.steps; i++) {
      const int64_t t = arg.reverse ? arg.steps - 1 - i : i;
      parts.clear();
      const auto own = [&](uint32_t slot) {
        const BufferSlot& b = step.buffers[slot];
        if (b.origin == BufferOrigin::Temp) return own_slot(b, temporaries[slot]);
        if (const auto it = parts.find(slot); it != parts.end()) return it->second;
        uint32_t fresh = UINT32_MAX;
        return parts[slot] = b.origin == BufferOrigin::Part ? own_slot(b, fresh)
                                                            : part(places[slot], t);
      };
      for (Call call : step.calls) {
        for (uint32_t& slot : call.args) slot = own(slot);
        s_.calls.push_back(std::move(call));
      }
      for (size_t k = 0; k < step.sink_slots.size(); k++) {
        const BufferSlot& b = step.buffers[step.sink_slots[k]];
        if (b.index == k) continue;  // else it is what another state is too
        Place to = places[step.sink_slots[k]];
        to.begin += offsets[k] - offsets[b.index];
        copy(device, part(to, t), own(step.sink_slots[k]));
      }
    }
  }

  void copy(const std::string& device, uint32_t to, uint32_t from) {
    Call c;
    c.kind = CallKind::Copy;
    c.device = device;
    c.args = {to, from};
    s_.calls.push_back(std::move(c));
  }

  // By the step's slots; temporaries have none.
  std::vector<Place> places_of(const Call& c, const Schedule& step) const {
    const Node& loop = *c.ast;
    const LoopArg& arg = loop.get<LoopArg>();
    const LoopBody& body = *arg.body;
    const LoopLayout at = layout_of(loop);
    const auto states = body.next.size();
    std::vector<Place> out(step.buffers.size());
    for (size_t slot = 0; slot < step.buffers.size(); slot++) {
      const BufferSlot& b = step.buffers[slot];
      Place& p = out[slot];
      p.count = b.count;
      p.dtype = b.dtype;
      const bool stored = b.origin == BufferOrigin::Output;
      if (b.origin != BufferOrigin::Input && !stored) continue;
      if (stored || b.index < states) {
        const bool behind = stored != arg.reverse;  // the row with the larger number
        p.slot = c.args[0];
        p.begin = at.offsets[b.index] + (behind ? at.row : 0);
        p.stride = at.row;
      } else {
        const size_t source = b.index - states + 1;
        p.slot = c.args[source + 1];
        if (source <= body.sequences) {
          const LoopRows rows = loop_rows(loop.src(source));
          p.begin = rows.begin;
          p.stride = rows.stride;
        }
      }
    }
    return out;
  }

  void copy_initial(const Call& c, int64_t begin, int64_t row) {
    const Place to{c.args[0], begin, row, row, s_.buffers[c.args[0]].dtype};
    copy(c.device, part(to, 0), c.args[1]);
  }

  uint32_t own_slot(const BufferSlot& of, uint32_t& slot) {
    if (slot != UINT32_MAX) return slot;
    s_.buffers.push_back(of);
    return slot = uint32_t(s_.buffers.size() - 1);
  }

  uint32_t part(const Place& p, int64_t t) {
    if (p.stride == 0) return p.slot;
    const int64_t begin = p.begin + t * p.stride;
    const auto [it, fresh] =
        parts_.try_emplace({p.slot, begin, p.count}, uint32_t(s_.buffers.size()));
    if (!fresh) return it->second;
    s_.buffers.push_back(BufferSlot{.dtype = p.dtype,
                                    .count = p.count,
                                    .device = s_.buffers[p.slot].device,
                                    .origin = BufferOrigin::Part});
    Call view;
    view.kind = CallKind::View;
    view.device = s_.buffers[p.slot].device;
    view.args = {it->second, p.slot};
    view.byte_offset = uint64_t(begin) * size_bytes(p.dtype);
    s_.calls.push_back(std::move(view));
    return it->second;
  }

  Schedule& s_;
  const FormCalls& form_;
  std::map<std::tuple<uint32_t, int64_t, int64_t>, uint32_t> parts_;  // slot, begin, count
};

bool names_part(const Schedule& s, const Call& c) {
  return c.kind == CallKind::View && s.buffers[c.args[0]].origin == BufferOrigin::Part;
}

}  // namespace

void unroll_loops(Schedule& s, const FormCalls& form) {
  const auto is_loop = [](const Call& c) { return c.kind == CallKind::Loop; };
  if (std::ranges::any_of(s.calls, is_loop)) Unroller(s, form).run();
}

std::vector<uint32_t> memory_of_parts(const Schedule& s) {
  std::vector<uint32_t> out(s.buffers.size());
  std::iota(out.begin(), out.end(), 0u);
  for (const Call& c : s.calls)
    if (names_part(s, c)) out[c.args[0]] = out[c.args[1]];
  return out;
}

void place_parts(Schedule& s) {
  std::erase_if(s.calls, [&](const Call& c) {
    if (!names_part(s, c) || s.buffers[c.args[1]].origin != BufferOrigin::Temp) return false;
    BufferSlot& part = s.buffers[c.args[0]];
    const BufferSlot& of = s.buffers[c.args[1]];
    part.origin = BufferOrigin::Temp;
    part.arena = of.arena;
    part.arena_offset = of.arena_offset + c.byte_offset;
    return true;
  });
}

}  // namespace tuff::sched
