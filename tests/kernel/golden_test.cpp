// The linear text of a few kernels, as files in golden/. TUFF_UPDATE_GOLDENS=1 writes them anew.
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/env.h"
#include "ir/text.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/pipeline.h"

namespace tuff::kernel::testing {
namespace {

void expect_golden(const std::string& file, const std::string& text) {
  const std::string path = TUFF_SOURCE_DIR "/tests/kernel/golden/" + file;
  if (system_env("TUFF_UPDATE_GOLDENS") == "1") {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream in(path);
  ASSERT_TRUE(in.good()) << path << " is missing";
  std::stringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(expected.str(), text) << file;
}

TEST(Golden, LinearLists) {
  const struct {
    const char* name;
    ir::UOp ast;
  } kernels[] = {{"elementwise", elementwise_ast(64, 48)},
                 {"sum", sum_ast(1, 4096)},
                 {"matmul", matmul_ast(64, 64, 32)},
                 {"matmul_odd", matmul_ast(61, 83, 127)},
                 {"matmul_transposed", matmul_ast(96, 80, 64, true)},
                 {"softmax", softmax_ast(8, 128)},
                 {"softmax_odd", softmax_ast(8, 131)},
                 {"gather", gather_ast(32, 10, 16)},
                 {"scatter", scatter_ast(32, 10, 16)},
                 {"scatter_once", scatter_ast(10, 32, 16, false)},
                 {"convolution", conv_ast(2, 3, 8, 4)},
                 {"transpose", transpose_ast(64, 96)},
                 {"pool", pool_ast(16, 12, 2)},
                 {"unpool", unpool_ast(16, 12, 2)},
                 {"uniform", uniform_ast(64)}};
  for (const char* target : {"c-x86-64", "spirv-lavapipe"}) {
    for (const auto& k : kernels) {
      expect_golden(std::string(k.name) + "." + target + ".txt",
                    to_text(lower(k.ast, builtin_target(target))));
    }
  }
  // sched makes none where loads are dear.
  for (const char* target : {"c-x86-64", "spirv-generic"})
    expect_golden(fmt::format("attention.{}.txt", target),
                  to_text(lower(attention_ast(8, 64, 32, true), builtin_target(target))));
  expect_golden("attention_gradient.c-x86-64.txt",
                to_text(lower(attention_gradient_ast(8, 64, 32), builtin_target("c-x86-64"))));
  expect_golden(
      "attention_factor_gradients.spirv-generic.txt",
      to_text(lower(attention_factor_gradients_ast(8, 64, 32), builtin_target("spirv-generic"))));
}

// One of each kind, alone where it can be.
ir::UOp ast_of(const std::string& file) {
  std::ifstream in(TUFF_SOURCE_DIR "/tests/kernel/golden/" + file);
  std::stringstream text;
  text << in.rdbuf();
  return ir::parse_text(text.str()).at(0);
}

// Layers of convolutional networks, as they are scheduled: what their form has to keep the
// heuristics from.
TEST(Golden, SchedulesOfConvolutions) {
  Target t = builtin_target("c-x86-64");
  t.vector_bytes = 64, t.vector_registers = 32, t.cores = 1, t.l1_bytes = 32 << 10;
  const auto chosen = [&](const std::string& file) {
    const ir::UOp ast = ast_for_opts(ast_of(file), t);
    Tiling tiling(ast, t);
    apply_heuristics(tiling, ast, t);
    return to_string(tiling.applied);
  };
  // 64 images of 32 channels of 32x32, 3x3: no tile of images, which lie far apart, for the sake of
  // nine weights.
  EXPECT_EQ(chosen("depthwise.ast.txt"), "vector(3,32)");
  // Gradient of weights of 16x16x3x3 by 32x32 pixels: sums along the pixels, since channels, 4 KiB
  // apart, push one another out of the L1 cache.
  EXPECT_EQ(chosen("weight_gradient.ast.txt"), "unroll(6,16) upcast(4,3) upcast(2,2) upcast(1,2)");
  // Sums of batch norm, and what is stored for each pixel, by 16 channels whose numbers are
  // neighbours: lanes along the pixels, since these numbers are loaded once in a thousand.
  EXPECT_EQ(chosen("channel_sums.ast.txt"), "unroll(3,64)");
  EXPECT_EQ(chosen("channel_scales.ast.txt"), "vector(2,64)");
  // With a stride of 2, forwards and the images' gradient: lanes along the pixels, not the taps.
  // The gradient's two pixels per output's are stored as whole vectors.
  EXPECT_EQ(chosen("strided_depthwise.ast.txt"), "vector(3,16)");
  EXPECT_EQ(chosen("strided_gradient.ast.txt"), "vector(4,16) upcast(5,2)");
}

TEST(Golden, Opts) {
  const ir::UOp product = matmul_ast(12, 16, 8), sum = sum_ast(2, 64),
                   values = elementwise_ast(12, 50);
  const struct {
    ir::UOp ast;
    Opt opt;
    std::vector<Opt> before{};
  } cases[] = {{product, {OptKind::Split, 1, 4}},
               {product, {OptKind::Upcast, 0, 5}},
               {values, {OptKind::Vector, 0, 8}},
               {sum, {OptKind::Unroll, 1, 4}},
               {product, {OptKind::Group, 0, 0}},
               {values, {OptKind::Local, 0, 16}},
               {sum, {OptKind::GroupReduce, 1, 8}},
               {product, {OptKind::Swap, 0, 1}},
               {attention_factor_gradients_ast(2, 16, 4),
                {OptKind::Slab, 4, 8},
                {{OptKind::Vector, 2, 4}, {OptKind::Vector, 3, 4}}},
               {values, {OptKind::Spread, 0, 4}},
               {product, {OptKind::Stage, 1, 0}},
               {product,
                {OptKind::Ahead, 1, 1},
                {{OptKind::Local, 1, 4},
                 {OptKind::Local, 0, 4},
                 {OptKind::Split, 2, 4},
                 {OptKind::Group, 0, 0},
                 {OptKind::Group, 1, 0},
                 {OptKind::Stage, 0, 1},
                 {OptKind::Stage, 1, 1}}}};
  std::set<OptKind> shown;
  for (const auto& c : cases) {
    shown.insert(c.opt.kind);
    for (const char* name : {"c-x86-64", "spirv-lavapipe"}) {
      const Target target = builtin_target(name);
      if (!allows(target, c.opt.kind)) continue;
      std::vector<Opt> opts = c.before;
      opts.push_back(c.opt);
      expect_golden(fmt::format("opt_{}.{}.txt", kernel::name(c.opt.kind), name),
                    to_text(lower_with(c.ast, target, opts)));
    }
  }
  const std::vector<Opt> matrices{{OptKind::Matrix, 0, 0}, {OptKind::Upcast, 0, 2}};
  shown.insert(OptKind::Matrix);
  expect_golden("opt_matrix.matrix-gpu.txt",
                to_text(lower_with(narrow_product_ast({.m = 32, .n = 16, .k = 64, .bias = true}),
                                   matrix_gpu(), matrices)));
  EXPECT_EQ(shown.size(), std::size(kOptKinds)) << "a kind of opt has no golden";
  // What is past the end of a sum is 0 in the copies of its factors.
  const std::vector<Opt> padded{{OptKind::Local, 1, 4},  {OptKind::Local, 0, 4},
                                {OptKind::Unroll, 2, 2}, {OptKind::Split, 2, 4},
                                {OptKind::Group, 0, 0},  {OptKind::Group, 1, 0},
                                {OptKind::Stage, 0, 1},  {OptKind::Stage, 1, 1}};
  expect_golden(
      "opt_stage_padded.spirv-lavapipe.txt",
      to_text(lower_with(matmul_ast(8, 12, 15), builtin_target("spirv-lavapipe"), padded)));
  // Rows that lie side by side are copied in blocks of steps; the last tile's are clamped.
  const std::vector<Opt> across{{OptKind::Vector, 1, 8},
                                {OptKind::Upcast, 0, 6},
                                {OptKind::Swap, 0, 1},
                                {OptKind::Stage, 0, 0}};
  expect_golden(
      "opt_stage_across.c-x86-64.txt",
      to_text(lower_with(matmul_across_ast(32, 16, 64), builtin_target("c-x86-64"), across)));
}

}  // namespace
}  // namespace tuff::kernel::testing
