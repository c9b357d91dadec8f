// SpirvTypes: how each dtype is held in registers and in memory on one Target, and its constants.
// Called by the SPIR-V renderer's other files. Must never know UOps.
// A narrow integer that the Target cannot compute with is held as 32 bits, sign- or zero-extended;
// F16 without arithmetic and BF16 are held as their bits; Bool is OpTypeBool, in memory a u8.
#pragma once

#include "base/target.h"
#include "render/spirv_module.h"

namespace tuff::render {

class SpirvTypes {
 public:
  SpirvTypes(SpirvModule& m, const TargetFeatures& f) : m_(m), f_(f) {}

  DType held(DType t) const;    // the dtype of t's register form; t itself where nothing is special
  DType stored(DType t) const;  // the dtype of t's memory form
  Id type(DType t);             // OpType of a dtype as it is, declaring capabilities
  Id reg(DType t) { return type(held(t)); }
  Id memory(DType t);  // declares the storage capability; Unsupported without it
  Id vector(Id component, uint32_t n);
  Id boolean();
  Id pointer(uint32_t storage, Id to);
  Id constant(const Scalar& v);    // in register form
  Id integer(DType t, int64_t v);  // of type(held(t)), wrapped
  Id word(uint32_t v) { return integer(DType::U32, v); }

 private:
  SpirvModule& m_;
  const TargetFeatures& f_;
};

}  // namespace tuff::render
