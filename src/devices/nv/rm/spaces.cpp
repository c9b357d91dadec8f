#include "devices/nv/rm/spaces.h"

#include <algorithm>

#include "base/arith.h"
#include "devices/nv/rm/memory.h"

namespace tuff::devices::nv {
namespace {

// All that addresses have room for in methods and QMDs, beyond where drivers put their own.
constexpr uint64_t kFirstAddress = 1ull << 36, kEndOfAddresses = 1ull << 40;

}  // namespace

Addresses::Addresses() : next_(kFirstAddress) {}

// The next that are free behind those given out last: what was freed is used late again, so that a
// stray access to it is a fault.
uint64_t Addresses::reserve(uint64_t size_bytes, uint64_t alignment) {
  std::lock_guard lock(mutex_);
  for (const uint64_t from : {next_, kFirstAddress}) {
    uint64_t at = align_up(from, alignment);
    auto after = used_.lower_bound(at);
    if (after != used_.begin()) at = std::max(at, align_up(std::prev(after)->second, alignment));
    while (after != used_.end() && after->first < at + size_bytes) {
      at = align_up(after->second, alignment);
      ++after;
    }
    if (at + size_bytes > kEndOfAddresses) continue;
    used_[at] = at + size_bytes + kPageBytes;  // nothing lies directly behind
    next_ = used_[at];
    return at;
  }
  fail<OutOfMemory>("NV: no addresses are left for {} bytes", size_bytes);
}

void Addresses::give_back(uint64_t address) noexcept {
  std::lock_guard lock(mutex_);
  used_.erase(address);
}

// ---- peers

void Spaces::add(Space& space) {
  std::lock_guard lock(mutex_);
  for (Space* other : spaces_) {
    if (!join(space, *other)) continue;
    peers_.emplace(&space, other);
    peers_.emplace(other, &space);
  }
  spaces_.push_back(&space);
}

// UVM takes the mappings away with the GPU's registration.
void Spaces::remove(const Space& space) noexcept {
  std::lock_guard lock(mutex_);
  std::erase(spaces_, &space);
  std::erase_if(peers_, [&](const auto& p) { return p.first == &space || p.second == &space; });
}

bool Spaces::are_peers(const Space& a, const Space& b) const {
  std::lock_guard lock(mutex_);
  return peers_.contains({&a, &b});
}

// Over NVLink GPUs are peers once they are registered, and asking for it is refused (uvm_va_space.c,
// register_gpu_peers and uvm_api_enable_peer_access): so after a refusal a mapping is tried.
bool Spaces::join(Space& a, Space& b) {
  nvrm::uvm::PeerAccess access{a.gpu().facts().uuid, b.gpu().facts().uuid, 0};
  try {
    a.gpu().client()->uvm(nvrm::uvm::kEnablePeerAccess, "UVM_ENABLE_PEER_ACCESS", access);
    return true;
  } catch (const Error&) {
  }
  try {
    Buffer tried(a, kPageBytes, MemoryDomain::Video);
    tried.map_for(b);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace tuff::devices::nv
