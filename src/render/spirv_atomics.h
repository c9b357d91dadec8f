// An element of a buffer, combined with a value by one atomic operation, or by compare-exchange
// where SPIR-V has none. Called by SpirvKernel for a Store that says so. Must never know of lanes or
// gates.
#pragma once

#include "render/spirv_ops.h"

namespace tuff::render {

class SpirvAtomics {
 public:
  SpirvAtomics(SpirvModule& m, SpirvTypes& t, SpirvOps& ops, const TargetFeatures& f)
      : m_(m), t_(t), ops_(ops), f_(f) {}

  // Whether combine() wants the element as an integer.
  bool takes_words(ir::Op op, DType t) const;
  // `element` points to a `t`, or to a u32 where combine() takes words.
  void combine(ir::Op op, DType t, Id element, Id x);

 private:
  uint32_t instruction(ir::Op op, DType t) const;  // 0: there is none
  void exchange(ir::Op op, DType t, Id element, Id x);

  SpirvModule& m_;
  SpirvTypes& t_;
  SpirvOps& ops_;
  const TargetFeatures& f_;
};

}  // namespace tuff::render
