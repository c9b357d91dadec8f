// Ensembles of decision trees (ai.onnx.ml) as plain arrays: read from the attributes of a node,
// which are held against each other. Called by operators_trees.cpp. Computes nothing.
#pragma once

#include <cstdint>
#include <vector>

#include "onnx/node.h"

namespace tuff::onnx {

// The comparisons that are left when branches are exchanged: > is <= with the other branches.
enum class Split { AtMost, Less, Equal, Member };

// What a leaf says of a target.
struct Vote {
  int32_t node, target;
  double weight;
};

struct Ensemble {
  // By node. A leaf's branches are itself. NaN takes `yes` where `nan_is_yes`.
  std::vector<int32_t> feature, yes, no;
  std::vector<Split> kind;
  std::vector<bool> nan_is_yes, is_leaf;
  std::vector<double> threshold;
  // The members of each set, and the set of each node.
  std::vector<std::vector<double>> sets;
  std::vector<int32_t> set;

  std::vector<int32_t> roots;
  std::vector<Vote> votes;
  DType dtype = DType::F32;  // of thresholds and weights
  int64_t targets = 1;
  int64_t levels = 0;  // comparisons on the longest way from a root to a leaf

  int64_t count() const { return int64_t(feature.size()); }
};

// Of TreeEnsembleRegressor ("target") and TreeEnsembleClassifier ("class").
Ensemble ensemble_of_ids(const Node& node, const std::string& votes, int64_t targets);
// Of TreeEnsemble.
Ensemble ensemble_of_places(const Node& node);
// An attribute of floats, or the tensor of doubles that may stand for it.
HostNumbers numbers_or_tensor(const Node& node, const std::string& name);

}  // namespace tuff::onnx
