// What ggml itself made of blocks that it quantized and of blocks of any bits (scripts/
// ggml-fixtures.cpp): the same bits on every device that the tests are given.
#include <bit>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuff/io.h>
#include "engine/device.h"
#include "tensor/devices.h"

namespace tuff::io {
namespace {

using testing::ElementsAre;

const char* const kFixture = TUFF_SOURCE_DIR "/tests/data/ggml.gguf";

// As the conformance suite has it: a SPIR-V device may take denormals for zeros.
bool may_be_zero(float wanted, const std::string& device) {
  return std::fpclassify(wanted) == FP_SUBNORMAL &&
         engine::Device::get(device)->target().renderer == "spirv";
}

class Ggml : public testing::TestWithParam<std::string> {};

TEST_P(Ggml, EveryTypeAsGgmlDecodesIt) {
  const TensorDict file = load(kFixture, {.device = GetParam()});
  size_t types = 0;
  for (const std::string& name : file.names()) {
    if (!file.contains(name + ".values")) continue;
    types++;
    const std::vector<float> got = file[name].cast(DType::F32).to_vector<float>(),
                             wanted = file[name + ".values"].to_vector<float>();
    ASSERT_EQ(got.size(), wanted.size()) << name;
    for (size_t i = 0; i < wanted.size(); i++) {
      if (got[i] == 0 && may_be_zero(wanted[i], GetParam())) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(wanted[i]))
          << name << " element " << i << ": " << got[i] << ", and ggml has " << wanted[i];
    }
  }
  EXPECT_EQ(types, 28u);  // F32 is what the others are compared with
}

INSTANTIATE_TEST_SUITE_P(Devices, Ggml, testing::ValuesIn(test::devices()),
                         test::named_by_device<testing::TestParamInfo<std::string>>);

TEST(GgmlFile, MetadataOfEveryType) {
  const TensorDict file = load(kFixture, {.device = "CPU"});
  const auto text = [&](const char* key) { return file.metadata(key)->str(); };
  EXPECT_EQ(text("a.u8"), "200");
  EXPECT_EQ(text("a.i8"), "-100");
  EXPECT_EQ(text("a.u16"), "60000");
  EXPECT_EQ(text("a.i16"), "-30000");
  EXPECT_EQ(text("a.u32"), "4000000000");
  EXPECT_EQ(text("a.i32"), "-2000000000");
  EXPECT_EQ(text("a.u64"), "9223372036854775808");
  EXPECT_EQ(text("a.i64"), "-4611686018427387904");
  EXPECT_EQ(text("a.f32"), "0.5");
  EXPECT_EQ(text("a.f64"), "-0.25");
  EXPECT_EQ(text("a.bool"), "true");
  EXPECT_EQ(text("a.words"), "[\"one\", \"\", \"\xc3\xa9\"]");
  EXPECT_EQ(text("a.numbers"), "[1, -2, 3]");
  EXPECT_THAT(file.info()[0].shape, ElementsAre(3, 256));
}

}  // namespace
}  // namespace tuff::io
