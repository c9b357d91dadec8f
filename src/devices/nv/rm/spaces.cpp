#include "devices/nv/rm/spaces.h"

#include "devices/nv/rm/uvm_space.h"

namespace tuff::devices::nv {

void Spaces::add(UvmSpace& space) {
  std::lock_guard lock(mutex_);
  for (UvmSpace* other : spaces_) {
    if (!join(space, *other)) continue;
    peers_.emplace(&space, other);
    peers_.emplace(other, &space);
  }
  spaces_.push_back(&space);
}

// UVM takes the mappings away with the GPU's registration.
void Spaces::remove(const UvmSpace& space) noexcept {
  std::lock_guard lock(mutex_);
  std::erase(spaces_, &space);
  std::erase_if(peers_, [&](const auto& p) { return p.first == &space || p.second == &space; });
}

bool Spaces::are_peers(const UvmSpace& a, const UvmSpace& b) const {
  std::lock_guard lock(mutex_);
  return peers_.contains({&a, &b});
}

// Over NVLink GPUs are peers once they are registered, and asking for it is refused (uvm_va_space.c,
// register_gpu_peers and uvm_api_enable_peer_access): so after a refusal a mapping is tried.
bool Spaces::join(UvmSpace& a, UvmSpace& b) {
  nvrm::uvm::PeerAccess access{a.facts().uuid, b.facts().uuid, 0};
  try {
    a.client().uvm(nvrm::uvm::kEnablePeerAccess, "UVM_ENABLE_PEER_ACCESS", access);
    return true;
  } catch (const Error&) {
  }
  try {
    UvmBuffer tried(a, kPageBytes, MemoryDomain::Video);
    tried.map_for(b);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace tuff::devices::nv
