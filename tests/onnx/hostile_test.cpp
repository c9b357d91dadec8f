// Models of strangers: random nodes, attributes and inputs of every operator in the table. Whatever
// they say, loading, describing and running them gives results or a tuff::Error.
// TUFF_TEST_MODELS and TUFF_TEST_SEED ask for more of them, or others: an hour before a release.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include <fmt/format.h>

#include "io/formats/onnx_model.h"
#include "onnx/check.h"
#include "onnx/models.h"
#include "onnx/operators.h"

namespace tuff::onnx::test {
namespace {

using io::onnx::Attribute;
using io::onnx::ElementType;
using io::onnx::Graph;
using io::onnx::TensorData;

uint64_t given(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

// Attributes that some operator asks for, by the kind that it expects.
constexpr const char* kInts[] = {
    "axis", "batch_axis", "time_axis", "keepdims", "noop_with_empty_axes", "select_last_index",
    "to", "group", "ceil_mode", "count_include_pad", "storage_order", "transA", "transB",
    "transBatchA", "blocksize", "hidden_size", "linear_before_reset", "layout", "input_forget",
    "num_outputs", "allowzero", "largest", "sorted", "exclusive", "reverse", "upper", "seed",
    "dtype", "detect_negative", "detect_positive", "exclude_outside", "antialias",
    "sampling_ratio", "spatial_scale", "onesided", "batch_dims", "block_size", "saturate",
    "num_heads", "kv_num_heads", "q_num_heads", "is_causal", "do_rotary", "K", "N", "bits",
    "qk_matmul_output_mode", "softmax_precision", "stash_type", "center_point_box",
    "num_scan_inputs", "size", "inplace", "output_dtype", "offset", "min_gram_length",
    "aggregate_function", "post_transform", "n_targets", "n_supports", "targets", "zeros"};
constexpr const char* kLists[] = {
    "axes", "perm", "kernel_shape", "strides", "pads", "dilations", "output_padding",
    "output_shape", "split", "starts", "ends", "shape", "scan_input_axes", "scan_output_axes",
    "scan_input_directions", "scan_output_directions", "int64_vocab", "pool_int64s",
    "ngram_counts", "ngram_indexes", "value_ints", "normalized_shape", "repeats", "tree_roots",
    "leaf_targetids", "nodes_treeids", "nodes_nodeids", "nodes_featureids", "nodes_truenodeids",
    "nodes_falsenodeids", "nodes_trueleafs", "nodes_falseleafs", "class_ids", "class_nodeids",
    "class_treeids", "target_ids", "target_nodeids", "target_treeids", "vectors_per_class",
    "classlabels_int64s", "classlabels_ints", "cats_int64s", "keys_int64s", "values_int64s",
    "inputdimensions", "imputed_value_int64s"};
constexpr const char* kFloatLists[] = {
    "nodes_values", "class_weights", "target_weights", "base_values", "coefficients",
    "intercepts", "kernel_params", "support_vectors", "rho", "prob_a", "prob_b", "scale",
    "offset", "weights", "imputed_value_floats", "activation_alpha"};
constexpr const char* kTensors[] = {"value", "sparse_value", "leaf_weights", "nodes_splits",
                                    "nodes_modes", "membership_values", "base_values_as_tensor",
                                    "keys_tensor", "values_tensor", "default_tensor"};
constexpr const char* kFloats[] = {
    "alpha", "beta", "gamma", "epsilon", "momentum", "lambd", "bias", "clip", "cubic_coeff_a",
    "extrapolation_value", "ratio", "spatial_scale", "low", "high", "mean", "scale", "threshold",
    "softcap", "value_float", "p"};
constexpr const char* kTexts[] = {
    "mode", "auto_pad", "direction", "equation", "reduction", "coordinate_transformation_mode",
    "nearest_mode", "keep_aspect_ratio_policy", "interpolation_mode", "padding_mode",
    "approximate", "norm", "weights"};
constexpr const char* kWords[] = {
    "constant", "reflect", "edge", "wrap", "nearest", "linear", "cubic", "SAME_UPPER",
    "SAME_LOWER", "VALID", "NOTSET", "forward", "reverse", "bidirectional", "ij,jk->ik",
    "...i,...j", "ii->i", "add", "mul", "max", "min", "none", "mean", "sum", "half_pixel",
    "asymmetric", "align_corners", "tf_crop_and_resize", "pytorch_half_pixel", "floor", "ceil",
    "round_prefer_floor", "DCR", "CRD", "avg", "output_half_pixel", "bilinear", "zeros", "border",
    "tanh", "stretch", "TF", "", "->,,..."};
constexpr int64_t kExtremes[] = {
    INT64_MIN, INT64_MIN + 1, -(int64_t(1) << 32), -65536, 255, 65536, INT32_MAX,
    int64_t(1) << 31, int64_t(1) << 40, INT64_MAX};
constexpr ElementType kElements[] = {
    ElementType::Float, ElementType::Float, ElementType::Float, ElementType::Int64,
    ElementType::Int32, ElementType::Bool, ElementType::Uint8, ElementType::Int8,
    ElementType::Float16, ElementType::Double, ElementType::Uint64, ElementType::Int4,
    ElementType::Float8E4M3FN, ElementType::Bfloat16};

class Stranger {
 public:
  explicit Stranger(uint64_t seed) : random_(seed) {}

  io::onnx::Model model() {
    io::onnx::Model m;
    m.opsets = {{"", one_in(3) ? 1 + pick(kNewestOpset) : 21},
                {"com.microsoft", 1},
                {"ai.onnx.ml", one_in(2) ? 5 : 1},
                {"ai.onnx.preview", 1},
                {"ai.onnx.preview.training", 1}};
    fill(m.graph, 1 + pick(4), 0);
    return m;
  }
  NamedValues inputs(const io::onnx::Model& m) {
    NamedValues out;
    for (const io::onnx::ValueInfo& v : m.graph.inputs) {
      Sizes sizes;
      for (const int64_t d : extents()) sizes.push_back(d);
      const DType types[] = {DType::F32, DType::F32,  DType::I64,
                             DType::I32, DType::Bool, DType::F16};
      const DType t = types[pick(std::size(types))];
      out.emplace(v.name, counting(sizes).cast(t));
    }
    return out;
  }
  bool one_in(uint64_t n) { return random_() % n == 0; }

 private:
  int64_t pick(uint64_t n) { return int64_t(random_() % n); }
  int64_t number() {
    if (one_in(8)) return kExtremes[pick(std::size(kExtremes))];
    return pick(9) - 2;
  }
  float some_float() { return one_in(4) ? NAN : one_in(4) ? 1e30f : float(pick(7)) / 2 - 1; }
  std::vector<int64_t> numbers() {
    std::vector<int64_t> out(size_t(pick(6)));
    for (int64_t& n : out) n = number();
    return out;
  }
  std::vector<int64_t> extents() {
    std::vector<int64_t> out(size_t(pick(6)));
    for (int64_t& n : out) n = one_in(10) ? 0 : 1 + pick(4);
    return out;
  }

  TensorData tensor(std::string name) {
    if (one_in(3)) return integers(std::move(name), numbers());
    TensorData t;
    t.name = std::move(name), t.type = kElements[pick(std::size(kElements))], t.dims = extents();
    uint64_t bits = size_bits(t.type);
    for (const int64_t d : t.dims) bits *= uint64_t(d);
    t.bytes.resize((bits + 7) / 8);
    if (one_in(2)) {
      for (uint8_t& b : t.bytes) b = uint8_t(random_());
    } else if (t.type == ElementType::Float) {
      for (size_t i = 0; i < t.bytes.size(); i += 4) t.bytes[i + 2] = 0x80, t.bytes[i + 3] = 0x3f;
    }
    return t;
  }

  Attribute some_attribute(int depth) {
    switch (pick(depth < 2 ? 11 : 9)) {
      case 0:
      case 1: return attribute(kInts[pick(std::size(kInts))], number());
      case 2:
      case 3: return attribute(kLists[pick(std::size(kLists))], numbers());
      case 4:
        return attribute(kFloats[pick(std::size(kFloats))], some_float());
      case 5: return attribute(kTexts[pick(std::size(kTexts))], kWords[pick(std::size(kWords))]);
      case 6: {
        Attribute a;
        a.name = kTensors[pick(std::size(kTensors))], a.kind = Attribute::Kind::Tensor;
        a.tensors = {tensor("")};
        return a;
      }
      case 7: {
        Attribute a;
        a.name = kFloatLists[pick(std::size(kFloatLists))], a.kind = Attribute::Kind::Floats;
        for (int64_t i = pick(6); i > 0; i--) a.floats.push_back(some_float());
        return a;
      }
      case 8: {
        constexpr const char* kModes[] = {"BRANCH_LEQ", "BRANCH_GT", "LEAF", "BRANCH_EQ", "XX"};
        Attribute a;
        a.name = "nodes_modes", a.kind = Attribute::Kind::Strings;
        for (int64_t i = pick(6); i > 0; i--) a.strings.push_back(kModes[pick(5)]);
        return a;
      }
      default: {
        constexpr const char* kBodies[] = {"body", "then_branch", "else_branch"};
        return attribute(kBodies[pick(3)], graph(depth + 1));
      }
    }
  }
  Graph graph(int depth) {
    Graph g;
    fill(g, pick(3), depth);
    return g;
  }

  // A name that is known, or one that may not be.
  std::string some_name() {
    if (one_in(8)) return "";
    return names_.empty() || one_in(100) ? "nothing" : names_[size_t(pick(names_.size()))];
  }

  void fill(Graph& g, int64_t nodes, int depth) {
    const size_t outer = names_.size();
    const std::string mark = std::string(size_t(depth), 'i') + std::to_string(fresh_++);
    for (int64_t i = 0, n = pick(3); i < n; i++) {
      g.inputs.push_back(any_info("x" + mark + std::to_string(i)));
      names_.push_back(g.inputs.back().name);
    }
    for (int64_t i = 0, n = 1 + pick(5); i < n; i++) {
      g.initializers.push_back(tensor("c" + mark + std::to_string(i)));
      names_.push_back(g.initializers.back().name);
    }
    static const std::vector<const Operator*> operators = all_operators();
    for (int64_t i = 0; i < nodes; i++) {
      const Operator* op = operators[size_t(pick(operators.size()))];
      std::vector<std::string> in(size_t(one_in(4) ? pick(9) : 1 + pick(4)));
      std::vector<std::string> out(size_t(1 + pick(3)));
      for (std::string& name : in) name = some_name();
      for (size_t k = 0; k < out.size(); k++)
        out[k] = "y" + mark + std::to_string(i) + "_" + std::to_string(k);
      std::vector<Attribute> attributes;
      for (int64_t k = pick(5); k-- > 0;) attributes.push_back(some_attribute(depth));
      const bool loops = op->name == std::string("Loop") || op->name == std::string("Scan");
      if (loops) attributes.push_back(attribute("body", graph(depth + 1)));
      if (op->name == std::string("If")) {
        attributes.push_back(attribute("then_branch", graph(depth + 1)));
        attributes.push_back(attribute("else_branch", graph(depth + 1)));
      }
      g.nodes.push_back(node(op->name, in, out, std::move(attributes)));
      g.nodes.back().domain = op->domain;
      names_.push_back(out[0]);
    }
    for (int64_t i = 0, n = 1 + pick(2); i < n; i++) g.outputs.push_back(any_info(some_name()));
    names_.resize(outer);
  }

  std::mt19937_64 random_;
  std::vector<std::string> names_;
  int fresh_ = 0;
};

struct Outcome {
  bool ran = false, realized = false;
};
Outcome run(uint64_t seed) {
  Outcome out;
  Stranger stranger(seed);
  const io::onnx::Model m = stranger.model();
  try {
    (void)operator_uses(m);
    (void)rewrite(m);
    const Importer importer(m, "CPU", stranger.one_in(2));
    const NamedValues results = importer.run(stranger.inputs(m));
    out.ran = true;
    if (!stranger.one_in(20)) return out;
    for (const auto& [name, value] : results) {
      if (value.absent() || value.is_sequence()) continue;
      Tensor t = value.tensor("CPU");
      if (t.numel() > 4096) continue;
      t.realize();
      out.realized = true;
    }
  } catch (const Error&) {  // the answer to what cannot be run
  } catch (const std::exception& e) {
    ADD_FAILURE() << "seed " << seed << ": " << e.what();
  }
  return out;
}

// Each was a crash, or read what is not there.
TEST(OnnxHostile, WhatCannotBeReckonedIsRefused) {
  const Tensor x = counting({2, 3}), image = counting({1, 4, 2, 2});
  const Value two = host_integers({2, 3}), zero = host_integer(0);
  const Value half(HostNumbers{.dtype = DType::F32, .shape = {}, .ints = {}, .floats = {0.5}});
  const Value least = host_integer(INT64_MIN), minus_one = host_integer(-1);
  const auto refused = [](const char* op, const std::vector<Value>& inputs,
                          const std::vector<Attribute>& attributes = {}, int64_t opset = 21) {
    EXPECT_THROW(run_op(op, inputs, attributes, opset), Error) << op;
  };
  refused("Pad", {x, host_integers({1, 1, 1, 1, 1, 1, 1, 1})});
  refused("Pad", {counting({0}), host_integers({1, 1})}, {attribute("mode", "wrap")});
  refused("Add", {two, half});
  refused("And", {half, half});
  refused("Not", {half});
  refused("Where", {half, two, two});
  refused("Concat", {two, zero}, {attribute("axis", int64_t{0})});
  refused("Gather", {x, half});
  refused("GatherND", {x, vector_of({0, 1})}, {attribute("batch_dims", int64_t{3})});
  refused("ReverseSequence", {x, vector_of({1, 1, 1})}, {attribute("time_axis", int64_t{7})});
  refused("OneHot", {vector_of({0}), zero, vector_of({0, 1})}, {attribute("axis", int64_t{-3})});
  refused("NonMaxSuppression", {counting({1, 2, 4}), counting({1, 2, 64})});
  refused("DepthToSpace", {image}, {attribute("blocksize", int64_t{0})});
  refused("SpaceToDepth", {image}, {attribute("blocksize", int64_t{1} << 32)});
  refused("Split", {x}, {attribute("num_outputs", int64_t{0})});
  refused("MaxPool", {image}, {attribute("kernel_shape", std::vector<int64_t>{2, 2}),
                               attribute("strides", std::vector<int64_t>{0, 1})});
  refused("Resize", {image, Value(), Value(), host_integers({1, 4, int64_t{1} << 40, 2})});
  refused("HannWindow", {host_integer(int64_t{1} << 40)});
  refused("LRN", {counting({3})}, {attribute("size", int64_t{3})});
  refused("GRU", {counting({1, 1, 3}), counting({1, 2, 3}), counting({1, 2, 1})},
          {attribute("hidden_size", int64_t{1})});
  refused("RoiAlign", {counting({1, 1, 0, 0}), counting({1, 4}), vector_of({0})});
  refused("DeformConv", {image, image, image}, {attribute("offset_group", int64_t{0})}, 22);
  refused("Attention", {counting({1, 2, 2, 4}), counting({1, 0, 2, 4}), counting({1, 0, 2, 4})}, {},
          23);
  refused("Attention", {counting({1, 2, 4, 24}), counting({2, 6, 24}), counting({2, 6, 30})}, {},
          23);
  io::onnx::Model many = model({node("SVMClassifier", {"x"}, {"y", "p"},
                           {attribute("vectors_per_class", std::vector<int64_t>(20000, 0)),
                            attribute("classlabels_ints", std::vector<int64_t>{0, 1})})},
                     {"x"}, {"y"});
  many.graph.nodes[0].domain = "ai.onnx.ml";
  many.opsets.emplace_back("ai.onnx.ml", 1);
  EXPECT_THROW(Importer(many).run({{"x", x}}), Error);
  Attribute empty;
  empty.name = "value", empty.kind = Attribute::Kind::Tensor;
  empty.tensors = {constant("", ElementType::Float, {0}, std::vector<float>{})};
  refused("ConstantOfShape", {two}, {empty});
  EXPECT_EQ(whole(run_op("Div", {least, minus_one})[0]), (std::vector<int64_t>{INT64_MIN}));
  EXPECT_EQ(whole(run_op("Mod", {least, minus_one})[0]), (std::vector<int64_t>{0}));
}

TEST(OnnxHostile, RandomModelsRunOrAreRefused) {
  const uint64_t models = given("TUFF_TEST_MODELS", 8000), first = given("TUFF_TEST_SEED", 1);
  uint64_t ran = 0, realized = 0;
  for (uint64_t seed = first; seed < first + models; seed++) {
    if (std::getenv("TUFF_TEST_SEED")) fmt::print(stderr, "seed {}\n", seed);
    const Outcome o = run(seed);
    ran += o.ran, realized += o.realized;
  }
  fmt::print("{} models: {} ran, {} were realized\n", models, ran, realized);
  EXPECT_GT(ran, models / 100);
}

}  // namespace
}  // namespace tuff::onnx::test
