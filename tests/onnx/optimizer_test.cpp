// The optimizer: each rule against the graph as it is written, and where no rule may fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "onnx/models.h"

namespace tuff::onnx::test {
namespace {

using io::onnx::ElementType;
using io::onnx::Model;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

io::onnx::TensorData weights(std::string name, std::vector<int64_t> dims, float low = -1) {
  int64_t n = 1;
  for (const int64_t d : dims) n *= d;
  std::vector<float> values;
  for (int64_t i = 0; i < n; i++)
    values.push_back(low + 1 + std::sin(1.3f * float(i) + float(name[0])));
  return constant(std::move(name), ElementType::Float, std::move(dims), values);
}
// A node that gives it: no parameter.
io::onnx::Node constant_node(io::onnx::TensorData data) {
  io::onnx::Node n = node("Constant", {}, {data.name});
  io::onnx::Attribute a;
  a.name = "value", a.kind = io::onnx::Attribute::Kind::Tensor, a.tensors = {std::move(data)};
  n.attributes = {a};
  return n;
}
// Scale, bias, mean and variance of a batch norm.
std::vector<io::onnx::TensorData> statistics(int64_t channels) {
  return {weights("g", {channels}), weights("h", {channels}), weights("m", {channels}),
          weights("v", {channels}, 0.5f)};
}

Tensor image(const Sizes& sizes) { return (counting(sizes) * 0.37).sin(); }

void expect_near(const Tensor& wanted, const Tensor& found) {
  ASSERT_EQ(std::vector<int64_t>(wanted.sizes()), std::vector<int64_t>(found.sizes()));
  const auto a = wanted.to_vector<float>(), b = found.to_vector<float>();
  for (size_t i = 0; i < a.size(); i++)
    ASSERT_NEAR(a[i], b[i], 1e-5 * std::max(1.0f, std::abs(a[i]))) << "element " << i;
}

using Rewrites = std::vector<std::pair<std::string, int64_t>>;

// What was rewritten, once outputs are those of the graph as it is written.
Rewrites compared(const Model& m, const Tensor& x) {
  const Importer written(m), rewritten(m, "", true);
  const NamedValues wanted = written.run({{"x", x}});
  for (int call = 0; call < 2; call++)
    for (const auto& [name, value] : rewritten.run({{"x", x}}))
      expect_near(wanted.at(name).tensor(""), value.tensor(""));
  return rewritten.rewritten().rewrites;
}

Model layer_and_norm(io::onnx::Node layer, std::vector<io::onnx::TensorData> initializers,
                     int64_t channels) {
  Model m = model({std::move(layer),
                   node("BatchNormalization", {"l", "g", "h", "m", "v"}, {"n"},
                        {attribute("epsilon", 0.01f)}),
                   node("Relu", {"n"}, {"y"})},
                  {"x"}, {"y"});
  m.graph.initializers = std::move(initializers);
  for (io::onnx::TensorData& t : statistics(channels)) m.graph.initializers.push_back(t);
  return m;
}
Model conv_and_norm() {
  return layer_and_norm(node("Conv", {"x", "w", "b"}, {"l"}),
                        {weights("w", {4, 3, 3, 3}), weights("b", {4})}, 4);
}

constexpr const char* kNorms = "batch norms in the layer before";
constexpr const char* kScales = "scales and shifts in the convolution before";

TEST(OnnxOptimizer, BatchNormsAreTheWeightsOfTheLayerBefore) {
  EXPECT_THAT(compared(conv_and_norm(), image({2, 3, 6, 5})), ElementsAre(Pair(kNorms, 1)));
  const auto groups = attribute("group", int64_t{2});
  EXPECT_THAT(compared(layer_and_norm(node("Conv", {"x", "w"}, {"l"}, {groups}),
                                      {weights("w", {4, 2, 3})}, 4),
                       image({2, 4, 7})),
              ElementsAre(Pair(kNorms, 1)));
  EXPECT_THAT(compared(layer_and_norm(node("ConvTranspose", {"x", "w", "b"}, {"l"}),
                                      {weights("w", {3, 4, 2, 2}), weights("b", {4})}, 4),
                       image({2, 3, 4, 5})),
              ElementsAre(Pair(kNorms, 1)));
  for (const int64_t transposed : {0, 1}) {
    const std::vector<int64_t> dims = transposed ? std::vector<int64_t>{4, 3}
                                                 : std::vector<int64_t>{3, 4};
    EXPECT_THAT(compared(layer_and_norm(node("Gemm", {"x", "w", "b"}, {"l"},
                                             {attribute("transB", transposed),
                                              attribute("alpha", 0.5f)}),
                                        {weights("w", dims), weights("b", {4})}, 4),
                         image({2, 3})),
                ElementsAre(Pair(kNorms, 1)));
  }
}

TEST(OnnxOptimizer, AFactorOfABiasThatIsNotThereYetIsNoneOfTheNorms) {
  EXPECT_THAT(compared(layer_and_norm(node("Gemm", {"x", "w"}, {"l"}, {attribute("beta", 0.5f)}),
                                      {weights("w", {3, 4})}, 4),
                       image({2, 3})),
              IsEmpty());
}

TEST(OnnxOptimizer, InputsThatAreLeftOutFitNoRule) {
  for (const std::vector<std::string>& inputs :
       {std::vector<std::string>{"", "s"}, {"w", ""}, {"w", "s", ""}}) {
    Model m = model({node("DequantizeLinear", inputs, {"d"}), node("Conv", {"x", "d"}, {"y"})},
                    {"x"}, {"y"});
    m.graph.initializers = {
        constant("w", ElementType::Int8, {1, 1, 1, 1}, std::vector<int8_t>{1}),
        constant("s", ElementType::Float, {}, std::vector<float>{1})};
    EXPECT_EQ(rewrite(m).rewrites.size(), inputs.size() == 3 ? 1u : 0u);
  }
}

TEST(OnnxOptimizer, ScalesAndShiftsAreWeightsToo) {
  // As PaddlePaddle's exporter writes them: a batch norm, and factors of one number.
  Model m = model({node("Conv", {"x", "w"}, {"l"}),
                   constant_node(weights("f", {1})),
                   constant_node(weights("s", {1, 4, 1, 1})),
                   node("BatchNormalization", {"l", "g", "h", "m", "v"}, {"n"}),
                   node("Mul", {"f", "n"}, {"p"}), node("Add", {"p", "s"}, {"y"})},
                  {"x"}, {"y"});
  m.graph.initializers = statistics(4);
  m.graph.initializers.push_back(weights("w", {4, 3, 1, 1}));
  EXPECT_THAT(compared(m, image({2, 3, 4, 4})), ElementsAre(Pair(kNorms, 1), Pair(kScales, 2)));
  m.graph.nodes.erase(m.graph.nodes.begin() + 3);
  m.graph.nodes[3].inputs = {"l", "f"};
  std::swap(m.graph.nodes[1], m.graph.nodes[0]);
  m.graph.nodes.pop_back();
  m.graph.outputs = {any_info("p")};
  EXPECT_THAT(compared(m, image({2, 3, 4, 4})), ElementsAre(Pair(kScales, 1)));
}

TEST(OnnxOptimizer, WeightsOfConvolutionsAreDecodedOnce) {
  std::vector<int8_t> w;
  for (int i = 0; i < 4 * 3 * 9; i++) w.push_back(int8_t(i * 37 % 255 - 127));
  const auto axis = attribute("axis", int64_t{0});
  Model m = model({node("DequantizeLinear", {"w", "s", "z"}, {"d"}, {axis}),
                   node("Conv", {"x", "d"}, {"y"})},
                  {"x"}, {"y"});
  m.graph.initializers = {
      constant("w", ElementType::Int8, {4, 3, 3, 3}, w), weights("s", {4}, 0),
      constant("z", ElementType::Int8, {4}, std::vector<int8_t>{0, 3, -2, 1})};
  EXPECT_THAT(compared(m, image({1, 3, 5, 5})),
              ElementsAre(Pair("weights of convolutions decoded once", 1)));
  m.graph.nodes[1] = node("Mul", {"x", "d"}, {"y"});
  EXPECT_THAT(compared(m, image({4, 3, 3, 3})), IsEmpty());
}

TEST(OnnxOptimizer, WhatOthersReadStays) {
  Model read_twice = conv_and_norm();
  read_twice.graph.nodes.push_back(node("Neg", {"l"}, {"z"}));
  read_twice.graph.outputs.push_back(any_info("z"));
  EXPECT_THAT(compared(read_twice, image({1, 3, 4, 4})), IsEmpty());
  Model is_output = conv_and_norm();
  is_output.graph.outputs.push_back(any_info("l"));
  EXPECT_THAT(compared(is_output, image({1, 3, 4, 4})), IsEmpty());
  Model is_input = conv_and_norm();  // its initializer is a default
  is_input.graph.inputs.push_back(any_info("g"));
  EXPECT_THAT(compared(is_input, image({1, 3, 4, 4})), IsEmpty());
  Model trains = conv_and_norm();
  trains.graph.nodes[1].attributes.push_back(attribute("training_mode", int64_t{1}));
  EXPECT_THAT(compared(trains, image({2, 3, 4, 4})), IsEmpty());
  Model of_an_axis = conv_and_norm();  // a number for each column, as many as there are channels
  of_an_axis.graph.nodes[1] = node("Mul", {"l", "g"}, {"n"});
  EXPECT_THAT(compared(of_an_axis, image({1, 3, 6, 6})), IsEmpty());
}

TEST(OnnxOptimizer, AResidualReadsTheInputOfAFoldedLayer) {
  Model m = conv_and_norm();
  m.graph.initializers[0] = weights("w", {4, 4, 1, 1});
  m.graph.nodes[2] = node("Add", {"n", "x"}, {"y"});
  m.graph.nodes.push_back(node("Conv", {"y", "w"}, {"z"}));
  m.graph.outputs.push_back(any_info("z"));
  EXPECT_THAT(compared(m, image({1, 4, 3, 3})), ElementsAre(Pair(kNorms, 1)));
}

TEST(OnnxOptimizer, SharedParametersAreUsedAsTheyAre) {
  const Importer importer(conv_and_norm(), "", true);
  const Tensor x = image({1, 3, 4, 4});
  const auto y = [&] { return importer.run({{"x", x}}).at("y").tensor(""); };
  y().realize();
  EXPECT_FALSE(importer.runs_as_written());
  importer.share_parameters();
  EXPECT_TRUE(importer.runs_as_written());
  Tensor g = importer.parameters().at("g"), h = importer.parameters().at("h");
  g.assign(g * 0), h.assign(h * 0 + 3);
  expect_near(Tensor::full({1, 4, 2, 2}, 3, {.dtype = DType::F32}), y());
  h.set_requires_grad();
  y().sum().backward();
  EXPECT_THAT(floats(h.grad()), ElementsAre(4, 4, 4, 4));
}

}  // namespace
}  // namespace tuff::onnx::test
