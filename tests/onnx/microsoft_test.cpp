// Operators of com.microsoft, and those of attention and regions, in exact cases.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/models.h"

namespace tuff::onnx::test {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::Pointwise;

std::vector<Value> run_microsoft(const std::string& op, const NamedValues& inputs,
                                 const std::vector<std::string>& names,
                                 const std::vector<io::onnx::Attribute>& attributes,
                                 size_t outputs = 1) {
  std::vector<std::string> given, out;
  for (const auto& [name, value] : inputs) given.push_back(name);
  for (size_t i = 0; i < outputs; i++) out.push_back("y" + std::to_string(i));
  io::onnx::Node n = node(op, names, out, attributes);
  n.domain = "com.microsoft";
  const Importer importer(model({n}, given, out));
  const NamedValues results = importer.run(inputs);
  std::vector<Value> all;
  for (const std::string& o : out) all.push_back(results.at(o));
  return all;
}

TEST(OnnxMicrosoft, MatMulNBitsHasTheFirstOfTwoInTheLowBits) {
  // One row of 16 weights: 8 + 1 first, then zeros, with a scale of 0.5.
  std::vector<uint8_t> packed(8, 0x88);
  packed[0] = 0x89;
  const Value y = run_microsoft(
      "MatMulNBits",
      {{"a", counting({1, 16}) + 3},
       {"b", Tensor::from(packed, {1, 1, 8})},
       {"s", Tensor::full({1, 1}, 0.5)}},
      {"a", "b", "s"},
      {attribute("K", int64_t{16}), attribute("N", int64_t{1}), attribute("bits", int64_t{4}),
       attribute("block_size", int64_t{16})})[0];
  EXPECT_THAT(floats(y), ElementsAre(1.5f));
}

// A row of 17 weights: 1, 2, 3, zeros and, in the second block, 3; 2 less without zero points.
TEST(OnnxMicrosoft, MatMulNBitsOf2BitsAndOfNamedGroups) {
  std::vector<uint8_t> packed(8, 0);
  packed[0] = 0x39, packed[4] = 0x03;  // 1 2 3 0, and the 17th is 3
  NamedValues inputs{{"a", Tensor::ones({1, 17})},
                     {"b", Tensor::from(packed, {1, 2, 4})},
                     {"s", Tensor::from({1, 10}, {1, 2})}};
  const std::vector<io::onnx::Attribute> a{
      attribute("K", int64_t{17}), attribute("N", int64_t{1}), attribute("bits", int64_t{2}),
      attribute("block_size", int64_t{16})};
  EXPECT_THAT(floats(run_microsoft("MatMulNBits", inputs, {"a", "b", "s"}, a)[0]),
              ElementsAre(-1 + 0 + 1 - 13 * 2 + 10));
  std::vector<int32_t> groups(17, 0);
  groups[0] = 1;
  inputs.emplace("g", Tensor::from(groups, {17}));
  inputs.emplace("z", Tensor::from(std::vector<uint8_t>{0x01}, {1, 1}));  // 1 and 0
  EXPECT_THAT(floats(run_microsoft("MatMulNBits", inputs, {"a", "b", "s", "z", "g"}, a)[0]),
              ElementsAre(10 + 1 + 2 - 13 + 2));
}

TEST(OnnxMicrosoft, KeysAndValuesMayBePacked) {
  const Tensor q = counting({1, 2, 4}) * 0.25, k = q * q, v = q - 1;
  const auto heads = attribute("num_heads", int64_t{2});
  const auto split = [](const Tensor& t) { return t.reshape({1, 2, 2, 2}); };
  const std::vector<float> want = floats(run_microsoft(
      "MultiHeadAttention", {{"q", q}, {"k", k}, {"v", v}}, {"q", "k", "v"}, {heads})[0]);
  const Tensor pair = Tensor::stack({split(k), split(v)}, 3),
               all = Tensor::stack({split(q), split(k), split(v)}, 3);
  EXPECT_THAT(floats(run_microsoft("MultiHeadAttention", {{"q", q}, {"kv", pair}}, {"q", "kv"},
                                   {heads})[0]),
              Pointwise(FloatNear(1e-6f), want));
  EXPECT_THAT(
      floats(run_microsoft("MultiHeadAttention", {{"qkv", all}}, {"qkv"}, {heads})[0]),
      Pointwise(FloatNear(1e-6f), want));
  // The product with a matrix of three, each of which picks an input's third.
  const std::vector<Value> out = run_microsoft(
      "Attention", {{"x", Tensor::cat({q, k, v}, 2)}, {"w", Tensor::eye(12)}}, {"x", "w"}, {heads},
      2);
  EXPECT_THAT(floats(out[0]), Pointwise(FloatNear(1e-6f), want));
  EXPECT_THAT(shape(out[1]), ElementsAre(2, 1, 2, 2, 2));
}

TEST(OnnxMicrosoft, SkippedSumsAreAnOutput) {
  const std::vector<Value> out =
      run_microsoft("SkipSimplifiedLayerNormalization",
                    {{"x", Tensor::from({1, 2}, {1, 1, 2})},
                     {"skip", Tensor::from({2, 1}, {1, 1, 2})},
                     {"scale", Tensor::from({1, 10}, {2})}},
                    {"x", "skip", "scale"}, {attribute("epsilon", 0.0f)}, 4);
  EXPECT_THAT(floats(out[0]), Pointwise(FloatNear(1e-5f), {1.0f, 10.0f}));
  EXPECT_THAT(floats(out[3]), ElementsAre(3, 3));
}

TEST(OnnxAttention, RowsWithoutAKeyAreZero) {
  const Tensor q = Tensor::ones({1, 1, 1, 2}), v = counting({1, 1, 2, 2});
  const Tensor none = Tensor::full({1, 2}, 0, {.dtype = DType::Bool});
  EXPECT_THAT(floats(run_op("Attention", {q, v, v, none}, {}, 24)[0]), ElementsAre(0, 0));
}

TEST(OnnxAttention, QueriesSeeKeysUpToTheirPlaceBehindThePast) {
  const Tensor q = Tensor::zeros({1, 1, 2, 1}), k = Tensor::zeros({1, 1, 2, 1});
  const Tensor v = Tensor::from({30, 60}, {1, 1, 2, 1}), past = Tensor::zeros({1, 1, 1, 1});
  const std::vector<Value> out =
      run_op("Attention", {q, k, v, Value(), past, past + 12},
             {attribute("is_causal", int64_t{1})}, 24, 3);
  EXPECT_THAT(floats(out[0]), Pointwise(FloatNear(1e-4f), {21.0f, 34.0f}));
  EXPECT_THAT(shape(out[1]), ElementsAre(1, 1, 3, 1));
}

TEST(OnnxRegions, CellsOfABoxAreAveraged) {
  const Tensor x = counting({1, 1, 4, 4}), box = Tensor::from({0, 0, 4, 4}, {1, 4});
  const Value y = run_op("RoiAlign", {x, box, vector_of({0})},
                         {attribute("output_height", int64_t{2}),
                          attribute("output_width", int64_t{2}),
                          attribute("sampling_ratio", int64_t{2})},
                         16)[0];
  EXPECT_THAT(floats(y), Pointwise(FloatNear(1e-5f), {2.5f, 4.5f, 10.5f, 12.5f}));
}

}  // namespace
}  // namespace tuff::onnx::test
