#include "tensor/linalg/triangular.h"

#include "base/check.h"

namespace tuff::linalg {

using detail::text;
using ir::UOp;

namespace {

// [[A, 0], [C, B]] has the inverse [[A⁻¹, 0], [-B⁻¹ C A⁻¹, B⁻¹]]: of the inverses X of the blocks
// on the diagonal, X - X C X is the inverse of blocks twice as long. Which element is in which
// block is data, so that all doublings are the same kernels.
Tensor inverse_of_short_triangle(const Tensor& t, bool unit) {
  const int64_t n = rows_of(t);
  const Tensor inverses = Tensor::where(ones_on_diagonal(t, n, n) != 0,
                                        unit ? t.ones_like() : 1 / t, t.zeros_like());
  Tensor x = unit ? stored(inverses) : inverses.contiguous();
  Tensor block = stored(detail::counter(n, 2, 3, t.device()));
  for (int64_t length = 1; length < n; length *= 2) {
    const Tensor pair = (block >> 1).contiguous();
    const auto down = [](const Tensor& b) { return b.transpose(1, 2); };
    const Tensor below = Tensor::where((down(pair) == pair) & (down(block) > block), t, 0);
    const Tensor product = matmul(below, x).contiguous();
    x = (x - matmul(x, product)).contiguous();
    block = pair;
  }
  return x;
}

// Blocks (g, h) of (batch, groups, h, groups, h) on the diagonal of the groups.
Tensor on_diagonal(const Tensor& x) {
  return x.diagonal(0, 1, 3).permute({0, 3, 1, 2}).contiguous();
}

Tensor inverse_of_lower(const Tensor& given, bool unit) {
  const int64_t batch = given.size(0), n = rows_of(given);
  const Blocks b = halved_blocks(n);
  if (b.blocks == 1) return inverse_of_short_triangle(given, unit);
  const int64_t all = b.covered();
  const Tensor t = with_ones_from(padded(given, all, all), n).contiguous();
  int64_t groups = b.blocks, h = b.length;
  const Tensor shorts = on_diagonal(t.reshape({batch, groups, h, groups, h}));
  Tensor x = inverse_of_short_triangle(shorts.reshape({batch * groups, h, h}), unit);
  while (groups > 1) {
    groups /= 2;
    const Tensor pairs = t.reshape({batch, groups, 2, h, groups, 2, h});
    const Tensor below = on_diagonal(pairs.select(5, 0).select(2, 1)).reshape({-1, h, h});
    const Tensor both = x.reshape({batch * groups, 2, h, h});
    const Tensor first = both.select(1, 0), second = both.select(1, 1);
    const Tensor corner = matmul(second, matmul(below, first).contiguous()).neg().contiguous();
    x = Tensor::cat({Tensor::cat({first, first.zeros_like()}, 2), Tensor::cat({corner, second}, 2)},
                    1)
            .contiguous();
    h *= 2;
  }
  return part(x, 0, n, 0, n);
}

}  // namespace

Tensor inverse_of_triangle(const Tensor& t, Triangle form) {
  if (!form.upper) return inverse_of_lower(t, form.unit);
  return inverse_of_lower(t.flip({1, 2}), form.unit).flip({1, 2});
}

// By the inverse, and once more for what is left: the error is that of substitution as long as the
// inverse has some right digits (Higham, 2002, chapters 12 and 14).
Tensor divided_by_triangle(const Tensor& t, const Tensor& b, Triangle form) {
  const Tensor inverse = inverse_of_triangle(t, form).contiguous();
  const Tensor shape = form.upper ? t.triu(form.unit ? 1 : 0) : t.tril(form.unit ? -1 : 0);
  const Tensor first = matmul(inverse, b).contiguous();
  const Tensor back = matmul(shape, first);
  const Tensor left = (b - (form.unit ? back + first : back)).contiguous();
  const Tensor corrected = first + matmul(inverse, left);
  // An infinite element stays one.
  return Tensor::where(corrected.isfinite(), corrected, first).contiguous();
}

namespace {

template <bool upper, bool unit>
std::vector<UOp> row_of_triangular_solution(const UOp& u, const UOp& gradient) {
  constexpr Triangle form{upper, unit}, other{!upper, unit};
  const Tensor x = tensor_of(u, u), t = tensor_of(u->src(1), u), g = tensor_of(gradient, u);
  const Tensor to_b = triangular_solution(t.transpose(1, 2), g, other);
  const Tensor all = matmul(to_b, x.transpose(1, 2)).neg();
  const Tensor to_t = form.upper ? all.triu(form.unit ? 1 : 0) : all.tril(form.unit ? -1 : 0);
  return gradients_of_sources({to_t, to_b});
}

constexpr ir::GradientRule kRules[2][2] = {
    {{"solve_lower", row_of_triangular_solution<false, false>},
     {"solve_unit_lower", row_of_triangular_solution<false, true>}},
    {{"solve_upper", row_of_triangular_solution<true, false>},
     {"solve_unit_upper", row_of_triangular_solution<true, true>}}};

}  // namespace

Tensor triangular_solution(const Tensor& t, const Tensor& b, Triangle form) {
  return ruled(divided_by_triangle(t, b, form), {t, b}, kRules[form.upper][form.unit]);
}

}  // namespace tuff::linalg
