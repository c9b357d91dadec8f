#include "base/target.h"

#include <gtest/gtest.h>
#include <tuff/error.h>

namespace tuff {
namespace {

TEST(Target, JsonRoundTrip) {
  for (const std::string& name : builtin_target_names())
    EXPECT_EQ(target_from_json(to_json(builtin_target(name))), builtin_target(name));
  Target t;
  t.device = "VULKAN";
  t.renderer = "spirv";
  t.identity = "quotes \" and \\ and \n";
  t.max_groups = {1, 2, 3};
  t.max_loop_trips = UINT64_MAX;
  t.features.bf16 = t.features.sin = true;
  t.matrix_shapes = {{16, 8, 32, DType::I8, DType::U8, DType::I32}};
  EXPECT_EQ(target_from_json(to_json(t)), t);
}

TEST(Target, AbsentFieldsKeepTheirDefaults) {
  const Target t =
      target_from_json(R"({"device": "CPU", "renderer": "c", "features": {"f64": true}})");
  EXPECT_EQ(t.max_buffers, Target{}.max_buffers);
  EXPECT_TRUE(t.features.f64);
  EXPECT_FALSE(t.features.f16);
}

void expect_refused(const std::string& text, const std::string& named) {
  try {
    target_from_json(text);
    FAIL() << text;
  } catch (const InvalidArgument& e) {
    EXPECT_NE(std::string(e.what()).find(named), std::string::npos) << e.what();
  }
}

TEST(Target, ShapesOfMatricesAreReadAsTheyAreWritten) {
  const MatrixShape shape{16, 8, 32, DType::I8, DType::U8, DType::I32};
  EXPECT_EQ(matrix_shape_from(to_string(shape)), shape);
  for (const char* text : {"", "16x16 float16 float16 float32", "16x16x16 float16 eighth float32"})
    EXPECT_THROW(matrix_shape_from(text), InvalidArgument) << text;
}

TEST(Target, BadFieldsAreNamed) {
  const auto with = [](const std::string& field) {
    return R"({"device": "CPU", "renderer": "c", )" + field + "}";
  };
  expect_refused(with(R"("cores": -1)"), "'cores' is -1");
  expect_refused(with(R"("cores": 4294967296)"), "'cores'");
  expect_refused(with(R"("cores": 1.5)"), "'cores'");
  expect_refused(with(R"("has_local": 1)"), "'has_local'");
  expect_refused(with(R"("arch": null)"), "'arch'");
  expect_refused(with(R"("max_local": [1, 2])"), "'max_local'");
  expect_refused(with(R"("max_local": [1, 2, "3"])"), "'max_local[2]'");
  expect_refused(with(R"("features": [])"), "'features'");
  const auto shape = [&](const std::string& m, const std::string& rest) {
    return with(R"("matrix_shapes": [{"m": )" + m + R"(, "n": 8, "k": 8, "a": "float16", "b": )" +
                rest + "}]");
  };
  EXPECT_EQ(target_from_json(shape("8", R"("float16", "sum": "float32")")).matrix_shapes.size(),
            1u);
  expect_refused(shape("0", R"("float16", "sum": "float32")"), "'matrix_shapes[0].m'");
  expect_refused(shape("8", R"("eighth", "sum": "float32")"), "'matrix_shapes[0].b'");
  expect_refused(shape("8", R"("float16")"), "'matrix_shapes[0].sum'");
  expect_refused(shape("8", R"("float16", "sum": "float32", "c": 1)"), "'matrix_shapes[0].c'");
  expect_refused(with(R"("matrix_shapes": {})"), "'matrix_shapes'");
  expect_refused(with(R"("features": {"f16": "yes"})"), "'features.f16'");
  expect_refused(with(R"("features": {"f17": true})"), "'features.f17'");
  expect_refused(with(R"("coers": 1)"), "'coers'");
  expect_refused(R"({"device": "CPU"})", "'renderer' is missing");
  expect_refused("{", "no JSON");
  expect_refused("[]", "no object");
}

TEST(Target, BuiltinsAreKnownByName) {
  const Target lavapipe = builtin_target("spirv-lavapipe");
  EXPECT_EQ(lavapipe.max_loop_trips, 65535u);
  EXPECT_EQ(lavapipe.subgroup_size, 8u);
  EXPECT_TRUE(lavapipe.has_local);
  EXPECT_EQ(lavapipe.shared_bytes, 32768u);
  EXPECT_FALSE(builtin_target("spirv-generic").features.i64);
  EXPECT_EQ(builtin_target("amdgpu-gfx1100").subgroup_size, 32u);
  EXPECT_EQ(builtin_target("amdgpu-gfx942").subgroup_size, 64u);
  EXPECT_THROW(builtin_target("spirv"), InvalidArgument);
  EXPECT_THROW(builtin_target("amdgpu-gfx803"), InvalidArgument);
}

}  // namespace
}  // namespace tuff
