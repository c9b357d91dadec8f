#include "render/spirv_values.h"

#include <bit>
#include <cmath>
#include <functional>

#include <spirv/unified1/GLSL.std.450.h>
#include <spirv/unified1/spirv.hpp>

#include <tuff/dtype.h>

#include "base/check.h"
#include "base/narrow_float.h"

namespace tuff::render::testing {
namespace {

constexpr uint64_t kUndefined = 0xbadbadbadbadbadb;

int64_t as_signed(uint64_t v, uint32_t bits) { return int64_t(v << (64 - bits)) >> (64 - bits); }
double as_double(uint64_t v, uint32_t bits) {
  switch (bits) {
    case 16: return double(f16_to_f32(uint16_t(v)));
    case 32: return double(std::bit_cast<float>(uint32_t(v)));
    default: return std::bit_cast<double>(v);
  }
}
// Rounded once: a double holds what one operation on narrower floats gives closely enough.
uint64_t from_double(double v, uint32_t bits) {
  switch (bits) {
    case 16: return f16_from_f64(v);
    case 32: return std::bit_cast<uint32_t>(float(v));
    default: return std::bit_cast<uint64_t>(v);
  }
}

uint64_t on_floats(uint32_t op, uint32_t bits, std::span<const uint64_t> x) {
  const double a = as_double(x[0], bits), b = x.size() > 1 ? as_double(x[1], bits) : 0;
  const bool ordered = !std::isnan(a) && !std::isnan(b);
  switch (op) {
    case spv::OpFAdd: return from_double(a + b, bits);
    case spv::OpFSub: return from_double(a - b, bits);
    case spv::OpFMul: return from_double(a * b, bits);
    case spv::OpFDiv: return from_double(a / b, bits);
    case spv::OpFNegate: return x[0] ^ uint64_t(1) << (bits - 1);
    case spv::OpFOrdLessThan: return a < b;
    case spv::OpFOrdGreaterThan: return a > b;
    case spv::OpFOrdEqual: return a == b;
    case spv::OpFUnordNotEqual: return !ordered || a != b;
    default: fail<InternalError>("SPIR-V interpreter: opcode {} of floats", op);
  }
}

uint64_t quotient(uint32_t op, uint32_t bits, std::span<const uint64_t> x) {
  const int64_t a = as_signed(x[0], bits), b = as_signed(x[1], bits);
  if (x[1] == 0) return kUndefined;
  if (op == spv::OpUDiv) return x[0] / x[1];
  if (op == spv::OpUMod) return x[0] % x[1];
  const bool overflows = b == -1 && a == as_signed(uint64_t(1) << (bits - 1), bits);
  return overflows ? kUndefined : uint64_t(a / b);
}

uint64_t shift(uint32_t op, uint32_t bits, std::span<const uint64_t> x) {
  if (x[1] >= bits) return kUndefined;
  if (op == spv::OpShiftLeftLogical) return x[0] << x[1];
  if (op == spv::OpShiftRightLogical) return x[0] >> x[1];
  return uint64_t(as_signed(x[0], bits) >> x[1]);
}

// Of integers and bools alike; bools have one bit.
uint64_t on_integers(uint32_t op, uint32_t bits, std::span<const uint64_t> x) {
  const auto s = [&](size_t i) { return as_signed(x[i], bits); };
  switch (op) {
    case spv::OpIAdd: return x[0] + x[1];
    case spv::OpISub: return x[0] - x[1];
    case spv::OpIMul: return x[0] * x[1];
    case spv::OpSNegate: return -x[0];
    case spv::OpNot: return ~x[0];
    case spv::OpLogicalNot: return x[0] ^ 1;
    case spv::OpBitwiseAnd:
    case spv::OpLogicalAnd: return x[0] & x[1];
    case spv::OpBitwiseOr:
    case spv::OpLogicalOr: return x[0] | x[1];
    case spv::OpBitwiseXor: return x[0] ^ x[1];
    case spv::OpIEqual:
    case spv::OpLogicalEqual: return x[0] == x[1];
    case spv::OpINotEqual:
    case spv::OpLogicalNotEqual: return x[0] != x[1];
    case spv::OpULessThan: return x[0] < x[1];
    case spv::OpUGreaterThan: return x[0] > x[1];
    case spv::OpSLessThan: return s(0) < s(1);
    case spv::OpSGreaterThan: return s(0) > s(1);
    case spv::OpUConvert: return x[0];
    case spv::OpSConvert: return uint64_t(s(0));
    case spv::OpSDiv:
    case spv::OpUDiv:
    case spv::OpUMod: return quotient(op, bits, x);
    case spv::OpShiftLeftLogical:
    case spv::OpShiftRightLogical:
    case spv::OpShiftRightArithmetic: return shift(op, bits, x);
    default: fail<InternalError>("SPIR-V interpreter: opcode {} of integers", op);
  }
}

uint64_t float_to_integer(double v, bool to_signed, uint32_t bits) {
  const double least = to_signed ? -std::ldexp(1, int(bits) - 1) : 0;
  const double end = std::ldexp(1, int(bits) - (to_signed ? 1 : 0));
  const double whole = std::trunc(v);
  if (!(whole >= least && whole < end)) return kUndefined;
  return to_signed ? uint64_t(int64_t(whole)) : uint64_t(whole);
}

}  // namespace

uint64_t masked(uint64_t v, uint32_t bits) {
  return bits >= 64 ? v : v & ((uint64_t(1) << bits) - 1);
}

uint64_t arithmetic(uint32_t op, const Type& from, const Type& to, std::span<const uint64_t> x) {
  const auto width = [](const Type& t) { return t.op == spv::OpTypeBool ? 1 : t.bits; };
  const uint32_t in = width(from), out = width(to);
  switch (op) {
    case spv::OpFConvert: return from_double(as_double(x[0], in), out);
    case spv::OpConvertSToF:
      // At once: by way of a double an integer of 64 bits would be rounded twice.
      return out == 32 ? std::bit_cast<uint32_t>(float(as_signed(x[0], in)))
                       : from_double(double(as_signed(x[0], in)), out);
    case spv::OpConvertUToF:
      return out == 32 ? std::bit_cast<uint32_t>(float(x[0])) : from_double(double(x[0]), out);
    case spv::OpConvertFToS:
    case spv::OpConvertFToU:
      return masked(float_to_integer(as_double(x[0], in), op == spv::OpConvertFToS, out), out);
    default: break;
  }
  const uint64_t bits = from.op == spv::OpTypeFloat ? on_floats(op, in, x) : on_integers(op, in, x);
  return masked(bits, out);
}

Value extended(uint32_t number, const Type& component, std::span<const Value> x) {
  const uint32_t bits = component.bits;
  const auto of = [&](double (*f)(double)) {
    return Value{from_double(f(as_double(x[0][0], bits)), bits)};
  };
  switch (number) {
    case GLSLstd450Sqrt: return of([](double v) { return std::sqrt(v); });
    case GLSLstd450Exp2: return of([](double v) { return std::exp2(v); });
    case GLSLstd450Log2: return of([](double v) { return std::log2(v); });
    case GLSLstd450Sin: return of([](double v) { return std::sin(v); });
    case GLSLstd450Trunc: return of([](double v) { return std::trunc(v); });
    case GLSLstd450Fma: {
      const double a = as_double(x[0][0], bits), b = as_double(x[1][0], bits),
                   c = as_double(x[2][0], bits);
      if (bits == 32) return {std::bit_cast<uint32_t>(std::fma(float(a), float(b), float(c)))};
      return {from_double(std::fma(a, b, c), bits)};
    }
    case GLSLstd450UnpackHalf2x16: {
      const auto half = [&](int shift) {
        return std::bit_cast<uint32_t>(f16_to_f32(uint16_t(x[0][0] >> shift)));
      };
      return {half(0), half(16)};
    }
    case GLSLstd450PackHalf2x16:
      return {f16_from_f64(as_double(x[0][0], 32)) | uint64_t(f16_from_f64(as_double(x[0][1], 32)))
                                                         << 16};
    default: fail<InternalError>("SPIR-V interpreter: extended instruction {}", number);
  }
}

}  // namespace tuff::render::testing
