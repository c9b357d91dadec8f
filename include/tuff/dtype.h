// Element types: their sizes, names, exact conversions and the promotion lattice.
// Called by every room and by users. Must never know of tensors, devices or kernels.
// A dtype is a row of one table (dtypes.def), so that fp8 and packed types can be added as rows.
#ifndef TUFF_DTYPE_H
#define TUFF_DTYPE_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tuff {

// Index is the type of symbolic integers (loop counters, offsets); `kernel` turns it into I32 or
// I64. Weak types belong to bare C++ scalars until they meet a tensor: see promote().
enum class DType : uint8_t {
#define TUFF_DTYPE(enumerator, ...) enumerator,
#include <tuff/dtypes.def>
#undef TUFF_DTYPE
};
inline constexpr int kDTypeCount = 0
#define TUFF_DTYPE(...) +1
#include <tuff/dtypes.def>
#undef TUFF_DTYPE
    ;

enum class DTypeClass : uint8_t { None, Bool, Signed, Unsigned, Float };
// One row of dtypes.def.
struct DTypeRow {
  const char* name;        // "float32"
  const char* short_name;  // "f32", the spelling of the text IR
  uint16_t storage_bits;   // bits of one element in memory; bool takes 8
  DTypeClass kind;
  uint8_t mantissa_bits;  // explicit bits of the significand; 0 for integers
  uint8_t exponent_bits;
};

// Row of a dtype; total function.
const DTypeRow& row(DType t);
inline size_t size_bytes(DType t) { return row(t).storage_bits / 8; }
inline const char* name(DType t) { return row(t).name; }
inline const char* short_name(DType t) { return row(t).short_name; }
inline bool is_float(DType t) { return row(t).kind == DTypeClass::Float; }
inline bool is_signed(DType t) { return row(t).kind == DTypeClass::Signed; }
inline bool is_unsigned(DType t) { return row(t).kind == DTypeClass::Unsigned; }
inline bool is_int(DType t) { return is_signed(t) || is_unsigned(t); }
inline bool is_weak(DType t) { return t == DType::WeakInt || t == DType::WeakFloat; }
// Reads both spellings ("float32", "f32", also "float", "int", "half"); throws InvalidArgument.
DType parse_dtype(std::string_view text);

// Least upper bound in the lattice bool -> weakint -> {i8,u8..i64,u64} -> weakfloat -> {f16,bf16}
// -> f32 -> f64 (the lattice of JAX's type promotion). Commutative and associative. Void is its
// bottom; Index is weak towards tensors: above weakint, below every sized integer.
DType promote(DType a, DType b);
// What a weak type becomes when nothing strong was met: WeakInt -> I32, WeakFloat -> F32; others
// unchanged.
DType strengthen(DType t);
// The dtype in which products, and sums of floats, are accumulated: 32 bits or more of the same
// class (bool: I32, f16, bf16: F32).
DType accumulator(DType t);

// One scalar of any dtype, exact: bool and integers live in `bits` as two's complement (sign- or
// zero-extended to 64 bits), floats as the bits of a double (every f16, bf16 and f32 is a double).
// Two Scalars are equal iff dtype and bits are; NaN equals itself, +0 differs from -0.
struct Scalar {
  DType dtype = DType::Void;
  uint64_t bits = 0;

  // Wraps to the width of t; a float t gets the nearest value.
  static Scalar of_int(DType t, int64_t v);
  // Rounds to nearest even into t; an integer t truncates, saturating.
  static Scalar of_double(DType t, double v);
  int64_t as_int() const;  // floats truncate toward zero, saturating; NaN is 0
  double as_double() const;
  bool as_bool() const { return is_float(dtype) ? as_double() != 0 : bits != 0; }
  Scalar cast(DType to) const;  // C++ value conversion with the rounding rules above
  bool operator==(const Scalar&) const = default;
};

// Exact conversions, round to nearest even, subnormals kept, NaN stays NaN (quiet, sign kept).
uint16_t f16_from_f32(float v);
float f16_to_f32(uint16_t h);
uint16_t f16_from_f64(double v);
uint16_t bf16_from_f32(float v);
float bf16_to_f32(uint16_t h);
uint16_t bf16_from_f64(double v);

// Reads / writes one element of type t at p (unaligned allowed).
Scalar load_scalar(DType t, const void* p);
void store_scalar(const Scalar& v, void* p);
// Converts n elements from one dtype to another, as Scalar::cast does, fast where it matters.
void convert(DType from, const void* src, DType to, void* dst, size_t n);

}  // namespace tuff

#endif  // TUFF_DTYPE_H
