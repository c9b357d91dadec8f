#include "render/spirv_types.h"

#include <bit>
#include <cmath>

#include <spirv/unified1/spirv.hpp>

#include "base/check.h"

namespace tuff::render {
namespace {

[[noreturn]] void lacks(DType t, const char* what) {
  fail<Unsupported>("SPIR-V renderer: the device lacks {} of {}", what, name(t));
}

}  // namespace

DType SpirvTypes::held(DType t) const {
  switch (t) {
    case DType::I8: return f_.i8 ? t : DType::I32;
    case DType::U8: return f_.i8 ? t : DType::U32;
    case DType::I16: return f_.i16 ? t : DType::I32;
    case DType::U16: return f_.i16 ? t : DType::U32;
    case DType::F16: return f_.f16 ? t : DType::U32;
    case DType::BF16: return f_.i16 ? DType::U16 : DType::U32;
    case DType::F8E4M3FN:
    case DType::F8E5M2: return f_.i8 ? DType::U8 : DType::U32;
    default: return t;
  }
}

DType SpirvTypes::stored(DType t) const {
  if (t == DType::Bool || is_float8(t)) return DType::U8;
  if (t == DType::BF16 || (t == DType::F16 && !f_.f16)) return DType::U16;
  return t;
}

Id SpirvTypes::type(DType t) {
  const uint32_t bits = row(t).storage_bits;
  switch (t) {
    case DType::Bool: return boolean();
    case DType::I8:
    case DType::U8:
      if (f_.i8) m_.capability(spv::CapabilityInt8);
      break;
    case DType::I16:
    case DType::U16:
      if (f_.i16) m_.capability(spv::CapabilityInt16);
      break;
    case DType::I64:
    case DType::U64:
      if (!f_.i64) lacks(t, "arithmetic");
      m_.capability(spv::CapabilityInt64);
      break;
    case DType::F16:
      m_.capability(spv::CapabilityFloat16);
      return m_.type(spv::OpTypeFloat, {bits});
    case DType::F64:
      if (!f_.f64) lacks(t, "arithmetic");
      m_.capability(spv::CapabilityFloat64);
      return m_.type(spv::OpTypeFloat, {bits});
    case DType::F32: return m_.type(spv::OpTypeFloat, {bits});
    case DType::I32:
    case DType::U32: break;
    default: fail<Unsupported>("SPIR-V renderer: no register type for {}", name(t));
  }
  return m_.type(spv::OpTypeInt, {bits, is_signed(t) ? 1u : 0u});
}

Id SpirvTypes::memory(DType t) {
  const DType s = stored(t);
  if (size_bytes(s) == 1) {
    if (!f_.storage8) lacks(t, "8-bit storage");
    m_.capability(spv::CapabilityStorageBuffer8BitAccess);
    if (m_.version_minor() < 5) m_.extension("SPV_KHR_8bit_storage");
  } else if (size_bytes(s) == 2) {
    if (!f_.storage16) lacks(t, "16-bit storage");
    m_.capability(spv::CapabilityStorageBuffer16BitAccess);
  }
  return type(s);
}

Id SpirvTypes::vector(Id component, uint32_t n) {
  return m_.type(spv::OpTypeVector, {component, n});
}
Id SpirvTypes::boolean() { return m_.type(spv::OpTypeBool, {}); }
Id SpirvTypes::pointer(uint32_t storage, Id to) {
  return m_.type(spv::OpTypePointer, {storage, to});
}

Id SpirvTypes::integer(DType t, int64_t v) {
  const DType h = held(t);
  return literal(h, Scalar::of_int(h, v).bits);  // narrow: extended
}

Id SpirvTypes::literal(DType t, uint64_t bits) {
  const uint32_t low = static_cast<uint32_t>(bits), high = static_cast<uint32_t>(bits >> 32);
  return size_bytes(t) == 8 ? m_.constant(spv::OpConstant, type(t), {low, high})
                            : m_.constant(spv::OpConstant, type(t), {low});
}

Id SpirvTypes::constant(const Scalar& v) {
  switch (v.dtype) {
    case DType::Bool:
      return m_.constant(v.as_bool() ? spv::OpConstantTrue : spv::OpConstantFalse, boolean());
    case DType::F32:
      return literal(v.dtype, std::bit_cast<uint32_t>(static_cast<float>(v.as_double())));
    case DType::F64: return literal(v.dtype, std::bit_cast<uint64_t>(v.as_double()));
    case DType::F16: return literal(held(v.dtype), f16_from_f64(v.as_double()));
    case DType::BF16: return integer(held(v.dtype), bf16_from_f64(v.as_double()));
    case DType::F8E4M3FN: return integer(held(v.dtype), f8e4m3fn_from_f64(v.as_double()));
    case DType::F8E5M2: return integer(held(v.dtype), f8e5m2_from_f64(v.as_double()));
    default: return integer(v.dtype, v.as_int());
  }
}

Id SpirvTypes::builtin(uint32_t which, Id type) {
  Id& variable = builtins_[which];
  if (!variable) {
    variable = m_.global(pointer(spv::StorageClassInput, type), spv::StorageClassInput, true);
    m_.decorate(variable, spv::DecorationBuiltIn, {which});
  }
  return variable;
}

// The sign bit of the number of workgroups, as t is held: a launch of 2^31 of them does not exist.
Id SpirvTypes::opaque_zero(DType t) {
  const Id word_type = type(DType::U32), triple = vector(word_type, 3);
  const Id counts =
      m_.at_entry(spv::OpLoad, triple, {builtin(spv::BuiltInNumWorkgroups, triple)});
  const Id count = m_.at_entry(spv::OpCompositeExtract, word_type, {counts, 0});
  const Id zero = m_.at_entry(spv::OpShiftRightLogical, word_type, {count, word(31)});
  const DType h = held(t);
  if (h == DType::U32) return zero;
  if (size_bytes(h) == 4) return m_.at_entry(spv::OpBitcast, type(h), {zero});
  const DType bits = size_bytes(h) == 1 ? DType::U8 : size_bytes(h) == 2 ? DType::U16 : DType::U64;
  const Id sized = m_.at_entry(spv::OpUConvert, type(bits), {zero});
  return h == bits ? sized : m_.at_entry(spv::OpBitcast, type(h), {sized});
}

Id SpirvTypes::hidden(Id x, DType t) {
  return m_.pure(spv::OpBitwiseOr, reg(t), {x, opaque_zero(t)});
}
Id SpirvTypes::opaque(Id x, DType t) { return f_.known_zero_products ? x : hidden(x, t); }

Id SpirvTypes::kept_quotient(Id q, DType t) {
  return f_.loses_wide_quotients && size_bytes(t) == 8 ? hidden(q, t) : q;
}

Id SpirvTypes::rounded_half(Id x) {
  if (!f_.folds_f16_casts || held(DType::F16) != DType::F16) return x;
  const Id bits_type = type(DType::U16);
  const Id bits = m_.pure(spv::OpBitcast, bits_type, {x});
  const Id hidden = m_.pure(spv::OpBitwiseOr, bits_type, {bits, opaque_zero(DType::U16)});
  return m_.pure(spv::OpBitcast, type(DType::F16), {hidden});
}

Id SpirvTypes::opaque(const Scalar& v) {
  const DType h = held(v.dtype);
  if (f_.known_zero_products || !is_float(h)) return constant(v);
  if (v.as_double() == 0 && !std::signbit(v.as_double())) return opaque_zero(v.dtype);
  // Beside a 64-bit float there are 64-bit integers, beside a 16-bit one 16-bit ones.
  const DType bits = size_bytes(h) == 2 ? DType::U16 : size_bytes(h) == 4 ? DType::U32 : DType::U64;
  const Id number = m_.at_entry(spv::OpBitcast, type(bits), {constant(v)});
  const Id hidden = m_.at_entry(spv::OpBitwiseOr, type(bits), {number, opaque_zero(bits)});
  return m_.at_entry(spv::OpBitcast, type(h), {hidden});
}

}  // namespace tuff::render
