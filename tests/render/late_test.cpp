// The order of a block's statements.
#include <gtest/gtest.h>

#include "render/c_late.h"

namespace tuff::render {
namespace {

TEST(LateValues, StandWhereTheyAreUsedFirst) {
  const std::string block =
      "  i32 v1 = r0 * 4;\n"
      "  f32x16 v2 = *(const f32x16u*)(d1 + v1);\n"
      "  f32x16 v3 = v2 * v2;\n"
      "  f32x16 v4 = v2 + v3;\n"
      "  f32x16 v5 = v4 * acc0;\n"
      "  __builtin_prefetch(d1 + v1 + 64, 0);\n"
      "  acc1 = v3;\n"
      "  f32x4 v6 = other;\n";
  EXPECT_EQ(values_at_first_use(block, "x16"),
            "  i32 v1 = r0 * 4;\n"
            "  __builtin_prefetch(d1 + v1 + 64, 0);\n"
            "  f32x16 v2 = *(const f32x16u*)(d1 + v1);\n"
            "  f32x16 v3 = v2 * v2;\n"
            "  acc1 = v3;\n"
            "  f32x4 v6 = other;\n"
            "  f32x16 v4 = v2 + v3;\n"  // used behind the block
            "  f32x16 v5 = v4 * acc0;\n");
}
TEST(LateValues, NamesAreWhole) {
  const std::string block = "f32x16 v1 = a;\nf32x16 v11 = b;\nuse(v11);\nuse(v1, dv1, v1x);\n";
  EXPECT_EQ(values_at_first_use(block, "x16"),
            "f32x16 v11 = b;\nuse(v11);\nf32x16 v1 = a;\nuse(v1, dv1, v1x);\n");
  EXPECT_EQ(values_at_first_use(block, "x8"), block);
  EXPECT_EQ(values_at_first_use("", "x8"), "");
}
// A chain as long as a kernel's.
TEST(LateValues, LongChains) {
  std::string block = "f32x8 v0 = x;\n";
  for (int i = 1; i < 100000; i++)
    block += "f32x8 v" + std::to_string(i) + " = v" + std::to_string(i - 1) + " + x;\n";
  EXPECT_EQ(values_at_first_use(block, "x8"), block);
}

}  // namespace
}  // namespace tuff::render
