// Addresses: what the GPUs of a process share of addresses, since unified memory (UVM) keeps ranges
// of them for the process and not for a GPU; and which of their GPUs are peers: reach each other's
// video memory. Owned by a Client, used by Space.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "base/os_nvrm.h"

namespace tuff::devices::nv {

class Space;

class Addresses {
 public:
  Addresses();
  // That nothing has; OutOfMemory.
  uint64_t reserve(uint64_t size_bytes, uint64_t alignment);
  void give_back(uint64_t address) noexcept;

 private:
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> used_;  // ends, by address
  uint64_t next_;
};

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
