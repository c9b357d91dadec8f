#include "devices/nv/pci/gsp_space.h"

#include "base/check.h"
#include "base/log.h"

namespace tuff::devices::nv {

GspSpace::GspSpace(std::shared_ptr<GspCalls> calls, nvrm::Handle device, MmuVersion version,
                   TableMemory& memory)
    : calls_(std::move(calls)), device_(device), pages_(version, memory) {
  nvrm::VaSpaceParameters p{};
  p.flags = nvrm::kSpaceExternallyOwned | nvrm::kSpacePageFaulting;
  space_.emplace(calls_, device_, nvrm::object::VaSpace, "VA space", p);
  calls_->set_page_directory(device_, handle(), pages_.root(), pages_.root_entries());
}

// The firmware knows the table no more before its memory is another's.
GspSpace::~GspSpace() {
  try {
    calls_->unset_page_directory(device_, handle());
  } catch (const Error& e) {
    log_warn("{}", e.what());
  }
}

}  // namespace tuff::devices::nv
