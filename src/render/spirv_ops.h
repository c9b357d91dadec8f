// SpirvOps: one ALU op on scalars as SPIR-V instructions, from a table with one row per op.
// Called by the SPIR-V renderer's walker. Must never know lanes, loops or memory.
#pragma once

#include "ir/uop.h"
#include "render/spirv_types.h"

namespace tuff::render {

DType integer_of(size_t bytes, bool with_sign);  // 1, 2, 4 or 8

class SpirvOps {
 public:
  // Float arithmetic other than MulAdd is decorated NoContraction: drivers may otherwise fuse it,
  // and add constants up before what they are added to (Mesa's NIR does).
  SpirvOps(SpirvModule& m, SpirvTypes& t) : m_(m), t_(t) {}

  // The result in register form; `x` are the sources in theirs. Unsupported names op and dtype.
  Id emit(const ir::Node& u, std::span<const Id> x);
  // The same for an op of two operands of one dtype (the folding of a Reduce).
  Id binary(ir::Op op, DType t, Id a, Id b);
  Id mul_add(DType t, Id a, Id b, Id sum);
  Id cast(Id x, DType from, DType to);
  Id select(Id condition, Id a, Id b, DType t);
  // Between register and memory form.
  Id from_memory(Id x, DType t);
  Id to_memory(Id x, DType t);
  // The same of a word of so many elements, where the Target computes with what memory holds.
  Id from_word(Id word, uint32_t count, uint32_t number, DType t);
  Id to_word(std::span<const Id> x, DType t);

 private:
  struct Call {
    ir::Op op;
    DType from, to;
    std::span<const Id> x;
    bool positive_divisor;
  };
  struct Row;
  static const Row* row_of(ir::Op op);
  Id simple(const Call& c);
  Id compare(const Call& c);
  Id max(const Call& c);
  Id quotient(const Call& c);
  Id divide(const Call& c);
  Id shift(const Call& c);
  Id recip(const Call& c);
  Id extended(const Call& c);
  Id trunc(const Call& c);
  Id whole_part(Id x);
  Id mul_add(const Call& c);
  Id bitcast(Id x, DType from, DType to);
  Id convert_int(Id x, DType from, DType to);
  Id half_to_float(Id bits);
  Id float_to_half(Id x, DType held);
  Id normalized(Id x, DType t);  // a narrow integer that is held wide, wrapped to its width
  Id call(const Call& c);

  SpirvModule& m_;
  SpirvTypes& t_;
};

}  // namespace tuff::render
