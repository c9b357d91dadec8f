// What a Target without narrow and 64-bit types makes of them, against the direct meaning of the
// same kernels: on the host, through the interpreter of linear lists.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "base/random_cases.h"
#include "ir/scalar_eval.h"
#include "kernel/ast_builder.h"
#include "kernel/dtype_cases.h"
#include "kernel/pipeline.h"

namespace tuff::kernel::testing {
namespace {

using namespace ir;

constexpr DType kTypes[] = {DType::Bool, DType::I8,  DType::U8,   DType::I16,
                            DType::U16,  DType::I32, DType::U32,  DType::I64,
                            DType::U64,  DType::F16, DType::BF16, DType::F32,
                            DType::F8E4M3FN, DType::F8E5M2};

const Target& bare() {
  static const Target t = builtin_target("spirv-generic");
  return t;
}

void check(const DtypeCase& c, const Target& target, const std::string& where, int seeds = 2) {
  const LinearKernel k = lower(c.ast, target);
  for (int seed = 0; seed < seeds; seed++) {
    const Buffers start = full_range_buffers(c.ast, uint32_t(seed) + 1);
    Buffers want = start, got = start;
    run_ast(c.ast, want);
    run_linear(k, got);
    expect_equal(c, start, got, want, where);
  }
}

class Emulation : public ::testing::TestWithParam<DType> {};

TEST_P(Emulation, OpsAreTheInterpreters) {
  for (const DtypeCase& c : op_cases(GetParam())) check(c, bare(), "spirv-generic");
}
TEST_P(Emulation, CastsAreTheInterpreters) {
  for (const DtypeCase& c : cast_cases(GetParam(), kTypes)) check(c, bare(), "spirv-generic", 6);
}
TEST_P(Emulation, StorageKeepsNeighbours) {
  for (const DtypeCase& c : storage_cases(GetParam())) check(c, bare(), "spirv-generic");
}
// A device may lack any one of them alone.
TEST_P(Emulation, SingleFeaturesMayBeMissing) {
  using F = TargetFeatures;
  for (bool F::* feature : {&F::i8, &F::i16, &F::i64, &F::f16, &F::storage8, &F::storage16}) {
    Target t = builtin_target("spirv-lavapipe");
    t.features.*feature = false;
    if (feature == &F::f16) t.features.f16_casts = false;
    for (const DtypeCase& c : storage_cases(GetParam())) check(c, t, "lavapipe without one", 1);
    for (const DtypeCase& c : op_cases(GetParam())) check(c, t, "lavapipe without one", 1);
  }
}
INSTANTIATE_TEST_SUITE_P(, Emulation, ::testing::ValuesIn(kTypes),
                         [](const auto& info) { return std::string(name(info.param)); });

// An element at the place of the row's minimum: reductions that an offset is made of stay one kernel's.
TEST_P(Emulation, OffsetsMadeOfReductions) {
  constexpr int64_t kRows = 6, kColumns = 5, kCount = kRows * kColumns;
  const DType t = GetParam();
  AstBuilder b;
  const UOp row = b.loop(kRows), i = b.fold(kColumns), j = b.fold(kColumns);
  const auto at = [&](const UOp& column, const UOp& gate = {}) {
    return load(1, kCount, row * kColumns + column, t, gate);
  };
  const auto number = [](int64_t v) { return constant(DType::I32, v); };
  UOp least = at(j);
  if (is_float(t)) least = alu(Op::Neg, {least});
  least = reduce_over(Op::Max, least, {j});
  if (is_float(t)) least = alu(Op::Neg, {least});
  const UOp is_nan = alu(Op::CmpNe, {at(i), at(i)});
  const UOp found = cast(alu(Op::Or, {alu(Op::CmpEq, {at(i), least}), is_nan}), DType::I32);
  const UOp from_end = number(kColumns) - cast(i, DType::I32);
  const UOp last = reduce_over(Op::Max, alu(Op::Mul, {found, from_end}), {i});
  const UOp first = cast(number(kColumns) - last, DType::Index);
  const UOp column = floormod(first, index_const(kColumns));
  const UOp inside = alu(Op::CmpLt, {first, index_const(kColumns)});
  const UOp ast = kernel_of({store(0, kRows, row, cast(at(column, inside), DType::F32), {row})});
  check({"element at a minimum", ast}, bare(), "spirv-generic");
  const LinearKernel k = lower(ast, bare());
  const auto is_store = [](const UOp& u) { return u->op == Op::Store; };
  const int registers = size_bytes(t) == 8 ? 3 : 2;  // each stored to before and in its loop
  EXPECT_EQ(std::ranges::count_if(k.ops, is_store), 2 * registers + 1) << to_text(k);
}

// The high words of widened numbers are 0 in every row, the shared sums' are not.
TEST(EmulationWorkgroup, WidenedSumsOfRowsInALoop) {
  constexpr int64_t kRows = 5, kColumns = 4, kCount = kRows * kColumns;
  AstBuilder b;
  const UOp row = b.loop(kRows), i = b.fold(kColumns);
  const UOp x = load(1, kCount, row * kColumns + i, DType::U32);
  const UOp sum = reduce_over(Op::Add, cast(x, DType::I64), {i});
  const UOp ast = kernel_of({store(0, kRows, row, sum, {row})});
  const LinearKernel k = lower_with(ast, bare(), {{OptKind::GroupReduce, 1, 4}});
  const Buffers start = full_range_buffers(ast, 1);
  Buffers want = start, got = start;
  run_ast(ast, want);
  run_linear(k, got);
  expect_equal({"sums of rows", ast}, start, got, want, to_text(k));
}

// One kernel, many inputs: a whole range, or random pairs.
template <class Fill>
void check_many(const UOp& ast, size_t count, const std::string& what, Fill&& fill) {
  const LinearKernel k = lower(ast, bare());
  Buffers want = random_buffers(ast, 1);
  for (size_t i = 0; i < count; i++) fill(i, want);
  const Buffers start = want;
  Buffers got = want;
  run_ast(ast, want);
  run_linear(k, got);
  expect_equal({what, ast}, start, got, want, "spirv-generic");
}
template <class T>
void put(Buffer& b, size_t i, T v) {
  std::memcpy(b.data() + i * sizeof v, &v, sizeof v);
}

TEST(EmulationExhaustive, EveryHalfToFloatAndBack) {
  for (DType t : {DType::F16, DType::BF16}) {
    AstBuilder b;
    const UOp i = b.loop(65536), x = load(2, 65536, i, t);
    const UOp ast = kernel_of({store(0, 65536, i, cast(x, DType::F32), {i}),
                               store(1, 65536, i, alu(Op::Add, {x, constant(t, 0)}), {i})});
    check_many(ast, 65536, fmt::format("every {}", name(t)),
               [](size_t n, Buffers& all) { put(all[2], n, uint16_t(n)); });
  }
}

TEST(EmulationExhaustive, FloatsAroundEveryHalfRoundToNearestEven) {
  constexpr int64_t kCount = 65536 * 3;
  for (DType t : {DType::F16, DType::BF16}) {
    AstBuilder b;
    const UOp i = b.loop(kCount);
    const UOp ast = kernel_of({store(0, kCount, i, cast(load(1, kCount, i), t), {i})});
    check_many(ast, kCount, fmt::format("float32 to {}", name(t)), [&](size_t n, Buffers& all) {
      // The point half way between a narrow number and the next, and its neighbours.
      const uint16_t bits = uint16_t(n / 3);
      const float low = t == DType::F16 ? f16_to_f32(bits) : bf16_to_f32(bits);
      const float high =
          t == DType::F16 ? f16_to_f32(uint16_t(bits + 1)) : bf16_to_f32(uint16_t(bits + 1));
      const float middle = float((double(low) + double(high)) / 2);
      const uint32_t m = std::bit_cast<uint32_t>(middle);
      put(all[1], n, std::bit_cast<float>(m + uint32_t(n % 3) - 1));
    });
  }
}

// Both ways between the floats of 8 bits and every f16, which has all points half way between two.
TEST(EmulationExhaustive, EveryByteToFloatsAndEveryHalfToBytes) {
  for (DType t : {DType::F8E4M3FN, DType::F8E5M2}) {
    AstBuilder wide, narrow;
    const UOp i = wide.loop(256), x = load(2, 256, i, t);
    check_many(kernel_of({store(0, 256, i, cast(x, DType::F32), {i}),
                          store(1, 256, i, cast(x, DType::F16), {i})}),
               256, fmt::format("every {}", name(t)),
               [](size_t n, Buffers& all) { put(all[2], n, uint8_t(n)); });
    const UOp j = narrow.loop(65536), h = load(1, 65536, j, DType::F16);
    check_many(kernel_of({store(0, 65536, j, cast(h, t), {j})}), 65536,
               fmt::format("every float16 to {}", name(t)),
               [](size_t n, Buffers& all) { put(all[1], n, uint16_t(n)); });
  }
}

TEST(EmulationExhaustive, EveryPairOfBytes) {
  for (Op op : {Op::IDiv, Op::IMod, Op::Mul, Op::Sub}) {
    for (DType t : {DType::I8, DType::U8}) {
      AstBuilder b;
      const UOp i = b.loop(65536);
      const UOp ast = kernel_of(
          {store(0, 65536, i, alu(op, {load(1, 65536, i, t), load(2, 65536, i, t)}), {i})});
      check_many(ast, 65536, fmt::format("{} of every pair of {}", name(op), name(t)),
                 [](size_t n, Buffers& all) {
                   put(all[1], n, uint8_t(n >> 8));
                   put(all[2], n, uint8_t(n));
                 });
    }
  }
}

// Random bits of every width, so that quotients of every size occur, and words of edges.
TEST(EmulationRandom, LongDivision) {
  constexpr int64_t kCount = 40000;
  for (Op op : {Op::IDiv, Op::IMod}) {
    for (DType t : {DType::I64, DType::U64}) {
      AstBuilder b;
      const UOp i = b.loop(kCount);
      const UOp ast = kernel_of(
          {store(0, kCount, i, alu(op, {load(1, kCount, i, t), load(2, kCount, i, t)}), {i})});
      std::mt19937_64 random(11);
      const auto value = [&] {
        const uint64_t halves[] = {0,          1,          0xffff,     0x10000,
                                   0x7fffffff, 0x80000000, 0xffffffff, 0xfffe};
        if (random() % 4 == 0) return halves[random() % 8] << 32 | halves[random() % 8];
        return random() >> random() % 64;
      };
      check_many(ast, kCount, fmt::format("{} of {}", name(op), name(t)),
                 [&](size_t n, Buffers& all) {
                   put(all[1], n, value());
                   put(all[2], n, value());
                 });
    }
  }
}

TEST(EmulationRandom, LongsToFloatsRoundToNearestEven) {
  constexpr int64_t kCount = tuff::testing::random_cases(40000);
  for (DType from : {DType::I64, DType::U64, DType::I32, DType::U32}) {
    for (DType to : {DType::F32, DType::F16, DType::BF16, DType::F8E4M3FN, DType::F8E5M2}) {
      AstBuilder b;
      const UOp i = b.loop(kCount);
      const UOp ast = kernel_of({store(0, kCount, i, cast(load(1, kCount, i, from), to), {i})});
      std::mt19937_64 random(12);
      check_many(ast, kCount, fmt::format("{} to {}", name(from), name(to)),
                 [&](size_t n, Buffers& all) {
                   // A run of ones and a run of zeros, disturbed by one bit: ties and their
                   // neighbours.
                   const int width = row(from).storage_bits, top = int(random() % width);
                   uint64_t v = (random() | uint64_t(1) << 63) >> (63 - top);
                   if (top > 9 && random() % 2)
                     v = (v >> (top - 8)) << (top - 8) | uint64_t(random() % 2) << random() % top;
                   if (size_bytes(from) == 8)
                     put(all[1], n, v);
                   else
                     put(all[1], n, uint32_t(v));
                 });
    }
  }
}

TEST(EmulationErrors, NameDeviceDtypeOpAndRemedy) {
  AstBuilder b;
  const UOp i = b.loop(8), x = load(1, 8, i, DType::F64);
  try {
    lower(kernel_of({store(0, 8, i, x + x, {i})}), bare());
    FAIL() << "float64 was accepted";
  } catch (const Unsupported& e) {
    const std::string text = e.what();
    for (const char* part : {"float64", "VULKAN", "spirv-generic", "float32"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  Target t = builtin_target("spirv-lavapipe");
  t.features.i64 = false;
  const UOp bits = kernel_of({store(0, 8, i, bitcast(x, DType::I64), {i})});
  try {
    lower(bits, t);
    FAIL() << "a bitcast of float64 to int64 was accepted";
  } catch (const Unsupported& e) {
    EXPECT_NE(std::string(e.what()).find("bitcast"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace tuff::kernel::testing
