// Spaces: which GPUs of a process are peers: reach each other's video memory; and where the addresses
// lie that they share, since unified memory (UVM) keeps ranges for the process and not for a GPU.
// Owned by a Client, used by UvmSpace.
#pragma once

#include <cstdint>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "devices/nv/rm/space.h"

namespace tuff::devices::nv {

class UvmSpace;

// The VA spaces that are registered with UVM, and the pairs of them that reach each other.
class Spaces {
 public:
  // Lets it and each of the others reach the other's video memory, where the driver does so.
  void add(UvmSpace& space);
  void remove(const UvmSpace& space) noexcept;
  bool are_peers(const UvmSpace& a, const UvmSpace& b) const;

 private:
  static bool join(UvmSpace& a, UvmSpace& b);
  mutable std::mutex mutex_;
  std::vector<UvmSpace*> spaces_;
  std::set<std::pair<const UvmSpace*, const UvmSpace*>> peers_;  // both ways
};

}  // namespace tuff::devices::nv
