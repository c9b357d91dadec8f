// Reductions of every dtype over inner, outer, middle and all axes. A device may order the terms as
// it likes, so the operands are chosen such that every order gives the same bits; one case per
// float dtype rounds.
#include <limits>

#include "base/check.h"
#include "check/suite.h"
#include "check/values.h"

namespace tuff::check {
namespace {

using ir::HostArray;
using ir::IntVec;
using ir::Op;

struct ShapeRow {
  const char* name;
  IntVec shape, axes;
};
const std::vector<ShapeRow>& shapes() {
  static const std::vector<ShapeRow> rows = {
      {"all", {7, 15}, {0, 1}},         {"inner", {5, 33}, {1}},   {"outer", {33, 5}, {0}},
      {"middle", {3, 11, 4}, {1}},      {"empty", {3, 0, 2}, {1}}, {"large", {2, 3001}, {1}},
      {"strided", {257, 6, 3}, {0, 2}},
  };
  return rows;
}

Domain domain_of(Op op) {
  return op == Op::Add ? Domain::Quarters : op == Op::Mul ? Domain::Powers : Domain::Any;
}

const char* kExact = "operands whose sums and products are exact in every order of the terms";

Case reduce_case(Op op, DType t, const ShapeRow& s, Domain domain) {
  Case c;
  c.op = fmt::format("reduce_{}", ir::name(op));
  c.dtype = t;
  c.dtypes = {t};
  c.name = fmt::format("{}/{}/{}", c.op, short_name(t), s.name);
  c.budget.source = kExact;
  c.inputs = [t, domain, shape = s.shape, name = c.name](uint64_t seed) -> Arrays {
    Draw draw(seed, name);
    return {draw_array(draw, t, shape, domain)};
  };
  c.build = [op, axes = s.axes](const Roots& x, const std::string&) -> Roots {
    return {ir::reduce(op, x[0], axes)};
  };
  return c;
}

// n positive terms differ between two orders by n/2 roundings each way (Higham: Accuracy and
// Stability of Numerical Algorithms, 2nd ed., sec. 4.2); f16 and bf16 are summed in f32.
Case rounding_case(DType t) {
  constexpr int64_t kTerms = 1000;
  Case c = reduce_case(Op::Add, t, {"rounding", {kTerms}, {0}}, Domain::Near);
  const bool wide = t == DType::F32 || t == DType::F64;
  const double ulp = wide ? double(kTerms) : 1;
  c.budget = {ulp, ulp, Scale::Element,
              wide ? "n terms of one sign, any order: n roundings (Higham, sec. 4.2)"
                   : "summed in f32, then rounded once: one step at most"};
  return c;
}

// A row of ordinary numbers, one with a NaN, one with an infinity, one with both infinities.
Case special_case(Op op, DType t) {
  Case c = reduce_case(op, t, {"special", {4, 9}, {1}}, domain_of(op));
  c.inputs = [t, draw_from = c.inputs](uint64_t seed) {
    Arrays out = draw_from(seed);
    auto set = [&](size_t i, double v) {
      store_scalar(Scalar::of_double(t, v), out[0].bytes.data() + i * size_bytes(t));
    };
    set(9 + 4, std::numeric_limits<double>::quiet_NaN());
    set(18 + 2, std::numeric_limits<double>::infinity());
    set(27, std::numeric_limits<double>::infinity());
    set(27 + 8, -std::numeric_limits<double>::infinity());
    return out;
  };
  return c;
}

// Rows by columns of which pairs of rows lie interleaved: what matrix registers of a CPU take.
Case pair_product_case(const char* name, int64_t m, int64_t n, int64_t k, bool transposed) {
  constexpr int64_t kPair = 2;
  Case c;
  c.op = "pair_product";
  c.dtype = DType::BF16;
  c.dtypes = {DType::BF16, DType::F32};
  c.name = fmt::format("{}/bf16/{}", c.op, name);
  c.budget.source = kExact;
  c.inputs = [=, name = c.name](uint64_t seed) -> Arrays {
    Draw draw(seed, name);
    return {draw_array(draw, DType::BF16, {m, k}, Domain::Quarters),
            draw_array(draw, DType::BF16, {k / kPair, n, kPair}, Domain::Quarters)};
  };
  c.build = [=](const Roots& x, const std::string&) -> Roots {
    const ir::Shape all{m, n, k / kPair, kPair};
    const auto factor = [&](const ir::UOp& u, const ir::Shape& own) {
      return ir::cast(ir::expand(ir::reshape(u, own), all), DType::F32);
    };
    const ir::UOp left = factor(x[0], {m, 1, k / kPair, kPair});
    const ir::UOp right = factor(ir::permute(x[1], {1, 0, 2}), {1, n, k / kPair, kPair});
    const ir::UOp sum = ir::reduce(Op::Add, ir::alu(Op::Mul, {left, right}), {2, 3});
    return {transposed ? ir::permute(sum, {1, 0, 2, 3}) : sum};
  };
  return c;
}

}  // namespace

void append_reduce_cases(std::vector<Case>& out) {
  for (const Op op : {Op::Add, Op::Mul, Op::Max}) {
    for (const DType t : memory_dtypes()) {
      for (const ShapeRow& s : shapes()) {
        // Some orders of 3001 powers of two leave the range of floats on their way.
        if (op == Op::Mul && is_float(t) && s.shape.back() == 3001) continue;
        out.push_back(reduce_case(op, t, s, domain_of(op)));
      }
      if (is_float(t)) out.push_back(special_case(op, t));
      if (is_float(t) && op == Op::Add) out.push_back(rounding_case(t));
    }
  }
  out.push_back(pair_product_case("rows", 32, 48, 64, false));
  out.push_back(pair_product_case("columns", 64, 32, 128, true));
  out.push_back(pair_product_case("odd", 17, 5, 6, false));
  for (const DType t : float8_dtypes()) {
    for (const Op op : {Op::Add, Op::Max}) {
      out.push_back(reduce_case(op, t, {"rows", {3, 40}, {1}}, domain_of(op)));
      out.push_back(special_case(op, t));
    }
  }
}

}  // namespace tuff::check
