// CAccessGroups: loads and stores of the C renderer that take several instances of an op at once:
// those that lie interleaved in memory, rows that are transposed in registers, and what is loaded
// behind a gate.
#pragma once

#include <vector>

#include "render/c_memory.h"

namespace tuff::render {

class CAccessGroups {
 public:
  CAccessGroups(CBody& b, CMemory& memory) : b_(b), memory_(memory) {}

  // Whether this instance of the load `i` was one of a group, of which all now have values.
  bool load(size_t i, const ir::Node& index, int instance);
  // All instances, of a load without vectors.
  void load_behind_gates(size_t i, const ir::Node& index);
  // The instances that were stored together with this one of the store `i`; empty: none was.
  std::vector<int> store(size_t i, const ir::Node& index, int instance);

 private:
  int64_t step_along(const ir::Node& index, kernel::LaneMask mask, int instance, int bit) const;
  bool share_gate(const ir::Node& index, kernel::LaneMask mask, int instance, int bit) const;
  CValue gates_along(const ir::Node& index, kernel::LaneMask mask, int instance, int bit);

  int interleaved_bit(const ir::Node& index, kernel::LaneMask mask, int instance) const;
  CAccess interleaved_part(const CAccess& a, int v, int n, CValue& gate);
  void load_interleaved(size_t i, const ir::Node& index, int first, int bit);
  void store_interleaved(size_t i, const ir::Node& index, int first, int bit);

  int transposed_bit(const ir::Node& index, kernel::LaneMask mask, int instance) const;
  void load_transposed(size_t i, const ir::Node& index, int first, int bit);

  CBody& b_;
  CMemory& memory_;
};

}  // namespace tuff::render
