// SpirvBody: what is known of a kernel's function so far: its module, and the values of the ops
// before the current one. Shared by the parts of the SPIR-V renderer's walker (spirv_kernel.h),
// which give each op its values. Every lane combination is a scalar of its own. Must never know
// which op comes next.
#pragma once

#include <unordered_map>
#include <vector>

#include "render/lane_space.h"
#include "render/spirv_kernel_arguments.h"
#include "render/spirv_ops.h"

namespace tuff::render {

// One instance of an op: an id, or for I32 and I64 a sum base + constant (base 0: a number), so
// that the lanes of an address share their base and neighbours are seen.
struct SpirvValue {
  Id base = 0;
  int64_t constant = 0;
  int64_t divisor = 1;  // known to divide the base
  bool operator==(const SpirvValue&) const = default;
};

struct SpirvBody {
  SpirvBody(const kernel::LinearKernel& k, const Target& target, SpirvModule& module);

  size_t position(const ir::Node* u) const;
  // Of an op before the current one, for an instance of the lanes `mask`.
  SpirvValue value(const ir::Node* u, kernel::LaneMask mask, int instance);
  // As value(), of what is selected or stored: see SpirvTypes::opaque.
  SpirvValue chosen(const ir::Node* u, kernel::LaneMask mask, int instance);
  Id id(const SpirvValue& v, DType t);

  const kernel::LinearKernel& kernel;
  const Target& target;
  SpirvModule& m;
  SpirvTypes t;
  SpirvOps ops;
  const LaneSpace space;
  const bool has_matrices;
  SpirvArguments arguments;
  std::vector<std::vector<SpirvValue>> values;  // per op, per instance
  size_t current = 0;                           // op

 private:
  std::unordered_map<const ir::Node*, size_t> position_;
};

}  // namespace tuff::render
