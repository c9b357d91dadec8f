#include "kernel/ast_builder.h"

namespace tuff::kernel::testing {

using namespace ir;

namespace {
UOp index(int32_t slot, int64_t count, DType t, const UOp& offset, const UOp& gate) {
  const UOp p = param(slot, t, count);
  return gate ? make(Op::Index, t, {p, offset, gate}) : make(Op::Index, t, {p, offset});
}
}  // namespace

UOp load(int32_t slot, int64_t count, const UOp& offset, DType t, const UOp& gate) {
  return make(Op::Load, t, {index(slot, count, t, offset, gate)});
}
UOp reduce_over(Op op, const UOp& value, std::vector<UOp> ranges) {
  std::vector<UOp> src{value};
  src.insert(src.end(), ranges.begin(), ranges.end());
  return make(Op::Reduce, value->dtype, src, ReduceArg{op, {}});
}
UOp store(int32_t slot, int64_t count, const UOp& offset, const UOp& value, std::vector<UOp> ranges,
          const UOp& gate) {
  std::vector<UOp> src{
      make(Op::Store, DType::Void, {index(slot, count, value->dtype, offset, gate), value})};
  src.insert(src.end(), ranges.begin(), ranges.end());
  return make(Op::End, DType::Void, src);
}
UOp kernel_of(std::vector<UOp> ends) { return sink(ends); }

UOp elementwise_ast(int64_t rows, int64_t columns) {
  AstBuilder b;
  const UOp i = b.loop(rows), j = b.loop(columns);
  const int64_t n = rows * columns;
  const UOp at = i * columns + j;
  const UOp value = load(1, n, at) + alu(Op::Max, {load(2, n, at), constant(DType::F32, 0)});
  return kernel_of({store(0, n, at, value, {i, j})});
}

UOp transpose_ast(int64_t rows, int64_t columns, DType t) {
  AstBuilder b;
  const UOp j = b.loop(columns), i = b.loop(rows);
  const int64_t n = rows * columns;
  return kernel_of({store(0, n, j * rows + i, load(1, n, i * columns + j, t), {j, i})});
}

UOp permute_ast(const std::vector<int64_t>& sizes, const std::vector<int64_t>& order, DType t,
                DType to, bool twice) {
  AstBuilder b;
  std::vector<UOp> out, in(sizes.size());
  for (const int64_t axis : order) {
    out.push_back(b.loop(sizes[size_t(axis)]));
    in[size_t(axis)] = out.back();
  }
  const auto place = [&](const std::vector<UOp>& ranges) {
    UOp offset = index_const(0);
    for (const UOp& r : ranges) offset = offset * r->src(0) + r;
    return offset;
  };
  int64_t count = 1;
  for (const int64_t n : sizes) count *= n;
  const auto converted = [&](const UOp& x) { return t == to ? x : cast(x, to); };
  UOp value = converted(load(1, count, place(in), t));
  if (twice) value = value + converted(load(2, count, place(out), t));
  return kernel_of({store(0, count, place(out), value, out)});
}

UOp pool_ast(int64_t rows, int64_t size, int64_t window, DType t) {
  AstBuilder b;
  const UOp i = b.loop(rows), j = b.loop(size);
  const UOp y = b.fold(window), x = b.fold(window);
  const UOp at = (i * window + y) * (size * window) + j * window + x;
  const UOp value = load(1, rows * size * window * window, at, t);
  return kernel_of(
      {store(0, rows * size, i * size + j, reduce_over(Op::Max, value, {y, x}), {i, j})});
}

UOp unpool_ast(int64_t rows, int64_t size, int64_t window, DType t) {
  AstBuilder b;
  const UOp i = b.loop(rows), j = b.loop(size * window);
  const int64_t n = rows * size * window;
  const UOp at = i * (size * window) + j;
  const UOp value = load(1, n, at, t) * load(2, rows * size, i * size + floordiv(j, window), t);
  return kernel_of({store(0, n, at, value, {i, j})});
}

UOp uniform_ast(int64_t n) {
  AstBuilder b;
  const UOp i = b.loop(n);
  const UOp counter = cast(i, DType::U32), zero = constant(DType::U32, 0);
  const UOp bits = ir::make(Op::Threefry, DType::U32, {counter, zero, zero, zero}, int64_t{0});
  const UOp top = cast(alu(Op::Shr, {bits, constant(DType::U32, 8)}), DType::F32);
  const UOp unit = top * constant(DType::F32, 0x1p-24);
  const UOp value = unit * constant(DType::F32, 0.3) + constant(DType::F32, -0.1);
  return kernel_of({store(0, n, i, value, {i})});
}

UOp sum_ast(int64_t outputs, int64_t n) {
  AstBuilder b;
  const UOp i = b.loop(outputs), k = b.fold(n);
  const UOp at = i * n + k;
  const UOp sum = reduce_over(Op::Add, load(1, outputs * n, at) + load(2, outputs * n, at), {k});
  return kernel_of({store(0, outputs, i, sum, {i})});
}

UOp matmul_ast(int64_t m, int64_t n, int64_t k, bool transposed) {
  AstBuilder b;
  const UOp i = b.loop(m), j = b.loop(n), r = b.fold(k);
  const UOp y = load(2, k * n, transposed ? j * k + r : r * n + j);
  const UOp sum = reduce_over(Op::Add, load(1, m * k, i * k + r) * y, {r});
  return kernel_of({store(0, m * n, i * n + j, sum, {i, j})});
}

UOp narrow_product_ast(const NarrowProduct& p) {
  AstBuilder b;
  const UOp z = p.batch > 1 ? b.loop(p.batch) : index_const(0);
  const UOp i = b.loop(p.m), j = b.loop(p.n), r = b.fold(p.k);
  const UOp left = p.left_across ? r * p.m + i : i * p.k + r;
  const UOp right = p.right_across ? j * p.k + r : r * p.n + j;
  const UOp x = load(1, p.batch * p.m * p.k, z * (p.m * p.k) + left, p.factor);
  const UOp y = load(2, p.batch * p.k * p.n, z * (p.k * p.n) + right, p.factor);
  const auto factor = [&](const UOp& of, bool positive) {
    const UOp zero = constant(Scalar::of_int(p.factor, 0));
    return cast(positive ? alu(Op::Max, {of, zero}) : of, p.sum);
  };
  UOp value = reduce_over(
      Op::Add, factor(x, p.left_positive) * factor(y, p.right_positive), {r});
  const int64_t count = p.batch * p.m * p.n;
  const UOp at = z * (p.m * p.n) + (p.transposed ? j * p.m + i : i * p.n + j);
  if (p.bias) value = value + cast(load(3, p.n, j, p.sum), p.sum);
  if (p.residual) {
    value = alu(Op::Max, {value + cast(load(p.bias ? 4 : 3, count, at, p.result), p.sum),
                          constant(Scalar::of_int(p.sum, 0))});
  }
  std::vector<UOp> loops{i, j};
  if (p.batch > 1) loops.insert(loops.begin(), z);
  return kernel_of({store(0, count, at, cast(value, p.result), loops)});
}

UOp pair_product_ast(const PairProduct& p) {
  constexpr int64_t kPair = 2;
  AstBuilder b;
  const UOp i = b.loop(p.m), j = b.loop(p.n), line = b.fold(p.k / kPair), pair = b.fold(kPair);
  const UOp x = load(1, p.m * p.k, i * p.k + line * kPair + pair, DType::BF16);
  const UOp y = load(2, p.k * p.n, line * (p.n * kPair) + j * kPair + pair, DType::BF16);
  UOp sum = reduce_over(Op::Add, cast(x, DType::F32) * cast(y, DType::F32), {line, pair});
  if (p.bias) sum = sum + load(3, p.n, j);
  const UOp at = p.transposed ? j * p.m + i : i * p.n + j;
  return kernel_of({store(0, p.m * p.n, at, sum, {i, j})});
}

UOp matmul_across_ast(int64_t m, int64_t n, int64_t k) {
  AstBuilder b;
  const UOp i = b.loop(m), j = b.loop(n), r = b.fold(k);
  const UOp product = load(1, k * m, r * m + i) * load(2, k * n, r * n + j);
  return kernel_of({store(0, m * n, i * n + j, reduce_over(Op::Add, product, {r}), {i, j})});
}

UOp softmax_ast(int64_t rows, int64_t columns) {
  AstBuilder b;
  const UOp i = b.loop(rows), j = b.loop(columns), r1 = b.fold(columns), r2 = b.fold(columns);
  const int64_t n = rows * columns;
  const UOp max = reduce_over(Op::Max, load(1, n, i * columns + r1), {r1});
  auto exponential = [&](const UOp& x) {
    return alu(Op::Exp2, {(x - max) * constant(DType::F32, 1.4426950408889634)});
  };
  const UOp sum = reduce_over(Op::Add, exponential(load(1, n, i * columns + r2)), {r2});
  const UOp y = exponential(load(1, n, i * columns + j)) * alu(Op::Recip, {sum});
  return kernel_of({store(0, n, i * columns + j, y, {i, j})});
}

UOp kept_row(int32_t number, const UOp& column, const UOp& value) {
  const UOp memory =
      make(Op::Shared, value->dtype, {}, SharedArg{number, column->src(0)->const_int()});
  const UOp place = make(Op::Index, value->dtype, {memory, column});
  const UOp filled =
      make(Op::End, DType::Void, {make(Op::Store, DType::Void, {place, value}), column});
  return make(Op::After, value->dtype, {memory, filled});
}
UOp element(const UOp& row, const UOp& column) {
  return make(Op::Load, row->dtype, {make(Op::Index, row->dtype, {row, column})});
}

UOp attention_ast(int64_t heads, int64_t positions, int64_t width, bool causal, DType dtype,
                  double scale) {
  AstBuilder b;
  const int64_t n = heads * positions * width;
  const UOp head = b.loop(heads), i = b.loop(positions), d = b.loop(width);
  const UOp at = head * (positions * width);
  const UOp s = b.loop(positions), e = b.fold(width);
  const auto number = [&](int32_t slot, const UOp& index) {
    return cast(load(slot, n, index, dtype), DType::F32);
  };
  const auto rounded = [&](const UOp& x) { return cast(cast(x, dtype), DType::F32); };
  UOp score = reduce_over(
      Op::Add, number(1, at + i * width + e) * number(2, at + s * width + e), {e});
  score = rounded(scale == 1 ? score : score * constant(DType::F32, scale));
  if (causal) score = where(lt(i, s), constant(DType::F32, -1e30), score);
  const UOp scores = kept_row(1, s, score);
  const UOp p = b.loop(positions), r1 = b.fold(positions), r2 = b.fold(positions);
  const UOp max = reduce_over(Op::Max, element(scores, r1), {r1});
  const auto exponential = [&](const UOp& x) { return alu(Op::Exp2, {element(scores, x) - max}); };
  const UOp sum = reduce_over(Op::Add, exponential(r2), {r2});
  const UOp probabilities = kept_row(0, p, rounded(exponential(p) * alu(Op::Recip, {sum})));
  const UOp j = b.fold(positions);
  const UOp y =
      reduce_over(Op::Add, element(probabilities, j) * number(3, at + j * width + d), {j});
  return kernel_of({store(0, n, at + i * width + d, cast(y, dtype), {head, i, d})});
}

UOp attention_gradient_ast(int64_t heads, int64_t positions, int64_t width) {
  AstBuilder b;
  const int64_t n = heads * positions * width, rows = heads * positions;
  const UOp head = b.loop(heads), i = b.loop(positions), d = b.loop(width);
  const UOp at = head * (positions * width), row = head * positions + i;
  const auto product = [&](int32_t left, int32_t right, const UOp& column) {
    const UOp e = b.fold(width);
    return reduce_over(
        Op::Add, load(left, n, at + i * width + e) * load(right, n, at + column * width + e), {e});
  };
  const UOp s = b.loop(positions), t = b.loop(positions), p = b.loop(positions);
  const UOp scores = kept_row(1, s, product(4, 5, s)), slopes = kept_row(2, t, product(7, 6, t));
  const UOp r1 = b.fold(positions), r2 = b.fold(positions), j = b.fold(positions);
  const UOp max = reduce_over(Op::Max, element(scores, r1), {r1});
  const auto exponential = [&](const UOp& x) { return alu(Op::Exp2, {element(scores, x) - max}); };
  const UOp sum = alu(Op::Recip, {reduce_over(Op::Add, exponential(r2), {r2})});
  const UOp mean = reduce_over(Op::Add, exponential(r2) * element(slopes, r2), {r2});
  const UOp gradients = kept_row(0, p, exponential(p) * sum * (element(slopes, p) - mean * sum));
  const UOp y = reduce_over(Op::Add, element(gradients, j) * load(5, n, at + j * width + d), {j});
  return kernel_of({store(0, n, at + i * width + d, y, {head, i, d}),
                    store(1, rows, row, max, {head, i}), store(2, rows, row, sum, {head, i}),
                    store(3, rows, row, mean, {head, i})});
}

UOp attention_factor_gradients_ast(int64_t heads, int64_t positions, int64_t width, bool causal) {
  AstBuilder b;
  const int64_t n = heads * positions * width, rows = heads * positions;
  const UOp head = b.loop(heads), j = b.loop(positions), d = b.loop(width), c = b.loop(width);
  const UOp at = head * (positions * width);
  const auto product = [&](int32_t left, int32_t right, const UOp& row) {
    const UOp e = b.fold(width);
    const UOp sum = reduce_over(
        Op::Add, load(left, n, at + row * width + e) * load(right, n, at + j * width + e), {e});
    return sum * constant(DType::F32, 0.0625);
  };
  const auto of_row = [&](int32_t slot, const UOp& row) {
    return load(slot, rows, head * positions + row);
  };
  const UOp s = b.loop(positions), t = b.loop(positions);
  UOp weight = alu(Op::Exp2, {product(2, 3, s) - of_row(6, s)}) * of_row(7, s);
  if (causal) weight = where(lt(s, j), constant(DType::F32, 0), weight);
  const UOp weights = kept_row(0, s, weight);
  const UOp slopes = kept_row(1, t, element(weights, t) * (product(5, 4, t) - of_row(8, t)));
  const auto gradient = [&](const UOp& row, int32_t slot, const UOp& column) {
    const UOp i = b.fold(positions);
    return reduce_over(Op::Add, element(row, i) * load(slot, n, at + i * width + column), {i});
  };
  return kernel_of({store(0, n, at + j * width + d, gradient(weights, 5, d), {head, j, d}),
                    store(1, n, at + j * width + c, gradient(slopes, 2, c), {head, j, c})});
}

UOp gather_ast(int64_t rows, int64_t table, int64_t width) {
  AstBuilder b;
  const UOp i = b.loop(rows), j = b.loop(width);
  const UOp row = cast(load(1, rows, i, DType::I32), DType::Index);
  const UOp inside = logical_and(ge(row, index_const(0)), lt(row, index_const(table)));
  return kernel_of({store(0, rows * width, i * width + j,
                          load(2, table * width, row * width + j, DType::F32, inside), {i, j})});
}

UOp scatter_ast(int64_t rows, int64_t table, int64_t width, bool ordered) {
  AstBuilder b;
  const UOp k = ordered ? b.ordered(rows) : b.loop(rows), j = b.loop(width);
  const UOp row = cast(load(1, rows, k, DType::I32), DType::Index);
  const UOp inside = logical_and(ge(row, index_const(0)), lt(row, index_const(table)));
  const UOp to = floormod(row, table) * width + j, value = load(2, rows * width, k * width + j);
  if (!ordered) return kernel_of({store(0, table * width, to, value, {k, j}, inside)});
  const UOp before = make(Op::After, DType::F32, {param(0, DType::F32, table * width), k});
  const UOp sum = make(Op::Load, DType::F32, {make(Op::Index, DType::F32, {before, to, inside})});
  return kernel_of({store(0, table * width, to, sum + value, {k, j}, inside)});
}

UOp packed_sum_ast(int64_t rows, int64_t blocks, int64_t columns) {
  constexpr int64_t kNumbers = 32, kBytes = 18;
  AstBuilder b;
  const UOp column = columns > 1 ? b.loop(columns) : index_const(0);
  const UOp row = b.loop(rows), k = b.fold(blocks * kNumbers);
  const UOp block = (row * blocks + floordiv(k, kNumbers)) * kBytes;
  const auto byte = [&](const UOp& at) {
    return cast(load(1, rows * blocks * kBytes, block + at, DType::U8), DType::I32);
  };
  const UOp half = cast(floordiv(floormod(k, kNumbers), 16) * 4, DType::I32);
  const UOp number = alu(Op::And, {alu(Op::Shr, {byte(floormod(k, 16) + 2), half}),
                                   constant(Scalar::of_int(DType::I32, 15))});
  const UOp factor = cast(byte(index_const(0)) - byte(index_const(1)), DType::F32);
  const UOp x = load(2, columns * blocks * kNumbers, column * (blocks * kNumbers) + k);
  const UOp sum = reduce_over(Op::Add, factor * cast(number, DType::F32) * x, {k});
  std::vector<UOp> outputs{row};
  if (columns > 1) outputs.insert(outputs.begin(), column);
  return kernel_of({store(0, columns * rows, column * rows + row, sum, outputs)});
}

UOp conv_ast(int64_t batch, int64_t channels, int64_t size, int64_t filters) {
  AstBuilder b;
  const UOp n = b.loop(batch), f = b.loop(filters), y = b.loop(size), x = b.loop(size);
  const UOp c = b.fold(channels), dy = b.fold(3), dx = b.fold(3);
  const UOp iy = y + dy - 1, ix = x + dx - 1;
  const UOp gate = logical_and(logical_and(ge(iy, index_const(0)), lt(iy, index_const(size))),
                               logical_and(ge(ix, index_const(0)), lt(ix, index_const(size))));
  const UOp image = load(1, batch * channels * size * size,
                         ((n * channels + c) * size + iy) * size + ix, DType::F32, gate);
  const UOp weight = load(2, filters * channels * 9, ((f * channels + c) * 3 + dy) * 3 + dx);
  const UOp sum = reduce_over(Op::Add, image * weight, {c, dy, dx});
  return kernel_of({store(0, batch * filters * size * size,
                          ((n * filters + f) * size + y) * size + x, sum, {n, f, y, x})});
}

}  // namespace tuff::kernel::testing
