// Ensembles of decision trees (ai.onnx.ml): all rows go down all trees at once, a level after the
// other, which is a gather of what each has reached. Leaves lead to themselves.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "onnx/operators.h"
#include "onnx/scores.h"
#include "onnx/trees.h"

namespace tuff::onnx {
namespace {

enum class Aggregate { Average, Sum, Min, Max };

Aggregate aggregate_of(const Node& node) {
  static constexpr const char* kNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const std::string name = node.text("aggregate_function", "");
  const int64_t number = node.integer("aggregate_function", 1);
  if (name.empty() && number >= 0 && number < 4) return Aggregate(number);
  for (int i = 0; i < 4; i++)
    if (name == kNames[i]) return Aggregate(i);
  fail<InvalidArgument>("aggregate_function is '{}': one of AVERAGE, SUM, MIN and MAX is wanted",
                        name.empty() ? std::to_string(number) : name);
}

// Tables of nodes on the device, looked up by node.
class Tables {
 public:
  Tables(const Ensemble& e, const Node& node, DType dtype)
      : e_(e), device_(node.device()), dtype_(dtype) {}

  Tensor integers(const std::vector<int32_t>& values) const {
    return Tensor::from(values, {int64_t(values.size()), 1}, {.device = device_});
  }
  Tensor numbers(const std::vector<double>& values, int64_t rows) const {
    const int64_t columns = int64_t(values.size()) / rows;
    if (dtype_ == DType::F64) return Tensor::from(values, {rows, columns}, {.device = device_});
    return Tensor::from(std::vector<float>(values.begin(), values.end()), {rows, columns},
                        {.device = device_})
        .cast(dtype_);
  }
  // One value for each: the axis of columns goes.
  static Tensor at(const Tensor& table, const Tensor& nodes) {
    return Tensor::embedding(table, nodes).squeeze(-1);
  }

  // Whether x, what each tree compares, takes the branch `yes`.
  Tensor is_yes(const Tensor& x, const Tensor& nodes) const {
    const Tensor threshold = at(numbers(e_.threshold, e_.count()), nodes);
    Tensor out;
    const auto choose = [&](Split kind, const Tensor& holds) {
      if (!has(kind)) return;
      const Tensor chosen = out.defined() ? at(is_of(kind), nodes) != 0 : Tensor();
      out = out.defined() ? Tensor::where(chosen, holds, out) : holds;
    };
    choose(Split::AtMost, x <= threshold);
    choose(Split::Less, x < threshold);
    choose(Split::Equal, x == threshold);
    if (has(Split::Member)) choose(Split::Member, is_member(x, nodes));
    if (!out.defined()) out = x <= threshold;
    if (std::ranges::find(e_.nan_is_yes, true) == e_.nan_is_yes.end()) return out;
    const std::vector<int32_t> nan(e_.nan_is_yes.begin(), e_.nan_is_yes.end());
    return out | (x.isnan() & (at(integers(nan), nodes) != 0));
  }

 private:
  bool has(Split kind) const {
    for (size_t i = 0; i < e_.kind.size(); i++)
      if (e_.kind[i] == kind && !e_.is_leaf[i]) return true;
    return false;
  }
  Tensor is_of(Split kind) const {
    std::vector<int32_t> out;
    for (const Split k : e_.kind) out.push_back(k == kind);
    return integers(out);
  }
  // Sets are rows as long as the longest one, NaN behind the others.
  Tensor is_member(const Tensor& x, const Tensor& nodes) const {
    size_t longest = 1;
    for (const auto& s : e_.sets) longest = std::max(longest, s.size());
    require_reckonable(double(e_.sets.size()) * double(longest));
    std::vector<double> members;
    for (const auto& s : e_.sets) {
      members.insert(members.end(), s.begin(), s.end());
      members.resize(members.size() + longest - s.size(), std::nan(""));
    }
    const Tensor rows = Tensor::embedding(numbers(members, int64_t(e_.sets.size())),
                                          at(integers(e_.set), nodes));
    return (x.unsqueeze(-1) == rows).any({-1});
  }

  const Ensemble& e_;
  std::string device_;
  DType dtype_;
};

void require_features(const Ensemble& e, const Size& width) {
  const int32_t last = *std::ranges::max_element(e.feature);
  if (width.is_number() && last >= int64_t(width))
    fail<IndexError>("a tree compares feature {} of rows with {}", last, width.str());
}

// The leaf that each row reaches in each tree: (rows, trees).
Tensor leaves(const Ensemble& e, const Tables& tables, const Tensor& x) {
  require_features(e, x.size(1));
  const Size trees = int64_t(e.roots.size());
  Tensor node = tables.integers(e.roots).reshape({1, trees}).expand({x.size(0), trees});
  for (int64_t level = 0; level < e.levels; level++) {
    const Tensor compared = x.gather(1, Tables::at(tables.integers(e.feature), node));
    node = Tensor::where(tables.is_yes(compared, node), Tables::at(tables.integers(e.yes), node),
                         Tables::at(tables.integers(e.no), node));
  }
  return node;
}

// ---- votes: (rows, trees, targets), and where there are any

struct Votes {
  Tensor weight, there;
};

bool votes_are_single(const Ensemble& e) {
  std::vector<bool> has(size_t(e.count()));
  for (const Vote& v : e.votes) {
    if (has[size_t(v.node)]) return false;
    has[size_t(v.node)] = true;
  }
  return true;
}

// Of leaves with one vote: its target and weight.
Votes single_votes(const Ensemble& e, const Tables& tables, const Tensor& leaf) {
  std::vector<int32_t> target(size_t(e.count()), -1);
  std::vector<double> weight(size_t(e.count()));
  for (const Vote& v : e.votes) {
    target[size_t(v.node)] = v.target;
    weight[size_t(v.node)] = v.weight;
  }
  const Tensor all = Tensor::arange(0, e.targets, 1,
                                    {.dtype = DType::I32, .device = leaf.device()});
  const Tensor there = Tables::at(tables.integers(target), leaf).unsqueeze(-1) == all;
  const Tensor w = Tables::at(tables.numbers(weight, e.count()), leaf).unsqueeze(-1);
  return {Tensor::where(there, w, 0), there};
}

// Of leaves with several: a row of all targets.
Votes rows_of_votes(const Ensemble& e, const Tables& tables, const Tensor& leaf, Aggregate how) {
  require_reckonable(double(e.count()) * double(e.targets));
  const auto cells = size_t(e.count() * e.targets);
  std::vector<double> weight(cells), there(cells);
  for (const Vote& v : e.votes) {
    const auto at = size_t(v.node * e.targets + v.target);
    double& w = weight[at];
    if (there[at] == 0)
      w = v.weight;
    else
      w = how == Aggregate::Min   ? std::min(w, v.weight)
          : how == Aggregate::Max ? std::max(w, v.weight)
                                  : w + v.weight;
    there[at] = 1;
  }
  return {Tensor::embedding(tables.numbers(weight, e.count()), leaf),
          Tensor::embedding(tables.numbers(there, e.count()), leaf) != 0};
}

Tensor aggregated(const Ensemble& e, const Votes& v, Aggregate how) {
  if (how == Aggregate::Sum) return v.weight.sum({1});
  if (how == Aggregate::Average) return v.weight.sum({1}) / double(e.roots.size());
  const double none = how == Aggregate::Min ? std::numeric_limits<double>::infinity()
                                            : -std::numeric_limits<double>::infinity();
  const Tensor all = Tensor::where(v.there, v.weight, none);
  return Tensor::where(v.there.any({1}), how == Aggregate::Min ? all.min({1}) : all.max({1}), 0);
}

// (rows, targets)
Tensor scores_of(const Ensemble& e, const Node& node, const Tensor& x, Aggregate how) {
  if (x.dim() != 2) fail<ShapeError>("rows of features (N, F) are wanted");
  const DType dtype = e.dtype == DType::F64 ? DType::F64 : x.dtype();
  const Tables tables(e, node, dtype);
  const Tensor leaf = leaves(e, tables, x.cast(dtype));
  return aggregated(e, votes_are_single(e) ? single_votes(e, tables, leaf)
                                           : rows_of_votes(e, tables, leaf, how), how);
}

// ---- what is added in the end: a number of each target

std::vector<double> base_values(const Node& node, int64_t targets) {
  std::vector<double> out = numbers_or_tensor(node, "base_values").floats;
  if (!out.empty() && int64_t(out.size()) != targets && out.size() != 1)
    fail<ShapeError>("base_values has {} numbers for {} targets or classes", out.size(), targets);
  return out;
}

Tensor with_base(const Node& node, const Tensor& scores, const std::vector<double>& base) {
  if (base.empty()) return scores;
  const Tensor added = Tensor::from(base, {1, int64_t(base.size())}, {.device = node.device()});
  return scores + added.cast(scores.dtype());
}

Outputs regressor(const Node& node) {
  const int64_t targets = node.integer("n_targets", 1);
  const Ensemble e = ensemble_of_ids(node, "target", targets);
  const Tensor sums = scores_of(e, node, as_floats(node.tensor(0)), aggregate_of(node));
  const Tensor y = with_base(node, sums, base_values(node, targets));
  return {transformed(y, transform_of(node)).cast(DType::F32)};
}

Outputs ensemble(const Node& node) {
  const Tensor x = node.tensor(0);
  const Tensor y = scores_of(ensemble_of_places(node), node, x, aggregate_of(node));
  return {transformed(y, transform_of(node)).cast(x.dtype())};
}

// Whether leaves have weights of one class alone.
bool is_of_one_class(const Ensemble& e) {
  return std::ranges::all_of(e.votes, [&](const Vote& v) {
    return v.target == e.votes[0].target;
  });
}

// Two classes of which one alone has weights: it is the second one, whatever its number. Weights
// that are not negative make a probability.
Outputs of_two_classes(const Node& node, const Ensemble& e, const Tensor& scores,
                       const Labels& labels, Transform how) {
  const int64_t own = e.votes.empty() ? 0 : e.votes[0].target;
  std::vector<double> base = base_values(node, 2);
  if (base.size() == 2) base = {base[size_t(own)]};
  const Tensor score = with_base(node, scores.narrow(1, own, 1), base);
  const bool is_probability =
      std::ranges::all_of(e.votes, [](const Vote& v) { return v.weight >= 0; });
  const Tensor is_second = (score > (is_probability ? 0.5 : 0.0)).squeeze(-1);
  return {labels.at(is_second.cast(DType::I64)),
          of_both_classes(score, how, is_probability).cast(DType::F32)};
}

Outputs classifier(const Node& node) {
  const Labels labels(node, "classlabels_int64s", "classlabels_strings");
  if (labels.count() == 0) fail<InvalidArgument>("classlabels_int64s has no labels");
  const Transform how = transform_of(node);
  const Ensemble e = ensemble_of_ids(node, "class", labels.count());
  const Tensor sums = scores_of(e, node, as_floats(node.tensor(0)), Aggregate::Sum);
  if (labels.count() == 2 && is_of_one_class(e))
    return of_two_classes(node, e, sums, labels, how);
  const Tensor scores = with_base(node, sums, base_values(node, labels.count()));
  const Tensor all = transformed(scores, how).cast(DType::F32);
  if (labels.count() == 1) return {(scores > 0).squeeze(-1).cast(DType::I64), all};
  return {labels.at(scores.argmax(-1)), all};
}

constexpr Operator kRows[] = {
    {kClassic, "TreeEnsemble", 5, kNewest, ensemble},
    {kClassic, "TreeEnsembleClassifier", 1, kNewest, classifier},
    {kClassic, "TreeEnsembleRegressor", 1, kNewest, regressor},
};

}  // namespace

std::span<const Operator> tree_operators() { return kRows; }

}  // namespace tuff::onnx
