#include "engine/jit/rebind.h"

#include <algorithm>

#include "base/check.h"

namespace tuff::engine {
void rebind(Ref<Buffer>& b, std::span<const Ref<Buffer>> captured,
            std::span<const Ref<Buffer>> given) {
  const int32_t slot = input_slot(*b, captured);
  if (slot < 0) return;
  const uint64_t offset = b->byte_offset() - captured[size_t(slot)]->byte_offset();
  // What was captured may be larger than what is given, where extents vary.
  const uint64_t room = given[size_t(slot)]->size_bytes();
  const int64_t left = offset < room ? int64_t((room - offset) / size_bytes(b->dtype)) : 0;
  b = make_ref<Buffer>(given[size_t(slot)], b->dtype, std::min(b->count, left),
                       std::min(offset, room));
}

void rebind(BoundCall& c, std::span<const Ref<Buffer>> captured,
            std::span<const Ref<Buffer>> given) {
  if (auto* k = std::get_if<BoundKernel>(&c)) {
    for (Ref<Buffer>& b : k->buffers) rebind(b, captured, given);
  } else {
    auto& [dst, src] = std::get<BoundCopy>(c);
    rebind(dst, captured, given);
    rebind(src, captured, given);
    const int64_t both = std::min(dst->count, src->count);
    for (Ref<Buffer>* b : {&dst, &src}) {
      if ((*b)->count > both) *b = make_ref<Buffer>(*b, (*b)->dtype, both, 0);
    }
  }
}

void ReboundGraph::note_use(const Buffer& b, std::span<const Ref<Buffer>> inputs, bool read,
                            bool write) {
  const int32_t slot = input_slot(b, inputs);
  if (slot < 0) return;
  slots_[size_t(slot)].read |= read;
  slots_[size_t(slot)].written |= write;
  // What is written in parts keeps the rest, which then has to be there.
  if (write && b.size_bytes() < inputs[size_t(slot)]->size_bytes())
    slots_[size_t(slot)].read = true;
}

void ReboundGraph::note_uses(const BoundCall& c, std::span<const Ref<Buffer>> inputs) {
  if (auto* k = std::get_if<BoundKernel>(&c)) {
    for (size_t i = 0; i < k->buffers.size(); i++) {
      const auto& a = k->kernel->buffers[i];
      note_use(*k->buffers[i], inputs, a.read, a.written);
    }
  } else {
    note_use(*std::get<BoundCopy>(c).dst, inputs, false, true);
    note_use(*std::get<BoundCopy>(c).src, inputs, true, false);
  }
}

ReboundGraph::ReboundGraph(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                           MakeGraph make)
    : make_(std::move(make)) {
  for (const Ref<Buffer>& in : inputs) {
    own_.push_back(make_ref<Buffer>(Device::get(in->device), in->dtype, in->count));
    slots_.push_back({own_.back(), in->span().address()});
  }
  for (const BoundCall& c : calls) {
    note_uses(c, inputs);
    rebind(calls_.emplace_back(c), inputs, own_);
  }
  record(inputs);
}

void ReboundGraph::record(std::span<const Ref<Buffer>> inputs) {
  std::vector<Ref<Buffer>> memory(inputs.begin(), inputs.end());
  for (size_t i = 0; i < slots_.size(); i++)
    if (slots_[i].moved) memory[i] = slots_[i].own;
  std::vector<BoundCall> bound = calls_;
  for (BoundCall& c : bound) rebind(c, own_, memory);
  graph_ = make_(bound);
}

// What stands for `given`, which may have fewer elements than were captured.
Ref<Buffer> ReboundGraph::front_of(size_t slot, const Buffer& given) const {
  const Ref<Buffer>& own = slots_[slot].own;
  return own->count == given.count ? own : make_ref<Buffer>(own, own->dtype, given.count, 0);
}

uint32_t ReboundGraph::copies() const {
  uint32_t n = 0;
  for (const Slot& s : slots_) n += uint32_t(s.copied_in()) + uint32_t(s.copied_out());
  return n;
}

uint32_t ReboundGraph::copy_submits() const {
  const auto any = [&](auto which) {
    return uint32_t(std::any_of(slots_.begin(), slots_.end(), std::mem_fn(which)));
  };
  return any(&Slot::copied_in) + any(&Slot::copied_out);
}

uint64_t ReboundGraph::replay(std::span<const Ref<Buffer>> inputs,
                              std::span<const int64_t> values) {
  bool stale = false;
  for (size_t i = 0; i < slots_.size(); i++) {
    Slot& s = slots_[i];
    const bool used = s.read || s.written;
    if (!used || s.moved || inputs[i]->span().address() == s.captured_address) continue;
    s.moved = stale = true;
  }
  if (stale) record(inputs);
  std::vector<BoundCall> in, out;
  for (size_t i = 0; i < slots_.size(); i++) {
    if (slots_[i].copied_in()) in.push_back(BoundCopy{front_of(i, *inputs[i]), inputs[i]});
    if (slots_[i].copied_out()) out.push_back(BoundCopy{inputs[i], front_of(i, *inputs[i])});
  }
  if (!in.empty()) execute(in);
  const uint64_t value = graph_->replay({}, values);
  for (const Slot& s : slots_)
    if (s.moved) s.own->used_until(value);
  if (!out.empty()) execute(out);
  return value;
}

}  // namespace tuff::engine
