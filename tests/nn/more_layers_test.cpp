// Norms of parts, embeddings, recurrent layers, attention's options and Transformers by what they
// are made of; tests/python/torch_layers_test.py has PyTorch's values.
#include <gtest/gtest.h>

#include <tuff/jit.h>
#include <tuff/nn.h>

#include <algorithm>
#include <cmath>

namespace tuff::nn::layers_tests {
namespace {

const TensorOptions kCpu{.device = "CPU"};

double largest(const Tensor& t) {
  double m = 0;
  for (float v : t.to_vector<float>()) m = std::max(m, std::abs(double(v)));
  return m;
}
void expect_same(const Tensor& a, const Tensor& b, double tolerance = 1e-5) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_LT(largest(a - b), tolerance);
}
Tensor random(const Sizes& sizes) { return Tensor::randn(sizes, kCpu).realize(); }
Tensor indices(std::vector<int32_t> values, const Sizes& sizes) {
  return Tensor::from(values, sizes, kCpu);
}

TEST(MoreLayers, ConvolutionOfOneAxis) {
  const Conv1d c(Tensor::from({1, 2, 3, -1, 0, 1}, {1, 2, 3}, kCpu), {}, 2, 1);
  const Tensor x = Tensor::from({1, 2, 3, 4, 1, 1, 1, 1}, {1, 2, 4}, kCpu);
  // At 0: 0*1 + 1*2 + 2*3 and 0*-1 + 1*1; at 2: 2*1 + 3*2 + 4*3 and -1 + 1.
  EXPECT_EQ(c(x).to_vector<float>(), (std::vector<float>{9, 20}));
  EXPECT_EQ(Conv1d(4, 6, 3, 1, 0, true, kCpu, 1, 2).weight.sizes(), (Sizes{6, 2, 3}));
  EXPECT_THROW(c(x.flatten()), ShapeError);
  EXPECT_THROW(Conv1d(4, 6, 3, 1, 0, true, kCpu, 1, 4), InvalidArgument);
}

TEST(MoreLayers, ConvolutionsOfAnyAxes) {
  const Tensor image = random({2, 4, 5, 6}), volume = random({1, 2, 3, 4, 5});
  const Conv3d deep(2, 3, {1, 2, 3}, 1, "same", true, kCpu);
  EXPECT_EQ(deep.weight.sizes(), (Sizes{3, 2, 1, 2, 3}));
  EXPECT_EQ(deep(volume).sizes(), (Sizes{1, 3, 3, 4, 5}));
  const Conv2d mirrored(4, 2, 3, 1, {{1, 0}, {0, 2}}, true, kCpu, 1, 1, PadMode::Reflect);
  const Tensor around = image.pad({0, 2, 1, 0}, PadMode::Reflect);
  expect_same(mirrored(image), around.conv2d(mirrored.weight, mirrored.bias));
  const ConvTranspose2d up(4, 6, {3, 2}, 2, 1, 1, 2, true, 1, kCpu);
  EXPECT_EQ(up.weight.sizes(), (Sizes{4, 3, 3, 2}));
  ASSERT_EQ(up.parameters().size(), 2u);
  EXPECT_EQ(up(image).sizes(), (Sizes{2, 6, 10, 11}));
  EXPECT_EQ(ConvTranspose1d(2, 3, 2, 2, 0, 0, 1, true, 1, kCpu)(random({1, 2, 4})).size(2), 8);
  EXPECT_EQ(ConvTranspose3d(2, 3, 2, 2, 0, 0, 1, true, 1, kCpu)(volume).size(4), 10);
  EXPECT_THROW(ConvTranspose2d(4, 6, 3, 1, 0, 0, 4), InvalidArgument);
}

TEST(MoreLayers, PoolsPadsAndResizing) {
  const Tensor line = random({2, 3, 8}), image = random({2, 4, 6, 8}), volume = random({1, 2, 4, 4, 6});
  expect_same(MaxPool1d(2)(line), line.max_pool1d(2));
  expect_same(MaxPool3d(2)(volume), volume.max_pool3d(2));
  expect_same(AvgPool1d(3, 1)(line), line.avg_pool1d(3, 1));
  expect_same(AvgPool3d(2)(volume), volume.avg_pool3d(2));
  expect_same(LPPool1d(2, 2)(line), line.lp_pool1d(2, 2));
  expect_same(LPPool2d(2, 2)(image), image.lp_pool2d(2, 2));
  expect_same(LPPool3d(2, 2)(volume), volume.lp_pool3d(2, 2));
  expect_same(AdaptiveAvgPool1d(3)(line), line.adaptive_avg_pool1d(3));
  expect_same(AdaptiveAvgPool2d({4, 3})(image), image.adaptive_avg_pool2d({4, 3}));
  expect_same(AdaptiveAvgPool3d(3)(volume), volume.adaptive_avg_pool3d(3));
  expect_same(AdaptiveMaxPool1d(3)(line), line.adaptive_max_pool1d(3));
  expect_same(AdaptiveMaxPool2d(3)(image), image.adaptive_max_pool2d(3));
  expect_same(AdaptiveMaxPool3d(3)(volume), volume.adaptive_max_pool3d(3));
  const auto [values, where] = MaxPool2d(2).with_indices(image);
  expect_same(MaxUnpool2d(2)(values, where).max_pool2d(2), values.maximum(values.zeros_like()));
  expect_same(ReflectionPad2d({1, 2, 0, 3})(image), image.pad({1, 2, 0, 3}, PadMode::Reflect));
  expect_same(ReplicationPad1d(2)(line), line.pad({2, 2}, PadMode::Replicate));
  expect_same(CircularPad3d(1)(volume), volume.pad({1, 1, 1, 1, 1, 1}, PadMode::Circular));
  expect_same(ZeroPad2d(1)(image), image.pad({1, 1, 1, 1}));
  expect_same(ConstantPad1d({0, 1}, 2.5)(line), line.pad({0, 1}, 2.5));
  EXPECT_THROW(ZeroPad2d({1, 2, 3}), InvalidArgument);
  const Tensor even = Tensor::full({1, 3, 2}, 2, kCpu);
  // Two neighbours of four, and three.
  expect_same(LocalResponseNorm(3, 3, 1, 0)(even).select(2, 0).flatten(),
              Tensor::from({0.25f, 1.0f / 6, 0.25f}, {3}, kCpu));
  expect_same(Upsample({}, {2}, "bilinear")(image), image.interpolate({}, {2}, "bilinear"));
  expect_same(Fold({6, 8}, 2, 1, 0, 2)(Unfold(2, 1, 0, 2)(image)), image);
  expect_same(PixelUnshuffle(2)(PixelShuffle(2)(image)), image);
  expect_same(ChannelShuffle(2)(ChannelShuffle(2)(image)), image);
}

TEST(MoreLayers, NormsOfParts) {
  const Tensor x = random({2, 6, 3, 4}) * 3.0 + 1.0;
  const auto standard = [](const Tensor& t, int64_t parts) {
    const Tensor rows = t.reshape({2, parts, -1});
    EXPECT_LT(largest(rows.mean({-1})), 1e-5);
    EXPECT_LT(largest(rows.var({-1}, false, 0) - 1.0), 1e-3);
  };
  GroupNorm group(3, 6, 1e-5, true, kCpu);
  InstanceNorm instance(6, 1e-5, false, kCpu);
  standard(group(x), 3);
  standard(instance(x), 6);
  group.set_tensor("weight", Tensor::arange(0, 6, 1, kCpu));
  EXPECT_EQ(group(x)[0][0].abs().sum().item(), 0);
  EXPECT_TRUE(instance.parameters().empty());
  LayerNorm2d channels(6, 1e-6, kCpu);
  const Tensor y = channels(x);
  EXPECT_LT(largest(y.mean({1})), 1e-5);
  EXPECT_LT(largest(y.var({1}, false, 0) - 1.0), 1e-3);
  EXPECT_THROW(GroupNorm(4, 6), InvalidArgument);
  EXPECT_THROW(group(random({2, 4, 3})), ShapeError);
  EXPECT_THROW(instance(random({2, 6})), ShapeError);
  EXPECT_THROW(channels(random({2, 6, 3})), ShapeError);
}

TEST(MoreLayers, PaddingIsZeroAndStaysSo) {
  const Embedding e(5, 3, kCpu, -4);
  EXPECT_EQ(e.padding_idx, 1);
  EXPECT_EQ(largest(e.weight[1]), 0);
  EXPECT_GT(largest(e.weight[0]), 0);
  e(indices({1, 2, 1}, {3})).sum().backward();
  EXPECT_EQ(e.weight.grad().sum({1}).to_vector<float>(), (std::vector<float>{0, 0, 3, 0, 0}));
  EXPECT_THROW(Embedding(5, 3, kCpu, 5), InvalidArgument);
  EXPECT_THROW(Embedding(5, 3, kCpu, -6), InvalidArgument);
}

TEST(MoreLayers, BagsOfRows) {
  const Tensor weight = Tensor::from({1, -1, 2, -2, 4, -4}, {3, 2}, kCpu);
  const Tensor bags = indices({0, 1, 2, 2, 2, 2}, {2, 3});
  using Floats = std::vector<float>;
  EXPECT_EQ(EmbeddingBag(weight, "sum")(bags).to_vector<float>(), (Floats{7, -7, 12, -12}));
  EXPECT_EQ(EmbeddingBag(weight, "max")(bags).to_vector<float>(), (Floats{4, -1, 4, -4}));
  EXPECT_EQ(EmbeddingBag(weight, "mean", 2)(bags).to_vector<float>(), (Floats{1.5f, -1.5f, 0, 0}));
  EXPECT_EQ(EmbeddingBag(weight, "max", 2)(bags).to_vector<float>(), (Floats{2, -1, 0, 0}));
  EXPECT_THROW(EmbeddingBag(weight, "least"), InvalidArgument);
  // A dtype without infinities.
  const EmbeddingBag narrow(weight.cast(DType::F8E4M3FN), "max", 2);
  EXPECT_EQ(narrow(bags).cast(DType::F32).to_vector<float>(), (Floats{2, -1, 0, 0}));
  const EmbeddingBag mean(weight);
  EXPECT_THROW(mean(indices({0}, {1})), ShapeError);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

TEST(MoreLayers, CellsFollowTheirFormulas) {
  const double x = 0.5, h = -0.25, c = 0.75;
  const Tensor in = Tensor::full({1, 1}, x, kCpu), before = Tensor::full({1, 1}, h, kCpu);
  LSTMCell lstm(1, 1, false, kCpu);
  lstm.weight_ih = Tensor::from({1, 2, 3, 4}, {4, 1}, kCpu);
  lstm.weight_hh = Tensor::from({-1, 1, 2, -2}, {4, 1}, kCpu);
  const auto [y, next] = lstm(in, before, Tensor::full({1, 1}, c, kCpu));
  const double cell = sigmoid(2 * x + h) * c + sigmoid(x - h) * std::tanh(3 * x + 2 * h);
  EXPECT_NEAR(next.item(), cell, 1e-6);
  EXPECT_NEAR(y.item(), sigmoid(4 * x - 2 * h) * std::tanh(cell), 1e-6);
  GRUCell gru(1, 1, false, kCpu);
  gru.weight_ih = Tensor::from({1, 2, 3}, {3, 1}, kCpu);
  gru.weight_hh = Tensor::from({-1, 1, 2}, {3, 1}, kCpu);
  const double r = sigmoid(x - h), z = sigmoid(2 * x + h), n = std::tanh(3 * x + r * 2 * h);
  EXPECT_NEAR(gru(in, before).item(), (1 - z) * n + z * h, 1e-6);
  RNNCell rnn(1, 1, false, "relu", kCpu);
  rnn.weight_ih = Tensor::full({1, 1}, 4.0, kCpu);
  rnn.weight_hh = Tensor::full({1, 1}, 2.0, kCpu);
  EXPECT_NEAR(rnn(in, before).item(), 4 * x + 2 * h, 1e-6);
  EXPECT_NEAR(rnn(in).item(), 4 * x, 1e-6);
  EXPECT_THROW(rnn(random({1, 2})), ShapeError);
  EXPECT_THROW(RNNCell(1, 1, true, "sine"), InvalidArgument);
}

// A layer over a sequence is its cell over the steps, backwards for the second direction.
TEST(MoreLayers, SequencesAreCellsInALoop) {
  const LSTM layer(3, 4, {.bidirectional = true}, kCpu);
  const Tensor x = random({5, 2, 3});
  const auto [y, h, c] = layer(x);
  EXPECT_EQ(y.sizes(), (Sizes{5, 2, 8}));
  for (const bool back : {false, true}) {
    LSTMCell cell(3, 4, true, kCpu);
    const std::string way = back ? "_l0_reverse" : "_l0";
    for (const NamedTensor& t : layer.state_dict()) {
      for (const char* name : {"weight_ih", "weight_hh", "bias_ih", "bias_hh"})
        if (t.name == name + way) cell.set_tensor(name, t.tensor);
    }
    std::pair<Tensor, Tensor> state{Tensor::zeros({2, 4}, kCpu), Tensor::zeros({2, 4}, kCpu)};
    for (int64_t t = 0; t < 5; t++) {
      const int64_t at = back ? 4 - t : t;
      state = cell(x[at], state.first, state.second);
      expect_same(y[at].narrow(1, back ? 4 : 0, 4), state.first);
    }
    expect_same(h[back], state.first);
    expect_same(c[back], state.second);
  }
}

// Each of a padded batch is what it is alone, whatever the padding holds.
TEST(MoreLayers, SequencesHaveLengthsOfTheirOwn) {
  const GRU layer(3, 4, {.num_layers = 2, .batch_first = true, .bidirectional = true}, kCpu);
  const std::vector<int64_t> lengths{2, 5, 1, 0};
  const Tensor x = random({4, 5, 3}), first = random({4, 4, 4});
  const Tensor there = Tensor::arange(0, 5, 1, {DType::I64, "CPU"}) <
                       Tensor::from(lengths, {4, 1}, kCpu);
  const Tensor padded = Tensor::where(there.unsqueeze(-1), x, double(NAN));
  const auto [y, h] = layer(padded, first, Tensor::from(lengths, {4}, kCpu));
  for (int64_t i = 0; i < 4; i++) {
    const int64_t n = lengths[size_t(i)];
    EXPECT_EQ(largest(y[i].narrow(0, n, 5 - n)), 0) << i;
    const Tensor before = first.narrow(1, i, 1);
    if (n == 0) {
      expect_same(h.narrow(1, i, 1), before, 1e-9);
      continue;
    }
    const auto [alone, end] = layer(x.narrow(0, i, 1).narrow(1, 0, n), before);
    expect_same(y[i].narrow(0, 0, n), alone[0]);
    expect_same(h.narrow(1, i, 1), end);
  }
  EXPECT_THROW(layer(x, first, Tensor::ones({4}, kCpu)), InvalidArgument);
  EXPECT_THROW(layer(x, first, indices({1, 2}, {2})), ShapeError);
}

TEST(MoreLayers, WeightsOfFourBits) {
  const Linear whole(64, 12, true, kCpu);
  for (const bool symmetric : {false, true}) {
    const LinearInt4 packed(whole, 16, symmetric);
    EXPECT_EQ(packed.packed.sizes(), (Sizes{12, 32}));
    EXPECT_EQ(packed.parameters().size(), 1u);
    EXPECT_EQ(packed.state_dict().size(), symmetric ? 3u : 4u);
    const Tensor decoded =
        dequantize_int4(packed.packed, packed.scales, packed.zeros, 16);
    const Tensor wrong = (decoded - whole.weight).detach().abs().reshape({12, 4, 16});
    // Of the largest magnitude, +7.5 scales, 7 are there.
    EXPECT_LE(largest(wrong / packed.scales.unsqueeze(-1)), 0.5 + 1e-3);
    for (const int64_t rows : {1, 5, 9}) {
      Tensor x = random({rows, 64});
      x.set_requires_grad();
      const Tensor y = packed(x);
      expect_same(y, x.linear(decoded, whole.bias));
      y.square().sum().backward();
      expect_same(x.grad(), (y * 2).matmul(decoded), 1e-4);
    }
    LinearInt4 other(64, 12, true, 16, symmetric, kCpu);
    other.load_state_dict(packed.state_dict());
    const Tensor x = random({2, 64});
    expect_same(other(x), packed(x), 1e-9);
  }
  // Groups of zeros alone, and numbers of one sign.
  const Tensor w = Tensor::from({0, 0, 1, 3}, {2, 2}, kCpu);
  const Int4Weight q = quantize_int4(w, 2);
  expect_same(dequantize_int4(q.packed, q.scales, q.zeros, 2), w, 1e-6);
  EXPECT_THROW(LinearInt4(whole, 5), InvalidArgument);
}

TEST(MoreLayers, SequencesOfSeveralLayers) {
  const GRU both(3, 4, {.num_layers = 2, .batch_first = true}, kCpu);
  GRU lower(3, 4, {}, kCpu), upper(4, 4, {}, kCpu);
  for (const NamedTensor& t : both.state_dict()) {
    const std::string name = t.name.substr(0, t.name.size() - 1) + "0";
    (t.name.back() == '0' ? lower : upper).load_state_dict({{name, t.tensor}}, false);
  }
  const Tensor x = random({2, 5, 3}), start = random({2, 2, 4});
  const auto [y, h] = both(x, start);
  const auto [inner, first] = lower(x.transpose(0, 1), start.narrow(0, 0, 1));
  const auto [outer, second] = upper(inner, start.narrow(0, 1, 1));
  expect_same(y, outer.transpose(0, 1));
  expect_same(h, Tensor::cat({first, second}));
  EXPECT_THROW(both(random({2, 5, 4})), ShapeError);
  EXPECT_THROW(both(x, random({1, 2, 4})), ShapeError);
  EXPECT_THROW(GRU(3, 4, {.num_layers = 0}), InvalidArgument);
  EXPECT_THROW(GRU(3, 4, {.dropout = 2}), InvalidArgument);
}

TEST(MoreLayers, SequencesAreTrainedInACapturedStep) {
  const RNN layer(2, 3, {}, "tanh", kCpu);
  const Tensor weight = layer.parameters()[0];
  const auto gradient = [&](const Tensor& x) {
    return layer(x).first.square().sum().gradient({weight})[0];
  };
  Jit jit([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{gradient(in[0])}; });
  for (int i = 0; i < 4; i++) {
    const Tensor x = random({4, 2, 2});
    expect_same(jit({x})[0], gradient(x));
  }
  EXPECT_TRUE(jit.captured());
}

TEST(MoreLayers, AttentionGivesItsWeights) {
  const MultiHeadAttention attention(8, 2, 0, true, kCpu, 5, 7);
  const Tensor q = random({2, 3, 8}), k = random({2, 4, 5}), v = random({2, 4, 7});
  const Tensor padding =
      Tensor::from({0, 0, 0, 1, 0, 0, 1, 1}, {2, 4}, kCpu).cast(DType::Bool);
  const auto [y, weights] = attention.with_weights(q, k, v, {}, false, padding);
  expect_same(y, attention(q, k, v, {}, false, padding));
  EXPECT_EQ(weights.sizes(), (Sizes{2, 3, 4}));
  EXPECT_LT(largest(weights.sum({-1}) - 1.0), 1e-5);
  EXPECT_EQ(largest(weights.masked_fill(padding.logical_not().unsqueeze(1), 0)), 0);
  // What is ignored changes nothing.
  const Tensor other = Tensor::where(padding.unsqueeze(-1), 100.0, k);
  expect_same(attention(q, other, v, {}, false, padding), y);
  const auto [same, apart] = attention.with_weights(q, k, v, {}, true, {}, false);
  EXPECT_EQ(apart.sizes(), (Sizes{2, 2, 3, 4}));
  EXPECT_EQ(largest(apart.triu(1)), 0);
  expect_same(same, attention(q, k, v, {}, true));
  EXPECT_THROW(attention(q, k, v, padding, true, padding), InvalidArgument);
  EXPECT_THROW(attention(q, k, v, {}, false, padding.cast(DType::F32)), ShapeError);
  EXPECT_THROW(attention(q, q, v), ShapeError);
}

TEST(MoreLayers, TransformersAreAttentionAndLayers) {
  for (const bool norm_first : {false, true}) {
    const TransformerOptions options{
        .dim_feedforward = 16, .activation = "gelu", .norm_first = norm_first};
    const TransformerEncoder encoder(8, 2, 2, options, true, kCpu);
    const Tensor x = random({2, 3, 8});
    Tensor wanted = x;
    for (const TransformerEncoderLayer& l : encoder.layers) {
      const auto feed = [&](const Tensor& y) { return l.linear2(l.linear1(y).gelu()); };
      if (norm_first) {
        wanted = wanted + l.self_attn(l.norm1(wanted), true);
        wanted = wanted + feed(l.norm2(wanted));
      } else {
        wanted = l.norm1(wanted + l.self_attn(wanted, true));
        wanted = l.norm2(wanted + feed(wanted));
      }
    }
    expect_same(encoder(x, {}, true), (*encoder.norm)(wanted), 1e-4);
  }
  const TransformerDecoder decoder(8, 2, 2, {.dim_feedforward = 16}, false, kCpu);
  const Tensor x = random({2, 3, 8}), memory = random({2, 4, 8});
  Tensor wanted = x;
  for (const TransformerDecoderLayer& l : decoder.layers) {
    wanted = l.norm1(wanted + l.self_attn(wanted, true));
    wanted = l.norm2(wanted + l.multihead_attn(wanted, memory, memory));
    wanted = l.norm3(wanted + l.linear2(l.linear1(wanted).relu()));
  }
  expect_same(decoder(x, memory, {}, {}, true), wanted, 1e-4);
  EXPECT_EQ(decoder.state_dict()[0].name, "layers.0.self_attn.in_proj_weight");
  EXPECT_THROW(TransformerEncoderLayer(8, 2, {.activation = "tanh"}), InvalidArgument);
  EXPECT_THROW(TransformerDecoder(8, 2, 0), InvalidArgument);
}

TEST(MoreLayers, ATransformerIsEncoderAndDecoder) {
  const Transformer both(8, 2, 1, 2, {.dim_feedforward = 16}, kCpu);
  const Tensor src = random({2, 5, 8}), tgt = random({2, 3, 8});
  const Tensor mask = Transformer::generate_square_subsequent_mask(3, kCpu);
  EXPECT_EQ(mask.to_vector<float>()[1], -INFINITY);
  EXPECT_EQ(mask.to_vector<float>()[3], 0);
  const Tensor wanted = both.decoder(tgt, both.encoder(src), {}, {}, true);
  expect_same(both(src, tgt, {}, mask), wanted);
  expect_same(both(src, tgt, {}, {}, {}, {}, {}, {}, false, true), wanted);
  EXPECT_EQ(both.state_dict()[0].name, "encoder.layers.0.self_attn.in_proj_weight");
  // Within Glorot's bound, sqrt(6 / (in + out)).
  EXPECT_LT(largest(both.encoder.layers[0].linear1.weight), 0.5);
}

TEST(MoreLayers, TransformersDropInTrainingAlone) {
  TransformerEncoderLayer layer(8, 2, {.dim_feedforward = 16, .dropout = 0.5}, kCpu);
  const Tensor x = random({2, 3, 8});
  EXPECT_EQ(layer(x).to_vector<float>(), layer(x).to_vector<float>());
  layer.train();
  EXPECT_NE(layer(x).to_vector<float>(), layer(x).to_vector<float>());
}

}  // namespace
}  // namespace tuff::nn::layers_tests
