// Tensors on several devices against the same on one: what they hold, functions along the axis that
// is cut and others, gradients, training in a Jit and out of it, state in files, and refusals.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <functional>

#include <tuff/io.h>
#include <tuff/jit.h>
#include <tuff/layers.h>
#include <tuff/optim.h>
#include <tuff/scan.h>
#include <tuff/tensor.h>
#include "engine/device.h"
#include "ir/device_group.h"
#include "tensor/devices.h"

namespace tuff::test {
namespace {

using Floats = std::vector<float>;
using Names = std::vector<std::string>;
using Axis = std::optional<int64_t>;

std::vector<std::string> groups() {
  std::vector<std::string> out{"CPU,CPU:1"};
  for (const std::string& d : devices())
    if (d != "CPU") out.push_back(engine::canonical_device("CPU," + d));
  if (const auto gpus = vulkan_devices(); gpus.size() > 1) out.push_back(gpus[0] + "," + gpus[1]);
  return out;
}

Tensor numbers(const Sizes& sizes, int seed) {
  const int64_t n = int64_t(Tensor::zeros(sizes, {.device = "CPU"}).numel());
  Floats v;
  for (int64_t i = 0; i < n; i++) v.push_back(float((i * 37 + seed * 101) % 29 - 14) / 8);
  return Tensor::from(v, sizes, {.device = "CPU"});
}

void expect_near(const Tensor& got, const Tensor& want, double within = 2e-6) {
  ASSERT_EQ(got.sizes(), want.sizes());
  const Floats a = got.to_vector<float>(), b = want.to_vector<float>();
  for (size_t i = 0; i < a.size(); i++)
    EXPECT_NEAR(a[i], b[i], within * (1 + std::abs(b[i]))) << "element " << i;
}

class Shards : public testing::TestWithParam<std::string> {
 protected:
  Names names() const { return ir::group_members(GetParam()); }
  Tensor on(const Tensor& t, Axis axis = {}) const { return t.shard(names(), axis); }
};
INSTANTIATE_TEST_SUITE_P(Groups, Shards, testing::ValuesIn(groups()), [](const auto& info) {
  std::string name = info.param;
  for (char& c : name)
    if (c == ':' || c == ',') c = '_';
  return name;
});

TEST_P(Shards, HoldTheWholeInPartsOrCopies) {
  const Tensor x = numbers({4, 6}, 1);
  for (const Axis axis : {Axis(), Axis(0), Axis(1), Axis(-1)}) {
    Tensor s = on(x, axis);
    EXPECT_EQ(s.device(), GetParam());
    EXPECT_EQ(s.shard_axis(), axis && *axis < 0 ? Axis(1) : axis);
    EXPECT_EQ(s.to_vector<float>(), x.to_vector<float>());
    EXPECT_TRUE(s.is_realized());
    EXPECT_EQ(s.to("CPU").to_vector<float>(), x.to_vector<float>());
    EXPECT_EQ(s[1][2].item(), x[1][2].item());
    const Floats other = (x + 1).to_vector<float>();
    const Tensor before = s.detach(), more = s + 1;
    s.copy_from(other.data(), other.size() * sizeof(float));
    EXPECT_EQ(s.to_vector<float>(), other);
    EXPECT_EQ(before.to_vector<float>(), x.to_vector<float>());
    EXPECT_EQ(more.to_vector<float>(), other);
    EXPECT_EQ(on(s, 1).to_vector<float>(), other);
  }
  const Tensor same = on(x, 0);
  EXPECT_EQ(on(same, 0).impl(), same.impl());
  EXPECT_EQ(numbers({4}, 2).shard_like(same).shard_axis(), Axis(0));
  EXPECT_EQ(same.shard_like(x).device(), "CPU");
  const std::string path = testing::TempDir() + "shards.bin";
  same.to("DISK:" + path).realize();
  const Tensor read = Tensor::from_file(path, {4, 6}, DType::F32);
  EXPECT_EQ(read.to("CPU").to_vector<float>(), x.to_vector<float>());
  std::filesystem::remove(path);
  EXPECT_EQ(Tensor::arange(6).to(GetParam()).shard(names(), 0).sum().item(), 15);
}

TEST_P(Shards, WritesStayWhereTheyAre) {
  Tensor x = on(numbers({4, 6}, 1), 0).realize();
  const Tensor plain = numbers({4, 6}, 1), held = x;
  const Tensor view = x.reshape({2, 2, 6}), copy = x.to("CPU").realize(), row = x[0];
  x += on(numbers({4, 6}, 2));
  x.realize();
  EXPECT_EQ(held.shard_axis(), Axis(0));
  EXPECT_EQ(held.to_vector<float>(), (plain + numbers({4, 6}, 2)).to_vector<float>());
  EXPECT_EQ(view.to_vector<float>(), plain.to_vector<float>());
  EXPECT_EQ(copy.to_vector<float>(), plain.to_vector<float>());
  EXPECT_EQ(row.to_vector<float>(), plain[0].to_vector<float>());
  Tensor y = on(plain, 0).realize();
  y.index_put_({indexing::Slice(1, 3)}, on(numbers({2, 6}, 3)));  // across both parts
  y.index_put_({indexing::Slice(), indexing::Slice(0, 2)}, on(numbers({4, 2}, 4)));
  Tensor want = plain.clone().realize();
  want.index_put_({indexing::Slice(1, 3)}, numbers({2, 6}, 3));
  want.index_put_({indexing::Slice(), indexing::Slice(0, 2)}, numbers({4, 2}, 4));
  EXPECT_EQ(y.to_vector<float>(), want.to_vector<float>());
  EXPECT_EQ(y.shard_axis(), Axis(0));
}

// Of the whole and of parts along each axis; gradients too.
TEST_P(Shards, FunctionsAlongTheCutAxisAndOthers) {
  using F = std::function<Tensor(const Tensor&)>;
  const std::pair<const char*, F> functions[] = {
      {"sum0", [](const Tensor& x) { return x.sum({0}); }},
      {"sum1", [](const Tensor& x) { return x.sum({1}); }},
      {"mean", [](const Tensor& x) { return x.mean(); }},
      {"max0", [](const Tensor& x) { return x.amax({0}); }},
      {"prod1", [](const Tensor& x) { return (x / 4).prod({1}); }},
      {"softmax0", [](const Tensor& x) { return x.softmax(0); }},
      {"softmax1", [](const Tensor& x) { return x.softmax(1); }},
      {"argmax", [](const Tensor& x) { return x.argmax(1).cast(DType::F32) + x.sum({1}); }},
      {"argmax0", [](const Tensor& x) { return x.argmax(0).cast(DType::F32) + x.sum({0}); }},
      {"moved", [](const Tensor& x) { return x.transpose(0, 1).flip({0}).exp(); }},
      {"merged", [](const Tensor& x) { return x.reshape({3, 8}).cumsum(0).abs(); }},
      {"split", [](const Tensor& x) { return x.reshape({4, 2, 3}).sum({2}); }},
      {"sliced", [](const Tensor& x) { return x.narrow(0, 1, 2) * x.narrow(1, 0, 3).sum(); }},
      {"padded", [](const Tensor& x) { return x.pad({1, 2, 0, 1}) * 2; }},
      {"joined", [](const Tensor& x) { return Tensor::cat({x, x * 2}, 0).sort(0).first; }},
      {"layernorm", [](const Tensor& x) { return x.layernorm({6}); }},
  };
  for (const auto& [name, f] : functions) {
    for (const Axis axis : {Axis(), Axis(0), Axis(1)}) {
      SCOPED_TRACE(fmt::format("{} {}", name, axis ? *axis : -1));
      const Tensor plain = numbers({4, 6}, 5).set_requires_grad();
      const Tensor cut = on(numbers({4, 6}, 5), axis).realize().set_requires_grad();
      const Tensor want = f(plain), got = f(cut);
      (want * want).sum().backward();
      (got * got).sum().backward();
      expect_near(got, want);
      ASSERT_TRUE(cut.grad().defined());
      expect_near(cut.grad(), plain.grad(), 1e-5);
    }
  }
}

TEST_P(Shards, ProductsAlongEachAxis) {
  const Tensor a = numbers({4, 6}, 1), b = numbers({6, 8}, 2), want = a.matmul(b);
  expect_near(on(a, 0).matmul(on(b)), want);
  expect_near(on(a).matmul(on(b, 1)), want);
  expect_near(on(a, 1).matmul(on(b, 0)), want);
  expect_near(on(a, 0).matmul(on(b, 1)), want);
  expect_near(on(a, 0).matmul(on(b, 0)), want);
  EXPECT_EQ(on(a, 0).matmul(on(b)).shard_axis(), Axis(0));
  EXPECT_EQ(on(a).matmul(on(b, 1)).shard_axis(), Axis(1));
  EXPECT_EQ(on(a, 1).matmul(on(b, 0)).shard_axis(), Axis());
}

TEST_P(Shards, LinearInPartsOfOutputsAndInputs) {
  const Tensor x = numbers({4, 6}, 1).set_requires_grad();
  const Tensor w = numbers({8, 6}, 2).set_requires_grad(), bias = numbers({8}, 3);
  const Tensor want = x.linear(w, bias);
  (want * want).sum().backward();
  for (const int64_t axis : {0, 1}) {
    Tensor v = numbers({8, 6}, 2).set_requires_grad();
    v.shard_(names(), axis);
    EXPECT_TRUE(v.requires_grad());
    const Tensor in = numbers({4, 6}, 1).set_requires_grad();
    const Tensor got = on(in).linear(v, on(bias));
    EXPECT_EQ(got.shard_axis(), axis == 0 ? Axis(1) : Axis());
    (got * got).sum().backward();
    expect_near(got, want);
    EXPECT_EQ(v.grad().shard_axis(), axis == 0 ? Axis(0) : Axis());  // of inputs each has all
    expect_near(v.grad(), w.grad());
    EXPECT_EQ(in.grad().device(), "CPU");  // where it was
    expect_near(in.grad(), x.grad());
  }
}

TEST_P(Shards, Loops) {
  const auto run = [](const Tensor& h, const Tensor& x, const Tensor& w) {
    const Scanned all = scan(
        [&](const Tensors& s, const Tensors& rows) {
          const Tensor next = (s[0].matmul(w) / 8 + rows[0]).tanh();
          return Scanned{{next}, {next}};
        },
        {h}, {x});
    return all.outputs[0];
  };
  const Tensor h = numbers({2, 3}, 1), x = numbers({4, 2, 3}, 2);
  const Tensor w = numbers({3, 3}, 3).set_requires_grad();
  const Tensor v = on(numbers({3, 3}, 3)).realize().set_requires_grad();
  const Tensor want = run(h, x, w), got = run(on(h), on(x, 1), v);
  (want * want).sum().backward();
  (got * got).sum().backward();
  expect_near(got, want, 1e-5);
  expect_near(v.grad(), w.grad(), 1e-5);
}

TEST_P(Shards, EmbeddingsAndScatters) {
  const Tensor table = numbers({8, 4}, 1), index =
      Tensor::from(std::vector<int32_t>{3, 7, 0, 3}, {4}, {.device = "CPU"});
  const auto of = [](Tensor t, const Tensor& i) {
    t.set_requires_grad();
    const Tensor out = Tensor::embedding(t, i);
    (out * out).sum().backward();
    return std::pair(out, t.grad());
  };
  const auto [want, gradient] = of(table.clone(), index);
  for (const auto& [cut, places] :
       {std::pair<Axis, Axis>{{}, 0}, {0, {}}, {1, {}}, {1, 0}, {0, 0}}) {
    const auto [got, g] = of(on(table, cut).realize(), on(index, places));
    expect_near(got, want);
    expect_near(g, gradient);
  }
}

TEST_P(Shards, AllReduce) {
  const Tensor a = numbers({3}, 1), b = numbers({3}, 2);
  const std::vector<Tensor> on_each{a.to(names()[0]), b.to(names()[1])};
  const std::pair<const char*, Tensor> results[] = {{"sum", a + b},
                                                    {"mean", (a + b) / 2},
                                                    {"max", a.maximum(b)},
                                                    {"min", a.minimum(b)},
                                                    {"prod", a * b}};
  for (const auto& [op, want] : results) {
    const std::vector<Tensor> out = all_reduce(on_each, op);
    for (size_t i = 0; i < 2; i++) {
      EXPECT_EQ(out[i].device(), names()[i]);
      EXPECT_EQ(out[i].to_vector<float>(), want.to_vector<float>());
    }
    const Tensor both = on(Tensor::cat({a, b}, 0), 0).all_reduce(op);
    EXPECT_EQ(both.to_vector<float>(), want.to_vector<float>());
    EXPECT_EQ(both.shard_axis(), Axis());
  }
  EXPECT_EQ(on(a).all_reduce().to_vector<float>(), (a * 2).to_vector<float>());
  EXPECT_EQ(on(a).all_reduce("max").to_vector<float>(), a.to_vector<float>());
}

TEST_P(Shards, RandomNumbersAreThoseOfTheFirstDevice) {
  const auto drawn = [](const std::string& device) {
    Tensor::manual_seed(7);
    return Tensor::rand({8}, {.device = device}).to_vector<float>();
  };
  EXPECT_EQ(drawn(GetParam()), drawn(names()[0]));
}

struct Net {
  nn::Linear first{numbers({8, 6}, 1) / 4, numbers({8}, 2)};
  nn::Linear second{numbers({4, 8}, 3) / 4, numbers({4}, 4)};
  std::vector<Tensor> parameters() const {
    return {first.weight, first.bias, second.weight, second.bias};
  }
  Net() {
    for (Tensor p : parameters()) p.realize().set_requires_grad();
  }
  Tensor loss(const Tensor& x, const Tensor& y) const {
    return second(first(x).relu()).cross_entropy(y);
  }
};

// Losses of ten steps; the batch in parts of the devices, or on one.
Floats train(const Net& net, optim::Optimizer& optimizer, bool captured,
             const std::function<Tensor(const Tensor&)>& place) {
  const auto step = [&](const std::vector<Tensor>& batch) {
    const Tensor loss = net.loss(batch[0], batch[1]);
    loss.backward();
    optimizer.step();
    return std::vector<Tensor>{loss};
  };
  Jit jit(step);
  Floats out;
  for (int i = 0; i < 10; i++) {
    const Tensor x = place(numbers({4, 6}, i % 2)).realize();
    const Tensor y =
        place(Tensor::from(std::vector<int32_t>{1, 3, 2, 0}, {4}, {.device = "CPU"})).realize();
    out.push_back(float(captured ? jit({x, y})[0].item() : step({x, y})[0].item()));
  }
  EXPECT_EQ(jit.captured(), captured);
  return out;
}

using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(const Net&)>;
std::unique_ptr<optim::Optimizer> momentum(const Net& net) {
  return std::make_unique<optim::SGD>(net.parameters(),
                                      optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
}
std::unique_ptr<optim::Optimizer> adam(const Net& net) {
  return std::make_unique<optim::Adam>(net.parameters(), optim::AdamOptions{.lr = 0.05});
}

TEST_P(Shards, TrainsAsOneDevice) {
  for (const MakeOptimizer& make : {MakeOptimizer(momentum), MakeOptimizer(adam)}) {
    const Net one;
    const auto plain = make(one);
    const Floats want = train(one, *plain, false, [](const Tensor& t) { return t; });
    EXPECT_LT(want.back(), want.front());
    for (const bool captured : {false, true}) {
      const Net net;
      for (Tensor p : net.parameters()) p.shard_(names());
      const auto optimizer = make(net);
      const Floats got =
          train(net, *optimizer, captured, [&](const Tensor& t) { return on(t, 0); });
      for (size_t i = 0; i < want.size(); i++) EXPECT_NEAR(got[i], want[i], 2e-5) << i;
      for (size_t i = 0; i < 4; i++)
        expect_near(net.parameters()[i], one.parameters()[i], 5e-5);
    }
  }
}

// Weights in parts of outputs, then of inputs; the optimizer's state lies as they do.
TEST_P(Shards, TrainsInPartsOfWeights) {
  const Net one;
  const auto plain = adam(one);
  const Floats want = train(one, *plain, false, [](const Tensor& t) { return t; });
  const Net net;
  Tensor(net.first.weight).shard_(names(), 0);
  Tensor(net.first.bias).shard_(names(), 0);
  Tensor(net.second.weight).shard_(names(), 1);
  Tensor(net.second.bias).shard_(names());
  const auto optimizer = adam(net);
  const Floats got = train(net, *optimizer, true, [&](const Tensor& t) { return on(t); });
  for (size_t i = 0; i < want.size(); i++) EXPECT_NEAR(got[i], want[i], 2e-5) << i;
  EXPECT_EQ(net.second.weight.shard_axis(), Axis(1));
  for (const nn::NamedTensor& t : optimizer->state_dict()) {
    if (t.tensor.dim() != 2) continue;
    const bool first = t.tensor.sizes() == net.first.weight.sizes();
    EXPECT_EQ(t.tensor.shard_axis(), Axis(first ? 0 : 1)) << t.name;
  }
}

TEST_P(Shards, StateIsWholeInFiles) {
  nn::Linear layer(numbers({8, 6}, 1), numbers({8}, 2));
  layer.weight.shard_(names(), 0), layer.bias.shard_(names());
  const std::string path = testing::TempDir() + "shards.safetensors";
  TensorDict state;
  for (const nn::NamedTensor& t : layer.state_dict()) state.set(t.name, t.tensor);
  save(path, state);
  nn::Linear other(numbers({8, 6}, 3), numbers({8}, 4));
  other.weight.shard_(names(), 1), other.bias.shard_(names(), 0);
  nn::StateDict read;
  const TensorDict file = load(path, {.device = "CPU"});
  for (const char* name : {"weight", "bias"}) read.push_back({name, file.at(name), true});
  nn::load_state_dict(other.state_dict(), read);
  EXPECT_EQ(other.weight.to_vector<float>(), numbers({8, 6}, 1).to_vector<float>());
  EXPECT_EQ(other.bias.to_vector<float>(), numbers({8}, 2).to_vector<float>());
  EXPECT_EQ(other.weight.shard_axis(), Axis(1));
  other.to(GetParam());
  EXPECT_EQ(other.weight.shard_axis(), Axis(1));
  other.to("CPU");
  EXPECT_EQ(other.weight.device(), "CPU");
  EXPECT_EQ(other.weight.to_vector<float>(), numbers({8, 6}, 1).to_vector<float>());
  std::filesystem::remove(path);
}

TEST_P(Shards, ResultsOfAJitThatAreHeldStay) {
  Jit doubled([](const std::vector<Tensor>& x) { return std::vector<Tensor>{x[0] * 2, x[1] + 1}; });
  std::vector<Tensor> held;
  for (int i = 0; i < 5; i++)
    held.push_back(
        doubled({on(numbers({4}, i), 0).realize(), numbers({2}, i).realize()})[0]);
  for (int i = 0; i < 5; i++)
    EXPECT_EQ(held[size_t(i)].to_vector<float>(), (numbers({4}, i) * 2).to_vector<float>());
  EXPECT_EQ(held[4].shard_axis(), Axis(0));
  EXPECT_THROW(doubled({on(numbers({4}, 0)).realize(), numbers({2}, 0)}), InvalidArgument);
}

// Three devices: sums have one order everywhere, axes are cut in three.
TEST(ShardsOfThree, SumsAndLayouts) {
  const Names three{"CPU", "CPU:1", "CPU:2"};
  const Tensor x = numbers({6, 9}, 1);
  const Tensor s = x.shard(three, 1);
  expect_near(s.sum({1}), x.sum({1}));
  expect_near(s.shard(three, 0).softmax(1), x.softmax(1));
  expect_near(s.reshape({54}), x.reshape({54}));
  expect_near(s.all_reduce(), x.reshape({6, 3, 3}).sum({1}));
}

template <class E>
void expect_refused(const char* part, const std::function<void()>& f) {
  try {
    f();
    ADD_FAILURE() << "not refused: " << part;
  } catch (const E& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

TEST(ShardsRefused, NamesAndFixes) {
  const Names two{"CPU", "CPU:1"};
  const Tensor x = numbers({5, 6}, 1);
  expect_refused<ShapeError>(
      "axis 0 of (5, 6) has 5 elements, which 2 devices do not divide: pad() or narrow() it to 6 or 4",
      [&] { x.shard(two, 0); });
  expect_refused<InvalidArgument>("CPU is named twice", [&] { x.shard({"CPU", "CPU:0"}, 0); });
  expect_refused<InvalidArgument>("no devices", [&] { x.shard({}); });
  expect_refused<IndexError>("axis 2 is outside", [&] { x.shard(two, 2); });
  expect_refused<InvalidArgument>("move one with shard_like(the other)",
                                  [&] { x + x.shard(two); });
  expect_refused<InvalidArgument>("move one with shard_like(the other)", [&] {
    x.shard(two) + x.shard({"CPU", "CPU:1", "CPU:2"});
  });
  expect_refused<ShapeError>("in parts of axis 1, which (5,) does not have",
                             [&] { numbers({5}, 1).shard_like(x.shard(two, 1)); });
  expect_refused<InvalidArgument>("none of sum, mean", [&] { x.shard(two).all_reduce("xor"); });
  expect_refused<InvalidArgument>("no tensors", [&] { all_reduce({}); });
  expect_refused<InvalidArgument>("to(\"CPU\") it", [&] { x.shard(two).data_ptr(); });
  expect_refused<InvalidArgument>("CPU:9", [&] { x.to("CPU:9"); });
}

}  // namespace
}  // namespace tuff::test
