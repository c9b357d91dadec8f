#include "render/c_integers.h"

#include <fmt/format.h>

#include "ir/scalar_eval.h"
#include "render/divisors.h"

namespace tuff::render {

using ir::Node;
using ir::Op;

namespace {

// As the device wraps.
int64_t wrapping_add(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
int64_t wrapping_mul(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

// A sum that fits its type may not fit without a constant of this size: it stays in the base.
bool is_far(int64_t constant) { return constant > (1 << 24) || constant < -(1 << 24); }

CValue affine_sum(CBody& b, DType t, const CValue& x, const CValue& y, bool subtract) {
  const int sign = subtract ? -1 : 1;
  CValue out{x.base, wrapping_add(x.constant, wrapping_mul(sign, y.constant)),
             x.step + sign * y.step, x.step ? x.every : y.every};
  out.divisor = divisor_of_sum(!x.base.empty(), x.divisor, !y.base.empty(), y.divisor);
  if (y.base.empty()) return out;
  if (x.base.empty() && !subtract)
    out.base = y.base;
  else if (is_far(out.constant)) {
    out.base = b.define(b.type_of(t),
                        fmt::format("{} {} {}", b.scalar({x.base, x.constant}, t),
                                    subtract ? "-" : "+", b.scalar({y.base, y.constant}, t)));
    out.constant = 0;
    out.divisor = 1;
  } else if (x.base.empty())
    out.base = b.define(b.type_of(t), fmt::format("-{}", y.base));
  else
    out.base =
        b.define(b.type_of(t), fmt::format("{} {} {}", x.base, subtract ? "-" : "+", y.base));
  return out;
}

CValue affine_product(CBody& b, DType t, const CValue& a, int64_t factor) {
  if (factor == 0) return {};
  CValue out{a.base, wrapping_mul(a.constant, factor), wrapping_mul(a.step, factor), a.every};
  out.divisor = divisor_of_product(a.divisor, factor);
  if (a.base.empty() || factor == 1) return out;
  std::string base = a.base;
  if (is_far(out.constant)) {
    base = b.scalar({a.base, a.constant}, t);
    out.constant = 0;
    out.divisor = divisor_of_product(1, factor);
  }
  out.base = b.define(b.type_of(t), fmt::format("{} * {}", base, c_int(b.dialect, t, factor)));
  return out;
}

// Lanes that are divided by a power of two: neighbours become equal.
std::optional<CValue> divided_lanes(const CBody& b, const Node& u, const std::vector<CValue>& x) {
  const CValue& v = x[0];
  const bool lanes = v.base.empty() && v.is_contiguous() && v.constant >= 0;
  if (!lanes || !x[1].is_number() || x[1].constant < 1 || x[1].constant > b.width)
    return std::nullopt;
  const int64_t n = u.op == Op::Shr && x[1].constant < 8 ? int64_t{1} << x[1].constant
                    : u.op == Op::IDiv                   ? x[1].constant
                                                         : 0;
  if (n == 0 || b.width % n != 0 || v.constant % n != 0) return std::nullopt;
  return CValue{"", v.constant / n, 1, n};
}

}  // namespace

std::optional<CValue> affine(CBody& b, const Node& u, const std::vector<CValue>& x) {
  const DType t = u.src(0)->dtype;
  if (t != DType::I32 && t != DType::I64) return std::nullopt;
  bool vectors = false, numbers = true;
  for (const CValue& v : x) vectors |= v.vector, numbers &= v.is_number();
  if (vectors) return std::nullopt;
  if (numbers && (u.dtype == DType::I32 || u.dtype == DType::I64 || u.dtype == DType::Bool)) {
    if (u.op == Op::Bitcast) return std::nullopt;
    std::vector<Scalar> scalars;
    for (size_t s = 0; s < x.size(); ++s)
      scalars.push_back(Scalar::of_int(u.src(s)->dtype, x[s].constant));
    const Scalar result = ir::eval_scalar(u.op, u.dtype, scalars);
    return u.dtype == DType::Bool ? CValue{result.as_bool() ? "1" : "0"}
                                  : CValue{"", result.as_int()};
  }
  const bool sums = u.op == Op::Add || u.op == Op::Sub;
  if (sums && x[0].step && x[1].step && x[0].every != x[1].every) return std::nullopt;
  switch (u.op) {
    case Op::Add: return affine_sum(b, t, x[0], x[1], false);
    case Op::Sub: return affine_sum(b, t, x[0], x[1], true);
    case Op::Shr:
    case Op::IDiv: return divided_lanes(b, u, x);
    case Op::Mul:
      if (!x[0].is_number() && !x[1].is_number()) return std::nullopt;
      return x[1].is_number() ? affine_product(b, t, x[0], x[1].constant)
                              : affine_product(b, t, x[1], x[0].constant);
    case Op::Shl:
      if (!x[1].is_number() || x[1].constant < 0 || x[1].constant > 30) return std::nullopt;
      return affine_product(b, t, x[0], int64_t{1} << x[1].constant);
    default: return std::nullopt;
  }
}

}  // namespace tuff::render
