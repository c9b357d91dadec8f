// A few exact cases of each family: broadcasting, negative axes, empty tensors, optional inputs,
// versions. scripts/onnx-cases runs those of the standard.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx/models.h"

namespace tuff::onnx::test {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::FloatNear;
using testing::IsEmpty;

const Value kAbsent;

TEST(OnnxMath, OperandsBroadcast) {
  const Value y = run_op("Add", {counting({2, 1}), counting({3})})[0];
  EXPECT_THAT(shape(y), ElementsAre(2, 3));
  EXPECT_THAT(floats(y), ElementsAre(0, 1, 2, 1, 2, 3));
}

TEST(OnnxMath, BeforeVersion7AnAxisLinesOperandsUp) {
  const Value y = run_op("Add", {counting({2, 3}), Tensor::from({10, 20}, {2})},
                         {attribute("broadcast", int64_t{1}), attribute("axis", int64_t{0})}, 6)[0];
  EXPECT_THAT(floats(y), ElementsAre(10, 11, 12, 23, 24, 25));
}

TEST(OnnxMath, IntegersAreDividedTowardZero) {
  EXPECT_THAT(whole(run_op("Div", {vector_of({7, -7, 7, -7}), vector_of({2, 2, -2, -2})})[0]),
              ElementsAre(3, -3, -3, 3));
}

TEST(OnnxMath, ModHasTheSignOfTheDivisorOrOfTheDividend) {
  const std::vector<Value> inputs{vector_of({-4, 7, 5}), vector_of({3, -3, 3})};
  EXPECT_THAT(whole(run_op("Mod", inputs)[0]), ElementsAre(2, -2, 2));
  EXPECT_THAT(whole(run_op("Mod", inputs, {attribute("fmod", int64_t{1})})[0]),
              ElementsAre(-1, 1, 2));
}

TEST(OnnxMath, ClipTakesBoundsFromAttributesOrInputs) {
  const Tensor x = Tensor::from({-2, 0, 5}, {3});
  EXPECT_THAT(floats(run_op("Clip", {x}, {attribute("min", -1.0f), attribute("max", 1.0f)}, 6)[0]),
              ElementsAre(-1, 0, 1));
  EXPECT_THAT(floats(run_op("Clip", {x, kAbsent, Tensor::full({}, 1)})[0]),
              ElementsAre(-2, 0, 1));
}

// A power of tensors is right to 4 ULP, a product to half of one.
TEST(OnnxMath, APowerThatIsKnownIsAProduct) {
  const Tensor x = counting({1000}) / 7;
  const HostNumbers two{.dtype = DType::F32, .shape = {}, .ints = {}, .floats = {2}};
  Tensor exponent = Tensor::full({}, 2.0);
  EXPECT_EQ(floats(run_op("Pow", {x, Value(exponent, two)})[0]), floats(x * x));
  exponent.set_requires_grad();
  const Value trained = run_op("Pow", {x, Value(exponent, two)})[0];
  trained.tensor("").sum().backward();
  EXPECT_TRUE(exponent.grad().defined());
}

TEST(OnnxMath, SingleFloatsOfConstantNodesAreNumbers) {
  const auto three = constant<float>("c", io::onnx::ElementType::Float, {1}, {3});
  io::onnx::Attribute value;
  value.name = "value", value.kind = io::onnx::Attribute::Kind::Tensor;
  value.tensors = {three};
  const Value y = run_op("Constant", {}, {value})[0];
  EXPECT_TRUE(y.folds());
  EXPECT_THAT(floats(y), ElementsAre(3));
}

TEST(OnnxShape, ReshapeKeepsAndInfersExtents) {
  EXPECT_THAT(shape(run_op("Reshape", {counting({2, 3, 4}), vector_of({0, -1})})[0]),
              ElementsAre(2, 12));
  const Tensor none = Tensor::zeros({0, 3});
  EXPECT_THAT(shape(run_op("Reshape", {none, vector_of({3, 0})},
                           {attribute("allowzero", int64_t{1})})[0]),
              ElementsAre(3, 0));
  EXPECT_THROW(run_op("Reshape", {counting({2, 3}), vector_of({4, -1})}), ShapeError);
}

TEST(OnnxShape, SliceCountsFromTheEndAndBackwards) {
  const Tensor x = counting({2, 4});
  EXPECT_THAT(floats(run_op("Slice", {x, vector_of({-1}), vector_of({-100}), vector_of({-1}),
                                      vector_of({-2})})[0]),
              ElementsAre(3, 1, 7, 5));
  EXPECT_THAT(shape(run_op("Slice", {x, vector_of({3}), vector_of({1}), vector_of({1})})[0]),
              ElementsAre(2, 0));
}

TEST(OnnxShape, SplitByCountLeavesTheLastPartShorter) {
  const std::vector<Value> parts =
      run_op("Split", {counting({5})}, {attribute("num_outputs", int64_t{2})}, 18, 2);
  EXPECT_THAT(floats(parts[0]), ElementsAre(0, 1, 2));
  EXPECT_THAT(floats(parts[1]), ElementsAre(3, 4));
}

TEST(OnnxShape, PadModes) {
  const Tensor x = counting({3});
  const auto pad = [&](const char* mode) {
    return floats(run_op("Pad", {x, vector_of({2, 1})}, {attribute("mode", mode)})[0]);
  };
  EXPECT_THAT(pad("constant"), ElementsAre(0, 0, 0, 1, 2, 0));
  EXPECT_THAT(pad("reflect"), ElementsAre(2, 1, 0, 1, 2, 1));
  EXPECT_THAT(pad("edge"), ElementsAre(0, 0, 0, 1, 2, 2));
  EXPECT_THAT(pad("wrap"), ElementsAre(1, 2, 0, 1, 2, 0));
}

TEST(OnnxReduce, AxesAreAttributesOrInputs) {
  const Tensor x = counting({2, 3});
  const auto last = attribute("axes", std::vector<int64_t>{-1});
  EXPECT_THAT(floats(run_op("ReduceSum", {x}, {last}, 11)[0]), ElementsAre(3, 12));
  const Value y = run_op("ReduceSum", {x, vector_of({0})}, {attribute("keepdims", int64_t{0})})[0];
  EXPECT_THAT(shape(y), ElementsAre(3));
  EXPECT_THAT(floats(y), ElementsAre(3, 5, 7));
  EXPECT_THAT(floats(run_op("ReduceSum", {x},
                            {attribute("noop_with_empty_axes", int64_t{1})})[0]),
              ElementsAreArray(floats(x)));
}

TEST(OnnxReduce, NothingHasTheIdentity) {
  const Tensor none = Tensor::zeros({2, 0});
  EXPECT_THAT(floats(run_op("ReduceMax", {none, vector_of({1})}, {}, 20)[0]),
              ElementsAre(-INFINITY, -INFINITY));
  EXPECT_THAT(floats(run_op("ReduceProd", {none, vector_of({1})}, {}, 20)[0]), ElementsAre(1, 1));
}

TEST(OnnxReduce, ArgMaxTakesTheLastWhereThatIsAskedFor) {
  const Tensor x = Tensor::from({2, 2, 1}, {3});
  EXPECT_THAT(whole(run_op("ArgMax", {x})[0]), ElementsAre(0));
  EXPECT_THAT(whole(run_op("ArgMax", {x}, {attribute("select_last_index", int64_t{1})})[0]),
              ElementsAre(1));
}

TEST(OnnxReduce, SoftmaxBeforeVersion13TakesAllAxesFromOneOn) {
  const Tensor x = Tensor::zeros({2, 2, 2});
  EXPECT_FLOAT_EQ(floats(run_op("Softmax", {x}, {}, 12)[0])[0], 0.25f);
  EXPECT_FLOAT_EQ(floats(run_op("Softmax", {x}, {}, 13)[0])[0], 0.5f);
}

TEST(OnnxWindow, ConvolutionsHaveUnevenPads) {
  const Tensor x = counting({1, 1, 3}), w = Tensor::ones({1, 1, 2});
  EXPECT_THAT(floats(run_op("Conv", {x, w}, {attribute("pads", std::vector<int64_t>{1, 0})})[0]),
              ElementsAre(0, 1, 3));
  EXPECT_THAT(floats(run_op("Conv", {x, w}, {attribute("auto_pad", "SAME_UPPER")})[0]),
              ElementsAre(1, 3, 2));
}

TEST(OnnxWindow, PoolsSayWhereTheLargestStood) {
  const Tensor x = Tensor::from({1, 5, 2, 3, 4, 9}, {1, 2, 3});
  const std::vector<Value> out =
      run_op("MaxPool", {x}, {attribute("kernel_shape", std::vector<int64_t>{2})}, 12, 2);
  EXPECT_THAT(floats(out[0]), ElementsAre(5, 5, 4, 9));
  EXPECT_THAT(whole(out[1]), ElementsAre(1, 1, 4, 5));
}

TEST(OnnxWindow, AveragesCountWhatIsInside) {
  const Tensor x = Tensor::from({2, 4}, {1, 1, 2});
  const std::vector<io::onnx::Attribute> a{attribute("kernel_shape", std::vector<int64_t>{2}),
                                           attribute("pads", std::vector<int64_t>{1, 0})};
  EXPECT_THAT(floats(run_op("AveragePool", {x}, a)[0]), ElementsAre(2, 3));
}

TEST(OnnxWindow, NearestResizesRepeat) {
  const Value y = run_op("Resize", {counting({1, 1, 2, 2}), kAbsent,
                                    Tensor::from({1, 1, 1, 2}, {4})})[0];
  EXPECT_THAT(shape(y), ElementsAre(1, 1, 2, 4));
  EXPECT_THAT(floats(y), ElementsAre(0, 0, 1, 1, 2, 2, 3, 3));
}

TEST(OnnxIndex, GatherWithNegativePositions) {
  const Value y = run_op("Gather", {counting({3, 2}), vector_of({-1, 0})},
                         {attribute("axis", int64_t{-2})})[0];
  EXPECT_THAT(floats(y), ElementsAre(4, 5, 0, 1));
}

TEST(OnnxIndex, ScattersCombine) {
  const Value y = run_op("ScatterND",
                         {counting({4}), vector_of({1, 1}).reshape({2, 1}), counting({2}) + 10},
                         {attribute("reduction", "add")})[0];
  EXPECT_THAT(floats(y), ElementsAre(0, 22, 2, 3));
}

TEST(OnnxIndex, UniqueInOrderOfAppearance) {
  const std::vector<Value> out = run_op("Unique", {Tensor::from({2, 1, 1, 3, 4, 3}, {6})},
                                        {attribute("sorted", int64_t{0})}, 11, 4);
  EXPECT_THAT(floats(out[0]), ElementsAre(2, 1, 3, 4));
  EXPECT_THAT(whole(out[1]), ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(whole(out[2]), ElementsAre(0, 1, 1, 2, 3, 2));
  EXPECT_THAT(whole(out[3]), ElementsAre(1, 2, 2, 1));
}

TEST(OnnxQuantized, ValuesAreKeptInTheRangeOfTheirType) {
  const Tensor x = Tensor::from({-300, -1, 0, 1, 300}, {5}), scale = Tensor::full({}, 2);
  const Tensor zero = Tensor::full({}, 10, {.dtype = DType::U8});
  const Value q = run_op("QuantizeLinear", {x, scale, zero})[0];
  EXPECT_EQ(q.dtype(), DType::U8);
  EXPECT_THAT(whole(q), ElementsAre(0, 10, 10, 10, 160));  // halves to even
  EXPECT_THAT(floats(run_op("DequantizeLinear", {q, scale, zero})[0]),
              ElementsAre(-20, 0, 0, 0, 300));
}

TEST(OnnxQuantized, OneScaleServesATensorOfAnyRank) {
  const Tensor scale = Tensor::from({0.5f}, {1});
  EXPECT_THAT(floats(run_op("DequantizeLinear", {vector_of({2, 4}).cast(DType::I32), scale})[0]),
              ElementsAre(1, 2));
  const Value one = run_op("DequantizeLinear", {vector_of({6}).cast(DType::I8).reshape({}), scale})[0];
  EXPECT_THAT(shape(one), IsEmpty());
  EXPECT_THAT(floats(one), ElementsAre(3));
}

TEST(OnnxNorm, LayerNormalizationGivesMeanAndInverseDeviation) {
  const std::vector<Value> out =
      run_op("LayerNormalization", {Tensor::from({1, 3}, {1, 2}), Tensor::ones({2})},
             {attribute("epsilon", 0.0f)}, 17, 3);
  EXPECT_THAT(floats(out[0]), ElementsAre(-1, 1));
  EXPECT_THAT(floats(out[1]), ElementsAre(2));
  EXPECT_THAT(floats(out[2]), ElementsAre(1));
}

TEST(OnnxRecurrent, SequencesEndAtTheirLengths) {
  const Tensor x = Tensor::ones({3, 2, 1}), w = Tensor::ones({1, 1, 1});
  const std::vector<Value> out =
      run_op("RNN", {x, w, w, kAbsent, Tensor::from(std::vector<int32_t>{1, 3}, {2})},
             {attribute("hidden_size", int64_t{1}), attribute("clip", 1.0f)}, 14, 2);
  const float one = std::tanh(1.0f);  // both sums are cut to 1
  EXPECT_THAT(floats(out[1]), ElementsAre(FloatNear(one, 1e-6f), FloatNear(one, 1e-6f)));
  EXPECT_FLOAT_EQ(floats(out[0])[4], 0);
}

TEST(OnnxFeatures, NGramsAreCountedWhateverTheModelSays) {
  const auto count = [](std::vector<int64_t> starts, std::vector<int64_t> columns) {
    return floats(run_op("TfIdfVectorizer", {vector_of({1, 2, 3, 1, 2})},
                         {attribute("mode", "TF"), attribute("min_gram_length", int64_t{1}),
                          attribute("max_gram_length", int64_t{2}),
                          attribute("max_skip_count", int64_t{1}),
                          attribute("pool_int64s", std::vector<int64_t>{3, 1, 2, 1, 3}),
                          attribute("ngram_counts", std::move(starts)),
                          attribute("ngram_indexes", std::move(columns))})[0]);
  };
  EXPECT_THAT(count({0, 1}, {2, 0, 1}), ElementsAre(2, 1, 1));  // 1 2 twice; 1 . 3 and 3 alone
  EXPECT_THROW(count({0, 9}, {2, 0, 1}), InvalidArgument);
  EXPECT_THROW(count({1, 0}, {2, 0, 1}), InvalidArgument);
  EXPECT_THROW(count({0, 1}, {2, -1, 1}), InvalidArgument);
  EXPECT_THROW(count({0, 1}, {2, 0}), InvalidArgument);
  EXPECT_THROW(count({0, 1}, {2, 0, int64_t{1} << 40}), InvalidArgument);
}

TEST(OnnxControl, SequencesGrowAndJoin) {
  const std::vector<Value> s = run_op("SequenceConstruct", {counting({2}), counting({3})});
  EXPECT_THAT(whole(run_op("SequenceLength", {s[0]})[0]), ElementsAre(2));
  EXPECT_THAT(floats(run_op("ConcatFromSequence", {s[0]}, {attribute("axis", int64_t{0})})[0]),
              ElementsAre(0, 1, 0, 1, 2));
  EXPECT_THROW(run_op("SequenceAt", {s[0], vector_of({2}).reshape({})}), IndexError);
}

}  // namespace
}  // namespace tuff::onnx::test
