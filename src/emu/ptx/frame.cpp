// Calls: frames, and what is handed over. Part of Control (control.h).
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/arith.h"
#include "emu/ptx/control.h"
#include "emu/ptx/counters.h"

namespace tuff::emu::ptx {
namespace {

// The bytes of one lane of what is passed, and whether all of them were written.
bool read_passed(const Frame& frame, const Passed& p, uint32_t lane, uint8_t* out) {
  if (p.predicate) {
    out[0] = frame.predicates[p.reg] >> lane & 1;
    return frame.predicates_defined[p.reg] >> lane & 1;
  }
  if (p.reg != kNone) {
    std::memcpy(out, &frame.values[p.reg][lane], p.bytes);
    return frame.defined[p.reg] >> lane & 1;
  }
  const size_t at = size_t(lane) * frame.function->parameter_bytes + p.offset;
  std::memcpy(out, frame.parameters.data() + at, p.bytes);
  const uint8_t* written = frame.parameters_written.data() + at;
  return std::find(written, written + p.bytes, 0) == written + p.bytes;
}

void write_passed(Frame& frame, const Passed& p, uint32_t lane, const uint8_t* in, bool known) {
  const auto put = [&](uint32_t& mask, bool bit) {
    mask = (mask & ~(1u << lane)) | uint32_t(bit) << lane;
  };
  if (p.predicate) {
    put(frame.predicates[p.reg], in[0]);
    put(frame.predicates_defined[p.reg], known);
    return;
  }
  if (p.reg != kNone) {
    frame.values[p.reg][lane] = 0;
    std::memcpy(&frame.values[p.reg][lane], in, p.bytes);
    put(frame.defined[p.reg], known);
    return;
  }
  const size_t at = size_t(lane) * frame.function->parameter_bytes + p.offset;
  std::memcpy(frame.parameters.data() + at, in, p.bytes);
  std::fill_n(frame.parameters_written.data() + at, p.bytes, uint8_t(known));
}

// Of a structure, what lies between its members need not have been written.
void copy_bytes(const Frame& from, const Passed& a, Frame& to, const Passed& b, uint32_t lane) {
  const size_t source = size_t(lane) * from.function->parameter_bytes + a.offset;
  const size_t target = size_t(lane) * to.function->parameter_bytes + b.offset;
  std::copy_n(from.parameters.begin() + ptrdiff_t(source), a.bytes,
              to.parameters.begin() + ptrdiff_t(target));
  std::copy_n(from.parameters_written.begin() + ptrdiff_t(source), a.bytes,
              to.parameters_written.begin() + ptrdiff_t(target));
}

void hand_over(const Frame& from, const std::vector<Passed>& given, Frame& to,
               const std::vector<Passed>& taken, uint32_t lanes) {
  std::vector<uint8_t> bytes;
  for (size_t k = 0; k < given.size(); ++k) {
    bytes.resize(std::max<size_t>(given[k].bytes, 8));
    const bool both_bytes = given[k].reg == kNone && taken[k].reg == kNone;
    for_each_set(lanes, [&](uint32_t lane) {
      if (both_bytes) return copy_bytes(from, given[k], to, taken[k], lane);
      const bool known = read_passed(from, given[k], lane, bytes.data());
      write_passed(to, taken[k], lane, bytes.data(), known);
    });
  }
}

uint64_t bytes_of_frame(const Function& f) {
  return f.register_bits.size() * (sizeof(Lanes) + 4) + f.predicates * 8ull +
         2ull * f.parameter_bytes * kWarpLanes + sizeof(Frame);
}

}  // namespace

uint64_t Control::constant_value(const Warp& w, const Frame& frame, const Constant& c,
                                 uint32_t lane) const {
  using enum Constant::Source;
  const Launch& launch = machine_.launch();
  const uint32_t thread = w.thread(lane), own = 1u << lane;
  const auto& size = launch.block;
  switch (c.source) {
    case Value: return c.value;
    case Shared: return machine_.shared_layout().offsets[uint32_t(c.value)] + (c.value >> 32);
    case Local: return frame.local_base + c.value;
    case ThreadId:
      return c.value == 0   ? thread % size[0]
             : c.value == 1 ? thread / size[0] % size[1]
                            : thread / size[0] / size[1];
    case BlockSize: return size[c.value];
    case BlockId: return w.block->id[c.value];
    case GridSize: return launch.grid[c.value];
    case Lane: return lane;
    case WarpNumber: return w.number;
    case WarpCount: return ceil_div(launch.threads(), kWarpLanes);
    case LanesEqual: return own;
    case LanesBelow: return own - 1;
    case LanesUpToOwn: return (own - 1) | own;
    case LanesAbove: return uint32_t(~((own - 1) | own));
    case LanesFromOwn: return uint32_t(~(own - 1));
    case Processor: return w.block->number % 4;
    case ProcessorCount: return 4;
    case GridNumber: return 1;
    case DynamicShared: return launch.dynamic_shared_bytes;
    case TotalShared: return machine_.shared_bytes();
  }
  return 0;
}

void Control::set_constants(Warp& w, Frame& frame) {
  for (const Constant& c : frame.function->constants) {
    Lanes& value = frame.values[c.reg];
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane)
      value[lane] = constant_value(w, frame, c, lane);
    frame.defined[c.reg] = ~0u;
  }
  for (const uint32_t p : frame.function->true_predicates)
    frame.predicates[p] = frame.predicates_defined[p] = ~0u;
}

Frame* Control::new_frame(Warp& w, const Function& f, Frame* parent, uint32_t lanes) {
  w.frames.push_back(std::make_unique<Frame>());
  Frame& frame = *w.frames.back();
  frame.function = &f;
  frame.parent = parent;
  frame.lanes = lanes;
  if (parent) {
    frame.depth = parent->depth + 1;
    frame.local_base = parent->local_base + align_up(parent->function->local_bytes, 16u);
  }
  frame.values.resize(f.register_bits.size());
  frame.defined.resize(f.register_bits.size());
  frame.predicates.resize(f.predicates);
  frame.predicates_defined.resize(f.predicates);
  frame.parameters.resize(size_t(f.parameter_bytes) * kWarpLanes);
  frame.parameters_written.resize(frame.parameters.size());
  w.frame_bytes += bytes_of_frame(f);
  set_constants(w, frame);
  return &frame;
}

// Frames that no lane is in any more go.
void Control::leave(Warp& w, Frame* frame, uint32_t lanes) {
  frame->lanes &= ~lanes;
  if (frame->lanes) return;
  w.frame_bytes -= bytes_of_frame(*frame->function);
  std::erase_if(w.frames, [&](const auto& own) { return own.get() == frame; });
}

void Control::call(Warp& w, const Instruction& i, uint32_t lanes) {
  constexpr uint64_t kMostFrameBytes = 64 << 20;  // of the host
  const CallSite& site = w.frame->function->calls[i.target];
  const Function& f = machine_.launch().module->functions[site.callee];
  split_off_rest(w, lanes);
  Group& group = w.groups[current_];
  Frame* frame = new_frame(w, f, w.frame, lanes);
  if (frame->local_base + f.local_bytes > w.local_bytes || w.frame_bytes > kMostFrameBytes) {
    machine_.report(w, FindingKind::OutOfBounds, uint32_t(std::countr_zero(lanes)), 0,
                    fmt::format("the stack of a thread has {} bytes, {} calls deep", w.local_bytes,
                                frame->depth));
    machine_.stop();
    return;
  }
  hand_over(*w.frame, site.arguments, *frame, f.formals, lanes);
  frame->site = &site;
  frame->return_to = group.pc + 1;
  group.frame = frame;
  group.pc = 0;
  w.frame = frame;
}

// Lanes return: to the caller, or to their end.
void Control::give_back(Warp& w, uint32_t lanes) {
  Frame* frame = w.frame;
  Frame* parent = frame->parent;
  if (!parent) return end(w, lanes);
  split_off_rest(w, lanes);
  Group& group = w.groups[current_];
  hand_over(*frame, frame->function->results, *parent, frame->site->results, lanes);
  group.frame = parent;
  group.pc = frame->return_to;
  w.frame = parent;
  leave(w, frame, lanes);
}

void Control::end(Warp& w, uint32_t lanes) {
  split_off_rest(w, lanes);
  w.ended |= lanes;
  for (Frame* frame = w.frame; frame;) {
    Frame* const parent = frame->parent;
    leave(w, frame, lanes);
    frame = parent;
  }
  w.groups[current_].lanes = 0;
  remove_if_empty(w);
  if (machine_.counters && w.groups.empty()) machine_.counters->finish(w);
}

}  // namespace tuff::emu::ptx
