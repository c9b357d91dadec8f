// Classic models (ai.onnx.ml), and attributes of trees that contradict each other.
// tests/python/onnx_classic_test.py runs more of them beside onnxruntime.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "onnx/models.h"

namespace tuff::onnx::test {
namespace {

using io::onnx::Attribute;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

std::vector<Value> run_classic(const std::string& op, const Tensor& x,
                               const std::vector<Attribute>& attributes, size_t outputs = 1) {
  std::vector<std::string> out;
  for (size_t i = 0; i < outputs; i++) out.push_back("y" + std::to_string(i));
  io::onnx::Node n = node(op, {"x"}, out, attributes);
  n.domain = "ai.onnx.ml";
  io::onnx::Model m = model({n}, {"x"}, out);
  m.opsets.emplace_back("ai.onnx.ml", 5);
  const NamedValues results = Importer(m).run({{"x", x}});
  std::vector<Value> all;
  for (const std::string& o : out) all.push_back(results.at(o));
  return all;
}

std::string refusal(const std::string& op, const std::vector<Attribute>& attributes,
                    size_t outputs = 1) {
  try {
    run_classic(op, counting({2, 2}), attributes, outputs);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// x0 <= 0.5 ? 1 : (x1 < 2 ? 10 : 100), and with a second tree x1 == 1 ? 1000 : 0.
struct Trees {
  std::vector<int64_t> trees{0, 0, 0, 0, 0, 1, 1, 1}, nodes{0, 1, 2, 3, 4, 0, 1, 2},
      features{0, 0, 1, 0, 0, 1, 0, 0}, yes{1, 0, 3, 0, 0, 1, 0, 0}, no{2, 0, 4, 0, 0, 2, 0, 0};
  std::vector<std::string> modes{"BRANCH_LEQ", "LEAF",      "BRANCH_LT", "LEAF",
                                 "LEAF",       "BRANCH_EQ", "LEAF",      "LEAF"};
  std::vector<float> values{0.5f, 0, 2, 0, 0, 1, 0, 0};
  std::vector<int64_t> leaf_trees{0, 0, 0, 1}, leaves{1, 3, 4, 1}, ids{0, 0, 0, 0};
  std::vector<float> weights{1, 10, 100, 1000};

  std::vector<Attribute> attributes(const std::string& kind = "target") const {
    return {attribute("nodes_treeids", trees),      attribute("nodes_nodeids", nodes),
            attribute("nodes_featureids", features), attribute("nodes_truenodeids", yes),
            attribute("nodes_falsenodeids", no),     attribute("nodes_modes", modes),
            attribute("nodes_values", values),       attribute(kind + "_treeids", leaf_trees),
            attribute(kind + "_nodeids", leaves),    attribute(kind + "_ids", ids),
            attribute(kind + "_weights", weights)};
  }
  std::string refused() const { return refusal("TreeEnsembleRegressor", attributes()); }
};

TEST(OnnxTrees, RowsGoDownAllTrees) {
  const Tensor x = Tensor::from({0, 1, 1, 1, 1, 2, kMissing, kMissing}, {4, 2});
  EXPECT_THAT(floats(run_classic("TreeEnsembleRegressor", x, Trees().attributes())[0]),
              ElementsAre(1001, 1010, 100, 100));
}

TEST(OnnxTrees, MissingValuesAreTrueWhereANodeSaysSo) {
  std::vector<Attribute> a = Trees().attributes();
  a.push_back(attribute("nodes_missing_value_tracks_true",
                        std::vector<int64_t>{1, 0, 0, 0, 0, 1, 0, 0}));
  const Tensor x = Tensor::from({kMissing, kMissing}, {1, 2});
  EXPECT_THAT(floats(run_classic("TreeEnsembleRegressor", x, a)[0]), ElementsAre(1001));
}

TEST(OnnxTrees, ClassesAreThoseOfTheLargestSum) {
  Trees t;
  t.ids = {0, 1, 2, 1};
  std::vector<Attribute> a = t.attributes("class");
  a.push_back(attribute("classlabels_int64s", std::vector<int64_t>{-4, 5, 6}));
  const Tensor x = Tensor::from({0, 0, 1, 1, 1, 3}, {3, 2});
  const auto y = run_classic("TreeEnsembleClassifier", x, a, 2);
  EXPECT_THAT(whole(y[0]), ElementsAre(-4, 5, 6));
  EXPECT_THAT(floats(y[1]), ElementsAre(1, 0, 0, 0, 1010, 0, 0, 0, 100));
}

TEST(OnnxTrees, LabelsThatAreStringsAreRefused) {
  std::vector<Attribute> a = Trees().attributes("class");
  a.push_back(attribute("classlabels_strings", std::vector<std::string>{"cat", "dog"}));
  EXPECT_THAT(refusal("TreeEnsembleClassifier", a, 2), HasSubstr("labels that are strings"));
}

TEST(OnnxTrees, AttributesThatContradictEachOtherAreRefused) {
  Trees t;
  t.yes[2] = 0;
  EXPECT_THAT(t.refused(), HasSubstr("TreeEnsembleRegressor_of_y0"));
  EXPECT_THAT(t.refused(), HasSubstr("tree node 0 is below itself"));
  t.yes[2] = 9;
  EXPECT_THAT(t.refused(), HasSubstr("nodes_truenodeids names node 9 of tree 0"));
  t = {}, t.features[0] = -1;
  EXPECT_THAT(t.refused(), HasSubstr("tree node 0 compares feature -1"));
  t.features[0] = 2;
  EXPECT_THAT(t.refused(), HasSubstr("compares feature 2 of rows with 2"));
  t = {}, t.values.pop_back();
  EXPECT_THAT(t.refused(), HasSubstr("nodes_nodeids and nodes_values have 8 and 7"));
  t = {}, t.nodes[1] = 0;
  EXPECT_THAT(t.refused(), HasSubstr("tree 0 has two nodes 0"));
  t = {}, t.ids[3] = 1;
  EXPECT_THAT(t.refused(), HasSubstr("weight for target 1 of 1"));
  t = {}, t.leaves[0] = 77;
  EXPECT_THAT(t.refused(), HasSubstr("target_nodeids names node 77"));
  t = {}, t.modes[0] = "BRANCH";
  EXPECT_THAT(t.refused(), HasSubstr("the mode 'BRANCH'"));
  EXPECT_THAT(refusal("TreeEnsembleRegressor", {}), HasSubstr("there are no trees"));
}

// One node of a set, whose branches are leaves.
struct Sets {
  std::vector<int64_t> yes{0}, no{1}, leaf{1}, targets{0, 0}, roots{0};
  std::vector<double> members{3, 1, kMissing};
  int64_t count = 1;

  std::vector<Attribute> attributes() const {
    using io::onnx::ElementType;
    return {attribute("nodes_featureids", std::vector<int64_t>{1}),
            attribute("nodes_truenodeids", yes),
            attribute("nodes_falsenodeids", no),
            attribute("nodes_trueleafs", leaf),
            attribute("nodes_falseleafs", leaf),
            attribute("leaf_targetids", targets),
            attribute("tree_roots", roots),
            attribute("n_targets", count),
            attribute("nodes_modes",
                      constant("", ElementType::Uint8, {1}, std::vector<uint8_t>{6})),
            attribute("nodes_splits", constant("", ElementType::Float, {1}, std::vector<float>{0})),
            attribute("leaf_weights",
                      constant("", ElementType::Float, {2}, std::vector<float>{7, 8})),
            attribute("membership_values",
                      constant("", ElementType::Double, {int64_t(members.size())}, members))};
  }
  std::string refused() const { return refusal("TreeEnsemble", attributes()); }
};

TEST(OnnxTrees, SetsHaveMembers) {
  const Tensor x = Tensor::from({0, 1, 1, 2, 3, 3, 0, kMissing}, {4, 2});
  EXPECT_THAT(floats(run_classic("TreeEnsemble", x, Sets().attributes())[0]),
              ElementsAre(7, 8, 7, 8));
}

TEST(OnnxTrees, PlacesThatAreNotThereAreRefused) {
  Sets s;
  s.no[0] = 2;
  EXPECT_THAT(s.refused(), HasSubstr("names leaf 2 of 2"));
  s = {}, s.leaf[0] = 0;
  EXPECT_THAT(s.refused(), HasSubstr("names node 1 of 1"));
  s.no[0] = 0;  // both branches lead to the node itself
  EXPECT_THAT(s.refused(), HasSubstr("tree node 0 is below itself"));
  s = {}, s.roots[0] = -1;
  EXPECT_THAT(s.refused(), HasSubstr("tree_roots names node -1"));
  s = {}, s.members.push_back(4);
  EXPECT_THAT(s.refused(), HasSubstr("has 2 sets, 1 nodes ask"));
  s = {}, s.targets.pop_back();
  EXPECT_THAT(s.refused(), HasSubstr("leaf_targetids and leaf_weights have 1 and 2"));
  s = {}, s.count = int64_t{1} << 40;
  EXPECT_THAT(s.refused(), HasSubstr("targets or classes"));
}

TEST(OnnxClassic, ScalersTakeANumberForEachFeature) {
  const std::vector<Attribute> a{attribute("offset", std::vector<float>{1, 2}),
                                 attribute("scale", std::vector<float>{10, 100})};
  EXPECT_THAT(floats(run_classic("Scaler", counting({2, 2}), a)[0]),
              ElementsAre(-10, -100, 10, 100));
  EXPECT_THAT(refusal("Scaler", {attribute("scale", std::vector<float>{1, 2, 3})}),
              HasSubstr("scale has 3 numbers for 2 features"));
}

TEST(OnnxClassic, TheLastOfEqualKeysCounts) {
  const std::vector<Attribute> a{attribute("keys_floats", std::vector<float>{1, kMissing, 1}),
                                 attribute("values_int64s", std::vector<int64_t>{5, 6, 7})};
  const Tensor x = Tensor::from({kMissing, 1, 2}, {3});
  EXPECT_THAT(whole(run_classic("LabelEncoder", x, a)[0]), ElementsAre(6, 7, -1));
}

TEST(OnnxClassic, CategoriesThatAreMissingAreZerosOrRefused) {
  std::vector<Attribute> a{attribute("cats_int64s", std::vector<int64_t>{3, 1})};
  EXPECT_THAT(floats(run_classic("OneHotEncoder", vector_of({1, 2, 3}), a)[0]),
              ElementsAre(0, 1, 0, 0, 1, 0));
  a.push_back(attribute("zeros", int64_t{0}));
  EXPECT_THAT(refusal("OneHotEncoder", a), HasSubstr("none of cats_int64s"));
}

TEST(OnnxClassic, SupportVectorsOfClassesVote) {
  const std::vector<Attribute> a{
      attribute("coefficients", std::vector<float>{1, -1}),
      attribute("support_vectors", std::vector<float>{1, 0, 0, 1}),
      attribute("vectors_per_class", std::vector<int64_t>{1, 1}),
      attribute("rho", std::vector<float>{0.5f}),
      attribute("classlabels_ints", std::vector<int64_t>{8, 9})};
  const auto y = run_classic("SVMClassifier", counting({2, 2}), a, 2);
  EXPECT_THAT(whole(y[0]), ElementsAre(9, 9));
  EXPECT_THAT(floats(y[1]), ElementsAre(0.5f, -0.5f, 0.5f, -0.5f));
}

}  // namespace
}  // namespace tuff::onnx::test
