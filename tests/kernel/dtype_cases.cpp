#include "kernel/dtype_cases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "ir/walk.h"
#include "kernel/ast_builder.h"

namespace tuff::kernel::testing {

using namespace ir;

namespace {

constexpr int64_t kEven = 128, kOdd = 77;  // with lanes, and without

DtypeCase binary(Op op, DType t, double ulp = 0) {
  AstBuilder b;
  const UOp i = b.loop(kEven), x = load(1, kEven, i, t);
  UOp y = load(2, kEven, i, t);
  if (op == Op::Shl || op == Op::Shr)
    y = alu(Op::And, {y, constant(Scalar::of_int(t, row(t).storage_bits - 1))});
  return {fmt::format("{} of {}", name(op), name(t)),
          kernel_of({store(0, kEven, i, alu(op, {x, y}), {i})}), ulp};
}
DtypeCase unary(Op op, DType t, double ulp = 0) {
  AstBuilder b;
  const UOp i = b.loop(kOdd);
  UOp x = load(1, kOdd, i, t);
  if (op == Op::Sin) x = x * constant(t, 0x1p-5);  // float64's is accurate below 2^20 alone
  return {fmt::format("{} of {}", name(op), name(t)),
          kernel_of({store(0, kOdd, i, alu(op, {x}), {i})}), ulp};
}
DtypeCase by_constant(Op op, DType t, int64_t c) {
  AstBuilder b;
  const UOp i = b.loop(kOdd);
  const UOp y = alu(op, {load(1, kOdd, i, t), constant(Scalar::of_int(t, c))});
  return {fmt::format("{} of {} by {}", name(op), name(t), c),
          kernel_of({store(0, kOdd, i, y, {i})})};
}
DtypeCase chosen(DType t) {
  AstBuilder b;
  const UOp i = b.loop(kEven), x = load(1, kEven, i, t), y = load(2, kEven, i, t);
  return {fmt::format("where of {}", name(t)),
          kernel_of({store(0, kEven, i, where(alu(Op::CmpLt, {x, y}), y, x), {i})})};
}
// Rows long enough to be shared by a workgroup, and rows that are not.
DtypeCase folded(Op op, DType t, int64_t rows, int64_t n, double ulp) {
  AstBuilder b;
  const UOp i = b.loop(rows), k = b.fold(n);
  const UOp y = reduce_over(op, load(1, rows * n, i * n + k, t), {k});
  return {fmt::format("{} of {} rows of {} {}", name(op), rows, n, name(t)),
          kernel_of({store(0, rows, i, y, {i})}), ulp};
}

void add_integer_ops(std::vector<DtypeCase>& out, DType t) {
  for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::IDiv, Op::IMod, Op::Max, Op::And, Op::Or, Op::Xor,
                Op::Shl, Op::Shr, Op::CmpLt, Op::CmpNe, Op::CmpEq})
    out.push_back(binary(op, t));
  out.push_back(unary(Op::Neg, t));
  for (int64_t c : {3, 10, 127}) {
    out.push_back(by_constant(Op::IDiv, t, c));
    out.push_back(by_constant(Op::IMod, t, c));
  }
  for (int64_t n : {1, 7}) {
    out.push_back(by_constant(Op::Shl, t, n));
    out.push_back(by_constant(Op::Shr, t, n));
  }
  for (Op op : {Op::Add, Op::Max, Op::Mul}) {
    out.push_back(folded(op, t, 5, 24, 0));
    out.push_back(folded(op, t, 3, 512, 0));
  }
}
void add_float_ops(std::vector<DtypeCase>& out, DType t) {
  const bool narrow = size_bytes(t) < 4;
  for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Max, Op::CmpLt, Op::CmpNe, Op::CmpEq})
    out.push_back(binary(op, t));
  out.push_back(unary(Op::Neg, t));
  out.push_back(unary(Op::Trunc, t));
  out.push_back(binary(Op::Div, t, narrow ? 1 : 2.5));
  for (Op op : {Op::Recip, Op::Sqrt}) out.push_back(unary(op, t, narrow ? 1 : 3));
  for (Op op : {Op::Log2, Op::Sin}) out.push_back(unary(op, t, narrow ? 1 : 4));
  out.push_back(folded(Op::Max, t, 5, 24, 0));
  out.push_back(folded(Op::Max, t, 3, 512, 0));
}
void add_bool_ops(std::vector<DtypeCase>& out) {
  for (Op op :
       {Op::Add, Op::Mul, Op::Max, Op::And, Op::Or, Op::Xor, Op::CmpLt, Op::CmpNe, Op::CmpEq})
    out.push_back(binary(op, DType::Bool));
  for (Op op : {Op::Add, Op::Max, Op::Mul}) {
    out.push_back(folded(op, DType::Bool, 5, 24, 0));
    out.push_back(folded(op, DType::Bool, 3, 512, 0));
  }
}

uint64_t edge(DType t, size_t i) {
  const int bits = row(t).storage_bits;
  const uint64_t top = uint64_t(1) << (bits - 1);
  const uint64_t edges[] = {0, 1, ~uint64_t(0), top, top - 1, top + 1, 2, 3, 10, 127, 128, 255};
  return edges[i % std::size(edges)];
}
Scalar integer_value(DType t, std::mt19937_64& random) {
  const uint64_t pick = random();
  if (pick % 4 == 0) return Scalar::of_int(t, int64_t(edge(t, size_t(pick >> 8))));
  const uint64_t v = random() >> (pick >> 8) % 64;
  return Scalar::of_int(t, int64_t(pick & 4 ? v : 0 - v));
}
Scalar float_value(DType t, std::mt19937_64& random) {
  const double specials[] = {0.0, -0.0, 1, -1, 0.5, INFINITY, -INFINITY, NAN, 65504, 65520, 2049};
  const uint64_t pick = random();
  if (pick % 8 == 0) return Scalar::of_double(t, specials[(pick >> 8) % std::size(specials)]);
  const double unit = double(random() >> 11) * 0x1p-53 + 1;
  const int exponent = int((pick >> 8) % 48) - 24;  // f16's subnormals are among them
  return Scalar::of_double(t, std::ldexp(pick & 16 ? unit : -unit, exponent));
}

}  // namespace

std::vector<DtypeCase> op_cases(DType t) {
  std::vector<DtypeCase> out;
  if (t == DType::Bool) {
    add_bool_ops(out);
  } else if (is_float(t)) {
    add_float_ops(out, t);
  } else {
    add_integer_ops(out, t);
  }
  out.push_back(chosen(t));
  return out;
}

std::vector<DtypeCase> cast_cases(DType from, std::span<const DType> to) {
  std::vector<DtypeCase> out;
  for (DType t : to) {
    AstBuilder b;
    const UOp i = b.loop(kOdd);
    UOp x = load(1, kOdd, i, from);
    out.push_back({fmt::format("cast of {} to {}", name(from), name(t)),
                   kernel_of({store(0, kOdd, i, cast(x, t), {i})})});
    // Beyond the range of integers, too.
    if (!is_float(from) || is_float(t)) continue;
    x = x * constant(from, 0x1p14);
    x = size_bytes(from) < 4 ? x : x * constant(from, 0x1p26);
    out.push_back({fmt::format("cast of large {} to {}", name(from), name(t)),
                   kernel_of({store(0, kOdd, i, cast(x, t), {i})})});
  }
  return out;
}

std::vector<DtypeCase> transpose_cases(DType t) {
  using Sizes = std::vector<int64_t>;
  std::vector<DtypeCase> out;
  for (const auto& [sizes, order] :
       {std::pair(Sizes{64, 128}, Sizes{1, 0}), {{67, 131}, {1, 0}}, {{4, 1024}, {1, 0}},
        {{1024, 3}, {1, 0}}, {{3, 40, 65}, {0, 2, 1}}, {{2, 33, 5, 64}, {0, 3, 1, 2}}})
    out.push_back({fmt::format("permutation of {}", name(t)), permute_ast(sizes, order, t, t)});
  return out;
}

std::vector<DtypeCase> storage_cases(DType t) {
  std::vector<DtypeCase> out;
  const auto add = [&](const char* what, const UOp& ast) {
    out.push_back({fmt::format("{}, {}", what, name(t)), ast});
  };
  for (int64_t first : {1, 2, 3}) {
    AstBuilder b;
    const UOp i = b.loop(50);
    add("odd offsets", kernel_of({store(0, 61, i + first, load(1, 70, i + 2 * first, t), {i})}));
  }
  for (int64_t step : {2, 3}) {
    AstBuilder b;
    const UOp i = b.loop(24);
    add("steps", kernel_of({store(0, 80, i * step + 1, load(1, 24, i, t), {i})}));
  }
  {
    AstBuilder b;
    const UOp i = b.loop(64), gate = lt(i, index_const(41));
    const UOp shifted = load(1, 64, i - 3, t, ge(i, index_const(3)));
    add("gates", kernel_of({store(0, 64, i, shifted, {i}, gate)}));
  }
  {
    AstBuilder b;
    const UOp i = b.loop(5), j = b.loop(12), k = b.loop(3);
    add("rows of three", kernel_of({store(0, 180, (i * 12 + j) * 3 + k,
                                          load(1, 180, (k * 12 + j) * 5 + i, t), {i, j, k})}));
  }
  {
    AstBuilder b;
    const UOp i = b.loop(31), x = load(0, 31, i, t);
    add("in place",
        kernel_of({store(0, 31, i, where(lt(i, index_const(9)), x, load(1, 31, i, t)), {i})}));
  }
  {
    AstBuilder b;
    const UOp i = b.loop(48), x = load(2, 48, i, t);
    add("two outputs",
        kernel_of({store(0, 48, i, x, {i}), store(1, 48, index_const(47) - i, x, {i})}));
  }
  {
    AstBuilder b;
    const UOp i = b.loop(33);
    add("a constant", kernel_of({store(0, 33, i, constant(Scalar::of_int(t, 1)), {i})}));
  }
  return out;
}

Buffers full_range_buffers(const UOp& ast, uint32_t seed) {
  std::mt19937_64 random(seed);
  Buffers out = random_buffers(ast, seed);
  for (const Node* n : toposort(ast)) {
    if (n->op != Op::Param) continue;
    Buffer& b = out[size_t(n->get<ParamArg>().slot)];
    const size_t size = size_bytes(n->dtype);
    for (size_t i = 0; i < b.size(); i += size)
      store_scalar(
          is_float(n->dtype) ? float_value(n->dtype, random) : integer_value(n->dtype, random),
          b.data() + i);
  }
  return out;
}

namespace {

// The distance in units of the last place of t at `want`, whose subnormals have one size.
double ulp_distance(DType t, double got, double want) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
  if (!std::isfinite(got) || !std::isfinite(want)) return INFINITY;
  const int digits = row(t).mantissa_bits, least = 2 - (1 << (row(t).exponent_bits - 1));
  const int exponent = want == 0 ? least : std::max(std::ilogb(want), least);
  return std::abs(got - want) / std::ldexp(1.0, exponent - digits);
}

}  // namespace

void expect_equal(const DtypeCase& c, const Buffers& start, const Buffers& got, const Buffers& want,
                  const std::string& where) {
  std::map<int32_t, DType> dtypes;
  for (const Node* n : toposort(c.ast)) {
    if (n->op == Op::Param) dtypes[n->get<ParamArg>().slot] = n->dtype;
  }
  for (const auto& [slot, t] : dtypes) {
    const Buffer &a = got[size_t(slot)], &b = want[size_t(slot)];
    for (size_t i = 0; i < b.size(); i += size_bytes(t)) {
      const Scalar x = load_scalar(t, a.data() + i), y = load_scalar(t, b.data() + i);
      const bool equal =
          is_float(t) ? ulp_distance(t, x.as_double(), y.as_double()) <= c.ulp : x.bits == y.bits;
      if (equal) continue;
      std::string inputs;
      for (const auto& [s, type] : dtypes) {
        const size_t at = i / size_bytes(t) * size_bytes(type);
        if (at >= start[size_t(s)].size()) continue;
        const Scalar v = load_scalar(type, start[size_t(s)].data() + at);
        inputs +=
            is_float(type) ? fmt::format(" {}", v.as_double()) : fmt::format(" {:#x}", v.bits);
      }
      ADD_FAILURE() << c.name << " on " << where << ": slot " << slot << " element "
                    << i / size_bytes(t) << ": " << x.as_double() << ", expected " << y.as_double()
                    << fmt::format(" ({:#x}, {:#x})", x.bits, y.bits) << "; there:" << inputs;
      return;
    }
  }
}

}  // namespace tuff::kernel::testing
