// Spaces: which GPUs of a process are peers: reach each other's video memory; and where the addresses
// lie that they share, since unified memory (UVM) keeps ranges for the process and not for a GPU.
// Owned by a Client, used by Space.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/os_nvrm.h"

namespace tuff::devices::nv {

class Space;

// All that addresses have room for in methods and QMDs, beyond where drivers put their own.
inline constexpr uint64_t kFirstAddress = 1ull << 36, kEndOfAddresses = 1ull << 40;

// The VA spaces that are registered with UVM, and the pairs of them that reach each other.
class Spaces {
 public:
  // Lets it and each of the others reach the other's video memory, where the driver does so.
  void add(Space& space);
  void remove(const Space& space) noexcept;
  bool are_peers(const Space& a, const Space& b) const;

 private:
  static bool join(Space& a, Space& b);
  mutable std::mutex mutex_;
  std::vector<Space*> spaces_;
  std::set<std::pair<const Space*, const Space*>> peers_;  // both ways
};

}  // namespace tuff::devices::nv
