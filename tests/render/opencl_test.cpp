// The dialect of OpenCL C: its text, and that clang takes it as OpenCL C 1.2, with doubles and
// without. What it computes is device_run_test's matter and the conformance suite's.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/env.h"
#include "base/os.h"
#include "kernel/ast_builder.h"
#include "kernel/dtype_cases.h"
#include "kernel/pipeline.h"
#include "render/amdgpu_kernels.h"
#include "render/c_dialect.h"
#include "render/kernel_cases.h"
#include "render/renderer.h"
#include "render/sample_kernels.h"

namespace tuff::render {
namespace {

void compare(const std::string& file, const std::string& text) {
  const std::string path = TUFF_SOURCE_DIR "/tests/render/golden/" + file;
  if (!system_env("TUFF_UPDATE_GOLDENS").empty()) os::write_text(path, text);
  EXPECT_EQ(os::read_text(path), text) << file;
}

Target generic(bool doubles = false, bool halves = false) {
  Target t = builtin_target("opencl-generic");
  t.features.f64 = doubles;
  t.features.f16 = halves;
  return t;
}
Source rendered(const kernel::LinearKernel& k, const Target& t) {
  return renderer_of(t).render(k, t);
}

TEST(RenderOpencl, Goldens) {
  struct {
    const char* file;
    kernel::LinearKernel kernel;
  } const kernels[] = {
      {"elementwise.opencl.cl", elementwise_kernel()},
      {"row_sum.opencl.cl", row_sum_kernel()},
      {"shared_sum.opencl.cl", shared_sum_kernel()},
      {"float_f32.opencl.cl", float_kernel(DType::F32, 1)},
      {"matmul.opencl.cl", kernel::lower(kernel::testing::matmul_ast(64, 64, 64), generic())},
  };
  for (const auto& k : kernels) compare(k.file, to_text(rendered(k.kernel, generic())));
  compare("float_f16.opencl.cl",
          to_text(rendered(float_kernel(DType::F16, 1), generic(false, true))));
}

// A Binary is the kernel's own text: whatever is loaded together shares one prelude.
TEST(RenderOpencl, BinariesAreTexts) {
  const Target t = generic();
  const Source s = rendered(elementwise_kernel(), t);
  const std::vector<Binary> binaries = renderer_of(t).compile({&s, 1}, t);
  ASSERT_EQ(binaries.size(), 1u);
  EXPECT_EQ(binaries[0].format, BinaryFormat::OpenclC);
  EXPECT_EQ(std::string(binaries[0].bytes->begin(), binaries[0].bytes->end()), s.text);
  EXPECT_EQ(s.text.find("typedef"), std::string::npos);
}

// The first line of what clang has to say against it; empty: nothing.
std::string refusal(const std::string& text, bool doubles, bool halves = false) {
  const auto clang = os::find_program("clang-19");
  if (!clang) return "clang-19 was not found on PATH; install clang-19";
  std::vector<std::string> argv = {*clang,
                                   "-x",
                                   "cl",
                                   "-cl-std=CL1.2",
                                   "-fsyntax-only",
                                   "--target=spir64",
                                   "-Werror",
                                   "-Wno-unused-function",
                                   "-Wno-logical-not-parentheses"};
  // The target knows all extensions.
  if (!doubles) argv.insert(argv.end(), {"-DTUFF_NO_F64", "-Xclang", "-cl-ext=-cl_khr_fp64"});
  argv.push_back(halves ? "-DTUFF_F16" : "-Xclang");
  if (!halves) argv.push_back("-cl-ext=-cl_khr_fp16");
  argv.push_back("-");
  const os::ProcessResult r = os::Process(argv, text).wait();
  return r.exit_code == 0 ? "" : r.err.substr(0, 2000);
}

TEST(RenderOpencl, ClangTakesEveryForm) {
  for (const bool doubles : {false, true}) {
    const Target t = generic(doubles);
    std::string text = c_opencl().prelude.whole();
    for (const kernel::LinearKernel& k :
         {elementwise_kernel(), matmul_kernel(), row_sum_kernel(), gated_kernel(), strided_kernel(),
          shared_sum_kernel(), uniform_kernel(), float_kernel(DType::F32, 4)})
      text += rendered(k, t).text;
    if (doubles) text += rendered(bool_kernel(4), t).text;  // which compares them
    for (const AstCase& c : shaped_cases()) {
      const kernel::LinearKernel k = kernel::lower(c.ast, t);
      const bool of_doubles = std::any_of(k.buffers.begin(), k.buffers.end(),
                                          [](const auto& b) { return b.dtype == DType::F64; });
      if (doubles || !of_doubles) text += rendered(k, t).text;
    }
    EXPECT_EQ(refusal(text, doubles), "");
  }
}

// With halves as a type in the kernels that have them, and as bits.
TEST(RenderOpencl, ClangTakesEveryOpOfEveryDtype) {
  for (const bool halves : {false, true}) {
    const Target t = generic(true, halves);
    std::map<std::string, std::string> texts;  // by symbol
    const auto add = [&](const std::vector<kernel::testing::DtypeCase>& cases) {
      for (const auto& c : cases) {
        const Source s = rendered(kernel::lower(c.ast, t), t);
        texts.emplace(s.symbol, s.text);
      }
    };
    for (const DType type : kMemoryTypes) {
      add(kernel::testing::op_cases(type));
      add(kernel::testing::storage_cases(type));
      add(kernel::testing::cast_cases(type, kMemoryTypes));
    }
    EXPECT_GE(texts.size(), 300u);
    std::string all = c_opencl().prelude.whole();
    for (const auto& [symbol, text] : texts) all += text;
    EXPECT_EQ(refusal(all, true, halves), "");
    const auto computes = [](const auto& entry) {
      return entry.second.find(" f16 v") != std::string::npos;
    };
    EXPECT_EQ(std::any_of(texts.begin(), texts.end(), computes), halves);
  }
}

// Without doubles nothing may name them.
TEST(RenderOpencl, NoDoublesWhereThereAreNone) {
  const Target t = generic(false);
  std::string all = c_opencl().prelude.whole();
  for (const DType type : kMemoryTypes) {
    if (type == DType::F64) continue;
    std::vector<DType> others;
    for (const DType o : kMemoryTypes)
      if (o != DType::F64) others.push_back(o);
    for (const auto& c : kernel::testing::cast_cases(type, others)) {
      const std::string text = rendered(kernel::lower(c.ast, t), t).text;
      if (all.find(text) == std::string::npos) all += text;
    }
  }
  EXPECT_EQ(refusal(all, false), "");
}

// Infinities, NaNs and products with sums by the library's names: drivers need not be clang.
TEST(RenderOpencl, NamesNoBuiltinsOfClang) {
  const Target t = generic(true);
  for (const DType type : {DType::F16, DType::F32, DType::F64})
    for (const auto& c : kernel::testing::op_cases(type)) {
      const std::string text = rendered(kernel::lower(c.ast, t), t).text;
      EXPECT_EQ(text.find("__builtin"), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace tuff::render
