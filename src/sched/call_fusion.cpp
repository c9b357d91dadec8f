#include "sched/call_fusion.h"

#include <algorithm>
#include <iterator>
#include <numeric>

#include "base/contains.h"
#include "ir/walk.h"
#include "sched/slot_ast.h"

namespace tuff::sched {

namespace {

std::vector<uint32_t> memory_by_slot(const Schedule& s, std::span<const uint32_t> memory) {
  std::vector<uint32_t> out;
  for (uint32_t i = 0; i < s.buffers.size(); i++) {
    const BufferSlot& b = s.buffers[i];
    const bool known = b.origin == BufferOrigin::Input && b.index < memory.size();
    out.push_back(known ? memory[b.index] : uint32_t(s.buffers.size()) + i);
  }
  for (const Call& c : s.calls)
    if (c.kind == CallKind::Again) out[c.args[0]] = out[c.args[1]];
  return out;
}

}  // namespace

void fuse_calls(Schedule& s, std::span<const uint32_t> memory, const TargetOf& target_of,
                FuseCalls fuse) {
  constexpr size_t kWindow = 2048;
  std::vector<Call> out;
  for (size_t begin = 0, n = s.calls.size(); begin < n; begin += kWindow) {
    const size_t end = std::min(begin + kWindow, n);
    const std::vector<uint32_t> by_slot = memory_by_slot(s, memory);
    std::vector<Call> calls =
        fuse(s, by_slot, target_of, std::span(s.calls).subspan(begin, end - begin));
    std::move(calls.begin(), calls.end(), std::back_inserter(out));
  }
  s.calls = std::move(out);
  drop_unused_slots(s);
}

SlotKernel slot_kernel(const Call& c, uint32_t number) {
  SlotKernel k;
  const ir::UOp ast = slot_ast(c);
  k.ends.assign(ast->src().begin(), ast->src().end());
  k.calls = {number};
  CallAccess a = access_of(c);
  k.reads = std::move(a.reads);
  k.writes = std::move(a.writes);
  k.nodes = ir::toposort(ast).size();
  return k;
}

CallFusion::CallFusion(Schedule& s, std::span<const uint32_t> memory, const TargetOf& target_of,
                       std::span<const Call> calls)
    : s_(s),
      memory_(memory.begin(), memory.end()),
      target_of_(target_of),
      calls_(calls),
      graph_(calls, memory),
      head_(calls.size()) {
  std::iota(head_.begin(), head_.end(), 0u);
  for (uint32_t c = 0; c < calls.size(); c++) {
    for (uint32_t k = 0; k < calls[c].output_count; k++) writer_[calls[c].args[k]] = c;
  }
}

std::optional<uint32_t> CallFusion::producer_of(uint32_t slot, uint32_t c) const {
  const auto w = writer_.find(slot);
  if (w == writer_.end() || w->second >= c || head_[w->second] >= c) return {};
  return head_[w->second];
}

bool CallFusion::meet(std::span<const uint32_t> a, std::span<const uint32_t> b) const {
  return std::ranges::any_of(a, [&](uint32_t x) {
    return std::ranges::any_of(b, [&](uint32_t y) { return memory_[x] == memory_[y]; });
  });
}

bool CallFusion::keep_apart(const SlotKernel& p, const SlotKernel& c) const {
  for (const uint32_t w : p.writes) {
    const auto renamed = [&](uint32_t r) { return r != w && memory_[r] == memory_[w]; };
    if (std::ranges::any_of(c.reads, renamed)) return false;
  }
  return !meet(p.writes, p.reads) && !meet(p.writes, c.writes) && !meet(p.reads, c.writes);
}

bool CallFusion::fits_buffers(uint32_t c,
                              std::initializer_list<std::span<const uint32_t>> slots) const {
  std::set<uint32_t> all;
  for (const auto& some : slots) all.insert(some.begin(), some.end());
  return all.size() <= target(c).max_buffers;
}
bool CallFusion::fits_buffers(const CallGroup& g, const SlotKernel& k) const {
  const std::vector<uint32_t> own(g.slots.begin(), g.slots.end());
  return fits_buffers(k.calls[0], {own, k.reads, k.writes});
}

bool CallFusion::is_needed(uint32_t slot,
                           std::initializer_list<std::span<const uint32_t>> calls) const {
  std::vector<const Call*> own;
  for (const auto& some : calls)
    for (const uint32_t c : some) own.push_back(&calls_[c]);
  return sched::is_needed(s_, own, slot);
}

void CallFusion::unite(std::span<const uint32_t> calls) {
  for (const uint32_t c : calls) head_[c] = calls.back();
  if (calls.size() > 1) graph_.contract(calls);
}
void CallFusion::unite(SlotKernel& c, SlotKernel& p) {
  for (const uint32_t r : p.reads) add_once(c.reads, r);
  c.calls.insert(c.calls.end(), p.calls.begin(), p.calls.end());
  std::ranges::sort(c.calls);
  p.possible = false;
  unite(c.calls);
}

void CallFusion::add(CallGroup& g, const SlotKernel& k) {
  g.calls.insert(g.calls.end(), k.calls.begin(), k.calls.end());
  g.slots.insert(k.reads.begin(), k.reads.end());
  g.slots.insert(k.writes.begin(), k.writes.end());
  g.nodes += k.nodes;
  unite(g.calls);
}

std::vector<Call> CallFusion::ordered(const std::function<Call(uint32_t)>& fused) const {
  std::vector<Call> out;
  for (const uint32_t c : graph_.order(head_))
    out.push_back(std::ranges::count(head_, c) == 1 ? calls_[c] : fused(c));
  return out;
}

}  // namespace tuff::sched
