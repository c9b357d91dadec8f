#include "render/spirv_ops.h"

#include <spirv/unified1/GLSL.std.450.h>
#include <spirv/unified1/spirv.hpp>

#include <bit>

#include "base/check.h"
#include "ir/op_table.h"

namespace tuff::render {

using ir::Op;

// Opcodes by class of operand; 0: the op does not exist there.
struct SpirvOps::Row {
  Id (SpirvOps::*function)(const Call&) = nullptr;
  uint32_t on_float = 0, on_signed = 0, on_unsigned = 0, on_bool = 0;
};

const SpirvOps::Row* SpirvOps::row_of(Op op) {
  using S = SpirvOps;
  static constexpr ir::OpTable<Row> rows{{
      {Op::Add, {&S::simple, spv::OpFAdd, spv::OpIAdd, spv::OpIAdd, spv::OpLogicalOr}},
      {Op::Sub, {&S::simple, spv::OpFSub, spv::OpISub, spv::OpISub, spv::OpLogicalNotEqual}},
      {Op::Mul, {&S::simple, spv::OpFMul, spv::OpIMul, spv::OpIMul, spv::OpLogicalAnd}},
      {Op::Div, {&S::divide, spv::OpFDiv}},
      {Op::And, {&S::simple, 0, spv::OpBitwiseAnd, spv::OpBitwiseAnd, spv::OpLogicalAnd}},
      {Op::Or, {&S::simple, 0, spv::OpBitwiseOr, spv::OpBitwiseOr, spv::OpLogicalOr}},
      {Op::Xor, {&S::simple, 0, spv::OpBitwiseXor, spv::OpBitwiseXor, spv::OpLogicalNotEqual}},
      {Op::Shl, {&S::simple, 0, spv::OpShiftLeftLogical, spv::OpShiftLeftLogical}},
      {Op::Shr, {&S::shift, 0, spv::OpShiftRightArithmetic, spv::OpShiftRightLogical}},
      {Op::CmpLt, {&S::compare, spv::OpFOrdLessThan, spv::OpSLessThan, spv::OpULessThan}},
      {Op::CmpNe, {&S::compare, spv::OpFUnordNotEqual, spv::OpINotEqual, spv::OpINotEqual,
       spv::OpLogicalNotEqual}},
      {Op::CmpEq, {&S::compare, spv::OpFOrdEqual, spv::OpIEqual, spv::OpIEqual, spv::OpLogicalEqual}},
      {Op::Max, {&S::max}},
      {Op::IDiv, {&S::quotient, 0, spv::OpSDiv, spv::OpUDiv}},
      {Op::IMod, {&S::quotient, 0, spv::OpSDiv, spv::OpUMod}},
      {Op::Neg, {&S::simple, spv::OpFNegate, spv::OpSNegate, spv::OpSNegate}},
      {Op::Recip, {&S::recip, spv::OpFDiv}},      {Op::Sqrt, {&S::extended, GLSLstd450Sqrt}},
      {Op::Exp2, {&S::extended, GLSLstd450Exp2}}, {Op::Log2, {&S::extended, GLSLstd450Log2}},
      {Op::Sin, {&S::extended, GLSLstd450Sin}},   {Op::Trunc, {&S::trunc, GLSLstd450Trunc}},
      {Op::MulAdd, {&S::mul_add}},
  }};
  // Where, Cast and Bitcast look at more than one dtype: emit() has them.
  constexpr auto has_row = [](Op o) {
    const ir::DTypeRule rule = ir::row(o).rule;
    return ir::is_rendered(o) && (rule == ir::DTypeRule::Same || rule == ir::DTypeRule::Bool);
  };
  static_assert(rows.covers(has_row), "render/spirv_ops.cpp: the rows of SpirvOps lack an op");
  return rows.find(op);
}

DType integer_of(size_t bytes, bool with_sign) {
  static constexpr DType kSigned[] = {DType::I8, DType::I16, DType::I32, DType::I64};
  static constexpr DType kUnsigned[] = {DType::U8, DType::U16, DType::U32, DType::U64};
  return (with_sign ? kSigned : kUnsigned)[std::countr_zero(bytes)];
}

namespace {

// The opcode of a row for a dtype; Unsupported where there is none.
template <class Row>
uint32_t opcode(const Row& r, Op which, DType t) {
  const uint32_t op = t == DType::Bool ? r.on_bool
                      : is_float(t)    ? r.on_float
                      : is_signed(t)   ? r.on_signed
                                       : r.on_unsigned;
  if (!op) fail<Unsupported>("SPIR-V renderer: {} of {}", ir::name(which), name(t));
  return op;
}

}  // namespace

Id SpirvOps::emit(const ir::Node& u, std::span<const Id> x) {
  switch (u.op) {
    case Op::Where: return select(x[0], x[1], x[2], u.dtype);
    case Op::Cast: {
      const ir::Node& from = *u.src(0);
      const bool computed_half = from.dtype == DType::F16 && from.op != Op::Load;
      const Id y = cast(computed_half ? t_.rounded_half(x[0]) : x[0], from.dtype, u.dtype);
      return u.dtype == DType::F16 ? t_.rounded_half(y) : y;
    }
    case Op::Bitcast: return bitcast(x[0], u.src(0)->dtype, u.dtype);
    default: break;
  }
  const bool divides = u.op == Op::IDiv || u.op == Op::IMod;
  const bool positive = divides && u.src(1)->is_const() && u.src(1)->const_int() > 0;
  return call({u.op, u.src(0)->dtype, u.dtype, x, positive});
}

Id SpirvOps::binary(Op op, DType t, Id a, Id b) {
  const Id x[] = {a, b};
  return call({op, t, t, x, false});
}

Id SpirvOps::call(const Call& c) {
  const Row* r = row_of(c.op);
  if (!r)
    fail<Unsupported>("SPIR-V renderer: {} of {}; it should have been decomposed",
                      ir::name(c.op), name(c.from));
  if (is_float(c.from) && t_.held(c.from) != c.from)
    fail<Unsupported>("SPIR-V renderer: {} of {}; the device has no such arithmetic",
                      ir::name(c.op), name(c.from));
  return normalized((this->*r->function)(c), c.to);
}

Id SpirvOps::normalized(Id x, DType t) {
  const DType h = t_.held(t);
  if (h == t || is_float(t)) return x;
  const uint32_t unused = 32 - row(t).storage_bits;
  if (is_unsigned(t))
    return m_.pure(spv::OpBitwiseAnd, t_.type(h), {x, t_.integer(h, 0xffffffffu >> unused)});
  const Id up = m_.pure(spv::OpShiftLeftLogical, t_.type(h), {x, t_.word(unused)});
  return m_.pure(spv::OpShiftRightArithmetic, t_.type(h), {up, t_.word(unused)});
}

Id SpirvOps::simple(const Call& c) {
  const uint32_t op = opcode(*row_of(c.op), c.op, c.from);
  const Id result = m_.pure(op, t_.reg(c.to), c.x);
  if (is_float(c.to) && c.x.size() > 1) m_.decorate(result, spv::DecorationNoContraction);
  return result;
}

// Mesa 25.0's compiler for AMD's GPUs tests bit 0 of (x >> k) & 1 whatever k is, of 8 and 16 bits.
Id SpirvOps::shift(const Call& c) {
  if (size_bytes(t_.held(c.from)) >= 4) return simple(c);
  const DType word = is_signed(c.from) ? DType::I32 : DType::U32;
  return cast(binary(c.op, word, cast(c.x[0], c.from, word), cast(c.x[1], c.from, word)), word,
              c.to);
}

Id SpirvOps::compare(const Call& c) {
  if (c.op == Op::CmpLt && c.from == DType::Bool)
    return m_.pure(spv::OpLogicalAnd, t_.boolean(),
                   {m_.pure(spv::OpLogicalNot, t_.boolean(), {c.x[0]}), c.x[1]});
  return simple(c);
}

Id SpirvOps::select(Id condition, Id a, Id b, DType t) {
  return a == b ? a : m_.pure(spv::OpSelect, t_.reg(t), {condition, a, b});
}

// b's NaN is chosen because every ordered comparison with it is false, a's by the second test.
Id SpirvOps::max(const Call& c) {
  const Id a = c.x[0], b = c.x[1], boolean = t_.boolean();
  if (c.from == DType::Bool) return m_.pure(spv::OpLogicalOr, boolean, {a, b});
  if (!is_float(c.from)) {
    const uint32_t greater = is_signed(c.from) ? spv::OpSGreaterThan : spv::OpUGreaterThan;
    return select(m_.pure(greater, boolean, {a, b}), a, b, c.to);
  }
  const Id greater = m_.pure(spv::OpFOrdGreaterThan, boolean, {a, b});
  const Id nan = m_.pure(spv::OpFUnordNotEqual, boolean, {a, a});
  return select(m_.pure(spv::OpLogicalOr, boolean, {greater, nan}), a, b, c.to);
}

// Division by zero and of the least integer by -1 are undefined, remainders of negatives were
// (VK_KHR_maintenance8): divide by a safe divisor, multiply back.
Id SpirvOps::quotient(const Call& c) {
  const Id type = t_.reg(c.from), a = c.x[0], b = c.x[1];
  const uint32_t op = opcode(*row_of(c.op), c.op, c.from);
  const auto remainder = [&](Id q) {
    return m_.pure(spv::OpISub, type, {a, m_.pure(spv::OpIMul, type, {q, b})});
  };
  const auto divided_by = [&](Id divisor) {
    return t_.kept_quotient(m_.pure(op, type, {a, divisor}), c.from);
  };
  const bool by_product = c.op == Op::IMod && is_signed(c.from);
  if (c.positive_divisor) {
    const Id q = divided_by(b);
    return by_product ? remainder(q) : q;
  }
  const Id zero = t_.integer(c.from, 0), one = t_.integer(c.from, 1);
  const Id by_zero = m_.pure(spv::OpIEqual, t_.boolean(), {b, zero});
  Id q;
  if (is_signed(c.from)) {
    const Id by_minus_one = m_.pure(spv::OpIEqual, t_.boolean(), {b, t_.integer(c.from, -1)});
    const Id unsafe = m_.pure(spv::OpLogicalOr, t_.boolean(), {by_zero, by_minus_one});
    q = divided_by(select(unsafe, one, b, c.from));
    q = select(by_minus_one, m_.pure(spv::OpSNegate, type, {a}), q, c.from);
  } else {
    q = divided_by(select(by_zero, one, b, c.from));
  }
  return select(by_zero, zero, by_product ? remainder(q) : q, c.from);
}

// Vulkan promises quotients of float16 for divisors from 2^-14 to 2^14 alone (SPIR-V environment,
// precision of core instructions): a reciprocal of others overflows, or vanishes.
Id SpirvOps::divide(const Call& c) {
  if (c.from != DType::F16) return simple(c);
  const Id wide = binary(Op::Div, DType::F32, cast(c.x[0], DType::F16, DType::F32),
                         cast(c.x[1], DType::F16, DType::F32));
  return t_.rounded_half(cast(wide, DType::F32, DType::F16));
}

Id SpirvOps::recip(const Call& c) {
  const Id one = t_.constant(Scalar::of_double(c.from, 1));
  if (c.from == DType::F16) return binary(Op::Div, c.from, one, c.x[0]);
  return m_.pure(opcode(*row_of(c.op), c.op, c.from), t_.reg(c.to), {one, c.x[0]});
}

Id SpirvOps::extended(const Call& c) {
  const uint32_t instruction = opcode(*row_of(c.op), c.op, c.from);
  const bool wide_exists = c.op == Op::Sqrt || c.op == Op::Trunc;
  if (c.from == DType::F64 && !wide_exists)
    fail<Unsupported>("SPIR-V renderer: {} of float64", ir::name(c.op));
  return m_.pure(spv::OpExtInst, t_.reg(c.to), {m_.glsl(), instruction, c.x[0]});
}

// GLSL.std.450 does not name the sign of a zero. Mesa's gallivm truncates through integers, which
// leaves none, where the CPU cannot round vectors as wide as its own: doubles without AVX-512. It
// takes all doubles from 2^24 on for whole numbers then.
Id SpirvOps::trunc(const Call& c) {
  const Id y = c.from == DType::F64 ? whole_part(c.x[0]) : extended(c);
  const DType bits = integer_of(size_bytes(c.from), false);
  const int64_t sign = int64_t(uint64_t(1) << (row(c.from).storage_bits - 1));
  const Id mask = t_.constant(Scalar::of_int(bits, sign));
  const Id of_x = binary(Op::And, bits, bitcast(c.x[0], c.from, bits), mask);
  return bitcast(binary(Op::Or, bits, bitcast(y, c.from, bits), of_x), bits, c.to);
}

// A double whose magnitude is below 2^52 is rounded by a sum with 2^52; above all are whole.
Id SpirvOps::whole_part(Id x) {
  constexpr DType t = DType::F64, bits = DType::U64;
  const auto less = [&](Id a, Id b) {
    const Id both[] = {a, b};
    return call({Op::CmpLt, t, DType::Bool, both, false});
  };
  const Id unsigned_bits = t_.constant(Scalar::of_int(bits, INT64_MAX));
  const Id magnitude = bitcast(binary(Op::And, bits, bitcast(x, t, bits), unsigned_bits), bits, t);
  const Id whole = t_.constant(Scalar::of_double(t, 0x1p52)),
           one = t_.constant(Scalar::of_double(t, 1));
  const Id near = binary(Op::Sub, t, binary(Op::Add, t, magnitude, whole), whole);
  const Id below = select(less(magnitude, near), binary(Op::Sub, t, near, one), near, t);
  return select(less(magnitude, whole), below, magnitude, t);
}

Id SpirvOps::mul_add(const Call& c) { return mul_add(c.from, c.x[0], c.x[1], c.x[2]); }
Id SpirvOps::mul_add(DType t, Id a, Id b, Id sum) {
  if (is_float(t))
    return m_.pure(spv::OpExtInst, t_.reg(t), {m_.glsl(), GLSLstd450Fma, a, b, sum});
  return binary(Op::Add, t, binary(Op::Mul, t, a, b), sum);
}

// ---- conversions ----------------------------------------------------------------------------

// Integers of any width, both dtypes being as they are held or stored: OpUConvert gives unsigned
// results alone, so a change of sign is a bitcast of its own.
Id SpirvOps::convert_int(Id x, DType from, DType to) {
  if (from == to) return x;
  if (size_bytes(from) != size_bytes(to)) {
    const DType same_sign = integer_of(size_bytes(to), is_signed(from));
    x = m_.pure(is_signed(from) ? spv::OpSConvert : spv::OpUConvert, t_.type(same_sign), {x});
    from = same_sign;
  }
  return from == to ? x : m_.pure(spv::OpBitcast, t_.type(to), {x});
}

Id SpirvOps::half_to_float(Id bits) {
  const Id pair = m_.pure(spv::OpExtInst, t_.vector(t_.type(DType::F32), 2),
                          {m_.glsl(), GLSLstd450UnpackHalf2x16, bits});
  return m_.pure(spv::OpCompositeExtract, t_.type(DType::F32), {pair, 0});
}

Id SpirvOps::float_to_half(Id x, DType held) {
  const Id zero = t_.constant(Scalar::of_double(DType::F32, 0));
  const Id pair = m_.pure(spv::OpCompositeConstruct, t_.vector(t_.type(DType::F32), 2), {x, zero});
  return m_.pure(spv::OpExtInst, t_.type(held), {m_.glsl(), GLSLstd450PackHalf2x16, pair});
}

Id SpirvOps::cast(Id x, DType from, DType to) {
  if (from == to) return x;
  const DType hf = t_.held(from), ht = t_.held(to);
  if (from == DType::BF16 || to == DType::BF16 || is_float8(from) || is_float8(to))
    fail<Unsupported>("SPIR-V renderer: cast of {} to {}; it should have been decomposed",
                      name(from), name(to));
  if (from == DType::F16 && hf != from) return cast(half_to_float(x), DType::F32, to);
  if (to == DType::F16 && ht != to) return float_to_half(cast(x, from, DType::F32), ht);
  if (to == DType::Bool) {
    const uint32_t differs = is_float(from) ? spv::OpFUnordNotEqual : spv::OpINotEqual;
    return m_.pure(differs, t_.boolean(), {x, t_.constant(Scalar::of_int(from, 0))});
  }
  if (from == DType::Bool)
    return select(x, t_.opaque(Scalar::of_int(to, 1)), t_.opaque(Scalar::of_int(to, 0)), to);
  const Id type = t_.type(ht);
  if (is_float(from) && is_float(to)) return m_.pure(spv::OpFConvert, type, {x});
  if (is_float(to))
    return m_.pure(is_signed(from) ? spv::OpConvertSToF : spv::OpConvertUToF, type,
                   {t_.opaque(x, from)});
  if (is_float(from))
    return m_.pure(is_signed(to) ? spv::OpConvertFToS : spv::OpConvertFToU, type, {x});
  return normalized(convert_int(x, hf, ht), to);
}

// Both forms as integers of the memory width, then the other dtype's register form.
Id SpirvOps::bitcast(Id x, DType from, DType to) {
  const DType hf = t_.held(from), ht = t_.held(to);
  if (hf == ht) return is_float(to) && is_signed(from) && hf != from ? normalized(x, to) : x;
  if (is_int(hf) && is_float(ht)) x = t_.opaque(x, from);
  if (size_bytes(hf) == size_bytes(ht)) {
    const Id y = m_.pure(spv::OpBitcast, t_.type(ht), {x});
    if (is_int(to) || size_bytes(ht) == size_bytes(to)) return normalized(y, to);
    const Id mask = t_.integer(ht, is_float8(to) ? 0xff : 0xffff);
    return m_.pure(spv::OpBitwiseAnd, t_.type(ht), {y, mask});
  }
  // One side is held wide: an integer (or bits) of 32 beside a real 16-bit type.
  const auto narrow = [](DType t) { return integer_of(2, is_signed(t)); };
  if (size_bytes(hf) == 4) {
    const Id small = convert_int(x, hf, narrow(hf));
    return ht == narrow(hf) ? small : m_.pure(spv::OpBitcast, t_.type(ht), {small});
  }
  const DType small_type = narrow(ht);
  const Id small = hf == small_type ? x : m_.pure(spv::OpBitcast, t_.type(small_type), {x});
  return normalized(convert_int(small, small_type, ht), to);
}

Id SpirvOps::from_memory(Id x, DType t) {
  const DType stored = t_.stored(t), held = t_.held(t);
  if (t != DType::Bool) return stored == held ? x : convert_int(x, stored, held);
  const DType wide = t_.held(DType::U8);
  const Id number = stored == wide ? x : convert_int(x, stored, wide);
  return m_.pure(spv::OpINotEqual, t_.boolean(), {number, t_.integer(wide, 0)});
}

Id SpirvOps::to_memory(Id x, DType t) {
  const DType stored = t_.stored(t), held = t_.held(t);
  if (t != DType::Bool) return stored == held ? x : convert_int(x, held, stored);
  const DType wide = t_.held(DType::U8);
  const Id number =
      m_.pure(spv::OpSelect, t_.type(wide), {x, t_.integer(wide, 1), t_.integer(wide, 0)});
  return stored == wide ? number : convert_int(number, wide, stored);
}

Id SpirvOps::from_word(Id word, uint32_t count, uint32_t number, DType t) {
  const Id element = t_.memory(t);
  const Id all = m_.pure(spv::OpBitcast, t_.vector(element, count), {word});
  return from_memory(m_.pure(spv::OpCompositeExtract, element, {all, number}), t);
}

Id SpirvOps::to_word(std::span<const Id> x, DType t) {
  std::vector<Id> elements;
  for (const Id v : x) elements.push_back(to_memory(v, t));
  const Id type = t_.vector(t_.memory(t), static_cast<uint32_t>(x.size()));
  return m_.value(spv::OpBitcast, t_.type(integer_of(x.size() * size_bytes(t), false)),
                  {m_.value(spv::OpCompositeConstruct, type, elements)});
}

}  // namespace tuff::render
