// Layers: shapes, initialization and what they compute.
#include <gtest/gtest.h>

#include <tuff/jit.h>
#include <tuff/nn.h>
#include <tuff/optim.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

namespace tuff::nn {
namespace {

const TensorOptions kCpu{.device = "CPU"};

double largest(const Tensor& t) {
  double m = 0;
  for (float v : t.to_vector<float>()) m = std::max(m, std::abs(double(v)));
  return m;
}

TEST(Layers, LinearIsProductAndBias) {
  const Linear l(4, 3, true, kCpu);
  EXPECT_EQ(l.weight.sizes(), (Sizes{3, 4}));
  EXPECT_EQ(l.parameters().size(), 2u);
  EXPECT_LE(largest(l.weight), 0.5);  // 1/sqrt(4)
  const Tensor x = Tensor::rand({5, 4}, kCpu).realize();
  EXPECT_LT(largest(l(x) - (x.matmul(l.weight.T()) + l.bias)), 1e-6);
  EXPECT_THROW(l(Tensor::zeros({5, 3}, kCpu)), ShapeError);
}

TEST(Layers, ConvolutionOfOnesCountsTheWindow) {
  Conv2d c(2, 1, 3, 1, 1, false, kCpu);
  {
    const NoGradGuard off;
    c.weight.assign(Tensor::ones({1, 2, 3, 3}, kCpu));
  }
  const std::vector<float> y = c(Tensor::ones({1, 2, 3, 3}, kCpu)).to_vector<float>();
  EXPECT_EQ(y, (std::vector<float>{8, 12, 8, 12, 18, 12, 8, 12, 8}));
}

TEST(Layers, LayerNormStandardizes) {
  const LayerNorm n(64, 1e-5, kCpu);
  const Tensor y = n(Tensor::rand({8, 64}, kCpu) * 5 + 3).realize();
  EXPECT_LT(largest(y.mean({-1})), 1e-5);
  EXPECT_LT(largest(y.var({-1}, false, 0) - 1.0), 1e-3);
}

TEST(Layers, EmbeddingPicksRows) {
  const Embedding e(6, 4, kCpu);
  const Tensor index = Tensor::from(std::vector<int32_t>{5, 0, 5}, {3}, kCpu);
  const std::vector<float> rows = e(index).to_vector<float>(), all = e.weight.to_vector<float>();
  for (size_t i = 0; i < 4; i++) {
    EXPECT_EQ(rows[i], all[20 + i]);
    EXPECT_EQ(rows[4 + i], all[i]);
    EXPECT_EQ(rows[8 + i], all[20 + i]);
  }
}

nlohmann::json stored(const char* layer) {
  std::ifstream file(TUFF_SOURCE_DIR "/tests/data/tensor_values.json");
  return nlohmann::json::parse(file).at("layers").at(layer);
}
Tensor tensor_of(const nlohmann::json& values, const Sizes& sizes) {
  return Tensor::from(values.get<std::vector<float>>(), sizes, kCpu);
}

TEST(Layers, ConvolutionTakesPairsAndGroups) {
  const Conv2d c(4, 6, {3, 2}, {2, 1}, {1, 0}, true, kCpu, {1, 2}, 2);
  EXPECT_EQ(c.weight.sizes(), (Sizes{6, 2, 3, 2}));
  EXPECT_LE(largest(c.weight), 1 / std::sqrt(12.0));
  EXPECT_EQ(c(Tensor::ones({1, 4, 5, 6}, kCpu)).sizes(), (Sizes{1, 6, 3, 4}));
}

TEST(Layers, RmsNormScalesToOne) {
  const RMSNorm n(64, {}, kCpu);
  const Tensor y = n(Tensor::rand({8, 64}, kCpu) * 5 + 3).realize();
  EXPECT_LT(largest(y.square().mean({-1}) - 1.0), 1e-5);
  EXPECT_EQ(n.parameters().size(), 1u);
}

TEST(Layers, BatchNormFollowsPyTorch) {
  const nlohmann::json j = stored("batchnorm");
  const BatchNorm n(3, 1e-5, 0.1, true, kCpu);
  const Sizes shape{2, 3, 2, 2};
  for (size_t i = 0; i < 3; i++) {
    TrainingMode on;
    const Tensor y = n(tensor_of(j.at("in")[i], shape));
    EXPECT_LT(largest(y - tensor_of(j.at("out")[i], shape)), 1e-5) << "batch " << i;
  }
  EXPECT_LT(largest(n.running_mean - tensor_of(j.at("mean"), {3})), 1e-6);
  EXPECT_LT(largest(n.running_var - tensor_of(j.at("var"), {3})), 1e-6);
  const Tensor y = n(tensor_of(j.at("in")[0], shape));  // outside training: running statistics
  EXPECT_LT(largest(y - tensor_of(j.at("eval"), shape)), 1e-5);
  EXPECT_LT(largest(n.running_mean - tensor_of(j.at("mean"), {3})), 1e-6);
}

// Running statistics of a captured training step move at every replay, as in the plain loop.
TEST(Layers, BatchNormIsCapturedWithItsStatistics) {
  auto train = [](bool captured) {
    Tensor::manual_seed(9);
    const Linear l(4, 3, true, kCpu);
    const BatchNorm n(3, 1e-5, 0.1, true, kCpu);
    Parameters all = l.parameters();
    for (const Tensor& p : n.parameters()) all.push_back(p);
    optim::Adam optimizer(all, {.lr = 1e-2});
    auto step = [&](const std::vector<Tensor>& in) {
      TrainingMode on;
      const Tensor loss = n(l(in[0])).square().mean() + l.weight.square().sum();
      optimizer.zero_grad();
      loss.backward();
      optimizer.step({loss});
      return std::vector<Tensor>{loss};
    };
    Jit jit(step);
    for (int i = 0; i < 6; i++) {
      const Tensor x = (Tensor::rand({8, 4}, kCpu) * double(i + 1)).realize();
      captured ? jit({x}).at(0).item() : step({x}).at(0).item();
    }
    std::vector<float> out = n.running_mean.to_vector<float>();
    for (float v : n.running_var.to_vector<float>()) out.push_back(v);
    return out;
  };
  const std::vector<float> plain = train(false);
  EXPECT_EQ(train(true), plain);
  EXPECT_NE(plain[0], 0);
}

TEST(Layers, AttentionFollowsPyTorch) {
  const nlohmann::json j = stored("attention");
  const MultiHeadAttention attention(6, 2, 0, true, kCpu);
  StateDict given;
  for (const NamedTensor& t : attention.state_dict())
    given.push_back({t.name, tensor_of(j.at("state").at(t.name), t.tensor.sizes())});
  load_state_dict(attention.state_dict(), given);
  const Tensor x = tensor_of(j.at("in"), {2, 4, 6});
  EXPECT_LT(largest(attention(x) - tensor_of(j.at("out"), {2, 4, 6})), 1e-5);
  EXPECT_LT(largest(attention(x, true) - tensor_of(j.at("causal"), {2, 4, 6})), 1e-5);
  EXPECT_EQ(attention.parameters().size(), 4u);
}

TEST(Layers, PaddedSequencesFollowPyTorch) {
  const nlohmann::json j = stored("padded");
  LSTM layer(3, 2, {.bidirectional = true}, kCpu);
  for (const NamedTensor& t : layer.state_dict())
    layer.set_tensor(t.name, tensor_of(j.at("state").at(t.name), t.tensor.sizes())
                                 .set_requires_grad());
  Tensor x = tensor_of(j.at("in"), {4, 3, 3});
  x.set_requires_grad();
  const Tensor lengths = Tensor::from(std::vector<int32_t>{4, 1, 3}, {3}, kCpu);
  const auto [y, h, c] = layer(x, {}, {}, lengths);
  const Tensor loss = y.square().sum() + h.square().sum() + c.sum();
  loss.backward();
  EXPECT_LT(largest(x.grad() - tensor_of(j.at("grad"), {4, 3, 3})), 1e-5);
  for (const NamedTensor& t : layer.state_dict())
    EXPECT_LT(largest(t.tensor.grad() - tensor_of(j.at("grads").at(t.name), t.tensor.sizes())),
              1e-5)
        << t.name;
  EXPECT_LT(largest(y - tensor_of(j.at("out"), {4, 3, 4})), 1e-5);
  EXPECT_LT(largest(h - tensor_of(j.at("h"), {2, 3, 2})), 1e-5);
  EXPECT_LT(largest(c - tensor_of(j.at("c"), {2, 3, 2})), 1e-5);
}

TEST(Layers, SequentialRunsInOrderAndNamesItsState) {
  const Sequential s(
      Linear(4, 8, true, kCpu), [](const Tensor& x) { return x.relu(); },
      BatchNorm(8, 1e-5, 0.1, true, kCpu), Dropout(0.5), Linear(8, 2, false, kCpu));
  const Tensor x = Tensor::rand({3, 4}, kCpu).realize();
  EXPECT_EQ(s(x).sizes(), (Sizes{3, 2}));
  EXPECT_EQ(s.size(), 5u);
  std::vector<std::string> names;
  for (const NamedTensor& t : s.state_dict()) names.push_back(t.name);
  EXPECT_EQ(names, (std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias",
                                             "2.running_mean", "2.running_var", "4.weight"}));
  EXPECT_EQ(s.parameters().size(), 5u);
}

TEST(Layers, StateGoesFromOneModelToAnother) {
  const Linear a(4, 3, true, kCpu), b(4, 3, true, kCpu);
  const Tensor weight = b.weight;
  load_state_dict(b.state_dict(), a.state_dict());
  EXPECT_EQ(weight.to_vector<float>(), a.weight.to_vector<float>());
  EXPECT_TRUE(b.weight.requires_grad());
}

TEST(Layers, DropoutIsActiveInTrainingAlone) {
  const Dropout d(0.25);
  const Tensor x = Tensor::ones({4000}, kCpu);
  EXPECT_EQ(d(x).sum().item(), 4000);
  TrainingMode on;
  const std::vector<float> y = d(x).to_vector<float>();
  const auto zeros = double(std::count(y.begin(), y.end(), 0.0f));
  EXPECT_NEAR(zeros, 1000, 4 * std::sqrt(4000 * 0.25 * 0.75));  // four standard deviations
  EXPECT_NEAR(*std::max_element(y.begin(), y.end()), 1 / 0.75, 1e-6);
}

}  // namespace
}  // namespace tuff::nn
