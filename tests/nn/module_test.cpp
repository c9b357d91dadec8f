// Modules: what follows from members(): states by name, modes, moves, hooks, containers.
#include <gtest/gtest.h>

#include <tuff/jit.h>
#include <tuff/nn.h>
#include <tuff/optim.h>

#include <algorithm>
#include <string>

namespace tuff::nn::module_tests {
namespace {

const TensorOptions kCpu{.device = "CPU"};

// A residual block and a head, as a user writes them.
struct Block : Module {
  explicit Block(int64_t n) : conv(n, n, 3, 1, 1, false, kCpu), norm(n, 1e-5, 0.1, true, kCpu) {}
  Tensor operator()(const Tensor& x) const {
    return run(x, [&](const Tensor& in) { return norm(conv(in)).relu() + in; });
  }
  void members(Members& m) const override { m.module("conv", conv), m.module("norm", norm); }
  Conv2d conv;
  BatchNorm norm;
};

struct Net : Module {
  Net() {
    for (int i = 0; i < 2; i++) blocks.append(Block(2));
    heads.set("a", Linear(2, 3, true, kCpu)).set("b", Linear(2, 1, false, kCpu));
    scale = Tensor::full({1}, 2.0, kCpu).realize().set_requires_grad();
    table = Tensor::arange(0, 3, 1, {DType::I32, "CPU"}).realize();
  }
  Tensor operator()(const Tensor& x) const {
    Tensor y = x;
    for (const Block& b : blocks) y = b(y);
    return heads["a"](y.mean({-2, -1})) * scale;
  }
  void members(Members& m) const override {
    m.parameter("scale", scale), m.parameter("absent", absent);
    m.buffer("table", table, false);
    m.module("blocks", blocks), m.module("heads", heads);
  }
  ModuleList<Block> blocks;
  ModuleDict<Linear> heads;
  Tensor scale, absent, table;
};

std::vector<std::string> names(const StateDict& state) {
  std::vector<std::string> out;
  for (const NamedTensor& t : state) out.push_back(t.name);
  return out;
}

using Names = std::vector<std::string>;

TEST(Modules, NameWhatTheyConsistOf) {
  const Net net;
  const Names block{"conv.weight", "norm.weight", "norm.bias", "norm.running_mean",
                    "norm.running_var"};
  Names all{"scale"}, trained{"scale"}, buffers{"table"};
  for (const char* prefix : {"blocks.0.", "blocks.1."}) {
    for (const std::string& name : block) {
      all.push_back(prefix + name);
      (name.find("running") == std::string::npos ? trained : buffers).push_back(prefix + name);
    }
  }
  for (const char* head : {"heads.a.weight", "heads.a.bias", "heads.b.weight"})
    all.emplace_back(head), trained.emplace_back(head);
  EXPECT_EQ(names(net.state_dict()), all);
  EXPECT_EQ(names(net.named_parameters()), trained);
  EXPECT_EQ(names(net.named_buffers()), buffers);
  EXPECT_EQ(net.parameters().size(), trained.size());
  Names modules;
  for (const auto& [name, m] : net.named_modules()) modules.push_back(name);
  EXPECT_EQ(modules, (Names{"", "blocks", "blocks.0", "blocks.0.conv", "blocks.0.norm", "blocks.1",
                            "blocks.1.conv", "blocks.1.norm", "heads", "heads.a", "heads.b"}));
  EXPECT_TRUE(net.heads.contains("b"));
  EXPECT_THROW(net.heads["c"], InvalidArgument);
}

TEST(Modules, CountATensorOfTwoNamesOnce) {
  Linear a(3, 3, false, kCpu), b(a.weight);
  const Sequential tied(a, b);
  EXPECT_EQ(names(tied.state_dict()), (Names{"0.weight", "1.weight"}));
  EXPECT_EQ(names(tied.named_parameters()), Names{"0.weight"});
}

TEST(Modules, LoadInPartAndReportTheRest) {
  Net from, to;
  StateDict state = from.state_dict();
  std::erase_if(state, [](const NamedTensor& t) { return t.name == "heads.a.bias"; });
  state.push_back({"more", Tensor::ones({2}, kCpu)});
  state.push_back({"blocks.0.norm.num_batches_tracked", Tensor::ones({}, kCpu)});
  state.push_back({"blocks.0.conv.num_batches_tracked", Tensor::ones({}, kCpu)});
  const std::vector<float> bias = to.heads["a"].bias.to_vector<float>();
  EXPECT_THROW(to.load_state_dict(state), InvalidArgument);
  const LoadReport report = to.load_state_dict(state, false);
  EXPECT_EQ(report.missing_keys, Names{"heads.a.bias"});
  EXPECT_EQ(report.unexpected_keys, (Names{"more", "blocks.0.conv.num_batches_tracked"}));
  EXPECT_EQ(to.heads["a"].bias.to_vector<float>(), bias);
  EXPECT_EQ(to.blocks[1].conv.weight.to_vector<float>(),
            from.blocks[1].conv.weight.to_vector<float>());
  state.resize(1);
  state[0].tensor = Tensor::ones({4}, kCpu);
  EXPECT_THROW(to.load_state_dict(state, false), ShapeError);
}

TEST(Modules, LoadPyTorchsBatchNorm) {
  BatchNorm norm(2, 1e-5, 0.1, true, kCpu);
  StateDict state;
  for (const char* name : {"weight", "bias", "running_mean", "running_var"})
    state.push_back({name, Tensor::full({2}, 3.0, kCpu)});
  state.push_back({"num_batches_tracked", Tensor::ones({}, kCpu)});
  EXPECT_TRUE(norm.load_state_dict(state).unexpected_keys.empty());
  EXPECT_EQ(norm.running_var.to_vector<float>(), (std::vector<float>{3, 3}));
}

bool drops(const Dropout& d) { return (d(Tensor::ones({1000}, kCpu)) == 0).any().item() != 0; }

TEST(Modules, KeepTheirModeAgainstTheThreads) {
  Dropout d(0.5);
  EXPECT_FALSE(drops(d));
  {
    const TrainingMode on;
    EXPECT_TRUE(drops(d));
    d.eval();
    EXPECT_FALSE(drops(d));
    d.train();
  }
  EXPECT_TRUE(drops(d));
  const TrainingMode off(false);
  EXPECT_TRUE(drops(d));
}

TEST(Modules, SetTheModeOfTheirParts) {
  Net net;
  const Tensor x = Tensor::rand({2, 2, 4, 4}, kCpu).realize();
  const TrainingMode on;
  net.eval();
  net(x).realize();
  EXPECT_EQ(net.blocks[0].norm.running_mean.to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_FALSE(net.blocks[1].norm.training());
  net.blocks[0].train();
  Tensor::realize({net(x), net.blocks[0].norm.running_mean});
  EXPECT_NE(net.blocks[0].norm.running_mean.to_vector<float>(), (std::vector<float>{0, 0}));
  EXPECT_EQ(net.blocks[1].norm.running_mean.to_vector<float>(), (std::vector<float>{0, 0}));
}

TEST(Modules, ChangeTheirTypeInPlace) {
  Linear l(2, 2, true, kCpu);
  const Tensor held = l.weight;
  const std::vector<float> before = l.weight.to_vector<float>();
  l(Tensor::ones({1, 2}, kCpu)).sum().backward();
  l.to(DType::F64);
  EXPECT_EQ(held.dtype(), DType::F64);
  EXPECT_EQ(held.grad().dtype(), DType::F64);
  EXPECT_EQ(held.grad().to_vector<double>(), (std::vector<double>{1, 1, 1, 1}));
  EXPECT_TRUE(held.requires_grad());
  const std::vector<double> after = held.to_vector<double>();
  EXPECT_EQ(std::vector<float>(after.begin(), after.end()), before);
  l.zero_grad();
  (l(Tensor::ones({1, 2}, {DType::F64, "CPU"})) * 2.0).sum().backward();
  EXPECT_EQ(held.grad().to_vector<double>(), (std::vector<double>{2, 2, 2, 2}));
  EXPECT_THROW(l.to(DType::I32), InvalidArgument);
  Net net;
  net.to(DType::F16);
  EXPECT_EQ(net.table.dtype(), DType::I32);
  EXPECT_EQ(net.blocks[0].norm.running_var.dtype(), DType::F16);
}

TEST(Modules, MoveToAnotherDevice) {
  Linear l(2, 2, false, kCpu);
  const std::vector<float> before = l.weight.to_vector<float>();
  l.to("NULL");
  EXPECT_EQ(l.weight.device(), "NULL");
  l.to("CPU");
  EXPECT_EQ(l.weight.device(), "CPU");
  EXPECT_EQ(before.size(), l.weight.to_vector<float>().size());
}

TEST(Modules, RefuseToMoveInsideACapture) {
  Linear l(2, 2, false, kCpu);
  bool moves = false;
  Jit jit([&](const std::vector<Tensor>& in) {
    if (moves) l.to(DType::F64);
    return std::vector<Tensor>{l(in[0])};
  });
  const Tensor x = Tensor::ones({1, 2}, kCpu).realize();
  jit({x});
  moves = true;
  EXPECT_THROW(jit({x}), InvalidArgument);
  EXPECT_EQ(l.weight.dtype(), DType::F32);
}

TEST(Modules, Freeze) {
  Net net;
  net.blocks[0].requires_grad_(false);
  net(Tensor::rand({1, 2, 4, 4}, kCpu)).sum().backward();
  EXPECT_FALSE(net.blocks[0].conv.weight.grad().defined());
  EXPECT_TRUE(net.blocks[1].conv.weight.grad().defined());
  net.zero_grad();
  EXPECT_FALSE(net.blocks[1].conv.weight.grad().defined());
}

TEST(Modules, ApplyInnerOnesFirst) {
  Net net;
  std::vector<const Module*> seen;
  net.apply([&](Module& m) { seen.push_back(&m); });
  EXPECT_EQ(seen.size(), net.named_modules().size());
  EXPECT_EQ(seen.front(), &net.blocks[0].conv);
  EXPECT_EQ(seen.back(), &net);
}

TEST(Modules, RunHooks) {
  Linear l(Tensor::ones({1, 2}, kCpu));
  std::vector<float> seen;
  const int64_t look = l.register_forward_hook([&](const Module& m, const Tensor& in,
                                                   const Tensor& out) {
    EXPECT_EQ(&m, &l);
    seen = {in.to_vector<float>()[0], out.to_vector<float>()[0]};
    return Tensor();
  });
  const int64_t twice = l.register_forward_hook(
      [](const Module&, const Tensor&, const Tensor& out) { return out * 2.0; });
  const int64_t more = l.register_forward_pre_hook(
      [](const Module&, const Tensor& in) { return in + 1.0; });
  const Tensor x = Tensor::from({1, 2}, {1, 2}, kCpu);
  EXPECT_EQ(l(x).item(), 10);
  EXPECT_EQ(seen, (std::vector<float>{2, 5}));
  l.remove_hook(twice);
  l.remove_hook(more);
  EXPECT_EQ(l(x).item(), 3);
  l.remove_hook(look);
  EXPECT_THROW(l.remove_hook(look), InvalidArgument);
}

TEST(Modules, ReplaceATensor) {
  Linear l(2, 1, false, kCpu);
  l.set_tensor("bias", Tensor::full({1}, 5.0, kCpu));
  l.set_tensor("weight", Tensor::ones({1, 2}, kCpu));
  EXPECT_EQ(l(Tensor::ones({1, 2}, kCpu)).item(), 7);
  EXPECT_THROW(l.set_tensor("other", Tensor()), InvalidArgument);
}

TEST(Modules, SequentialPutsItsLayersIntoModes) {
  Sequential s(Linear(4, 4, true, kCpu), Dropout(0.9), [](const Tensor& x) { return x.relu(); });
  s.train();
  EXPECT_EQ(s.named_children().size(), 2u);
  EXPECT_TRUE(s.named_children()[1].second->training());
  const TrainingMode on;
  s.eval();
  const Tensor x = Tensor::rand({3, 4}, kCpu).realize();
  EXPECT_EQ(s(x).to_vector<float>(), s(x).to_vector<float>());
}

void expect_values(const Tensor& got, const std::vector<float>& wanted) {
  const std::vector<float> values = got.to_vector<float>();
  ASSERT_EQ(values.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); i++) EXPECT_NEAR(values[i], wanted[i], 1e-6) << i;
}

TEST(Modules, ActivationsAndPoolsAreLayers) {
  const Tensor x = Tensor::from({-2, 0, 1, 8}, {1, 1, 2, 2}, kCpu);
  expect_values(Sequential(Identity(), Flatten(), ReLU())(x), {0, 0, 1, 8});
  EXPECT_EQ(Flatten()(x).sizes(), (Sizes{1, 4}));
  expect_values(ReLU6()(x), {0, 0, 1, 6});
  expect_values(LeakyReLU(0.5)(x), {-1, 0, 1, 8});
  for (const char* name : {"none", "tanh"})
    expect_values(GELU(name)(x), x.gelu(name).to_vector<float>());
  expect_values(SiLU()(x), x.silu().to_vector<float>());
  expect_values(Sigmoid()(x), x.sigmoid().to_vector<float>());
  expect_values(Tanh()(x), x.tanh().to_vector<float>());
  expect_values(Softplus(2)(x), x.softplus(2).to_vector<float>());
  expect_values(Softmax(-2)(x), x.softmax(-2).to_vector<float>());
  expect_values(LogSoftmax()(x), x.log_softmax().to_vector<float>());
  expect_values(SELU()(x), x.selu().to_vector<float>());
  expect_values(ELU(0.5)(x), x.elu(0.5).to_vector<float>());
  expect_values(CELU(2)(x), x.celu(2).to_vector<float>());
  expect_values(Hardtanh(-1, 4)(x), {-1, 0, 1, 4});
  expect_values(LogSigmoid()(x), x.logsigmoid().to_vector<float>());
  expect_values(Hardsigmoid()(x), x.hardsigmoid().to_vector<float>());
  expect_values(Hardswish()(x), x.hardswish().to_vector<float>());
  expect_values(Mish()(x), x.mish().to_vector<float>());
  expect_values(Softsign()(x), x.softsign().to_vector<float>());
  expect_values(Tanhshrink()(x), x.tanhshrink().to_vector<float>());
  expect_values(GLU(-2)(x), x.glu(-2).to_vector<float>());
  expect_values(Softmin(-2)(x), x.softmin(-2).to_vector<float>());
  const PReLU prelu(1, 0.5, kCpu);
  expect_values(prelu(x), {-1, 0, 1, 8});
  ASSERT_EQ(prelu.parameters().size(), 1u);
  EXPECT_EQ(prelu.state_dict()[0].name, "weight");
  expect_values(MaxPool2d(2)(x), {8});
  expect_values(AvgPool2d(2)(x), {1.75f});
  expect_values(AdaptiveAvgPool2d({1, 2})(x), {-0.5f, 4});
  EXPECT_THROW(AdaptiveAvgPool2d(-3)(x), InvalidArgument);
}

}  // namespace
}  // namespace tuff::nn::module_tests
