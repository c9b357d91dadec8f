// The graph of roots: which realized nodes the kernel of each root reads, and what kind of kernel
// it is. Called by linearize to share kernels among row reductions without making a cycle.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/fuse.h"

namespace tuff::sched {

struct RootGraph {
  explicit RootGraph(const FusePlan& plan);

  std::vector<uint32_t> roots;               // positions, topological
  std::vector<std::vector<uint32_t>> reads;  // by position: roots read (through Assigns too)
  std::vector<std::vector<uint32_t>> users;  // by position: roots that read it
  std::vector<uint8_t> reduces;              // by position: the kernel holds a Reduce
  std::vector<uint8_t> streams;              // ... which reads some buffer element by element, once

  // Which kernel a root is computed in: that of its host.
  std::vector<uint32_t> host;
  std::vector<std::vector<uint32_t>>
      members;  // of a host: the roots computed in its kernel beside it

  // The host whose kernel may also compute p's group: same shape, row by row, and nothing in
  // between.
  bool may_absorb(uint32_t into, uint32_t p) const;
  void absorb(uint32_t into, uint32_t p);
  void release(uint32_t into);  // its members become kernels of their own again

 private:
  void scan(uint32_t root, std::vector<uint32_t>& stamp);
  bool reaches_through_others(uint32_t into, uint32_t p) const;

  const FusePlan& plan_;
};

}  // namespace tuff::sched
