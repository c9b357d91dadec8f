// The linear text of a few kernels, as files in golden/. TUFF_UPDATE_GOLDENS=1 writes them anew.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/env.h"
#include "kernel/ast_builder.h"
#include "kernel/lowered.h"

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
    graph::UOp ast;
  } kernels[] = {{"elementwise", elementwise_ast(64, 48)},
                 {"sum", sum_ast(1, 4096)},
                 {"matmul", matmul_ast(64, 64, 32)},
                 {"matmul_odd", matmul_ast(61, 83, 127)},
                 {"matmul_transposed", matmul_ast(96, 80, 64, true)},
                 {"softmax", softmax_ast(8, 128)},
                 {"gather", gather_ast(32, 10, 16)},
                 {"convolution", conv_ast(2, 3, 8, 4)},
                 {"transpose", transpose_ast(64, 96)},
                 {"uniform", uniform_ast(64)}};
  for (const char* target : {"c-x86-64", "spirv-lavapipe"}) {
    for (const auto& k : kernels) {
      expect_golden(std::string(k.name) + "." + target + ".txt",
                    to_text(lower(k.ast, builtin_target(target))));
    }
  }
}

}  // namespace
}  // namespace tuff::kernel::testing
