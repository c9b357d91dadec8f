#include "emu/rdna/machine.h"

#include "base/check.h"

namespace tuff::emu::rdna {
namespace {

const char* verb(AccessKind kind) {
  switch (kind) {
    case AccessKind::Store: return "write";
    case AccessKind::Atomic: return "change";
    case AccessKind::Fetch: return "execute";
    default: return "read";
  }
}

}  // namespace

uint8_t* Machine::reach(const Wave& w, uint32_t lane, const Access& access, bool returns) {
  defect_.kind.reset();
  uint8_t* bytes = memory_.reach(access, defect_);
  if (!bytes) {
    report(w, FindingKind::UnmappedAccess, lane, access.address,
           fmt::format("{} bytes to {}", access.bytes, verb(access.kind)));
    stop();
    return nullptr;
  }
  if (defect_.kind) {
    report(w, kind_of(*defect_.kind), lane, access.address, std::move(defect_.detail));
  }
  if (!races_ || (access.kind != AccessKind::Atomic && races_->note(access))) return bytes;
  if (auto race = races_->touch(access, returns, w.unfinished_since)) {
    report(w, FindingKind::GlobalRace, lane, access.address, std::move(*race));
  }
  return bytes;
}

// With stores on their way what comes after is not apart from what came before.
void Machine::waited_for_loads(const Wave& w) {
  if (races_ && w.unfinished_since == 0) races_->advance(w.group->number);
}

void Machine::waited_for_stores(Wave& w) {
  w.unfinished_since = 0;
  if (races_) races_->advance(w.group->number);
}

void Machine::report(const Wave& w, FindingKind kind, uint32_t lane, uint64_t data_address,
                     std::string detail) {
  const uint64_t at = current ? current->address : w.pc;
  for (Finding& known : findings_) {
    if (known.kind == kind && known.code_address == at) {
      ++known.times;
      return;
    }
  }
  findings_.push_back({kind, kernel_, current ? text_of(*current) : "", at, w.group->number,
                       w.number, lane, data_address, std::move(detail)});
}

}  // namespace tuff::emu::rdna
