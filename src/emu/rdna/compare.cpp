// Comparisons: one bit per active lane into a scalar register, or into EXEC.
#include "emu/rdna/handlers.h"

namespace tuff::emu::rdna {
namespace {

// Ten classes of floats; ISA 16.8, V_CMP_CLASS: signalling NaN, quiet NaN, -inf, -normal,
// -denormal, -0, +0, +denormal, +normal, +inf.
template <class T>
uint32_t class_of(T a, bool quiet) {
  const bool negative = std::signbit(a);
  switch (std::fpclassify(a)) {
    case FP_NAN: return quiet ? 2 : 1;
    case FP_INFINITE: return negative ? 1 << 2 : 1 << 9;
    case FP_SUBNORMAL: return negative ? 1 << 4 : 1 << 7;
    case FP_ZERO: return negative ? 1 << 5 : 1 << 6;
    default: return negative ? 1 << 3 : 1 << 8;
  }
}
template <class T>
bool in_class(T a, uint32_t classes) {
  return class_of(a, has_quiet_bit(a)) & classes;
}
bool in_class16(uint16_t half, uint32_t classes) {
  const bool denormal = (half & 0x7C00) == 0 && (half & 0x3FF) != 0;
  const uint32_t sign = half >> 15;
  const uint32_t other = class_of(narrow::f16_to_f32(half), half >> 9 & 1);
  return (denormal ? (sign ? 1u << 4 : 1u << 7) : other) & classes;
}

template <class A, class B, class F>
void compare(Wave& w, const Instruction& i, F f) {
  Lanes<A> a;
  Lanes<B> b;
  fetch<A>(w, i, *i.find('0'), a);
  fetch<B>(w, i, *i.find('1'), b);
  if constexpr (std::is_same_v<A, B>) {  // the class of a number is what it is
    flush_inputs<A>(w, a);
    flush_inputs<B>(w, b);
  }
  uint32_t mask = 0;
  for (int k = 0; k < kLanes; ++k) mask |= uint32_t(f(a[k], b[k])) << k;
  mask &= active_lanes(w, i);
  const Operand* d = i.find('D');
  if (!d) d = i.find('V');
  write_scalar(w, d ? d->index : source::ExecLo, mask);
}

#define COMPARE(op, A, B, expr) \
  TUFF_RDNA_LANES(op, (compare<A, B>(w, i, [](auto a, auto b) -> bool { return expr; })))
#define BOTH(name, suffix, A, B, expr) \
  COMPARE(V_CMP_##name##_##suffix, A, B, expr), COMPARE(V_CMPX_##name##_##suffix, A, B, expr)
#define ORDERED(suffix, TYPE)                                                    \
  BOTH(LT, suffix, TYPE, TYPE, a < b), BOTH(EQ, suffix, TYPE, TYPE, a == b),     \
      BOTH(LE, suffix, TYPE, TYPE, a <= b), BOTH(GT, suffix, TYPE, TYPE, a > b), \
      BOTH(GE, suffix, TYPE, TYPE, a >= b)
#define FLOATS(suffix, TYPE)                                                                      \
  ORDERED(suffix, TYPE), BOTH(F, suffix, TYPE, TYPE, (void(a), void(b), false)),                  \
      BOTH(T, suffix, TYPE, TYPE, (void(a), void(b), true)),                                      \
      BOTH(LG, suffix, TYPE, TYPE, a<b || a> b),                                                  \
      BOTH(O, suffix, TYPE, TYPE, !std::isnan(a) && !std::isnan(b)),                              \
      BOTH(U, suffix, TYPE, TYPE, std::isnan(a) || std::isnan(b)),                                \
      BOTH(NGE, suffix, TYPE, TYPE, !(a >= b)), BOTH(NLG, suffix, TYPE, TYPE, !(a < b || a > b)), \
      BOTH(NGT, suffix, TYPE, TYPE, !(a > b)), BOTH(NLE, suffix, TYPE, TYPE, !(a <= b)),          \
      BOTH(NEQ, suffix, TYPE, TYPE, !(a == b)), BOTH(NLT, suffix, TYPE, TYPE, !(a < b))
#define INTEGERS(suffix, TYPE) ORDERED(suffix, TYPE), BOTH(NE, suffix, TYPE, TYPE, a != b)
#define WIDE_INTEGERS(suffix, TYPE)                                               \
  INTEGERS(suffix, TYPE), BOTH(F, suffix, TYPE, TYPE, (void(a), void(b), false)), \
      BOTH(T, suffix, TYPE, TYPE, (void(a), void(b), true))

constexpr Handler kRows[] = {
    FLOATS(F16, F16),
    FLOATS(F32, float),
    FLOATS(F64, double),
    INTEGERS(I16, int16_t),
    INTEGERS(U16, uint16_t),
    WIDE_INTEGERS(I32, int32_t),
    WIDE_INTEGERS(U32, uint32_t),
    WIDE_INTEGERS(I64, int64_t),
    WIDE_INTEGERS(U64, uint64_t),
    BOTH(CLASS, F16, uint16_t, uint16_t, in_class16(a, b)),
    BOTH(CLASS, F32, float, uint32_t, in_class(a, b)),
    BOTH(CLASS, F64, double, uint32_t, in_class(a, b)),
};

}  // namespace

std::span<const Handler> compare_handlers() { return kRows; }

}  // namespace tuff::emu::rdna
