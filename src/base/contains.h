// Lists so short that a set would not pay.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

namespace tuff {

template <class List, class T>
bool contains(const List& list, const T& x) {
  return std::find(std::begin(list), std::end(list), x) != std::end(list);
}

template <class T>
void add_once(std::vector<T>& list, const std::type_identity_t<T>& x) {
  if (!contains(list, x)) list.push_back(x);
}

}  // namespace tuff
