// OpTable: what a file knows of each op of a group, indexed by the op. A table instead of a switch,
// so that an op without a row fails to compile where the table stands:
//   static_assert(kTable.covers(is_alu), "the file's kTable lacks an ALU op");
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "ir/op.h"

namespace tuff::ir {

template <class Group>
consteval bool any_op(Group group) {
  for (size_t i = 0; i < kOpRows.size(); i++)
    if (group(Op(i))) return true;
  return false;
}

// A function, or none, which it tells without asking whether an address is null: under the sanitizers
// GCC takes that for no constant.
template <class F>
class OptionalFunction {
 public:
  constexpr OptionalFunction(std::nullptr_t = nullptr) {}
  template <std::convertible_to<F*> G>
  constexpr OptionalFunction(G function) : function_(function), there_(true) {}
  constexpr explicit operator bool() const { return there_; }
  template <class... Args>
  constexpr decltype(auto) operator()(Args&&... args) const {
    return function_(std::forward<Args>(args)...);
  }

 private:
  F* function_ = nullptr;
  bool there_ = false;
};

template <class V>
class OpTable {
 public:
  struct Row {
    Op op;
    V value;
  };
  consteval OpTable(std::initializer_list<Row> rows) {
    for (const Row& r : rows) {
      if (has_[size_t(r.op)]) throw "an op has two rows";
      has_[size_t(r.op)] = true;
      values_[size_t(r.op)] = r.value;
    }
  }

  // What the table says of an op; null if it has no row.
  constexpr const V* find(Op op) const { return has_[size_t(op)] ? &values_[size_t(op)] : nullptr; }
  // Whether every op that `group` is true of has a row.
  template <class Group>
  consteval bool covers(Group group) const {
    return !any_op([&](Op op) { return group(op) && !has_[size_t(op)]; });
  }

 private:
  std::array<V, kOpRows.size()> values_{};
  std::array<bool, kOpRows.size()> has_{};
};

}  // namespace tuff::ir
