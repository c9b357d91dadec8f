// The AMDGPU dialect: its text, and that clang takes it for every generation. What it computes is
// amdgpu_run_test's matter, what becomes of the objects tests/devices/amd's.
#include <gtest/gtest.h>

#include "base/env.h"
#include "base/os.h"
#include "kernel/ast_builder.h"
#include "kernel/dtype_cases.h"
#include "kernel/pipeline.h"
#include "render/amdgpu_kernels.h"
#include "render/c.h"
#include "base/compilers.h"
#include "render/kernel_cases.h"
#include "render/renderer.h"

namespace tuff::render {
namespace {

void compare(const std::string& file, const std::string& text) {
  const std::string path = TUFF_SOURCE_DIR "/tests/render/golden/" + file;
  if (!system_env("TUFF_UPDATE_GOLDENS").empty()) os::write_text(path, text);
  EXPECT_EQ(os::read_text(path), text) << file;
}

Target gfx1100() { return builtin_target("amdgpu-gfx1100"); }
Source rendered(const kernel::LinearKernel& k, const Target& t) {
  return renderer_of(t).render(k, t);
}

std::vector<std::string> processors() {
  std::vector<std::string> out;
  for (const std::string& name : builtin_target_names())
    if (builtin_target(name).renderer == std::string("amdgpu")) out.push_back(name);
  return out;
}

TEST(RenderAmdgpu, Goldens) {
  struct {
    const char* file;
    kernel::LinearKernel kernel;
  } const kernels[] = {
      {"elementwise.cl", elementwise_kernel()},
      {"row_sum.cl", row_sum_kernel()},
      {"gated.cl", gated_kernel()},
      {"shared_sum.cl", shared_sum_kernel()},
      {"shuffles.cl", shuffle_kernel()},
      {"float_f16.cl", float_kernel(DType::F16, 1)},
      {"matmul.cl", kernel::lower(kernel::testing::matmul_ast(64, 64, 64), gfx1100())},
  };
  for (const auto& k : kernels) compare(k.file, to_text(rendered(k.kernel, gfx1100())));
}

TEST(RenderAmdgpu, LocalSizeIsPartOfTheSymbol) {
  kernel::LinearKernel k = elementwise_kernel();
  const Source one = rendered(k, gfx1100());
  k.local = {64, 1, 1};
  EXPECT_NE(one.symbol, rendered(k, gfx1100()).symbol);
}

TEST(RenderAmdgpu, CompilerIsFoundOrItsRemedyNamed) {
  const EnvOverride none(Env::TUFF_CLANG, "/nonexistent/clang");
  const std::string text = "";
  try {
    compile_amdgpu({&text, 1}, "gfx1100");
    FAIL();
  } catch (const Unsupported& e) {
    EXPECT_NE(std::string(e.what()).find("TUFF_CLANG"), std::string::npos) << e.what();
  }
  EXPECT_NE(why_no_amdgpu_compiler(), "");
}

class RenderAmdgpuCompiled : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(why_no_amdgpu_compiler(), ""); }
};

// In one process per generation, as few kernels as show every form of text.
TEST_F(RenderAmdgpuCompiled, EveryGenerationTakesEveryForm) {
  for (const std::string& name : processors()) {
    const Target t = builtin_target(name);
    std::vector<Source> sources;
    for (const kernel::LinearKernel& k : gpu_kernels()) sources.push_back(rendered(k, t));
    for (const AstCase& c : shaped_cases()) sources.push_back(rendered(kernel::lower(c.ast, t), t));
    const std::vector<Binary> binaries = compile_c_sources(c_amdgpu(), sources, t);
    ASSERT_EQ(binaries.size(), sources.size());
    for (const Binary& b : binaries) {
      EXPECT_EQ(b.format, BinaryFormat::AmdgpuObject);
      EXPECT_FALSE(b.bytes->empty()) << name << ": " << b.name;
    }
  }
}

TEST_F(RenderAmdgpuCompiled, EveryOpOfEveryDtype) {
  const Target t = gfx1100();
  std::vector<Source> sources;
  const auto add = [&](const std::vector<kernel::testing::DtypeCase>& cases) {
    for (const auto& c : cases) sources.push_back(rendered(kernel::lower(c.ast, t), t));
  };
  for (const DType type : kMemoryTypes) {
    add(kernel::testing::op_cases(type));
    add(kernel::testing::storage_cases(type));
    add(kernel::testing::cast_cases(type, kMemoryTypes));
  }
  EXPECT_GE(sources.size(), 300u);
  EXPECT_EQ(compile_c_sources(c_amdgpu(), sources, t).size(), sources.size());
}

TEST_F(RenderAmdgpuCompiled, ErrorNamesTheKernel) {
  Source bad = rendered(elementwise_kernel(), gfx1100());
  bad.text += "nonsense";
  try {
    compile_c_sources(c_amdgpu(), {&bad, 1}, gfx1100());
    FAIL();
  } catch (const CompileError& e) {
    EXPECT_NE(std::string(e.what()).find("e_4_8"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace tuff::render
