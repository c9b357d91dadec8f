// Errors of the decomposed functions in ULP against double (f32) or long double (f64), and the
// exact meaning of what else is decomposed.
#include <gtest/gtest.h>

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdio>
#include <functional>
#include <random>

#include "base/random_cases.h"
#include "ir/scalar_eval.h"
#include "ir/walk.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/lower/transcendental.h"
#include "kernel/pipeline.h"

namespace tuff::kernel::testing {
namespace {

using tuff::testing::kSanitized;
using tuff::testing::random_cases;

using namespace ir;

// A value graph compiled to a flat program of scalar ops with one input.
class Formula {
 public:
  Formula(UOp (*make_formula)(const UOp&), DType t)
      : x_(load(0, 1, index_const(0), t)), root_(make_formula(x_)) {
    for (const Node* n : toposort(root_)) {
      position_[n] = steps_.size();
      steps_.push_back({n, {}});
      if (n == x_.get() || n->op == Op::Const) continue;
      for (const UOp& s : n->src()) steps_.back().src.push_back(position_.at(s.get()));
    }
    values_.resize(steps_.size());
  }
  Scalar operator()(const Scalar& x) {
    for (size_t i = 0; i < steps_.size(); i++) {
      const Node* n = steps_[i].node;
      if (n->op == Op::Index || n->op == Op::Param) continue;
      if (n == x_.get()) {
        values_[i] = x;
      } else if (n->op == Op::Const) {
        values_[i] = n->get<Scalar>();
      } else {
        Scalar src[4];
        for (size_t s = 0; s < steps_[i].src.size(); s++) src[s] = values_[steps_[i].src[s]];
        values_[i] =
            eval_scalar(n->op, n->dtype, std::span<const Scalar>(src, steps_[i].src.size()));
      }
    }
    return values_.back();
  }

 private:
  struct Step {
    const Node* node;
    std::vector<size_t> src;
  };
  UOp x_, root_;
  std::unordered_map<const Node*, size_t> position_;
  std::vector<Step> steps_;
  std::vector<Scalar> values_;
};

// |got - exact| in units of the last place of the f32 (f64) nearest to exact; subnormals have one
// size.
double ulp_error(double got, long double exact, DType t) {
  if (std::isnan(double(exact))) return std::isnan(got) ? 0 : 1e9;
  const long double most = t == DType::F32 ? FLT_MAX : DBL_MAX;
  if (std::isinf(got) || std::isinf(double(exact)) || std::fabs(exact) > most) {
    return std::isinf(got) && std::signbit(got) == std::signbit(double(exact)) &&
                   std::fabs(exact) >= most
               ? 0
           : std::isinf(double(exact)) ? 1e9
           : std::fabs(got) == most    ? 1
                                       : 1e9;
  }
  const int least = t == DType::F32 ? -149 : -1074, digits = t == DType::F32 ? 24 : 53;
  const int e = exact == 0 ? least : std::max(std::ilogb(exact) - digits + 1, least);
  return double(std::fabs((long double)got - exact) / std::ldexp(1.0L, e));
}

struct Function {
  const char* name;
  UOp (*formula)(const UOp&);
  long double (*exact)(long double);
  double budget32, budget64;
};
const Function kFunctions[] = {
    {"exp2", [](const UOp& x) { return exp2_by_polynomial(x, false); },
     [](long double x) { return exp2l(x); }, 2, 4},
    {"exp2 fused", [](const UOp& x) { return exp2_by_polynomial(x, true); },
     [](long double x) { return exp2l(x); }, 2, 4},
    {"log2", log2_by_polynomial, [](long double x) { return log2l(x); }, 3, 4},
    {"exp", [](const UOp& x) { return exp_by_polynomial(x, false); },
     [](long double x) { return expl(x); }, 1.5, 1.5},
    {"exp fused", [](const UOp& x) { return exp_by_polynomial(x, true); },
     [](long double x) { return expl(x); }, 1.5, 1.5},
    {"sin", [](const UOp& x) { return sin_by_polynomial(x); },
     [](long double x) { return sinl(x); }, 2, 2},
    {"cos", [](const UOp& x) { return sin_by_polynomial(x, 1); },
     [](long double x) { return cosl(x); }, 2, 2},
    {"-sin", [](const UOp& x) { return sin_by_polynomial(x, 2); },
     [](long double x) { return -sinl(x); }, 2, 2},
    {"sqrt", sqrt_by_newton, [](long double x) { return sqrtl(x); }, 1, 1},
};

double worst_over(const Function& f, DType t, const std::function<bool(double*)>& next,
                  double* where) {
  Formula formula(f.formula, t);
  double worst = 0, x = 0;
  while (next(&x)) {
    const double e =
        ulp_error(formula(Scalar::of_double(t, x)).as_double(), f.exact((long double)x), t);
    if (e > worst) worst = e, *where = x;
  }
  return worst;
}

TEST(Decompose, F32FunctionsKeepTheirBudgets) {
  for (const Function& f : kFunctions) {
    uint64_t bits = 0;
    // Every exponent and sign, a prime step through the significands: 2^32 / kStep values.
    constexpr uint32_t kStep = kSanitized ? 32771 : 8191;
    const auto sweep = [&](double* x) {
      *x = double(std::bit_cast<float>(uint32_t(bits)));
      bits += kStep;
      return bits < (uint64_t(1) << 32);
    };
    double at = 0;
    const double worst = worst_over(f, DType::F32, sweep, &at);
    std::printf("f32 %s: %.3f ULP at %a\n", f.name, worst, at);
    EXPECT_LE(worst, f.budget32) << f.name << " at " << at;
    std::mt19937 random(5);
    int left = int(random_cases(150000));
    const bool narrow = f.exact(-1) < 0 || std::isnan(double(f.exact(-1)));
    const auto near = [&](double* x) {  // where it matters: around 1, small arguments
      const double u = double(random()) / 4294967296.0;
      *x = double(float(narrow ? 0.5 + 1.5 * u : -20 + 40 * u));
      return left-- > 0;
    };
    const double worst_near = worst_over(f, DType::F32, near, &at);
    std::printf("f32 %s near: %.3f ULP at %a\n", f.name, worst_near, at);
    EXPECT_LE(worst_near, f.budget32) << f.name << " at " << at;
  }
}

TEST(Decompose, F32SineNearMultiplesOfPi) {
  Formula sine([](const UOp& x) { return sin_by_polynomial(x); }, DType::F32);
  double worst = 0;
  for (int i = 1; i < int(random_cases(100000)); i++) {
    const float x = float(i * M_PI / 2);
    for (float y : {x, std::nextafterf(x, 0), std::nextafterf(x, 1e30f), -x}) {
      worst = std::max(worst, ulp_error(sine(Scalar::of_double(DType::F32, double(y))).as_double(),
                                        sinl(y), DType::F32));
    }
  }
  std::printf("f32 sin at multiples of pi/2: %.3f ULP\n", worst);
  EXPECT_LE(worst, 2);
}

// Where the reduction loses most: near multiples of pi/2, and the worst of all doubles (Muller,
// "Elementary Functions", 2006, table 10.1): 6381956970095103 * 2^797 is 2^-61 off one. glibc's
// long double sine reduces with every word of 2/pi that it needs.
TEST(Decompose, F64SineNearMultiplesOfPi) {
  Formula sine([](const UOp& x) { return sin_by_polynomial(x); }, DType::F64),
      cosine([](const UOp& x) { return sin_by_polynomial(x, 1); }, DType::F64);
  double worst = 0;
  const auto look = [&](double x) {
    for (double y : {x, std::nextafter(x, 0), -x}) {
      const Scalar at = Scalar::of_double(DType::F64, y);
      worst = std::max({worst, ulp_error(sine(at).as_double(), sinl(y), DType::F64),
                        ulp_error(cosine(at).as_double(), cosl(y), DType::F64)});
    }
  };
  for (int i = 1; i < int(random_cases(20000)); i++) look(i * M_PI / 2);
  for (int e = 15; e < 1022; e++) look(std::round(std::ldexp(1 / M_PI, e)) * (M_PI / 2));
  for (double x : {std::ldexp(6381956970095103.0, 797), 1e19, 1e22, 1e300, 6.7e9, 0x1p19,
                   std::nextafter(0x1p19, 0), DBL_MAX})
    look(x);
  std::printf("f64 sin and cos at multiples of pi/2: %.3f ULP\n", worst);
  EXPECT_LE(worst, 2);
}

TEST(Decompose, F64FunctionsKeepTheirBudgets) {
  for (const Function& f : kFunctions) {
    std::mt19937_64 random(3);
    int left = int(random_cases(200000));
    const auto next = [&](double* x) {
      const double u = double(random() >> 11) * 0x1p-53;
      const int kind = left % 3;
      *x = kind == 0   ? std::bit_cast<double>(random())
           : kind == 1 ? 0.5 + 1.5 * u
                       : -1080 + 2160 * u;
      return left-- > 0;
    };
    double at = 0;
    const double worst = worst_over(f, DType::F64, next, &at);
    std::printf("f64 %s: %.3f ULP at %a\n", f.name, worst, at);
    EXPECT_LE(worst, f.budget64) << f.name << " at " << at;
  }
}

TEST(Decompose, SpecialValues) {
  const double inf = INFINITY;
  for (DType t : {DType::F32, DType::F64}) {
    Formula e([](const UOp& x) { return exp2_by_polynomial(x, false); }, t),
        l(log2_by_polynomial, t), r(sqrt_by_newton, t);
    Formula s([](const UOp& x) { return sin_by_polynomial(x); }, t),
        c([](const UOp& x) { return sin_by_polynomial(x, 1); }, t),
        n([](const UOp& x) { return exp_by_polynomial(x, true); }, t);
    auto at = [&](Formula& f, double x) { return f(Scalar::of_double(t, x)).as_double(); };
    EXPECT_EQ(at(e, inf), inf);
    EXPECT_EQ(at(e, -inf), 0);
    EXPECT_EQ(at(e, 0), 1);
    EXPECT_TRUE(std::isnan(at(e, NAN)));
    EXPECT_EQ(at(n, inf), inf);
    EXPECT_EQ(at(n, -inf), 0);
    EXPECT_EQ(at(n, 0), 1);
    EXPECT_TRUE(std::isnan(at(n, NAN)) && std::isnan(at(c, inf)) && std::isnan(at(c, NAN)));
    EXPECT_EQ(at(c, 0), 1);
    EXPECT_EQ(at(c, -0.0), 1);
    EXPECT_EQ(at(l, 0), -inf);
    EXPECT_EQ(at(l, inf), inf);
    EXPECT_EQ(at(l, 1), 0);
    EXPECT_EQ(at(l, 8), 3);
    EXPECT_TRUE(std::isnan(at(l, -1)) && std::isnan(at(l, NAN)) && std::isnan(at(l, -inf)));
    EXPECT_TRUE(std::isnan(at(s, inf)) && std::isnan(at(s, NAN)));
    EXPECT_TRUE(std::signbit(at(s, -0.0)));
    EXPECT_EQ(at(r, inf), inf);
    EXPECT_EQ(at(r, 4), 2);
    EXPECT_TRUE(std::isnan(at(r, -1)) && std::signbit(at(r, -0.0)));
  }
}

UOp unary_kernel(int64_t n, DType from, DType to, const std::function<UOp(const UOp&)>& f) {
  AstBuilder b;
  const UOp i = b.loop(n);
  const UOp y = f(load(1, n, i, from));
  return kernel_of({store(0, n, i, cast(y, to), {i})});
}

TEST(Decompose, CastsDivisionsThreefryAndBf16MeanWhatTheInterpreterSays) {
  for (const NamedTarget& t : test_targets()) {
    for (DType to : {DType::I32, DType::U32, DType::I8, DType::U8, DType::I64, DType::Bool}) {
      const UOp ast = unary_kernel(64, DType::F32, to, [](const UOp& x) {
        const UOp big = x * constant(DType::F32, 3e9);
        return alu(Op::Div, {big, alu(Op::Trunc, {x})});  // NaN and infinities among them
      });
      expect_same(ast, lower(ast, t.target), 0, fmt::format("float to {} on {}", name(to), t.name));
    }
    for (Op op : {Op::IDiv, Op::IMod}) {
      AstBuilder b;
      const UOp i = b.loop(64);
      const UOp x = (load(1, 64, i, DType::I32) - 3) * 0x2aaaaaab,
                y = load(2, 64, i, DType::I32) - 3;
      const UOp ast = kernel_of({store(0, 64, i, alu(op, {x, y}), {i})});
      expect_same(ast, lower(ast, t.target), 0, "division on " + t.name);
    }
    for (int64_t word : {0, 1}) {
      const UOp ast = unary_kernel(16, DType::U32, DType::U32, [&](const UOp& x) {
        return alu(Op::Threefry, {x, x + 1, x * 77, x + 12345}, word);
      });
      expect_same(ast, lower(ast, t.target), 0, "threefry on " + t.name);
    }
    for (DType narrow : {DType::BF16, DType::F16, DType::F8E4M3FN, DType::F8E5M2}) {
      const UOp ast = unary_kernel(200, narrow, narrow, [](const UOp& x) {
        return alu(Op::Max, {x * x + x, alu(Op::Recip, {x})});
      });
      expect_same(ast, lower(ast, t.target), 0,
                  fmt::format("{} arithmetic on {}", name(narrow), t.name));
    }
  }
}

// GLSL.std.450 has them of 16 and 32 bits; random graphs found f64 handed through on Vulkan
// devices.
TEST(Decompose, F64FunctionsAreNobodysOwn) {
  Target t = builtin_target("spirv-lavapipe");
  t.features.exp2 = t.features.log2 = t.features.sin = true;
  for (Op op : {Op::Exp2, Op::Log2, Op::Sin}) {
    const UOp ast =
        unary_kernel(8, DType::F64, DType::F64, [&](const UOp& x) { return alu(op, {x}); });
    for (const UOp& u : lower(ast, t).ops) EXPECT_NE(u->op, op) << name(op);
  }
}

TEST(Decompose, AbsentTypesAreRefusedByName) {
  const Target t = builtin_target("spirv-generic");
  const UOp ast = unary_kernel(8, DType::F64, DType::F64, [](const UOp& x) { return x + x; });
  try {
    lower(ast, t);
    FAIL() << "float64 was accepted";
  } catch (const Unsupported& e) {
    EXPECT_NE(std::string(e.what()).find("float64"), std::string::npos) << e.what();
  }
}

// What draws random numbers must have the same bits on every device: nothing of the device's own.
TEST(Decompose, RandomNumbersMeetNoFunctionOfTheDevice) {
  const auto count = [](const LinearKernel& k) {
    return std::count_if(k.ops.begin(), k.ops.end(), [](const UOp& u) {
      return u->op == Op::Sqrt || u->op == Op::Exp2 || u->op == Op::Log2 || u->op == Op::Div;
    });
  };
  for (const NamedTarget& t : test_targets()) {
    for (Op op : {Op::Sqrt, Op::Exp2, Op::Log2}) {
      const auto curve = [&](bool drawn) {
        return unary_kernel(16, DType::U32, DType::F32, [&](const UOp& x) {
          const UOp bits = drawn ? alu(Op::Threefry, {x, x, x, x}, int64_t{0}) : x;
          return alu(op, {cast(bits, DType::F32)});
        });
      };
      EXPECT_EQ(count(lower(curve(true), t.target)), 0) << ir::name(op) << " on " << t.name;
    }
    const UOp root =
        unary_kernel(16, DType::F32, DType::F32, [](const UOp& x) { return alu(Op::Sqrt, {x}); });
    EXPECT_EQ(count(lower(root, t.target)) > 0, t.target.features.sqrt) << t.name;
  }
}

}  // namespace
}  // namespace tuff::kernel::testing
