// The median of measured values. Called by the benchmarks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tuff::bench {

// values: at least one; the upper of two in the middle.
template <class Number>
Number median(std::vector<Number> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace tuff::bench
