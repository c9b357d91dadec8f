// Functions written as models: what the importer reads gives what the function gave, also for
// extents that varied, and says what a person would expect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tuff/nn.h>
#include <tuff/onnx.h>
#include <tuff/recurrent.h>
#include <tuff/scan.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "io/scratch_folder.h"

namespace tuff::onnx {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using Function = Jit::Function;

Tensor values(const Sizes& sizes, double seed = 1, DType t = DType::F32) {
  int64_t n = 1;
  for (const Size& s : sizes) n *= int64_t(s);
  std::vector<float> out(size_t(n), 0.0f);
  for (size_t i = 0; i < out.size(); i++)
    out[i] = float(2 * std::sin(1.7 * double(i) + seed * 3.1 + 0.01 * double(i * i % 97)));
  const Tensor x = Tensor::from(out, sizes);
  if (t == DType::Bool) return (x > 0).realize();
  return is_int(t) ? (x * 10).cast(t).realize() : x.cast(t).realize();
}

Tensor places(const Sizes& sizes, int64_t end, int64_t step = 7) {
  int64_t n = 1;
  for (const Size& s : sizes) n *= int64_t(s);
  std::vector<int64_t> out;
  for (int64_t i = 0; i < n; i++) out.push_back((i * step + 3) % end);
  return Tensor::from(out, sizes);
}

std::vector<std::string> operators(const std::string& path) {
  std::vector<std::string> out;
  for (const OperatorUse& o : describe(path).operators) out.push_back(o.name);
  return out;
}

void expect_equal(const Tensor& wanted, const Tensor& found, double tolerance) {
  ASSERT_EQ(std::vector<int64_t>(wanted.sizes()), std::vector<int64_t>(found.sizes()));
  ASSERT_EQ(wanted.dtype(), found.dtype());
  const auto a = wanted.cast(DType::F64).to_vector<double>();
  const auto b = found.cast(DType::F64).to_vector<double>();
  for (size_t i = 0; i < a.size(); i++) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (std::isinf(a[i]) && a[i] == b[i]) continue;
    ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::abs(a[i]))) << "element " << i;
  }
}

class OnnxSave : public testing::Test {
 protected:
  std::string path() const { return folder_.path("m.onnx"); }

  // The model gives what the function gives, of these inputs and of others.
  void round_trip(const Function& f, const std::vector<Tensor>& inputs, SaveOptions options = {},
                  const std::vector<Tensor>& others = {}, double tolerance = 1e-5) {
    save(path(), f, inputs, options);
    const Model model = load(path());
    for (const auto& given : {inputs, others}) {
      if (given.empty()) continue;
      const std::vector<Tensor> wanted = f(given);
      Values named;
      for (size_t i = 0; i < given.size(); i++)
        named.emplace(model.description().inputs.at(i).name, given[i]);
      const Values found = model(named);
      for (size_t i = 0; i < wanted.size(); i++)
        expect_equal(wanted[i], found.at(model.description().outputs.at(i).name), tolerance);
    }
  }
  // The same of one tensor whose first axis varies.
  void of_one(const std::function<Tensor(const Tensor&)>& f, const Sizes& sizes,
              DType t = DType::F32, double tolerance = 1e-5) {
    Sizes other = sizes;
    other[0] = other[0] + 2;
    round_trip([&](const std::vector<Tensor>& in) { return std::vector<Tensor>{f(in[0])}; },
               {values(sizes, 1, t)}, {.dynamic = {{0, 0, "batch", 1, 64}}},
               {values(other, 2, t)}, tolerance);
  }
  auto ops() const { return operators(path()); }

  ScratchFolder folder_;
};

struct Case {
  const char* name;
  Tensor (*of)(const Tensor& x);
};

const Case kFloats[] = {
    {"neg", [](const Tensor& x) { return -x; }},
    {"reciprocal", [](const Tensor& x) { return (x.square() + 1).reciprocal(); }},
    {"sqrt", [](const Tensor& x) { return x.square().sqrt(); }},
    {"exp", [](const Tensor& x) { return x.exp(); }},
    {"exp2", [](const Tensor& x) { return x.exp2(); }},
    {"log", [](const Tensor& x) { return (x.square() + 0.5).log(); }},
    {"log2", [](const Tensor& x) { return (x.square() + 0.5).log2(); }},
    {"pow", [](const Tensor& x) { return x.abs().pow(1.7); }},
    {"pow of tensors", [](const Tensor& x) { return x.abs().pow(x - 1) + x.pow(x.round()); }},
    {"power of a number", [](const Tensor& x) { return Tensor::pow(2.5, x); }},
    {"fmod", [](const Tensor& x) { return x.fmod(0.7); }},
    {"remainder", [](const Tensor& x) { return x.remainder(x.flip({1})); }},
    {"floor_divide", [](const Tensor& x) { return x.floor_divide(-0.7); }},
    {"atan2", [](const Tensor& x) { return x.atan2(x.flip({1})); }},
    {"copysign", [](const Tensor& x) { return x.copysign(-x.trunc()); }},
    {"sin", [](const Tensor& x) { return x.sin(); }},
    {"cos", [](const Tensor& x) { return x.cos(); }},
    {"trunc", [](const Tensor& x) { return x.trunc(); }},
    {"floor", [](const Tensor& x) { return x.floor(); }},
    {"ceil", [](const Tensor& x) { return x.ceil(); }},
    {"round", [](const Tensor& x) { return (x * 4).round(); }},
    {"abs", [](const Tensor& x) { return x.abs(); }},
    {"sign", [](const Tensor& x) { return x.sign(); }},
    {"relu", [](const Tensor& x) { return x.relu(); }},
    {"clamp", [](const Tensor& x) { return x.clamp(-0.5, 0.75); }},
    {"tanh", [](const Tensor& x) { return x.tanh(); }},
    {"sigmoid", [](const Tensor& x) { return x.sigmoid(); }},
    {"silu", [](const Tensor& x) { return x.silu(); }},
    {"gelu", [](const Tensor& x) { return x.gelu(); }},
    {"gelu tanh", [](const Tensor& x) { return x.gelu("tanh"); }},
    {"erf", [](const Tensor& x) { return x.erf(); }},
    {"softplus", [](const Tensor& x) { return x.softplus(); }},
    {"div", [](const Tensor& x) { return x / (x.square() + 2); }},
    {"maximum", [](const Tensor& x) { return x.maximum(x.flip({1})); }},
    {"where", [](const Tensor& x) { return Tensor::where(x > 0.25, x * 2, x - 1); }},
    {"comparisons", [](const Tensor& x) { return (x <= x.flip({1})).cast(DType::I32); }},
    {"broadcast", [](const Tensor& x) { return x + values({1, 4}, 5) * values({3, 1}, 6); }},
    {"to int", [](const Tensor& x) { return (x * 10).cast(DType::I32); }},
    {"to bool", [](const Tensor& x) { return x.trunc().cast(DType::Bool); }},
    {"sum", [](const Tensor& x) { return x.sum({1}); }},
    {"sum of all", [](const Tensor& x) { return x.sum(); }},
    {"max", [](const Tensor& x) { return x.max({-1}, true); }},
    {"min", [](const Tensor& x) { return x.min({1, 2}); }},
    {"prod", [](const Tensor& x) { return x.prod({2}); }},
    {"mean of batch", [](const Tensor& x) { return x.mean({0}); }},
    {"var", [](const Tensor& x) { return x.var({1}); }},
    {"argmax", [](const Tensor& x) { return x.argmax(-1); }},
    {"softmax", [](const Tensor& x) { return x.softmax(1); }},
    {"log_softmax", [](const Tensor& x) { return x.log_softmax(-1); }},
    {"logsumexp", [](const Tensor& x) { return x.logsumexp({-1}); }},
    {"layernorm", [](const Tensor& x) { return x.layernorm({4}, values({4}, 3), values({4}, 4)); }},
    {"permute", [](const Tensor& x) { return x.permute({2, 0, 1}); }},
    {"reshape", [](const Tensor& x) { return x.reshape({x.size(0), -1}); }},
    {"flatten batch", [](const Tensor& x) { return x.flatten(0, 1); }},
    {"pad", [](const Tensor& x) { return x.pad({1, 2, 0, 1}, 0.5); }},
    {"crop", [](const Tensor& x) { return x.narrow(1, 1, 2).narrow(2, 0, 3); }},
    {"strides", [](const Tensor& x) { return x.slice(2, {}, {}, 2); }},
    {"flip", [](const Tensor& x) { return x.flip({1, 2}); }},
    {"expand", [](const Tensor& x) { return x.unsqueeze(1).expand({x.size(0), 2, 3, 4}); }},
    {"repeat", [](const Tensor& x) { return x.repeat({1, 2, 1}); }},
    {"cat", [](const Tensor& x) { return Tensor::cat({x, x * 2}, 1); }},
    {"stack", [](const Tensor& x) { return Tensor::stack({x, x * 2}, 0); }},
    {"tril", [](const Tensor& x) { return x.tril(); }},
    {"cumsum", [](const Tensor& x) { return x.cumsum(1); }},
    {"arange of a batch",
     [](const Tensor& x) {
       return x + Tensor::arange(0, x.size(0), 1, {.dtype = DType::F32}).reshape({-1, 1, 1});
     }},
    {"matmul", [](const Tensor& x) { return x.matmul(values({4, 5}, 7)); }},
    {"matmul of a batch", [](const Tensor& x) { return x.matmul(x.transpose(1, 2)); }},
    {"matrix times vector", [](const Tensor& x) { return x.matmul(values({4}, 7)); }},
    {"einsum", [](const Tensor& x) { return Tensor::einsum("bij,bkj->ikb", {x, x + 1}); }},
    {"einsum of three",
     [](const Tensor& x) {
       return Tensor::einsum("bij,jk,kl->bil", {x, values({4, 3}, 2), values({3, 2}, 3)});
     }},
    {"tensordot",
     [](const Tensor& x) { return x.tensordot(values({3, 4, 2}, 8), Axes{1, 2}, Axes{0, 1}); }},
    {"linear", [](const Tensor& x) { return x.linear(values({6, 4}, 9), values({6}, 10)); }},
    {"gather",
     [](const Tensor& x) { return x.gather(1, (x.narrow(1, 0, 2) > 0).cast(DType::I32) * 2); }},
    {"scatter",
     [](const Tensor& x) {
       return x.scatter_add(1, (x.narrow(1, 0, 2) > 0).cast(DType::I64) * 2, x.narrow(1, 1, 2));
     }},
    {"index", [](const Tensor& x) { return x.index({indexing::Slice{}, places({5}, 3) - 1}); }},
    {"index_select", [](const Tensor& x) { return x.index_select(2, places({6}, 4)); }},
};

TEST_F(OnnxSave, FunctionsOfFloats) {
  for (const Case& c : kFloats) {
    SCOPED_TRACE(c.name);
    of_one(c.of, {2, 3, 4});
  }
}

TEST_F(OnnxSave, FunctionsOfOtherFloats) {
  const auto softmax_and_product = [](const Tensor& x) {
    return x.softmax(1).matmul(x.transpose(1, 2)).tanh() + x.exp().sum({2}, true);
  };
  of_one([&](const Tensor& x) { return softmax_and_product(x.cast(DType::F64)); }, {2, 3, 4});
  of_one([&](const Tensor& x) { return softmax_and_product(x); }, {2, 3, 4}, DType::F16, 2e-3);
}

const Case kIntegers[] = {
    {"sum", [](const Tensor& x) { return x + x * 3 - 2; }},
    {"neg", [](const Tensor& x) { return -x; }},
    {"quotient", [](const Tensor& x) { return x.floor_divide(x.flip({0}) + 1); }},
    {"quotient by a number", [](const Tensor& x) { return x.floor_divide(3); }},
    {"remainder", [](const Tensor& x) { return x % 5; }},
    {"bits", [](const Tensor& x) { return ((x & 6) | 1) ^ 9; }},
    {"not", [](const Tensor& x) { return ~x; }},
    {"shifts", [](const Tensor& x) { return (x << 2) + (x >> 1); }},
    {"maximum", [](const Tensor& x) { return x.maximum(x.flip({0})); }},
    {"max", [](const Tensor& x) { return x.max({1}); }},
    {"total", [](const Tensor& x) { return x.sum({0}); }},
    {"less", [](const Tensor& x) { return x < 2; }},
    {"not equal", [](const Tensor& x) { return x != 3; }},
    {"any", [](const Tensor& x) { return (x > 4).any({1}); }},
    {"all", [](const Tensor& x) { return (x > -9).all({1}); }},
    {"bools", [](const Tensor& x) { return ((x > 0) & (x < 5)) | ~(x > -3); }},
    {"choice", [](const Tensor& x) { return Tensor::where(x > 0, x > 3, x < -3); }},
    {"to float", [](const Tensor& x) { return x.cast(DType::F32) * 0.5; }},
    {"counter", [](const Tensor& x) { return x + Tensor::arange(0, 4); }},
};

TEST_F(OnnxSave, FunctionsOfIntegers) {
  for (const DType t : {DType::I32, DType::I64, DType::I8, DType::U32}) {
    for (const Case& c : kIntegers) {
      SCOPED_TRACE(std::string(c.name) + " of " + name(t));
      of_one(c.of, {3, 4}, t);
    }
  }
}

// ---- what a person would expect

TEST_F(OnnxSave, LayersAreTheirOperators) {
  const nn::Conv2d conv(4, 6, 3, 2, 1, true, {}, 1, 2);
  const nn::Linear linear(6, 5);
  const Function f = [&](const std::vector<Tensor>& in) {
    const Tensor h = conv(in[0]).relu().max_pool2d(3, 2, 1);
    return std::vector<Tensor>{linear(h.mean({2, 3})).softmax(-1)};
  };
  nn::StateDict state;
  nn::append_state(state, "conv", conv.state_dict());
  nn::append_state(state, "linear", linear.state_dict());
  round_trip(f, {values({2, 4, 13, 11})},
             {.dynamic = {{0, 0, "batch", 1, 64}}, .parameters = state},
             {values({5, 4, 13, 11}, 2)});
  EXPECT_THAT(ops(), testing::IsSupersetOf({"Conv", "MatMul", "MaxPool", "Relu", "Softmax"}));
  for (const char* absent : {"Slice", "Expand", "Einsum", "Where", "ReduceMax"})
    EXPECT_THAT(ops(), Not(Contains(absent)));
  const Description d = describe(path());
  EXPECT_EQ(d.inputs.at(0).shape.at(0), "batch");
  EXPECT_EQ(d.outputs.at(0).shape, (std::vector<std::string>{"batch", "5"}));
  for (const nn::NamedTensor& p : state)
    EXPECT_TRUE(load(path()).parameters().contains(p.name)) << p.name;
}

TEST_F(OnnxSave, ConvolutionsOfAnyNumbers) {
  const Tensor x = values({2, 4, 9, 10});
  const auto check = [&](const Tensor& weight, const PerAxis& stride, const Padding& padding,
                         const PerAxis& dilation, int64_t groups) {
    round_trip(
        [&](const std::vector<Tensor>& in) {
          return std::vector<Tensor>{
              in[0].conv2d(weight, {}, stride, padding, dilation, groups)};
        },
        {x}, {.dynamic = {{0, 0, "n", 1, 8}}}, {values({3, 4, 9, 10}, 4)});
    EXPECT_THAT(ops(), Contains("Conv"));
  };
  check(values({6, 4, 3, 3}), 1, 0, 1, 1);
  check(values({6, 4, 1, 1}), 1, 0, 1, 1);
  check(values({6, 4, 3, 2}), PerAxis{2, 3}, 1, PerAxis{1, 2}, 1);
  check(values({4, 1, 3, 3}), 1, Padding("same"), 2, 4);
  check(values({8, 2, 2, 2}), 2, 0, 1, 2);
}

TEST_F(OnnxSave, AveragesOfWindows) {
  const auto check = [&](const Sizes& sizes, const std::function<Tensor(const Tensor&)>& f) {
    of_one(f, sizes);
    EXPECT_THAT(ops(), testing::ElementsAre("AveragePool"));
  };
  check({2, 3, 9}, [](const Tensor& x) { return x.avg_pool1d(3); });
  for (const bool counts_pads : {true, false})
    check({2, 3, 7, 6}, [&](const Tensor& x) {
      return x.avg_pool2d(PerAxis{3, 2}, PerAxis{2, 1}, 1, false, counts_pads);
    });
  check({1, 2, 4, 5, 3}, [](const Tensor& x) { return x.avg_pool3d(2, 1); });
}

TEST_F(OnnxSave, TransposedConvolutionsOfAnyNumbers) {
  const auto check = [&](const Tensor& weight, const PerAxis& stride, const PerAxis& padding,
                         const PerAxis& more, int64_t groups, const PerAxis& dilation) {
    of_one([&](const Tensor& x) {
      return x.conv_transpose2d(weight, values({weight.size(1) * groups}), stride, padding, more,
                                groups, dilation);
    }, {2, 4, 5, 6});
    EXPECT_THAT(ops(), testing::ElementsAre("Add", "ConvTranspose"));
  };
  check(values({4, 3, 2, 2}), 1, 0, 0, 1, 1);
  check(values({4, 3, 2, 2}), 2, 0, 0, 1, 1);
  check(values({4, 3, 4, 4}), 2, 1, 0, 1, 1);
  check(values({4, 2, 3, 3}), 2, 1, 1, 2, 1);
  check(values({4, 2, 3, 2}), PerAxis{3, 1}, PerAxis{1, 0}, PerAxis{2, 0}, 1, PerAxis{1, 2});
}

TEST_F(OnnxSave, TransposedConvolutionsOfALongSignal) {
  const Tensor weight = values({2, 3, 16});
  of_one([&](const Tensor& x) { return x.conv_transpose1d(weight, {}, 8, 4); }, {1, 2, 400});
  EXPECT_THAT(ops(), testing::ElementsAre("ConvTranspose"));
}

TEST_F(OnnxSave, LayerNormsAreOneOperator) {
  of_one([](const Tensor& x) { return x.layernorm({4}, values({4}, 3), values({4}, 4)); },
         {2, 3, 4});
  EXPECT_THAT(ops(), testing::ElementsAre("LayerNormalization"));
  of_one([](const Tensor& x) { return x + x.layernorm({3, 4}, values({3, 4}, 3), {}, 0.01); },
         {2, 3, 4});
  EXPECT_THAT(ops(), testing::ElementsAre("Add", "LayerNormalization"));
}

TEST_F(OnnxSave, ProductsRepeatNothing) {
  of_one([](const Tensor& x) { return x.matmul(values({4, 5}, 7)); }, {2, 3, 4});
  EXPECT_THAT(ops(), testing::ElementsAre("MatMul"));
  of_one([](const Tensor& x) { return x.matmul(x.transpose(1, 2)); }, {2, 3, 4});
  EXPECT_THAT(ops(), testing::ElementsAre("MatMul", "Transpose"));
}

TEST_F(OnnxSave, EmbeddingsAreGathered) {
  const nn::Embedding table(11, 4);
  round_trip(
      [&](const std::vector<Tensor>& in) { return std::vector<Tensor>{table(in[0])}; },
      {places({2, 3}, 11)}, {.dynamic = {{0, 0, "batch", 1, 9}, {0, 1, "time", 1, 9}}},
      {places({4, 5}, 11)});
  EXPECT_THAT(ops(), testing::ElementsAre("Gather"));
}

TEST_F(OnnxSave, TargetsThatALossIgnores) {
  const auto loss = [](const std::vector<Tensor>& in) {
    return std::vector<Tensor>{in[0].cross_entropy(in[1])};
  };
  const auto targets = [](const std::vector<int64_t>& t) {
    return Tensor::from(t, {int64_t(t.size())});
  };
  round_trip(loss, {values({3, 4}), targets({1, -100, 3})},
             {.dynamic = {{0, 0, "batch", 1, 9}, {1, 0, "batch", 1, 9}}},
             {values({2, 4}, 3), targets({-100, 2})});
}

// ---- files

TEST_F(OnnxSave, EqualFunctionsGiveEqualFiles) {
  const nn::Linear linear(4, 3);
  const auto written = [&] {
    save(path(), [&](const auto& in) { return std::vector<Tensor>{linear(in[0]).gelu()}; },
         {values({2, 4})}, {.parameters = linear.state_dict()});
    std::ifstream file(path(), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(written(), written());
}

TEST_F(OnnxSave, WeightsMayLieBesideTheModel) {
  const nn::Linear linear(64, 32);
  round_trip([&](const auto& in) { return std::vector<Tensor>{linear(in[0])}; },
             {values({2, 64})}, {.parameters = linear.state_dict(), .external_from = 0});
  EXPECT_TRUE(std::filesystem::exists(path() + ".data"));
  EXPECT_LT(std::filesystem::file_size(path()), 2048u);
}

TEST_F(OnnxSave, InputsOutputsAndWhatIsBoth) {
  round_trip(
      [](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{in[0], in[0] + in[1], in[0], values({3}, 9)};
      },
      {values({2, 3}), values({2, 3}, 2)},
      {.input_names = {"a", "b"}, .output_names = {"c", "d", "e", "f"}});
}

// ---- orders, parts and loops

TEST_F(OnnxSave, PartsAreJoinedByConcat) {
  const auto f = [](const std::vector<Tensor>& in) {
    const Tensor all = Tensor::cat({in[0], in[1], in[0] * 2}, 1);
    return std::vector<Tensor>{all, Tensor::stack({all, all.flip({1})}, -1)};
  };
  round_trip(f, {values({2, 3}), values({2, 4}, 2)},
             {.dynamic = {{0, 0, "n", 1, 9}, {1, 0, "n", 1, 9}, {1, 1, "m", 1, 9}}},
             {values({5, 3}, 3), values({5, 1}, 4)});
  EXPECT_THAT(ops(), Contains("Concat"));
  EXPECT_THAT(ops(), Not(Contains("Where")));
}

TEST_F(OnnxSave, OrdersAreTopK) {
  const auto both = [](const std::pair<Tensor, Tensor>& p) {
    return std::vector<Tensor>{p.first, p.second};
  };
  const Tensor floats = (values({2, 3, 40}) * 2).round();  // some are equal
  for (const Tensor& x : {floats, values({2, 300}), values({3, 9}, 1, DType::U8)}) {
    round_trip([&](const auto& in) { return both(in[0].sort(-1, true)); }, {x});
    EXPECT_THAT(ops(), Contains("TopK"));
    round_trip([&](const auto& in) { return both(in[0].topk(3, -1, false)); }, {x});
    EXPECT_THAT(ops(), Contains("TopK"));
  }
  round_trip([](const auto& in) { return std::vector<Tensor>{in[0].argsort(1)}; }, {floats});
  round_trip([](const auto& in) { return std::vector<Tensor>{in[0].quantile(0.3, 2)}; }, {floats});
}

TEST_F(OnnxSave, ExtremesAndRunningSumsHaveTheirNames) {
  const auto f = [](const std::vector<Tensor>& in) {
    const Tensor& x = in[0];
    return std::vector<Tensor>{x.argmax(1), x.argmin(0, true), x.argmax(), x.cumsum(1),
                               x.cumsum(2) * 2};
  };
  for (const DType t : {DType::F32, DType::I32}) {
    round_trip(f, {values({2, 30, 3}, 1, t)});
    EXPECT_THAT(ops(), Contains("ArgMax"));
    EXPECT_THAT(ops(), Contains("ArgMin"));
    EXPECT_THAT(ops(), Contains("CumSum"));
    EXPECT_THAT(ops(), Not(Contains("ReduceMax")));
  }
  of_one([](const Tensor& x) { return x.argmax(-1).cast(DType::F32) + x.cumsum(1).sum({1}); },
         {3, 5});
}

TEST_F(OnnxSave, LayersOverSequencesAreThemselves) {
  const Tensor x = values({5, 2, 3}), h = values({4, 2, 6}, 2), c = values({4, 2, 6}, 3);
  const nn::RecurrentOptions deep{.num_layers = 2, .bidirectional = true};
  const nn::LSTM lstm(3, 6, deep);
  round_trip(
      [&](const auto& in) {
        const auto [y, hn, cn] = lstm(in[0], in[1], in[2]);
        return std::vector<Tensor>{y, hn, cn};
      },
      {x, h, c});
  EXPECT_THAT(ops(), Contains("LSTM"));
  EXPECT_THAT(ops(), Not(Contains("MatMul")));
  const nn::GRU gru(3, 6, {.batch_first = true});
  round_trip([&](const auto& in) { return std::vector<Tensor>{gru(in[0]).first}; }, {x});
  EXPECT_THAT(ops(), Contains("GRU"));
  for (const char* how : {"tanh", "relu"}) {
    const nn::RNN rnn(3, 6, {.bias = false}, how);
    round_trip([&](const auto& in) { return std::vector<Tensor>{rnn(in[0]).first}; }, {x});
    EXPECT_THAT(ops(), Contains("RNN"));
  }
}

TEST_F(OnnxSave, LengthsOfSequencesMayVary) {
  const SaveOptions any{.dynamic = {{0, 0, "time", 1, 64}, {0, 1, "batch", 1, 8}}};
  const Tensor x = values({5, 2, 3}), longer = values({9, 3, 3}, 2);
  const nn::LSTM lstm(3, 6, {.bidirectional = true});
  round_trip(
      [&](const auto& in) {
        const auto [y, h, c] = lstm(in[0]);
        return std::vector<Tensor>{y, h, c};
      },
      {x}, any, {longer});
  EXPECT_THAT(ops(), Contains("LSTM"));
  for (const bool reverse : {false, true}) {
    round_trip(
        [&](const auto& in) {
          const auto step = [](const Tensors& s, const Tensors& rows) {
            return Scanned{{s[0] * 0.5 + rows[0]}, {s[0] * rows[0]}};
          };
          const Scanned all =
              scan(step, {Tensor::ones({in[0].size(1), 3})}, {in[0]}, {.reverse = reverse});
          return std::vector<Tensor>{all.outputs[0], all.states[0]};
        },
        {x}, any, {longer});
    EXPECT_THAT(ops(), Contains("Scan"));
  }
}

TEST_F(OnnxSave, OtherLoopsAreScans) {
  const nn::GRU gru(3, 6);
  const Tensor x = values({5, 2, 3}), lengths = Tensor::from(std::vector<int64_t>{2, 5}, {2});
  round_trip(
      [&](const auto& in) {
        const auto [y, h] = gru(in[0], {}, lengths);
        return std::vector<Tensor>{y, h};
      },
      {x});
  EXPECT_THAT(ops(), Contains("Scan"));
  for (const bool reverse : {false, true}) {
    const auto f = [&](const std::vector<Tensor>& in) {
      const auto step = [](const Tensors& states, const Tensors& rows) {
        // A loop in a loop's body.
        const Tensor inner =
            scan([](const Tensors& s, const Tensors& r) { return Scanned{{s[0] + r[0]}, {}}; },
                 {states[0][0]}, {rows[0]})
                .states[0];
        const Tensor next = states[0] * 0.5 + inner;
        return Scanned{{next, states[1] + 1}, {states[0] + rows[0] * states[1]}};
      };
      const Scanned all = scan(step, {in[1], Tensor::ones({1})}, {in[0]}, {.reverse = reverse});
      return std::vector<Tensor>{all.outputs[0], all.states[0], all.states[1]};
    };
    round_trip(f, {x, values({2, 3}, 2)});
    EXPECT_THAT(ops(), Contains("Scan"));
  }
}

// ---- what is refused

template <class E>
void expect_refused(const std::string& path, const Function& f, const std::vector<Tensor>& inputs,
                    const SaveOptions& options, const std::string& text) {
  EXPECT_THAT(error_text<E>([&] { save(path, f, inputs, options); }), HasSubstr(text));
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(OnnxSave, RefusesWhatNoModelHolds) {
  const Tensor x = values({2, 3});
  const auto of = [](auto f) {
    return [f](const std::vector<Tensor>& in) { return std::vector<Tensor>{f(in[0])}; };
  };
  const auto refused = [&](const Function& f, const std::string& text) {
    expect_refused<Unsupported>(path(), f, {x}, {}, text);
  };
  refused(of([](const Tensor& t) { return t + t.rand_like(); }),
          "random numbers are drawn: use evaluation mode");
  const auto looped = [](const Tensor& t) {
    const auto step = [](const Tensors& s, const Tensors&) {
      return Scanned{{s[0].dropout(0.5)}, {}};
    };
    const TrainingMode training(true);
    return scan(step, {t}, {}, {.steps = 3}).states[0];
  };
  refused(of(looped), "random numbers are drawn");
  refused(of([](const Tensor& t) { return t.bitcast(DType::I32); }), "'bitcast' of int32 (2, 3)");
  Tensor state = Tensor::zeros({2, 3}).realize();
  refused(of([&](const Tensor& t) {
            state.assign(t);
            return t;
          }),
          "changes tensors");
  EXPECT_EQ(state.to_vector<float>(), std::vector<float>(6, 0.0f));
}

TEST_F(OnnxSave, RefusesNamesAndAxesThatAreNone) {
  const Tensor x = values({2, 3});
  const Function same = [](const std::vector<Tensor>& in) { return in; };
  const auto refused = [&](const SaveOptions& options, const std::string& text) {
    expect_refused<InvalidArgument>(path(), same, {x}, options, text);
  };
  refused({.input_names = {"a", "b"}}, "2 input names for 1");
  refused({.output_names = {"x"}}, "two inputs or outputs are named 'x'");
  refused({.output_names = {""}}, "has no name");
  refused({.dynamic = {{1, 0, "n", 1, 4}}}, "is of input 1, there are 1");
  refused({.dynamic = {{0, 2, "n", 1, 4}}}, "which has 2 axes");
  refused({.dynamic = {{0, 0, "n", 3, 4}}}, "is 2, outside of 'n' in 3..4");
  refused({.dynamic = {{0, 0, "n", 4, 3}}}, "1 <= min <= max is needed");
  refused({.dynamic = {{0, 0, "n", 1, 4}, {0, 1, "n", 1, 5}}}, "is in 1..4 and in 1..5");
  expect_refused<InvalidArgument>(
      path(),
      [](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{in[0] * in[0].sum().item()};
      },
      {x}, {}, "stands for others");
}

}  // namespace
}  // namespace tuff::onnx
