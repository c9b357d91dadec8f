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
    if (part[0].a.is_const() && part[1].a.is_const())
      return {n->src(0).get(), part[0].a.value() * stride + part[1].a.value(), stride};
  }
  return {n, 0, width};
}

namespace {

// Of param 1 to param 0. The kernel may differ by width: 4-byte elements are U32, which any device
// loads and stores.
UOp copying_kernel(uint64_t bytes) {
  const DType t = bytes % 4 == 0 ? DType::U32 : bytes % 2 == 0 ? DType::U16 : DType::U8;
  const auto count = int64_t(bytes / size_bytes(t));
  const UOp i = range(index_const(count), 0, AxisKind::Loop);
  const auto element = [&](int32_t slot) {
    return make(Op::Index, DType::Void, {param(slot, t, count), i});
  };
  const UOp value = make(Op::Load, DType::Void, {element(1)});
  const UOp store = make(Op::Store, DType::Void, {element(0), value});
  return sink(std::vector<UOp>{make(Op::End, DType::Void, {store, i})});
}

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
  void unroll(const Call& c) {
    const Node& loop = *c.ast;
    const LoopBody& body = *loop.get<LoopArg>().body;
    // As a graph of memory.
    std::vector<UOp> buffers, sinks;
    UOpMap<UOp> memory;
    for (const UOp& place : body.places) {
      const int64_t count = element_count(place->shape);
      buffers.push_back(buffer(make_ref<Storage>(c.device, place->dtype, count)));
      memory[place] = reshape(buffers.back(), place->shape);
    }
    // Each state is stored; others that are made of it read it there.
    UOpMap<UOp> stored;
    for (const Node* n : toposort(body.next)) {
      const UOp u(n);
      if (std::ranges::find(body.next, u) == body.next.end()) continue;
      const UOp value = substitute(u, memory);
      stored[u] = memory[u] = make(Op::Contiguous, u->dtype, {value}, Placement{{c.device}});
    }
    for (const UOp& u : body.next) sinks.push_back(stored.at(u));
    const Schedule step = form_(sinks, buffers);

    store_initial(c);
    std::vector<uint32_t> temporaries(step.buffers.size(), UINT32_MAX);
    for (const LoopStep& at : steps_of(loop)) add_step(c, step, at, temporaries);
  }

  // Temporaries are those of all steps.
  void add_step(const Call& c, const Schedule& step, const LoopStep& at,
                std::vector<uint32_t>& temporaries) {
    std::map<uint32_t, uint32_t> own_slots;  // of this step
    const auto own = [&](uint32_t slot) {
      const BufferSlot& b = step.buffers[slot];
      if (b.origin == BufferOrigin::Temp) {
        if (temporaries[slot] == UINT32_MAX) temporaries[slot] = add_slot(b);
        return temporaries[slot];
      }
      const auto [it, fresh] = own_slots.try_emplace(slot, 0);
      if (fresh) it->second = b.origin == BufferOrigin::Part ? add_slot(b) : slot_of(c, b, at);
      return it->second;
    };
    for (Call call : step.calls) {
      for (uint32_t& slot : call.args) slot = own(slot);
      add(std::move(call), at.runs);
    }
    for (size_t k = 0; k < step.sink_slots.size(); k++) {
      const BufferSlot& b = step.buffers[step.sink_slots[k]];
      if (b.index == k) continue;  // else it is what another state is too
      const Place to{c.args[0], at.stores[k], b.count, b.dtype};
      add(copy(c.device, part(to), own(step.sink_slots[k])), at.runs);
    }
  }

  void store_initial(const Call& c) {
    const Node& loop = *c.ast;
    const Dim first = first_row(loop), row = layout_of(loop).row;
    if (first.is_const()) {
      const Place to{c.args[0], first.value() * row.value(), row.value(), loop.dtype};
      return add(copy(c.device, part(to), c.args[1]), 1);
    }
    const auto memory = [&](const Dim& rows) {
      return buffer(make_ref<Storage>(c.device, loop.dtype, rows.value() * row.value()));
    };
    const UOp buffers[2] = {memory(loop.shape[0]), memory(1)};
    const UOp stored = make(Op::Assign, loop.dtype, buffers,
                            Pairs{{first * row, first * row + row}});
    const Schedule s = form_({&stored, 1}, buffers);
    for (Call call : s.calls) {
      for (uint32_t& slot : call.args) slot = c.args[s.buffers[slot].index];
      add(std::move(call), 1);
    }
  }

  // A copy would be made whether or not there is such a step: a kernel is not.
  void add(Call c, const Dim& runs) {
    if (!runs.is_const() && c.kind == CallKind::Copy) {
      c.kind = CallKind::Kernel;
      c.ast = copying_kernel(s_.buffers[c.args[0]].size_bytes());
    }
    if (c.kind == CallKind::Kernel || c.kind == CallKind::Custom) c.runs = c.runs * runs;
    s_.calls.push_back(std::move(c));
  }

  // Of a state or of what is around the loop.
  uint32_t slot_of(const Call& c, const BufferSlot& b, const LoopStep& at) {
    const Node& loop = *c.ast;
    const size_t states = at.stores.size();
    if (b.origin == BufferOrigin::Output)
      return part({c.args[0], at.stores[b.index], b.count, b.dtype});
    if (b.index < states) return part({c.args[0], at.reads[b.index], b.count, b.dtype});
    const size_t source = b.index - states + 1;
    if (source > sequences_of(loop).size()) return c.args[source + 1];
    const UOp& sequence = loop.src(source);
    const LoopRows rows = loop_rows(sequence);
    const int64_t t = at.reads[b.index] / sequence->shape[1].value();
    return part({c.args[source + 1], rows.begin + t * rows.stride, b.count, b.dtype});
  }

  static Call copy(const std::string& device, uint32_t to, uint32_t from) {
    Call c;
    c.kind = CallKind::Copy;
    c.device = device;
    c.args = {to, from};
    return c;
  }

  uint32_t add_slot(const BufferSlot& of) {
    s_.buffers.push_back(of);
    return uint32_t(s_.buffers.size() - 1);
  }

  struct Place {
    uint32_t slot = 0;
    int64_t begin = 0, count = 0;  // elements
    DType dtype = DType::Void;
  };
  uint32_t part(const Place& p) {
    const auto [it, fresh] = parts_.try_emplace({p.slot, p.begin, p.count}, 0);
    if (!fresh) return it->second;
    const std::string device = s_.buffers[p.slot].device;
    it->second = add_slot(BufferSlot{.dtype = p.dtype,
                                     .count = p.count,
                                     .device = device,
                                     .origin = BufferOrigin::Part});
    Call view;
    view.kind = CallKind::View;
    view.device = device;
    view.args = {it->second, p.slot};
    view.byte_offset = uint64_t(p.begin) * size_bytes(p.dtype);
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
