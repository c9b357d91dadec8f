#include "engine/jit/rebind.h"

#include <algorithm>

#include "engine/realize/call_bytes.h"
#include "engine/realize/launch.h"

namespace tuff::engine {

void rebind(Ref<Buffer>& b, std::span<const Ref<Buffer>> captured,
            std::span<const Ref<Buffer>> given) {
  const int32_t slot = input_slot(*b, captured);
  if (slot < 0) return;
  const uint64_t offset = b->byte_offset() - captured[size_t(slot)]->byte_offset();
  // What was captured may be larger than what is given, where extents vary.
  const uint64_t room = given[size_t(slot)]->size_bytes();
  const int64_t left = offset < room ? int64_t((room - offset) / size_bytes(b->dtype)) : 0;
  b = Buffer::view(given[size_t(slot)], b->dtype, std::min(b->count, left),
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
      if ((*b)->count > both) *b = Buffer::view(*b, (*b)->dtype, both);
    }
  }
}

ReboundGraph::ReboundGraph(std::span<const BoundCall> calls, std::span<const Ref<Buffer>> inputs,
                           MakeGraph make)
    : make_(std::move(make)) {
  for (const Ref<Buffer>& in : inputs) {
    own_.push_back(Buffer::make(Device::get(in->device), in->dtype, in->count));
    slots_.push_back({own_.back(), in->span().address()});
  }
  for (const BoundCall& c : calls) {
    each_buffer(c, [&](const Ref<Buffer>& b, bool read, bool write) {
      const int32_t slot = input_slot(*b, inputs);
      if (slot < 0) return;
      // What is written in parts keeps the rest, which then has to be there.
      const bool keeps = write && b->size_bytes() < inputs[size_t(slot)]->size_bytes();
      slots_[size_t(slot)].read |= read || keeps;
      slots_[size_t(slot)].written |= write;
    });
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
  return own->count == given.count ? own : Buffer::view(own, own->dtype, given.count);
}

void ReboundGraph::count_copies(ReplayStats& stats) const {
  bool in = false, out = false;
  for (const Slot& s : slots_) {
    stats.rebind_copies += uint32_t(s.copied_in()) + uint32_t(s.copied_out());
    in |= s.copied_in();
    out |= s.copied_out();
  }
  stats.submits_per_replay += uint32_t(in) + uint32_t(out);
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
    if (s.moved) s.own->uses().until(value);
  if (!out.empty()) execute(out);
  return value;
}

}  // namespace tuff::engine
