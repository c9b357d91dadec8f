#include "sched/slot_ast.h"

#include <algorithm>
#include <numeric>

#include "base/contains.h"
#include "ir/walk.h"
#include "sched/canonical.h"

namespace tuff::sched {

using namespace ir;

UOp slot_ast(const Call& c) {
  UOpMap<UOp> renamed;
  for (const Node* n : toposort(c.ast)) {
    if (n->op != Op::Param) continue;
    const ParamArg& p = n->get<ParamArg>();
    renamed.emplace(UOp(n), param(int32_t(c.args[size_t(p.slot)]), n->dtype, p.count));
  }
  return substitute(c.ast, renamed);
}

uint32_t slot_of(const UOp& index) {
  return uint32_t(without_after(index->src(0).get())->get<ParamArg>().slot);
}

Call call_of(const std::string& device, std::span<const UOp> ends) {
  Call call;
  call.device = device;
  for (const UOp& end : ends) call.args.push_back(slot_of(end->src(0)->src(0)));
  call.output_count = uint32_t(call.args.size());
  const UOp ast = sink(std::vector<UOp>(ends.begin(), ends.end()));
  UOpMap<UOp> numbered;
  for (const Node* n : toposort(ast)) {
    if (n->op != Op::Param) continue;
    const ParamArg& p = n->get<ParamArg>();
    add_once(call.args, uint32_t(p.slot));
    const auto at = std::find(call.args.begin(), call.args.end(), uint32_t(p.slot));
    numbered.emplace(UOp(n), param(int32_t(at - call.args.begin()), n->dtype, p.count));
  }
  call.ast = canonicalize(substitute(ast, numbered));
  return call;
}

bool is_needed(const Schedule& s, std::span<const Call* const> own, uint32_t slot) {
  if (s.buffers[slot].origin != BufferOrigin::Temp || contains(s.sink_slots, slot)) return true;
  return std::any_of(s.calls.begin(), s.calls.end(), [&](const Call& c) {
    return !contains(own, &c) && contains(c.args, slot);
  });
}

void settle_order(Schedule& s) {
  std::vector<uint32_t> memory(s.buffers.size());
  std::iota(memory.begin(), memory.end(), 0u);
  const auto gone = [&](const Call& c) { return c.kind == CallKind::Again; };
  for (const Call& c : s.calls)
    if (gone(c)) memory[c.args[0]] = memory[c.args[1]];
  if (std::erase_if(s.calls, gone) == 0) return;
  for (Call& c : s.calls)
    for (uint32_t& a : c.args) a = memory[a];
  drop_unused_slots(s);
}

void drop_unused_slots(Schedule& s) {
  std::vector<uint8_t> used(s.buffers.size(), 0);
  for (const Call& c : s.calls) {
    for (uint32_t a : c.args) used[a] = 1;
  }
  for (uint32_t a : s.sink_slots) used[a] = 1;
  std::vector<uint32_t> number(s.buffers.size(), 0);
  std::vector<BufferSlot> kept;
  for (size_t i = 0; i < s.buffers.size(); i++) {
    number[i] = uint32_t(kept.size());
    if (used[i] || s.buffers[i].origin != BufferOrigin::Temp) kept.push_back(s.buffers[i]);
  }
  s.buffers = std::move(kept);
  for (Call& c : s.calls) {
    for (uint32_t& a : c.args) a = number[a];
  }
  for (uint32_t& a : s.sink_slots) a = number[a];
}

}  // namespace tuff::sched
