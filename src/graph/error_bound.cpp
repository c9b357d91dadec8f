#include "graph/error_bound.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "graph/scalar_eval.h"
#include "graph/walk.h"

namespace tuff::graph {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();
constexpr double kSumGrowth = 4;  // times sqrt(n): beyond it with a probability below 1e-3

// Units in the last place of one op (Vulkan: division 2.5, log2 3, inversesqrt 2, exp2 3 + 2|x|;
// sqrt is 1 / inversesqrt; sine is decomposed, 1.8 measured). Others round correctly: half a unit.
double op_ulps(Op op, double x) {
  switch (op) {
    case Op::Div:
    case Op::Recip: return 2.5;
    case Op::Sqrt: return 4.5;
    case Op::Log2: return 3;
    case Op::Sin: return 3;
    case Op::Exp2: return 3 + 2 * std::abs(x);
    case Op::MulAdd: return 1;  // fused or not
    default: return 0.5;
  }
}

double smallest_normal(DType t) { return std::ldexp(1.0, 2 - (1 << (row(t).exponent_bits - 1))); }

class Analysis {
 public:
  Analysis(const UOp& ast, const KernelInputs& inputs,
           const std::function<bool(const StoredElement&)>& wanted,
           const std::function<void(const StoredElement&, const Bounded&)>& found)
      : ast_(ast), inputs_(inputs), wanted_(wanted), found_(found) {}

  void run() {
    for (const UOp& end : ast_->src()) loop(end, 1);
  }

 private:
  using Memo = std::unordered_map<const Node*, Bounded>;

  void loop(const UOp& end, size_t k) {
    Memo memo;
    if (k < end->src_count) {
      const Node* r = end->src(k).get();
      const int64_t size = eval(r->src(0).get(), memo).value.as_int();
      for (int64_t i = 0; i < size; i++) {
        ranges_[r] = i;
        loop(end, k + 1);
      }
      ranges_.erase(r);
      return;
    }
    const Node& index = *end->src(0)->src(0);
    if (index.src_count > 2 && !eval(index.src(2).get(), memo).value.as_bool()) return;
    const StoredElement at{index.src(0)->get<ParamArg>().slot,
                           eval(index.src(1).get(), memo).value.as_int()};
    if (wanted_(at)) found_(at, eval(end->src(0)->src(1).get(), memo));
  }

  Bounded eval(const Node* n, Memo& memo) {
    if (n->is_const()) return {n->get<Scalar>()};
    if (n->op == Op::Range) return {Scalar::of_int(DType::Index, ranges_.at(n))};
    if (auto it = memo.find(n); it != memo.end()) return it->second;
    const Bounded v = compute(*n, memo);
    memo.emplace(n, v);
    return v;
  }

  Bounded compute(const Node& n, Memo& memo) {
    if (n.op == Op::Variable)
      return {Scalar::of_int(n.dtype, inputs_.variables.at(n.get<VariableArg>().name))};
    if (n.op == Op::Load) return load(n, memo);
    if (n.op == Op::Reduce) return reduce(n);
    std::vector<Scalar> src;
    std::vector<double> errors;
    for (const UOp& u : n.src()) {
      const Bounded b = eval(u.get(), memo);
      src.push_back(b.value);
      errors.push_back(b.error);
    }
    const int64_t* word = std::get_if<int64_t>(&n.arg);
    const Scalar value = eval_scalar(n.op, n.dtype, src, word ? *word : 0);
    return settled(n.op, value, src, propagated(n, value, src, errors));
  }

  Bounded load(const Node& n, Memo& memo) {
    const Node& index = *n.src(0);
    double error = 0;
    if (index.src_count > 2) {
      const Bounded gate = eval(index.src(2).get(), memo);
      error = gate.error > 0 ? kUnknown : 0;
      if (!gate.value.as_bool()) return {Scalar::of_int(n.dtype, 0), error};
    }
    const Bounded offset = eval(index.src(1).get(), memo);
    if (offset.error > 0) error = kUnknown;
    const auto& bytes = inputs_.buffers.at(size_t(index.src(0)->get<ParamArg>().slot));
    const size_t size = size_bytes(n.dtype), at = size_t(offset.value.as_int()) * size;
    TUFF_CHECK(at + size <= bytes.size(), "element {} of a buffer of {} bytes",
               offset.value.as_int(), bytes.size());
    return {load_scalar(n.dtype, bytes.data() + at), error};
  }

  struct Folding {
    Scalar value;
    double magnitude = 0, error = 0, relative = 0;
    int64_t count = 0;
  };

  Bounded reduce(const Node& n) {
    const Op op = n.get<ReduceArg>().op;
    const DType acc = is_float(n.dtype) && op != Op::Max ? accumulator(n.dtype) : n.dtype;
    Folding f;
    fold(n, 1, op, acc, f);
    const Scalar value = f.count ? f.value.cast(n.dtype) : Scalar::of_int(n.dtype, op == Op::Mul);
    if (!is_float(n.dtype)) return {value, f.error};
    const double v = std::abs(value.as_double()), steps = double(f.count - 1);
    // As wide as the narrowest accumulator that an implementation may take.
    const double unit = ulp_of(n.dtype, 1) / 2,
                 rounds = std::min(steps, kSumGrowth * std::sqrt(steps));
    double error = f.error;
    if (op == Op::Add && f.count > 1)
      error += rounds * unit_of(acc) * f.magnitude + steps * smallest_normal(acc);
    if (op == Op::Mul) error = v * (f.relative + rounds * unit_of(acc));
    if (acc != n.dtype) error += v * unit;
    return {value, std::isfinite(value.as_double()) ? error : 0};
  }

  static double unit_of(DType t) { return std::ldexp(1.0, -int(row(t).mantissa_bits) - 1); }

  void fold(const Node& n, size_t k, Op op, DType acc, Folding& f) {
    Memo memo;
    if (k < n.src_count) {
      const Node* r = n.src(k).get();
      const int64_t size = eval(r->src(0).get(), memo).value.as_int();
      for (int64_t i = 0; i < size; i++) {
        ranges_[r] = i;
        fold(n, k + 1, op, acc, f);
      }
      ranges_.erase(r);
      return;
    }
    const Bounded x = eval(n.src(0).get(), memo);
    const Scalar term = x.value.cast(acc), pair[2] = {f.value, term};
    f.value = f.count++ ? eval_scalar(op, acc, pair) : term;
    const double magnitude = std::abs(term.as_double());
    f.magnitude += magnitude;
    f.error = op == Op::Max ? std::max(f.error, x.error) : f.error + x.error;
    f.relative += x.error > 0 ? x.error / magnitude : 0;
  }

  // The error of an op's result because of those of its sources.
  static double propagated(const Node& n, const Scalar& value, std::span<const Scalar> src,
                           std::span<const double> e) {
    if (n.op == Op::Where) return selected(src, e);
    if (std::all_of(e.begin(), e.end(), [](double x) { return x == 0; })) return 0;
    if (n.dtype == DType::Bool) return truth(n.op, src, e);
    const double x = src[0].as_double(), v = value.as_double();
    const double y = src.size() > 1 ? src[1].as_double() : 0;
    switch (n.op) {
      case Op::Neg: return e[0];
      case Op::Add:
      case Op::Sub: return e[0] + e[1];
      case Op::Mul: return std::abs(x) * e[1] + std::abs(y) * e[0] + e[0] * e[1];
      case Op::MulAdd: return std::abs(x) * e[1] + std::abs(y) * e[0] + e[0] * e[1] + e[2];
      case Op::Max: return std::max(e[0], e[1]);
      case Op::Div: return quotient(v, y, e[0], e[1]);
      case Op::Recip: return quotient(v, x, 0, e[0]);
      case Op::Sin: return std::min(e[0], 2.0);
      case Op::Exp2: return std::abs(v) * std::expm1(e[0] * M_LN2);
      case Op::Log2: return x > e[0] ? -std::log1p(-e[0] / x) / M_LN2 : kUnknown;
      case Op::Sqrt: return std::sqrt(std::max(x, 0.0) + e[0]) - std::sqrt(std::max(x - e[0], 0.0));
      case Op::Trunc: return std::trunc(x + e[0]) - std::trunc(x - e[0]);
      case Op::Cast: return is_float(n.dtype) ? e[0] : std::trunc(x + e[0]) - std::trunc(x - e[0]);
      default: return kUnknown;  // bits of an inexact number
    }
  }

  static double quotient(double v, double y, double ex, double ey) {
    return std::abs(y) > ey ? (ex + std::abs(v) * ey) / (std::abs(y) - ey) : kUnknown;
  }
  static double selected(std::span<const Scalar> src, std::span<const double> e) {
    const double chosen = src[0].as_bool() ? e[1] : e[2];
    if (e[0] == 0) return chosen;
    return std::max(e[1], e[2]) + std::abs(src[1].as_double() - src[2].as_double());
  }
  // 1 where the sources' errors may turn a truth value, else 0.
  static double truth(Op op, std::span<const Scalar> src, std::span<const double> e) {
    const auto certain = [&](size_t i, bool v) { return e[i] == 0 && src[i].as_bool() == v; };
    if (op == Op::And && (certain(0, false) || certain(1, false))) return 0;
    if (op == Op::Or && (certain(0, true) || certain(1, true))) return 0;
    if (op == Op::CmpLt || op == Op::CmpNe || op == Op::CmpEq)
      return std::abs(src[0].as_double() - src[1].as_double()) > e[0] + e[1] ? 0 : 1;
    if (op == Op::Cast) return std::abs(src[0].as_double()) > e[0] ? 0 : 1;
    return 1;
  }

  // Adds the op's own rounding, and what flushing a subnormal may take away.
  static Bounded settled(Op op, const Scalar& value, std::span<const Scalar> src, double error) {
    if (std::isnan(error)) error = kUnknown;
    if (!is_float(value.dtype)) return {value, error};
    const double v = value.as_double();
    // Kept in a wider register it may not have overflowed.
    if (!std::isfinite(v)) return {value, value.dtype == DType::F16 ? kUnknown : 0};
    switch (op) {
      case Op::Neg:
      case Op::Trunc:
      case Op::Max:
      case Op::Where:
      case Op::Bitcast: return {value, error};
      case Op::Cast:
        if (is_float(src[0].dtype) &&
            row(src[0].dtype).mantissa_bits <= row(value.dtype).mantissa_bits)
          return {value, error};
        break;
      default: break;
    }
    if (v == 0 && error == 0 && (op == Op::Mul || op == Op::Add)) return {value, 0};
    const double at = std::abs(v) + (std::isfinite(error) ? error : 0);
    return {value, error + op_ulps(op, src[0].as_double()) * ulp_of(value.dtype, at) +
                       (at < 2 * smallest_normal(value.dtype) ? smallest_normal(value.dtype) : 0)};
  }

  const UOp ast_;
  const KernelInputs& inputs_;
  const std::function<bool(const StoredElement&)>& wanted_;
  const std::function<void(const StoredElement&, const Bounded&)>& found_;
  std::unordered_map<const Node*, int64_t> ranges_;
};

bool rounds(const Node& n) {
  if (!is_float(n.dtype) || !(is_alu(n.op) || n.op == Op::Reduce)) return false;
  switch (n.op) {
    case Op::Neg:
    case Op::Trunc:
    case Op::Max:
    case Op::Where:
    case Op::Bitcast: return false;
    case Op::Reduce: return n.get<ReduceArg>().op != Op::Max;
    default: return true;
  }
}

}  // namespace

double ulp_of(DType t, double x) {
  const double at = std::max(std::abs(x), smallest_normal(t));
  return std::ldexp(1.0, std::ilogb(at) - int(row(t).mantissa_bits));
}

void bound_errors(const UOp& ast, const KernelInputs& inputs,
                  const std::function<bool(const StoredElement&)>& wanted,
                  const std::function<void(const StoredElement&, const Bounded&)>& found) {
  Analysis(ast, inputs, wanted, found).run();
}

double plain_ulps(const UOp& ast) {
  std::unordered_map<const Node*, double> growth;
  double most = 0;
  for (const Node* n : toposort(ast)) {
    double g = 0;
    for (const UOp& s : n->src()) g = std::max(g, growth[s.get()]);
    if (rounds(*n)) g += n->op == Op::Reduce ? 0 : 2 * op_ulps(n->op, 1);
    if (rounds(*n) && n->op == Op::Reduce) {
      double terms = 1;
      for (const UOp& r : n->src().subspan(1)) terms *= double(r->src(0)->max);
      g += std::sqrt(terms);
    }
    growth[n] = g;
    most = std::max(most, g);
  }
  return most;
}

}  // namespace tuff::graph
