#include "render/random_kernel.h"

#include <random>

#include "render/linear_builder.h"

namespace tuff::render {
namespace {

constexpr int64_t kCount = 64;

class RandomKernel {
 public:
  explicit RandomKernel(uint32_t seed) : b_(fmt::format("random_{}", seed)), random_(seed) {}

  kernel::LinearKernel make() {
    const UOp out_f = b_.buffer(DType::F32, 2 * kCount, false, true),
              out_i = b_.buffer(DType::I32, kCount, false, true);
    in_f_ = b_.buffer(DType::F32, kCount, true, false);
    in_i_ = b_.buffer(DType::I32, kCount, true, false);
    const int widths[] = {2, 4, 8, 16};
    const int width = widths[pick(4)], lanes = 1 + pick(3);
    const UOp v = b_.lane(width, AxisKind::Vector), l = b_.lane(lanes, AxisKind::Lane),
              g = b_.group(0, 2);
    const UOp acc = b_.reg(DType::F32, pick(2) ? std::vector<UOp>{v, l} : std::vector<UOp>{l, v});
    const UOp zero = b_.store(acc, b_.number(DType::F32, pick(3)));
    // What is used after the loop stands before it: equal nodes are one node.
    const UOp row = b_.plus(b_.times(g, lanes), l),
              place = b_.plus(b_.times(row, width), v);  // < 2*3*16
    const UOp in_range = b_.alu(Op::CmpLt, {place, b_.i32(2 * kCount - pick(80))});
    const UOp inside = b_.alu(Op::CmpLt, {place, b_.i32(kCount)});
    const UOp k = b_.loop(1 + pick(4), AxisKind::Reduce);
    at_ = {v, l, g, k};
    grow(6 + pick(10));
    const UOp ready = b_.after(acc, {zero});
    const UOp next = b_.store(ready, b_.plus(b_.load(ready), floats_.back()));
    b_.end(k);
    const UOp result = b_.load(b_.after(acc, {next}));
    b_.store(b_.index(out_f, place, in_range), result);
    b_.store(b_.index(out_i, place, inside),
             b_.cast(b_.alu(Op::CmpLt, {result, b_.number(DType::F32, 1)}), DType::I32));
    return b_.k;
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  UOp any(const std::vector<UOp>& from) { return from[pick(static_cast<int>(from.size()))]; }

  // An offset that is in bounds: a sum of counters times steps, modulo the count.
  UOp offset() {
    UOp at = b_.i32(pick(8));
    for (const UOp& r : at_)
      if (pick(2)) at = b_.plus(at, b_.times(r, 1 + pick(3) * pick(3)));
    return pick(2) ? b_.alu(Op::IMod, {at, b_.i32(kCount)})
                   : b_.alu(Op::And, {at, b_.i32(kCount - 1)});
  }
  UOp load_from(const UOp& buffer) {
    return b_.load(pick(3) ? b_.index(buffer, offset()) : b_.index(buffer, offset(), any(bools_)));
  }
  void grow(int steps) {
    ints_ = at_;
    bools_ = {b_.alu(Op::CmpLt, {at_[0], b_.i32(1 + pick(3))}),
              b_.alu(Op::CmpNe, {at_[3], at_[1]})};
    floats_ = {b_.load(b_.index(in_f_, at_[0])), b_.cast(at_[1], DType::F32)};
    for (int n = 0; n < steps; ++n) step();
    floats_.push_back(
        b_.alu(Op::Where, {any(bools_), floats_.back(), b_.cast(ints_.back(), DType::F32)}));
  }
  void step() {
    const UOp x = any(floats_), y = any(floats_), i = any(ints_), j = any(ints_), p = any(bools_),
              q = any(bools_);
    const Op int_ops[] = {Op::Add, Op::Sub, Op::Mul, Op::IDiv, Op::IMod, Op::Max, Op::And, Op::Xor};
    const Op bool_ops[] = {Op::And, Op::Or, Op::Xor, Op::CmpNe, Op::CmpLt};
    switch (pick(8)) {
      case 0: floats_.push_back(load_from(in_f_)); break;
      case 1: ints_.push_back(load_from(in_i_)); break;
      case 2: floats_.push_back(b_.alu(Op::Max, {x, y})); break;
      case 3: floats_.push_back(b_.alu(pick(2) ? Op::Sub : Op::Add, {x, y})); break;
      case 4: ints_.push_back(b_.alu(int_ops[pick(8)], {i, j})); break;
      case 5:
        bools_.push_back(pick(2) ? b_.alu(Op::CmpLt, {x, y}) : b_.alu(Op::CmpEq, {i, j}));
        break;
      case 6: bools_.push_back(b_.alu(bool_ops[pick(5)], {p, q})); break;
      default: floats_.push_back(b_.alu(Op::Where, {p, x, y})); break;
    }
  }

  LinearBuilder b_;
  std::mt19937 random_;
  UOp in_f_, in_i_;
  std::vector<UOp> at_, floats_, ints_, bools_;
};

}  // namespace

// Where gates are open, the larger of two loads of integers; else the one in even lanes and the
// other in odd ones.
kernel::LinearKernel random_move(uint32_t seed, DType t) {
  std::mt19937 random(seed);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  LinearBuilder b(fmt::format("move_{}_{}", short_name(t), seed));
  const int width = 1 << pick(5), lanes = 1 + pick(3), groups = 1 + pick(3);
  const int steps[] = {1, 1, 2, 3}, factors[] = {0, 1, 2, 3, 4, 6, 8, 16};
  const int64_t apart = width + pick(9), out_begin = pick(4), rows = groups * lanes;
  const int64_t row_step = factors[pick(8)], lane_step = pick(2) ? width : 1 + pick(4),
                step = steps[pick(4)], begin = pick(5);
  const int64_t last =
      (groups - 1) * row_step + (lanes - 1) * lane_step + (width - 1) * step + begin;
  const UOp out = b.buffer(t, rows * apart + out_begin, false, true),
            in = b.buffer(t, last + 1 + pick(4), true, false);
  const UOp l = b.lane(lanes, AxisKind::Lane), v = b.lane(width, AxisKind::Vector),
            g = b.group(0, groups);
  const UOp row = b.plus(b.times(g, lanes), l);
  const UOp place = b.plus(b.plus(b.times(row, apart), v), b.i32(out_begin));
  const UOp from = b.plus(b.plus(b.plus(b.times(g, row_step), b.times(l, lane_step)),
                                 b.times(v, step)),
                          b.i32(begin));
  const auto gated = [&](const UOp& buffer, const UOp& at) {
    const UOp of_group = b.alu(Op::CmpLt, {b.i32(pick(2)), g});
    const UOp of_lane = b.alu(Op::CmpLt, {v, b.i32(1 + pick(width))});
    const int which = pick(4);
    return which == 0   ? b.index(buffer, at, of_group)
           : which == 1 ? b.index(buffer, at, of_lane)
                        : b.index(buffer, at);
  };
  const UOp x = b.load(gated(in, from)), y = b.load(gated(in, from));
  const UOp even = b.alu(Op::CmpEq, {b.alu(Op::And, {v, b.i32(1)}), b.i32(0)});
  b.store(gated(out, place),
          is_int(t) ? b.alu(Op::Max, {x, y}) : b.alu(Op::Where, {even, x, y}));
  return b.k;
}

kernel::LinearKernel random_kernel(uint32_t seed) { return RandomKernel(seed).make(); }

}  // namespace tuff::render
