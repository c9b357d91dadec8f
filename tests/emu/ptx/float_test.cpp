// Floating point of PTX: what is rounded correctly against the host's and exact arithmetic,
// approximations against the bounds that the specification states.
#include <cfenv>
#include <cmath>
#include <limits>

#include "emu/ptx/ptx_scene.h"

namespace tuff::emu::ptx {
namespace {

using U16 = uint16_t;
using U32 = uint32_t;
using U64 = uint64_t;
using S16 = int16_t;
using S32 = int32_t;
using S64 = int64_t;

const float kNan = std::bit_cast<float>(0x7FFFFFFFu);
float canonical(float v) { return v != v ? kNan : v; }
float flush(float v) { return std::abs(v) < 0x1p-126f ? std::copysign(0.0f, v) : v; }
float unit(float v) { return v > 0 ? (v < 1 ? v : 1) : 0; }

struct Direction {
  const char* name;
  int host;
};
constexpr Direction kDirections[] = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

// f with the host rounding so; through volatile, since compilers take rounding for granted.
template <class T, class F, class... A>
T rounded(int host, F f, A... a) {
  std::fesetround(host);
  volatile T out = f(*const_cast<const volatile A*>(&a)...);
  std::fesetround(FE_TONEAREST);
  return out;
}

template <class T>
void expect_arithmetic_of(const std::string& t, T (*out)(T)) {
  for (const Direction& d : kDirections) {
    const std::string r = fmt::format(".{}", d.name);
    const int host = d.host;
    expect_op<T, T, T>(
        "add" + r + t,
        [&](T a, T b) { return out(rounded<T>(host, [](T x, T y) { return x + y; }, a, b)); }, "",
        true);
    expect_op<T, T, T>(
        "sub" + r + t,
        [&](T a, T b) { return out(rounded<T>(host, [](T x, T y) { return x - y; }, a, b)); }, "",
        true);
    expect_op<T, T, T>(
        "mul" + r + t,
        [&](T a, T b) { return out(rounded<T>(host, [](T x, T y) { return x * y; }, a, b)); }, "",
        true);
    expect_op<T, T, T>(
        "div" + r + t,
        [&](T a, T b) { return out(rounded<T>(host, [](T x, T y) { return x / y; }, a, b)); }, "",
        true);
    expect_op<T, T, T, T>(
        "fma" + r + t,
        [&](T a, T b, T c) {
          return out(rounded<T>(host, [](T x, T y, T z) { return std::fma(x, y, z); }, a, b, c));
        },
        "", true);
    expect_op<T, T>(
        "rcp" + r + t, [&](T a) { return out(rounded<T>(host, [](T x) { return 1 / x; }, a)); }, "",
        true);
    expect_op<T, T>(
        "sqrt" + r + t,
        [&](T a) { return out(rounded<T>(host, [](T x) { return std::sqrt(x); }, a)); }, "", true);
  }
}

TEST(PtxFloat, RoundsInEachDirection) {
  expect_arithmetic_of<float>(".f32", canonical);
  expect_arithmetic_of<double>(".f64", [](double v) { return v; });
}

// NaN comes out as 0x7fffffff, bit by bit.
TEST(PtxFloat, SinglesHaveOneNan) {
  expect_op<float, float, float>("add.f32", [](float a, float b) { return canonical(a + b); });
  expect_op<float, float, float, float>(
      "fma.rn.f32", [](float a, float b, float c) { return canonical(std::fma(a, b, c)); });
  expect_op<float, float>("sqrt.rn.f32", [](float a) { return canonical(std::sqrt(a)); });
}

TEST(PtxFloat, FlushesAndSaturates) {
  expect_op<float, float, float>(
      "add.ftz.f32", [](float a, float b) { return canonical(flush(flush(a) + flush(b))); });
  expect_op<float, float, float>(
      "mul.rn.ftz.f32", [](float a, float b) { return canonical(flush(flush(a) * flush(b))); });
  expect_op<float, float, float>("sub.rn.sat.f32", [](float a, float b) { return unit(a - b); });
  expect_op<float, float, float, float>("fma.rn.ftz.sat.f32", [](float a, float b, float c) {
    return unit(flush(std::fma(flush(a), flush(b), flush(c))));
  });
  expect_op<float, float>("neg.ftz.f32", [](float a) { return -flush(a); }, "", true);
  expect_op<float, float>("abs.f32", [](float a) { return std::fabs(a); }, "", true);
  expect_op<double, double>("neg.f64", [](double a) { return -a; }, "", true);
  expect_op<float, float, float>("copysign.f32",
                                 [](float a, float b) { return std::copysign(b, a); });
}

// As bits: magnitudes with signs put in order, -0 below +0.
template <class T>
T extreme(T a, T b, bool greater) {
  if (a != a) return b;
  if (b != b) return a;
  const bool a_first = a < b || (a == b && std::signbit(a));
  return a_first == greater ? b : a;
}

TEST(PtxFloat, ExtremesGiveWayToNumbers) {
  expect_op<float, float, float>("min.f32",
                                 [](float a, float b) { return canonical(extreme(a, b, false)); });
  expect_op<float, float, float>("max.f32",
                                 [](float a, float b) { return canonical(extreme(a, b, true)); });
  expect_op<float, float, float>("max.NaN.f32", [](float a, float b) {
    return a != a || b != b ? kNan : extreme(a, b, true);
  });
  expect_op<double, double, double>(
      "min.f64", [](double a, double b) { return extreme(a, b, false); }, "", true);
}

// Whether `got` is as near to the exact value as its bound says; infinities and NaN are the same.
void expect_within(const std::string& op, const std::function<double(double)>& exact,
                   double absolute, double relative, double least = -1e38, double most = 1e38) {
  SplitMix64 random(17);
  std::vector<float> in(kThreads);
  for (float& v : in) {
    const auto value = std::bit_cast<float>(U32(random.next()));
    v = value >= least && value <= most && random.below(2u)
            ? value
            : float(std::max(least, -50.0) + double(random.below(1u << 20)) / (1 << 20) *
                                                 (std::min(most, 50.0) - std::max(least, -50.0)));
  }
  std::vector<uint8_t> bytes(kThreads * 4);
  std::memcpy(bytes.data(), in.data(), bytes.size());
  const auto out = run_instruction(op, 4, {bytes}, {4}, "", 3);
  for (uint32_t k = 0; k < kThreads; ++k) {
    const double wanted = exact(double(in[k]));
    const auto got = double(element_at<float>(out, k));
    if (std::isnan(wanted)) {
      EXPECT_TRUE(std::isnan(got)) << op << " of " << in[k];
    } else if (std::abs(wanted) > 0x1.fffffep127) {
      EXPECT_GE(std::abs(got), 0x1.fffffep127) << op << " of " << in[k];
    } else {
      ASSERT_LE(std::abs(got - wanted), absolute + relative * std::abs(wanted) + 0x1p-149)
          << op << " of " << in[k];
    }
  }
}

// The bounds are those of PTX ISA 7.8, 9.7.3.
TEST(PtxFloat, ApproximationsKeepTheirBounds) {
  const double ulp = 0x1p-23;
  expect_within("rcp.approx.f32", [](double a) { return 1 / a; }, 0, ulp);
  expect_within("sqrt.approx.f32", [](double a) { return std::sqrt(a); }, 0, 0x1p-23);
  expect_within("rsqrt.approx.f32", [](double a) { return 1 / std::sqrt(a); }, 0, std::exp2(-22.9));
  expect_within(
      "sin.approx.f32", [](double a) { return std::sin(a); }, std::exp2(-20.9), 0, -3.14, 3.14);
  expect_within(
      "cos.approx.f32", [](double a) { return std::cos(a); }, std::exp2(-20.9), 0, -3.14, 3.14);
  expect_within(
      "lg2.approx.f32", [](double a) { return std::log2(a); }, std::exp2(-22.6), std::exp2(-22.6));
  expect_within("ex2.approx.f32", [](double a) { return std::exp2(a); }, 0, 0x1p-22);
  expect_within("tanh.approx.f32", [](double a) { return std::tanh(a); }, 0, 0x1p-11);
}

TEST(PtxFloat, ApproximationsOfSpecialValues) {
  expect_op<float, float>("ex2.approx.ftz.f32", [](float a) {
    return canonical(flush(float(std::exp2(double(flush(a))))));
  });
  expect_op<float, float, float>(
      "div.full.f32", [](float a, float b) { return canonical(float(double(a) / double(b))); });
  // Divisors above 2^126 leave 0, or NaN of infinities.
  expect_op<float, float, float>("div.approx.f32", [](float a, float b) {
    if (std::abs(b) > 0x1p126f && !std::isinf(b) && b == b)
      return std::isinf(a) || a != a
                 ? kNan
                 : std::copysign(0.0f, std::signbit(a) == std::signbit(b) ? 1.f : -1.f);
    return canonical(float(double(a) / double(b)));
  });
}

TEST(PtxFloat, Tests) {
  const std::pair<const char*, std::function<bool(float)>> cases[] = {
      {"finite", [](float a) { return std::isfinite(a); }},
      {"infinite", [](float a) { return std::isinf(a); }},
      {"number", [](float a) { return !std::isnan(a); }},
      {"notanumber", [](float a) { return std::isnan(a); }},
      {"normal", [](float a) { return std::isnormal(a); }},
      {"subnormal", [](float a) { return a != 0 && std::abs(a) < 0x1p-126f; }}};
  for (const auto& [name, holds] : cases) {
    SplitMix64 random(3);
    auto in = testing::random_values(testing::kSingle, kThreads, random);
    std::vector<U32> out(kThreads);
    Scene scene(kernel_of(fmt::format(R"(
  mul.wide.u32 %rd20, %r0, 4;
  add.u64 %rd21, %rd1, %rd20;
  ld.global.f32 %f1, [%rd21];
  testp.{}.f32 %p1, %f1;
  selp.u32 %r50, 1, 0, %p1;
  add.u64 %rd21, %rd0, %rd20;
  st.global.u32 [%rd21], %r50;)",
                                      name)));
    scene.request.block = {kThreads, 1, 1};
    scene.run_clean({scene.add(out), scene.add(in)});
    for (uint32_t k = 0; k < kThreads; ++k)
      ASSERT_EQ(out[k], U32(holds(element_at<float>(in, k)))) << name << " " << k;
  }
}

// ---- halves

// The nearest half of an exact value by trying all of them would take long: what lies beside the
// rounded value is compared.
U16 nearest_half(long double value) {
  if (value != value) return 0x7FFF;
  const U16 sign = std::signbit(value) ? 0x8000 : 0;
  const long double magnitude = std::fabs(value);
  U16 low = 0, high = 0x7C00;  // by halves, among magnitudes
  const auto at = [](U16 bits) {
    return bits >= 0x7C00 ? 65536.0L : (long double)(narrow::f16_to_f32(bits));
  };
  while (high - low > 1) {
    const U16 middle = U16((low + high) / 2);
    (at(middle) <= magnitude ? low : high) = middle;
  }
  const long double below = magnitude - at(low), above = at(high) - magnitude;
  const bool up = magnitude >= 65536.0L || below > above || (below == above && low % 2);
  return U16(sign | (up ? high : low));
}

TEST(PtxHalf, RoundsOnce) {
  const auto wide = [](Half h) { return (long double)(float(h)); };
  const auto half = [](long double v) { return Half{nearest_half(v)}; };
  expect_op<Half, Half, Half>("add.f16", [&](Half a, Half b) { return half(wide(a) + wide(b)); });
  expect_op<Half, Half, Half>("sub.rn.f16",
                              [&](Half a, Half b) { return half(wide(a) - wide(b)); });
  expect_op<Half, Half, Half>("mul.f16", [&](Half a, Half b) { return half(wide(a) * wide(b)); });
  // 22 bits of a product and 11 of a sum lie within 64.
  expect_op<Half, Half, Half, Half>(
      "fma.rn.f16", [&](Half a, Half b, Half c) { return half(wide(a) * wide(b) + wide(c)); });
  expect_op<Half, Half, Half, Half>("fma.rn.relu.f16", [&](Half a, Half b, Half c) {
    const long double v = wide(a) * wide(b) + wide(c);
    return half(v < 0 ? 0 : v);
  });
  expect_op<Half, Half, Half>("mul.sat.f16", [&](Half a, Half b) {
    const long double v = wide(a) * wide(b);
    return half(v > 0 ? std::min(v, 1.0L) : 0);
  });
}

// What a sum in f32 would round twice: 1 + 2^-11 + 2^-24 or so.
TEST(PtxHalf, FmaIsNotRoundedTwice) {
  std::vector<U16> in{0x3C01, 0x1001, 0x3C00}, out(1);
  Scene scene(kernel_of(R"(
  ld.global.b16 %rs1, [%rd0]; ld.global.b16 %rs2, [%rd0+2]; ld.global.b16 %rs3, [%rd0+4];
  fma.rn.f16 %rs4, %rs1, %rs2, %rs3;
  st.global.b16 [%rd1], %rs4;)"));
  scene.request.block = {1, 1, 1};
  scene.run_clean({scene.add(in), scene.add(out)});
  const long double exact =
      (long double)(narrow::f16_to_f32(0x3C01))*narrow::f16_to_f32(0x1001) + 1;
  EXPECT_EQ(out[0], nearest_half(exact));
}

// The exact sum of two as a bf16: cut off toward zero with a bit that says so, then rounded.
Brain nearest_brain(long double a, long double b) {
  const long double sum = a + b;
  if (sum != sum) return Brain{0x7FFF};
  const long double part = sum - a, rest = (a - (sum - part)) + (b - part);
  std::fesetround(FE_TOWARDZERO);
  volatile long double exact = sum;
  volatile float held = float(exact);
  std::fesetround(FE_TONEAREST);
  float cut = held;
  const bool is_less = std::isfinite(sum) && rest != 0 && (rest > 0) != (sum > 0);
  if ((long double)cut == sum && is_less) cut = std::nextafter(cut, 0.0f);
  const bool inexact = (long double)cut != sum || (std::isfinite(sum) && rest != 0);
  U32 bits = std::bit_cast<U32>(cut) | U32(inexact);
  bits += 0x7FFF + (bits >> 16 & 1);
  return Brain{U16(bits >> 16)};
}

TEST(PtxHalf, PairsAndBrains) {
  struct Pair {
    Half low, high;
  };
  const auto sum = [](Half a, Half b) {
    return Half{nearest_half((long double)(float(a)) + float(b))};
  };
  expect_op<U32, U32, U32>("add.f16x2", [&](U32 a, U32 b) {
    const auto x = std::bit_cast<Pair>(a), y = std::bit_cast<Pair>(b);
    return std::bit_cast<U32>(Pair{sum(x.low, y.low), sum(x.high, y.high)});
  });
  expect_op<Brain, Brain, Brain, Brain>("fma.rn.bf16", [](Brain a, Brain b, Brain c) {
    return nearest_brain((long double)(float(a)) * float(b), float(c));
  });
  expect_op<Half, Half>("neg.f16", [](Half a) { return Half{U16(a.bits ^ 0x8000)}; });
  expect_op<Brain, Brain>("abs.bf16", [](Brain a) { return Brain{U16(a.bits & 0x7FFF)}; });
  expect_op<Half, Half, Half>("max.f16", [](Half a, Half b) {
    const float x = a, y = b;
    if (x != x && y != y) return Half{0x7FFF};
    const float v = extreme(x, y, true);
    return Half{nearest_half(v)};
  });
}

// ---- conversions

template <class T>
T saturated(double v, bool wide) {
  if (v != v) return wide ? T(T(1) << (8 * sizeof(T) - 1)) : T(0);
  if (v <= double(std::numeric_limits<T>::min())) return std::numeric_limits<T>::min();
  if (v >= std::ldexp(1.0, int(8 * sizeof(T)) - std::is_signed_v<T>))
    return std::numeric_limits<T>::max();
  return T(v);
}

TEST(PtxConvert, FloatsToIntegers) {
  expect_op<S32, float>("cvt.rzi.s32.f32",
                        [](float a) { return saturated<S32>(std::trunc(a), false); });
  expect_op<U32, float>("cvt.rzi.u32.f32",
                        [](float a) { return saturated<U32>(std::trunc(a), false); });
  expect_op<S32, float>("cvt.rni.s32.f32",
                        [](float a) { return saturated<S32>(std::nearbyint(a), false); });
  expect_op<S32, float>("cvt.rmi.s32.f32",
                        [](float a) { return saturated<S32>(std::floor(a), false); });
  expect_op<S32, float>("cvt.rpi.s32.f32",
                        [](float a) { return saturated<S32>(std::ceil(a), false); });
  expect_op<S64, float>("cvt.rzi.s64.f32",
                        [](float a) { return saturated<S64>(std::trunc(a), true); });
  expect_op<U64, double>("cvt.rzi.u64.f64",
                         [](double a) { return saturated<U64>(std::trunc(a), true); });
  expect_op<S32, double>("cvt.rzi.s32.f64",
                         [](double a) { return saturated<S32>(std::trunc(a), true); });
  expect_op<S16, Half>("cvt.rzi.s16.f16",
                       [](Half a) { return saturated<S16>(std::trunc(float(a)), false); });
}

TEST(PtxConvert, IntegersToFloats) {
  expect_op<float, S32>("cvt.rn.f32.s32", [](S32 a) { return float(a); });
  expect_op<float, U64>("cvt.rn.f32.u64", [](U64 a) { return float(a); });
  expect_op<double, S64>("cvt.rn.f64.s64", [](S64 a) { return double(a); });
  for (const Direction& d : kDirections) {
    expect_op<float, U32>(fmt::format("cvt.{}.f32.u32", d.name), [&](U32 a) {
      return rounded<float>(d.host, [](U32 x) { return float(x); }, a);
    });
  }
  expect_op<Half, S32>("cvt.rn.f16.s32", [](S32 a) { return Half{nearest_half(a)}; });
  expect_op<Half, U64>("cvt.rn.f16.u64", [](U64 a) { return Half{nearest_half((long double)a)}; });
}

TEST(PtxConvert, FloatsToFloats) {
  expect_op<double, float>("cvt.f64.f32", [](float a) { return double(a); }, "", true);
  for (const Direction& d : kDirections) {
    expect_op<float, double>(fmt::format("cvt.{}.f32.f64", d.name), [&](double a) {
      return canonical(rounded<float>(d.host, [](double x) { return float(x); }, a));
    });
  }
  expect_op<Half, float>("cvt.rn.f16.f32", [](float a) { return Half{nearest_half(a)}; });
  // Not through f32, which would round twice.
  expect_op<Half, double>("cvt.rn.f16.f64",
                          [](double a) { return Half{nearest_half((long double)a)}; });
  expect_op<float, Half>("cvt.f32.f16", [](Half a) { return canonical(float(a)); });
  expect_op<Half, float>("cvt.rz.f16.f32", [](float a) {
    if (a != a) return Half{0x7FFF};
    U16 bits = nearest_half(a);
    if (std::abs(float(Half{bits})) > std::abs(a)) --bits;  // toward zero, from infinity too
    return Half{bits};
  });
  expect_op<Brain, float>("cvt.rn.bf16.f32", [](float a) {
    return a != a ? Brain{0x7FFF} : Brain{narrow::bf16_from_f32(a)};
  });
  expect_op<float, float>("cvt.rni.f32.f32", [](float a) { return canonical(std::nearbyint(a)); });
  expect_op<float, float>("cvt.rmi.ftz.f32.f32",
                          [](float a) { return canonical(flush(std::floor(flush(a)))); });
  expect_op<float, float>("cvt.sat.f32.f32", [](float a) { return unit(a); });
  expect_op<double, double>("cvt.rpi.f64.f64", [](double a) { return std::ceil(a); }, "", true);
  expect_op<U32, float, float>("cvt.rn.f16x2.f32", [](float a, float b) {
    return U32(nearest_half(a)) << 16 | nearest_half(b);
  });
  // tf32: 10 bits, ties away from zero.
  expect_op<U32, float>("cvt.rna.tf32.f32", [](float a) {
    if (a != a) return 0x7FFFE000u;
    const auto bits = std::bit_cast<U32>(a);
    return std::isinf(a) ? bits : (bits + 0x1000) & ~0x1FFFu;
  });
}

}  // namespace
}  // namespace tuff::emu::ptx
