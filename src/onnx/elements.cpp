#include "onnx/elements.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace tuff::onnx {

using io::onnx::ElementType;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Integers that are held in 8 bits.
struct NarrowInteger {
  ElementType type;
  DType held;
  int bits;
};
constexpr NarrowInteger kIntegers[] = {
    {ElementType::Uint4, DType::U8, 4},
    {ElementType::Int4, DType::I8, 4},
    {ElementType::Uint2, DType::U8, 2},
    {ElementType::Int2, DType::I8, 2},
};

// Floats that are held in F16: a sign, then these bits. "UZ": the code of -0 is the only NaN;
// the others have none.
struct NarrowFloat {
  ElementType type;
  int exponent, mantissa, bias;
  double largest;
  bool is_uz;
  int bits() const { return 1 + exponent + mantissa; }
};
constexpr NarrowFloat kFloats[] = {
    {ElementType::Float8E4M3FNUZ, 4, 3, 8, 240, true},
    {ElementType::Float8E5M2FNUZ, 5, 2, 16, 57344, true},
    {ElementType::Float4E2M1, 2, 1, 1, 6, false},
};

const NarrowInteger* narrow_integer(ElementType t) {
  const auto* row = std::ranges::find(kIntegers, t, &NarrowInteger::type);
  return row == std::end(kIntegers) ? nullptr : row;
}
const NarrowFloat* narrow_float(ElementType t) {
  const auto* row = std::ranges::find(kFloats, t, &NarrowFloat::type);
  return row == std::end(kFloats) ? nullptr : row;
}

// ---- contents

double value_of(const NarrowFloat& f, unsigned code) {
  const unsigned magnitude = code & ((1u << (f.bits() - 1)) - 1);
  const bool negative = code != magnitude;
  if (f.is_uz && negative && magnitude == 0) return kNan;
  const unsigned exponent = magnitude >> f.mantissa, rest = magnitude & ((1u << f.mantissa) - 1);
  const unsigned whole = exponent == 0 ? rest : rest + (1u << f.mantissa);
  const double value =
      std::ldexp(double(whole), int(std::max(exponent, 1u)) - f.bias - f.mantissa);
  return negative ? -value : value;
}

// A power of two.
double e8m0_value(unsigned code) { return code == 255 ? kNan : std::ldexp(1.0, int(code) - 127); }

Scalar decoded(ElementType type, unsigned code) {
  const DType held = dtype_of(type);
  if (const NarrowFloat* f = narrow_float(type)) return Scalar::of_double(held, value_of(*f, code));
  if (type == ElementType::Float8E8M0) return Scalar::of_double(held, e8m0_value(code));
  const int bits = int(io::onnx::size_bits(type));
  const bool negative = is_signed(held) && (code >> (bits - 1)) != 0;
  return Scalar::of_int(held, int64_t(code) - (negative ? int64_t{1} << bits : 0));
}

// ---- conversions

Tensor low_bits(const Tensor& x, const NarrowInteger& to) {
  const int64_t end = int64_t{1} << to.bits;
  const Tensor low = x.cast(DType::I32) & (end - 1);
  return (is_signed(to.held) ? Tensor::where(low >= end / 2, low - end, low) : low).cast(to.held);
}

DType floating(DType dtype) { return is_float(dtype) ? accumulator(dtype) : DType::F32; }

constexpr int kExponentShift = 23;  // of F32
constexpr int64_t kExponentBits = 0xff, kFractionEnd = int64_t{1} << kExponentShift;

Tensor bits_of(const Tensor& x) { return x.cast(DType::F32).bitcast(DType::I32); }

// Rounded to even by a step that follows from the exponent, which is a power of two: every
// operation but round() is exact.
Tensor rounded(const Tensor& x, const NarrowFloat& to) {
  const int64_t least = int64_t(127 + 1 - to.bias) << kExponentShift;  // of the subnormals
  const Tensor exponent = (bits_of(x) & (kExponentBits << kExponentShift)).clamp(least);
  const double scale = std::ldexp(1.0, to.mantissa);
  const Tensor power = exponent.bitcast(DType::F32).cast(x.dtype()),
               inverse = ((int64_t{254} << kExponentShift) - exponent)
                             .bitcast(DType::F32)
                             .cast(x.dtype());
  return (x * inverse * scale).round() * (power * (1 / scale));
}

Tensor to_narrow_float(const Tensor& given, const NarrowFloat& to, bool saturate) {
  const Tensor x = given.cast(floating(given.dtype()));
  // Further out the step would be beyond all floats; inside it rounding tells what is too large.
  Tensor y = rounded(x.clamp(-2 * to.largest, 2 * to.largest), to);
  if (to.is_uz && !saturate)
    y = Tensor::where(y.abs() > to.largest, kNan, y);
  else
    y = y.clamp(-to.largest, to.largest);
  y = Tensor::where(x.isnan(), to.is_uz ? kNan : 0.0, y);
  if (to.is_uz) y = Tensor::where(y == 0, 0.0, y);
  return y.cast(DType::F16);
}

// By the bits of F32, whose exponent it is, rounded.
Tensor to_e8m0(const Tensor& given, const Conversion& how) {
  const Tensor x = given.cast(DType::F32), bits = bits_of(x),
               exponent = (bits >> kExponentShift) & kExponentBits,
               fraction = bits & (kFractionEnd - 1), magnitude = bits & INT32_MAX;
  // The fraction from which on the next power is taken; of subnormals, between 2^-127 and 2^-126.
  const bool up = how.round_mode == "up", nearest = how.round_mode == "nearest";
  if (!up && !nearest && how.round_mode != "down")
    fail<InvalidArgument>("round_mode '{}' is none of up, down and nearest", how.round_mode);
  const int64_t from = up ? 1 : nearest ? kFractionEnd / 2 : kFractionEnd;
  const Tensor rises =
      fraction >= Tensor::where(exponent == 0, (from + kFractionEnd) / 2 + (up ? 1 : 0), from);
  Tensor power = exponent + rises.cast(DType::I32);
  Tensor none = x.isnan();
  if (how.saturate)
    power = power.clamp(0, 254);
  else
    none = none | (power > 254) | (magnitude < kFractionEnd / 2);
  const Tensor y = Tensor::where(power == 0, kFractionEnd / 2, power << kExponentShift);
  return Tensor::where(none, kNan, y.bitcast(DType::F32));
}

// Without `saturate` a float of 8 bits is infinite, or NaN, beyond its largest value.
Tensor to_own_dtype(const Tensor& x, DType to, bool saturate) {
  if (!is_float8(to) || !saturate || !is_float(x.dtype())) return x.cast(to);
  const double most = largest_value(to);
  return Tensor::where(x.isnan(), x, x.clamp(-most, most)).cast(to);
}

}  // namespace

DType dtype_of(ElementType type) {
  if (const NarrowInteger* i = narrow_integer(type)) return i->held;
  if (narrow_float(type)) return DType::F16;
  switch (type) {
    case ElementType::Float8E8M0:
    case ElementType::Float: return DType::F32;
    case ElementType::Uint8: return DType::U8;
    case ElementType::Int8: return DType::I8;
    case ElementType::Uint16: return DType::U16;
    case ElementType::Int16: return DType::I16;
    case ElementType::Int32: return DType::I32;
    case ElementType::Int64: return DType::I64;
    case ElementType::Bool: return DType::Bool;
    case ElementType::Float16: return DType::F16;
    case ElementType::Double: return DType::F64;
    case ElementType::Uint32: return DType::U32;
    case ElementType::Uint64: return DType::U64;
    case ElementType::Bfloat16: return DType::BF16;
    case ElementType::Float8E4M3FN: return DType::F8E4M3FN;
    case ElementType::Float8E5M2: return DType::F8E5M2;
    default: return DType::Void;
  }
}

bool is_narrow(ElementType type) {
  return narrow_integer(type) || narrow_float(type) || type == ElementType::Float8E8M0;
}

ElementType element_of(DType dtype) {
  if (dtype == DType::Void) return ElementType::Undefined;
  for (int i = 1; i <= int(ElementType::Int2); i++) {
    const auto type = ElementType(i);
    if (!is_narrow(type) && dtype_of(type) == dtype) return type;
  }
  return ElementType::Undefined;
}

std::vector<uint8_t> unpacked(ElementType type, const std::vector<uint8_t>& packed,
                              int64_t count) {
  const size_t bits = io::onnx::size_bits(type), each = 8 / bits,
               width = size_bytes(dtype_of(type));
  std::vector<Scalar> values;
  for (unsigned code = 0; code < 1u << bits; code++) values.push_back(decoded(type, code));
  std::vector<uint8_t> out(size_t(count) * width);
  for (size_t i = 0; i < size_t(count); i++) {
    const unsigned code = unsigned(packed.at(i / each)) >> (i % each * bits);
    store_scalar(values[code & (values.size() - 1)], out.data() + i * width);
  }
  return out;
}

Tensor converted(const Tensor& x, ElementType to, const Conversion& how) {
  if (const NarrowInteger* i = narrow_integer(to)) return low_bits(x, *i);
  if (const NarrowFloat* f = narrow_float(to)) return to_narrow_float(x, *f, how.saturate);
  if (to == ElementType::Float8E8M0) return to_e8m0(x, how);
  return to_own_dtype(x, dtype_of(to), how.saturate);
}

Tensor saturated(const Tensor& x, ElementType to) {
  const DType held = dtype_of(to);
  if (!is_int(held)) return converted(x, to);
  const int bits = int(io::onnx::size_bits(to));
  const double low = is_signed(held) ? -std::ldexp(1.0, bits - 1) : 0,
               high = std::ldexp(1.0, is_signed(held) ? bits - 1 : bits) - 1;
  const Tensor whole = is_float(x.dtype()) ? x.round() : x;
  return whole.clamp(low, high).cast(held);
}

}  // namespace tuff::onnx
