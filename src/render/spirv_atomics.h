// An element of a buffer, combined with a value by one atomic operation, or by compare-exchange.
// Called by SpirvKernel for a Store that says so. Must never know of lanes or gates.
#pragma once

#include "render/spirv_ops.h"

namespace tuff::render {

class SpirvAtomics {
 public:
  SpirvAtomics(SpirvModule& m, SpirvTypes& t, SpirvOps& ops) : m_(m), t_(t), ops_(ops) {}

  // x of dtype t; `element` points to a t, or to a u32 with its bits.
  void combine(ir::Op op, DType t, DType held, Id element, Id x);

 private:
  void exchange(ir::Op op, DType t, Id element, Id x);

  SpirvModule& m_;
  SpirvTypes& t_;
  SpirvOps& ops_;
};

}  // namespace tuff::render
