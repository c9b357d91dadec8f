#include "emu/amd/chip.h"

#include "base/check.h"

namespace tuff::emu::amd {
namespace {

const char* cache_of(Path path) {
  switch (path) {
    case Path::Vector: return "L0 or L1 (GLV_INV, GL1_INV)";
    case Path::Scalar: return "scalar cache or L1 (GLK_INV, GL1_INV)";
    case Path::Code: return "instruction cache or L1 (GLI_INV, GL1_INV)";
    case Path::L2: break;
  }
  return "L2";
}

}  // namespace

void Chip::restart_serials() {
  caches.clear();
  code.invalidate();
  restart();
}

void Chip::report(FindingKind kind, uint32_t queue, uint64_t address, std::string what) {
  events.report({kind, index, queue, address, std::move(what)});
}

std::string Chip::describe(const Accessor& who, const Request& request, const Conflict& c) const {
  return Operations::describe(who, request, c, cache_of(request.path));
}

void Chip::report(const Accessor& who, const Request& request, const Conflict& conflict) {
  std::string what = describe(who, request, conflict);
  if (!reported_.insert(what).second) return;
  report(conflict.kind == Conflict::Kind::Concurrent ? FindingKind::ConcurrentUse
                                                     : FindingKind::StaleData,
         who.queue, conflict.address, std::move(what));
}

}  // namespace tuff::emu::amd
