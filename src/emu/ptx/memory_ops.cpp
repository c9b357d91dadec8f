// Loads, stores and asynchronous copies. Source: PTX ISA 7.8, 9.7.8.8 (ld) and on.
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/check.h"
#include "emu/ptx/lanes.h"
#include "emu/ptx/makers.h"
#include "emu/ptx/memory_access.h"

namespace tuff::emu::ptx {
namespace {

AccessShape shape_of(const MemoryForm& m, AccessKind kind) {
  AccessShape s;
  s.bytes = bytes_of(m.type) * m.count;
  s.alignment = s.bytes;
  s.kind = kind;
  s.strong = m.order != Order::Weak;
  s.scope = m.scope;
  return s;
}

template <class T>
void load_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  const MemoryForm& m = i.memory;
  const Addresses at = addresses_of(w, m, lanes);
  const LaneBytes bytes = reach_lanes(w, m, at, lanes, shape_of(m, AccessKind::Load));
  for (uint32_t e = 0; e < m.count; ++e) {
    const uint32_t reg = i.d(e);
    Lanes& d = w.value(reg);
    // A wider register gets the sign, or zeros (9.4.1).
    const uint64_t width = w.frame->function->register_bits[reg];
    const uint64_t mask = width == 64 ? ~0ull : (1ull << width) - 1;
    for_each_set(bytes.lanes, [&](uint32_t k) {
      T value;
      std::memcpy(&value, bytes.at[k] + e * sizeof(T), sizeof value);
      d[k] = uint64_t(int64_t(value)) & mask;
    });
    w.define(reg, lanes, bytes.lanes & ~bytes.undefined);
  }
}

template <class T>
void store_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  const MemoryForm& m = i.memory;
  const Addresses at = addresses_of(w, m, lanes);
  uint32_t defined = ~0u;
  for (uint32_t e = 0; e < m.count; ++e) defined &= w.frame->defined[i.s(e)];
  const bool keeps = m.space == Space::Local || (m.space == Space::Param && m.in_frame);
  if (!keeps && (lanes & ~defined)) {
    // To local memory by a generic address what is undefined may go.
    uint32_t elsewhere = lanes;
    if (m.space == Space::Generic)
      for_each_set(lanes, [&](uint32_t k) {
        if ((at[k] & kWindowMask) == window_of(Space::Local)) elsewhere &= ~(1u << k);
      });
    for (uint32_t e = 0; e < m.count; ++e)
      w.machine->require(w, i.s(e), elsewhere, "the value that is stored");
  }
  const LaneBytes bytes = reach_lanes(w, m, at, lanes, shape_of(m, AccessKind::Store));
  for (uint32_t e = 0; e < m.count; ++e) {
    const Lanes& s = w.value(i.s(e));
    for_each_set(bytes.lanes, [&](uint32_t k) {
      const T value = T(s[k]);
      std::memcpy(bytes.at[k] + e * sizeof(T), &value, sizeof value);
    });
  }
  if (keeps || m.space == Space::Generic)
    mark_stored(w, m, at, bytes.lanes, defined, uint32_t(sizeof(T)) * m.count);
}

Space space_of(const Form& f) {
  if (f.has("global")) return Space::Global;
  if (f.has("shared") || f.has("shared::cta")) return Space::Shared;
  if (f.has("local")) return Space::Local;
  if (f.has("const")) return Space::Const;
  return f.has("param") ? Space::Param : Space::Generic;
}

Order order_of(const Form& f) {
  if (f.has("acquire")) return Order::Acquire;
  if (f.has("release")) return Order::Release;
  if (f.has("acq_rel")) return Order::AcquireRelease;
  // 8.4.1: a volatile access is a relaxed one of the whole system.
  return f.has("relaxed") || f.has("volatile") ? Order::Relaxed : Order::Weak;
}

Scope scope_of(const Form& f) {
  return f.has("cta") ? Scope::Block : f.has("sys") ? Scope::System : Scope::Device;
}

void read_form(const Form& f, Instruction& i) {
  MemoryForm& m = i.memory;
  m.space = space_of(f);
  m.type = f.type();
  m.count = f.has("v4") ? 4 : f.has("v2") ? 2 : 1;
  m.order = order_of(f);
  m.scope = scope_of(f);
  if (bytes_of(m.type) * m.count > 16)
    fail<CompileError>("a vector of {} bytes: 16 are the most", bytes_of(m.type) * m.count);
}

// ---- cp.async: done at once. That what it copies is not there before a wait, it does not show.

void copy_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  const auto size = uint32_t(w.value(i.s(0))[0]);
  if (size != 4 && size != 8 && size != 16) {
    w.machine->report(w, FindingKind::Undefined, 0, 0, fmt::format("a copy of {} bytes", size));
    return;
  }
  const Addresses to = addresses_of(w, i.memory, lanes), from = addresses_of(w, i.second, lanes);
  AccessShape shape{size, size, AccessKind::Load};
  uint32_t reads = lanes;
  Lanes wanted;
  wanted.v.fill(size);
  if (i.sources > 1) {
    w.machine->require(w, i.s(1), lanes, "the number of bytes");
    for_each_set(lanes, [&](uint32_t k) {
      wanted[k] = std::min<uint64_t>(uint32_t(w.value(i.s(1))[k]), size);
      if (wanted[k] == 0) reads &= ~(1u << k);
    });
  }
  // Bytes that are not copied are not read: lanes that copy a part ask for themselves.
  LaneBytes source;
  for_each_set(reads, [&](uint32_t k) {
    AccessShape own = shape;
    own.bytes = uint32_t(wanted[k]);
    const LaneBytes one = reach_lanes(w, i.second, from, 1u << k, own);
    if (one.lanes) source.at[k] = one.at[k];
    source.lanes |= one.lanes;
  });
  shape.kind = AccessKind::Store;
  const LaneBytes target = reach_lanes(w, i.memory, to, lanes & (source.lanes | ~reads), shape);
  for_each_set(target.lanes, [&](uint32_t k) {
    std::memset(target.at[k], 0, size);
    if (wanted[k]) std::memcpy(target.at[k], source.at[k], wanted[k]);
  });
}

}  // namespace

void make_load(const Form& f, Instruction& i) {
  i.own_definedness = true;
  read_form(f, i);
  with_integer(f.type(), [&]<class T>() { i.execute = load_rows<T>; });
  if (is_float(f.type()))
    i.execute = bytes_of(f.type()) == 8   ? load_rows<uint64_t>
                : bytes_of(f.type()) == 4 ? load_rows<uint32_t>
                                          : load_rows<uint16_t>;
  if (f.base == "ldu") i.memory.space = f.has("global") ? Space::Global : Space::Generic;
}

void make_store(const Form& f, Instruction& i) {
  i.own_definedness = true;
  read_form(f, i);
  switch (bytes_of(f.type())) {
    case 1: i.execute = store_rows<uint8_t>; break;
    case 2: i.execute = store_rows<uint16_t>; break;
    case 4: i.execute = store_rows<uint32_t>; break;
    default: i.execute = store_rows<uint64_t>; break;
  }
}

void make_async_copy(const Form& f, Instruction& i) {
  if (!f.has("shared") && !f.has("shared::cta")) return make_nothing(f, i);
  i.own_definedness = true;
  i.memory.space = Space::Shared;
  i.second.space = Space::Global;
  i.memory.type = i.second.type = Type::B8;
  i.execute = copy_rows;
}

}  // namespace tuff::emu::ptx
