#include "emu/amd/kernel_memory.h"

namespace tuff::emu::amd {
namespace {


Path path_of(const Access& a) {
  switch (a.kind) {
    case AccessKind::Load: return a.device_scope ? Path::L2 : Path::Vector;
    case AccessKind::ScalarLoad: return a.device_scope ? Path::L2 : Path::Scalar;
    case AccessKind::Fetch: return Path::Code;
    case AccessKind::Store:  // L0 writes through
    case AccessKind::Atomic: break;
  }
  return Path::L2;
}

Request request_of(const Access& a) {
  return {a.address, a.bytes, path_of(a), a.kind != AccessKind::Store,
          a.kind == AccessKind::Store || a.kind == AccessKind::Atomic};
}

}  // namespace

uint8_t* KernelMemory::reach_run(const Access& access) {
  return chip_.caches.reach_if_clean(who_, request_of(access));
}

uint8_t* KernelMemory::reach(const Access& a, Defect& defect) {
  const Request request = request_of(a);
  Conflict conflict;
  uint8_t* bytes = chip_.caches.reach(who_, request, conflict);
  if (!bytes) {
    if (!fault_) fault_ = chip_.caches.fault();
  } else if (conflict.kind != Conflict::Kind::None) [[unlikely]] {
    defect.kind = conflict.kind == Conflict::Kind::Concurrent ? DefectKind::ConcurrentUse
                  : a.kind == AccessKind::Fetch               ? DefectKind::StaleCode
                                                              : DefectKind::StaleData;
    defect.detail = chip_.describe(who_, request, conflict);
  }
  return bytes;
}

const uint8_t* KernelMemory::peek(uint64_t address, uint32_t bytes) {
  return chip_.caches.peek(address, bytes);
}

}  // namespace tuff::emu::amd
