#include "render/sample_kernels.h"

#include "render/linear_builder.h"

namespace tuff::render {

using kernel::LinearKernel;

LinearKernel elementwise_kernel() {
  LinearBuilder b("e_4_8");
  const UOp out = b.buffer(DType::F32, 32, false, true), x = b.buffer(DType::F32, 32, true, false),
            y = b.buffer(DType::F32, 32, true, false);
  const UOp g = b.group(0, 4), v = b.lane(8, AxisKind::Vector);
  const UOp offset = b.plus(b.times(g, 8), v);
  const UOp fused = b.alu(Op::MulAdd, {b.load(b.index(x, offset)), b.number(DType::F32, 2),
                                       b.load(b.index(y, offset))});
  b.store(b.index(out, offset), b.alu(Op::Max, {fused, b.number(DType::F32, 0)}));
  return b.k;
}

LinearKernel matmul_kernel() {
  LinearBuilder b("r_2_2_12_4x8");
  const UOp out = b.buffer(DType::F32, 128, false, true), x = b.buffer(DType::F32, 96, true, false),
            y = b.buffer(DType::F32, 192, true, false);
  const UOp gx = b.group(0, 2), gy = b.group(1, 2);
  const UOp row = b.lane(4, AxisKind::Lane), column = b.lane(8, AxisKind::Vector);
  const UOp acc = b.reg(DType::F32, {row, column});
  const UOp zero = b.store(acc, b.number(DType::F32, 0));
  const UOp i = b.plus(b.times(gy, 4), row), j = b.plus(b.times(gx, 8), column);
  const UOp k = b.loop(12, AxisKind::Reduce);
  const UOp a = b.load(b.index(x, b.plus(b.times(i, 12), k)));
  const UOp c = b.load(b.index(y, b.plus(b.times(k, 16), j)));
  const UOp ready = b.after(acc, {zero});
  const UOp sum = b.store(ready, b.alu(Op::MulAdd, {a, c, b.load(ready)}));
  b.end(k);
  b.store(b.index(out, b.plus(b.times(i, 16), j)), b.load(b.after(acc, {sum})));
  return b.k;
}

LinearKernel row_sum_kernel() {
  LinearBuilder b("r_n_5_4");
  const UOp out = b.buffer(DType::F32, 6, false, true), x = b.buffer(DType::F32, 120, true, false);
  const UOp n = b.variable("rows", 1, 6);
  const UOp part = b.lane(4, AxisKind::ReduceLane);
  const UOp i = b.loop(n);
  const UOp acc = b.reg(DType::F32, {});
  const UOp zero = b.store(acc, b.number(DType::F32, 0));
  const UOp j = b.loop(5, AxisKind::Reduce);
  const UOp at = b.plus(b.times(i, 20), b.plus(b.times(j, 4), part));
  const UOp sum = b.reduce(Op::Add, b.load(b.index(x, at)), {part});
  const UOp ready = b.after(acc, {zero});
  const UOp next = b.store(ready, b.plus(b.load(ready), sum));
  b.end(j);
  b.store(b.index(out, i), b.load(b.after(acc, {next})));
  b.end(i);
  return b.k;
}

LinearKernel gated_kernel() {
  LinearBuilder b("e_5_8_gated");
  const UOp out = b.buffer(DType::F32, 37, false, true), x = b.buffer(DType::F32, 37, true, false);
  const UOp g = b.group(0, 5), v = b.lane(8, AxisKind::Vector);
  const UOp at = b.plus(b.times(g, 8), v);
  const UOp inside = b.alu(Op::CmpLt, {at, b.i32(37)});
  const UOp shifted = b.plus(at, b.i32(-3));
  const UOp from_start = b.alu(Op::CmpLt, {b.i32(-1), shifted});
  const UOp gate = b.alu(Op::And, {inside, from_start});
  const UOp first = b.load(b.index(x, shifted, gate));
  const UOp group_gate = b.alu(Op::CmpLt, {g, b.i32(2)});
  const UOp second = b.load(b.index(x, at, group_gate));
  b.store(b.index(out, at, inside), b.plus(first, second));
  return b.k;
}

LinearKernel strided_kernel() {
  LinearBuilder b("e_2_8_strided");
  const UOp out = b.buffer(DType::F32, 32, false, true), x = b.buffer(DType::F32, 48, true, false),
            total = b.buffer(DType::F32, 2, false, true);
  const UOp g = b.group(0, 2), v = b.lane(8, AxisKind::Vector);
  const UOp i = b.plus(b.times(g, 8), v);
  const UOp value = b.load(b.index(x, b.times(i, 3)));
  const UOp position = b.cast(i, DType::F32);
  b.store(b.index(out, b.plus(b.times(i, 2), b.i32(1))), b.plus(value, position));
  b.store(b.index(total, g), b.reduce(Op::Max, value, {v}));
  return b.k;
}

LinearKernel shared_sum_kernel() {
  LinearBuilder b("r_64_4_shared");
  const UOp out = b.buffer(DType::F32, 2, false, true), x = b.buffer(DType::F32, 512, true, false);
  const UOp g = b.group(0, 2), l = b.local(0, 64), part = b.lane(4, AxisKind::ReduceLane);
  const UOp memory = b.shared(DType::F32, 64);
  const UOp at = b.plus(b.plus(b.times(g, 256), b.times(l, 4)), part);
  const UOp mine = b.reduce(Op::Add, b.load(b.index(x, at)), {part});
  const UOp ready = b.after(memory, {b.barrier({b.store(b.index(memory, l), mine)})});
  const UOp acc = b.reg(DType::F32, {});
  const UOp zero = b.store(acc, b.number(DType::F32, 0));
  const UOp i = b.loop(64, AxisKind::Reduce);
  const UOp started = b.after(acc, {zero});
  const UOp sum = b.store(started, b.plus(b.load(started), b.load(b.index(ready, i))));
  b.end(i);
  const UOp first = b.alu(Op::CmpEq, {l, b.i32(0)});
  b.store(b.index(out, g, first), b.load(b.after(acc, {sum})));
  return b.k;
}

LinearKernel uniform_kernel() {
  LinearBuilder b("e_4_8_uniform");
  const UOp out = b.buffer(DType::F32, 32, false, true), x = b.buffer(DType::U32, 32, true, false);
  const UOp g = b.group(0, 4), v = b.lane(8, AxisKind::Vector);
  const UOp offset = b.plus(b.times(g, 8), v);
  const UOp bits = b.alu(
      Op::Shr, {b.load(b.index(x, offset)), b.add(ir::constant(Scalar::of_int(DType::U32, 8)))});
  const UOp unit = b.alu(Op::Mul, {b.cast(bits, DType::F32), b.number(DType::F32, 0x1p-24)});
  const UOp scaled = b.alu(Op::Mul, {unit, b.number(DType::F32, 0.3)});
  b.store(b.index(out, offset), b.alu(Op::Add, {scaled, b.number(DType::F32, -0.1)}));
  return b.k;
}

namespace {
// Lanes of the last 8 sample kernels: one Vector range, or a loop where width is 1.
struct Elements {
  UOp at;
  UOp loop;
};
Elements elements(LinearBuilder& b, int count, int width) {
  if (width == 1) {
    const UOp i = b.loop(count);
    return {i, i};
  }
  const UOp v = b.lane(width, AxisKind::Vector);
  const UOp i = b.loop(count / width);
  return {b.plus(b.times(i, width), v), i};
}
}  // namespace

LinearKernel bool_kernel(int width) {
  LinearBuilder b("e_bool");
  const UOp out = b.buffer(DType::Bool, 16 * 6, false, true),
            m = b.buffer(DType::Bool, 16, true, false), x = b.buffer(DType::F32, 16, true, false),
            d = b.buffer(DType::F64, 16, true, false), pick = b.buffer(DType::F64, 16, false, true),
            as_f32 = b.buffer(DType::F32, 16, false, true);
  const Elements e = elements(b, 16, width);
  const UOp lm = b.load(b.index(m, e.at)), lx = b.load(b.index(x, e.at)),
            ld = b.load(b.index(d, e.at));
  const UOp less = b.alu(Op::CmpLt, {lx, b.number(DType::F32, 0.5)});
  const UOp big = b.alu(Op::CmpNe, {ld, b.number(DType::F64, 1)});
  const UOp results[6] = {less,
                          b.alu(Op::And, {lm, less}),
                          b.alu(Op::Or, {big, lm}),
                          b.alu(Op::Xor, {less, big}),
                          b.alu(Op::CmpLt, {lm, less}),
                          b.alu(Op::Where, {lm, less, big})};
  for (int r = 0; r < 6; ++r) b.store(b.index(out, b.plus(e.at, b.i32(16 * r))), results[r]);
  b.store(b.index(pick, e.at), b.alu(Op::Where, {less, ld, b.number(DType::F64, -1)}));
  b.store(b.index(as_f32, e.at), b.cast(b.alu(Op::CmpEq, {lm, less}), DType::F32));
  b.end(e.loop);
  return b.k;
}

LinearKernel cast_kernel(DType from, DType to, int width) {
  LinearBuilder b(fmt::format("e_cast_{}_{}", short_name(from), short_name(to)));
  const UOp out = b.buffer(to, 16, false, true), x = b.buffer(from, 16, true, false);
  const Elements e = elements(b, 16, width);
  b.store(b.index(out, e.at), b.cast(b.load(b.index(x, e.at)), to));
  b.end(e.loop);
  return b.k;
}

LinearKernel integer_kernel(DType t, int width) {
  LinearBuilder b(fmt::format("e_int_{}", short_name(t)));
  const UOp out = b.buffer(t, 16 * kIntegerOps, false, true), x = b.buffer(t, 16, true, false),
            y = b.buffer(t, 16, true, false);
  const Elements e = elements(b, 16, width);
  const UOp a = b.load(b.index(x, e.at)), c = b.load(b.index(y, e.at));
  const UOp shift = b.alu(Op::And, {c, b.add(ir::constant(Scalar::of_int(t, 7)))});
  const UOp three = b.add(ir::constant(Scalar::of_int(t, 3)));
  const UOp results[kIntegerOps] = {
      b.plus(a, c),
      b.alu(Op::Sub, {a, c}),
      b.alu(Op::Mul, {a, c}),
      b.alu(Op::IDiv, {a, c}),
      b.alu(Op::IMod, {a, c}),
      b.alu(Op::IDiv, {a, three}),
      b.alu(Op::Max, {a, c}),
      b.alu(Op::Xor, {b.alu(Op::And, {a, c}), b.alu(Op::Or, {a, three})}),
      b.alu(Op::Shl, {a, shift}),
      b.alu(Op::Shr, {a, shift}),
      b.alu(Op::Neg, {a}),
      b.alu(Op::Where, {b.alu(Op::CmpLt, {a, c}), b.plus(a, three), c})};
  for (int r = 0; r < kIntegerOps; ++r)
    b.store(b.index(out, b.plus(e.at, b.i32(16 * r))), results[r]);
  b.end(e.loop);
  return b.k;
}

LinearKernel float_kernel(DType t, int width) {
  LinearBuilder b(fmt::format("e_float_{}", short_name(t)));
  const UOp out = b.buffer(t, 16 * kFloatOps, false, true), x = b.buffer(t, 16, true, false),
            y = b.buffer(t, 16, true, false);
  const Elements e = elements(b, 16, width);
  const UOp a = b.load(b.index(x, e.at)), c = b.load(b.index(y, e.at));
  const UOp results[kFloatOps] = {
      b.plus(a, c),           b.alu(Op::Sub, {a, c}),
      b.alu(Op::Mul, {a, c}), b.alu(Op::Div, {a, c}),
      b.alu(Op::Max, {a, c}), b.alu(Op::Neg, {a}),
      b.alu(Op::Recip, {c}),  b.alu(Op::Sqrt, {b.alu(Op::Max, {a, b.alu(Op::Neg, {a})})}),
      b.alu(Op::Trunc, {a}),  b.alu(Op::Where, {b.alu(Op::CmpNe, {a, a}), c, a})};
  for (int r = 0; r < kFloatOps; ++r)
    b.store(b.index(out, b.plus(e.at, b.i32(16 * r))), results[r]);
  b.end(e.loop);
  return b.k;
}

}  // namespace tuff::render
