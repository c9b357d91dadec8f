// SpirvTypes: how each dtype is held in registers and in memory on one Target, and its constants.
// Called by the SPIR-V renderer's other files. Must never know UOps.
// A narrow integer that the Target cannot compute with is held as 32 bits, sign- or zero-extended;
// F16 without arithmetic and BF16 are held as their bits; Bool is OpTypeBool, in memory a u8.
#pragma once

#include <map>

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
  Id builtin(uint32_t which, Id type);  // the input variable
  // A driver that lacks known_zero_products must not know any float to be 0. It then knows none
  // that is not a constant standing in an instruction of arithmetic, if every 0, every constant
  // that is selected or stored, and every integer that becomes a float is opaque.
  Id opaque(const Scalar& v);  // constant(v), but no driver knows it
  Id opaque(Id x, DType t);    // x, an integer as t is held
  // x, an f16 that was computed and becomes another dtype, or that another dtype has become: where
  // the driver folds casts, it cannot tell what x was computed from.
  Id rounded_half(Id x);
  // q, what a division gives: where the driver loses wide ones, it cannot tell that q is one.
  Id kept_quotient(Id q, DType t);

 private:
  Id opaque_zero(DType t);
  Id hidden(Id x, DType t);            // x | opaque_zero(t)
  Id literal(DType t, uint64_t bits);  // a constant of type(t)
  SpirvModule& m_;
  const TargetFeatures& f_;
  std::map<uint32_t, Id> builtins_;
};

}  // namespace tuff::render
