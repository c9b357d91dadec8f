// Loads that walk another axis than what is stored, copied tile by tile into workgroup memory:
// which these are, what is refused, what is chosen, and that it means the same.
#include <gtest/gtest.h>

#include "ir/spec.h"
#include "ir/text.h"
#include "kernel/analysis/coalescing.h"
#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/pipeline.h"
#include "kernel/target_files.h"

namespace tuff::kernel::testing {
namespace {

using namespace ir;
using tuff::testing::target_of;
using Sizes = std::vector<int64_t>;

int loads_staged(const LinearKernel& k) {
  int n = 0;
  for (size_t at = 0; (at = k.opts.find("stage(", at)) != std::string::npos; at++) n++;
  return n;
}
size_t operand_count(const UOp& ast) {
  const Target t = target_of("nvidia-ampere");
  return operands(Tiling(ast_for_opts(ast, t), t)).size();
}

TEST(TransposedLoads, AreThoseThatWalkAnotherAxisThanTheStore) {
  EXPECT_EQ(operand_count(transpose_ast(64, 96)), 1u);
  EXPECT_EQ(operand_count(permute_ast({64, 96}, {1, 0}, DType::F32, DType::F32, true)), 1u);
  EXPECT_EQ(operand_count(permute_ast({4, 8, 16}, {0, 2, 1}, DType::F16, DType::F32)), 1u);
  EXPECT_EQ(operand_count(permute_ast({4, 8, 16}, {1, 0, 2}, DType::F32, DType::F32)), 0u);
  EXPECT_EQ(operand_count(elementwise_ast(64, 96)), 0u);
  EXPECT_EQ(operand_count(gather_ast(64, 32, 16)), 0u);
  // Taken apart by a division: which element follows is known to nobody.
  AstBuilder b;
  const UOp i = b.loop(64), j = b.loop(96);
  const UOp five = index_const(5);
  const UOp split = load(1, 64 * 96, floormod(j, five) * 64 + floordiv(j, five) + i);
  EXPECT_EQ(operand_count(kernel_of({store(0, 64 * 96, i * 96 + j, split, {i, j})})), 0u);
  EXPECT_TRUE(operands(Tiling(transpose_ast(64, 96), builtin_target("c-x86-64"))).empty());
  // Factors of a product are none of these.
  const Tiling product(matmul_ast(12, 16, 8), target_of("nvidia-ampere"));
  EXPECT_EQ(operands(product).size(), 2u);
  EXPECT_EQ(product.factors.size(), 2u);
  EXPECT_TRUE(Tiling(transpose_ast(64, 96), target_of("nvidia-ampere")).factors.empty());
}

TEST(TransposedLoads, WhatIsRefusedAndWhy) {
  const Target gpu = target_of("nvidia-ampere");
  const UOp ast = transpose_ast(64, 96);
  const Opt x{OptKind::Local, 1, 16}, y{OptKind::Local, 0, 4}, stage{OptKind::Stage, 0, 0};
  const auto expect = [&](const std::vector<Opt>& opts, const std::string& why) {
    EXPECT_NE(refusal(ast, gpu, opts).find(why), std::string::npos)
        << to_string(opts) << ": " << refusal(ast, gpu, opts);
  };
  expect({stage}, "one invocation reads the load as it would copy it");
  expect({x, y, {OptKind::Stage, 1, 0}}, "no such operand");
  expect({x, y, stage, stage}, "staged already");
  expect({x, y, stage, {OptKind::Group, 0, 0}}, "loops as they are");
  expect({x, y, {OptKind::Stage, 0, -1}}, "0 or more loops");
  expect({{OptKind::Spread, 0, 4}, stage}, "shared out");
  expect({x, y, {OptKind::Stage, 0, 2}, {OptKind::Ahead, 0, 1}}, "makes a next copy");
  Target small = gpu;
  small.shared_bytes = 1024;
  EXPECT_NE(refusal(ast, small, {x, y, stage}).find("6144 elements exceeds the 896 bytes"),
            std::string::npos);
  AstBuilder b;
  const UOp i = b.loop(16), j = b.loop(16), at = j * 16 + i;
  const UOp two = kernel_of(
      {store(0, 256, i * 16 + j, load(1, 256, at) + load(2, 256, at), {i, j})});
  EXPECT_NE(refusal(two, gpu, {{OptKind::Local, 1, 4}, stage, {OptKind::Stage, 1, 1}})
                .find("in another loop"),
            std::string::npos);
}

// Tiles of all sorts: loops around and inside, edges, more invocations than elements and fewer.
TEST(TransposedLoads, CopiesKeepTheMeaning) {
  const Opt x{OptKind::Local, 1, 4}, y{OptKind::Local, 0, 4}, wide_x{OptKind::Upcast, 1, 2},
      wide_y{OptKind::Upcast, 0, 3}, all_x{OptKind::Group, 1, 0}, all_y{OptKind::Group, 0, 0};
  for (const Target& t : {target_of("nvidia-ampere"), builtin_target("spirv-lavapipe")}) {
    for (const UOp& ast :
         {transpose_ast(16, 24), transpose_ast(13, 7), transpose_ast(1, 9), transpose_ast(40, 5),
          permute_ast({24, 16}, {1, 0}, DType::F32, DType::F32, true)}) {
      for (const std::vector<Opt>& tile :
           std::vector<std::vector<Opt>>{{x},
                                         {y},
                                         {x, y},
                                         {x, y, all_x, all_y},
                                         {wide_x, x, y, all_y},
                                         {x, wide_x, wide_y, y},
                                         {wide_y, y, wide_x, x, all_x, all_y},
                                         {{OptKind::Vector, 1, 4}, x, y, wide_y},
                                         {{OptKind::Vector, 0, 4}, y, all_x},
                                         {x, {OptKind::Swap, 0, 1}, y}}) {
        for (int64_t around = 0; around <= 2; around++) {
          Tiling tiling(ast_for_opts(ast, t), t);
          for (const Opt& o : tile) try_apply(tiling, o);
          if (!try_apply(tiling, {OptKind::Stage, 0, around})) continue;
          const LinearKernel k = lower_with(ast, t, tiling.applied);
          EXPECT_NO_THROW(check_linear_spec(k.ops, "lower_with")) << k.opts;
          EXPECT_GT(k.shared_bytes, 0u);
          expect_same(ast, k, 0, k.opts);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Sizes that tiles divide and that they do not, of one, short either way, with other axes around
// and between; each type, and conversions between types of different widths.
TEST(TransposedLoads, WhatIsChosenKeepsTheMeaning) {
  struct Case {
    Sizes sizes, order;
  };
  const std::vector<Case> cases{{{64, 128}, {1, 0}},           {{100, 101}, {1, 0}},
                                {{67, 131}, {1, 0}},           {{1, 300}, {1, 0}},
                                {{300, 1}, {1, 0}},            {{4, 1024}, {1, 0}},
                                {{1024, 4}, {1, 0}},           {{40, 200}, {1, 0}},
                                {{3, 40, 65}, {0, 2, 1}},      {{5, 3, 33, 35}, {0, 2, 3, 1}},
                                {{2, 33, 5, 34}, {0, 3, 1, 2}}, {{33, 2, 70}, {2, 1, 0}},
                                {{3, 3, 3, 300}, {3, 2, 1, 0}}};
  int chosen = 0, of = 0;
  for (const char* name : {"nvidia-ampere", "amd-rdna3-igpu", "intel-xe"}) {
    const Target t = target_of(name);
    for (const Case& c : cases) {
      for (const auto& [in, out] : {std::pair(DType::F32, DType::F32), {DType::F16, DType::F16},
                                    {DType::I8, DType::I8}, {DType::I64, DType::I64},
                                    {DType::Bool, DType::Bool}, {DType::F16, DType::F32},
                                    {DType::F32, DType::F16}, {DType::I8, DType::I64}}) {
        const bool twice = in != DType::Bool && c.sizes[0] % 2 == 1;
        const UOp ast = permute_ast(c.sizes, c.order, in, out, twice);
        const LinearKernel k = lower(ast, t);
        const std::string what = fmt::format("{} {}: {}", name, tuff::name(in), k.opts);
        chosen += loads_staged(k) == 1, of++;
        EXPECT_NO_THROW(check_linear_spec(k.ops, "lower")) << what;
        expect_same(ast, k, 0, what);
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(chosen, of / 2);
}

// Both ways a line is read and written once, where rows begin lines.
TEST(TransposedLoads, AreCoalescedBothWays) {
  for (const char* name : {"nvidia-ampere", "nvidia-hopper", "amd-rdna3-igpu", "intel-xe"}) {
    const Target t = target_of(name);
    for (const DType type : {DType::F32, DType::F16, DType::I64}) {
      for (const UOp& ast :
           {permute_ast({1024, 2048}, {1, 0}, type, type),
            permute_ast({8, 64, 32, 128}, {0, 3, 1, 2}, type, type),
            permute_ast({1024, 2048}, {1, 0}, type, DType::F32),
            permute_ast({1024, 2048}, {1, 0}, type, type, true)}) {
        const LinearKernel k = lower(ast, t);
        const KernelCoalescing c = coalescing_of(k, t);
        EXPECT_EQ(loads_staged(k), 1) << name << " " << k.opts;
        EXPECT_LE(c.loads.ratio(), 1.1) << name << " " << k.opts;
        EXPECT_LE(c.stores.ratio(), 1.1) << name << " " << k.opts;
      }
    }
    // Loads that are transposed alike share their barriers.
    AstBuilder b;
    const UOp i = b.loop(1024), j = b.loop(2048), at = j * 1024 + i;
    const UOp value = load(1, 1 << 21, at) * load(2, 1 << 21, at);
    const LinearKernel k =
        lower(kernel_of({store(0, 1 << 21, i * 2048 + j, value, {i, j})}), t);
    EXPECT_EQ(loads_staged(k), 2) << k.opts;
    EXPECT_EQ(std::ranges::count_if(k.ops, [](const UOp& u) { return u->op == Op::Barrier; }), 1);
  }
  // Not where workgroup memory is no faster than the caches.
  EXPECT_EQ(loads_staged(lower(transpose_ast(1024, 2048), target_of("arm-mali"))), 0);
}

}  // namespace
}  // namespace tuff::kernel::testing
