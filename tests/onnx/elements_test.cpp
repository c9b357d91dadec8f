// Element types that tuff holds in wider dtypes: packed contents, conversions, what keeps the type.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "onnx/models.h"

namespace tuff::onnx::test {
namespace {

using io::onnx::ElementType;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsNan;

const float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = HUGE_VALF;
constexpr ElementType kNarrow[] = {
    ElementType::Int2,       ElementType::Uint2,          ElementType::Int4,
    ElementType::Uint4,      ElementType::Float4E2M1,     ElementType::Float8E4M3FNUZ,
    ElementType::Float8E8M0, ElementType::Float8E5M2FNUZ,
};

std::vector<float> numbers(const Tensor& t) { return t.cast(DType::F32).to_vector<float>(); }
Tensor tensor_of(const std::vector<float>& v) { return Tensor::from(v, {int64_t(v.size())}); }
std::vector<float> converted_numbers(const std::vector<float>& v, ElementType to,
                                     const Conversion& how = {}) {
  return numbers(converted(tensor_of(v), to, how));
}

io::onnx::TensorData packed(ElementType type, std::vector<int64_t> dims,
                            const std::vector<uint8_t>& bytes) {
  return constant("c", type, std::move(dims), bytes);
}
// What a model that gives its constant gives.
Value read_back(const io::onnx::TensorData& data) {
  io::onnx::Model m = model({node("Identity", {"c"}, {"y"})}, {}, {"y"});
  m.graph.initializers = {data};
  return Importer(std::move(m)).run({}).at("y");
}

// Every code of a type, in the order of the codes.
Tensor all_values(ElementType type) {
  const uint64_t bits = io::onnx::size_bits(type);
  const int64_t count = int64_t{1} << bits;
  std::vector<uint8_t> bytes(size_t(count) * bits / 8);
  for (unsigned code = 0; code < unsigned(count); code++)
    bytes[code * bits / 8] |= uint8_t(code << (code * bits % 8));
  return read_back(packed(type, {count}, bytes)).tensor("");
}

TEST(OnnxElements, PackedIntegersAreUnpacked) {
  const Value y = read_back(packed(ElementType::Int2, {5}, {0xe4, 0x01}));
  EXPECT_EQ(y.dtype(), DType::I8);
  EXPECT_EQ(y.element(), ElementType::Int2);
  EXPECT_THAT(whole(y), ElementsAre(0, 1, -2, -1, 1));
  EXPECT_THAT(whole(read_back(packed(ElementType::Uint2, {2, 2}, {0xe4}))),
              ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(whole(read_back(packed(ElementType::Int4, {3}, {0x8f, 0x07}))),
              ElementsAre(-1, -8, 7));
}

TEST(OnnxElements, FloatsHaveTheValuesOfTheirCodes) {
  EXPECT_THAT(numbers(all_values(ElementType::Float4E2M1)),
              ElementsAre(0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6));
  const std::vector<float> a = numbers(all_values(ElementType::Float8E4M3FNUZ));
  EXPECT_THAT((std::vector{a[1], a[8], a[0x7f], a[0xff]}),
              ElementsAre(0x1p-10f, 0x1p-7f, 240, -240));
  const std::vector<float> b = numbers(all_values(ElementType::Float8E5M2FNUZ));
  EXPECT_THAT((std::vector{b[1], b[4], b[0x7f], b[0xff]}),
              ElementsAre(0x1p-17f, 0x1p-15f, 57344, -57344));
  const std::vector<float> c = numbers(all_values(ElementType::Float8E8M0));
  EXPECT_THAT((std::vector{c[1], c[127], c[254]}), ElementsAre(0x1p-126f, 1, 0x1p127f));
  for (const float nan : {a[0x80], b[0x80], c[0xff]}) EXPECT_THAT(nan, IsNan());
}

TEST(OnnxElements, EveryValueConvertsToItself) {
  for (const ElementType type : kNarrow) {
    const Tensor all = all_values(type);
    const std::vector<float> want = numbers(all), got = numbers(converted(all, type));
    for (size_t i = 0; i < want.size(); i++)
      EXPECT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i])))
          << io::onnx::name(type) << " of code " << i << ": " << got[i];
  }
}

// Halfway between neighbours the one whose code is even is taken; codes count up from 0.
TEST(OnnxElements, HalvesGoToEven) {
  for (const ElementType type : {ElementType::Float4E2M1, ElementType::Float8E4M3FNUZ,
                                 ElementType::Float8E5M2FNUZ}) {
    std::vector<float> v = numbers(all_values(type));
    v.resize(v.size() / 2);  // without those below 0
    std::vector<float> between, want;
    for (size_t i = 0; i + 1 < v.size(); i++) {
      between.push_back((v[i] + v[i + 1]) / 2);
      want.push_back(v[i + i % 2]);
    }
    EXPECT_THAT(converted_numbers(between, type), ElementsAreArray(want))
        << io::onnx::name(type);
  }
}

TEST(OnnxElements, WhatIsTooLargeIsCutOrNan) {
  const std::vector<float> far{kInf, -kInf, 1e6f, -1e6f};
  EXPECT_THAT(converted_numbers(far, ElementType::Float8E4M3FNUZ),
              ElementsAre(240, -240, 240, -240));
  EXPECT_THAT(converted_numbers(far, ElementType::Float4E2M1), ElementsAre(6, -6, 6, -6));
  EXPECT_THAT(converted_numbers({247.9f, 248, -kInf, kNan}, ElementType::Float8E4M3FNUZ,
                                {.saturate = false}),
              ElementsAre(240, IsNan(), IsNan(), IsNan()));
  EXPECT_THAT(converted_numbers({kNan}, ElementType::Float8E5M2FNUZ), ElementsAre(IsNan()));
  EXPECT_THAT(converted_numbers({kNan}, ElementType::Float4E2M1), ElementsAre(0));
  // A double is rounded once: just above half of 1 and 1.5, which F32 does not tell from it.
  const Tensor x = Tensor::full({1}, 1.25 + 1e-12, {.dtype = DType::F64});
  EXPECT_THAT(numbers(converted(x, ElementType::Float4E2M1)), ElementsAre(1.5));
}

TEST(OnnxElements, PowersOfTwoAreRoundedAsAskedFor) {
  const auto to = [](const std::vector<float>& v, const char* mode, bool saturate = true) {
    return converted_numbers(v, ElementType::Float8E8M0,
                             {.saturate = saturate, .round_mode = mode});
  };
  const std::vector<float> x{1, 1.1f, 1.5f, 1.9f};
  EXPECT_THAT(to(x, "up"), ElementsAre(1, 2, 2, 2));
  EXPECT_THAT(to(x, "down"), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(to(x, "nearest"), ElementsAre(1, 1, 2, 2));
  EXPECT_THAT(to({0, kInf, kNan, 0x1.8p127f}, "up"),
              ElementsAre(0x1p-127f, 0x1p127f, IsNan(), 0x1p127f));
  EXPECT_THAT(to({0, kInf, kNan, 0x1.8p127f, 4}, "nearest", false),
              ElementsAre(IsNan(), IsNan(), IsNan(), IsNan(), 4));
  EXPECT_THROW(to({1}, "sideways"), InvalidArgument);
}

TEST(OnnxElements, IntegersLoseHighBitsInCastsAndAreCutByQuantization) {
  const Value x = tensor_of({-3, -2, 1, 2, 3});
  const auto cast = [&](ElementType to) {
    return whole(run_op("Cast", {x}, {attribute("to", int64_t(to))}, 25)[0]);
  };
  EXPECT_THAT(cast(ElementType::Int2), ElementsAre(1, -2, 1, -2, -1));
  EXPECT_THAT(cast(ElementType::Uint2), ElementsAre(1, 2, 1, 2, 3));
  const Value one = Tensor::ones({});
  const auto quantized = [&](ElementType to) {
    return run_op("QuantizeLinear", {x, one}, {attribute("output_dtype", int64_t(to))}, 25)[0];
  };
  EXPECT_THAT(whole(quantized(ElementType::Int2)), ElementsAre(-2, -2, 1, 1, 1));
  EXPECT_EQ(quantized(ElementType::Int2).element(), ElementType::Int2);
  EXPECT_THAT(whole(quantized(ElementType::Uint2)), ElementsAre(0, 0, 1, 2, 3));
  EXPECT_THAT(numbers(quantized(ElementType::Float4E2M1).tensor("")),
              ElementsAre(-3, -2, 1, 2, 3));
}

TEST(OnnxElements, MovementKeepsTheType) {
  const Value x = Value(tensor_of({1, 2, 3, 4}).reshape({2, 2}).cast(DType::I8))
                      .of(ElementType::Int4);
  const Value indices = vector_of({1, 0}), ends = vector_of({1});
  const std::vector<std::pair<const char*, std::vector<Value>>> cases{
      {"Identity", {x}},
      {"Transpose", {x}},
      {"Reshape", {x, vector_of({4})}},
      {"Squeeze", {x}},
      {"Unsqueeze", {x, vector_of({0})}},
      {"Flatten", {x}},
      {"Slice", {x, vector_of({0}), ends}},
      {"Split", {x}},
      {"Expand", {x, vector_of({2, 2, 2})}},
      {"Tile", {x, indices}},
      {"Gather", {x, indices}},
      {"Where", {Tensor::ones({}, {.dtype = DType::Bool}), x, x}},
      {"SplitToSequence", {x}},
  };
  for (const auto& [op, inputs] : cases) {
    Value y = run_op(op, inputs)[0];
    if (y.is_sequence()) y = y.sequence().at(0);
    EXPECT_EQ(y.element(), ElementType::Int4) << op;
  }
  const Value joined = run_op("Concat", {x, x}, {attribute("axis", int64_t{0})})[0];
  EXPECT_EQ(joined.element(), ElementType::Int4);
  // So that what is cast to it has 4 bits.
  EXPECT_THAT(whole(run_op("CastLike", {vector_of({9}), joined})[0]), ElementsAre(-7));
  EXPECT_EQ(run_op("Shape", {x})[0].element(), ElementType::Int64);
}

TEST(OnnxElements, ContentsOfAnotherLengthAreRefused) {
  for (const ElementType type : kNarrow)
    for (const size_t size : {0u, 1u, 6u, 64u})
      EXPECT_THROW(read_back(packed(type, {17}, std::vector<uint8_t>(size))), IoError)
          << io::onnx::name(type) << ": " << size;
}

TEST(OnnxElements, InputsComeInTheWiderDtype) {
  io::onnx::Model m = model({node("CastLike", {"x", "like"}, {"y"})}, {}, {"y"});
  m.graph.inputs = {tensor_info("x", ElementType::Float, 1),
                    tensor_info("like", ElementType::Int2, 1)};
  const Importer importer(std::move(m));
  const Tensor x = tensor_of({7});
  EXPECT_THAT(whole(importer.run({{"x", x}, {"like", x.cast(DType::I8)}}).at("y")),
              ElementsAre(-1));
  try {
    importer.run({{"x", x}, {"like", x}});
    FAIL();
  } catch (const InvalidArgument& e) {
    EXPECT_THAT(e.what(), HasSubstr("INT2"));
  }
}

}  // namespace
}  // namespace tuff::onnx::test
