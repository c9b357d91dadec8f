#include "render/spirv_integers.h"

#include <spirv/unified1/spirv.hpp>

#include "ir/scalar_eval.h"
#include "render/divisors.h"

namespace tuff::render {

using ir::Node;
using ir::Op;

std::optional<SpirvValue> affine(SpirvBody& b, const Node& u, const std::vector<SpirvValue>& x) {
  const DType t = u.src(0)->dtype;
  const auto index_type = [](DType d) { return d == DType::I32 || d == DType::I64; };
  if (!index_type(t) || u.op == Op::Bitcast || u.op == Op::Where) return std::nullopt;
  bool numbers = true;
  for (const SpirvValue& v : x) numbers &= v.base == 0;
  if (numbers && (index_type(u.dtype) || u.dtype == DType::Bool)) {
    std::vector<Scalar> scalars;
    for (size_t s = 0; s < x.size(); ++s)
      scalars.push_back(Scalar::of_int(u.src(s)->dtype, x[s].constant));
    const Scalar result = ir::eval_scalar(u.op, u.dtype, scalars);
    return u.dtype == DType::Bool ? SpirvValue{b.t.constant(result)}
                                  : SpirvValue{0, result.as_int()};
  }
  const auto product = [&](const SpirvValue& v, int64_t factor) {
    if (factor == 0) return SpirvValue{};
    const Id base =
        factor == 1 ? v.base : b.m.pure(spv::OpIMul, b.t.reg(t), {v.base, b.t.integer(t, factor)});
    return SpirvValue{base, v.constant * factor, divisor_of_product(v.divisor, factor)};
  };
  switch (u.op) {
    case Op::Add: {
      SpirvValue out;
      out.constant = x[0].constant + x[1].constant;
      out.divisor = divisor_of_sum(x[0].base, x[0].divisor, x[1].base, x[1].divisor);
      out.base = !x[0].base   ? x[1].base
                 : !x[1].base ? x[0].base
                              : b.m.pure(spv::OpIAdd, b.t.reg(t), {x[0].base, x[1].base});
      return out;
    }
    case Op::Sub:
      if (x[1].base) return std::nullopt;
      return SpirvValue{x[0].base, x[0].constant - x[1].constant, x[0].divisor};
    case Op::Mul:
      if (x[0].base && x[1].base) return std::nullopt;
      return x[1].base ? product(x[1], x[0].constant) : product(x[0], x[1].constant);
    case Op::Shl:
      if (x[1].base || x[1].constant < 0 || x[1].constant > 30) return std::nullopt;
      return product(x[0], int64_t{1} << x[1].constant);
    default: return std::nullopt;
  }
}

}  // namespace tuff::render
