// Element types: their sizes, names, exact conversions and the promotion lattice.
// Called by every room and by users. Must never know of tensors, devices or kernels.
// A dtype is a row of one table (dtypes.def), so that packed types can be added as rows.
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

inline constexpr DTypeRow kDTypeRows[kDTypeCount] = {
#define TUFF_DTYPE(enumerator, name, short_name, bits, kind, mantissa, exponent) \
  {name, short_name, bits, DTypeClass::kind, mantissa, exponent},
#include <tuff/dtypes.def>
#undef TUFF_DTYPE
};

// Row of a dtype; Void's for what is none.
constexpr const DTypeRow& row(DType t) {
  return kDTypeRows[int(t) < kDTypeCount ? int(t) : int(DType::Void)];
}
inline size_t size_bytes(DType t) { return row(t).storage_bits / 8; }
inline const char* name(DType t) { return row(t).name; }
inline const char* short_name(DType t) { return row(t).short_name; }
inline bool is_float(DType t) { return row(t).kind == DTypeClass::Float; }
inline bool is_signed(DType t) { return row(t).kind == DTypeClass::Signed; }
inline bool is_unsigned(DType t) { return row(t).kind == DTypeClass::Unsigned; }
inline bool is_int(DType t) { return is_signed(t) || is_unsigned(t); }
inline bool is_float8(DType t) { return is_float(t) && row(t).storage_bits == 8; }
inline bool is_weak(DType t) { return t == DType::WeakInt || t == DType::WeakFloat; }
// Of a float dtype: whether it has infinities (F8E4M3FN has none: what rounds beyond its largest
// value, 448, is NaN), and its largest finite value and least normal one.
inline bool has_infinity(DType t) { return t != DType::F8E4M3FN; }
double largest_value(DType t);
double smallest_normal(DType t);
// Reads both spellings ("float32", "f32", also "float", "int", "half"); throws InvalidArgument.
DType parse_dtype(std::string_view text);

// Least upper bound in the lattice bool -> weakint -> {i8,u8..i64,u64} -> weakfloat -> {f16,bf16}
// -> f32 -> f64 (the lattice of JAX's type promotion). Commutative and associative. Void is its
// bottom; Index is weak towards tensors: above weakint, below every sized integer. Floats of 8 bits
// stand between weakfloat and those of 16: f8e4m3fn below f16 and bf16, f8e5m2, the upper byte of
// an f16, below f16 alone, so that both have one least upper bound, f16. With bf16 f8e5m2 gives
// f32.
DType promote(DType a, DType b);
// What a weak type becomes when nothing strong was met: WeakInt -> I32, WeakFloat -> F32; others
// unchanged.
DType strengthen(DType t);
// The dtype in which products, and sums of floats, are accumulated: 32 bits or more of the same
// class (bool: I32, f16, bf16 and floats of 8 bits: F32).
DType accumulator(DType t);

// One scalar of any dtype, exact: bool and integers live in `bits` as two's complement (sign- or
// zero-extended to 64 bits), floats as the bits of a double (every narrower float is one).
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
// As PyTorch 2's casts: NaN becomes 0x7f with its sign. Beyond the largest value F8E4M3FN gives
// NaN, F8E5M2 infinity.
uint8_t f8e4m3fn_from_f32(float v);
float f8e4m3fn_to_f32(uint8_t b);
uint8_t f8e4m3fn_from_f64(double v);
uint8_t f8e5m2_from_f32(float v);
float f8e5m2_to_f32(uint8_t b);
uint8_t f8e5m2_from_f64(double v);

// Reads / writes one element of type t at p (unaligned allowed).
Scalar load_scalar(DType t, const void* p);
void store_scalar(const Scalar& v, void* p);
// Converts n elements from one dtype to another, as Scalar::cast does, fast where it matters.
void convert(DType from, const void* src, DType to, void* dst, size_t n);

}  // namespace tuff

#endif  // TUFF_DTYPE_H
