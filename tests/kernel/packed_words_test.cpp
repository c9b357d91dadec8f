// Sums over packed numbers: a block's scale leaves the sum of its unrolled numbers, bytes are read
// as words where they begin one, and bits of a word become floats without being shifted. Bytes here
// are any, unlike those of expect_same.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

#include "ir/kernel_floor.h"
#include "ir/walk.h"
#include "kernel/analysis/ranges.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/opt/neighbours.h"
#include "kernel/pipeline.h"
#include "kernel/target_files.h"

namespace tuff::kernel::testing {
namespace {

using namespace ir;
using namespace std::string_literals;

constexpr int64_t kNumbers = 32;  // of a block

enum class Packing { Nibbles, Bytes, SixBits };

// Blocks of a scale of two bytes, which is an integer, `skipped` bytes and 32 numbers.
struct Blocks {
  Packing packing = Packing::Nibbles;
  int64_t skipped = 0;
  bool minimum = false;  // another scale stands where bytes are skipped: added to each number
  int64_t rows = 8, blocks = 16, vectors = 1;

  int64_t quants() const { return 2 + skipped; }
  int64_t bytes() const {
    return quants() + (packing == Packing::Nibbles ? 16 : packing == Packing::Bytes ? 32 : 24);
  }
};

UOp number(int64_t v) { return int_const(DType::I32, v); }

UOp blocks_ast(const Blocks& b) {
  AstBuilder build;
  const UOp row = build.loop(b.rows), k = build.fold(b.blocks * kNumbers);
  const UOp block = (row * b.blocks + floordiv(k, kNumbers)) * b.bytes();
  const auto byte = [&](const UOp& at) {
    return load(1, b.rows * b.blocks * b.bytes(), block + at, DType::U8);
  };
  const auto scale = [&](int64_t at) {
    const UOp low = cast(byte(index_const(at)), DType::U16),
              high = cast(byte(index_const(at + 1)), DType::U16);
    const UOp eight = int_const(DType::U16, 8);
    return cast(alu(Op::Or, {low, alu(Op::Shl, {high, eight})}), DType::F32);
  };
  const auto digit = [&](int64_t below, int64_t size) {
    return floormod(floordiv(k, below), size);
  };
  const auto bits = [&](const UOp& at, const UOp& shift, int64_t mask) {
    return alu(Op::And, {alu(Op::Shr, {cast(byte(at), DType::I32), cast(shift, DType::I32)}),
                         number(mask)});
  };
  UOp q;
  if (b.packing == Packing::Bytes) {
    q = cast(bitcast(byte(digit(1, 32) + b.quants()), DType::I8), DType::I32);
  } else {
    q = bits(digit(1, 16) + b.quants(), digit(16, 2) * 4, 15);
    if (b.packing == Packing::SixBits) {
      const UOp high = bits(digit(1, 8) + b.quants() + 16, digit(8, 4) * 2, 3);
      q = alu(Op::Or, {q, alu(Op::Shl, {high, number(4)})});
    }
    q = q + number(-8);
  }
  UOp weight = scale(0) * cast(q, DType::F32);
  if (b.minimum) weight = weight - scale(2);
  if (b.vectors == 1) {
    const UOp x = load(2, b.blocks * kNumbers, k);
    return kernel_of({store(0, b.rows, row, reduce_over(Op::Add, weight * x, {k}), {row})});
  }
  const UOp v = build.loop(b.vectors);
  const UOp x = load(2, b.vectors * b.blocks * kNumbers, v * (b.blocks * kNumbers) + k);
  return kernel_of({store(0, b.vectors * b.rows, v * b.rows + row,
                          reduce_over(Op::Add, weight * x, {k}), {row, v})});
}

LinearKernel lowered(const UOp& ast, const std::string& target,
                     std::vector<std::string> skipped = {}) {
  LowerOptions options;
  options.skipped = std::move(skipped);
  return lower(ast, tuff::testing::target_of(target), options);
}

// Random numbers, and any bytes for the packed ones.
Buffers any_buffers(const UOp& ast) {
  Buffers out = random_buffers(ast, 3);
  std::mt19937 random(5);
  for (std::byte& b : out[1]) b = std::byte(random());
  return out;
}

void expect_same_sums(const UOp& ast, const LinearKernel& k, const std::string& what) {
  Buffers expected = any_buffers(ast), got = expected;
  run_ast(ast, expected);
  run_linear(k, got);
  for (size_t i = 0; i < expected[0].size(); i += 4) {
    const double a = load_scalar(DType::F32, expected[0].data() + i).as_double();
    const double b = load_scalar(DType::F32, got[0].data() + i).as_double();
    // Of terms up to 2^16 * 2^7, of which 512 are added.
    ASSERT_NEAR(a, b, 1e-6 * 65536 * 128 * std::sqrt(512.0)) << what << '\n' << to_text(k);
  }
}

int64_t loads_of(const LinearKernel& k, DType t) {
  return std::ranges::count_if(k.ops, [&](const UOp& u) {
    return u->op == Op::Load && u->dtype == t && u->src(0)->op == Op::Index;
  });
}

// Ops of unrolled steps of a sum.
int64_t unrolled(const LinearKernel& k, Op op, DType t) {
  int64_t n = 0;
  for (size_t i = 0; i < k.ops.size(); i++) {
    bool steps = false;
    for (size_t bit = 0; bit < k.lane_ranges.size(); bit++)
      steps = steps || (k.lanes[i] >> bit & 1 &&
                        kind_of(k.lane_ranges[bit].get()) == AxisKind::ReduceLane);
    n += steps && k.ops[i]->op == op && k.ops[i]->dtype == t;
  }
  return n;
}

TEST(PackedWords, SumsAreTheSame) {
  for (const char* target : {"amd-rdna3-igpu", "nvidia-hopper", "intel-xe", "arm-mali"}) {
    for (const Packing p : {Packing::Nibbles, Packing::Bytes, Packing::SixBits}) {
      for (const int64_t skipped : {0, 1, 2, 3}) {
        for (const bool minimum : {false, true}) {
          if (minimum && skipped < 2) continue;
          const UOp ast = blocks_ast({p, skipped, minimum});
          for (const char* pass : {"", "lane-factors", "packed-words", "packed-rows"}) {
            std::vector<std::string> skipped_passes;
            if (*pass) skipped_passes = {pass};
            const LinearKernel k = lowered(ast, target, skipped_passes);
            expect_same_sums(ast, k,
                             fmt::format("packing {} after {} bytes on {} without {}", int(p),
                                         skipped, target, pass));
          }
        }
      }
    }
  }
}

// Offsets that nobody knows to be even are no words.
TEST(PackedWords, AreAsWideAsBlocksAreAligned) {
  const auto kernel = [](int64_t skipped) {
    return lowered(blocks_ast({Packing::Nibbles, skipped}), "amd-rdna3-igpu", {"packed-rows"});
  };
  const LinearKernel halves = kernel(0), odd = kernel(1), words = kernel(2);
  EXPECT_EQ(loads_of(halves, DType::U8), 0) << to_text(halves);
  EXPECT_EQ(loads_of(halves, DType::U16), 2) << to_text(halves);
  EXPECT_EQ(loads_of(halves, DType::I32), 0) << to_text(halves);
  EXPECT_EQ(loads_of(odd, DType::U8), 3) << to_text(odd);
  EXPECT_EQ(loads_of(odd, DType::U16), 0) << to_text(odd);
  EXPECT_EQ(loads_of(words, DType::I32), 1) << to_text(words);
  EXPECT_EQ(loads_of(words, DType::U16), 1) << to_text(words);
  EXPECT_EQ(loads_of(words, DType::U8), 0) << to_text(words);
}

TEST(PackedWords, BitsBecomeFloatsWhereTheyAre) {
  for (const Packing p : {Packing::Nibbles, Packing::Bytes, Packing::SixBits}) {
    const UOp ast = blocks_ast({p, 2});
    const LinearKernel k = lowered(ast, "amd-rdna3-igpu"),
                       plain = lowered(ast, "amd-rdna3-igpu", {"packed-words"});
    EXPECT_EQ(unrolled(k, Op::Cast, DType::F32), 0) << to_text(k);
    EXPECT_EQ(unrolled(plain, Op::Cast, DType::F32), 1) << to_text(plain);
  }
}

// An invocation takes two words, or four bytes where nothing is known to begin a word, of four rows
// that have the vector in common; and so many pieces at a time that there are 64 numbers.
TEST(PackedWords, AreSharedAmongInvocationsAsTheyAreLoaded) {
  struct Row {
    Packing packing;
    int64_t skipped;
    const char* opts;
  };
  for (const Row& r : {Row{Packing::Nibbles, 0, "unroll(1,8) group_reduce(1,64) unroll(1,2)"},
                       Row{Packing::Nibbles, 1, "unroll(1,8) group_reduce(1,64) unroll(1,2)"},
                       Row{Packing::Nibbles, 2, "unroll(1,16) group_reduce(1,64)"}}) {
    const LinearKernel k =
        lowered(blocks_ast({r.packing, r.skipped, false, 4096, 128}), "amd-rdna3-igpu");
    EXPECT_NE(k.opts.find("upcast(0,4)"), std::string::npos) << k.opts;
    EXPECT_NE(k.opts.find(r.opts), std::string::npos) << k.opts << " lacks " << r.opts;
  }
}

// Bytes are read once: what a row would save of the vector costs more invocations than it gives.
TEST(PackedWords, RowsOfBytesAreAnInvocationsAlone) {
  for (const int64_t skipped : {0, 2}) {
    const LinearKernel k =
        lowered(blocks_ast({Packing::Bytes, skipped, false, 4096, 128}), "amd-rdna3-igpu");
    EXPECT_EQ(k.opts.find("upcast"), std::string::npos) << k.opts;
    EXPECT_NE(k.opts.find("unroll(1,4) group_reduce(1,64)"), std::string::npos) << k.opts;
  }
}

// Rows of 43 blocks of 256: as many numbers to an invocation as subgroups share evenly.
TEST(PackedWords, OfRowsThatSubgroupsShareEvenly) {
  const LinearKernel k =
      lowered(blocks_ast({Packing::Nibbles, 2, false, 4096, 344}), "nvidia-hopper");
  EXPECT_NE(k.opts.find("unroll(1,8) group_reduce(1,32)"), std::string::npos) << k.opts;
}

// Fields of two words are joined for all bytes at once, of as many bytes as begin at an even one.
TEST(PackedWords, FieldsAreJoinedWordByWord) {
  const LinearKernel k = lowered(blocks_ast({Packing::SixBits, 0}), "amd-rdna3-igpu");
  const auto masks = [&](int64_t mask) {
    return std::ranges::count_if(k.ops, [&](const UOp& u) {
      return u->op == Op::And && u->src(1)->is_const_int(mask);
    });
  };
  EXPECT_EQ(masks(0x0f0f0f0f), 1) << to_text(k);
  EXPECT_EQ(masks(0x03030303), 1) << to_text(k);
  EXPECT_EQ(masks(0x30303030), 0) << "of what is nothing else\n" << to_text(k);
}

// Compilers of C take for granted that signed numbers do not overflow.
TEST(PackedWords, AreShiftedToTheLeftWithoutSign) {
  for (const int64_t skipped : {0, 2}) {
    const LinearKernel k = lowered(blocks_ast({Packing::SixBits, skipped}), "amd-rdna3-igpu");
    int64_t shifts = 0;
    for (const UOp& u : k.ops) {
      if (u->op != Op::Shl && u->op != Op::Mul) continue;
      const bool loaded = std::ranges::any_of(
          toposort(u->src(0)), [](const Node* n) { return n->op == Op::Load && is_int(n->dtype); });
      EXPECT_FALSE(loaded && is_int(u->dtype) && is_signed(u->dtype)) << to_text(k);
      shifts += loaded && u->op == Op::Shl;
    }
    EXPECT_GT(shifts, 0) << to_text(k);
  }
}

TEST(LaneFactors, ScalesLeaveTheSumOfUnrolledNumbers) {
  const UOp ast = blocks_ast({});
  const LinearKernel k = lowered(ast, "amd-rdna3-igpu"),
                     plain = lowered(ast, "amd-rdna3-igpu", {"lane-factors"});
  EXPECT_EQ(unrolled(k, Op::Mul, DType::F32), 0) << to_text(k);
  EXPECT_EQ(unrolled(plain, Op::Mul, DType::F32), 1) << to_text(plain);
  EXPECT_EQ(std::ranges::count_if(k.ops, [](const UOp& u) { return u->op == Op::Dot; }), 1)
      << to_text(k);
}

// A minimum is multiplied by the sum of the vector, which rows have in common.
TEST(LaneFactors, MinimaAreMultipliedBySumsOfTheVector) {
  const UOp ast = blocks_ast({Packing::Nibbles, 2, true});
  const LinearKernel k = lowered(ast, "amd-rdna3-igpu"),
                     plain = lowered(ast, "amd-rdna3-igpu", {"lane-factors", "packed-words"});
  // What is left of a number: the subtraction that makes it a float.
  EXPECT_EQ(unrolled(plain, Op::Sub, DType::F32), 1) << to_text(plain);
  EXPECT_EQ(unrolled(k, Op::Mul, DType::F32), 0) << to_text(k);
}

// Numbers less what is near them, which sums are not.
UOp differences_ast(int64_t rows, int64_t columns) {
  AstBuilder b;
  const UOp row = b.loop(rows), k = b.fold(columns);
  const UOp difference = load(1, rows * columns, row * columns + k) - load(2, rows, row);
  const UOp value = difference * load(3, columns, k) * load(4, rows, row);
  return kernel_of({store(0, rows, row, reduce_over(Op::Add, value, {k}), {row})});
}

TEST(LaneFactors, DifferencesAreTakenBeforeSums) {
  const UOp ast = differences_ast(64, 1024);
  const LinearKernel k = lowered(ast, "amd-rdna3-igpu");
  EXPECT_EQ(unrolled(k, Op::Sub, DType::F32), 1) << to_text(k);
}

// Where every factor is another in each step there is nothing to leave.
TEST(LaneFactors, OtherSumsStayAsTheyAre) {
  for (const UOp& ast : {sum_ast(64, 1024), matmul_ast(64, 64, 64), softmax_ast(64, 1024)}) {
    for (const char* target : {"amd-rdna3-igpu", "nvidia-hopper"})
      EXPECT_EQ(to_text(lowered(ast, target)), to_text(lowered(ast, target, {"lane-factors"})));
  }
}

bool has_dot(const LinearKernel& k) {
  return std::ranges::any_of(k.ops, [](const UOp& u) { return u->op == Op::Dot; });
}
Target cpu_of(uint32_t vector_bytes, uint32_t registers) {
  Target t = builtin_target("c-x86-64");
  t.vector_bytes = vector_bytes, t.vector_registers = registers;
  return t;
}

// On a CPU the lanes of a vector register stay in the sum, and scales leave those beside it.
TEST(LaneFactors, OfVectorsStayInTheirSum) {
  for (const auto& [bytes, registers] : {std::pair(16, 16), {32, 16}, {64, 32}}) {
    for (const Packing packing : {Packing::Nibbles, Packing::Bytes, Packing::SixBits}) {
      for (const bool minimum : {false, true}) {
        const UOp ast = blocks_ast({packing, minimum ? 2 : 0, minimum});
        const LinearKernel k = lower(ast, cpu_of(uint32_t(bytes), uint32_t(registers)));
        expect_same_sums(ast, k, k.opts);
        EXPECT_TRUE(has_dot(k)) << to_text(k);
      }
    }
  }
}

// Numbers of a row are decoded once for all vectors, and scaled before.
TEST(DecodedProducts, OfAFewVectorsShareNumbers) {
  for (const int64_t vectors : {1, 3, 8}) {
    const UOp ast = blocks_ast({Packing::Nibbles, 2, true, 64, 2, vectors});
    const LinearKernel k = lower(ast, cpu_of(64, 32));
    expect_same_sums(ast, k, k.opts);
    EXPECT_NE(k.opts.find("unroll"), std::string::npos) << k.opts;
    EXPECT_EQ(k.opts.find("stage"), std::string::npos) << k.opts;
    EXPECT_EQ(has_dot(k), vectors == 1) << to_text(k);
  }
}

// ---- rows in workgroup memory

int64_t loads_from(const LinearKernel& k, Op memory, DType t) {
  return std::ranges::count_if(k.ops, [&](const UOp& u) {
    const Node* from = u->op == Op::Load ? accessed_memory(u.get()) : nullptr;
    return from && from->op == memory && u->dtype == t;
  });
}

// The same bits: whole rows and slabs of them, rows beside each other and apart, that begin within
// a line and end with their buffer.
TEST(PackedRows, SumsAreTheSame) {
  struct Case {
    Blocks blocks;
    const char* opts;
  };
  const char *one = "local(0,2) unroll(1,4) group_reduce(1,32) group(0,0)",
             *four = "upcast(0,4) local(0,2) unroll(1,8) group_reduce(1,32) group(0,0)";
  for (const char* name : {"amd-rdna3-igpu", "nvidia-hopper", "lavapipe"}) {
    const Target target = tuff::testing::target_of(name);
    for (const Case& c : {Case{{Packing::Nibbles, 0, false, 16, 128}, four},
                          Case{{Packing::Nibbles, 1, false, 16, 64}, four},
                          Case{{Packing::Nibbles, 2, true, 8, 344}, four},
                          Case{{Packing::Nibbles, 0, false, 8, 248}, one},
                          Case{{Packing::Bytes, 0, false, 4, 264}, one},
                          Case{{Packing::SixBits, 2, true, 16, 144}, four}}) {
      const UOp ast = blocks_ast(c.blocks);
      const std::vector<Opt> opts = parse_opts(c.opts);
      const LinearKernel k = lower_with(ast, target, opts),
                         plain = lower_with(ast, target, opts, std::array{"packed-rows"s});
      EXPECT_GT(loads_from(k, Op::Shared, DType::U8) + loads_from(k, Op::Shared, DType::U16) +
                    loads_from(k, Op::Shared, DType::I32),
                0)
          << name << '\n'
          << to_text(k);
      Buffers expected = any_buffers(ast), got = expected;
      run_linear(plain, expected);
      run_linear(k, got);
      EXPECT_EQ(expected[0], got[0]) << name << '\n' << to_text(k);
    }
  }
}

// Random graph 32363 on CUDA: outputs beside a shared sum are the invocations that share it, and not
// as many more of them, by each of which less would be copied.
TEST(PackedRows, AreCopiedByTheInvocationsThatThereAre) {
  AstBuilder b;
  const UOp i = b.loop(4), row = b.fold(4), column = b.fold(4);
  const auto at = [&](const UOp& place) {
    return cast(load(1, 16, row * 4 + place, DType::I8), DType::I32);
  };
  const UOp product = alu(Op::Mul, {at(column), at(index_const(3) - column)});
  const UOp sum = make(Op::Reduce, DType::I32, {product, row, column}, ReduceArg{Op::Add, {}});
  const UOp ast = kernel_of({store(0, 4, i, sum, {i})});
  const LinearKernel k = lower_with(ast, builtin_target("nvptx-sm_86"),
                                    parse_opts("unroll(2,4) group_reduce(1,4) local(0,4)"));
  EXPECT_EQ(k.local[0] * k.local[1] * k.local[2], 4u);
  EXPECT_GT(loads_from(k, Op::Shared, DType::I8), 0) << to_text(k);
  expect_same(ast, k, 0, to_text(k));
}

// A vector that lanes walk in pieces is copied as well; what many vectors need is not.
TEST(PackedRows, AreOfProductsWithFewVectors) {
  const auto loads = [](const UOp& ast) {
    const LinearKernel k = lowered(ast, "amd-rdna3-igpu");
    return std::pair(loads_from(k, Op::Shared, DType::U16), loads_from(k, Op::Shared, DType::F32));
  };
  const auto [words, vector] = loads(packed_sum_ast(4096, 128));
  EXPECT_GT(words, 0);
  EXPECT_EQ(vector, 1);
  EXPECT_EQ(loads(packed_sum_ast(4096, 128, 8)).first, 0);
}

}  // namespace
}  // namespace tuff::kernel::testing
