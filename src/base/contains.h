// Lists so short that a set would not pay.
#pragma once

#include <algorithm>
#include <functional>
#include <type_traits>
#include <vector>

namespace tuff {

template <class List, class T, class Projection = std::identity>
bool contains(const List& list, const T& x, Projection of = {}) {
  return std::ranges::find(list, x, of) != std::end(list);
}

template <class T>
void add_once(std::vector<T>& list, const std::type_identity_t<T>& x) {
  if (!contains(list, x)) list.push_back(x);
}

}  // namespace tuff
