#include "emu/rdna/lds_races.h"

#include <algorithm>

namespace tuff::emu::rdna {
namespace {

bool touch_byte(Workgroup& group, uint32_t at, uint32_t wave, AccessKind kind) {
  LdsShadow& shadow = group.shadow[at];
  if (shadow.epoch != group.epoch) shadow = {group.epoch, 0, 0};
  const uint8_t me = uint8_t(wave + 1);
  if (kind == AccessKind::Atomic) return false;  // atomics order themselves
  const bool others_wrote = shadow.writer != 0 && shadow.writer != me;
  const bool others_read = shadow.reader != 0 && shadow.reader != me;
  if (kind == AccessKind::Store) {
    shadow.writer = me;
    return others_wrote || others_read;
  }
  shadow.reader = shadow.reader == 0 || shadow.reader == me ? me : 255;
  return others_wrote;
}

bool touch_bytes(Wave& w, uint32_t at, uint32_t bytes, AccessKind kind) {
  bool race = false;
  for (uint32_t k = 0; k < bytes; ++k) race |= touch_byte(*w.group, at + k, w.number, kind);
  return race;
}

}  // namespace

bool touch_lds(Wave& w, uint32_t at, uint32_t bytes, AccessKind kind) {
  const bool is_store = kind == AccessKind::Store;
  if (kind != AccessKind::Atomic) {
    w.lds_on_the_way.push_back({at, bytes, w.issued[size_t(Counter::Lds)] + 1, is_store});
  }
  return touch_bytes(w, at, bytes, kind);
}

void pass_barrier(Workgroup& group, std::span<const std::unique_ptr<Wave>> waves) {
  ++group.epoch;
  for (const auto& w : waves) {
    w->at_barrier = false;
    const uint32_t completed = w->completed[size_t(Counter::Lds)];
    std::erase_if(w->lds_on_the_way, [&](const LdsAccess& a) { return a.serial <= completed; });
    for (const LdsAccess& a : w->lds_on_the_way) {
      touch_bytes(*w, a.at, a.bytes, a.is_store ? AccessKind::Store : AccessKind::Load);
    }
  }
}

}  // namespace tuff::emu::rdna
