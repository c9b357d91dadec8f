#include "emu/rdna/lds_races.h"

#include <algorithm>

namespace tuff::emu::rdna {
namespace {

// What the bytes of an access have seen; by bytes from the first access on that takes part of a
// word.
std::span<LdsShadow> shadow_of(Workgroup& group, uint32_t at, uint32_t bytes) {
  if (!group.shadow_by_bytes) {
    if ((at | bytes) % 4 == 0) return std::span(group.shadow).subspan(at / 4, bytes / 4);
    std::vector<LdsShadow> by_bytes(group.lds.size());
    for (size_t k = 0; k < by_bytes.size(); ++k) by_bytes[k] = group.shadow[k / 4];
    group.shadow = std::move(by_bytes);
    group.shadow_by_bytes = true;
  }
  return std::span(group.shadow).subspan(at, bytes);
}

LdsShadow since_barrier(const LdsShadow& shadow, uint32_t epoch) {
  return shadow.epoch == epoch ? shadow : LdsShadow{epoch, 0, 0};
}

bool races(const LdsShadow& shadow, uint8_t me, bool is_store) {
  const bool others_wrote = shadow.writer != 0 && shadow.writer != me;
  const bool others_read = shadow.reader != 0 && shadow.reader != me;
  return others_wrote || (is_store && others_read);
}

bool any_race(std::span<const LdsShadow> shadows, uint32_t epoch, uint8_t me, bool is_store) {
  for (const LdsShadow& shadow : shadows) {
    if (shadow.epoch == epoch && races(shadow, me, is_store)) return true;
  }
  return false;
}

void apply(std::span<LdsShadow> shadows, uint32_t epoch, uint8_t me, bool is_store) {
  for (LdsShadow& shadow : shadows) {
    shadow = since_barrier(shadow, epoch);
    if (is_store)
      shadow.writer = me;
    else
      shadow.reader = shadow.reader == 0 || shadow.reader == me ? me : 255;
  }
}

// Until an s_waitcnt has waited for it.
void remember(Wave& w, uint32_t at, uint32_t bytes, bool is_store) {
  w.lds_on_the_way.push_back({at, bytes, w.issued[size_t(Counter::Lds)] + 1, is_store});
}

}  // namespace

void start_lds(Workgroup& group, uint32_t bytes) {
  group.lds.assign(bytes, 0xCD);
  group.shadow.assign((bytes + 3) / 4, {});
  group.shadow_by_bytes = false;
}

bool note_lds(Wave& w, uint32_t at, uint32_t bytes, AccessKind kind) {
  const uint8_t me = uint8_t(w.number + 1);
  const bool is_store = kind == AccessKind::Store;
  const std::span<LdsShadow> shadows = shadow_of(*w.group, at, bytes);
  if (any_race(shadows, w.group->epoch, me, is_store)) return false;
  remember(w, at, bytes, is_store);
  apply(shadows, w.group->epoch, me, is_store);
  return true;
}

bool touch_lds(Wave& w, uint32_t at, uint32_t bytes, AccessKind kind) {
  if (kind == AccessKind::Atomic) return false;  // atomics order themselves
  if (note_lds(w, at, bytes, kind)) return false;
  const bool is_store = kind == AccessKind::Store;
  remember(w, at, bytes, is_store);
  apply(shadow_of(*w.group, at, bytes), w.group->epoch, uint8_t(w.number + 1), is_store);
  return true;
}

void pass_barrier(Workgroup& group, std::span<const std::unique_ptr<Wave>> waves) {
  ++group.epoch;
  for (const auto& w : waves) {
    w->at_barrier = false;
    const uint32_t completed = w->completed[size_t(Counter::Lds)];
    std::erase_if(w->lds_on_the_way, [&](const LdsAccess& a) { return a.serial <= completed; });
    for (const LdsAccess& a : w->lds_on_the_way) {
      apply(shadow_of(group, a.at, a.bytes), group.epoch, uint8_t(w->number + 1), a.is_store);
    }
  }
}

}  // namespace tuff::emu::rdna
