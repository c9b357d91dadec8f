#include "devices/nv/pci/gsp_va_space.h"

#include <bit>

#include "base/check.h"
#include "base/log.h"
#include "devices/nv/rm/space.h"

namespace tuff::devices::nv {

GspVaSpace::GspVaSpace(std::shared_ptr<GspCalls> calls, nvrm::Handle device, MmuVersion version,
                       TableMemory& memory, VaSpaceKind kind)
    : calls_(std::move(calls)),
      device_(device),
      kind_(kind),
      pages_(version, memory),
      addresses_("NV", kFirstAddress, kEndOfAddresses) {
  nvrm::VaSpaceParameters p{};
  if (kind == VaSpaceKind::Own) p.flags = nvrm::kSpaceExternallyOwned | nvrm::kSpacePageFaulting;
  space_.emplace(calls_, device_, nvrm::object::VaSpace, "VA space", p);
  if (kind == VaSpaceKind::Shared) share_directories();
  else calls_->set_page_directory(device_, handle(), pages_.root(), pages_.root_entries());
}

void GspVaSpace::share_directories() {
  nvrm::CopyReservedDirectories r{};
  r.page_bytes = nvrm::kReservedBytes;
  r.first = nvrm::kReservedFirst;
  r.last = r.first + nvrm::kReservedBytes - 1;
  const int shift = std::countr_zero(nvrm::kReservedBytes);
  for (const PageDirectory& d : pages_.keep_directories(r.first, uint32_t(shift))) {
    constexpr uint32_t video = 1;
    TUFF_CHECK(r.count < r.levels.size());
    r.levels[r.count++] = {d.address, d.size_bytes, video, uint8_t(d.shift), {}};
  }
  calls_->control(handle(), nvrm::control::CopyReservedDirectories,
                  "VASPACE_COPY_SERVER_RESERVED_PDES", r);
}

// The firmware knows the table no more before its memory is another's.
GspVaSpace::~GspVaSpace() {
  if (kind_ == VaSpaceKind::Shared) return;
  try {
    calls_->unset_page_directory(device_, handle());
  } catch (const Error& e) {
    log_warn("{}", e.what());
  }
}

uint64_t GspVaSpace::map(uint64_t physical, uint64_t size_bytes, uint64_t alignment,
                         PageAttributes attributes) {
  const uint64_t address = addresses_.reserve(size_bytes, alignment);
  try {
    std::lock_guard lock(mutex_);
    pages_.map(address, size_bytes, physical, attributes);
  } catch (...) {
    // Where the GPU was lost by it, the table may still have a part of it.
    if (!calls_->is_lost()) addresses_.give_back(address);
    throw;
  }
  return address;
}

void GspVaSpace::unmap(uint64_t address, uint64_t size_bytes) {
  {
    std::lock_guard lock(mutex_);
    pages_.unmap(address, size_bytes);
  }
  addresses_.give_back(address);
}

}  // namespace tuff::devices::nv
