// Kernels of cooperative matrices, executed by what SPV_KHR_cooperative_matrix says: what they
// compute, and that the interpreter finds what would be wrong with them.
#include <gtest/gtest.h>

#include <random>

#include <spirv/unified1/spirv.hpp>

#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/opt/random_opts.h"
#include "kernel/pipeline.h"
#include "render/renderer.h"
#include "render/spirv.h"
#include "render/spirv_cooperative_matrix.h"
#include "render/spirv_interpreter.h"

namespace tuff::render {
namespace {

namespace kt = kernel::testing;
using ir::UOp;
using kernel::Opt;
using kernel::OptKind;

void run_words(const kernel::LinearKernel& k, const Source& source, kt::Buffers& buffers) {
  testing::SpirvLaunch launch{.args = source.args, .scalars = {}};
  launch.subgroup_size = kt::matrix_gpu().subgroup_size;
  for (kt::Buffer& b : buffers)
    launch.buffers.emplace_back(reinterpret_cast<uint8_t*>(b.data()), b.size());
  for (size_t i = 0; i < 3; ++i) launch.groups[i] = static_cast<uint32_t>(k.groups[i].value());
  testing::run_spirv(source.words, launch);
}
void run_by_address(const kernel::LinearKernel& k, kt::Buffers& buffers) {
  run_words(k, render_spirv(k, kt::matrix_gpu()), buffers);
}
void run_bound(const kernel::LinearKernel& k, kt::Buffers& buffers) {
  Target t = kt::matrix_gpu();
  t.features.device_address = false;
  run_words(k, render_spirv(k, t), buffers);
}

double tolerance(const kt::NarrowProduct& p) {
  return p.sum == DType::I32 ? 0 : p.result == DType::BF16 ? 1e-2 : 2e-3;
}
void expect_right(const kt::NarrowProduct& p, const std::vector<Opt>& opts) {
  const UOp ast = kt::narrow_product_ast(p);
  const std::string what = to_string(opts);
  for (auto* run : {run_by_address, run_bound}) {
    const kernel::LinearKernel k = kernel::lower_with(ast, kt::matrix_gpu(), opts);
    ASSERT_NO_THROW(kt::expect_same(ast, k, tolerance(p), what, run)) << what;
  }
}

TEST(SpirvMatrices, OfEveryShape) {
  const auto& shapes = kt::matrix_gpu().matrix_shapes;
  for (size_t s = 0; s < shapes.size(); ++s) {
    kt::NarrowProduct p{.m = 32, .n = 32, .k = 64, .factor = shapes[s].a, .sum = shapes[s].sum};
    p.result = p.sum;
    expect_right(p, {{OptKind::Matrix, 0, int64_t(s)}, {OptKind::Local, 0, 2}});
  }
}

TEST(SpirvMatrices, OfEveryLayout) {
  for (int layout = 0; layout < 8; ++layout) {
    expect_right({.m = 32,
                  .n = 16,
                  .k = 32,
                  .left_across = (layout & 1) != 0,
                  .right_across = (layout & 2) != 0,
                  .bias = true,
                  .transposed = (layout & 4) != 0},
                 {{OptKind::Matrix, 0, 0}, {OptKind::Upcast, 0, 2}});
  }
}

TEST(SpirvMatrices, WithWhatFollowsTheSum) {
  expect_right(
      {.batch = 2, .m = 64, .n = 32, .k = 32, .result = DType::F16, .bias = true, .residual = true},
      {{OptKind::Matrix, 0, 0},
       {OptKind::Upcast, 1, 2},
       {OptKind::Local, 1, 2},
       {OptKind::Local, 2, 2},
       {OptKind::Group, 0, 0}});
}

// Sums that are multiplied element by element, by what lies once for each row.
TEST(SpirvMatrices, OfRowsThatAreKept) {
  const UOp ast = kt::attention_ast(2, 64, 32, true, DType::F16);
  const std::vector<Opt> opts{
      {OptKind::Upcast, 2, 32},     {OptKind::Slab, 3, 32},       {OptKind::Local, 4, 2},
      {OptKind::GroupReduce, 6, 2}, {OptKind::GroupReduce, 8, 2}, {OptKind::Upcast, 1, 4},
      {OptKind::Local, 1, 8},       {OptKind::Group, 0, 0},       {OptKind::Group, 1, 0},
      {OptKind::Matrix, 0, 0},      {OptKind::Matrix, 1, 0}};
  for (auto* run : {run_by_address, run_bound}) {
    const kernel::LinearKernel k = kernel::lower_with(ast, kt::matrix_gpu(), opts);
    ASSERT_NO_THROW(kt::expect_same(ast, k, 4e-3, "attention", run));
  }
}

TEST(SpirvMatrices, WithRandomOpts) {
  std::mt19937 random(11);
  int used = 0;
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Target t = kt::matrix_gpu();
    t.matrix_shapes = {t.matrix_shapes[random() % t.matrix_shapes.size()]};
    kt::NarrowProduct p{.factor = t.matrix_shapes[0].a, .sum = t.matrix_shapes[0].sum};
    p.result = p.sum;
    p.batch = 1 + random() % 2;
    p.m = 16 * (1 + random() % 3), p.n = 16 * (1 + random() % 2), p.k = 32 * (1 + random() % 2);
    p.left_across = random() % 2, p.right_across = random() % 2, p.bias = random() % 2;
    const UOp ast = kt::narrow_product_ast(p);
    const auto opts = kernel::random_opts(kernel::ast_for_opts(ast, t), t, seed, 32);
    used += to_string(opts).find("matrix") != std::string::npos;
    const kernel::LinearKernel k = kernel::lower_with(ast, t, opts);
    const std::string what = fmt::format("seed {}: {}", seed, to_string(opts));
    ASSERT_NO_THROW(kt::expect_same(ast, k, tolerance(p), what, run_by_address)) << what;
    if (HasFailure()) return;
  }
  EXPECT_GE(used, 15);
}

// ---- planted faults -------------------------------------------------------------------------

class Planted : public ::testing::Test {
 protected:
  Planted()
      : ast_(kt::narrow_product_ast({.m = 32, .n = 16, .k = 32, .bias = true})),
        kernel_(kernel::lower_with(ast_, kt::matrix_gpu(), {{OptKind::Matrix, 0, 0}})),
        source_(render_spirv(kernel_, kt::matrix_gpu())),
        right_(kt::random_buffers(ast_, 1)) {
    start_ = right_;
    run_words(kernel_, source_, right_);
  }
  // fn(instruction) of the first one with that opcode.
  template <class Fn>
  void change(uint32_t opcode, Fn fn) {
    std::vector<uint32_t>& w = source_.words;
    for (size_t at = 5; at < w.size(); at += w[at] >> 16) {
      if ((w[at] & 0xffff) == opcode) return fn(&w[at]);
    }
    FAIL() << "no opcode " << opcode;
  }
  // The constant of a value; 0 where there is none.
  uint32_t constant(uint32_t value) {
    const std::vector<uint32_t>& w = source_.words;
    for (size_t at = 5; at < w.size(); at += w[at] >> 16) {
      if ((w[at] & 0xffff) == spv::OpConstant && w[at] >> 16 == 4 && w[at + 3] == value)
        return w[at + 2];
    }
    ADD_FAILURE() << "no constant " << value;
    return 0;
  }
  bool gives_the_same() {
    kt::Buffers got = start_;
    run_words(kernel_, source_, got);
    return got == right_;
  }

  const UOp ast_;
  const kernel::LinearKernel kernel_;
  Source source_;
  kt::Buffers start_, right_;
};

TEST_F(Planted, NothingIsRight) { EXPECT_TRUE(gives_the_same()); }

TEST_F(Planted, AWrongStrideIsFound) {
  const uint32_t half = constant(16);
  change(cooperative::kOpLoad, [&](uint32_t* i) { i[5] = half; });
  EXPECT_FALSE(gives_the_same());
}
TEST_F(Planted, AStrideThatIsNotAlignedIsFound) {
  const uint32_t four = constant(4);
  change(cooperative::kOpLoad, [&](uint32_t* i) { i[5] = four; });
  EXPECT_THROW(gives_the_same(), InternalError);
}
TEST_F(Planted, AnotherLayoutIsFound) {
  const uint32_t columns = constant(cooperative::kColumnMajor);
  change(cooperative::kOpLoad, [&](uint32_t* i) { i[4] = columns; });
  EXPECT_FALSE(gives_the_same());
}
TEST_F(Planted, AFalseClaimOfAlignmentIsFound) {
  change(cooperative::kOpLoad, [](uint32_t* i) { i[7] = 1 << 20; });
  EXPECT_THROW(gives_the_same(), InternalError);
}
TEST_F(Planted, FactorsThatChangePlacesAreFound) {
  change(cooperative::kOpMulAdd, [](uint32_t* i) { std::swap(i[3], i[4]); });
  EXPECT_THROW(gives_the_same(), InternalError);
}
TEST_F(Planted, AMissingBarrierIsFound) {
  change(spv::OpControlBarrier, [&](uint32_t* i) {
    const size_t at = size_t(i - source_.words.data());
    source_.words.erase(source_.words.begin() + ptrdiff_t(at),
                        source_.words.begin() + ptrdiff_t(at + (*i >> 16)));
  });
  EXPECT_THROW(gives_the_same(), InternalError);
}

// The lane's number in place of the stride.
TEST_F(Planted, AStrideThatDiffersBetweenLanesIsFound) {
  uint32_t lane = 0, number = 0;
  const std::vector<uint32_t>& w = source_.words;
  for (size_t at = 5; at < w.size(); at += w[at] >> 16) {
    const uint32_t op = w[at] & 0xffff;
    if (op == spv::OpDecorate && w[at + 2] == spv::DecorationBuiltIn &&
        w[at + 3] == spv::BuiltInSubgroupLocalInvocationId)
      lane = w[at + 1];
    if (op == spv::OpLoad && lane && w[at + 3] == lane) number = w[at + 2];
  }
  ASSERT_NE(number, 0u);
  change(cooperative::kOpLoad, [&](uint32_t* i) { i[5] = number; });
  EXPECT_THROW(gives_the_same(), InternalError);
}

// Half of the subgroup is not there.
TEST_F(Planted, ALaneThatDoesNotTakePartIsFound) {
  testing::SpirvLaunch launch{.args = source_.args, .scalars = {}};
  launch.subgroup_size = 2 * kt::matrix_gpu().subgroup_size;
  kt::Buffers got = start_;
  for (kt::Buffer& b : got)
    launch.buffers.emplace_back(reinterpret_cast<uint8_t*>(b.data()), b.size());
  EXPECT_THROW(testing::run_spirv(source_.words, launch), InternalError);
}

}  // namespace
}  // namespace tuff::render
