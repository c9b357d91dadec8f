// The importer itself: names, order, inner graphs, functions, what is refused and how.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include <tuff/jit.h>
#include "ir/walk.h"
#include "onnx/models.h"
#include "tensor/impl.h"

namespace tuff::onnx::test {
namespace {

using io::onnx::ElementType;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

template <class E, class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

TEST(OnnxImporter, ShapeArithmeticStaysOnTheHost) {
  // y = x.reshape(x.shape[0], -1), as exporters write it.
  io::onnx::Model m = model({node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}),
                             node("Unsqueeze", {"n", "axes"}, {"n1"}),
                             node("Concat", {"n1", "rest"}, {"to"},
                                  {attribute("axis", int64_t{0})}),
                             node("Reshape", {"x", "to"}, {"y"})},
                            {"x"}, {"y", "to"});
  m.graph.initializers = {constant("zero", ElementType::Int64, {}, std::vector<int64_t>{0}),
                          integers("axes", {0}), integers("rest", {-1})};
  const Importer importer(std::move(m));
  const NamedValues out = importer.run({{"x", counting({2, 3, 4})}});
  EXPECT_TRUE(out.at("to").folds());
  EXPECT_THAT(whole(out.at("to")), ElementsAre(2, -1));
  EXPECT_THAT(shape(out.at("y")), ElementsAre(2, 12));
}

TEST(OnnxImporter, ExtentsThatVaryInsideAJitStaySymbolic) {
  io::onnx::Model m = model({node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}),
                             node("Concat", {"n", "rest"}, {"to"},
                                  {attribute("axis", int64_t{0})}),
                             node("Neg", {"x"}, {"z"}), node("Reshape", {"z", "to"}, {"y"})},
                            {"x"}, {"y"});
  m.graph.initializers = {integers("zero", {0}), integers("rest", {2, 6})};
  const Importer importer(std::move(m));
  Jit jit(
      [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{importer.run({{"x", in[0]}}).at("y").tensor("")};
      },
      {.dynamic = {{.argument = 0, .axis = 0, .name = "N", .min = 1, .max = 4}}});
  for (const int64_t n : {2, 4, 1, 3}) {
    const Tensor y = jit({counting({n, 12}).realize()})[0];
    EXPECT_THAT(shape(Value(y)), ElementsAre(n, 2, 6));
    EXPECT_EQ(y.to_vector<float>().back(), float(1 - n * 12));
  }
}

TEST(OnnxImporter, InitializersAreParametersAndTheirChangesAreUsed) {
  io::onnx::Model m = model({node("MatMul", {"x", "w"}, {"y"})}, {"x"}, {"y"});
  m.graph.initializers = {
      constant("w", ElementType::Float, {2, 1}, std::vector<float>{1, 2})};
  const Importer importer(std::move(m));
  const Tensor x = Tensor::from({3, 4}, {1, 2});
  EXPECT_THAT(floats(importer.run({{"x", x}}).at("y")), ElementsAre(11));
  Tensor w = importer.parameters().at("w");
  w.assign(Tensor::from({10, 20}, {2, 1}));
  EXPECT_THAT(floats(importer.run({{"x", x}}).at("y")), ElementsAre(110));
}

TEST(OnnxImporter, ParametersHaveGradients) {
  io::onnx::Model m =
      model({node("Gemm", {"x", "w", "b"}, {"h"}), node("Relu", {"h"}, {"y"})}, {"x"}, {"y"});
  m.graph.initializers = {
      constant("w", ElementType::Float, {2, 2}, std::vector<float>{1, 2, 3, 4}),
      constant("b", ElementType::Float, {2}, std::vector<float>{-100, 1})};
  const Importer importer(std::move(m));
  Tensor w = importer.parameters().at("w"), b = importer.parameters().at("b");
  w.set_requires_grad(), b.set_requires_grad();
  importer.run({{"x", Tensor::from({5, 6}, {1, 2})}}).at("y").tensor("").sum().backward();
  EXPECT_THAT(floats(w.grad()), ElementsAre(0, 5, 0, 6));  // the first column is cut off
  EXPECT_THAT(floats(b.grad()), ElementsAre(0, 1));
}

TEST(OnnxImporter, InputsOverrideInitializers) {
  io::onnx::Model m = model({node("Add", {"x", "b"}, {"y"})}, {"x", "b"}, {"y"});
  m.graph.initializers = {constant("b", ElementType::Float, {1}, std::vector<float>{5})};
  const Importer importer(std::move(m));
  const Tensor x = Tensor::from({1, 2}, {2});
  EXPECT_THAT(floats(importer.run({{"x", x}}).at("y")), ElementsAre(6, 7));
  EXPECT_THAT(floats(importer.run({{"x", x}, {"b", Tensor::from({1}, {1})}}).at("y")),
              ElementsAre(2, 3));
}

TEST(OnnxImporter, BranchesSeeTheNamesAroundThem) {
  const auto branch = [](const char* op) {
    io::onnx::Graph g;
    g.nodes = {node(op, {"x", "x"}, {"r"})};
    g.outputs = {any_info("r")};
    return g;
  };
  const Importer importer(model({node("If", {"c"}, {"y"},
                                      {attribute("then_branch", branch("Add")),
                                       attribute("else_branch", branch("Sub"))})},
                                {"c", "x"}, {"y"}));
  const Tensor x = Tensor::from({1, 2}, {2});
  const auto run = [&](bool c) {
    return floats(importer
                      .run({{"x", x}, {"c", Tensor::full({}, c, {.dtype = DType::Bool})}})
                      .at("y"));
  };
  EXPECT_THAT(run(true), ElementsAre(2, 4));
  EXPECT_THAT(run(false), ElementsAre(0, 0));
}

TEST(OnnxImporter, LoopsCarryValuesAndKeepThoseOfEachStep) {
  io::onnx::Graph body;
  body.inputs = {any_info("i"), any_info("c"), any_info("s")};
  body.nodes = {node("Add", {"s", "x"}, {"t"}), node("Identity", {"c"}, {"d"}),
                node("Identity", {"t"}, {"kept"})};
  body.outputs = {any_info("d"), any_info("t"), any_info("kept")};
  io::onnx::Model m = model(
      {node("Loop", {"n", "", "x"}, {"last", "all"}, {attribute("body", body)})}, {"x"},
      {"last", "all"});
  m.graph.initializers = {constant("n", ElementType::Int64, {}, std::vector<int64_t>{3})};
  const Importer importer(std::move(m));
  const NamedValues out = importer.run({{"x", Tensor::from({1, 10}, {2})}});
  EXPECT_THAT(floats(out.at("last")), ElementsAre(4, 40));
  EXPECT_THAT(shape(out.at("all")), ElementsAre(3, 2));
  EXPECT_THAT(floats(out.at("all")), ElementsAre(2, 20, 3, 30, 4, 40));
}

// A Scan whose step is these nodes of the state s and a row r, which make t and kept.
NamedValues scanned(std::vector<io::onnx::Node> nodes, const Tensor& state, const Tensor& rows) {
  io::onnx::Graph body;
  body.inputs = {any_info("s"), any_info("r")};
  body.nodes = std::move(nodes);
  body.outputs = {any_info("t"), any_info("kept")};
  io::onnx::Model m =
      model({node("Scan", {"x", "rows"}, {"last", "all"},
                  {attribute("body", body), attribute("num_scan_inputs", int64_t{1})})},
            {"x", "rows"}, {"last", "all"});
  return Importer(std::move(m)).run({{"x", state}, {"rows", rows}});
}

bool has_loop(const Value& v) {
  const auto nodes = ir::toposort(detail::uop(v.tensor("")));
  return std::ranges::any_of(nodes, [](const ir::Node* n) { return n->op == ir::Op::Loop; });
}

TEST(OnnxImporter, ManyStepsOfAScanAreOneLoop) {
  const std::vector<io::onnx::Node> sum{node("Add", {"s", "r"}, {"t"}),
                                        node("Mul", {"s", "r"}, {"kept"})};
  const Tensor rows = counting({40, 1}), state = Tensor::zeros({1});
  const NamedValues many = scanned(sum, state, rows);
  EXPECT_TRUE(has_loop(many.at("last")));
  EXPECT_THAT(floats(many.at("last")), ElementsAre(780));
  EXPECT_EQ(floats(many.at("all"))[39], 741 * 39);
  EXPECT_FALSE(has_loop(scanned(sum, state, rows.narrow(0, 0, 4)).at("last")));
}

// One captured graph for inputs of 1 to 6 rows; at each number of them what the model gives for it.
void expect_any_length(const io::onnx::Model& m, const Sizes& row) {
  const Importer importer(m);
  const auto run = [&](const Tensor& x) {
    const NamedValues all = importer.run({{"x", x}});
    std::vector<Tensor> out;
    for (const io::onnx::ValueInfo& o : m.graph.outputs) out.push_back(all.at(o.name).tensor(""));
    return out;
  };
  Jit jit([&](const std::vector<Tensor>& in) { return run(in[0]); },
          {.dynamic = {{.argument = 0, .axis = 0, .name = "T", .min = 1, .max = 6}}});
  for (const int64_t n : {3, 3, 6, 1, 4}) {
    Sizes sizes = row;
    sizes.insert(sizes.begin(), n);
    const Tensor x = (counting(sizes) * 0.7f).sin().realize();
    const std::vector<Tensor> got = jit({x}), want = run(x);
    for (size_t i = 0; i < want.size(); i++) {
      ASSERT_EQ(got[i].sizes(), want[i].sizes()) << "output " << i << " of " << n << " rows";
      ASSERT_LT((got[i] - want[i]).abs().amax().item(), 1e-5) << "output " << i << " of " << n;
    }
  }
  EXPECT_EQ(jit.stats().replays, 3u);
}

TEST(OnnxImporter, WindowsTakeWidthsThatVary) {
  using Integers = std::vector<int64_t>;
  const auto weights = [](const char* name, const Integers& sizes, int count) {
    std::vector<float> v(static_cast<size_t>(count));
    for (int i = 0; i < count; i++) v[size_t(i)] = float(i * 7 % 13 - 6) / 8;
    return constant(name, ElementType::Float, sizes, v);
  };
  const auto kernel = [](int64_t n) { return attribute("kernel_shape", Integers{n}); };
  const auto strides = attribute("strides", Integers{2}), pads = attribute("pads", Integers{1, 1});
  io::onnx::Model m = model(
      {node("Transpose", {"x"}, {"image"}, {attribute("perm", Integers{1, 2, 0})}),
       node("Conv", {"image", "w"}, {"y"}, {strides, pads}),
       node("Conv", {"image", "w"}, {"same"}, {attribute("auto_pad", "SAME_UPPER")}),
       node("MaxPool", {"image"}, {"largest"}, {kernel(3), strides, pads}),
       node("AveragePool", {"image"}, {"mean"}, {kernel(3), strides, pads}),
       node("ConvTranspose", {"y", "up"}, {"wide"}, {strides}),
       node("GlobalAveragePool", {"same"}, {"one"})},
      {"x"}, {"y", "same", "largest", "mean", "wide", "one"});
  m.graph.initializers = {weights("w", {4, 3, 3}, 36), weights("up", {4, 2, 2}, 16)};
  expect_any_length(m, {2, 3});
}

TEST(OnnxImporter, RecurrentLayersTakeSequencesWhoseLengthVaries) {
  const auto weights = [](const char* name, int64_t ways, int64_t rows) {
    std::vector<float> v(size_t(ways * rows * 4));
    for (size_t i = 0; i < v.size(); i++) v[i] = float(int(i * 7 % 13) - 6) / 8;
    return constant(name, ElementType::Float, {ways, rows, 4}, v);
  };
  for (const char* way : {"forward", "reverse", "bidirectional"}) {
    const int64_t ways = way == std::string("bidirectional") ? 2 : 1;
    io::onnx::Model m = model(
        {node("LSTM", {"x", "w", "r", "", "lengths"}, {"y", "h", "c"},
              {attribute("hidden_size", int64_t{4}), attribute("direction", way)}),
         node("GRU", {"x", "wg", "rg"}, {"yg", "hg"},
              {attribute("hidden_size", int64_t{4}), attribute("direction", way)})},
        {"x"}, {"y", "h", "c", "yg", "hg"});
    m.graph.initializers = {
        weights("w", ways, 16), weights("r", ways, 16), weights("wg", ways, 12),
        weights("rg", ways, 12),
        constant("lengths", ElementType::Int32, {2}, std::vector<int32_t>{1, 4})};
    expect_any_length(m, {2, 4});
  }
}

TEST(OnnxImporter, ScansTakeSequencesWhoseLengthVaries) {
  io::onnx::Graph body;
  body.inputs = {any_info("s"), any_info("r"), any_info("q")};
  body.nodes = {node("Add", {"s", "r"}, {"t"}), node("Mul", {"t", "q"}, {"kept"}),
                node("Sub", {"q", "r"}, {"other"})};
  body.outputs = {any_info("t"), any_info("kept"), any_info("other")};
  io::onnx::Graph without = body;  // states
  without.inputs.erase(without.inputs.begin());
  without.nodes = {node("Sub", {"q", "r"}, {"other"})};
  without.outputs = {any_info("other")};
  using Ways = std::vector<int64_t>;
  io::onnx::Model m = model(
      {node("Scan", {"zero", "x", "x"}, {"last", "all", "apart"},
            {attribute("body", body), attribute("num_scan_inputs", int64_t{2}),
             attribute("scan_input_directions", Ways{0, 1}),
             attribute("scan_output_directions", Ways{1, 0})}),
       node("Scan", {"x", "x"}, {"differences"},
            {attribute("body", without), attribute("num_scan_inputs", int64_t{2}),
             attribute("scan_input_directions", Ways{0, 1})})},
      {"x"}, {"last", "all", "apart", "differences"});
  m.graph.initializers = {constant("zero", ElementType::Float, {2}, std::vector<float>{0, 1})};
  expect_any_length(m, {2});
}

TEST(OnnxImporter, ScansThatGrowOrDrawGoStepByStep) {
  const Tensor rows = counting({40, 1}), state = Tensor::zeros({1});
  const NamedValues grown =
      scanned({node("Concat", {"s", "r"}, {"t"}, {attribute("axis", int64_t{0})}),
               node("Identity", {"r"}, {"kept"})},
              state, rows);
  EXPECT_THAT(shape(grown.at("last")), ElementsAre(41));
  const NamedValues drawn =
      scanned({node("RandomUniformLike", {"r"}, {"kept"}), node("Add", {"s", "kept"}, {"t"})},
              state, rows);
  const std::vector<float> numbers = floats(drawn.at("all"));
  EXPECT_NE(numbers[0], numbers[1]);
}

TEST(OnnxImporter, FunctionsOfTheModelGetTheirAttributes) {
  io::onnx::Function f;
  f.name = "Scaled", f.domain = "mine", f.inputs = {"a"}, f.outputs = {"b"};
  f.attributes = {"slope"}, f.opsets = {{"", 21}};
  io::onnx::Attribute by_reference;
  by_reference.name = "alpha", by_reference.reference = "slope";
  by_reference.kind = io::onnx::Attribute::Kind::Float;
  f.nodes = {node("LeakyRelu", {"a"}, {"b"}, {by_reference})};
  io::onnx::Node call = node("Scaled", {"x"}, {"y"}, {attribute("slope", 0.5f)});
  call.domain = "mine";
  io::onnx::Model m = model({call}, {"x"}, {"y"});
  m.opsets.emplace_back("mine", 1);
  m.functions = {f};
  const Importer importer(std::move(m));
  EXPECT_THAT(floats(importer.run({{"x", Tensor::from({-2, 4}, {2})}}).at("y")),
              ElementsAre(-1, 4));
}

TEST(OnnxImporter, AllThatIsMissingIsNamed) {
  const std::string text = message_of<Unsupported>([] {
    io::onnx::Model m = model({node("StringSplit", {"x"}, {"a", "b"}),
                               node("NoSuchThing", {"a"}, {"c"})},
                              {"x"}, {"c"});
    m.graph.initializers = {constant<float>("z", ElementType::Complex64, {0}, {})};
    const Importer importer(std::move(m));
  });
  EXPECT_THAT(text, AllOf(HasSubstr("StringSplit-21"), HasSubstr("NoSuchThing_of_c"),
                          HasSubstr("COMPLEX64")));
}

TEST(OnnxImporter, NewerOperatorsThanTheImportedVersionAreMissing) {
  EXPECT_THROW(Importer(model({node("Gelu", {"x"}, {"y"})}, {"x"}, {"y"}, 19)), Unsupported);
  EXPECT_NO_THROW(Importer(model({node("Gelu", {"x"}, {"y"})}, {"x"}, {"y"}, 20)));
  EXPECT_THROW(Importer(model({node("Abs", {"x"}, {"y"})}, {"x"}, {"y"}, 1000)), Unsupported);
}

TEST(OnnxImporter, NodesReadWhatStandsBeforeThem) {
  const std::string text = message_of<IoError>([] {
    const Importer importer(
        model({node("Abs", {"a"}, {"b"}), node("Neg", {"x"}, {"a"})}, {"x"}, {"b"}));
  });
  EXPECT_THAT(text, AllOf(HasSubstr("Abs_of_b"), HasSubstr("'a'")));
}

TEST(OnnxImporter, ErrorsNameNodeOperatorVersionAndShapes) {
  const std::string text = message_of<ShapeError>(
      [] { run_op("MatMul", {counting({2, 3}), counting({4, 5})}, {}, 13); });
  EXPECT_THAT(text, AllOf(HasSubstr("MatMul_of_y0"), HasSubstr("MatMul-13"),
                          HasSubstr("float32 (2, 3)"), HasSubstr("float32 (4, 5)")));
}

TEST(OnnxImporter, InputsAreCheckedAgainstTheModel) {
  io::onnx::Model m = model({node("Add", {"a", "b"}, {"y"})}, {}, {"y"});
  m.graph.inputs = {tensor_info("a", ElementType::Float, "batch", 3),
                    tensor_info("b", ElementType::Float, "batch", 3)};
  const Importer importer(std::move(m));
  const auto run = [&](const NamedValues& v) {
    return message_of<InvalidArgument>([&] { importer.run(v); });
  };
  const Tensor two = counting({2, 3}), four = counting({4, 3});
  EXPECT_NO_THROW(importer.run({{"a", two}, {"b", two}}));
  EXPECT_THAT(run({{"a", two}}), HasSubstr("'b' is missing"));
  EXPECT_THAT(run({{"a", two}, {"b", two}, {"c", two}}), HasSubstr("no input 'c'"));
  EXPECT_THAT(run({{"a", two}, {"b", two.cast(DType::F64)}}), HasSubstr("FLOAT (batch, 3)"));
  EXPECT_THAT(run({{"a", two}, {"b", counting({2, 4})}}), HasSubstr("(2, 4)"));
  EXPECT_THAT(run({{"a", two}, {"b", four}}), AllOf(HasSubstr("'batch'"), HasSubstr("4")));
}

TEST(OnnxImporter, SequencesAndOptionalsAreCheckedElementByElement) {
  using Kind = io::onnx::Type::Kind;
  io::onnx::Model m = model({node("SequenceLength", {"s"}, {"n"}),
                             node("OptionalHasElement", {"o"}, {"has"})},
                            {}, {"n", "has"});
  const io::onnx::ValueInfo element = tensor_info("s", ElementType::Float, "n");
  m.graph.inputs = {
      wrapped(Kind::Sequence, element),
      wrapped(Kind::Optional, wrapped(Kind::Sequence, tensor_info("o", ElementType::Float, 2)))};
  const Importer importer(std::move(m));
  const auto run = [&](const NamedValues& v) {
    return message_of<InvalidArgument>([&] { importer.run(v); });
  };
  const Value s(Sequence{counting({2}), counting({3})});
  EXPECT_THAT(whole(importer.run({{"s", s}}).at("n")), ElementsAre(2));
  EXPECT_THAT(whole(importer.run({{"s", Value(Sequence{})}, {"o", Value()}}).at("has")),
              ElementsAre(0));
  EXPECT_THAT(run({{"s", counting({2})}}), HasSubstr("sequence of FLOAT (n)"));
  EXPECT_THAT(run({{"s", Value()}}), HasSubstr("'s' is nothing"));
  EXPECT_THAT(run({{"s", Value(Sequence{counting({2}), counting({2}).cast(DType::I32)})}}),
              HasSubstr("element 1 of input 's'"));
  EXPECT_THAT(run({{"s", s}, {"o", s}}), HasSubstr("element 1 of input 'o'"));
}

}  // namespace
}  // namespace tuff::onnx::test
