// Size: one extent of a tensor, a number or a symbolic integer with bounds. Called by users through
// tensor.h; symbolic ones come from the arguments of a Jit whose axes vary. Must never know how
// expressions are stored.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tuff {

namespace ir {
struct Node;
}

/// An extent: a number, or an expression of the axes that vary inside a Jit (JitOptions::dynamic).
///
/// Converts from and to int64_t. A symbolic extent has no number: converting one is an
/// InvalidArgument that names it and its bounds, as is a comparison that its bounds do not decide.
/// Arithmetic with symbolic extents gives symbolic ones; / and % then need operands that are not
/// negative.
class Size {
 public:
  Size() = default;
  template <std::integral T>
  Size(T number) : number_(static_cast<int64_t>(number)) {}
  /// For the room tensor: shares an expression.
  explicit Size(const ir::Node* expression);
  Size(const Size& o) : number_(o.number_), expression_(o.expression_) {
    if (expression_) retain();
  }
  Size(Size&& o) noexcept
      : number_(o.number_), expression_(std::exchange(o.expression_, nullptr)) {}
  Size& operator=(Size o) noexcept {
    std::swap(number_, o.number_);
    std::swap(expression_, o.expression_);
    return *this;
  }
  ~Size() {
    if (expression_) release();
  }

  bool is_number() const { return expression_ == nullptr; }
  /// InvalidArgument for a symbolic extent.
  operator int64_t() const {
    if (expression_) refuse_number();
    return number_;
  }
  /// The bounds that hold whatever the variables are; of a number, itself.
  int64_t min() const;
  int64_t max() const;
  /// "64", or the expression: "T", "B*T".
  std::string str() const;

  const ir::Node* expression() const { return expression_; }

  Size& operator+=(const Size& o);
  Size& operator-=(const Size& o);
  Size& operator*=(const Size& o);

 private:
  void retain() const;
  void release() const;
  [[noreturn]] void refuse_number() const;
  int64_t number_ = 0;
  const ir::Node* expression_ = nullptr;
};

#define TUFF_SIZE_OPERATOR(result, op)              \
  result operator op(const Size& a, const Size& b); \
  template <std::integral T>                        \
  result operator op(const Size& a, T b) {          \
    return a op Size(b);                            \
  }                                                 \
  template <std::integral T>                        \
  result operator op(T a, const Size& b) {          \
    return Size(a) op b;                            \
  }
TUFF_SIZE_OPERATOR(Size, +)
TUFF_SIZE_OPERATOR(Size, -)
TUFF_SIZE_OPERATOR(Size, *)
TUFF_SIZE_OPERATOR(Size, /)
TUFF_SIZE_OPERATOR(Size, %)
TUFF_SIZE_OPERATOR(bool, ==)
TUFF_SIZE_OPERATOR(bool, !=)
TUFF_SIZE_OPERATOR(bool, <)
TUFF_SIZE_OPERATOR(bool, >)
TUFF_SIZE_OPERATOR(bool, <=)
TUFF_SIZE_OPERATOR(bool, >=)
#undef TUFF_SIZE_OPERATOR

/// A list of axes, counted from the end where negative.
using Axes = std::vector<int64_t>;

/// Extents of a tensor. Equal if every pair of extents is; InvalidArgument where bounds leave it
/// open.
class Sizes : public std::vector<Size> {
 public:
  using std::vector<Size>::vector;
  Sizes() = default;
  Sizes(const std::vector<int64_t>& numbers) : std::vector<Size>(numbers.begin(), numbers.end()) {}
  /// InvalidArgument if one of them is symbolic.
  operator std::vector<int64_t>() const { return {begin(), end()}; }
};

}  // namespace tuff
