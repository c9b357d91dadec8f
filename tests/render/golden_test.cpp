// The renderers' text of a few kernels, as files in golden/. TUFF_UPDATE_GOLDENS=1 writes them
// anew.
#include <gtest/gtest.h>

#include "base/env.h"
#include "base/os.h"
#include "kernel/ast_builder.h"
#include "kernel/pipeline.h"
#include "kernel/target_files.h"
#include "render/renderer.h"
#include "render/sample_kernels.h"

#include <spirv-tools/libspirv.hpp>

namespace tuff::render {
namespace {

using ir::UOp;

void compare(const std::string& file, const std::string& text) {
  const std::string path = TUFF_SOURCE_DIR "/tests/render/golden/" + file;
  if (!system_env("TUFF_UPDATE_GOLDENS").empty()) os::write_text(path, text);
  EXPECT_EQ(os::read_text(path), text) << file;
}

struct Golden {
  const char* file;
  kernel::LinearKernel (*make)();
};
constexpr Golden kGoldens[] = {
    {"elementwise", elementwise_kernel}, {"matmul", matmul_kernel},
    {"row_sum", row_sum_kernel},         {"gated", gated_kernel},
    {"strided", strided_kernel},         {"uniform", uniform_kernel},
};

TEST(RenderGolden, C) {
  const Target t = builtin_target("c-x86-64");
  for (const Golden& g : kGoldens)
    compare(std::string(g.file) + ".c", to_text(renderer_of(t).render(g.make(), t)));
}

// Vectors are loaded along the rows, turned in registers and stored along the columns.
TEST(RenderGolden, TransposedTileOfC) {
  using kernel::OptKind;
  const Target t = builtin_target("c-x86-64");
  const kernel::LinearKernel k = kernel::lower_with(
      kernel::testing::transpose_ast(4, 8), t, {{OptKind::Vector, 1, 4}, {OptKind::Upcast, 0, 4}});
  compare("transposed.c", to_text(renderer_of(t).render(k, t)));
}

// A window's elements lie beside each other: vectors of every second, of the lanes that there are.
TEST(RenderGolden, WindowsOfC) {
  using kernel::OptKind;
  const Target t = builtin_target("c-x86-64");
  const kernel::LinearKernel pool = kernel::lower_with(
      kernel::testing::pool_ast(2, 6, 2), t,
      {{OptKind::Vector, 1, 8}, {OptKind::Unroll, 2, 2}, {OptKind::Unroll, 3, 2}});
  compare("pool.c", to_text(renderer_of(t).render(pool, t)));
  const kernel::LinearKernel unpool =
      kernel::lower_with(kernel::testing::unpool_ast(2, 6, 2), t, {{OptKind::Vector, 1, 16}});
  compare("unpool.c", to_text(renderer_of(t).render(unpool, t)));
}

TEST(RenderGolden, Spirv) {
  const Target t = builtin_target("spirv-generic");
  for (const Golden& g : kGoldens) {
    std::string text;
    spvtools::SpirvTools(SPV_ENV_UNIVERSAL_1_5)
        .Disassemble(renderer_of(t).render(g.make(), t).words, &text,
                     SPV_BINARY_TO_TEXT_OPTION_NO_HEADER);
    compare(std::string(g.file) + ".spvasm", text);
  }
}

TEST(RenderGolden, SpirvWithDescriptors) {
  Target t = builtin_target("spirv-generic");
  t.features.device_address = false;
  for (const Golden& g : {Golden{"elementwise", elementwise_kernel}, {"row_sum", row_sum_kernel}}) {
    std::string text;
    spvtools::SpirvTools(SPV_ENV_UNIVERSAL_1_5)
        .Disassemble(renderer_of(t).render(g.make(), t).words, &text,
                     SPV_BINARY_TO_TEXT_OPTION_NO_HEADER);
    compare(std::string(g.file) + ".descriptors.spvasm", text);
  }
}

// Neighbours of 16 bits: a vector of words, which pairs are taken from and joined to.
TEST(RenderGolden, SpirvOfNarrowNeighbours) {
  using namespace kernel::testing;
  const Target t = tuff::testing::target_of("amd-rdna3-igpu");
  AstBuilder b;
  const UOp i = b.loop(64), x = load(1, 64, i, DType::F16);
  const kernel::LinearKernel k = kernel::lower_with(kernel_of({store(0, 64, i, x + x, {i})}), t,
                                                    {{kernel::OptKind::Vector, 0, 8}});
  std::string text;
  spvtools::SpirvTools(SPV_ENV_UNIVERSAL_1_5)
      .Disassemble(renderer_of(t).render(k, t).words, &text, SPV_BINARY_TO_TEXT_OPTION_NO_HEADER);
  compare("narrow.spvasm", text);
}

}  // namespace
}  // namespace tuff::render
