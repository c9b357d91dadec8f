// Scores of classic models (ai.onnx.ml): how rows of them are transformed, and which labels they
// choose. Called by operators.
#pragma once

#include <string>

#include "onnx/node.h"

namespace tuff::onnx {

inline constexpr const char* kClassic = "ai.onnx.ml";

enum class Transform { None, Softmax, Logistic, SoftmaxZero, Probit };
Transform transform_of(const Node& node);  // the attribute post_transform, a name or a number

// Floats as they are, other numbers as F32.
Tensor as_floats(const Tensor& x);

// Along the last axis. One score alone is left as it is but by Probit, as by onnxruntime.
Tensor transformed(const Tensor& scores, Transform how);

// Of two classes only the second has a score, (N, 1): both of them, (N, 2), transformed. The first
// one's is a probability's complement, or any other score's negative.
Tensor of_both_classes(const Tensor& score, Transform how, bool is_probability);

// The numbers that an attribute gives to classes, of which each row of positions takes one.
// Unsupported for labels that are strings.
class Labels {
 public:
  Labels(const Node& node, const char* integers, const char* strings);
  int64_t count() const { return int64_t(labels_.size()); }
  Tensor at(const Tensor& positions) const;  // I64; of none 0 and 1 are the labels

 private:
  std::vector<int64_t> labels_;
  std::string device_;
};

}  // namespace tuff::onnx
