// The largest error of every float function of Tensor in ULP, per dtype and device, against the C
// library's long doubles: within what apps/check/function_ulps.def promises. Special values among
// them, and every value of the 16-bit types.
//
// TUFF_TEST_ULP_SAMPLES=16777216 sets the number of samples of a function (16384 without it),
// TUFF_TEST_ULP_FUNCTIONS=gelu,pow measures these alone;
// TUFF_TEST_ULP_OUT=FILE writes what was found as a line of JSON per function and dtype, of which
// scripts/function-errors makes tests/data/function_errors.json and docs/OPS.md.
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <numbers>
#include <random>

#include <tuff/dtype.h>
#include <tuff/tensor.h>

#include "tensor/devices.h"

namespace tuff::test {
namespace {

struct Promise {
  const char* function;
  DType dtype;
  double host, vulkan;
};
constexpr Promise kPromises[] = {
#define TUFF_FUNCTION_ULP(function, dtype, host, vulkan) {#function, DType::dtype, host, vulkan},
#include "check/function_ulps.def"
#undef TUFF_FUNCTION_ULP
};

using Real = long double;

struct Function {
  const char* name;
  Tensor (*run)(const Tensor& x, const Tensor& y);
  Real (*exact)(Real x, Real y);
  double low, high;  // where most samples lie, but for those over all bit patterns
  bool binary = false;
  bool ends_early = false;    // 0 where flushed subnormals are factors (include/tuff/tensor.h)
  bool of_quotients = false;  // only promised where x / y is small enough (include/tuff/tensor.h)
  bool alike = false;         // both operands are drawn in the same way
  bool of_positive = false;   // only promised from 0 on (include/tuff/tensor_math.h)
};
Real sigmoid(Real x) { return 1 / (1 + expl(-x)); }
Real gelu_tanh(Real x) {
  const Real slope = 2 * sqrtl(2 / std::numbers::pi_v<Real>);
  return x * sigmoid(slope * (x + 0.044715L * x * x * x));
}
Real remainder_of(Real x, Real y) {
  const Real r = fmodl(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
// Newton's method from the leading terms of the inverse, on the side that has the digits.
Real erfinv(Real x) {
  const Real a = std::abs(x), slope = 2 / sqrtl(std::numbers::pi_v<Real>);
  if (a >= 1 || a == 0 || std::isnan(x)) return a > 1 ? NAN : a == 1 ? x * INFINITY : x;
  const Real r2 = -logl(1 - a * a), c = 2 / (std::numbers::pi_v<Real> * 0.147L) + -r2 / 2;
  Real y = a < 0.1L ? a / slope : sqrtl(sqrtl(c * c + r2 / 0.147L) - c);
  for (int i = 0; i < 5; i++)
    y -= (a < 0.5L ? erfl(y) - a : (1 - a) - erfcl(y)) / (slope * expl(-y * y));
  return std::copysign(y, x);
}
// By recurrence to 40, then Stirling's series (Abramowitz and Stegun, 6.3.18).
Real digamma(Real x) {
  Real sum = 0;
  for (; x < 40; x++) sum -= 1 / x;
  const Real s = 1 / (x * x);
  return sum + logl(x) - 0.5L / x -
         s * (1.0L / 12 - s * (1.0L / 120 - s * (1.0L / 252 - s * (1.0L / 240 - s / 132))));
}
// The series of (x/2)^2k / k!^2, whose terms are all positive.
Real i0(Real x) {
  if (std::abs(x) > 11000) return INFINITY;
  if (std::isnan(x)) return x;
  Real sum = 1, term = 1;
  for (int k = 1; term > sum * 1e-22L; k++) sum += term *= (x / 2 / k) * (x / 2 / k);
  return sum;
}
Real logit(Real x) {
  return x > 0.25L && x < 0.75L ? 2 * atanhl(2 * x - 1) : logl(x) - log1pl(-x);
}
const Function kFunctions[] = {
#define TUFF_UNARY(name, exact, low, high)                  \
  {#name, [](const Tensor& x, const Tensor&) { return x.name(); }, \
   [](Real x, Real) -> Real { return exact; }, low, high}
    TUFF_UNARY(exp, expl(x), -110, 90),
    TUFF_UNARY(exp2, exp2l(x), -150, 128),
    TUFF_UNARY(log, logl(x), 0.5, 2),
    TUFF_UNARY(log2, log2l(x), 0.5, 2),
    TUFF_UNARY(sin, sinl(x), -30, 30),
    TUFF_UNARY(cos, cosl(x), -30, 30),
    TUFF_UNARY(tan, tanl(x), -30, 30),
    TUFF_UNARY(tanh, tanhl(x), -10, 10),
    TUFF_UNARY(sigmoid, sigmoid(x), -100, 20),
    TUFF_UNARY(erf, erfl(x), -6, 6),
    TUFF_UNARY(softplus, x > 20 ? x : log1pl(expl(x)), -100, 21),
    TUFF_UNARY(silu, std::isinf(x) ? (x > 0 ? x : NAN) : x * sigmoid(x), -100, 20),
    TUFF_UNARY(gelu, x * erfcl(-x / std::numbers::sqrt2_v<Real>) / 2, -14, 14),
    {"gelu_tanh", [](const Tensor& x, const Tensor&) { return x.gelu("tanh"); },
     [](Real x, Real) { return gelu_tanh(x); }, -14, 14, false, true},
    TUFF_UNARY(asin, asinl(x), -1, 1),
    TUFF_UNARY(acos, acosl(x), -1, 1),
    TUFF_UNARY(atan, atanl(x), -3, 3),
    TUFF_UNARY(sinh, sinhl(x), -90, 90),
    TUFF_UNARY(cosh, coshl(x), -90, 90),
    TUFF_UNARY(asinh, asinhl(x), -3, 3),
    TUFF_UNARY(acosh, acoshl(x), 1, 5),
    TUFF_UNARY(atanh, atanhl(x), -1, 1),
    TUFF_UNARY(log1p, log1pl(x), -1, 3),
    TUFF_UNARY(expm1, expm1l(x), -3, 3),
    TUFF_UNARY(log10, log10l(x), 0.5, 2),
    TUFF_UNARY(erfc, erfcl(x), -6, 27),
    TUFF_UNARY(erfinv, erfinv(x), -1, 1),
    TUFF_UNARY(i0, i0(x), -92, 92),
    TUFF_UNARY(logit, logit(x), 0, 1),
    TUFF_UNARY(elu, x > 0 ? x : expm1l(x), -20, 1),
    TUFF_UNARY(mish, x * tanhl(log1pl(expl(x))), -100, 20),
    TUFF_UNARY(logsigmoid, std::min(x, Real(0)) - log1pl(expl(-std::abs(x))), -20, 100),
    TUFF_UNARY(sqrt, sqrtl(x), 0.5, 2),
    TUFF_UNARY(rsqrt, 1 / sqrtl(x), 0.5, 2),
    TUFF_UNARY(reciprocal, 1 / x, 0.5, 2),
#undef TUFF_UNARY
    {"pow", [](const Tensor& x, const Tensor& y) { return x.pow(y); },
     [](Real x, Real y) { return powl(x, y); }, 0.5, 2, true},
    {"lgamma", [](const Tensor& x, const Tensor&) { return x.lgamma(); },
     [](Real x, Real) { return lgammal(x); }, 0, 20, false, false, false, false, true},
    {"digamma", [](const Tensor& x, const Tensor&) { return x.digamma(); },
     [](Real x, Real) { return digamma(x); }, 1.5, 20, false, false, false, false, true},
    {"atan2", [](const Tensor& y, const Tensor& x) { return y.atan2(x); },
     [](Real y, Real x) { return atan2l(y, x); }, -2, 2, true, false, false, true},
    {"hypot", [](const Tensor& x, const Tensor& y) { return x.hypot(y); },
     [](Real x, Real y) { return hypotl(x, y); }, -2, 2, true, false, false, true},
    {"xlogy", [](const Tensor& x, const Tensor& y) { return x.xlogy(y); },
     [](Real x, Real y) { return x == 0 && !std::isnan(y) ? 0 : x * logl(y); }, 0.1, 3, true, false,
     false, true},
    {"pow_4", [](const Tensor& x, const Tensor&) { return x.pow(4); },
     [](Real x, Real) { return powl(x, 4); }, 0.5, 2},
    {"pow_minus_4", [](const Tensor& x, const Tensor&) { return x.pow(-4); },
     [](Real x, Real) { return powl(x, -4); }, 0.5, 2},
    {"pow_5", [](const Tensor& x, const Tensor&) { return x.pow(5); },
     [](Real x, Real) { return powl(x, 5); }, 0.5, 2},
    {"pow_2_5", [](const Tensor& x, const Tensor&) { return x.pow(2.5); },
     [](Real x, Real) { return powl(x, 2.5L); }, 0.5, 2},
    {"div", [](const Tensor& x, const Tensor& y) { return x / y; },
     [](Real x, Real y) { return x / y; }, 0.5, 2, true},
    {"fmod", [](const Tensor& x, const Tensor& y) { return x.fmod(y); },
     [](Real x, Real y) { return fmodl(x, y); }, 0.5, 2, true, false, true},
    {"remainder", [](const Tensor& x, const Tensor& y) { return x.remainder(y); }, remainder_of, 0.5,
     2, true, false, true},
};

DType bits_of(DType t) {
  return size_bytes(t) == 2 ? DType::I16 : size_bytes(t) == 4 ? DType::I32 : DType::I64;
}
double decoded(DType t, int64_t bits) {
  std::byte memory[8];
  std::memcpy(memory, &bits, 8);
  return load_scalar(t, memory).as_double();
}
int64_t encoded_bits(DType t, double v) {
  std::byte memory[8] = {};
  store_scalar(Scalar::of_double(t, v), memory);
  int64_t bits;
  std::memcpy(&bits, memory, 8);
  return bits;
}
double largest(DType t) {
  const int bias = (1 << (row(t).exponent_bits - 1)) - 1;
  return std::ldexp(2 - std::ldexp(1.0, -int(row(t).mantissa_bits)), bias);
}
int least_exponent(DType t) { return 2 - (1 << (row(t).exponent_bits - 1)); }

// In units of the last place of the value of t nearest to `exact`; subnormals have one size.
double ulp_error(DType t, double got, Real exact) {
  if (std::isnan(exact) || std::isnan(got))
    return std::isnan(exact) && std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(exact)) return Real(got) == exact ? 0 : INFINITY;
  const int m = row(t).mantissa_bits;
  const int e = exact == 0 ? least_exponent(t) : std::max(ilogbl(exact), least_exponent(t));
  const Real unit = ldexpl(1, std::min(e, -least_exponent(t) + 1) - m);
  // Infinity stands where the next number after the largest one would.
  const Real value = std::isinf(got) ? std::copysign(2 * ldexpl(1, -least_exponent(t) + 1), Real(got))
                                     : Real(got);
  if (std::isinf(got) && std::abs(exact) >= Real(largest(t)) + unit / 2) return 0;
  return double(std::abs(value - exact) / unit);
}

struct Samples {
  std::vector<int64_t> x, y;
};

class Generator {
 public:
  Generator(const Function& f, DType t) : f_(f), t_(t) {}

  Samples next(size_t count, bool with_specials) {
    Samples s;
    if (with_specials) add_specials(s);
    if (size_bytes(t_) == 2 && !f_.binary) return s;  // all of them
    while (s.x.size() < count) add(s);
    return s;
  }

 private:
  int64_t encoded(double v) const { return encoded_bits(t_, v); }
  double uniform(double low, double high) {
    return low + (high - low) * double(random_() >> 11) * 0x1p-53;
  }
  int64_t any() { return int64_t(random_() >> (64 - row(t_).storage_bits)); }

  void add_specials(Samples& s) {
    const double tiny = std::ldexp(1.0, least_exponent(t_) - int(row(t_).mantissa_bits));
    const double normal = std::ldexp(1.0, least_exponent(t_)), most = largest(t_);
    const double pi = 3.14159265358979323846;
    const double values[] = {0, 1, 2, 3, 0.5, 1.5, 2.5, 7, 10, 0.1, tiny, normal - tiny, normal,
                             most, most / 2, INFINITY, pi / 4, pi / 2, pi, 355, 22, 1e4, 1e10, 1e19,
                             1e22, 1e30, 0x1p19, 8, 16, 20, 88.72283, 88.722839, 103.97, 709.782712893384,
                             745.1332, 127.99999, 128, 149, 150, 1023.9999999999999, 1074.9};
    std::vector<int64_t> all{encoded(NAN)};
    for (double v : values)
      for (double sign : {1.0, -1.0}) all.push_back(encoded(sign * v));
    for (int64_t a : all) {
      if (!f_.binary) s.x.push_back(a), s.y.push_back(a);
      if (f_.binary)
        for (int64_t b : all) s.x.push_back(a), s.y.push_back(b);
    }
    if (size_bytes(t_) > 2 || f_.binary) return;
    for (int64_t bits = 0; bits < 65536; bits++) s.x.push_back(bits), s.y.push_back(bits);
  }

  void add(Samples& s) {
    const size_t kind = s.x.size() % 4;
    double x = kind == 0 ? decoded(t_, any()) : uniform(f_.low, f_.high), y = 1;
    if (t_ == DType::F64 && f_.high - f_.low > 100 && kind != 0) x *= 8;
    if (!f_.binary) return push(s, x, y);
    if (f_.of_quotients) return add_quotient(s, kind);
    if (f_.alike) return push(s, x, kind == 3 ? decoded(t_, any()) : uniform(f_.low, f_.high));
    if (kind == 1) x = std::floor(uniform(-40, 40)), y = std::floor(uniform(-30, 30));
    const double range = least_exponent(t_) * -1.2;
    if (kind == 0) x = std::abs(x);
    if (kind != 1) y = uniform(-range, range) / std::log2(double(decoded(t_, encoded(x))));
    if (kind == 3 && random_() % 8 == 0) y = decoded(t_, any());
    push(s, x, y);
  }
  // Any y, and an x that is some number of times as large, or a whole number of times but for one
  // bit.
  void add_quotient(Samples& s, size_t kind) {
    const int m = std::min(int(row(t_).mantissa_bits), 23);
    double y = uniform(f_.low, f_.high) * (random_() % 2 ? 1 : -1);
    if (kind == 0) y = std::ldexp(y, int(uniform(0.5 * least_exponent(t_), -0.5 * least_exponent(t_) - m)));
    double x = y * std::exp2(uniform(-3, t_ == DType::F64 ? 52 : m)) * (random_() % 2 ? 1 : -1);
    if (kind == 2) x = decoded(t_, encoded(y)) * std::floor(x / y);
    push(s, x, y);
  }
  void push(Samples& s, double x, double y) const {
    s.x.push_back(encoded(x));
    s.y.push_back(encoded(y));
  }

  const Function& f_;
  DType t_;
  std::mt19937_64 random_{11};
};

Tensor uploaded(const std::vector<int64_t>& bits, DType t, const std::string& device) {
  const auto as = [&]<class T>(T) {
    return Tensor::from(std::vector<T>(bits.begin(), bits.end()), {int64_t(bits.size())},
                        {.device = device});
  };
  const Tensor whole = size_bytes(t) == 2   ? as(int16_t())
                       : size_bytes(t) == 4 ? as(int32_t())
                                            : as(int64_t());
  return whole.bitcast(t);
}
std::vector<int64_t> downloaded(const Tensor& v) {
  const auto as = [&]<class T>(T) {
    const std::vector<T> whole = v.bitcast(bits_of(v.dtype())).template to_vector<T>();
    return std::vector<int64_t>(whole.begin(), whole.end());
  };
  return size_bytes(v.dtype()) == 2   ? as(int16_t())
         : size_bytes(v.dtype()) == 4 ? as(int32_t())
                                      : as(int64_t());
}

struct Worst {
  double ulp = 0, x = 0, y = 0, got = 0;
};

class Measurement {
 public:
  Measurement(const Function& f, DType t, std::string device)
      : f_(f), t_(t), device_(std::move(device)), flushes_(!device_.starts_with("CPU")) {}

  Worst over(size_t count) {
    constexpr size_t kAtOnce = size_t(1) << 18;
    Generator generator(f_, t_);
    for (size_t done = 0; done < count; done += kAtOnce) {
      const Samples s = generator.next(std::min(kAtOnce, count - done), done == 0);
      if (s.x.empty()) break;
      const Tensor x = uploaded(s.x, t_, device_), y = uploaded(s.y, t_, device_);
      const std::vector<int64_t> out = downloaded(f_.run(x, y));
      for (size_t i = 0; i < out.size(); i++)
        look(decoded(t_, s.x[i]), decoded(t_, s.y[i]), decoded(t_, out[i]));
    }
    return worst_;
  }

 private:
  bool subnormal(Real v) const { return v != 0 && std::abs(v) < ldexpl(1, least_exponent(t_)); }

  bool is_promised(double x, double y) const {
    if (f_.of_positive && std::signbit(x)) return false;
    if (!f_.of_quotients || !std::isfinite(x) || y == 0 || std::isnan(y)) return true;
    return std::abs(Real(x) / Real(y)) < (t_ == DType::F64 ? 0x1p53L : 0x1p24L);
  }

  // Of a device that may flush denormals the results for zeros in their place are right as well.
  void look(double x, double y, double got) {
    if (!is_promised(x, y)) return;
    const Real exact = f_.exact(x, y);
    double e = ulp_error(t_, got, exact);
    if (flushes_ && e > 0.5) {
      const Real least = ldexpl(f_.ends_early ? 32 : 1, least_exponent(t_));
      if (exact != 0 && std::abs(exact) < least && got == 0) e = 0;
      const Real fx = subnormal(x) ? std::copysign(0.0L, Real(x)) : Real(x);
      const Real fy = subnormal(y) ? std::copysign(0.0L, Real(y)) : Real(y);
      if (fx != x || fy != y) e = std::min(e, ulp_error(t_, got, f_.exact(fx, fy)));
      if (fx != x) e = std::min(e, ulp_error(t_, got, f_.exact(-fx, fy)));
    }
    if (e > worst_.ulp) worst_ = {e, x, y, got};
  }

  const Function& f_;
  const DType t_;
  const std::string device_;
  const bool flushes_;
  Worst worst_;
};

const Promise* promise_of(const std::string& function, DType t) {
  for (const Promise& p : kPromises)
    if (p.function == function && p.dtype == t) return &p;
  return nullptr;
}

size_t sample_count() {
  const char* given = std::getenv("TUFF_TEST_ULP_SAMPLES");
  return given ? std::strtoull(given, nullptr, 10) : 16384;
}

bool is_measured(const std::string& function) {
  const char* given = std::getenv("TUFF_TEST_ULP_FUNCTIONS");
  return !given || ("," + std::string(given) + ",").find("," + function + ",") != std::string::npos;
}

class FunctionErrors : public testing::TestWithParam<std::string> {};

TEST_P(FunctionErrors, AreWithinWhatIsPromised) {
  const char* path = std::getenv("TUFF_TEST_ULP_OUT");
  std::FILE* out = path ? std::fopen(path, "a") : nullptr;
  const bool vulkan = GetParam().starts_with("VULKAN");
  for (const Function& f : kFunctions) {
    if (!is_measured(f.name)) continue;
    for (DType t : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
      const Promise* promise = promise_of(f.name, t);
      ASSERT_TRUE(promise) << f.name << " " << name(t) << " has no row in function_ulps.def";
      Worst w;
      try {
        w = Measurement(f, t, GetParam()).over(sample_count());
      } catch (const Unsupported&) {
        continue;  // no float64
      }
      EXPECT_LE(w.ulp, vulkan ? promise->vulkan : promise->host)
          << f.name << " " << name(t) << " at " << w.x << ", " << w.y << ": " << w.got << ", not "
          << double(f.exact(w.x, w.y));
      if (out)
        std::fprintf(out, "{\"function\": \"%s\", \"dtype\": \"%s\", \"ulp\": \"%.2f\", \"x\": \"%a\", \"y\": \"%a\"}\n",
                     f.name, std::string(short_name(t)).c_str(), w.ulp, w.x, w.y);
    }
  }
  if (out) std::fclose(out);
}

// GLSL.std.450 leaves the sign of a zero open, and drivers make use of it.
TEST_P(FunctionErrors, WholeNumbersKeepTheSignOfZero) {
  const double values[] = {-0.5, -0.0, 0.0, 0.5, -0.99, -1.5, 1.5, -0x1p-10};
  for (DType t : {DType::F16, DType::F32, DType::F64}) {
    std::vector<int64_t> bits;
    for (int i = 0; i < 64; i++) bits.push_back(encoded_bits(t, values[i % 8]));
    try {
      const std::vector<int64_t> out = downloaded(uploaded(bits, t, GetParam()).trunc());
      for (size_t i = 0; i < 64; i++) {
        const double want = std::trunc(values[i % 8]), got = decoded(t, out[i]);
        EXPECT_TRUE(got == want && std::signbit(got) == std::signbit(want))
            << name(t) << ": " << values[i % 8] << " became " << got;
      }
    } catch (const Unsupported&) {
      continue;  // no float64
    }
  }
}

// Drivers that round through narrower numbers take these for whole ones (see SpirvOps::trunc).
TEST_P(FunctionErrors, DoublesBeyondFloatsAreTruncated) {
  const double values[] = {0x1p24 + 0.5,       22335964.000000004, 0x1p31 + 0.25,  0x1p40 - 0x1p-12,
                           0x1p52 - 0.5,       0x1p52 + 1,         0x1p53 + 2,     0x1p63,
                           0x1.8p1000,         0.99999999999999989, 1,             2.5,
                           0x1.fffffffffffffp51, 4.5e-320,          INFINITY,      NAN};
  std::vector<int64_t> bits;
  for (const double v : values) {
    bits.push_back(encoded_bits(DType::F64, v));
    bits.push_back(encoded_bits(DType::F64, -v));
  }
  std::vector<int64_t> out;
  try {
    out = downloaded(uploaded(bits, DType::F64, GetParam()).trunc());
  } catch (const Unsupported&) {
    return;  // no float64
  }
  for (size_t i = 0; i < bits.size(); i++) {
    const double x = i % 2 ? -values[i / 2] : values[i / 2], want = std::trunc(x),
                 got = decoded(DType::F64, out[i]);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << got;
    } else {
      EXPECT_TRUE(got == want && std::signbit(got) == std::signbit(want)) << x << " became " << got;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, FunctionErrors, testing::ValuesIn(devices()),
                         [](const auto& info) { return named_by_device(info); });

}  // namespace
}  // namespace tuff::test
