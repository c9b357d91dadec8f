// Which arguments are read through texel views: those whose loads gain more than a launch costs.
#include <gtest/gtest.h>

#include "kernel/ast_builder.h"
#include "kernel/ast_run.h"
#include "kernel/lowered.h"

namespace tuff::kernel::testing {
namespace {

std::vector<int32_t> texels(const LinearKernel& k) {
  std::vector<int32_t> out;
  for (const auto& b : k.buffers)
    if (b.as_texels) out.push_back(b.slot);
  return out;
}
const std::vector<int32_t> kNone, kBoth{1, 2};

TEST(Texels, AProductReadsBothOperandsThroughViews) {
  const LinearKernel k = lower(matmul_ast(256, 256, 256), builtin_target("spirv-lavapipe"));
  EXPECT_EQ(texels(k), kBoth) << to_text(k);
}

TEST(Texels, AKernelThatIsOverSoonDoesNot) {
  Target t = builtin_target("spirv-lavapipe");
  EXPECT_EQ(texels(lower(matmul_ast(16, 16, 16), t)), kNone);
  t.launch_cost_ns = 0;
  EXPECT_EQ(texels(lower(matmul_ast(16, 16, 16), t)), kBoth);
}

TEST(Texels, OnlyWhereViewsGainAndAreLongEnough) {
  const auto with = [](auto change) {
    Target t = builtin_target("spirv-lavapipe");
    change(t);
    return texels(lower(matmul_ast(256, 256, 256), t));
  };
  EXPECT_EQ(with([](Target& t) { t.texel_load_cost = 0; }), kNone);
  EXPECT_EQ(with([](Target& t) { t.texel_load_cost = t.load_cost; }), kNone);
  EXPECT_EQ(with([](Target& t) { t.max_texels = 65535; }), kNone);
  EXPECT_EQ(with([](Target& t) { t.max_texels = 65536; }), kBoth);
  EXPECT_EQ(with([](Target& t) { t.features.device_address = false; }), kNone);
}

}  // namespace
}  // namespace tuff::kernel::testing
