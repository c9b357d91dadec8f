// Every pair of dtypes: conversions, and the same bits as another dtype of equal size.
#include "base/check.h"
#include "check/suite.h"
#include "check/values.h"

namespace tuff::check {
namespace {

using ir::IntVec;
using ir::Op;

Case pair_case(Op op, DType from, DType to, const char* shape) {
  Case c;
  c.op = ir::name(op);
  c.dtype = from;
  c.dtypes = {from, to};
  c.name = fmt::format("{}/{}/to_{}_{}", c.op, short_name(from), short_name(to), shape);
  c.budget = budget_of(op, to);
  c.build = [op, to](const Roots& x, const std::string&) -> Roots {
    return {ir::make(op, to, {x[0]})};
  };
  return c;
}

struct PairShape {
  const char* name;
  IntVec shape;
};
Case shaped_pair(Op op, DType from, DType to, const PairShape& r) {
  Case c = pair_case(op, from, to, r.name);
  c.inputs = [from, shape = r.shape, name = c.name](uint64_t seed) -> Arrays {
    Draw draw(seed, name);
    return {draw_array(draw, from, shape, Domain::Wide)};
  };
  return c;
}
Case special_pair(Op op, DType from, DType to) {
  Case c = pair_case(op, from, to, "special");
  c.inputs = [from](uint64_t) -> Arrays {
    const std::vector<Scalar> values = special_values(from, Domain::Any);
    return {array_of(from, {int64_t(values.size())}, values)};
  };
  return c;
}

void append_pair(std::vector<Case>& out, Op op, DType from, DType to) {
  static const std::vector<PairShape> rows = {{"scalar", {}}, {"odd", {7, 15}}, {"empty", {2, 0}}};
  for (const PairShape& r : rows) out.push_back(shaped_pair(op, from, to, r));
  out.push_back(special_pair(op, from, to));
}

}  // namespace

void append_cast_cases(std::vector<Case>& out) {
  for (const DType from : memory_dtypes()) {
    for (const DType to : memory_dtypes()) {
      if (from != to) append_pair(out, Op::Cast, from, to);
    }
  }
  for (const DType from : memory_dtypes()) {
    for (const DType to : memory_dtypes()) {
      const bool fits = size_bytes(from) == size_bytes(to);
      if (from != to && fits && from != DType::Bool && to != DType::Bool)
        append_pair(out, Op::Bitcast, from, to);
    }
  }
  for (const DType narrow : float8_dtypes()) {
    for (const DType other : memory_dtypes()) {
      out.push_back(special_pair(Op::Cast, narrow, other));
      out.push_back(special_pair(Op::Cast, other, narrow));
    }
    for (const auto& [from, to] : {std::pair(narrow, DType::U8), {DType::U8, narrow}})
      out.push_back(shaped_pair(Op::Bitcast, from, to, {"odd", {7, 15}}));
    out.push_back(shaped_pair(Op::Cast, DType::F32, narrow, {"odd", {7, 15}}));
  }
  out.push_back(special_pair(Op::Cast, DType::F8E4M3FN, DType::F8E5M2));
  out.push_back(special_pair(Op::Cast, DType::F8E5M2, DType::F8E4M3FN));
}

}  // namespace tuff::check
