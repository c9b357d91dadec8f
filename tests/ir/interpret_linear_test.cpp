// interpret_linear: launches, lanes, loops, registers, workgroup memory, gates, variables,
// accesses.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <set>

#include "ir/interpret.h"
#include "ir/spec.h"

namespace tuff::ir {
namespace {

// Appends nodes after their sources, in the order of the calls.
class List {
 public:
  UOp add(const UOp& u) {
    if (!placed_.insert(u.get()).second) return u;
    for (const UOp& s : u->src()) add(s);
    ops.push_back(u);
    return u;
  }
  UOp i32(int64_t v) { return add(constant(Scalar::of_int(DType::I32, v))); }
  UOp f32(double v) { return add(constant(DType::F32, v)); }
  UOp param_of(int slot, int64_t n, DType t = DType::F32) { return add(param(slot, t, n)); }
  UOp range_of(const UOp& size, AxisKind kind) {
    return add(make(Op::Range, DType::I32, {size}, RangeArg{next_range_++, kind}));
  }
  UOp special(char space, int axis, int64_t size) {
    return add(make(Op::Special, DType::I32, {i32(size)}, SpecialArg{space, int8_t(axis)}));
  }
  UOp op(Op o, std::initializer_list<UOp> src) { return add(make(o, DType::Void, src)); }
  UOp affine(const UOp& a, int64_t factor, const UOp& b) {
    return op(Op::Add, {op(Op::Mul, {a, i32(factor)}), b});
  }
  UOp load(const UOp& memory, const UOp& at) { return op(Op::Load, {op(Op::Index, {memory, at})}); }
  void store(const UOp& memory, const UOp& at, const UOp& v) {
    op(Op::Store, {op(Op::Index, {memory, at}), v});
  }
  void end(const UOp& range) { op(Op::End, {range}); }

  std::vector<UOp> ops;

 private:
  std::set<const Node*> placed_;
  int next_range_ = 0;
};

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& v) {
  return std::as_writable_bytes(std::span(v));
}

std::vector<float> counting(size_t n, float first = 0) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}

TEST(InterpretLinear, RunsEveryGroupInvocationAndLaneOnce) {
  List l;
  const UOp out = l.param_of(0, 24), x = l.param_of(1, 24);
  const UOp g = l.special('g', 0, 3), inv = l.special('l', 0, 2),
            lane = l.range_of(l.i32(4), AxisKind::Vector);
  const UOp at = l.affine(l.affine(g, 2, inv), 4, lane);
  l.store(out, at, l.op(Op::Mul, {l.load(x, at), l.f32(2)}));
  check_linear_spec(l.ops, "test");

  std::vector<float> y(24, -1), in = counting(24);
  std::vector<int> reads(24), writes(24);
  LinearRun run{.buffers = {bytes_of(y), bytes_of(in)}, .groups = {3, 1, 1}, .local = {2, 1, 1}};
  run.on_access = [&](const LinearAccess& a) {
    EXPECT_EQ(a.slot, a.write ? 0 : 1);
    (a.write ? writes : reads)[size_t(a.element)]++;
  };
  interpret_linear(l.ops, run);
  for (int i = 0; i < 24; i++) EXPECT_EQ(y[size_t(i)], 2.0f * float(i));
  EXPECT_EQ(reads, std::vector<int>(24, 1));
  EXPECT_EQ(writes, std::vector<int>(24, 1));
}

// A 4x8 tile of a (4,6) x (6,8) product in registers: row and column lanes, a serial loop between.
TEST(InterpretLinear, RegistersHoldOneValuePerLane) {
  List l;
  const UOp out = l.param_of(0, 32), a = l.param_of(1, 24), b = l.param_of(2, 48);
  const UOp row = l.range_of(l.i32(4), AxisKind::Lane),
            column = l.range_of(l.i32(8), AxisKind::Vector);
  const UOp acc = l.add(make(Op::Register, DType::F32, {row, column}, int64_t{0}));
  const UOp zero = l.op(Op::Store, {acc, l.f32(0)});
  const UOp k = l.range_of(l.i32(6), AxisKind::Reduce);
  const UOp ready = l.op(Op::After, {acc, zero});
  const UOp product =
      l.op(Op::Mul, {l.load(a, l.affine(row, 6, k)), l.load(b, l.affine(k, 8, column))});
  const UOp sum = l.op(Op::Store, {ready, l.op(Op::Add, {l.op(Op::Load, {ready}), product})});
  l.end(k);
  l.store(out, l.affine(row, 8, column), l.op(Op::Load, {l.op(Op::After, {acc, sum})}));
  check_linear_spec(l.ops, "test");

  std::vector<float> y(32), va = counting(24, 1), vb = counting(48, -7);
  LinearRun run{.buffers = {bytes_of(y), bytes_of(va), bytes_of(vb)}};
  interpret_linear(l.ops, run);
  for (size_t i = 0; i < 4; i++) {
    for (size_t j = 0; j < 8; j++) {
      float want = 0;
      for (size_t n = 0; n < 6; n++) want += va[i * 6 + n] * vb[n * 8 + j];
      EXPECT_EQ(y[i * 8 + j], want) << i << "," << j;
    }
  }
}

TEST(InterpretLinear, WorkgroupMemoryIsSharedAfterABarrierAndFreshPerGroup) {
  List l;
  const UOp out = l.param_of(0, 16), x = l.param_of(1, 16);
  const UOp g = l.special('g', 1, 2), inv = l.special('l', 0, 8);
  const UOp memory = l.add(make(Op::Shared, DType::F32, {}, SharedArg{0, 8}));
  const UOp stored =
      l.op(Op::Store, {l.op(Op::Index, {memory, inv}), l.load(x, l.affine(g, 8, inv))});
  const UOp barrier = l.op(Op::Barrier, {stored});
  check_linear_spec(l.ops, "test");
  const UOp mirrored = l.op(Op::Sub, {l.i32(7), inv});
  l.store(out, l.affine(g, 8, inv),
          l.op(Op::Load, {l.op(Op::Index, {l.op(Op::After, {memory, barrier}), mirrored})}));

  std::vector<float> y(16), in = counting(16);
  LinearRun run{.buffers = {bytes_of(y), bytes_of(in)}, .groups = {1, 2, 1}, .local = {8, 1, 1}};
  interpret_linear(l.ops, run);
  for (size_t i = 0; i < 16; i++) EXPECT_EQ(y[i], float(i / 8 * 8 + 7 - i % 8));
}

// Lock-step gives the right values all the same.
TEST(InterpretLinear, WorkgroupMemoryWithoutABarrierIsRefused) {
  for (const bool waits : {false, true}) {
    for (const bool reads : {false, true}) {
      List l;
      const UOp out = l.param_of(0, 8), inv = l.special('l', 0, 8);
      const UOp memory = l.add(make(Op::Shared, DType::F32, {}, SharedArg{0, 8}));
      const UOp mirrored = l.op(Op::Sub, {l.i32(7), inv});
      const UOp value = l.add(constant(DType::F32, 1));
      UOp at = l.op(Op::Index, {memory, mirrored});
      // A read before the write is one of another's element, too.
      const UOp first = reads ? l.op(Op::Load, {at}) : l.op(Op::Store, {at, value});
      const UOp ready = waits ? l.op(Op::After, {memory, l.op(Op::Barrier, {first})}) : memory;
      const UOp own = l.op(Op::Index, {ready, inv});
      const UOp second = reads ? l.op(Op::Store, {own, value}) : l.op(Op::Load, {own});
      l.store(out, inv, reads ? first : second);
      std::vector<float> y(8);
      LinearRun run{.buffers = {bytes_of(y)}, .local = {8, 1, 1}};
      if (waits) {
        EXPECT_NO_THROW(interpret_linear(l.ops, run));
      } else {
        EXPECT_THROW(interpret_linear(l.ops, run), InternalError);
      }
    }
  }
}

TEST(InterpretLinear, ReduceFoldsItsOwnLanesOnly) {
  List l;
  const UOp out = l.param_of(0, 3), x = l.param_of(1, 12);
  const UOp keep = l.range_of(l.i32(3), AxisKind::Lane),
            part = l.range_of(l.i32(4), AxisKind::ReduceLane);
  const UOp folded = l.add(make(Op::Reduce, DType::F32, {l.load(x, l.affine(keep, 4, part)), part},
                                ReduceArg{Op::Max, {}}));
  l.store(out, keep, folded);

  std::vector<float> y(3), in{3, 9, -1, 2, -5, -4, -8, -6, 0, 1, 7, 7};
  LinearRun run{.buffers = {bytes_of(y), bytes_of(in)}};
  interpret_linear(l.ops, run);
  EXPECT_EQ(y, (std::vector<float>{9, -4, 7}));
}

TEST(InterpretLinear, ClosedGatesReadZeroAndWriteNothing) {
  List l;
  const UOp out = l.param_of(0, 6), x = l.param_of(1, 6);
  const UOp lane = l.range_of(l.i32(8), AxisKind::Vector), before = l.op(Op::Sub, {lane, l.i32(2)});
  const UOp readable = l.op(Op::CmpLt, {l.i32(1), lane}),
            inside = l.op(Op::CmpLt, {lane, l.i32(6)});
  const UOp shifted = l.op(Op::Load, {l.op(Op::Index, {x, before, readable})});
  l.op(Op::Store, {l.op(Op::Index, {out, lane, inside}), shifted});

  std::vector<float> y(6, -1), in = counting(6, 10);
  int accesses = 0;
  LinearRun run{.buffers = {bytes_of(y), bytes_of(in)}};
  run.on_access = [&](const LinearAccess&) { accesses++; };
  interpret_linear(l.ops, run);
  EXPECT_EQ(y, (std::vector<float>{0, 0, 10, 11, 12, 13}));
  EXPECT_EQ(accesses, 12);  // six reads, six writes
}

TEST(InterpretLinear, LoopsOfSymbolicSizeRunTheBoundNumberOfTimes) {
  List l;
  const UOp out = l.param_of(0, 9, DType::I32);
  const UOp n = l.add(make(Op::Variable, DType::I32, {}, VariableArg{"rows", 1, 9}));
  const UOp i = l.range_of(n, AxisKind::Loop);
  l.store(out, i, l.op(Op::Mul, {i, n}));
  l.end(i);

  std::vector<int32_t> y(9, -1);
  LinearRun run{.buffers = {bytes_of(y)}};
  EXPECT_THROW(interpret_linear(l.ops, run), InvalidArgument);
  run.variables["rows"] = 4;
  interpret_linear(l.ops, run);
  EXPECT_EQ(y, (std::vector<int32_t>{0, 4, 8, 12, -1, -1, -1, -1, -1}));
}

TEST(InterpretLinear, AnAccessOutOfBoundsIsAnError) {
  List l;
  const UOp out = l.param_of(0, 4), lane = l.range_of(l.i32(5), AxisKind::Lane);
  l.store(out, lane, l.f32(1));
  std::vector<float> y(8);
  LinearRun run{.buffers = {bytes_of(y)}};
  EXPECT_THROW(interpret_linear(l.ops, run), InternalError);
}

// Two subgroups of two lanes: each multiplies a row of its own by a matrix that lies in columns.
TEST(InterpretLinear, SubgroupsMultiplyMatrices) {
  List l;
  const UOp out = l.param_of(0, 4), x = l.param_of(1, 6), y = l.param_of(2, 6);
  const UOp group = l.add(make(Op::Special, DType::I32, {l.i32(2)}, SpecialArg{'s', 1}));
  const auto matrix = [&](const UOp& memory, const UOp& at, MatrixArg m) {
    const UOp place = l.op(Op::Index, {memory, at});
    return l.add(make(Op::MatrixLoad, DType::F32, {place}, m));
  };
  const UOp a = matrix(x, l.op(Op::Mul, {group, l.i32(3)}), {MatrixUse::A, 1, 3, 3});
  const UOp b = matrix(y, l.i32(0), {MatrixUse::B, 3, 2, 3, true});
  const MatrixArg sum{MatrixUse::Sum, 1, 2, 2};
  const UOp one = l.add(make(Op::MatrixFill, DType::F32, {l.f32(1)}, sum));
  const UOp c = l.add(make(Op::MatrixMulAdd, DType::F32, {a, b, one}, sum));
  const UOp to = l.op(Op::Index, {out, l.op(Op::Mul, {group, l.i32(2)})});
  l.add(make(Op::MatrixStore, DType::Void, {to, c}, sum));

  std::vector<float> got(4), in = {1, 2, 3, 4, 5, 6}, columns = {1, 0, 2, 0, 1, -1};
  LinearRun run{.buffers = {bytes_of(got), bytes_of(in), bytes_of(columns)}, .local = {4, 1, 1}};
  run.subgroup_size = 2;
  int reads = 0;
  run.on_access = [&](const LinearAccess& access) { reads += !access.write; };
  interpret_linear(l.ops, run);
  EXPECT_EQ(got, (std::vector<float>{8, 0, 17, 0}));
  EXPECT_EQ(reads, 2 * (3 + 6));
}

// Rows 0 and 1 of the right factor lie in one line, rows 2 and 3 in the next.
TEST(InterpretLinear, PairsOfRowsLieInterleaved) {
  List l;
  const UOp out = l.param_of(0, 2), x = l.param_of(1, 4), y = l.param_of(2, 10);
  const auto at = [&](const UOp& memory) { return l.op(Op::Index, {memory, l.i32(0)}); };
  const UOp a =
      l.add(make(Op::MatrixLoad, DType::F32, {at(x)}, MatrixArg{MatrixUse::A, 1, 4, 4}));
  const MatrixArg pairs{
      .use = MatrixUse::B, .rows = 4, .columns = 2, .stride = 6, .interleaved = 2};
  const UOp b = l.add(make(Op::MatrixLoad, DType::F32, {at(y)}, pairs));
  const MatrixArg sum{MatrixUse::Sum, 1, 2, 2};
  const UOp none = l.add(make(Op::MatrixFill, DType::F32, {l.f32(0)}, sum));
  const UOp c = l.add(make(Op::MatrixMulAdd, DType::F32, {a, b, none}, sum));
  l.add(make(Op::MatrixStore, DType::Void, {at(out), c}, sum));

  std::vector<float> got(2), in = {1, 10, 100, 1000};
  std::vector<float> lines = {1, 2, 5, 6, -1, -1, 3, 4, 7, 8};  // columns 1 2 3 4 and 5 6 7 8
  LinearRun run{.buffers = {bytes_of(got), bytes_of(in), bytes_of(lines)}};
  interpret_linear(l.ops, run);
  EXPECT_EQ(got, (std::vector<float>{4321, 8765}));
}

// A sum is rounded to what it is stored as.
TEST(InterpretLinear, SumsOfMatricesAreConverted) {
  List l;
  const UOp out = l.add(param(0, DType::F16, 4));
  const MatrixArg sum{MatrixUse::Sum, 2, 2, 2};
  const UOp c = l.add(make(Op::MatrixFill, DType::F32, {l.f32(2049)}, sum));
  const UOp half = l.add(make(Op::Cast, DType::F16, {c}));
  const UOp to = l.add(make(Op::Index, DType::F16, {out, l.i32(0)}));
  l.add(make(Op::MatrixStore, DType::Void, {to, half}, sum));
  std::vector<uint16_t> got(4);
  LinearRun run{.buffers = {std::as_writable_bytes(std::span(got))}};
  interpret_linear(l.ops, run);
  EXPECT_EQ(got, std::vector<uint16_t>(4, 0x6800));  // 2048: a tie, to the even one
}

// Each lane names another place.
TEST(InterpretLinear, LanesThatDoNotAgreeOnAMatrixAreAnError) {
  List l;
  const UOp x = l.param_of(0, 8);
  const UOp lane = l.add(make(Op::Special, DType::I32, {l.i32(2)}, SpecialArg{'s', 0}));
  const UOp place = l.op(Op::Index, {x, lane});
  l.add(make(Op::MatrixLoad, DType::F32, {place}, MatrixArg{MatrixUse::A, 2, 2, 2}));
  std::vector<float> memory(8);
  LinearRun run{.buffers = {bytes_of(memory)}, .local = {2, 1, 1}};
  EXPECT_THROW(interpret_linear(l.ops, run), InternalError);
}

}  // namespace
}  // namespace tuff::ir
