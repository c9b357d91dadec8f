// The table of operators: which function computes which versions of what. Files by family give
// their rows. Called by the importer.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "onnx/node.h"

namespace tuff::onnx {

inline constexpr int64_t kNewestOpset = 28;  // of ai.onnx: github.com/onnx/onnx, docs/Versioning.md
inline constexpr int64_t kNewest = std::numeric_limits<int64_t>::max();
inline constexpr const char* kMicrosoft = "com.microsoft";
inline constexpr const char* kPreview = "ai.onnx.preview";

struct Operator {
  const char* domain;  // "" is ai.onnx
  const char* name;
  int64_t first, last;  // versions of the domain's operators
  Outputs (*run)(const Node& node);
  // The input whose elements the outputs have as they are: narrow ones stay what they are.
  int elements_of = kNew;

  static constexpr int kNew = -1;  // none: elements are made
};

// Null where no row has this version.
const Operator* find_operator(std::string_view domain, std::string_view name, int64_t version);
bool knows_operator(std::string_view domain, std::string_view name);  // of any version
std::vector<const Operator*> all_operators();

std::span<const Operator> attention_operators();
std::span<const Operator> control_operators();
std::span<const Operator> feature_operators();
std::span<const Operator> index_operators();
std::span<const Operator> linear_operators();
std::span<const Operator> math_operators();
std::span<const Operator> microsoft_operators();
std::span<const Operator> norm_operators();
std::span<const Operator> product_operators();
std::span<const Operator> quantized_operators();
std::span<const Operator> random_operators();
std::span<const Operator> recurrent_operators();
std::span<const Operator> reduce_operators();
std::span<const Operator> region_operators();
std::span<const Operator> resize_operators();
std::span<const Operator> shape_operators();
std::span<const Operator> signal_operators();
std::span<const Operator> training_operators();
std::span<const Operator> tree_operators();
std::span<const Operator> window_operators();

// ---- what several families need

// An axis counted from the front. IndexError for one that is not there.
int64_t axis_of(int64_t axis, int64_t rank);
std::vector<int64_t> axes_of(std::vector<int64_t> axes, int64_t rank);
// Rounded toward 0, the nearest that int64 holds; 0 for what is no number.
int64_t whole(double x);
// InvalidArgument where the host would have to reckon more elements one by one than it has room
// for: what attributes and numbers of a model ask for is bounded by nothing else.
void require_reckonable(double elements);

}  // namespace tuff::onnx
