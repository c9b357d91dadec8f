#include "onnx/operators.h"

#include <cmath>
#include <limits>
#include <map>

#include "base/check.h"

namespace tuff::onnx {
namespace {

using Key = std::pair<std::string_view, std::string_view>;

std::multimap<Key, const Operator*> make_table() {
  std::multimap<Key, const Operator*> out;
  for (const Operator* row : all_operators()) out.emplace(Key(row->domain, row->name), row);
  return out;
}

const std::multimap<Key, const Operator*>& table() {
  static const auto rows = make_table();
  return rows;
}

}  // namespace

std::vector<const Operator*> all_operators() {
  std::vector<const Operator*> out;
  for (const auto family :
       {attention_operators(), control_operators(), feature_operators(), index_operators(),
        linear_operators(), math_operators(), microsoft_operators(), norm_operators(),
        product_operators(), quantized_operators(), random_operators(), recurrent_operators(),
        reduce_operators(), region_operators(), resize_operators(), shape_operators(),
        signal_operators(), training_operators(), tree_operators(), window_operators()})
    for (const Operator& row : family) out.push_back(&row);
  return out;
}

const Operator* find_operator(std::string_view domain, std::string_view name, int64_t version) {
  const auto [begin, end] = table().equal_range(Key(domain, name));
  for (auto it = begin; it != end; ++it)
    if (it->second->first <= version && version <= it->second->last) return it->second;
  return nullptr;
}

bool knows_operator(std::string_view domain, std::string_view name) {
  return table().contains(Key(domain, name));
}

int64_t axis_of(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    fail<IndexError>("axis {} of a tensor of {} axes", axis, rank);
  return axis < 0 ? axis + rank : axis;
}

int64_t whole(double x) {
  constexpr double kEnd = 9223372036854775808.0;  // 2^63
  if (std::isnan(x)) return 0;
  if (x >= kEnd) return std::numeric_limits<int64_t>::max();
  return x < -kEnd ? std::numeric_limits<int64_t>::min() : int64_t(x);
}

void require_reckonable(double elements) {
  constexpr double kMost = 1 << 27;
  if (!(elements <= kMost))
    fail<InvalidArgument>("{} elements are to be reckoned one by one, {} are possible", elements,
                          kMost);
}

std::vector<int64_t> axes_of(std::vector<int64_t> axes, int64_t rank) {
  for (int64_t& a : axes) a = axis_of(a, rank);
  return axes;
}

}  // namespace tuff::onnx
