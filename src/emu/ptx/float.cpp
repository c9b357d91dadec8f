// Arithmetic of f32 and f64, correctly rounded. Source: PTX ISA 7.8, 9.7.3. NaN results of f32 are
// 0x7fffffff; those of f64 are the host's, which hands on the payload of an operand.
#include "emu/ptx/rounding.h"

#include <bit>
#include <type_traits>

#include "emu/ptx/lanes.h"
#include "emu/ptx/makers.h"

namespace tuff::emu::ptx {
namespace {

template <class T>
T canonical(T value) {
  if constexpr (sizeof(T) == 4) return value != value ? std::bit_cast<float>(0x7FFFFFFFu) : value;
  return value;
}

// What comes in and goes out as .ftz and .sat say.
template <class T>
struct Adjusted {
  bool flushes, saturates;
  T in(T value) const { return flushes ? flushed(value) : value; }
  T out(T value) const {
    if (flushes) value = flushed(value);
    return saturates ? saturated_to_unit(value) : canonical(value);
  }
};

template <class T, size_t sources, class F>
void float_rows(Warp& w, const Instruction& i, uint32_t lanes, F f) {
  const Adjusted<T> as{i.flushes, i.saturates};
  const HostDirection direction(i.rounding);
  if constexpr (sources == 1) {
    apply<T, T>(w, i, lanes, [&](T a) { return as.out(f(as.in(a))); });
  } else if constexpr (sources == 2) {
    apply<T, T, T>(w, i, lanes, [&](T a, T b) { return as.out(f(as.in(a), as.in(b))); });
  } else {
    apply<T, T, T, T>(w, i, lanes,
                      [&](T a, T b, T c) { return as.out(f(as.in(a), as.in(b), as.in(c))); });
  }
}

template <class T, size_t sources, class F>
Execute arithmetic(const Instruction& i, F f) {
  const bool plain = !i.flushes && !i.saturates && i.rounding == Rounding::Nearest;
  if (!plain) {
    return [](Warp& w, const Instruction& own, uint32_t lanes) {
      float_rows<T, sources>(w, own, lanes, F{});
    };
  }
  if constexpr (sources == 1) return rows<T, T>([](T a) { return canonical(F{}(a)); });
  if constexpr (sources == 2) return rows<T, T, T>([](T a, T b) { return canonical(F{}(a, b)); });
  if constexpr (sources == 3)
    return rows<T, T, T, T>([](T a, T b, T c) { return canonical(F{}(a, b, c)); });
  (void)f;
}

// 9.7.3.11, 9.7.3.12: a NaN gives way to a number; +0 is above -0.
template <class T>
T lesser(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class T>
T greater(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
template <class T>
T or_nan(T a, T b, T value) {
  return a != a || b != b ? std::numeric_limits<T>::quiet_NaN() : value;
}

template <class T>
Execute extreme(const Form& f, const Instruction& i) {
  if (f.base == "min") {
    if (i.nan) return arithmetic<T, 2>(i, [](T a, T b) { return or_nan(a, b, lesser(a, b)); });
    return arithmetic<T, 2>(i, [](T a, T b) { return lesser(a, b); });
  }
  if (i.nan) return arithmetic<T, 2>(i, [](T a, T b) { return or_nan(a, b, greater(a, b)); });
  return arithmetic<T, 2>(i, [](T a, T b) { return greater(a, b); });
}

// Signs are bits: nothing is rounded, and a NaN stays as it is.
template <class T>
Execute sign_row(const Form& f) {
  if (f.base == "copysign") return rows<T, T, T>([](T a, T b) { return std::copysign(b, a); });
  if (f.base == "abs") {
    if (f.has("ftz")) return rows<T, T>([](T a) { return std::fabs(flushed(a)); });
    return rows<T, T>([](T a) { return std::fabs(a); });
  }
  if (f.has("ftz")) return rows<T, T>([](T a) { return -flushed(a); });
  return rows<T, T>([](T a) { return -a; });
}

template <class T>
Execute float_row(const Form& f, const Instruction& i) {
  if (f.base == "add") return arithmetic<T, 2>(i, [](T a, T b) { return a + b; });
  if (f.base == "sub") return arithmetic<T, 2>(i, [](T a, T b) { return a - b; });
  if (f.base == "mul") return arithmetic<T, 2>(i, [](T a, T b) { return a * b; });
  if (f.base == "div") return arithmetic<T, 2>(i, [](T a, T b) { return a / b; });
  if (f.base == "rcp") return arithmetic<T, 1>(i, [](T a) { return 1 / a; });
  if (f.base == "sqrt") return arithmetic<T, 1>(i, [](T a) { return std::sqrt(a); });
  if (f.base == "fma" || f.base == "mad")
    return arithmetic<T, 3>(i, [](T a, T b, T c) { return std::fma(a, b, c); });
  if (f.base == "min" || f.base == "max") return extreme<T>(f, i);
  return sign_row<T>(f);
}

// ---- testp

enum class Test : uint8_t { Finite, Infinite, Number, NotANumber, Normal, Subnormal };

bool holds(Test test, int kind) {
  switch (test) {
    case Test::Finite: return kind != FP_INFINITE && kind != FP_NAN;
    case Test::Infinite: return kind == FP_INFINITE;
    case Test::Number: return kind != FP_NAN;
    case Test::NotANumber: return kind == FP_NAN;
    case Test::Normal: return kind == FP_NORMAL;
    case Test::Subnormal: return kind == FP_SUBNORMAL;
  }
  return false;
}

template <class T>
void test_rows(Warp& w, const Instruction& i, uint32_t lanes) {
  const Lanes& a = w.value(i.s(0));
  uint32_t out = 0;
  for_each_set(lanes, [&](uint32_t k) {
    out |= uint32_t(holds(Test(i.variant), std::fpclassify(from_bits<T>(a[k])))) << k;
  });
  w.set_predicate(i.predicate_destinations[0], lanes, out);
}

}  // namespace

void make_float(const Form& f, Instruction& i) {
  i.execute = f.type() == Type::F32 ? float_row<float>(f, i) : float_row<double>(f, i);
}

void make_test(const Form& f, Instruction& i) {
  constexpr const char* kTests[] = {"finite",     "infinite", "number",
                                    "notanumber", "normal",   "subnormal"};
  for (size_t k = 0; k < std::size(kTests); ++k) {
    if (f.has(kTests[k])) i.variant = uint8_t(k);
  }
  i.execute = f.type() == Type::F32 ? test_rows<float> : test_rows<double>;
}

}  // namespace tuff::emu::ptx
