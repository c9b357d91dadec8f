// Moves, address conversions and what does nothing here. Source: PTX ISA 7.8, 9.7.8.
#include "emu/ptx/lanes.h"
#include "emu/ptx/machine.h"
#include "emu/ptx/makers.h"

namespace tuff::emu::ptx {
namespace {

void move_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  Lanes& d = w.value(i.d());
  const Lanes& a = w.value(i.s(0));
  for_lanes(lanes, [&](uint32_t k) { d[k] = a[k]; });
}

void pack_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  for_each_set(lanes, [&](uint32_t k) {
    uint64_t out = 0;
    for (uint32_t e = 0; e < i.sources; ++e) out |= w.value(i.s(e))[k] << (e * i.variant);
    w.value(i.d())[k] = out;
  });
}

void unpack_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  const uint64_t mask = (1ull << i.variant) - 1;
  const Lanes a = w.value(i.s(0));
  for (uint32_t e = 0; e < i.destinations; ++e) {
    if (i.d(e) == kNone) continue;
    Lanes& d = w.value(i.d(e));
    for_each_set(lanes, [&](uint32_t k) { d[k] = a[k] >> (e * i.variant) & mask; });
  }
}

void clock_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  const bool narrow = w.frame->function->register_bits[i.d()] == 32;
  const uint64_t now = w.machine->clock;
  for_each_set(lanes, [&](uint32_t k) { w.value(i.d())[k] = narrow ? uint32_t(now) : now; });
}

template <bool to_space>
void convert_address_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  Lanes& d = w.value(i.d());
  const Lanes& a = w.value(i.s(0));
  const uint64_t window = window_of(i.memory.space);
  for_lanes(lanes, [&](uint32_t k) { d[k] = to_space ? a[k] - window : a[k] + window; });
}

void space_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  const Lanes& a = w.value(i.s(0));
  const Space space = i.memory.space;
  uint32_t out = 0;
  for_each_set(lanes, [&](uint32_t k) {
    const uint64_t window = a[k] & kWindowMask;
    const bool elsewhere = window == window_of(Space::Shared) ||
                           window == window_of(Space::Local) || window == window_of(Space::Param);
    const bool global = space == Space::Global || space == Space::Const;
    out |= uint32_t(global ? !elsewhere : window == window_of(space)) << k;
  });
  w.set_predicate(i.predicate_destinations[0], lanes, out);
}

Space named_space(const Form& f) {
  if (f.has("shared") || f.has("shared::cta")) return Space::Shared;
  if (f.has("local")) return Space::Local;
  if (f.has("param")) return Space::Param;
  return f.has("const") ? Space::Const : Space::Global;
}

}  // namespace

void make_move(const Form&, Instruction& i) {
  i.execute = move_rows;
  i.bit_sources = 1;
}

void make_nothing(const Form&, Instruction& i) {
  i.execute = [](Warp&, const Instruction&, uint32_t) {};
}

void make_pack(Instruction& i, uint32_t width) {
  i.variant = uint8_t(width);
  i.execute = pack_rows;
  i.bit_sources = 0xff;
}
void make_unpack(Instruction& i, uint32_t width) {
  i.variant = uint8_t(width);
  i.execute = unpack_rows;
  i.bit_sources = 1;
}

void make_clock(Instruction& i) { i.execute = clock_rows; }

void make_address_conversion(const Form& f, Instruction& i) {
  i.memory.space = named_space(f);
  i.execute = f.has("to") ? convert_address_rows<true> : convert_address_rows<false>;
}

void make_space_test(const Form& f, Instruction& i) {
  i.memory.space = named_space(f);
  i.execute = space_rows;
}

}  // namespace tuff::emu::ptx
